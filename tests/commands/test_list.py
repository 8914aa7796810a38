"""`verify list`, and what every command shares: help, version, `--proofs`."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs.registry import REGISTRY
from tests.commands.documents import command
from tests.commands.packages import HARD, write_package
from verify import __version__
from verify.claims.verdict import Status


def test_json_lists_every_claim_and_what_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    answer = command(capsys, "list", "--json")
    assert (answer.code, answer.err) == (0, "")
    document = answer.json()
    assert document["format"] == "claim-list/1"
    assert [claim["id"] for claim in document["claims"]] == list(REGISTRY.claims)
    statuses = {status.value for status in Status}
    for claim in document["claims"]:
        assert set(claim) == {"id", "aliases", "kind", "title", "statement", "source", "constructions"}
        assert claim["title"] and claim["statement"] and claim["source"]
        assert claim["kind"] in ("lemma", "finding", "comment", "construction")
        registered = {check.construction for check in REGISTRY.claims[claim["id"]].checks}
        assert set(claim["constructions"]) == registered
        for expected in claim["constructions"].values():
            assert expected and set(expected) <= statuses and len(set(expected)) == len(expected)


def test_people_see_every_claim(capsys: pytest.CaptureFixture[str]) -> None:
    answer = command(capsys, "list")
    assert (answer.code, answer.err) == (0, "")
    for claim in REGISTRY.claims.values():
        assert any(line.startswith(claim.id) for line in answer.out.splitlines())
        assert claim.statement in answer.out


def test_hard_text_is_shown_as_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brackets are no markup, and nothing of the text is lost."""
    package = write_package(tmp_path, monkeypatch)
    answer = command(capsys, "--proofs", package, "list")
    assert answer.code == 0
    shown = HARD.replace("\\\\", "\\").replace('\\"', '"')
    assert f"First, with {shown}" in answer.out and f"Statement of the first: {shown}" in answer.out


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], ["check", "--help"], ["simulate", "-h"]])
def test_help_and_version(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    answer = command(capsys, *arguments)
    assert (answer.code, answer.err) == (0, "") and answer.out
    if arguments == ["--version"]:
        assert __version__ in answer.out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["--nonsense"], ["list", "extra"], ["list", "--out", "x"]])
def test_wrong_requests(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    command(capsys, *arguments).complaint()


@pytest.mark.parametrize("name", ["", ".", ".x", "a.", "a b", "/etc", "missing", "proofs.missing", "json", "x\ny"])
@pytest.mark.parametrize("arguments", [["list"], ["check"], ["simulate", "x.json", "-M", "3"], ["report"]])
def test_proofs_that_are_none(capsys: pytest.CaptureFixture[str], name: str, arguments: list[str]) -> None:
    assert "--proofs" in command(capsys, "--proofs", name, *arguments).complaint()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("x = (", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("1 / 0", "ZeroDivisionError"),
        ("REGISTRY.add(Claim('A.1', '', '', ''))", "registered twice"),
        ("A.check('repaired', 'ball', predicate='', implies='', name='enclosed')(enclosed)", "two checks"),
        ("A.check('x', 'ball', predicate='', implies='', assumes=('luck',))(enclosed)", "not on the list"),
    ],
)
def test_proofs_that_do_not_load(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, says: str
) -> None:
    """A package whose own code fails: the error and its place, on one line."""
    package = write_package(tmp_path, monkeypatch, extra=code)
    line = command(capsys, "--proofs", package, "check").complaint()
    assert says in line and package in line
