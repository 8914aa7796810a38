"""Instances: exact numbers, a faithful round trip, and one clear line for whatever is wrong with a file."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import replace
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from verify.arithmetic.exact import Exact2
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import RequestError
from verify.transformer import instance as module
from verify.transformer.attention import CAUSAL, NO_MASK, Mask
from verify.transformer.instance import Affine, Instance, Rounding, parse_instance, read_instance

EXAMPLE = """
{"format": "attention-instance/1",
 "kernel": "exp2",
 "mask": {"window": 3, "sinks": 2},
 "X": [["1/2", -3], [0, "0.25"]],
 "layers": [{"heads": [{"WQ": [[1, 0], [0, 1]], "WK": [[1, 0], [0, 1]], "WV": [[1, 0], [0, 1]]}],
             "mlp": {"round_bits": 0}}]}
"""

TINY = """{"format": "attention-instance/1", "kernel": "exp2", "mask": "none", "X": [[%s]],
           "layers": [{"heads": [{"WQ": [[1]], "WK": [[1]], "WV": [[1]]}]}]}"""

WIDE = """
{"format": "attention-instance/1", "kernel": "exp", "mask": {"window": 2},
 "X": [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]],
 "layers": [{"heads": [{"WQ": [[1, 0], [0, 1]], "WK": [[1, 0], [0, 1]], "WV": [[1, 0], [0, 1]]},
                       {"WQ": [[1, 2], [3, 4]], "WK": [["1/3", 0], [0, 1]], "WV": [[1, 0], [0, 0.5]]}],
             "mlp": [{"affine": {"W": [[1, 0, 2], [0, 1, 0], [0, 0, 0], [1, 1, 1]], "b": [0, 1, "1/2"]}}, "identity"]},
            {"heads": [{"WQ": [[1]], "WK": [[2]], "WV": [[3]]}, {"WQ": [[1]], "WK": [[2]], "WV": [[3]]},
                       {"WQ": [[1]], "WK": [[2]], "WV": [[3]]}],
             "mlp": {"round_bits": 3}}],
 "residual": true}
"""

Place: TypeAlias = tuple[str | int, ...]


class Raw(str):
    """JSON text that stands in a document as it is."""


def written(value: Any) -> str:
    """JSON text, with `Raw` pieces as they are and with (key, value) tuples for the members of an object."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return written(tuple(value.items()))
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{json.dumps(key)}: {written(member)}" for key, member in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value)


def changed(document: str, place: Place, new: str | None) -> str:
    """The document with the JSON text `new` at this place; with nothing there if None."""
    root = json.loads(document)
    if not place:
        return str(new)
    node = root
    for key in place[:-1]:
        node = node[key]
    if new is None:
        del node[place[-1]]
    else:
        node[place[-1]] = Raw(new)
    return written(root)


def refusal(text: str, name: str = "instance.json") -> str:
    """The line with which the document is refused."""
    with pytest.raises(RequestError) as caught:
        parse_instance(text, name)
    line = str(caught.value)
    assert line.isprintable(), line
    assert len(line) < 300, line
    return line


def number(written_number: str) -> Fraction:
    """The number that is written so in a document."""
    return parse_instance(TINY % written_number, "tiny").X[0][0]


def exact(W: RationalMatrix) -> list[list[Any]]:
    """The entries of a matrix, by rows."""
    return [list(row) for row in W.rows]


def same(a: Instance, b: Instance) -> bool:
    """Whether two instances agree in everything that they hold, matrices entry by entry."""
    heads = [
        [[(h.W_Q.rows, h.W_K.rows, h.W_V.rows) for h in layer.heads] for layer in i.transformer.layers] for i in (a, b)
    ]
    maps = [[(layer.mlp, layer.residual, layer.width) for layer in i.transformer.layers] for i in (a, b)]
    return (
        heads[0] == heads[1]
        and maps[0] == maps[1]
        and (a.kernel, a.X, a.transformer.mask, a.digest) == (b.kernel, b.X, b.transformer.mask, b.digest)
        and a == b
        and hash(a) == hash(b)
    )


# --- what is read ----------------------------------------------------------------------------------------------------


def test_the_example_of_the_format() -> None:
    instance = parse_instance(EXAMPLE, "example")
    assert instance.kernel == "exp2"
    assert [list(row) for row in instance.X] == [[Fraction(1, 2), -3], [0, Fraction(1, 4)]]
    assert instance.columns == ((Fraction(1, 2), Fraction(0)), (Fraction(-3), Fraction(1, 4)))
    assert (instance.N, instance.d) == (2, 2)
    assert instance.transformer.mask == Mask(causal=True, window=3, sinks=2)
    (layer,) = instance.transformer.layers
    assert not layer.residual
    assert [exact(head.W_K) for head in layer.heads] == [[[1, 0], [0, 1]]]
    assert layer.mlp.inputs == (Kind.VALUE, Kind.VALUE)
    assert layer.mlp.kinds == (Kind.NUMBER, Kind.NUMBER)
    assert instance.mlps == ((Rounding(0),),)
    assert "Fraction" not in repr(instance)


def test_heads_maps_and_widths() -> None:
    instance = parse_instance(WIDE, "wide")
    first, second = instance.transformer.layers
    assert (first.width, len(first.mlp.outputs), second.width, len(second.mlp.outputs)) == (4, 3, 3, 3)
    head = first.heads[1]
    assert exact(head.W_Q) == [[1, 2], [3, 4]]
    assert exact(head.W_K) == [[Fraction(1, 3), 0], [0, 1]]
    assert exact(head.W_V) == [[1, 0], [0, Fraction(1, 2)]]
    assert [len(maps) for maps in instance.mlps] == [1, 1]
    assert isinstance(instance.mlps[0][0], Affine)
    assert first.residual
    assert second.residual
    assert first.mlp.inputs == (Kind.VALUE,) * 4 + (Kind.NUMBER,) * 4
    assert second.mlp.inputs == (Kind.VALUE,) * 3 + (Kind.NUMBER,) * 3


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ('"none"', NO_MASK),
        ('"causal"', CAUSAL),
        ('{"window": 1}', Mask(causal=True, window=1)),
        ('{"window": 5, "sinks": 0}', Mask(causal=True, window=5)),
        ('{"sinks": 7, "window": 5}', Mask(causal=True, window=5, sinks=7)),
    ],
)
def test_masks(mask: str, expected: Mask) -> None:
    assert parse_instance(changed(EXAMPLE, ("mask",), mask), "mask").transformer.mask == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.1", Fraction(1, 10)),
        ('"0.1"', Fraction(1, 10)),
        ('"1e-3"', Fraction(1, 1000)),
        ("1E+2", Fraction(100)),
        ("-0", Fraction(0)),
        ("-0.0e5", Fraction(0)),
        ('"+7/21"', Fraction(1, 3)),
        ('"-007/0021"', Fraction(-1, 3)),
        ('"12"', Fraction(12)),
        ("0.1000000000000000055511151231257827", Fraction(1000000000000000055511151231257827, 10**34)),
        ("123456789012345678901234567890", Fraction(123456789012345678901234567890)),
        ("1e3999", Fraction(10**3999)),
        ("1e-3999", Fraction(1, 10**3999)),
        ("1e-0000000000000003", Fraction(1, 1000)),
        ("9" * 4000, Fraction(10**4000 - 1)),
        ('"1/' + "9" * 4000 + '"', Fraction(1, 10**4000 - 1)),
        ("0." + "0" * 3998 + "1", Fraction(1, 10**3999)),
        ("0.5e4000", None),
    ],
)
def test_numbers_are_exact(text: str, expected: Fraction | None) -> None:
    assert number(text) == (5 * 10**3999 if expected is None else expected)
    instance = parse_instance(TINY % text, "tiny")
    assert same(parse_instance(instance.to_json(), "again"), instance)


def test_the_digest_is_that_of_the_content() -> None:
    instance = parse_instance(EXAMPLE, "a")
    spelled = EXAMPLE.replace('"0.25"', "25e-2").replace('"1/2"', '"2/4"').replace("\n", " ")
    spelled = spelled.replace('{"round_bits": 0}', '["identity", {"round_bits": 0}]')
    assert parse_instance(spelled, "b").digest == instance.digest
    assert len(instance.digest) == 64
    assert instance.to_json() == (
        '{"format": "attention-instance/1", "kernel": "exp2", "mask": {"window": 3, "sinks": 2}, '
        '"X": [["1/2", -3], [0, "1/4"]], "layers": [{"heads": [{"WQ": [[1, 0], [0, 1]], "WK": [[1, 0], [0, 1]], '
        '"WV": [[1, 0], [0, 1]]}], "mlp": {"round_bits": 0}}], "residual": false}'
    )
    others = [
        changed(EXAMPLE, place, new)
        for place, new in [
            (("kernel",), '"exp"'),
            (("mask",), '"none"'),
            (("X", 0, 0), "1"),
            (("layers", 0, "heads", 0, "WQ", 0, 0), "2"),
            (("layers", 0, "heads", 0, "WK", 0, 0), "2"),
            (("layers", 0, "heads", 0, "WV", 0, 0), "2"),
            (("layers", 0, "mlp"), None),
            (("residual",), "true"),
        ]
    ]
    assert len({instance.digest} | {parse_instance(other, "other").digest for other in others}) == len(others) + 1
    assert replace(instance, kernel="exp").digest == parse_instance(others[0], "other").digest


@pytest.mark.parametrize("mlp", ['"identity"', "[]", '["identity", "identity"]', None])
def test_all_spellings_of_the_identity(mlp: str | None) -> None:
    plain = changed(EXAMPLE, ("layers", 0, "mlp"), None)
    assert same(parse_instance(changed(EXAMPLE, ("layers", 0, "mlp"), mlp), "identity"), parse_instance(plain, "plain"))


# --- what the transformer computes -----------------------------------------------------------------------------------


def evaluated(document: str) -> list[list[Fraction]]:
    """The direct evaluation of a document, by rows."""
    arithmetic = Exact2()
    instance = parse_instance(document, "evaluated")
    columns = [arithmetic.numbers(column) for column in instance.columns]
    output = instance.transformer.evaluate(arithmetic, columns)
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in zip(*output, strict=True)]


def averaging(mlp: str, residual: str = "false", layers: int = 1) -> str:
    """Heads with equal weights everywhere: each layer replaces its columns by their means, then come the maps."""
    head = '{"WQ": [[0]], "WK": [[0]], "WV": [[1]]}'
    layer = f'{{"heads": [{head}, {head}], "mlp": {mlp}}}'
    return f"""{{"format": "attention-instance/1", "kernel": "exp2", "mask": "none", "X": [[1, 2], [2, 0], [3, 5]],
                "layers": [{", ".join([layer] * layers)}], "residual": {residual}}}"""


AFFINE = '{"affine": {"W": [[1, 0, "1/3"], [-1, 0, 2]], "b": [0, "1/2", 1]}}'


def test_the_maps_are_applied_to_the_attention_output() -> None:
    mean = [Fraction(2), Fraction(7, 3)]
    assert evaluated(averaging('"identity"')) == [mean] * 3
    assert evaluated(averaging('{"round_bits": 0}')) == [[2, 2]] * 3
    assert evaluated(averaging('{"round_bits": -2}')) == [[4, 4]] * 3  # 2 is a tie, and ties go up
    affine = [mean[0] - mean[1], Fraction(1, 2), mean[0] / 3 + 2 * mean[1] + 1]
    assert evaluated(averaging(AFFINE)) == [affine] * 3
    rounded = [Fraction(math.floor(4 * x + Fraction(1, 2)), 4) for x in affine]
    assert evaluated(averaging(f'[{AFFINE}, {{"round_bits": 2}}]')) == [rounded] * 3
    assert evaluated(averaging(f'[{{"round_bits": 0}}, {AFFINE}]')) == [[0, Fraction(1, 2), Fraction(17, 3)]] * 3


def test_the_residual_is_added_before_the_maps() -> None:
    X = [[Fraction(1), Fraction(2)], [Fraction(2), Fraction(0)], [Fraction(3), Fraction(5)]]
    expected = [[x + Fraction(2), y + Fraction(7, 3)] for x, y in X]
    assert evaluated(averaging('"identity"', "true")) == expected
    assert evaluated(averaging('{"round_bits": 0}', "true")) == [
        [x, math.floor(y + Fraction(1, 2))] for x, y in expected
    ]
    means = [sum(column, Fraction(0)) / 3 for column in zip(*expected, strict=True)]
    assert evaluated(averaging('"identity"', "true", layers=2)) == [[x + means[0], y + means[1]] for x, y in expected]


def test_a_constant_column_may_be_mapped_again() -> None:
    constant = '{"affine": {"W": [[0], [0]], "b": ["5/3"]}}'
    assert evaluated(averaging(f'[{constant}, {{"affine": {{"W": [[3, 0]], "b": [1, 0]}}}}]')) == [[6, 0]] * 3
    assert evaluated(averaging(f'[{constant}, {{"round_bits": 0}}]', "true")) == [[2]] * 3


def test_affine_maps_cost_what_their_entries_need() -> None:
    (layer,) = parse_instance(averaging(AFFINE), "affine").transformer.layers
    assert layer.mlp.cost == 2 + 0 + 4  # scale by -1 and add; a constant; scale twice and add twice
    assert layer.mlp.kinds == (Kind.VALUE, Kind.NUMBER, Kind.VALUE)
    assert layer.mlp.operations == frozenset()


# --- round trip ------------------------------------------------------------------------------------------------------


@st.composite
def spelled_numbers(draw: st.DrawFn) -> tuple[Raw, Fraction]:
    """A number as a document may spell it, and its value worked out apart from the code under test."""
    value = draw(st.fractions(max_denominator=1000) | st.integers(-3, 3).map(Fraction))
    factor = draw(st.integers(1, 3))
    mantissa, places, exponent = draw(st.integers(-999, 999)), draw(st.integers(1, 4)), draw(st.integers(-30, 30))
    digits = str(abs(mantissa)).zfill(places + 1)
    decimal = f"{'-' * (mantissa < 0)}{digits[:-places]}.{digits[-places:]}{draw(st.sampled_from('eE'))}{exponent}"
    spelled, exact = draw(
        st.sampled_from(
            [
                (f'"{value.numerator * factor}/{value.denominator * factor}"', value),
                (str(mantissa), Fraction(mantissa)),
                (f'"{mantissa}"', Fraction(mantissa)),
                (decimal, Fraction(mantissa, 10**places) * Fraction(10) ** exponent),
                (f'"{decimal}"', Fraction(mantissa, 10**places) * Fraction(10) ** exponent),
            ]
        )
    )
    return Raw(spelled), exact


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, list[list[Fraction]]]:
    """A valid document, and the rows of its X."""

    numbers = cycle(draw(st.lists(spelled_numbers(), min_size=1, max_size=7)))

    def matrix(height: int, width: int) -> list[list[tuple[Raw, Fraction]]]:
        return [[next(numbers) for _ in range(width)] for _ in range(height)]

    def spelled(rows: list[list[tuple[Raw, Fraction]]]) -> list[list[Raw]]:
        return [[text for text, _ in row] for row in rows]

    def one_map(width: int) -> tuple[Any, int]:
        kind = draw(st.sampled_from(["identity", "round_bits", "affine"]))
        if kind == "identity":
            return kind, width
        if kind == "round_bits":
            return {kind: draw(st.integers(-4096, 4096))}, width
        after = draw(st.integers(1, 3))
        return {kind: {"W": spelled(matrix(width, after)), "b": spelled(matrix(1, after))[0]}}, after

    width = draw(st.integers(1, 4))
    X = matrix(draw(st.integers(1, 3)), width)
    layers = []
    for _ in range(draw(st.integers(1, 2))):
        heads = draw(st.sampled_from([h for h in range(1, width + 1) if width % h == 0]))
        m = width // heads
        layer: dict[str, Any] = {
            "heads": [{key: spelled(matrix(m, m)) for key in ("WV", "WQ", "WK")} for _ in range(heads)]
        }
        maps: list[Any] = []
        for _ in range(draw(st.integers(0, 2))):
            one, width = one_map(width)
            maps.append(one)
        if bool(maps) or draw(st.booleans()):
            layer["mlp"] = maps[0] if len(maps) == 1 else maps
        layers.append(layer)
    window, sinks = draw(st.integers(1, 9)), draw(st.integers(0, 9))
    masks: list[Any] = ["none", "causal", {"window": window}, {"sinks": sinks, "window": window}]
    members: list[tuple[str, Any]] = [
        ("format", "attention-instance/1"),
        ("kernel", draw(st.sampled_from(["exp", "exp2"]))),
        ("mask", draw(st.sampled_from(masks))),
        ("X", spelled(X)),
        ("layers", layers),
    ]
    if draw(st.booleans()):
        members.append(("residual", draw(st.booleans())))
    return written(tuple(draw(st.permutations(members)))), [[value for _, value in row] for row in X]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_round_trip(drawn: tuple[str, list[list[Fraction]]]) -> None:
    document, X = drawn
    instance = parse_instance(document, "drawn")
    assert [list(row) for row in instance.X] == X
    again = parse_instance(instance.to_json(), "again")
    assert same(again, instance)
    assert again.to_json() == instance.to_json()
    assert instance.to_json().isprintable()


# --- what is refused -------------------------------------------------------------------------------------------------

HEAD: Place = ("layers", 0, "heads", 0)
MLP: Place = ("layers", 0, "mlp")

REFUSED: list[tuple[str, Place, str | None, str, str]] = [
    # document, place of the change, JSON text put there (None: deleted), place in the error, words in the error
    (EXAMPLE, (), "[]", "", "an array of 0 values; expected an object"),
    (EXAMPLE, (), "null", "", "null; expected an object"),
    (EXAMPLE, (), "{}", "", "the key format is missing"),
    (EXAMPLE, ("format",), None, "", "the key format is missing"),
    (EXAMPLE, ("format",), '"attention-instance/2"', "format", "'attention-instance/2'; expected \"attention"),
    (EXAMPLE, ("format",), "1", "format", 'the number 1; expected "attention-instance/1"'),
    (EXAMPLE, ("kernel",), None, "", "the key kernel is missing"),
    (EXAMPLE, ("kernel",), '"softmax"', "kernel", "the string 'softmax'; expected \"exp\" or \"exp2\""),
    (EXAMPLE, ("kernel",), '"exp2 "', "kernel", "expected \"exp\" or \"exp2\""),
    (EXAMPLE, ("kernel",), '["exp"]', "kernel", "an array of 1 value; expected"),
    (EXAMPLE, ("mask",), None, "", "the key mask is missing"),
    (EXAMPLE, ("mask",), "null", "mask", 'null; expected "none" or "causal" or an object with the key window'),
    (EXAMPLE, ("mask",), '"window"', "mask", "expected \"none\" or \"causal\""),
    (EXAMPLE, ("mask",), "{}", "mask", "the key window is missing"),
    (EXAMPLE, ("mask",), '{"sinks": 1}', "mask", "the key window is missing"),
    (EXAMPLE, ("mask", "window"), "0", "mask.window", "the number 0; expected an integer, at least 1"),
    (EXAMPLE, ("mask", "window"), "-1", "mask.window", "expected an integer, at least 1"),
    (EXAMPLE, ("mask", "window"), "3.0", "mask.window", "the number 3.0; expected an integer"),
    (EXAMPLE, ("mask", "window"), '"3"', "mask.window", "the string '3'; expected an integer"),
    (EXAMPLE, ("mask", "window"), "true", "mask.window", "true; expected an integer"),
    (EXAMPLE, ("mask", "window"), "1" * 4001, "mask.window", "4001 digits"),
    (EXAMPLE, ("mask", "sinks"), "-1", "mask.sinks", "expected an integer, at least 0"),
    (EXAMPLE, ("mask", "sinks"), "null", "mask.sinks", "null; expected an integer"),
    (EXAMPLE, ("mask", "sink"), "1", "mask", "unknown key 'sink'; known here: window, sinks"),
    (EXAMPLE, ("mask",), '{"window": 1, "window": 2}', "mask", "the key 'window' stands here twice; expected"),
    (EXAMPLE, ("X",), None, "", "the key X is missing"),
    (EXAMPLE, ("X",), "[]", "X", "0 rows; expected at least 1"),
    (EXAMPLE, ("X",), "[[]]", "X[0]", "0 numbers; expected at least 1"),
    (EXAMPLE, ("X",), "7", "X", "the number 7; expected an array of rows"),
    (EXAMPLE, ("X",), '"[[1]]"', "X", "the string '[[1]]'; expected an array of rows"),
    (EXAMPLE, ("X", 0), "7", "X[0]", "the number 7; expected an array of numbers"),
    (EXAMPLE, ("X", 1), "[1]", "X[1]", "1 number; expected 2"),
    (EXAMPLE, ("X", 1), "[1, 2, 3]", "X[1]", "3 numbers; expected 2"),
    (EXAMPLE, ("X", 1), '{"0": 1}', "X[1]", "an object; expected an array of numbers"),
    (EXAMPLE, ("X", 0, 1), "true", "X[0][1]", "true; expected a number"),
    (EXAMPLE, ("X", 0, 1), "false", "X[0][1]", "false; expected a number"),
    (EXAMPLE, ("X", 0, 1), "null", "X[0][1]", "null; expected a number"),
    (EXAMPLE, ("X", 0, 1), "[1]", "X[0][1]", "an array of 1 value; expected a number"),
    (EXAMPLE, ("X", 0, 1), "NaN", "X[0][1]", "the number NaN; expected a number: an integer"),
    (EXAMPLE, ("X", 0, 1), "Infinity", "X[0][1]", "the number Infinity; expected a number"),
    (EXAMPLE, ("X", 0, 1), "-Infinity", "X[0][1]", "the number -Infinity; expected a number"),
    (EXAMPLE, ("X", 0, 1), '"nan"', "X[0][1]", "the string 'nan'; expected a number"),
    (EXAMPLE, ("X", 0, 1), '"1/0"', "X[0][1]", "the string '1/0' has a zero denominator"),
    (EXAMPLE, ("X", 0, 1), '"0/000"', "X[0][1]", "zero denominator"),
    (EXAMPLE, ("X", 0, 1), '""', "X[0][1]", "the string ''; expected a number"),
    (EXAMPLE, ("X", 0, 1), '" 1"', "X[0][1]", "the string ' 1'; expected a number"),
    (EXAMPLE, ("X", 0, 1), '"1\\n"', "X[0][1]", "the string '1\\n'; expected a number"),
    (EXAMPLE, ("X", 0, 1), '"1/-2"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '"1/2/3"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '"0.5/2"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '"1_000"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '"0x10"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '".5"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '"5."', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '"1e"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '"--1"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '"1,5"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '"\\u0661"', "X[0][1]", "expected a number"),  # a digit, but not an ASCII one
    (EXAMPLE, ("X", 0, 1), '"\\ud800"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), '"__import__(\'os\')"', "X[0][1]", "expected a number"),
    (EXAMPLE, ("X", 0, 1), "1e999999999", "X[0][1]", "too large an exponent; expected at most 4000"),
    (EXAMPLE, ("X", 0, 1), '"1e-999999999"', "X[0][1]", "too large an exponent"),
    (EXAMPLE, ("X", 0, 1), '"1e' + "9" * 5000 + '"', "X[0][1]", "too large an exponent"),
    (EXAMPLE, ("X", 0, 1), "1e4001", "X[0][1]", "too large an exponent"),
    (EXAMPLE, ("X", 0, 1), "1e4000", "X[0][1]", "the number 1e4000 is too long when written as a fraction"),
    (EXAMPLE, ("X", 0, 1), '"1e-4000"', "X[0][1]", "as a fraction; expected at most 4000 digits"),
    (EXAMPLE, ("X", 0, 1), "1" * 4001, "X[0][1]", "4001 digits; expected at most 4000 digits"),
    (EXAMPLE, ("X", 0, 1), "1" * 100_000, "X[0][1]", "100000 digits"),
    (EXAMPLE, ("X", 0, 1), "1." + "1" * 4000, "X[0][1]", "4001 digits"),
    (EXAMPLE, ("X", 0, 1), '"1/' + "3" * 4001 + '"', "X[0][1]", "4001 digits"),
    (EXAMPLE, ("layers",), None, "", "the key layers is missing"),
    (EXAMPLE, ("layers",), "[]", "layers", "0 layers; expected between 1 and 4096"),
    (EXAMPLE, ("layers",), "{}", "layers", "an object; expected an array of layers"),
    (EXAMPLE, ("layers", 0), "[]", "layers[0]", "an array of 0 values; expected an object"),
    (EXAMPLE, ("layers", 0, "residual"), "true", "layers[0]", "unknown key 'residual'; known here: heads, mlp"),
    (EXAMPLE, ("layers", 0, "heads"), None, "layers[0]", "the key heads is missing"),
    (EXAMPLE, ("layers", 0, "heads"), "[]", "layers[0].heads", "0 heads; expected at least 1"),
    (EXAMPLE, ("layers", 0, "heads"), "[{}, {}, {}]", "layers[0].heads", "3 heads cannot share 2 columns equally"),
    (EXAMPLE, HEAD, "1", "layers[0].heads[0]", "the number 1; expected an object"),
    (EXAMPLE, (*HEAD, "WQ"), None, "layers[0].heads[0]", "the key WQ is missing"),
    (EXAMPLE, (*HEAD, "WO"), "[[1]]", "layers[0].heads[0]", "unknown key 'WO'; known here: WQ, WK, WV"),
    (EXAMPLE, (*HEAD, "WK"), "[[1, 0]]", "layers[0].heads[0].WK", "1 row; expected 2"),
    (EXAMPLE, (*HEAD, "WV"), "[[1, 0], [0, 1], [0, 0]]", "layers[0].heads[0].WV", "3 rows; expected 2"),
    (EXAMPLE, (*HEAD, "WQ", 1), "[1, 2, 3]", "layers[0].heads[0].WQ[1]", "3 numbers; expected 2"),
    (EXAMPLE, (*HEAD, "WQ", 1, 0), '"x"', "layers[0].heads[0].WQ[1][0]", "the string 'x'; expected a number"),
    (EXAMPLE, (*HEAD, "WQ"), "[]", "layers[0].heads[0].WQ", "0 rows; expected 2"),
    (EXAMPLE, MLP, "null", "layers[0].mlp", 'null; expected "identity" or an object'),
    (EXAMPLE, MLP, '"relu"', "layers[0].mlp", "the string 'relu'; expected \"identity\" or"),
    (EXAMPLE, MLP, "{}", "layers[0].mlp", "0 keys; expected exactly one of round_bits, affine"),
    (EXAMPLE, MLP, '{"round_bits": 1, "affine": {}}', "layers[0].mlp", "2 keys; expected exactly one"),
    (EXAMPLE, MLP, '{"relu": 1}', "layers[0].mlp", "unknown key 'relu'; known here: round_bits, affine"),
    (EXAMPLE, MLP, '["identity", "relu"]', "layers[0].mlp[1]", "the string 'relu'; expected \"identity\" or"),
    (EXAMPLE, MLP, '[["identity"]]', "layers[0].mlp[0]", "an array of 1 value; expected"),
    (EXAMPLE, MLP, '{"round_bits": 4097}', "layers[0].mlp.round_bits", "expected an integer, between -4096 and 4096"),
    (EXAMPLE, MLP, '{"round_bits": -4097}', "layers[0].mlp.round_bits", "the number -4097; expected an integer"),
    (EXAMPLE, MLP, '{"round_bits": 1e1}', "layers[0].mlp.round_bits", "the number 1e1; expected an integer"),
    (EXAMPLE, MLP, '{"round_bits": "1"}', "layers[0].mlp.round_bits", "the string '1'; expected an integer"),
    (EXAMPLE, MLP, '[{"round_bits": NaN}]', "layers[0].mlp[0].round_bits", "the number NaN; expected an integer"),
    (EXAMPLE, MLP, '{"affine": [[1]]}', "layers[0].mlp.affine", "expected an object"),
    (EXAMPLE, MLP, '{"affine": {"W": [[1], [1]]}}', "layers[0].mlp.affine", "the key b is missing"),
    (EXAMPLE, MLP, '{"affine": {"W": [[1]], "b": [0]}}', "layers[0].mlp.affine.W", "1 row; expected 2"),
    (EXAMPLE, MLP, '{"affine": {"W": [[1, 2], [1]], "b": [0, 0]}}', "layers[0].mlp.affine.W[1]", "1 number; expected"),
    (EXAMPLE, MLP, '{"affine": {"W": [[], []], "b": []}}', "layers[0].mlp.affine.W[0]", "0 numbers; expected at"),
    (EXAMPLE, MLP, '{"affine": {"W": [[1], [1]], "b": [0, 0]}}', "layers[0].mlp.affine.b", "2 numbers; expected 1"),
    (EXAMPLE, MLP, '{"affine": {"W": [[1], [1]], "b": 0}}', "layers[0].mlp.affine.b", "expected an array of numbers"),
    (EXAMPLE, ("residual",), "0", "residual", "the number 0; expected true or false"),
    (EXAMPLE, ("residual",), '"true"', "residual", "the string 'true'; expected true or false"),
    (EXAMPLE, ("residual",), "null", "residual", "null; expected true or false"),
    (EXAMPLE, ("x",), "1", "", "unknown key 'x'; known here: format, kernel, mask, X, layers, residual"),
    (EXAMPLE, ("",), "1", "", "unknown key ''; known here: format"),
    (EXAMPLE, ("a\nb\x1b[31m\u2028" + "c" * 500,), "1", "", "unknown key 'a\\nb\\x1b[31m\\u2028ccc"),
    (EXAMPLE, ("kernel",), '"\\u0000\\u001b\\r\\n"', "kernel", "the string '\\x00\\x1b\\r\\n'; expected"),
    (EXAMPLE, ("kernel",), '"' + "\\u0001" * 200 + '"', "kernel", "the string '\\x01\\x01"),
    (WIDE, ("X", 2), "[1, 2, 3, 4, 5]", "X[2]", "5 numbers; expected 4"),
    (WIDE, ("layers", 0, "heads", 1, "WQ", 1), "[1, 2, 3]", "layers[0].heads[1].WQ[1]", "3 numbers; expected 2"),
    (WIDE, ("layers", 0, "mlp", 0, "affine", "b", 2), '"1/0"', "layers[0].mlp[0].affine.b[2]", "zero denominator"),
    (WIDE, ("layers", 1, "heads", 2), None, "layers[1].heads", "2 heads cannot share 3 columns equally"),
    (WIDE, ("layers", 1, "heads", 2, "WV"), "[[1, 2], [3, 4]]", "layers[1].heads[2].WV", "2 rows; expected 1"),
    (WIDE, ("layers", 0, "mlp", 1), AFFINE, "layers[0].mlp[1].affine.W", "2 rows; expected 3"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "change", "new", "place", "words"), REFUSED)
def test_refused(document: str, change: Place, new: str | None, place: str, words: str) -> None:
    line = refusal(changed(document, change, new))
    assert line.startswith(f"instance.json: {place}: " if place else "instance.json: ")
    assert words in line.removeprefix("instance.json: ").removeprefix(f"{place}: ")


@pytest.mark.parametrize("document", [EXAMPLE, WIDE])
def test_the_documents_that_were_changed_are_themselves_right(document: str) -> None:
    assert isinstance(parse_instance(changed(document, ("residual",), "true"), "right"), Instance)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the file is empty"),
        (" \n\t ", "the file is empty"),
        ("\ufeff" + EXAMPLE, "byte order mark; expected plain UTF-8"),
        ('{"format": 1,\n "kernel" "exp2"}', "line 2, column 11: not valid JSON: Expecting ':' delimiter"),
        (EXAMPLE + "x", "line 8, column 1: not valid JSON: Extra data"),
        (EXAMPLE[:100], "column"),
        ("{'format': 1}", "line 1, column 2: not valid JSON"),
        ('{"a": 01}', "line 1, column 8: not valid JSON"),
        ('{"a": "\n"}', "line 1, column 8: not valid JSON: Invalid control character"),
        ('{"a": "\\q"}', "line 1, column 8: not valid JSON"),
        ('{"a": 1,}', "not valid JSON"),
        ("+1", "line 1, column 1: not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"X":' * 100_000, "nested too deeply"),
        (TINY % ("[" * 100_000 + "]" * 100_000), "nested too deeply"),
        (EXAMPLE.replace('"mask"', '"kernel": "exp", "mask"'), "the key 'kernel' stands here twice"),
    ],
)  # fmt: skip
def test_text_that_is_no_document(text: str, line: str) -> None:
    assert line in refusal(text)


def test_the_format_is_judged_before_the_keys() -> None:
    later = changed(changed(EXAMPLE, ("format",), '"attention-instance/2"'), ("novelty",), "1")
    assert "attention-instance/2" in refusal(later)


def test_the_name_of_the_file_cannot_break_the_line() -> None:
    assert refusal("{", "a\nb\x1b").startswith("'a\\nb\\x1b': line 1")
    assert refusal("[]", "") == "an array of 0 values; expected an object"
    assert refusal(changed(EXAMPLE, ("X", 0, 0), "true"), "").startswith("X[0][0]: true")


# --- limits ----------------------------------------------------------------------------------------------------------


def test_no_string_takes_long_to_refuse() -> None:
    began = time.monotonic()
    for text in ("1" * 3_000_000 + "x", "0" * 3_000_000 + "/", "1e" + "0" * 3_000_000 + "x", "1." + "0" * 3_000_000):
        assert "X[0][0]" in refusal(TINY % f'"{text}"')
    assert time.monotonic() - began < 5


def test_the_exponents_of_a_file_are_limited_together() -> None:
    long = ", ".join(f"{i % 9 + 1}e-3998" for i in range(17_000))
    line = refusal(changed(EXAMPLE, ("X",), f"[[{long}]]"))
    assert "X[0][16785]: the exponents of all numbers add up to more than 67108864; expected at most" in line


def test_the_entries_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, columns = 4200, 4000
    wide = changed(TINY % "1", ("X",), str([[1]] * tokens))
    affine = f'{{"affine": {{"W": [{[1] * columns}], "b": {[0] * columns}}}}}'
    line = refusal(changed(wide, ("layers", 0, "mlp"), affine))
    place = "layers[0].mlp.affine.W"
    assert f"{place}: 4200 tokens of 4000 columns make 16800000 entries; expected at most 16777216" in line
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    assert "instance.json: X: 2 tokens of 2 columns make 4 entries; expected at most 3" in refusal(EXAMPLE)


def test_the_maps_are_limited() -> None:
    width = 1000
    head = '{"WQ": [[1]], "WK": [[1]], "WV": [[1]]}'
    layer = f'{{"heads": [{", ".join([head] * width)}], "mlp": [{", ".join(["{}"] * 17_000)}]}}'
    maps = layer.replace("{}", '{"round_bits": 0}')
    line = refusal(changed(changed(EXAMPLE, ("X",), f"[{[0] * width}]"), ("layers",), f"[{maps}]"))
    assert "layers[0].mlp[16777]: the widths of all maps add up to more than 16777216" in line


def test_the_layers_are_limited() -> None:
    layers = json.dumps(json.loads(TINY % "1")["layers"] * 4097)
    assert "layers: 4097 layers; expected between 1 and 4096" in refusal(changed(TINY % "1", ("layers",), layers))


# --- files -----------------------------------------------------------------------------------------------------------


def unreadable(path: Path) -> str:
    """The line with which the file is refused."""
    with pytest.raises(RequestError) as caught:
        read_instance(path)
    line = str(caught.value)
    assert line.isprintable()
    assert line.startswith(str(path)) or not str(path).isprintable()
    return line


def test_read_instance(tmp_path: Path) -> None:
    path = tmp_path / "instance.json"
    path.write_text(EXAMPLE)
    assert same(read_instance(path), parse_instance(EXAMPLE, "text"))
    path.write_text(changed(EXAMPLE, ("X", 1), "[1]"))
    assert unreadable(path) == f"{path}: X[1]: 1 number; expected 2"


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cannot be read: No such file or directory; expected a JSON file" in unreadable(tmp_path / "missing.json")
    assert "cannot be read: Is a directory" in unreadable(tmp_path)
    assert "cannot be read: File name too long" in unreadable(tmp_path / ("a" * 300))
    assert "null" in unreadable(Path("a\0b"))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "cannot be read: " in unreadable(tmp_path / "loop")
    path = tmp_path / "closed.json"
    path.write_text(EXAMPLE)

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    assert "closed.json: cannot be read: Permission denied" in unreadable(path)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a": "\xff"}', "byte 0xff at offset 7 is not UTF-8; expected a JSON file in UTF-8"),
        (EXAMPLE.encode("utf-16"), "byte 0xff at offset 0 is not UTF-8"),
        (b"\xed\xa0\x80", "byte 0xed at offset 0 is not UTF-8"),
        (b"\0", "line 1, column 1: not valid JSON"),
    ],
)
def test_files_with_other_content(tmp_path: Path, content: bytes, line: str) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    assert line in unreadable(path)


def test_large_files(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.touch()
    os.truncate(path, 64 * 2**20 + 1)
    assert "the file is larger than 64 MiB; expected at most 67108864 bytes" in unreadable(path)
    os.truncate(path, 64 * 2**20)
    assert "not valid JSON" in unreadable(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs an endless file")
def test_endless_files() -> None:
    assert "larger than 64 MiB" in unreadable(Path("/dev/zero"))


# --- fuzz ------------------------------------------------------------------------------------------------------------

JUNK = [
    *map(Raw, ["null", "true", "false", "0", "-1", "1.5", "1e5", "1e4001", "1e99999999", "-0.0", "NaN", "-Infinity"]),
    *map(Raw, ['""', '"1/0"', '"1/2"', '"none"', '"causal"', '"identity"', '"exp"', '"\\n"', '"\\ud800"', '"\u2028"']),
    *map(
        Raw,
        ["[]", "{}", "[[]]", "[[[1]]]", '{"a": 1}', '{"": {}}', "[0, 0]", '[{"round_bits": 0}]', "1" * 5000, "]", ""],
    ),
    *map(Raw, ['{"window": 1}', '{"affine": {"W": [[1], [1]], "b": [0]}}', "[" * 3000, "[" * 300 + "]" * 300]),
]


def members_as_tuples(value: Any) -> Any:
    """The document with objects as lists of [key, value] in a tuple, so that a key may stand twice."""
    if isinstance(value, dict):
        return ("object", [[key, members_as_tuples(member)] for key, member in value.items()])
    return [members_as_tuples(item) for item in value] if isinstance(value, list) else Raw(json.dumps(value))


def slots(value: Any) -> list[tuple[list[Any], int]]:
    """Every place in the document where a value stands, as a list and an index (a member stands at 1 of its pair)."""
    inner = value[1] if isinstance(value, tuple) else value if isinstance(value, list) else []
    found = [(pair, 1) for pair in inner] if isinstance(value, tuple) else [(inner, i) for i in range(len(inner))]
    return found + [slot for holder, i in found for slot in slots(holder[i])]


def containers(value: Any) -> list[list[Any]]:
    """Every list of items or members in the document."""
    inner = value[1] if isinstance(value, tuple) else value if isinstance(value, list) else None
    if inner is None:
        return []
    items = [pair[1] for pair in inner] if isinstance(value, tuple) else inner
    return [inner] + [container for item in items for container in containers(item)]


def as_text(value: Any) -> str:
    """The JSON text of a document in which objects are tuples."""
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{json.dumps(key)}: {as_text(member)}" for key, member in value[1]) + "}"
    return "[" + ", ".join(map(as_text, value)) + "]" if isinstance(value, list) else str(value)


def copied(value: Any) -> Any:
    """A copy of a part of the document."""
    if isinstance(value, tuple):
        return (value[0], [[key, copied(member)] for key, member in value[1]])
    return [copied(item) for item in value] if isinstance(value, list) else value


TREES = [members_as_tuples(json.loads(document)) for document in (EXAMPLE, WIDE)]


@settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(TREES), st.lists(st.tuples(st.integers(0, 5), *[st.integers(0, 2**16)] * 2), max_size=4))
def test_a_changed_document_is_read_or_refused(tree: Any, changes: list[tuple[int, int, int]]) -> None:
    document = [copied(tree)]
    for change, where, what in changes:
        places = [(document, 0), *slots(document[0])] if change in (0, 3, 4) else [(document, 0)]
        holder, i = places[where % len(places)]
        lists = [found for found in containers(document[0]) if found] if change in (1, 2, 5) else []
        container = lists[where % len(lists)] if lists else document
        j = what % len(container)
        match change:
            case 0:
                holder[i] = JUNK[what % len(JUNK)]
            case 1 if container is not document:
                del container[j]
            case 2 if container is not document:
                container.append(copied(container[j]))
            case 3:
                other, k = places[what % len(places)]
                holder[i] = copied(other[k])
            case 4:
                for _ in range(1 + what % 20):
                    holder[i] = [holder[i]] if what % 2 else ("object", [["X", holder[i]]])
            case 5 if isinstance(container[j], list) and len(container[j]) == 2 and isinstance(container[j][0], str):
                container[j][0] = ["mask", "W", "\n", "residual", "b" * 200][what % 5]
    text = as_text(document[0])
    try:
        instance = parse_instance(text, "changed")
    except RequestError as error:
        assert str(error).isprintable()
        assert str(error).startswith("changed: ")
    else:
        assert same(parse_instance(instance.to_json(), "again"), instance)


@settings(max_examples=500, deadline=None)
@given(st.integers(0, len(WIDE) - 1), st.integers(0, 40), st.text(max_size=5))
def test_a_changed_text_is_read_or_refused(at: int, removed: int, inserted: str) -> None:
    text = WIDE[:at] + inserted + WIDE[at + removed :]
    assume(text != WIDE)
    try:
        parse_instance(text, "changed")
    except RequestError as error:
        assert str(error).isprintable()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=50) | st.text(max_size=50).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(content)
    assert unreadable(path)
