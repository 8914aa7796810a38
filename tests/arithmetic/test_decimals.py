"""Printed balls round outwards: checked with fractions, from exact balls, wide balls and extreme exponents."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from tests.independent import ends
from verify.arithmetic.ball import working_precision
from verify.arithmetic.decimals import _decimal, _printed, decimal_ball, upper_decimal
from verify.arithmetic.exact import Exact2, ExactE
from verify.errors import PrecisionNeeded, Undecided


def exact(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


wide = st.one_of(
    st.fractions(max_denominator=10**9),
    st.builds(lambda n, e: Fraction(n) * Fraction(10) ** e, st.integers(-(10**30), 10**30), st.integers(-400, 400)),
    st.builds(lambda n, e: Fraction(n) * Fraction(2) ** e, st.integers(-9, 9), st.integers(-2000, 2000)),
)


@given(wide, st.integers(1, 60))
def test_printed_balls_contain_the_number(x, digits):
    printed = decimal_ball(lambda bits: Exact2().enclose(exact(x), bits), digits)
    assert abs(Fraction(printed["ball"]) - x) <= Fraction(printed["radius"])
    if x:
        assert Fraction(printed["radius"]) <= abs(x) * Fraction(10) ** (2 - digits)
    else:
        assert printed == {"ball": "0", "radius": "0"}


@given(wide, st.fractions(0, 10**6, max_denominator=10**6), st.integers(-300, 300), st.integers(1, 40))
def test_the_best_effort_contains_the_whole_ball(x, r, exponent, digits):
    """Balls wider than their midpoint included: both ends of the ball lie within the printed radius."""
    with working_precision(400):
        ball = arb(exact(x), exact(r)) * arb(2) ** exponent
    printed = decimal_ball(lambda bits: ball, digits, best_effort=True)
    for end in ends(ball):
        assert abs(Fraction(printed["ball"]) - end) <= Fraction(printed["radius"])


@given(st.integers(-(10**40), 10**40), st.integers(0, 10**25), st.integers(-60, 60))
def test_what_is_printed_covers_midpoint_and_radius(mid, rad, exponent):
    printed = _printed(mid, rad, exponent)
    unit = Fraction(10) ** exponent
    for end in (mid - rad, mid + rad):
        assert abs(Fraction(printed["ball"]) - end * unit) <= Fraction(printed["radius"])
    assert Fraction(printed["radius"]) <= 100 * rad * unit


@given(st.integers(-(10**50), 10**50), st.integers(-500, 500))
def test_decimals_are_exact(mantissa, exponent):
    text = _decimal(mantissa, exponent)
    assert Fraction(text) == mantissa * Fraction(10) ** exponent
    assert len(text) <= len(str(mantissa)) + 50


@given(wide.map(abs))
def test_upper_decimals_are_upper_bounds(x):
    with working_precision(100):
        printed = upper_decimal(arb(exact(x)))
    assert Fraction(printed) >= x
    assert Fraction(printed) <= x * Fraction(1001, 1000)


@given(st.fractions(0, 10**6, max_denominator=10**6), st.fractions(0, 10**6, max_denominator=10**6), st.integers(1, 12))
def test_upper_decimals_bound_the_whole_ball(x, r, digits):
    with working_precision(60):
        ball = arb(exact(x), exact(r))
    assert Fraction(upper_decimal(ball, digits)) >= ends(ball)[1]


def test_what_has_no_upper_bound():
    for unbounded in (arb("nan"), arb("inf"), arb(0, "inf")):
        assert upper_decimal(unbounded) == "inf"
    assert upper_decimal(arb(0)) == "0"


@pytest.mark.parametrize("n", [10**6, -(10**6), 10**15, -(10**15), 10**30])
def test_extreme_exponents(n):
    """e^n: log10 of what is printed is n / ln 10."""
    arithmetic = ExactE(1)
    printed = decimal_ball(lambda bits: arithmetic.enclose(arithmetic.power(fmpq(n)), bits), 20)
    mantissa, _, exponent = printed["ball"].partition("e")
    radius_exponent = int(printed["radius"].removeprefix("1e"))
    assert 18 <= int(exponent) - radius_exponent <= 40
    with working_precision(300):
        middle = arb(exact(Fraction(mantissa))).log() + int(exponent) * arb(10).log()
        assert abs(middle - n) < arb(10) ** -17


def test_digits_out_of_reach_are_undecided():
    with pytest.raises(Undecided, match="20 digits"):
        decimal_ball(lambda bits: arb(1, 1), 20)

    asked = []

    def open_at_first(bits: int) -> arb:
        asked.append(bits)
        if len(asked) < 3:
            raise PrecisionNeeded("not yet")
        return arb(1) / 3

    assert decimal_ball(open_at_first, 5)["ball"].startswith("0.33333")
    assert asked == [84, 168, 336]
