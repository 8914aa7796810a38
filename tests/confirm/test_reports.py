"""All evidence in `reports/`: confirmed, or on the list of files that offer nothing to recompute; and never when turned into its opposite."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import verify.confirm
from tests.confirm.files import REPORTS, with_digest
from tests.confirm.test_statement import OPPOSITE
from verify.confirm import Refused, confirm, read

FILES = sorted(REPORTS.glob("*.json"))
WITHOUT = set((Path(__file__).parent / "without_statements.txt").read_text().split())
"""Evidence whose verdict only the engine re-derives (symbolic identities, counts of random trials). None is added by accident."""


def test_there_is_evidence() -> None:
    assert len(FILES) > 200
    assert {file.name for file in FILES} >= WITHOUT, "a file on the list does not exist (any more)"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_evidence_is_confirmed(file: Path) -> None:
    finding = confirm(read(str(file)))
    assert finding.confirmed is (file.name not in WITHOUT), finding.lines


def opposite(statement: dict[str, Any]) -> dict[str, Any]:
    """A statement that is false if the given one is true. A table's opposite is claimed of its first row."""
    other = copy.deepcopy(statement)
    if statement["kind"] == "evaluation":
        if isinstance(statement["relation"], dict):
            for row in other["output"]:
                row[:] = [f"{2**70}" for _ in row]
        else:
            other["relation"] = {"equal": "differs", "differs": "equal"}[statement["relation"]]
        return other
    other["relation"][0] = OPPOSITE[statement["relation"][0]]
    if statement["kind"] == "table":
        other["rows"] = other["rows"][:1]
    return other


@pytest.mark.parametrize("file", [f for f in FILES if f.name not in WITHOUT], ids=lambda file: file.stem)
def test_the_opposite_of_each_statement_is_not_confirmed(file: Path) -> None:
    document = read(str(file))
    for k, statement in enumerate(document["statements"]):
        changed = list(document["statements"])
        changed[k] = opposite(statement)
        try:
            assert not confirm(with_digest(document | {"statements": changed})).confirmed
        except Refused as error:
            assert "every statement says" in str(error)


def test_the_folder_runs_alone(tmp_path: Path) -> None:
    """Copied elsewhere, in isolated mode: no package, no site."""
    source = Path(verify.confirm.__file__).parent
    shutil.copytree(source, tmp_path / "confirm", ignore=shutil.ignore_patterns("__pycache__"))
    file = REPORTS / "R1-printed-recovery-is-impossible-ball.json"
    code = f"import sys, runpy; sys.path.insert(0, {str(tmp_path)!r}); sys.argv[1:] = [{str(file)!r}]; runpy.run_module('confirm', run_name='__main__')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("confirmed: R1")
