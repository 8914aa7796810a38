"""`verify audit` from the outside: documents, exit codes, one line for each bad request."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy
import pytest

from tests.commands.documents import command, single

Capture = pytest.CaptureFixture[str]

TOKENS = [["1/2"], [0], ["-3/4"], [1], ["1/4"]]


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(single("exp", TOKENS)))
    return path


def audited(capsys: Capture, instance: Path, *options: str) -> tuple[int, dict]:
    answer = command(capsys, "audit", instance, "--json", *options)
    assert answer.err == ""
    return answer.code, answer.json()


def test_the_document_has_the_stated_form(capsys: Capture, instance: Path) -> None:
    code, result = audited(capsys, instance, "-M", "4", "--bits", "24")
    assert code == 0
    assert result["format"] == "audit-result/1" and result["arithmetic"] == "rounded" and result["bits"] == 24
    assert result["target"] == "1/32" and result["reached"] is True and result["fewest_bits"] is None
    assert set(result["worst"]) == {"row", "column"}
    for step in result["steps"]:
        assert set(step) >= {"step", "condition", "bits_lost"}
        assert float(step["bits_lost"]) >= 0 and float(step["condition"]) >= 0
    for row in result["output"]:
        for entry in row:
            value = Fraction(Decimal(entry))
            denominator = value.denominator
            assert denominator & (denominator - 1) == 0, "a finite binary number"
            assert (abs(value.numerator) // (value.numerator & -value.numerator)).bit_length() <= 24


def test_float32_is_24_bits_where_nothing_leaves_its_range(capsys: Capture, instance: Path) -> None:
    _, machine = audited(capsys, instance, "-M", "4", "--dtype", "float32")
    _, bits = audited(capsys, instance, "-M", "4", "--bits", "24")
    assert machine["dtype"] == "float32" and machine["output"] == bits["output"]
    for row in machine["output"]:
        for entry in row:
            assert Fraction(Decimal(entry)) == Fraction(float(numpy.float32(entry)))


def test_the_fewest_bits_and_one_fewer(capsys: Capture, instance: Path) -> None:
    """What the search answers is what separate runs answer."""
    code, found = audited(capsys, instance, "-M", "4", "--target-bits", "30")
    fewest = found["fewest_bits"]
    assert code == 0 and found["bits"] == fewest and found["reached"] is True and found["target"] == f"1/{2**30}"
    assert audited(capsys, instance, "-M", "4", "--target-bits", "30", "--bits", str(fewest))[0] == 0
    code, below = audited(capsys, instance, "-M", "4", "--target-bits", "30", "--bits", str(fewest - 1))
    assert code == 1 and below["reached"] is False
    assert Fraction(Decimal(below["relative_error"])) > Fraction(1, 2**30)
    assert (
        found["search"]["impossible_below"]
        <= fewest
        <= found["search"]["always_from"]
        <= found["search"]["proved_from"]
    )
    for run in found["search"]["runs"]:
        assert (
            audited(capsys, instance, "-M", "4", "--target-bits", "30", "--bits", str(run["bits"]))[1]["reached"]
            is run["reached"]
        )


def test_overflow_is_reported_and_nothing_is_hidden(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    path.write_text(json.dumps(single("exp", [[4], [3], [-2]], 5, 5)))
    code, result = audited(capsys, path, "-M", "3", "--dtype", "float16")
    assert code == 1 and "overflow" in result["exceptions"] and result["relative_error"] == "inf"
    assert any(entry in ("nan", "inf", "-inf") for row in result["output"] for entry in row)
    assert result["reached"] is False and result["bound"]["relative_error"] == "inf"
    shown = command(capsys, "audit", path, "-M", "3", "--dtype", "float16")
    assert shown.code == 1 and "overflow" in shown.out and "MISSED" in shown.out


def test_a_zero_row_is_missed_by_any_rounding_that_does_not_meet_it(capsys: Capture, tmp_path: Path) -> None:
    """All values 0: the paper's relative error asks for exactly 0."""
    path = tmp_path / "zero.json"
    path.write_text(json.dumps(single("exp", TOKENS, WV=0)))
    code, result = audited(capsys, path, "-M", "3", "--bits", "24", "--construction", "per-query")
    assert code == 0 and result["relative_error"] == "0" and {e for row in result["output"] for e in row} == {"0"}


def test_a_construction_that_cannot_run_says_which_rule(capsys: Capture, instance: Path) -> None:
    code, result = audited(capsys, instance, "-M", "3", "--construction", "printed")
    assert code == 1 and result["output"] is None and result["broken_rules"][0]["rule"] == "divisibility"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            ["-M", "4", "--dtype", "float8"],
            "--dtype: unknown format 'float8'; one of float16, bfloat16, float32, float64",
        ),
        (["-M", "4", "--bits", "24", "--dtype", "float32"], "--bits, --dtype: two formats at once; give one of them"),
        (["-M", "4", "--bits", "24", "--accumulate", "float16"], "--accumulate: float16 has fewer bits than 24 bits"),
        (["-M", "4", "--accumulate", "x"], "--accumulate: unknown format 'x'; one of"),
        (["-M", "4", "--construction", "nothing"], "--construction: unknown construction 'nothing'"),
        (["-M", "1"], "the smallest that would do is 2"),
        (["-M", "4", "--bits", "1"], "is not in the range"),
        (["-M", "4", "--target-bits", "0"], "is not in the range"),
        ([], "Missing option '--oracle-length'"),
    ],
)
def test_bad_requests_get_one_line(capsys: Capture, instance: Path, options: list[str], complaint: str) -> None:
    answer = command(capsys, "audit", instance, *options)
    assert complaint in answer.complaint()


def test_the_result_can_be_written_to_a_file(capsys: Capture, instance: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    answer = command(capsys, "audit", instance, "-M", "4", "--bits", "30", "--out", str(out), "--json")
    assert json.loads(out.read_text()) == answer.json()
    assert command(capsys, "audit", instance, "-M", "4", "--out", str(instance)).code == 2
