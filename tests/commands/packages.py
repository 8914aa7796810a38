"""A small proofs package, written into a folder by the tests: every kind of verdict, and text that is hard to print."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

HARD = r"100% of a_ij & #1 {x} ~ 2^-N \\ <b>bold</b> $5 | \"q\" [1] `some_name` ||v_j|| <= E(-g), 'it''s' and-so/on [/bold]"

SOURCE = r'''
"""A lemma and its neighbours, for the tests."""
from verify.claims.claim import Claim, Registry, part_of
from verify.claims.table import Table
from verify.claims.verdict import Outcome, Scope, Status

HARD = """HARD_TEXT"""
REGISTRY = Registry()
A = REGISTRY.add(Claim("A.1", "First, with " + HARD, "Statement of the first: " + HARD, "Section 1", aliases=("1.1",)))
N = REGISTRY.add(Claim("N1", "A finding", "The first fails for N >= 2 and M = (N/M)^2.", "ours", kind="finding"))
R = REGISTRY.add(Claim("R1", "A point of the review", "Point.", "Review", kind="comment"))
Z = REGISTRY.add(Claim("own", "Ours", "Statement.", "ours", kind="construction"))
EMPTY = REGISTRY.add(Claim("Z.9", "Nothing yet", "No check examines this.", "Section 9"))


@part_of("A.1")
def printed(n):
    return n + 1


def outcome(status, scope=Scope.instance(), **evidence):
    return Outcome(status, scope, "the object", "n = 1", "found " + HARD, evidence)


@A.check("printed", "exact", predicate="printed(n) = n", implies="the first as printed", expects=Status.REFUTED)
def as_printed():
    return outcome(Status.REFUTED if printed(1) != 1 else Status.PROVED, n=1, found=printed(1))


@A.check("repaired", "symbolic", predicate=HARD, implies=HARD, assumes=("FLINT", "Lindemann"))
def repaired():
    return outcome(Status.PROVED, Scope.every_size(), text=HARD, big=10**60)


@A.check("repaired", "ball", predicate="p", implies="i", assumes=("Arb",))
def enclosed():
    return outcome(Status.PROVED, Scope.sizes("N = 6, M = 3"))


@N.check("printed", "integers", predicate="p", implies="i")
def finding():
    return outcome(Status.PROVED, counterexample=[printed(1)])


@R.check("printed", "integers", predicate="p", implies="i", expects=Status.ASSUMED, assumes=("text of the paper",))
def point():
    return outcome(Status.ASSUMED)


@Z.check("best one", "integers", predicate="p", implies="i", expects=Status.UNDECIDED)
def ours():
    return outcome(Status.UNDECIDED, bits=64)


REGISTRY.tabulate(Table("costs", "own", "Costs in (N/M)^2, " + HARD, ("N", "ceil(N/M)^2", "which " + HARD), lambda: [["4", "1/2", "yes"], ["16", "2^10", HARD]]))
REGISTRY.tabulate(Table("wide one", "A.1", "Wide.", tuple(f"column number {c}" for c in range(30)), lambda: [[str(10**5 + r + c) for c in range(30)] for r in range(45)]))
EXTRA_CODE
'''.replace("HARD_TEXT", HARD)

_numbers = itertools.count()


def write_package(folder: Path, monkeypatch: pytest.MonkeyPatch, extra: str = "") -> str:
    """Writes the package, with `extra` code at its end, where it can be imported; returns its name."""
    name = f"lemmas_{next(_numbers)}"
    root = folder / f"path_{name}"
    (root / name).mkdir(parents=True)
    (root / name / "__init__.py").write_text(SOURCE.replace("EXTRA_CODE", extra))
    monkeypatch.syspath_prepend(str(root))
    elsewhere = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(root), str(Path(__file__).parents[2]), elsewhere]))
    return name
