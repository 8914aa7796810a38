"""exp by three roads: Arb's balls, MPFR with directed rounding, and a Taylor sum in plain fractions with a proved remainder."""

from __future__ import annotations

from fractions import Fraction

import gmpy2
import mpmath
import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from verify.arithmetic.ball import Ball, working_precision


def rational_exp(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """`low <= e^x <= high`, both within a factor `1 +- 2^-bits`: Taylor's sum at x/2^k, squared k times, outwards.

    For 0 <= y <= 1/2 the terms after the n-th sum to at most twice the next one.
    """
    if x < 0:
        low, high = rational_exp(-x, bits)
        return 1 / high, 1 / low
    k = 0
    while x > Fraction(1, 2) * 2**k:
        k += 1
    y, unit = x / 2**k, 2 ** (bits + 2 * k + 8)
    total, term, n = Fraction(0), Fraction(1), 0
    while term * unit > 1 or n < 2:
        total, n = total + term, n + 1
        term = term * y / n
    low, high = total, total + 2 * term
    for _ in range(k):
        low = Fraction((low * low * unit).__floor__(), unit)
        high = Fraction(-((-high * high * unit).__floor__()), unit)
    return low, high


def ends(ball: arb) -> tuple[Fraction, Fraction]:
    """The ends of a ball, exactly."""
    (m, e), (r, s) = ball.mid().man_exp(), ball.rad().man_exp()
    middle, radius = Fraction(int(m)) * Fraction(2) ** int(e), Fraction(int(r)) * Fraction(2) ** int(s)
    return middle - radius, middle + radius


arguments = st.one_of(
    st.fractions(-40, 40, max_denominator=10**6),
    st.fractions(-1, 1, max_denominator=10**12),
    st.integers(-60, 60).map(Fraction),
    st.integers(1, 200).map(lambda n: Fraction(1, 2**n)),
)


def mpfr_exp(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """The bounds of MPFR: the argument and the function rounded down, and both up."""
    found = []
    for direction in (gmpy2.RoundDown, gmpy2.RoundUp):
        with gmpy2.context(precision=bits, round=direction):
            y = gmpy2.exp(gmpy2.mpfr(gmpy2.mpq(x.numerator, x.denominator)))
        p, q = y.as_integer_ratio()
        found.append(Fraction(int(p), int(q)))
    return found[0], found[1]


@given(arguments, st.sampled_from([20, 53, 113, 300]))
def test_three_roads_meet(x: Fraction, bits: int) -> None:
    with working_precision(bits):
        ball = ends(Ball("exp", bits).weight(arb(fmpq(x.numerator, x.denominator))))
    directed, taylor = mpfr_exp(x, bits), rational_exp(x, bits + 40)
    for name, (low, high) in (("Arb", ball), ("MPFR", directed)):
        assert low <= taylor[1] and taylor[0] <= high, name
        assert low <= taylor[0] or taylor[0] - low <= taylor[1] - taylor[0], name
    assert taylor[1] - taylor[0] <= taylor[1] / 2**bits


NOT_ENCLOSED = [
    (53, Fraction(-300133693, 67108864)),
    (53, Fraction(292165793, 2097152)),
    (53, Fraction(-129677391, 8388608)),
    (113, Fraction(-46499293, 268435456)),
    (113, Fraction(-51457149, 1048576)),
]
"""Arguments for which the interval exp of mpmath 1.3 is no enclosure (its issue 1181)."""


@pytest.mark.parametrize(("bits", "x"), NOT_ENCLOSED)
def test_where_another_interval_exp_fails_ours_encloses(bits: int, x: Fraction) -> None:
    taylor = rational_exp(x, bits + 60)
    with working_precision(bits):
        ball = ends(arb(fmpq(x.numerator, x.denominator)).exp())
    directed = mpfr_exp(x, bits)
    assert ball[0] <= taylor[0] and taylor[1] <= ball[1]
    assert directed[0] <= taylor[0] and taylor[1] <= directed[1]
    if mpmath.__version__.startswith("1.3"):
        mpmath.iv.prec = bits
        interval = mpmath.iv.exp(mpmath.iv.mpf(x.numerator) / x.denominator)
        low, high = (_fraction(end) for end in interval._mpi_)
        assert taylor[1] < low or high < taylor[0], "the reference outside is what makes this a regression test"


def _fraction(mpf: tuple) -> Fraction:
    sign, mantissa, exponent, _ = mpf
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (-1 if sign else 1)
