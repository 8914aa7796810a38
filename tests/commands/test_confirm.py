"""`verify confirm`: exit codes, lines for people, JSON, and one line for what is no evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.documents import command
from tests.confirm.files import evidence, holds, written


def test_confirmed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = command(capsys, "confirm", written(tmp_path, evidence(holds("<", 1, 2))))
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[0].startswith("confirmed: A.1, printed, identity: 1 statement")
    assert "re-derived by: verify check A.1" in answer.out


def test_not_confirmed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for document, says in ((evidence(holds("<", 2, 1)), "statement 0 does not hold: m"), (evidence(), "nothing here")):
        answer = command(capsys, "confirm", written(tmp_path, document))
        assert (answer.code, answer.err) == (1, "") and says in answer.out and "not confirmed" in answer.out


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = command(capsys, "confirm", "--json", written(tmp_path, evidence(holds("<", 1, 2))))
    document = answer.json()
    assert answer.code == 0 and document["format"] == "confirmation/1"
    assert document["confirmed"] is True and document["statements"] == 1 and document["claim"] == "A.1"


@pytest.mark.parametrize("text", ["", "{}", "[[[", '{"format": "evidence/1"}'])
def test_no_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    for options in ([], ["--json"]):
        answer = command(capsys, "confirm", *options, written(tmp_path, text))
        assert (answer.code, answer.out) == (2, "") and len(answer.err.splitlines()) == 1


def test_no_file_and_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["a", "b"], ["/nonexistent/e.json"]):
        answer = command(capsys, "confirm", *arguments)
        assert answer.code == 2 and answer.out == "" and len(answer.err.splitlines()) == 1
