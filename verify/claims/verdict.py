"""Verdicts: what was checked, how, what follows, and what is still assumed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Status(Enum):
    """The four possible verdicts. Undecided is never shown as either of the first two."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    ASSUMED = "assumed"


ASSUMPTIONS = {
    "Lindemann": "e^a is transcendental for every nonzero algebraic a, so equality in Q(e^(1/D)) is equality of rational "
    "functions (F. Lindemann 1882)",
    "FLINT": "FLINT's exact integers, rationals and polynomials are correct",
    "Arb": "Arb's balls enclose the numbers they stand for",
    "hardness of attention": "approximating attention needs N^(2-o(1)) time (Alman and Song 2023, under SETH)",
    "text of the paper": "the sentence or formula stands in the paper as quoted (from a copy of its text; for the authors to confirm)",
    "Hoeffding": "Hoeffding's inequalities for bounded sums, with and without replacement (Hoeffding 1963, Theorems 1 and 4)",
    "Serfling": "Serfling's inequality for sampling without replacement (Serfling 1974, Corollary 1.1)",
    "MPFR": "MPFR's functions are correctly rounded",
    "McDiarmid": "McDiarmid's inequality for functions of independent variables with bounded differences, in its exponential-moment "
    "form (McDiarmid 1989)",
}
"""Everything that a verdict may assume. A test fails on any other name."""


@dataclass(frozen=True)
class Scope:
    """How far a verdict reaches."""

    text: str

    @classmethod
    def instance(cls, count: int = 1) -> Scope:
        """These instances only."""
        return cls("this instance" if count == 1 else f"these {count} instances")

    @classmethod
    def sizes(cls, description: str) -> Scope:
        """Every input of the sizes described, such as "N = 6, M = 3"."""
        return cls(f"every input of this size: {description}")

    @classmethod
    def every_size(cls) -> Scope:
        """All sizes and inputs."""
        return cls("every size")

    @classmethod
    def probability(cls, k: int) -> Scope:
        """Every input, but for an error probability of at most 2^-k over the check's own random choices."""
        return cls(f"error probability at most 2^-{k}")


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    `object` is what was examined, `input` the form and range of its inputs, `detail` one sentence for people, `evidence`
    JSON data from which the finding can be recomputed (for a refutation: the smallest counterexample), `statements` what
    `verify confirm` recomputes without this engine (see `verify.claims.evidence`).
    """

    status: Status
    scope: Scope
    object: str
    input: str
    detail: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    statements: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Raises TypeError for evidence with floating-point numbers: nobody could recompute it exactly."""
        for part in (self.evidence, self.statements):
            _refuse_floats(part)


def _refuse_floats(data: Any) -> None:
    if isinstance(data, float):
        raise TypeError(f"evidence must be exact, not {data!r}: integers and strings")
    if isinstance(data, Mapping):
        data = data.values()
    elif not isinstance(data, (list, tuple)):
        return
    for entry in data:
        _refuse_floats(entry)


@dataclass(frozen=True)
class Verdict:
    """An outcome in its place: the claim, construction and arithmetic; the predicate recomputed, what it implies, what it assumes."""

    claim: str
    check: str
    construction: str
    arithmetic: str
    expected: Status
    outcome: Outcome
    predicate: str
    implies: str
    assumes: tuple[str, ...]
    uses: tuple[str, ...]
    """Claims whose constructions the check ran, recorded while it ran."""

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the one announced."""
        return self.outcome.status is self.expected

    @property
    def command(self) -> str:
        """The command that reproduces the verdict, ready to be pasted."""
        return (
            f"verify check {self.claim} --construction {shlex.quote(self.construction)} --arithmetic {self.arithmetic}"
        )

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON data (an entry of `reports/ledger.json`)."""
        return {
            "claim": self.claim,
            "check": self.check,
            "construction": self.construction,
            "arithmetic": self.arithmetic,
            "status": self.outcome.status.value,
            "expected": self.expected.value,
            "scope": self.outcome.scope.text,
            "object": self.outcome.object,
            "input": self.outcome.input,
            "predicate": self.predicate,
            "implies": self.implies,
            "assumes": list(self.assumes),
            "uses": list(self.uses),
            "detail": self.outcome.detail,
            "evidence": dict(self.outcome.evidence),
            "command": self.command,
        }
