"""Reading evidence: whatever was tampered with, cut off, too large, too deep or inexact is refused in one line."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.confirm.files import evidence, holds, with_digest, written
from verify.confirm import Refused, confirm, read
from verify.confirm.document import MEMBERS, MOST_BYTES, MOST_DEPTH, MOST_DIGITS, digest, rational

GOOD = evidence(holds("==", ["+", 1, "1/2"], "3/2"))


def refused(path: str) -> str:
    with pytest.raises(Refused) as error:
        read(path)
    line = str(error.value)
    assert "\n" not in line and len(line) < 400
    return line


def test_an_intact_file_is_read_as_it_stands(tmp_path: Path) -> None:
    assert read(written(tmp_path, GOOD)) == GOOD and digest(GOOD) == GOOD["digest"]


@settings(max_examples=150)
@given(st.data())
def test_one_changed_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Any byte, any printable replacement: refused, or the very same document (white space)."""
    text = json.dumps(GOOD, indent=1)
    at = data.draw(st.integers(0, len(text) - 1))
    sign = data.draw(st.characters(min_codepoint=32, max_codepoint=126))
    path = written(tmp_path_factory.mktemp("e"), text[:at] + sign + text[at + 1 :])
    try:
        assert read(path) == GOOD
    except Refused as error:
        assert "\n" not in str(error)


@settings(max_examples=60)
@given(st.integers(0, len(json.dumps(GOOD)) - 1))
def test_a_file_cut_off_anywhere_is_refused(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    refused(written(tmp_path_factory.mktemp("e"), json.dumps(GOOD)[:length]))


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_missing_or_of_another_kind(tmp_path: Path, name: str) -> None:
    rest = {key: value for key, value in GOOD.items() if key != name}
    wanted = "format" if name == "format" else name
    assert wanted in refused(written(tmp_path, with_digest(rest) if name != "digest" else rest))
    odd = with_digest(GOOD | {name: 7}) if name != "digest" else GOOD | {name: 7}
    assert wanted in refused(written(tmp_path, odd))


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "not JSON"),
        ("[]", "not evidence"),
        ("null", "not evidence"),
        ('{"format": "evidence/2"}', "not evidence"),
        ('{"format": "evidence/1", "format": "evidence/1"}', "same member twice"),
        ("[1.5]", "1.5 is not exact"),
        ("[1e999999999]", "1e999999999 is not exact"),
        ("[NaN]", "NaN is not exact"),
        ("[-Infinity]", "-Infinity is not exact"),
        ("[" * (MOST_DEPTH + 1), "nested more than"),
        ("[" * 10**6, "nested more than"),
        ("[" + "9" * (MOST_DIGITS // 4) + "]", "an integer is too long"),
        ('{"a": "é"}', "not ASCII"),
    ],
)
def test_what_is_no_evidence(tmp_path: Path, text: str, says: str) -> None:
    assert says in refused(written(tmp_path, text))


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "cannot be read" in refused(str(tmp_path / "missing.json"))
    assert "cannot be read" in refused(str(tmp_path))
    assert "cannot be read" in refused("a\0b")
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (MOST_BYTES + 1))
    assert "larger than" in refused(str(large))


def test_brackets_inside_strings_are_no_depth(tmp_path: Path) -> None:
    document = evidence(GOOD["statements"][0], detail='[[["\\' * 20)
    assert read(written(tmp_path, document)) == document


@pytest.mark.parametrize("status", ["PROVED", "", "true"])
def test_an_unknown_status(tmp_path: Path, status: str) -> None:
    assert "right is one of proved" in refused(written(tmp_path, evidence(status=status)))


@given(st.fractions(max_denominator=10**30))
def test_rationals(x: Fraction) -> None:
    assert rational(str(x)) == x and rational(x.numerator) == x.numerator


@pytest.mark.parametrize(
    "value", ["1.5", "1e5", " 1", "1/", "/2", "1/0", "+1", "", "٣", "1_0", None, True, 0.5, [], "9" * (MOST_DIGITS + 1)]
)
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(Refused):
        rational(value)


def test_a_refutation_that_agrees_contradicts_itself(tmp_path: Path) -> None:
    instance = {"kernel": "exp2", "mask": "none", "X": [[1]], "layers": [[{key: [[1]] for key in ("WQ", "WK", "WV")}]]}
    agreement = {"kind": "evaluation", "means": "m", "instance": instance, "output": [[1]], "relation": "equal"}
    assert confirm(read(written(tmp_path, evidence(agreement)))).confirmed
    with pytest.raises(Refused, match="every statement says that the construction agrees"):
        confirm(read(written(tmp_path, evidence(agreement, status="refuted"))))
