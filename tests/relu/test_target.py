"""Targets: values, slopes, touching points and least errors against mpmath."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs.relu_networks import RANGES
from tests.proofs.checking import near
from tests.relu.plain import DIGITS, FORMULAS, number
from verify.arithmetic.ball import working_precision
from verify.arithmetic.formal import rational
from verify.relu.target import BITS, Target

SLOPES = {
    "square": lambda x: 2 * x,
    "reciprocal": lambda x: -1 / x**2,
    "ratio inversion": lambda x: 1 / (1 - x) ** 2,
    "exp": mpmath.exp,
    "log": lambda x: 1 / x,
}


@pytest.mark.parametrize("target, low, high", RANGES, ids=lambda x: getattr(x, "name", str(x)))
@settings(max_examples=30)
@given(share=st.fractions(0, 1))
def test_values_slopes_and_touching_points(target: Target, low: Fraction, high: Fraction, share: Fraction) -> None:
    x = low + (high - low) * share
    with working_precision(BITS), mpmath.workdps(DIGITS):
        f, slope = FORMULAS[type(target)](number(x)), SLOPES[target.name](number(x))
        assert near(target.value(rational(x)), f) and near(target.slope(rational(x)), slope)
        assert near(target.sample(x), f)
        if x:
            assert near(target.touching(target.slope(rational(x))), number(x))
            assert near(target.gap(target.slope(rational(x))), f - slope * number(x))


@pytest.mark.parametrize("target, low, high", RANGES, ids=lambda x: getattr(x, "name", str(x)))
@settings(max_examples=20)
@given(ends=st.tuples(st.fractions(0, 1), st.fractions(0, 1)), offset=st.fractions(-1, 1), turn=st.fractions(-1, 1))
def test_no_line_is_better_than_the_least_error(
    target: Target,
    low: Fraction,
    high: Fraction,
    ends: tuple[Fraction, Fraction],
    offset: Fraction,
    turn: Fraction,
) -> None:
    """The half-way line attains it on a fine grid; any other line is worse somewhere."""
    a, b = (low + (high - low) * share for share in sorted(ends))
    if b - a < Fraction(1, 1000):
        return
    with working_precision(BITS), mpmath.workdps(DIGITS):
        f, x0, x1 = FORMULAS[type(target)], number(a), number(b)
        least = number_of(target.least_error(arb(rational(a)), arb(rational(b))))
        chord = (f(x1) - f(x0)) / (x1 - x0)
        touch = number_of(target.touching(ball(chord)))
        middle = ((f(x0) - chord * x0) + (f(touch) - chord * touch)) / 2
        points = [x0 + (x1 - x0) * k / 60 for k in range(61)] + [touch]
        best = max(abs(f(x) - chord * x - middle) for x in points)
        assert abs(best - least) <= mpmath.mpf(10) ** -60
        other = max(abs(f(x) - (chord + number(turn)) * x - middle - number(offset)) for x in (x0, touch, x1))
        assert other >= least - mpmath.mpf(10) ** -60


def number_of(x: arb) -> mpmath.mpf:
    return mpmath.mpf(x.mid().str(DIGITS, radius=False))


def ball(x: mpmath.mpf) -> arb:
    return arb(mpmath.nstr(x, DIGITS))
