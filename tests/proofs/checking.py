"""What the tests of the lemmas share: weights in plain fractions and in mpmath, balls against mpmath, and whether a check notices a mutant."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
from flint import arb

from proofs.registry import REGISTRY
from verify.arithmetic.ball import Ball, working_precision
from verify.claims.functions import Evaluate, Numbers

DIGITS = 80
BITS = 320

Rows = list[list[Any]]


def power(s: Fraction) -> Fraction:
    """2^s for an integer s."""
    assert s.denominator == 1
    return Fraction(2) ** s.numerator


def exponential(s: Fraction) -> Any:
    """e^s at 80 digits (call inside `mpmath.workdps(DIGITS)`)."""
    return mpmath.exp(mpmath.mpf(s.numerator) / s.denominator)


def rows_of(columns: Sequence[Sequence[Any]]) -> Rows:
    """Rows instead of columns."""
    return [list(row) for row in zip(*columns, strict=True)]


def ball_rows(evaluate: Evaluate, numbers: Numbers) -> list[list[arb]]:
    """The rows that a construction returns on numbers, kernel exp, as balls."""
    with working_precision(BITS):
        arithmetic = Ball("exp", BITS)
        return rows_of(evaluate(arithmetic, [arithmetic.numbers(column) for column in numbers]))


def near(ball: arb, value: Any) -> bool:
    """Whether a ball and an mpmath number agree to about 60 digits."""
    with working_precision(BITS), mpmath.workdps(DIGITS):
        middle = mpmath.mpf(ball.mid().str(DIGITS, radius=False))
        return bool(abs(middle - value) <= mpmath.mpf(10) ** -60 * (1 + abs(value)))


def caught(*claims: str) -> bool:
    """Whether some check of these claims does not come out as announced (an exception counts)."""
    for claim in claims:
        for check in REGISTRY.claims[claim].checks:
            try:
                if not check.run().as_expected:
                    return True
            except Exception:
                return True
    return False


def as_announced(*claims: str) -> None:
    """Asserts that every check of these claims comes out as announced."""
    for claim in claims:
        assert REGISTRY.claims[claim].checks
        for check in REGISTRY.claims[claim].checks:
            verdict = check.run()
            assert verdict.as_expected, (claim, check.name, verdict.outcome)
            assert verdict.outcome.detail and verdict.outcome.evidence
