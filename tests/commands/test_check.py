"""`verify check`: exit codes, selection, the documents, and checks that go wrong."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.commands.documents import PYTHON, command
from tests.commands.packages import write_package
from verify.claims.verdict import ASSUMPTIONS, Status

VERDICT_KEYS = [
    "claim",
    "check",
    "construction",
    "arithmetic",
    "status",
    "expected",
    "scope",
    "object",
    "input",
    "predicate",
    "implies",
    "assumes",
    "uses",
    "detail",
    "evidence",
    "command",
]
FILLED = [key for key in VERDICT_KEYS if key not in ("assumes", "uses", "evidence")]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return write_package(tmp_path, monkeypatch)


def check_verdicts(document: Any) -> list[dict[str, Any]]:
    """The verdicts of a `check-result/1` document, once its shape is as it should be."""
    assert list(document) == ["format", "held", "verdicts"] and document["format"] == "check-result/1"
    for verdict in document["verdicts"]:
        assert list(verdict) == VERDICT_KEYS
        assert all(isinstance(verdict[key], str) and verdict[key].strip() for key in FILLED), verdict
        assert {verdict["status"], verdict["expected"]} <= {status.value for status in Status}
        assert set(verdict["assumes"]) <= set(ASSUMPTIONS)
        assert isinstance(verdict["evidence"], dict)
        words = ["verify", "check", verdict["claim"], "--construction", verdict["construction"]]
        assert shlex.split(verdict["command"])[:5] == words
    verdicts: list[dict[str, Any]] = document["verdicts"]
    return verdicts


# --- on the small package ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [[], ["--jobs", "1"], ["--jobs", "2"]])
def test_everything(capsys: pytest.CaptureFixture[str], package: str, jobs: list[str]) -> None:
    """All verdicts as expected: exit code 0, in the order of registration, whatever the number of processes."""
    answer = command(capsys, "--proofs", package, "check", "--json", *jobs)
    assert (answer.code, answer.err) == (0, "")
    verdicts = check_verdicts(answer.json())
    assert [(v["claim"], v["check"]) for v in verdicts] == [
        ("A.1", "as_printed"),
        ("A.1", "repaired"),
        ("A.1", "enclosed"),
        ("R1", "point"),
        ("N1", "finding"),
        ("own", "ours"),
    ]
    uses = {v["check"]: v["uses"] for v in verdicts}
    assert uses == {v["check"]: (["A.1"] if v["check"] == "finding" else []) for v in verdicts}


@pytest.mark.parametrize(
    ("arguments", "code", "checks"),
    [
        (["A.1"], 0, 3),
        (["1.1"], 0, 3),
        (["a.1", "A.1"], 0, 3),
        (["N1", "A.1"], 0, 4),
        (["A.1", "--construction", "printed"], 1, 1),
        (["A.1", "--construction", "repaired"], 0, 2),
        (["A.1", "--construction", "repaired", "--arithmetic", "ball"], 0, 1),
        (["--arithmetic", "exact"], 0, 1),
        (["--construction", "printed"], 1, 3),
        (["R1", "--construction", "printed"], 0, 1),
        (["own", "--construction", "best one"], 1, 1),
        (["own"], 0, 1),
    ],
)
def test_exit_codes(
    capsys: pytest.CaptureFixture[str], package: str, arguments: list[str], code: int, checks: int
) -> None:
    """Without --construction: as expected. With it: whether the construction itself holds (undecided is not holding)."""
    answer = command(capsys, "--proofs", package, "check", *arguments, "--json")
    assert (answer.code, answer.err) == (code, "")
    document = answer.json()
    assert len(check_verdicts(document)) == checks and document["held"] is (code == 0)
    seen = command(capsys, "--proofs", package, "check", *arguments)
    assert (seen.code, seen.err) == (code, "")
    assert f"{checks} checks: " in seen.out and "0 not as expected" in seen.out
    assert len(seen.out.splitlines()) == checks + 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["B.1"], "unknown claim 'B.1'; known: A.1, "),
        (["A.1", "x" * 9999], "unknown claim 'xxxx"),
        (
            ["A.1", "--construction", "best one"],
            "--construction: nothing to check for 'best one'; one of printed, repaired",
        ),
        (["A.1", "--construction", "nope"], "one of printed, repaired"),
        (["--construction", "nope"], "one of best one, printed, repaired"),
        (
            ["A.1", "--arithmetic", "integers"],
            "--arithmetic: nothing to check for 'integers'; one of ball, exact, symbolic",
        ),
        (
            ["A.1", "--construction", "printed", "--arithmetic", "ball"],
            "--arithmetic: nothing to check for 'ball'; one of exact",
        ),
        (["Z.9"], "no checks yet"),
        (["--jobs", "0"], "--jobs"),
        (["--jobs", "many"], "--jobs"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_wrong_requests(capsys: pytest.CaptureFixture[str], package: str, arguments: list[str], says: str) -> None:
    assert says in command(capsys, "--proofs", package, "check", *arguments).complaint()


def test_an_unexpected_verdict_is_shown_and_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = "printed = lambda n: n\n"
    package = write_package(tmp_path, monkeypatch, extra)
    answer = command(capsys, "--proofs", package, "check", "A.1", "--jobs", "1")
    assert answer.code == 1
    line = next(line for line in answer.out.splitlines() if "as_printed" in line)
    assert "proved (expected refuted)" in line and "1 not as expected" in answer.out
    as_json = command(capsys, "--proofs", package, "check", "A.1", "--json")
    assert as_json.code == 1 and as_json.json()["held"] is False
    # A proof where a refutation was announced is not what was announced, by name either.
    assert command(capsys, "--proofs", package, "check", "A.1", "--construction", "printed").code == 1


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("expected", list(Status))
def test_every_pair_of_verdicts(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: Status,
    expected: Status,
) -> None:
    extra = f"""
T = REGISTRY.add(Claim("T.7", "t", "s", "s"))
@T.check("c", "exact", predicate="p", implies="i", expects=Status.{expected.name})
def pair():
    return outcome(Status.{status.name})
"""
    package = write_package(tmp_path, monkeypatch, extra)
    assert command(capsys, "--proofs", package, "check", "T.7").code == int(status is not expected)
    fine = status is expected and status in (Status.PROVED, Status.ASSUMED)
    assert command(capsys, "--proofs", package, "check", "T.7", "--construction", "c").code == int(not fine)


BREAKDOWNS = [
    "raise RequestError('no')",
    "raise RuleBroken('input length', 3, 4, 'too long')",
    "raise AttributeError('no')",
    "raise NotImplementedError",
    "raise RecursionError",
    "raise MemoryError",
    "raise StopIteration",
    "raise OSError(2, 'gone')",
    "return 1 / 0",
    "return None",
    "return outcome(Status.PROVED, value=object())",
    "return outcome(Status.PROVED, value=float('nan'))",
    "return outcome(Status.PROVED, value=10**5000)",
]


@pytest.mark.parametrize("code", BREAKDOWNS)
@pytest.mark.parametrize("expected", ["PROVED", "REFUTED"])
def test_a_check_that_breaks_down_is_undecided(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, expected: str
) -> None:
    """Never proved, never refuted, never as expected; the other checks still run."""
    extra = f"""
from verify.errors import RequestError, RuleBroken
@A.check("broken", "exact", predicate="p", implies="i", expects=Status.{expected})
def broken():
    {code}
"""
    package = write_package(tmp_path, monkeypatch, extra)
    answer = command(capsys, "--proofs", package, "check", "A.1", "--json", "--jobs", "1")
    assert (answer.code, answer.err) == (1, "")
    verdicts = check_verdicts(answer.json())
    assert [v["status"] for v in verdicts] == ["refuted", "proved", "proved", "undecided"]
    assert "broke down" in verdicts[-1]["scope"] and verdicts[-1]["evidence"] == {}
    assert command(capsys, "--proofs", package, "check", "A.1", "--construction", "broken", "--jobs", "1").code == 1


def test_a_process_that_dies(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = """
@A.check("deadly", "exact", predicate="p", implies="i")
def deadly():
    import os
    os._exit(9)
"""
    package = write_package(tmp_path, monkeypatch, extra)
    line = command(capsys, "--proofs", package, "check", "A.1", "--jobs", "2").complaint()
    assert "ended abruptly" in line


def test_a_package_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = write_package(tmp_path, monkeypatch)
    done = subprocess.run(
        [*PYTHON, "--proofs", package, "check", "A.1"], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "") and "3 checks: 2 proved, 1 refuted" in done.stdout


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_ends_everything_quietly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    """Ctrl-C on a terminal goes to the whole group of processes: exit code 130, no traceback, nobody left behind."""
    slow = "".join(
        f"""
@A.check("slow{i}", "exact", predicate="p", implies="i")
def slow{i}():
    import pathlib, time
    pathlib.Path({str(tmp_path)!r}, "started{i}").touch()
    time.sleep(60)
"""
        for i in range(3)
    )
    package = write_package(tmp_path, monkeypatch, slow)
    arguments = [*PYTHON, "--proofs", package, "check", "--json", "--jobs", str(jobs)]
    run = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("started*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=20)
    assert (run.returncode, out, err.strip()) == (130, "", "")


# --- on the paper --------------------------------------------------------------------------------------------------------


def test_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    """A lemma that holds, by number and alias of any case; a construction that does not; two processes."""
    answer = command(capsys, "check", "a.2", "R8", "--json", "--jobs", "2")
    assert (answer.code, answer.err) == (0, "")
    verdicts = check_verdicts(answer.json())
    assert {v["claim"] for v in verdicts} == {"A.2", "R8"}
    assert command(capsys, "check", "N6", "--construction", "printed").code == 0
    assert command(capsys, "check", "B.4", "--construction", "printed", "--arithmetic", "integers").code == 1
    assert command(capsys, "check", "B.4", "--arithmetic", "integers").code == 0
    command(capsys, "check", "B.17").complaint()
