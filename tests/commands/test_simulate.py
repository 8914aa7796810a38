"""`verify simulate`: the documents it writes, against an independent evaluation; and what it answers to wrong requests."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofs.registry import REGISTRY
from tests.commands.documents import DIGITS, MASKS, PYTHON, Answer, Document, command, documents, meaning, single
from verify.claims.simulation import Request, held, simulate
from verify.errors import RequestError
from verify.oracle.machine import RULES
from verify.transformer.instance import parse_instance

CONSTRUCTIONS = tuple(REGISTRY.constructions)
LEGAL = tuple(name for name in CONSTRUCTIONS if name not in ("printed", "residual"))
SMALLEST = re.compile(r"oracle length (\d+) is too small .*; the smallest that would do is (\d+)")

KEYS = [
    "format",
    "construction",
    "model",
    "arithmetic",
    "output",
    "direct",
    "equal",
    "relative_error",
    "absolute_error",
    "oracle",
    "predicted",
    "broken_rules",
]
SHAPE_KEYS = {"length", "layers", "heads"}
COST_KEYS = {"longest_input", "embedding", "calls", "rounds", "parameters", "mlp_operations"}
OPERATIONS = {"multiplication", "division", "log", "exp", "rounding"}


# --- the format ----------------------------------------------------------------------------------------------------------


def in_lowest_terms(text: Any) -> Fraction:
    """The value of an exact entry, once it is known to be written as the format says."""
    assert isinstance(text, str)
    written = re.fullmatch(r"(-?\d+)(?:/(\d+))?", text)
    assert written, text
    value = Fraction(text)
    assert text == (str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}")
    return value


def interval(entry: Any) -> tuple[Fraction, Fraction]:
    """Midpoint and radius of a printed ball; the radius is a power of ten, or 0."""
    assert isinstance(entry, dict) and list(entry) == ["ball", "radius"]
    assert re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", entry["ball"]), entry
    assert re.fullmatch(r"0|1e-?\d+", entry["radius"]), entry
    return Fraction(entry["ball"]), Fraction(entry["radius"])


def check_format(result: Document, request: Request, construction: str) -> None:
    """Keys, types and what they say of each other (`simulation-result/1`)."""
    assert [key for key in result if key != "why"] == KEYS
    assert json.loads(json.dumps(result)) == result
    assert result["format"] == "simulation-result/1"
    assert result["construction"] == construction and result["arithmetic"] == request.arithmetic
    assert result["model"] == ("residual" if construction == "residual" else "paper")
    oracle = result["oracle"]
    assert (oracle["length"], oracle["layers"], oracle["heads"]) == (
        request.oracle_length,
        request.oracle_layers,
        request.oracle_heads,
    )
    for broken in result["broken_rules"]:
        assert set(broken) == {"rule", "limit", "needed", "claim", "why"}
        assert broken["rule"] in RULES and broken["claim"] in REGISTRY.claims and broken["why"]
        assert type(broken["limit"]) is int and type(broken["needed"]) is int
    if result["predicted"] is None:
        assert result["output"] is None and result["direct"] is None and result["equal"] is False
        assert set(oracle) == SHAPE_KEYS and result["broken_rules"]
        return
    assert set(oracle) == SHAPE_KEYS | COST_KEYS
    assert all(type(oracle[key]) is int and oracle[key] >= 0 for key in COST_KEYS - {"mlp_operations"})
    assert set(oracle["mlp_operations"]) <= OPERATIONS
    assert oracle["mlp_operations"] == sorted(oracle["mlp_operations"])
    assert set(result["predicted"]) == {"calls", "rounds"}
    assert (oracle["calls"], oracle["rounds"]) == (result["predicted"]["calls"], result["predicted"]["rounds"])
    if oracle["longest_input"] > oracle["length"]:
        assert {"rule": "input length", "limit": oracle["length"], "needed": oracle["longest_input"]}.items() <= next(
            b for b in result["broken_rules"] if b["rule"] == "input length"
        ).items()
    assert result["equal"] in (True, False, "undecided")
    if result["equal"] is True and result["arithmetic"] == "exact":
        assert (result["relative_error"], result["absolute_error"]) == ("0", "0")


def run(document: Document, M: int, construction: str = "repaired", **options: Any) -> Document:
    """The result of a simulation in this process, checked for its format; RequestError passes."""
    request = Request(parse_instance(json.dumps(document), "instance"), M, **options)
    result = simulate(request, REGISTRY.constructions[construction])
    check_format(result, request, construction)
    assert held(result) == (result["equal"] is True and not result["broken_rules"])
    return result


def available(construction: str, mask: Any, oracle_layers: int = 1) -> bool:
    """Whether a construction of this name is for this mask (windows have their own variants) and this many layers."""
    if construction in ("per-query", "discounted") and oracle_layers > 1:
        return False
    if construction in ("repaired", "residual", "printed"):
        return True
    if construction == "pairwise":
        return bool(mask == "none")
    return (construction in ("token-wise", "blocks", "discounted", "prefix-difference")) == isinstance(mask, dict)


oracles = st.sampled_from([(1, 1), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1)])


def run_or_grow(document: Document, M: int, construction: str, **options: Any) -> tuple[Document, int]:
    """The result at M, or at the smallest M that the refusal names; asserts that one less is refused in the same way."""
    try:
        return run(document, M, construction, **options), M
    except RequestError as error:
        refusal = SMALLEST.search(str(error))
        assert refusal, str(error)
        smallest = int(refusal.group(2))
        assert int(refusal.group(1)) == M < smallest
        with pytest.raises(RequestError, match=f"the smallest that would do is {smallest}$"):
            run(document, smallest - 1, construction, **options)
        return run(document, smallest, construction, **options), smallest


def check_exact(document: Document, M: int, construction: str, **options: Any) -> None:
    """One legal construction (or the residual one) on one exp2 instance against fractions."""
    result, _ = run_or_grow(document, M, construction, **options)
    expected = meaning(document)
    assert [[in_lowest_terms(x) for x in row] for row in result["output"]] == expected
    assert result["direct"] == result["output"]
    assert result["equal"] is True and result["broken_rules"] == [] and held(result)
    assert result["oracle"]["longest_input"] <= result["oracle"]["length"]


examples = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], print_blob=True)


def legal(mask: Any, oracle_layers: int) -> st.SearchStrategy[str]:
    """The constructions for this mask and this many layers, without the printed one."""
    return st.sampled_from([c for c in CONSTRUCTIONS if c != "printed" and available(c, mask, oracle_layers)])


@settings(examples, max_examples=140)
@given(documents("exp2"), st.integers(2, 9), oracles, st.sampled_from(["calls", "rounds"]), st.data())
def test_exp2_without_a_mask(
    document: Document, M: int, oracle: tuple[int, int], minimise: str, data: st.DataObject
) -> None:
    construction = data.draw(legal("none", oracle[0]))
    check_exact(document, M, construction, oracle_layers=oracle[0], oracle_heads=oracle[1], minimise=minimise)


@settings(examples, max_examples=120)
@given(documents("exp2", MASKS[1:]), st.integers(2, 9), oracles, st.data())
def test_exp2_with_masks(document: Document, M: int, oracle: tuple[int, int], data: st.DataObject) -> None:
    construction = data.draw(legal(document["mask"], oracle[0]))
    check_exact(document, M, construction, oracle_layers=oracle[0], oracle_heads=oracle[1])


@pytest.mark.parametrize("construction", ["discounted", "prefix-difference"])
def test_a_call_made_longer_to_fit_its_neighbour_divides_by_nothing(construction: str) -> None:
    """Two calls of different lengths packed into one: the filler rows must not subtract a key too many."""
    document = single("exp2", [[0]] * 6, 0, 0, "1/3", mask={"window": 1}, mlp={"round_bits": 0})
    check_exact(document, 6, construction, oracle_heads=2)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("layers", [1, 2])
def test_a_construction_that_does_not_serve_the_request_says_so(mask: Any, layers: int) -> None:
    document = single("exp2", [[1], [0], [2]], mask=mask)
    for construction in CONSTRUCTIONS:
        if not available(construction, mask, layers):
            with pytest.raises(RequestError, match=r"does not serve this mask; one of|oracles of one layer"):
                run(document, 60, construction, oracle_layers=layers)


@settings(examples, max_examples=60)
@given(documents("exp", MASKS), st.integers(2, 9), oracles, st.data())
def test_exp(document: Document, M: int, oracle: tuple[int, int], data: st.DataObject) -> None:
    construction = data.draw(legal(document["mask"], oracle[0]))
    arithmetic = data.draw(st.sampled_from(["exact", "exact", "ball"]))
    result, _ = run_or_grow(
        document, M, construction, oracle_layers=oracle[0], oracle_heads=oracle[1], arithmetic=arithmetic
    )
    if arithmetic == "exact":
        assert result["equal"] is True and held(result)
    elif result["output"] is None:
        assert result["equal"] == "undecided" and result["why"] and not held(result)
        return  # a tie that balls cannot decide
    else:
        assert result["equal"] in (True, "undecided")
    with mpmath.workdps(DIGITS):
        expected = meaning(document)
        for side in ("output", "direct"):
            for row, wanted in zip(result[side], expected, strict=True):
                for entry, value in zip(row, wanted, strict=True):
                    middle, radius = interval(entry)
                    assert radius <= Fraction(10) ** -25 * (1 + abs(middle))
                    distance = abs(mpmath.mpf(middle.numerator) / middle.denominator - _real(value))
                    assert distance <= mpmath.mpf(radius.numerator) / radius.denominator + mpmath.mpf(10) ** -100


def _real(value: Any) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value


@settings(examples, max_examples=60)
@given(documents("exp2"), st.integers(1, 4), st.integers(1, 3), st.integers(1, 2))
def test_printed(document: Document, M: int, heads: int, layers: int) -> None:
    """Without a mask the printed text is right where it runs at all, and says which rules it broke."""
    result = run(document, M, "printed", oracle_heads=heads, oracle_layers=layers)
    assert not held(result)
    rules = {broken["rule"] for broken in result["broken_rules"]}
    if layers > 1:
        assert rules == {"pass-through"} and result["output"] is None
    elif len(document["X"]) % M:
        assert rules == {"divisibility"} and result["output"] is None
    else:
        assert rules >= {"input length", "outside arithmetic"}
        assert result["equal"] is True
        assert [[in_lowest_terms(x) for x in row] for row in result["output"]] == meaning(document)
        assert result["oracle"]["longest_input"] == M + 1


@settings(examples, max_examples=60)
@given(documents("exp2", MASKS[1:]), st.integers(1, 4), st.integers(1, 2))
def test_printed_with_masks(document: Document, M: int, heads: int) -> None:
    """The printed text is never legal under a mask; where it runs, `equal` says whether its output is that of the definitions."""
    try:
        result = run(document, M, "printed", oracle_heads=heads)
    except RequestError as error:  # windows need M > r
        assert SMALLEST.search(str(error)) or "inside an oracle call" in str(error), str(error)
        return
    assert not held(result) and result["broken_rules"]
    if result["output"] is not None:
        expected = meaning(document)
        assert [[in_lowest_terms(x) for x in row] for row in result["direct"]] == expected
        output = [[in_lowest_terms(x) for x in row] for row in result["output"]]
        assert result["equal"] is (output == expected)
        if not result["equal"]:
            errors = [
                (sum((a - b) ** 2 for a, b in zip(*rows, strict=True)), sum(b**2 for b in rows[1]))
                for rows in zip(output, expected, strict=True)
            ]
            assert Fraction(result["absolute_error"]) ** 2 >= max(error for error, _ in errors)
            if any(error and not size for error, size in errors):
                assert result["relative_error"] == "inf"
            else:
                worst = max((error / size for error, size in errors if error), default=Fraction(0))
                assert worst <= Fraction(result["relative_error"]) ** 2 <= worst * Fraction(10001, 10000)


def test_both_sides_of_a_too_small_length_on_a_grid() -> None:
    """For every N, width, number of layers and oracle: whatever M is refused, the M that is named works and one less does not."""
    refused = 0
    for mask in ("none", "causal", {"window": 2, "sinks": 1}):
        for N in (1, 2, 5):
            for H, m in ((1, 1), (1, 2), (2, 1)):
                identity = [[int(i == j) for j in range(m)] for i in range(m)]
                layer = {"heads": [{"WQ": identity, "WK": identity, "WV": identity}] * H, "mlp": {"round_bits": 0}}
                X = [[(i * 5 + c) % 3 - 1 for c in range(H * m)] for i in range(N)]
                for L in (1, 2):
                    document = single("exp2", X, mask=mask) | {"layers": [layer] * L}
                    for oracle in ((1, 1), (2, 2)):
                        for construction in ("repaired", "residual", "tree", "per-query", "blocks"):
                            if available(construction, mask, oracle[0]):
                                options = {"oracle_layers": oracle[0], "oracle_heads": oracle[1]}
                                refused += run_or_grow(document, 1, construction, **options)[1] > 1
    assert refused > 80


def test_counted_calls_follow_the_request() -> None:
    """Fewer calls or fewer rounds, as asked; more heads or a longer oracle never cost more calls."""
    document = single("exp2", [[i % 3] for i in range(40)])
    by = {name: run(document, 8, minimise=name)["oracle"] for name in ("calls", "rounds")}
    assert by["calls"]["calls"] < by["rounds"]["calls"] and by["calls"]["rounds"] > by["rounds"]["rounds"]
    calls = [run(document, 8, oracle_heads=heads)["oracle"]["calls"] for heads in (1, 2, 4, 100)]
    assert calls == sorted(calls, reverse=True) and calls[0] > calls[1]
    lengths = [run(document, M)["oracle"]["calls"] for M in (4, 8, 16, 40, 41, 10**30)]
    assert lengths == sorted(lengths, reverse=True) and lengths[-1] == 1


# --- scores --------------------------------------------------------------------------------------------------------------


def refused(document: Document, M: int, construction: str = "repaired", **options: Any) -> str:
    """The message of the RequestError."""
    with pytest.raises(RequestError) as error:
        run(document, M, construction, **options)
    return str(error.value)


@pytest.mark.parametrize("construction", [name for name in CONSTRUCTIONS if available(name, "none")])
def test_a_score_that_is_no_integer_is_named_by_its_place_in_the_instance(construction: str) -> None:
    """Row 5 and column 4, far beyond the rows of any call; the printed construction needs M to divide N."""
    X = [[0], [2], [0], [2], ["1/3"], [1], [0], [0]]
    message = refused(single("exp2", X), 4, construction)
    assert message.startswith("row 1, column 4: score 2/3 is not an integer")
    X = [[0], [0], [0], [0], [2], [0], [0], ["1/5"]]
    assert refused(single("exp2", X), 4, construction).startswith("row 4, column 7: score 2/5 is not an integer")


def test_the_place_of_a_score_names_layer_and_head_where_there_are_several() -> None:
    one = [[1]]
    head = {"WQ": one, "WK": one, "WV": one}
    bad = {"WQ": [["1/2"]], "WK": one, "WV": one}
    document = single("exp2", [[1, 1], [3, 3]]) | {"layers": [{"heads": [head, head]}, {"heads": [head, bad]}]}
    document["layers"][0]["mlp"] = {"round_bits": 0}
    assert refused(document, 8).startswith("layer 1, head 1, row 0, column 0: score 9/2 is not an integer")
    masked = single("exp2", [["1/3"], [0], [3], ["1/2"]], mask={"window": 1})
    assert refused(masked, 8).startswith("row 0, column 0: score 1/9 is not an integer")
    masked["X"][0] = [0]
    assert refused(masked, 8).startswith("row 3, column 3: score 1/4 is not an integer")


@pytest.mark.parametrize("construction", [name for name in CONSTRUCTIONS if available(name, "none")])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_scores_of_exact_exp2(construction: str, sign: int) -> None:
    """All scores 2^20 in size: sums of equal weights are powers of two, and so larger scores inside the constructions."""
    limit = 2**20
    document = single("exp2", [[1]] * 8, WK=sign * limit)
    assert run(document, 4, construction)["output"] == [["1"]] * 8
    message = refused(single("exp2", [[0], [1], [1], [1]], WK=sign * (limit + 1)), 4, construction)
    assert message.startswith(f"row 1, column 1: score {sign * (limit + 1)} is too large")
    assert str(limit) in message


@pytest.mark.parametrize("construction", ["tree", "pairwise", "per-query", "residual", "printed"])
def test_numbers_beyond_pythons_limit_on_digits_are_written_in_full(construction: str) -> None:
    """Scores of about 60000: numerators of some 18000 digits."""
    document = single("exp2", [[1], [240], [0], [2], [1], [250]])
    result = run(document, 3, construction)
    assert result["equal"] is True
    assert max(len(x) for row in result["output"] for x in row) > 2 * 4300
    for row, wanted in zip(result["output"], meaning(document), strict=True):
        for text, value in zip(row, wanted, strict=True):
            above, _, below = text.partition("/")
            assert _integer(above) == value.numerator and _integer(below or "1") == value.denominator


def _integer(digits: str) -> int:
    """An integer from more digits than Python reads at once."""
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    total = 0
    for at in range(0, len(digits), 4000):
        part = digits[at : at + 4000]
        total = total * 10 ** len(part) + int(part)
    return sign * total


def test_long_denominators_in_exact_exp() -> None:
    """Scores with denominators of 8000 digits, and a second layer whose scores have others."""
    q = 10**3998 + 7
    mlp = [{"round_bits": 3}, {"affine": {"W": [["1/7"]], "b": [0]}}]
    document = single("exp", [[f"1/{q}"], [f"3/{q}"], [1]], layers=2, mlp=mlp)
    assert run(document, 2)["equal"] is True
    message = refused(single("exp2", [[f"1/{q}"], [1]]), 2)
    assert message.startswith("row 0, column 0: score 1/1") and len(message) < 300


def test_huge_scores() -> None:
    """Exact exp takes them (and decides their order); balls say which row is too much; exp2 says how large it may be."""
    document = single("exp", [["1e3000"], [3], [1], [2]])
    assert run(document, 3)["equal"] is True
    message = refused(document, 3, arithmetic="ball")
    assert re.match(r"row 0: score \[1\.0+e\+6000 .*\] is too large; ball arithmetic", message)
    assert "is too large" in refused(document | {"kernel": "exp2"}, 3)
    for X in ([["1e9"], [3], [1], [2]], [[-1000], [1000], [999], [0]]):
        for arithmetic in ("exact", "ball"):
            result = run(single("exp", X), 3, arithmetic=arithmetic)
            assert result["equal"] is True
            middle, radius = interval(result["output"][0][0])
            assert abs(middle - Fraction(X[0][0])) <= radius + Fraction(1, 10**20)


def test_an_entry_that_is_known_exactly_has_radius_zero() -> None:
    assert interval(run(single("exp", [["1/4"]]), 2)["output"][0][0]) == (Fraction(1, 4), 0)
    assert run(single("exp", [[1], [-1]] * 2, WQ=0), 3)["output"] == [[{"ball": "0", "radius": "0"}]] * 4


def test_rounding_to_coarse_and_fine_grids() -> None:
    for bits in (-4096, -100, 4096):
        for kernel in ("exp", "exp2"):
            document = single(kernel, [[1], [3], [0], [2]], mlp={"round_bits": bits})
            assert run(document, 3)["equal"] is True
            assert run(document, 3, arithmetic="ball")["equal"] is True


def test_what_balls_cannot_decide_is_undecided() -> None:
    """A tie cannot be rounded; two layers of exp cannot be confirmed exactly; a difference of balls is never called equal."""
    tie = single("exp2", [[1], [0]] * 2, WQ=0, mlp={"round_bits": 0})
    result = run(tie, 3, arithmetic="ball")
    assert result["equal"] == "undecided" and result["output"] is None and "tie" in result["why"] and not held(result)
    deep = run(single("exp", [[1], [0]] * 2, layers=2), 3, arithmetic="ball")
    assert deep["equal"] == "undecided" and not held(deep)
    assert Fraction(deep["absolute_error"]) > 0
    assert Fraction(deep["relative_error"]) < Fraction(1, 10**20)
    zero = run(single("exp", [[1], [-1]] * 2, WQ=0), 3, arithmetic="ball")
    assert zero["equal"] is True


# --- a construction that is wrong ----------------------------------------------------------------------------------------


def test_a_wrong_construction_is_not_called_equal() -> None:
    """The program of another instance: unequal in every arithmetic, with an upper bound on the error that is one."""
    from verify.claims.construction import Construction

    other = single("exp2", [[1], [2], [0], [1]], WV=3)
    document = single("exp2", [[1], [2], [0], [1]], WV=2)
    right = REGISTRY.constructions["repaired"]

    def build(problem: Any, minimise: str) -> Any:
        wrong = Request(parse_instance(json.dumps(other), "other"), problem.M).problem()
        return right.build(wrong, minimise)

    construction = Construction("repaired", "B.4", "", build, right.predict)
    for kernel in ("exp2", "exp"):
        for arithmetic in ("exact", "ball"):
            request = Request(parse_instance(json.dumps(document | {"kernel": kernel}), "x"), 3, arithmetic=arithmetic)
            result = simulate(request, construction)
            check_format(result, request, "repaired")
            assert result["equal"] is False and not held(result)
            assert Fraction(1, 2) <= Fraction(result["relative_error"]) <= Fraction(500001, 10**6)
            assert Fraction(result["absolute_error"]) >= 1


# --- the command ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(single("exp2", [[1], [2], [0], [3], [1], [2]])))
    return path


def test_json_prints_one_document_and_out_writes_the_same(
    capsys: pytest.CaptureFixture[str], instance: Path, tmp_path: Path
) -> None:
    out = tmp_path / "result.json"
    answer = command(capsys, "simulate", instance, "-M", 3, "--json", "--out", out)
    assert answer.code == 0 and answer.err == ""
    assert answer.json()["equal"] is True
    assert out.read_text() == answer.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["instance.json", "result.json"]
    assert out.stat().st_mode & 0o777 == 0o666 & ~_umask()
    again = command(capsys, "simulate", instance, "--oracle-length", 3, "--json", "--out", out)
    assert again.out == answer.out == out.read_text()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_people_see(capsys: pytest.CaptureFixture[str], instance: Path, tmp_path: Path) -> None:
    answer = command(capsys, "simulate", instance, "-M", 3)
    assert answer.code == 0 and answer.err == ""
    assert "equal to the direct evaluation" in answer.out and "NOT" not in answer.out
    printed = command(capsys, "simulate", instance, "-M", 3, "--construction", "printed")
    assert printed.code == 1 and printed.err == ""
    assert "input length: limit 3, needed 4" in printed.out
    stuck = command(capsys, "simulate", instance, "-M", 4, "--construction", "printed")
    assert stuck.code == 1 and "divisibility" in stuck.out and "NOT equal" in stuck.out
    residual = command(capsys, "simulate", instance, "-M", 3, "--construction", "residual")
    assert residual.code == 0 and "the model is changed" in residual.out
    tie = tmp_path / "tie.json"
    tie.write_text(json.dumps(single("exp2", [[1], [0]] * 2, WQ=0, mlp={"round_bits": 0})))
    undecided = command(capsys, "simulate", tie, "-M", 3, "--arithmetic", "ball")
    assert undecided.code == 1 and "undecided" in undecided.out and "tie" in undecided.out


def test_exit_codes_of_json(capsys: pytest.CaptureFixture[str], instance: Path) -> None:
    for construction, M, code in (("repaired", 3, 0), ("residual", 3, 0), ("printed", 3, 1), ("printed", 4, 1)):
        answer = command(capsys, "simulate", instance, "-M", M, "--construction", construction, "--json")
        assert (answer.code, answer.err) == (code, "")
        result = answer.json()
        assert (result["equal"] is True and not result["broken_rules"]) == (code == 0)


BAD_OPTIONS: list[tuple[list[str], str]] = [
    ([], "--oracle-length"),
    (["-M"], "requires an argument"),
    (["-M", "0"], "--oracle-length"),
    (["-M", "-3"], "--oracle-length"),
    (["-M", "three"], "--oracle-length"),
    (["-M", "2.5"], "--oracle-length"),
    (["-M", "9" * 5000], "--oracle-length"),
    (["-M", "1"], "the smallest that would do is 2"),
    (["-M", "3", "--oracle-layers", "0"], "--oracle-layers"),
    (["-M", "3", "--oracle-layers", "999999999"], "--oracle-layers"),
    (["-M", "3", "--oracle-heads", "0"], "--oracle-heads"),
    (["-M", "3", "--oracle-heads", "999999999"], "--oracle-heads"),
    (["-M", "3", "--oracle-layers", "2"], "the smallest that would do is"),
    (["-M", "3", "--construction", "best"], "one of repaired, "),
    (["-M", "3", "--construction", "x" * 9999 + "\n"], "one of repaired, "),
    (["-M", "3", "--arithmetic", "symbolic"], "exact, ball"),
    (["-M", "3", "--arithmetic", "\x1b[31m"], "exact, ball"),
    (["-M", "3", "--minimise", "both"], "--minimise"),
    (["-M", "3", "--nonsense"], "--nonsense"),
    (["-M", "3", "extra"], "extra"),
    (["-M", "3", "--construction", "blocks"], "mask"),
    (["-M", "3", "--out", "missing/result.json"], "--out: no directory"),
    (["-M", "3", "--out", "."], "--out"),
    (["-M", "3", "--out", ""], "--out"),
    (["-M", "3", "--out", "instance.json"], "--out: this is the instance itself"),
    (["-M", "3", "--out", "instance.json/result.json"], "--out"),
    (["-M", "3", "--out", "/proc/result.json"], "--out: cannot write"),
]


@pytest.mark.parametrize(("options", "says"), BAD_OPTIONS)
def test_bad_options(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    instance: Path,
    options: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(instance.parent)
    before = instance.read_bytes()
    line = command(capsys, "simulate", "instance.json", *options).complaint()
    assert says in line and len(line) < 1100
    assert [path.name for path in instance.parent.iterdir()] == ["instance.json"] and instance.read_bytes() == before


BAD_FILES: list[tuple[bytes, str]] = [
    (b"", "empty"),
    (b"{", "line 1"),
    (b"\xff", "UTF-8"),
    (b"[]", "expected an object"),
    (b"null", "expected an object"),
    (b'{"format": "attention-instance/2"}', "attention-instance/1"),
    (json.dumps(single("exp3", [[1]])).encode(), "kernel"),
    (json.dumps(single("exp", [[1], [2, 3]])).encode(), "X[1]"),
    (json.dumps(single("exp", [["1/0"]])).encode(), "zero denominator"),
    (json.dumps(single("exp", [[float("nan")]])).encode(), "NaN"),
    (json.dumps(single("exp", [["inf"]])).encode(), "X[0][0]"),
    (json.dumps(single("exp", [])).encode(), "X"),
    (json.dumps(single("exp", [[1]], mask="windowed")).encode(), "mask"),
    (json.dumps(single("exp", [[1]], mask={"window": 0})).encode(), "mask"),
    (json.dumps(single("exp", [[1]], residual=1)).encode(), "residual"),
    (json.dumps(single("exp", [[1]], extra=1)).encode(), "extra"),
    (json.dumps(single("exp", [[1]], mlp="relu")).encode(), "mlp"),
    (json.dumps(single("exp2", [["1/2"], [1]])).encode(), "row 0, column 0: score 1/4"),
    (json.dumps(single("exp2", [["DIGITS"]])).replace('"DIGITS"', "1" * 12000).encode(), "has 12000 digits"),
    (b"[" * 100000, "nested"),
]


@pytest.mark.parametrize(("content", "says"), BAD_FILES)
def test_bad_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    out = tmp_path / "result.json"
    out.write_text("kept")
    started = time.monotonic()
    line = command(capsys, "simulate", path, "-M", 3, "--out", out, "--json").complaint()
    assert says in line and len(line) < 1100
    assert out.read_text() == "kept" and len(list(tmp_path.iterdir())) == 2
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("name", ["missing.json", "", ".", "a\nb", "/proc/self/mem", "x" * 5000])
def test_files_that_cannot_be_read(capsys: pytest.CaptureFixture[str], name: str) -> None:
    command(capsys, "simulate", name, "-M", 3).complaint()


# --- real processes ------------------------------------------------------------------------------------------------------


def process(*arguments: object, **options: Any) -> Answer:
    done = subprocess.run([*PYTHON, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)
    return Answer(done.returncode, done.stdout, done.stderr)


def test_a_process_run(instance: Path) -> None:
    answer = process("simulate", instance, "-M", 3, "--json")
    assert answer.code == 0 and answer.err == "" and answer.json()["equal"] is True
    process("simulate", instance, "-M", 1).complaint()


def test_no_answer_where_nobody_listens(instance: Path) -> None:
    """A closed pipe, a full disk, a closed standard output: no traceback, and nothing is said to hold that nobody read."""
    for arguments in (["list"], ["list", "--json"], ["simulate", instance, "-M", "3", "--json"]):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = subprocess.run([*PYTHON, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
        finally:
            os.close(writer)
        assert (done.returncode, done.stderr) == (1, "")
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            done = subprocess.run([*PYTHON, "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "standard output" in done.stderr


def test_a_kill_leaves_the_old_result_or_the_new_one(tmp_path: Path) -> None:
    """Killed (-9) at many moments of a run that writes a large result."""
    path, out = tmp_path / "instance.json", tmp_path / "result.json"
    path.write_text(json.dumps(single("exp2", [[1], [-1]] * 2, WK=2**18)))
    arguments = [*PYTHON, "simulate", str(path), "-M", "3", "--construction", "tree", "--out", str(out)]
    subprocess.run(arguments, stdout=subprocess.DEVNULL, timeout=60, check=True)
    new = out.read_bytes()
    assert len(new) > 10**6
    seen = set()
    started = time.monotonic()
    subprocess.run(arguments, stdout=subprocess.DEVNULL, timeout=60, check=True)
    whole = time.monotonic() - started
    for part in (0.5, 0.8, 0.9, 0.95, 1.0):
        out.write_text("old")
        run_ = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(part * whole)
        run_.send_signal(signal.SIGKILL)
        run_.wait()
        content = out.read_bytes()
        assert content in (b"old", new)
        seen.add(content)
    assert b"old" in seen


def test_a_failing_replacement_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, instance: Path
) -> None:
    """The last step of a write fails: the old file stays, the temporary one goes."""
    out = instance.parent / "result.json"
    out.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    line = command(capsys, "simulate", instance, "-M", 3, "--out", out).complaint()
    assert "No space left" in line
    assert out.read_text() == "old" and len(list(instance.parent.iterdir())) == 2
