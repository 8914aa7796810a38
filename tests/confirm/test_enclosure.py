"""Enclosures against mpmath at high precision: the true value is always inside, and they are not wide."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from verify.confirm.document import Refused
from verify.confirm.enclosure import LARGEST_EXPONENT, MOST_BITS, Enclosure

DIGITS = 400
numbers = st.builds(
    lambda x, e: x * Fraction(2) ** e, st.fractions(-1000, 1000, max_denominator=10**9), st.integers(-30, 6)
)
precisions = st.sampled_from([24, 64, 128, 512])


def real(x: Fraction) -> Any:
    return mpmath.mpf(x.numerator) / x.denominator


def encloses(found: Enclosure, value: Any, bits: int) -> None:
    """The value lies inside, but for mpmath's own rounding; the width is a few units in the last place."""
    low, high = real(found.low), real(found.high)
    slack = abs(value) * mpmath.mpf(10) ** (10 - DIGITS)
    assert low - slack <= value <= high + slack
    assert high - low <= abs(value) * mpmath.mpf(2) ** (8 - bits)


@settings(max_examples=150)
@given(numbers, precisions)
def test_exp_log_and_roots(x: Fraction, bits: int) -> None:
    with mpmath.workdps(DIGITS):
        encloses(Enclosure.of(x, bits).exp(), mpmath.exp(real(x)), bits)
        assume(x > 0)
        encloses(Enclosure.of(x, bits).sqrt(), mpmath.sqrt(real(x)), bits)
        encloses(Enclosure.of(x, bits).log(), mpmath.log(real(x)), bits)


@pytest.mark.parametrize("x", [Fraction(LARGEST_EXPONENT), Fraction(-LARGEST_EXPONENT), Fraction(1, 10**300)])
def test_huge_and_tiny_scores(x: Fraction) -> None:
    with mpmath.workdps(DIGITS):
        encloses(Enclosure.of(x, 128).exp(), mpmath.exp(real(x)), 128)


@pytest.mark.parametrize("x", [1 + Fraction(1, 2**200), 1 - Fraction(1, 2**200), Fraction(2, 3), Fraction(4, 3)])
def test_logarithms_near_cancellation(x: Fraction) -> None:
    with mpmath.workdps(DIGITS):
        encloses(Enclosure.of(x, 128).log(), mpmath.log(real(x)), 128)


balls = st.tuples(numbers, st.fractions(0, 3, max_denominator=7), precisions)


@settings(max_examples=150)
@given(balls, balls, st.fractions(0, 1), st.fractions(0, 1), st.integers(-4, 6))
def test_every_value_of_the_arguments_stays_inside(a: Any, b: Any, s: Fraction, t: Fraction, n: int) -> None:
    """Plain fractions: sums, differences, products, squares, inverses, powers."""
    x, y = (Enclosure(m, m + r, bits) for m, r, bits in (a, (b[0], b[1], a[2])))
    p, q = x.low + s * (x.high - x.low), y.low + t * (y.high - y.low)
    pairs = [(x + y, p + q), (x - y, p - q), (x * y, p * q), (-x, -p), (x.square(), p * p)]
    if not x.low <= 0 <= x.high:
        pairs += [(x.inverse(), 1 / p), (x.power(n), p**n)]
    elif n < 0:
        with pytest.raises(ArithmeticError):
            x.power(n)
    else:
        pairs.append((x.power(n), p**n))
    for found, value in pairs:
        assert found.low <= value <= found.high
    assert x.square().low >= 0


@given(numbers, numbers)
def test_rational_arithmetic_is_exact(p: Fraction, q: Fraction) -> None:
    x, y = Enclosure.of(p, 24), Enclosure.of(q, 24)
    for found, value in ((x + y, p + q), (x * y, p * q), (x - y, p - q), (x.power(3), p**3)):
        assert found.exact and found.low == value
    assert Enclosure.of(p * p, 24).sqrt().low == abs(p) and Enclosure.of(p * p, 24).sqrt().exact


def test_where_there_is_no_value() -> None:
    zero, across = Enclosure.of(Fraction(0), 64), Enclosure(Fraction(-1), Fraction(1), 64)
    for undefined in (
        zero.inverse,
        across.inverse,
        zero.log,
        across.log,
        across.sqrt,
        Enclosure.of(Fraction(-1), 9).log,
    ):
        with pytest.raises(ArithmeticError):
            undefined()
    assert zero.exp().exact and zero.exp().low == 1 and Enclosure.of(Fraction(1), 9).log().low == 0


def test_limits_come_before_the_work() -> None:
    two = Enclosure.of(Fraction(2), 64)
    for too_much in (
        lambda: two.power(LARGEST_EXPONENT + 1),
        lambda: Enclosure.of(Fraction(LARGEST_EXPONENT + 1), 64).exp(),
        lambda: two.power(LARGEST_EXPONENT).power(LARGEST_EXPONENT),
    ):
        with pytest.raises(Refused):
            too_much()
    assert two.power(MOST_BITS // 8).low == 2 ** (MOST_BITS // 8)
