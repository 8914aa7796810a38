"""The fewest bits that reach a target, without trusting that more bits are better.

A run at P bits can meet a target by luck and one at P+1 bits miss it. So nothing here is assumed monotone except what is
proved to be:

* **floor**: P-bit numbers are among the (P+1)-bit ones, so the error of the *nearest* P-bit output falls with P. Below the
  floor even that output misses the target: no run can meet it;
* **ceiling**: a forward bound (see `verify.audit.forward`) grows with the unit roundoff. From the ceiling on it is at most
  the target: every run meets it.

Between the two, runs decide. The answer names the least P that was run and met the target with P-1 missing it, the least P
from which on everything meets it, and which P were not run, if the number of runs allowed was not enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import gmpy2
from flint import arb, fmpq

from verify.arithmetic.ball import working_precision
from verify.arithmetic.rounded import bits as bits_of
from verify.arithmetic.rounded import exactly
from verify.audit.error import norm
from verify.audit.truth import Truth

LEAST = 2
"""The fewest bits of a format."""


@dataclass(frozen=True)
class Search:
    """`fewest` meets the target and `fewest - 1` misses it, both run (or below the floor); from `always` on every P meets it."""

    fewest: int
    always: int | None
    """None where the runs made, and the ceiling if there is one, do not tell."""
    floor: int
    ceiling: int | None
    runs: dict[int, bool]
    """For each P that was run, whether it met the target."""

    @property
    def complete(self) -> bool:
        """Whether every P from the floor to the ceiling was run: then `fewest` is the least of all, and `always` exact."""
        return self.ceiling is not None and all(P in self.runs for P in range(self.floor, self.ceiling))

    @property
    def not_run(self) -> list[list[int]]:
        """Ranges [first, last] between the floor and the ceiling (or the last run) that were not run."""
        stop = self.ceiling if self.ceiling is not None else max(self.runs) + 1
        missing = [P for P in range(self.floor, stop) if P not in self.runs]
        ranges: list[list[int]] = []
        for P in missing:
            if ranges and ranges[-1][1] == P - 1:
                ranges[-1][1] = P
            else:
                ranges.append([P, P])
        return ranges


class NotReached(Exception):
    """No number of bits up to the limit reaches the target."""


def fewest_bits(
    meets: Callable[[int], bool], *, start: int, floor: int, ceiling: int | None, limit: int, most_runs: int
) -> Search:
    """The search; `start` is where it begins. Raises NotReached where nothing up to `limit` meets the target.

    First a bracket (P-1 misses, P meets) by doubling steps and bisection, then outwards from there: downwards to the floor
    for a smaller P that meets by luck, upwards to the ceiling for a larger one that misses.
    """
    runs: dict[int, bool] = {}

    def met(P: int) -> bool:
        if P < floor:
            return False
        if ceiling is not None and P >= ceiling and P in runs:
            return runs[P]
        if P not in runs:
            runs[P] = meets(P)
        return runs[P]

    at, step = max(start, floor), 1
    if met(at):
        high = at
        while high > LEAST and met(max(LEAST, high - step)):
            high, step = max(LEAST, high - step), 2 * step
        low = max(LEAST, high - step) if high > LEAST else LEAST - 1
    else:
        low = at
        while not met(min(limit, low + step)):
            if low + step >= limit:
                raise NotReached
            low, step = low + step, 2 * step
        high = min(limit, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if met(middle) else (middle, high)
    met(high - 1)  # both are run, where the floor does not exclude the lower one

    stop = ceiling if ceiling is not None else high + most_runs
    below, above = high - 1, high + 1
    while len(runs) < most_runs and (below >= floor or above < stop):
        if below >= floor:
            met(below)
            below -= 1
        if above < stop and len(runs) < most_runs:
            met(above)
            above += 1
    met_below = [P for P in sorted(runs) if runs[P] and (P - 1 < floor or runs.get(P - 1) is False)]
    always = None
    if ceiling is not None and all(P in runs for P in range(high, ceiling)):
        missed = [P for P in runs if not runs[P]]
        always = max(missed) + 1 if missed else floor
    return Search(met_below[0], always, floor, ceiling, dict(sorted(runs.items())))


def floor_of(truth: Truth, target: Fraction, limit: int) -> int:
    """The least P (up to `limit`) for which the P-bit numbers nearest to the true output meet the target in every row."""
    low, high = LEAST - 1, limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _representable(truth, target, middle) else (middle, high)
    return high


def _representable(truth: Truth, target: Fraction, P: int) -> bool:
    """False only where every P-bit output misses the target in some row."""
    working = P + 64 + target.denominator.bit_length()
    with working_precision(working):
        columns = truth.enclosures(working)
        limit, context = arb(fmpq(target.numerator, target.denominator)), bits_of(P).context()
        for i in range(len(columns[0])):
            row = [column[i] for column in columns]
            distance = norm([_distance(t, context) for t in row])
            size = norm([t.abs_upper() for t in row])
            if distance > limit * size:
                return False
    return True


def _distance(t: arb, context: Any) -> arb:
    """A lower bound on the distance of the numbers in a ball from the nearest number of the format."""
    mantissa, exponent = t.mid().man_exp()
    with gmpy2.context(precision=max(2, int(mantissa).bit_length())):
        middle = (
            gmpy2.mul_2exp(gmpy2.mpfr(int(mantissa)), int(exponent))
            if exponent >= 0
            else gmpy2.div_2exp(gmpy2.mpfr(int(mantissa)), -int(exponent))
        )
    nearest = exactly(context.plus(middle))
    return (t - nearest).abs_lower()
