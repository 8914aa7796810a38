"""The error of a rounded run, measured rigorously as the paper measures it: for each row, in the 2-norm.

The paper's "simulates" asks for `||Y_i - T(X)_i|| <= eps ||T(X)_i||` in every row i. So the relative error of a row whose
true value is 0 is 0 if it is met exactly and infinite otherwise. Every number here is a pair of bounds, `lower <= error
<= upper`, and the enclosure of the truth is refined until they are within 1% of each other.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import gmpy2
from flint import arb, fmpq, fmpz

from verify.arithmetic.ball import PRECISION_LIMIT, working_precision
from verify.arithmetic.rounded import exactly
from verify.audit.truth import Truth
from verify.errors import Undecided

SLACK = fmpq(1, 100)
"""How far apart the bounds of a measured error may be, relative to it."""

DECIDED = 64
"""Bits beyond the run's own at which the truth is first enclosed."""


@dataclass(frozen=True)
class Bounds:
    """`lower <= error <= upper`; both infinite where the error is."""

    lower: arb
    upper: arb

    @property
    def narrow(self) -> bool:
        """Whether the bounds are within `SLACK` of each other."""
        if not self.upper.is_finite():
            return not self.lower.is_finite()
        return bool(self.upper - self.lower <= self.lower * arb(SLACK)) or bool(self.upper.is_zero())

    def at_most(self, limit: arb) -> bool | None:
        """Whether the error is at most a limit; None where the bounds do not tell."""
        if self.upper <= limit:
            return True
        return False if self.lower > limit else None


@dataclass(frozen=True)
class Measured:
    """The largest errors over all rows, and where the worst relative one is (row and column count from 0)."""

    absolute: Bounds
    relative: Bounds
    row: int
    column: int
    finite: bool
    """Whether every entry of the output is a finite number."""


def measure(output: Sequence[Sequence[Any]], truth: Truth, bits: int) -> Measured:
    """The error of rounded columns (gmpy2 numbers of at most `bits` bits) against the truth, its bounds within 1% of each other.

    Raises Undecided where `PRECISION_LIMIT` bits are not enough.
    """
    working = bits + DECIDED
    while working <= max(PRECISION_LIMIT, bits + DECIDED):
        with working_precision(working):
            found = _measure(output, truth.enclosures(working), truth)
            if found is not None and found.absolute.narrow and found.relative.narrow:
                return found
        working *= 2
    raise Undecided(f"the error is open at {working // 2} bits")


def meets(output: Sequence[Sequence[Any]], truth: Truth, bits: int, target: Fraction) -> bool:
    """Whether the relative error is at most `target` in every row.

    Balls are refined only as far as that question needs; rows whose true value is rational are compared exactly where balls do
    not tell, since their error may *be* the target. Raises Undecided at `PRECISION_LIMIT` bits.
    """
    working, limit = bits + DECIDED, fmpq(target.numerator, target.denominator)
    exact: dict[int, bool] | None = None
    while working <= max(PRECISION_LIMIT, bits + DECIDED):
        with working_precision(working):
            found = _measure(output, truth.enclosures(working), truth, without=exact or ())
            answer = None if found is None else found.relative.at_most(arb(limit))
        if answer is not None:
            return answer
        if exact is None:
            exact = _rational_rows(output, truth, limit)
            if not all(exact.values()):
                return False
        else:
            working *= 2
    raise Undecided(f"whether the target is met is open at {working // 2} bits")


def _rational_rows(output: Sequence[Sequence[Any]], truth: Truth, limit: fmpq) -> dict[int, bool]:
    """For each row with a rational true value and a finite output, whether its relative error is at most the limit."""
    answers = {}
    for i in range(truth.N):
        true, row = truth.rational_row(i), [column[i] for column in output]
        if true is not None and all(gmpy2.is_finite(y) for y in row):
            error = sum(((rational(y) - t) ** 2 for y, t in zip(row, true, strict=True)), fmpq(0))
            answers[i] = bool(error <= limit**2 * sum((t * t for t in true), fmpq(0)))
    return answers


def _measure(
    output: Sequence[Sequence[Any]], true: list[list[arb]], truth: Truth, without: Container[int] = ()
) -> Measured | None:
    """Bounds at one precision of the truth, some rows left out; None where it is open whether a row's true value is zero."""
    zero, infinite = arb(0), arb("inf")
    absolute, relative = Bounds(zero, zero), Bounds(zero, zero)
    worst, finite = (0, 0), True
    for i in range(len(true[0])):
        if i in without:
            continue
        row = [column[i] for column in output]
        if not all(gmpy2.is_finite(y) for y in row):
            bad = next(c for c, y in enumerate(row) if not gmpy2.is_finite(y))
            if finite:
                worst = (i, bad)
            finite, absolute, relative = False, Bounds(infinite, infinite), Bounds(infinite, infinite)
            continue
        differences = [exactly(y) - column[i] for y, column in zip(row, true, strict=True)]
        for c, (difference, y) in enumerate(zip(differences, row, strict=True)):
            if difference.contains(0) and not difference.is_zero() and truth.is_entry(i, c, rational(y)):
                differences[c] = zero
        error, size = _norm_bounds(differences), _norm_bounds([t[i] for t in true])
        quotient = _quotient(error, size, i, truth)
        if quotient is None:
            return None
        absolute = Bounds(absolute.lower.max(error.lower), absolute.upper.max(error.upper))
        if finite and (quotient.upper > relative.upper or not quotient.upper.is_finite()):
            worst = (i, _largest(differences))
        relative = Bounds(relative.lower.max(quotient.lower), relative.upper.max(quotient.upper))
    return Measured(absolute, relative, *worst, finite)


def _quotient(error: Bounds, size: Bounds, row: int, truth: Truth) -> Bounds | None:
    """The relative error of a row; None where it is open whether the row's true value is 0."""
    zero, infinite = arb(0), arb("inf")
    if error.upper.is_zero():
        return Bounds(zero, zero)
    if size.lower > 0:
        return Bounds((error.lower / size.upper).lower(), (error.upper / size.lower).upper())
    width = len(truth.enclosures(DECIDED))
    met = [truth.is_entry(row, c, fmpq(0)) for c in range(width)]
    if all(answer is True for answer in met):
        return Bounds(infinite, infinite) if error.lower > 0 else None
    return None


def _largest(differences: Sequence[arb]) -> int:
    """The place of the largest difference, as far as the balls tell."""
    best = 0
    for c, difference in enumerate(differences):
        if difference.abs_upper() > differences[best].abs_upper():
            best = c
    return best


def _norm_bounds(entries: Sequence[arb]) -> Bounds:
    """Exact numbers below and above the 2-norm of numbers given by balls."""
    return Bounds(norm([x.abs_lower() for x in entries]).lower(), norm([x.abs_upper() for x in entries]).upper())


def norm(sizes: Sequence[arb]) -> arb:
    """The 2-norm of numbers that are not negative. (The square of a ball around zero reaches below zero and has no root.)"""
    return sum((x * x for x in sizes), arb(0)).sqrt()


def rational(y: Any) -> fmpq:
    """A finite rounded number as a rational."""
    p, q = y.as_integer_ratio()
    return fmpq(fmpz(int(p)), fmpz(int(q)))
