"""Instance documents drawn at random, and what they mean: evaluated from the JSON data alone, without the toolkit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import strategies as st

from tests.independent import Sees, head_exp, head_exp2, nearest
from verify.commands import main

Document = dict[str, Any]
Rows = list[list[Any]]

DIGITS = 150
"""Digits at which kernel exp is evaluated."""


# --- running the command in this process ---------------------------------------------------------------------------------


class Answer:
    """What a command did: exit code, standard output, standard error."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def json(self) -> Any:
        """The one document on standard output; asserts that nothing else is there."""
        document = json.loads(self.out)
        assert self.out == json.dumps(document, indent=2, ensure_ascii=True) + "\n"
        return document

    def complaint(self) -> str:
        """The one line of a wrong request; asserts exit code 2 and an empty standard output."""
        assert (self.code, self.out) == (2, "")
        assert self.err.startswith("verify: ") and self.err.endswith("\n") and self.err.count("\n") == 1
        assert "Traceback" not in self.err and self.err.rstrip("\n").isprintable()
        return self.err


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> Answer:
    """Runs `verify` with these arguments."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert isinstance(stop.value.code, int)
    return Answer(stop.value.code, captured.out, captured.err)


PYTHON = [sys.executable, "-m", "verify"]


# --- instances -----------------------------------------------------------------------------------------------------------


def single(kernel: str, X: list[list[Any]], WQ: Any = 1, WK: Any = 1, WV: Any = 1, **more: Any) -> Document:
    """One layer with one head on tokens of one number; `more` goes into the document, `mlp` and `layers` excepted."""
    layer = {"heads": [{"WQ": [[WQ]], "WK": [[WK]], "WV": [[WV]]}]}
    if "mlp" in more:
        layer["mlp"] = more.pop("mlp")
    layers = [layer] * more.pop("layers", 1)
    return {"format": "attention-instance/1", "kernel": kernel, "mask": "none", "X": X, "layers": layers, **more}


def seen(mask: Any, N: int) -> Sees:
    """Which columns a row sees, from the definitions 2.3 to 2.5 with rows counted from 0."""
    if mask == "none":
        return lambda i, j: True
    if mask == "causal":
        return lambda i, j: j <= i
    window, sinks = mask["window"], mask.get("sinks", 0)
    return lambda i, j: j <= i and (j < sinks or j > i - window)


def _matrix(rows: list[list[Any]]) -> list[list[Fraction]]:
    return [[Fraction(str(x)) for x in row] for row in rows]


def _mlp(rows: Rows, written: Any, rounded: Callable[[Any, int], Any]) -> Rows:
    for part in written if isinstance(written, list) else [written]:
        if part == "identity":
            continue
        if "round_bits" in part:
            rows = [[rounded(x, part["round_bits"]) for x in row] for row in rows]
        else:
            W, b = _matrix(part["affine"]["W"]), _matrix([part["affine"]["b"]])[0]
            rows = [[_dot(row, [w[c] for w in W]) + _number(b[c], row) for c in range(len(b))] for row in rows]
    return rows


def _number(x: Fraction, like: Sequence[Any]) -> Any:
    return x if isinstance(like[0], Fraction) else mpmath.mpf(x.numerator) / x.denominator


def _dot(row: Sequence[Any], column: Sequence[Fraction]) -> Any:
    return sum(((x * w.numerator) / w.denominator for x, w in zip(row, column, strict=True)), _number(Fraction(0), row))


def _nearest_real(x: Any, bits: int) -> Fraction:
    """The nearest multiple of 2^-bits of a number known to about 140 digits; what is that close to a tie is one."""
    if isinstance(x, Fraction):
        return nearest(x, bits)
    scaled = x * mpmath.mpf(2) ** bits + mpmath.mpf(1) / 2
    whole = int(mpmath.nint(scaled))
    if abs(scaled - whole) > mpmath.mpf(10) ** -100:
        whole = int(mpmath.floor(scaled))
    return Fraction(whole) / Fraction(2) ** bits


def meaning(document: Document) -> Rows:
    """The output rows: fractions with kernel exp2; with kernel exp, fractions or mpmath numbers (call inside workdps)."""
    rows: Rows = _matrix(document["X"])
    sees = seen(document["mask"], len(rows))
    for layer in document["layers"]:
        width = len(rows[0]) // len(layer["heads"])
        attended: Rows = [[] for _ in rows]
        for h, head in enumerate(layer["heads"]):
            part = [row[h * width : (h + 1) * width] for row in rows]
            matrices = [_matrix(head[name]) for name in ("WQ", "WK", "WV")]
            if document["kernel"] == "exp2":
                found: Rows = head_exp2(part, *matrices, sees)
            else:
                found = head_exp(part, *matrices, DIGITS, sees)
            attended = [a + b for a, b in zip(attended, found, strict=True)]
        if document.get("residual"):
            attended = [
                [y + _number(x, [y]) for y, x in zip(out, own, strict=True)]
                for out, own in zip(attended, rows, strict=True)
            ]
        rows = _mlp(attended, layer.get("mlp", "identity"), _nearest_real)
    return rows


MASKS: list[Any] = [
    "none",
    "causal",
    {"window": 1},
    {"window": 2},
    {"window": 3, "sinks": 1},
    {"window": 2, "sinks": 2},
]


@st.composite
def documents(draw: st.DrawFn, kernel: str, masks: Sequence[Any] = ("none",), most_layers: int = 2) -> Document:
    """An instance that exact arithmetic can take: every layer but the last rounds to integers."""
    H, m = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (3, 1), (2, 2)]))
    N, L = draw(st.integers(1, 7)), draw(st.integers(1, most_layers))
    small = st.integers(-1, 1) if L > 1 else st.integers(-2, 2)
    fraction = st.sampled_from(["1/3", "-1/2", "0.25", 2, 0, -1, "5e-1"])

    def matrix(height: int, width: int, entries: st.SearchStrategy[Any]) -> list[list[Any]]:
        return draw(st.lists(st.lists(entries, min_size=width, max_size=width), min_size=height, max_size=height))

    layers, width = [], H * m
    for level in range(L):
        last, own = level == L - 1, width // H
        layer: Document = {
            "heads": [
                {
                    "WQ": matrix(own, own, small),
                    "WK": matrix(own, own, small),
                    "WV": matrix(own, own, fraction if last else small),
                }
                for _ in range(H)
            ]
        }
        next_width = draw(st.integers(1, 3)) if last else draw(st.sampled_from([width, H]))
        affine = {"affine": {"W": matrix(width, next_width, fraction), "b": matrix(1, next_width, fraction)[0]}}
        rounding = {"round_bits": draw(st.integers(-2, 3) if last else st.integers(-1, 0))}
        shapes: list[Any] = [rounding, [affine, rounding]]
        if last:
            shapes += ["identity", None, [], affine, [rounding, affine, "identity"]]
        mlp = draw(st.sampled_from(shapes))
        if mlp is not None:
            layer["mlp"] = mlp
        width = next_width if mlp is affine or (isinstance(mlp, list) and affine in mlp) else width
        layers.append(layer)
    document: Document = {
        "format": "attention-instance/1",
        "kernel": kernel,
        "mask": draw(st.sampled_from(list(masks))),
        "X": matrix(N, H * m, st.integers(-2, 2)),
        "layers": layers,
    }
    if draw(st.booleans()):
        document["residual"] = True
    return document
