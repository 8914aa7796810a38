"""The formal logarithm: it undoes E on pure weights, and stays a formal logarithm everywhere else."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2, ExactE
from verify.arithmetic.formal import LogScore
from verify.arithmetic.symbolic import Form, universal_attention
from verify.errors import OutOfRange, UnsupportedOperation

positive_rationals = st.fractions(min_value=Fraction(1, 1000), max_value=1000)


def as_fmpq(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


# --- exp2 ----------------------------------------------------------------------------------------------------------------


@given(st.integers(-3000, 3000))
def test_exp2_powers_of_two_give_their_exponent(n: int) -> None:
    value = fmpq(2) ** n
    (score,) = Exact2().log([value])
    assert isinstance(score, fmpq) and score == n


@given(positive_rationals)
def test_exp2_other_values_stay_formal_and_weigh_themselves(x: Fraction) -> None:
    arithmetic = Exact2()
    (score,) = arithmetic.log([as_fmpq(x)])
    pure = x.numerator & (x.numerator - 1) == 0 and x.denominator & (x.denominator - 1) == 0
    assert isinstance(score, LogScore) is not pure
    assert arithmetic.weight(score) == as_fmpq(x)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(-1), Fraction(-8), Fraction(-1, 2), Fraction(-3)])
def test_exp2_refuses_what_is_not_positive(x: Fraction) -> None:
    with pytest.raises(OutOfRange):
        Exact2().log([as_fmpq(x)])


# --- exp ------------------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(-60, 60), st.integers(-20, 20), st.integers(1, 9))
def test_exp_powers_of_t_give_their_exponent_even_when_not_reduced(D: int, n: int, shift: int, c: int) -> None:
    """`E(n/D)` times a common factor over the same factor is still pure, and no gcd is taken on the way."""
    arithmetic = ExactE(D)
    factor = arithmetic.power(fmpq(shift, D)) + arithmetic.power(fmpq(c, D)) * 2 + 1
    value = (arithmetic.power(fmpq(n, D)) * factor) / (factor * 1)
    clumsy = (arithmetic.power(fmpq(n, D)) * factor * factor) / (factor * (factor + 0))
    for x in (value, clumsy):
        (score,) = arithmetic.log([x])
        assert isinstance(score, fmpq) and score == fmpq(n, D)


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(-9, 9), st.integers(-9, 9), positive_rationals)
def test_exp_other_values_stay_formal(D: int, n: int, m: int, c: Fraction) -> None:
    arithmetic = ExactE(D)
    value = arithmetic.power(fmpq(n, D)) * as_fmpq(c) + arithmetic.power(fmpq(m, D))
    (score,) = arithmetic.log([value])
    assert isinstance(score, LogScore)
    assert arithmetic.weight(score) == value
    if c != 1:
        (scaled,) = arithmetic.log([arithmetic.power(fmpq(n, D)) * as_fmpq(c)])
        assert isinstance(scaled, LogScore)


def test_exp_rationals() -> None:
    arithmetic = ExactE(3)
    assert arithmetic.log([fmpq(1)]) == [fmpq(0)]
    assert isinstance(arithmetic.log([fmpq(2)])[0], LogScore)
    for x in (fmpq(0), fmpq(-1), -arithmetic.power(fmpq(1, 3)), arithmetic.power(fmpq(1, 3)) * 0):
        with pytest.raises(OutOfRange):
            arithmetic.log([x])


@settings(deadline=None, max_examples=40)
@given(st.fractions(min_value=-5, max_value=5, max_denominator=12))
def test_exp_agrees_with_an_independent_logarithm(s: Fraction) -> None:
    arithmetic = ExactE(s.denominator)
    value = arithmetic.power(as_fmpq(s))
    (score,) = arithmetic.log([value])
    with mpmath.workdps(60):
        independent = mpmath.log(mpmath.mpf(arithmetic.enclose(value, 256).mid().str(60, radius=False)))
        assert abs(independent - mpmath.mpf(s.numerator) / s.denominator) < mpmath.mpf(10) ** -50
    assert score == as_fmpq(s)


# --- symbolic -------------------------------------------------------------------------------------------------------------


def test_symbolic_monomials_in_weights_give_their_form() -> None:
    arithmetic, columns = universal_attention(2, 1)
    (q, k, v) = columns
    product = q[0] * k[1]
    cases: list[Any] = [
        product,
        q[1],
        k[0],
        product + q[1] - k[0],
        product * fmpq(3),
        -product + fmpq(2),
        q[0] + fmpq(-5),
    ]
    for form in cases:
        (score,) = arithmetic.log([arithmetic.weight(form)])
        assert isinstance(score, Form) and arithmetic.equal_scores(score, form)
        assert arithmetic.weight(score) == arithmetic.weight(form)
    one = arithmetic.weight(product) / arithmetic.weight(product)
    assert arithmetic.log([one, fmpq(1)]) == [fmpq(0), fmpq(0)]
    (constant,) = arithmetic.log([arithmetic.weight(fmpq(4))])
    assert isinstance(constant, fmpq) and constant == 4
    (cancelled,) = arithmetic.log([arithmetic.weight(product) * (v[0] + 1) / (v[0] + 1)])
    assert arithmetic.equal_scores(cancelled, product)


def test_symbolic_carried_queries_and_keys_multiply_again() -> None:
    arithmetic, columns = universal_attention(2, 1)
    q, k, _ = columns
    (carried_q,) = arithmetic.log([arithmetic.weight(q[0])])
    (carried_k,) = arithmetic.log([arithmetic.weight(k[1])])
    assert arithmetic.weight(carried_q * carried_k) == arithmetic.weight(q[0] * k[1])


def test_symbolic_other_values_stay_formal() -> None:
    arithmetic, columns = universal_attention(2, 1)
    q, k, v = columns
    a = arithmetic.weight(q[0] * k[0])
    for value in (v[0], a * v[0], a * 2, a + 1, a + arithmetic.weight(q[0]), -a, fmpq(2), v[0] / v[1], a / (a + 1)):
        (score,) = arithmetic.log([value])
        assert isinstance(score, LogScore)
        assert arithmetic.weight(score) == value
    with pytest.raises(OutOfRange):
        arithmetic.log([a - a])


# --- equality of scores ---------------------------------------------------------------------------------------------------


def test_equal_scores() -> None:
    exact2, exactE = Exact2(), ExactE(2)
    assert exact2.equal_scores(fmpq(3), fmpq(3)) and not exact2.equal_scores(fmpq(3), fmpq(4))
    assert exact2.equal_scores(LogScore(fmpq(1), fmpq(3)), LogScore(fmpq(0), fmpq(6)))
    assert exact2.equal_scores(fmpq(1), LogScore(fmpq(0), fmpq(2)))
    assert not exact2.equal_scores(LogScore(fmpq(0), fmpq(3)), fmpq(1))
    assert exactE.equal_scores(fmpq(1, 2), fmpq(1, 2))
    assert exactE.equal_scores(fmpq(1, 2), LogScore(fmpq(0), exactE.power(fmpq(1, 2))))
    assert not exactE.equal_scores(fmpq(1, 2), LogScore(fmpq(0), fmpq(2)))
    arithmetic, (q, k, _) = universal_attention(2, 1)
    assert arithmetic.equal_scores(q[0] + k[0], k[0] + q[0])
    assert not arithmetic.equal_scores(q[0], q[1])
    with working_precision(64):
        ball = Ball("exp", 64)
        assert ball.equal_scores(arb(1), arb(2)) is False
        assert ball.equal_scores(arb(1), arb(1)) is None


def test_a_logarithm_times_a_fraction_is_refused_only_when_it_is_not_pure() -> None:
    arithmetic = ExactE(4)
    (pure,) = arithmetic.log([arithmetic.power(fmpq(1, 2))])
    assert arithmetic.weight(pure * fmpq(1, 2)) == arithmetic.power(fmpq(1, 4))
    (formal,) = arithmetic.log([arithmetic.power(fmpq(1, 2)) + 1])
    with pytest.raises(UnsupportedOperation):
        _ = formal * fmpq(1, 2)
