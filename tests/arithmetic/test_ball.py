"""Balls enclose, and say so when they cannot decide; decimals round outwards."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.arithmetic.ball import Ball, deciding, working_precision
from verify.arithmetic.decimals import decimal_ball, upper_decimal
from verify.arithmetic.exact import Exact2, ExactE
from verify.errors import OutOfRange, PrecisionNeeded, RequestError, Undecided

rationals = st.fractions(-50, 50, max_denominator=97)


def exact(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


def inside(ball: arb, value: mpmath.mpf) -> bool:
    mid, rad, exponent = (int(part) for part in ball.mid_rad_10exp(120))
    with mpmath.workdps(140):
        unit = mpmath.mpf(10) ** exponent
        return bool(abs(mid * unit - value) <= (rad + 1) * unit)


@settings(max_examples=300)
@given(st.integers(-(2**20), 2**20), st.integers(0, 40), st.sampled_from([53, 113]))
def test_exp_encloses_at_dyadic_points(numerator, shift, bits):
    """The kind of input on which mpmath's interval exp has been seen to fail (its issue 1181)."""
    x = Fraction(numerator, 2**shift)
    if abs(x) > 1000:
        return
    with working_precision(bits):
        ball = Ball("exp", bits).weight(arb(exact(x)))
    with mpmath.workdps(140):
        assert inside(ball, mpmath.exp(mpmath.mpf(x.numerator) / x.denominator))


@given(st.integers(-300, 300), rationals)
def test_exp2_and_log_enclose(n, x):
    with working_precision(90):
        ball = Ball("exp2", 90)
        power = ball.weight(arb(n))
        assert power.contains(arb(exact(Fraction(2) ** n)))
        if x > 0:
            (score,) = ball.log([arb(exact(x))])
            assert ball.weight(score).overlaps(arb(exact(x)))


@given(rationals, st.integers(-3, 6))
def test_rounding_agrees_with_fractions_or_says_open(x, bits):
    unit = Fraction(2) ** bits
    expected = Fraction((x * unit + Fraction(1, 2)).__floor__()) / unit
    with working_precision(80):
        try:
            (rounded,) = Ball("exp", 80).round_to_grid([arb(exact(x))], bits)
        except PrecisionNeeded:
            assert (
                x * unit + Fraction(1, 2)
            ).denominator == 1  # a tie, and x is not a dyadic number that a ball holds exactly
            return
    assert rounded == arb(exact(expected))


def test_undecided_questions_are_raised_not_guessed():
    with working_precision(60):
        ball = Ball("exp", 60)
        around_zero = arb(0, "1e-5")
        for question in (
            lambda: ball.log([around_zero]),
            lambda: ball.divide([arb(1)], [around_zero]),
            lambda: ball.round_to_grid([arb("0.5", "1e-9")], 0),
        ):
            with pytest.raises(PrecisionNeeded):
                question()
        for impossible in (lambda: ball.log([arb(-1)]), lambda: ball.divide([arb(1)], [arb(0)])):
            with pytest.raises(OutOfRange):
                impossible()
        assert ball.equal(arb(1), arb(1)) is None
        assert ball.equal(arb(1), arb(2)) is False
        with pytest.raises(RequestError, match="too large"):
            ball.weight(arb(10) ** 40)


def test_precision_is_raised_until_decided_and_restored():
    seen = []

    def question(bits: int) -> int:
        seen.append(bits)
        if bits < 500:
            raise PrecisionNeeded("not yet")
        return bits

    assert deciding(question, 100) == 800
    assert seen == [100, 200, 400, 800]
    with pytest.raises(Undecided, match="open at 1000 bits"):
        deciding(lambda bits: question(0), 100, limit=1000)
    before = ctx.prec
    with pytest.raises(ZeroDivisionError), working_precision(777):
        raise ZeroDivisionError
    assert ctx.prec == before


@given(st.fractions(max_denominator=10**9), st.integers(5, 60))
def test_printed_balls_contain_the_number(x, digits):
    printed = decimal_ball(lambda bits: Exact2().enclose(exact(x), bits), digits)
    assert abs(Fraction(printed["ball"]) - x) <= Fraction(printed["radius"])
    if x:
        assert Fraction(printed["radius"]) <= abs(x) * Fraction(10) ** (2 - digits)


@given(st.fractions(0, 10**6, max_denominator=10**9))
def test_upper_decimals_are_upper_bounds(x):
    with working_precision(100):
        printed = upper_decimal(arb(exact(x)))
    assert Fraction(printed) >= x
    assert Fraction(printed) <= x * Fraction(1001, 1000) + Fraction(1, 10**30)


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**6))
def test_elements_of_q_of_t_are_enclosed(n, D):
    """t^n at t = e^(1/D), also for exponents whose powers no float holds."""
    arithmetic = ExactE(D)
    ball = arithmetic.enclose(arithmetic.power(fmpq(n, D)), 200)
    below = arithmetic.enclose(arithmetic.power(fmpq(n - 1, D)), 200)
    with mpmath.workdps(140):
        assert inside(ball / below, mpmath.exp(mpmath.mpf(1) / D))


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(1, 9))
def test_order_and_rounding_in_q_of_t(a, b, D):
    arithmetic = ExactE(D)
    x = arithmetic.power(fmpq(a, D)) - arithmetic.power(fmpq(b, D))
    assert arithmetic.sign(x) == (a > b) - (a < b)
    (rounded,) = arithmetic.round_to_grid([x], 3)
    with mpmath.workdps(60):
        value = mpmath.exp(mpmath.mpf(a) / D) - mpmath.exp(mpmath.mpf(b) / D)
        assert abs(mpmath.mpf(int(rounded.p)) / int(rounded.q) - value) <= mpmath.mpf(1) / 16
