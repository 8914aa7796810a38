"""Exact arithmetic with both kernels: weights, equality, order and rounding against fractions and mpmath at high precision."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import mpmath
import pytest
from flint import arb, fmpq
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.independent import nearest
from verify.arithmetic.exact import SCORE_LIMIT, Exact2, ExactE, ScoreDenominator, common_denominator
from verify.arithmetic.formal import LogScore
from verify.arithmetic.interface import Visible
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import OutOfRange, RequestError, Undecided, UnsupportedOperation

rationals = st.fractions(-20, 20, max_denominator=30)


def as_fmpq(x: Fraction | int) -> fmpq:
    return fmpq(x.numerator, x.denominator)


def as_fraction(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


# --- kernel exp2 ---------------------------------------------------------------------------------------------------------


@given(st.integers(-400, 400))
def test_exp2_weights_are_powers_of_two(n):
    assert as_fraction(Exact2().power(fmpq(n))) == Fraction(2) ** n


@pytest.mark.parametrize("score", [SCORE_LIMIT, -SCORE_LIMIT])
def test_exp2_takes_scores_up_to_its_limit(score):
    arithmetic = Exact2()
    assert arithmetic.power(fmpq(score)) * arithmetic.power(fmpq(-score)) == 1
    with pytest.raises(RequestError, match="too large"):
        arithmetic.power(fmpq(score + (1 if score > 0 else -1)))
    with pytest.raises(RequestError, match="not an integer"):
        arithmetic.power(fmpq(1, 2))


@given(st.lists(st.tuples(st.integers(-60, 60), st.fractions(Fraction(1, 9), 9, max_denominator=9)), min_size=1))
def test_exp2_row_weights_are_the_weights_up_to_one_factor(scores):
    arithmetic = Exact2()
    row = [(j, fmpq(n) if factor == 1 else LogScore(fmpq(n), as_fmpq(factor))) for j, (n, factor) in enumerate(scores)]
    weights = arithmetic.row_weights(0, row)
    assert [j for j, _ in weights] == list(range(len(scores)))
    true = [factor * Fraction(2) ** n for n, factor in scores]
    common = {as_fraction(weight) / value for (_, weight), value in zip(weights, true, strict=True)}
    assert len(common) == 1 and common.pop() > 0


@given(rationals, st.integers(-4, 8))
def test_exp2_rounding_goes_up_at_ties(x, bits):
    arithmetic = Exact2()
    tie = (Fraction(x.numerator) + Fraction(1, 2)) / Fraction(2) ** bits
    for value in (x, tie, -tie):
        (rounded,) = arithmetic.round_to_grid([as_fmpq(value)], bits)
        assert as_fraction(rounded) == nearest(value, bits)
    (up,) = arithmetic.round_to_grid([as_fmpq(tie)], bits)
    assert as_fraction(up) == Fraction(x.numerator + 1) / Fraction(2) ** bits


@given(rationals, rationals, rationals.filter(bool))
def test_exp2_columns_are_fractions(a, b, c):
    arithmetic = Exact2()
    A, B, C = ([as_fmpq(x)] for x in (a, b, c))
    results = [arithmetic.add(A, B), arithmetic.subtract(A, B), arithmetic.multiply(A, B), arithmetic.divide(A, C)]
    results += [arithmetic.scale(A, b), arithmetic.number(A)]
    assert [as_fraction(x) for (x,) in results] == [a + b, a - b, a * b, a / c, a * b, a]
    assert [as_fraction(x) for x in arithmetic.constant(a, 3)] == [a] * 3
    with pytest.raises(OutOfRange):
        arithmetic.divide([fmpq(1), fmpq(1)], [fmpq(1), fmpq(0)])


# --- kernel exp: equality is decided --------------------------------------------------------------------------------------


@st.composite
def elements(draw, D: int, depth: int = 3):
    """An element of Q(t) and the recipe of its value: (element, function of t)."""
    if depth == 0 or draw(st.booleans()):
        n, c = draw(st.integers(-5, 5)), draw(st.fractions(-3, 3, max_denominator=4))
        element = ExactE(D).power(fmpq(n, D)) * as_fmpq(c)
        return element, lambda t: c.numerator * t**n / c.denominator
    (x, f), (y, g) = draw(elements(D, depth - 1)), draw(elements(D, depth - 1))
    match draw(st.sampled_from("+-*/")):
        case "+":
            return x + y, lambda t: f(t) + g(t)
        case "-":
            return x - y, lambda t: f(t) - g(t)
        case "*":
            return x * y, lambda t: f(t) * g(t)
        case _:
            assume(bool(y))
            return x / y, lambda t: f(t) / g(t)


def real(D: int) -> mpmath.mpf:
    return mpmath.exp(mpmath.mpf(1) / D)


def holds(ball: arb, value: mpmath.mpf, digits: int) -> bool:
    """Whether a value known to `digits` digits is in the ball, as far as these digits tell."""
    if not ball.is_finite():
        return False
    mid, rad, exponent = (int(part) for part in ball.mid_rad_10exp(digits))
    with mpmath.workdps(digits + 20):
        unit = mpmath.mpf(10) ** exponent
        slack = mpmath.mpf(10) ** (10 - digits) * (1 + abs(value))
        return bool(abs(mid * unit - value) <= (rad + 1) * unit + slack)


@settings(max_examples=150)
@given(st.data(), st.integers(1, 6))
def test_elements_are_enclosed_and_zero_and_sign_are_right(data, D):
    x, f = data.draw(elements(D))
    arithmetic = ExactE(D)
    with mpmath.workdps(300):
        value = f(real(D))
        assert holds(arithmetic.enclose(x, 300), value, 80)
        if arithmetic.is_zero(x):
            assert abs(value) < mpmath.mpf(10) ** -200
            assert arithmetic.sign(x) == 0 and arithmetic.equal(x, fmpq(0))
        else:
            assert abs(value) > mpmath.mpf(10) ** -200
            assert arithmetic.sign(x) == (1 if value > 0 else -1)


@settings(max_examples=100)
@given(st.data(), st.integers(1, 4))
def test_equality_is_that_of_the_real_numbers(data, D):
    """(x + y)^2 and x^2 + 2xy + y^2 are equal; a difference of one part in 10^30 is a difference."""
    arithmetic = ExactE(D)
    (x, _), (y, _) = data.draw(elements(D, 2)), data.draw(elements(D, 2))
    left, right = (x + y) * (x + y), x * x + x * y * fmpq(2) + y * y
    assert arithmetic.equal(left, right)
    assert not arithmetic.equal(left + fmpq(1, 10**30), right)
    if y and x + y:
        assert arithmetic.equal(x / y, x * (x + y) / (y * (x + y)))


def test_equal_and_nearly_equal():
    arithmetic = ExactE(3)
    t = arithmetic.power(fmpq(1, 3))
    assert arithmetic.equal((t * t - 1) / (t - 1), t + 1)
    assert not arithmetic.equal((t * t - 1) / (t - 1), t + 2)
    assert not arithmetic.equal(t, arithmetic.power(fmpq(2, 3)))
    # e^-1000 is no float's difference from 0 beside 1, and e^-(10^6), e^-(10^15) are nobody's.
    for n in (1000, 10**6, 10**15):
        near = arithmetic.power(fmpq(-n)) + 1
        assert not arithmetic.equal(near, fmpq(1))
        assert arithmetic.sign(near - 1) == 1 and arithmetic.sign(1 - near) == -1
        assert arithmetic.equal((near - 1) * arithmetic.power(fmpq(n)), fmpq(1))
    # A rational that agrees with e to 60 digits is not e.
    with mpmath.workdps(70):
        e = Fraction(int(mpmath.floor(mpmath.e * mpmath.mpf(10) ** 60)), 10**60)
    whole = arithmetic.power(fmpq(1))
    assert not arithmetic.equal(whole, as_fmpq(e))
    assert arithmetic.sign(whole - as_fmpq(e)) == 1
    assert arithmetic.sign(whole - as_fmpq(e + Fraction(1, 10**60))) == -1


@pytest.mark.parametrize("n", [10**6, 10**15, -(10**6), -(10**15)])
def test_huge_and_tiny_weights_are_enclosed(n):
    arithmetic = ExactE(1)
    weight = arithmetic.power(fmpq(n))
    ball = arithmetic.enclose(weight, 200)
    assert 0 < ball and ball.rel_accuracy_bits() > 100
    with mpmath.workdps(80):
        assert holds(ball.log(), mpmath.mpf(n), 60)
        quotient = arithmetic.enclose((weight + arithmetic.power(fmpq(n - 1))) / weight, 200)
        assert holds(quotient, 1 + mpmath.exp(-1), 60)


def test_order_that_no_precision_in_reach_decides_is_undecided_not_guessed():
    arithmetic = ExactE(1)
    tiny = arithmetic.power(fmpq(-(10**9)))
    for x in (tiny * tiny + tiny * 2 - tiny, 1 + tiny):
        assert arithmetic.sign(x) == 1
    open_question = (arithmetic.power(fmpq(1)) + 1) * (1 + tiny) - arithmetic.power(fmpq(1)) - 1
    assert arithmetic.sign(open_question) == 1  # a multiple of the tiny weight, once like terms are collected
    with pytest.raises(Undecided, match="rounding"):
        arithmetic.round_to_grid([tiny + fmpq(1, 2)], 0)
    with pytest.raises(Undecided, match="rounding"):
        arithmetic.round_to_grid([fmpq(1, 2) - tiny], 0)


# --- kernel exp: scores, logarithms, rounding, numbers ----------------------------------------------------------------------


@given(st.fractions(-20, 20, max_denominator=40), st.fractions(-20, 20, max_denominator=40))
def test_exp_turns_sums_into_products_and_log_undoes_it(a, b):
    arithmetic = ExactE(lcm(a.denominator, b.denominator))
    A, B = arithmetic.exp([as_fmpq(a), as_fmpq(b)])
    assert arithmetic.equal(A * B, arithmetic.weight(as_fmpq(a + b)))
    assert arithmetic.equal(A, B) is (a == b)
    assert arithmetic.log([A, A / B, A * B]) == [as_fmpq(a), as_fmpq(a - b), as_fmpq(a + b)]
    both = A + B * 2
    (formal,) = arithmetic.log([both])
    assert arithmetic.equal(arithmetic.weight(formal), both)
    assert arithmetic.equal(arithmetic.weight(formal * fmpq(-2) + as_fmpq(a)), A / (both * both))
    with pytest.raises(OutOfRange):
        arithmetic.log([-both])
    with pytest.raises(OutOfRange):
        arithmetic.log([A - A])


@given(st.integers(1, 60), st.fractions(-5, 5, max_denominator=60))
def test_scores_outside_the_denominator_are_named(D, score):
    arithmetic = ExactE(D)
    if D % score.denominator:
        with pytest.raises(ScoreDenominator) as caught:
            arithmetic.power(as_fmpq(score))
        assert caught.value.denominator == score.denominator
        ExactE(lcm(D, caught.value.denominator)).power(as_fmpq(score))
    else:
        assert arithmetic.exponent_of(arithmetic.power(as_fmpq(score))) == as_fmpq(score)


@given(st.data())
def test_common_denominator_serves_every_score(data):
    entries = st.fractions(-3, 3, max_denominator=12)
    table = lambda n, m: [[data.draw(entries) for _ in range(m)] for _ in range(n)]  # noqa: E731
    X, W_Q, W_K = table(3, 2), table(2, 2), table(2, 2)
    D = common_denominator([list(column) for column in zip(*X, strict=True)], W_Q, W_K)
    project = lambda W, x: [sum(x[k] * W[k][c] for k in range(2)) for c in range(2)]  # noqa: E731
    for x in X:
        for y in X:
            score = sum(a * b for a, b in zip(project(W_Q, x), project(W_K, y), strict=True))
            assert D % Fraction(score).denominator == 0


@given(st.integers(-30, 30), st.integers(1, 5), rationals, st.integers(-3, 12))
def test_exp_rounding(n, D, c, bits):
    """Against mpmath for irrational values; rational values (also in disguise) round like fractions, ties up."""
    arithmetic = ExactE(D)
    weight = arithmetic.power(fmpq(n, D))
    (rounded,) = arithmetic.round_to_grid([weight * as_fmpq(c)], bits)
    if n and c:
        with mpmath.workdps(60):
            value = mpmath.exp(mpmath.mpf(n) / D) * c.numerator / c.denominator * mpmath.mpf(2) ** bits
            assert as_fraction(rounded) * Fraction(2) ** bits == int(mpmath.floor(value + mpmath.mpf(1) / 2))
    disguised = (weight + 1) * as_fmpq(c) / (weight + 1)
    tie = (Fraction(c.numerator) + Fraction(1, 2)) / Fraction(2) ** bits
    hidden_tie = (weight + 2) * as_fmpq(tie) / (weight + 2)
    for x, value in ((disguised, c), (hidden_tie, tie), (as_fmpq(-tie), -tie)):
        (rounded,) = arithmetic.round_to_grid([x], bits)
        assert as_fraction(rounded) == nearest(value, bits)


@given(st.integers(5, 4000), st.sampled_from([1, -1]), st.integers(-9, 9), st.integers(0, 5))
def test_exp_rounding_next_to_a_tie(n, side, k, bits):
    """k + 1/2 units of 2^-bits, and e^-n to the one or the other side of it."""
    arithmetic = ExactE(1)
    tie = (Fraction(k) + Fraction(1, 2)) / 2**bits
    (rounded,) = arithmetic.round_to_grid([arithmetic.power(fmpq(-n)) * fmpq(side) + as_fmpq(tie)], bits)
    assert as_fraction(rounded) == Fraction(k + (side > 0), 2**bits)


@given(rationals, st.integers(1, 9))
def test_only_rational_values_become_numbers(c, n):
    arithmetic = ExactE(1)
    t = arithmetic.power(fmpq(n))
    assert arithmetic.number([(t + 1) * as_fmpq(c) / (t + 1), as_fmpq(c)]) == [as_fmpq(c)] * 2
    for irrational in (t, t * as_fmpq(c) + 1 if c else t, t / (t + 1)):
        with pytest.raises(UnsupportedOperation, match="irrational"):
            arithmetic.number([irrational])


@pytest.mark.parametrize("arithmetic", [Exact2(), ExactE(1)])
def test_formal_logarithms_are_not_numbers_but_can_be_compared(arithmetic):
    three, six, nine = arithmetic.log([fmpq(3), fmpq(6), fmpq(9)])
    for question in (lambda: arithmetic.number([three]), lambda: arithmetic.round_to_grid([three], 0)):
        with pytest.raises(UnsupportedOperation, match="logarithm"):
            question()
    for equal in (arithmetic.equal, arithmetic.equal_scores):
        assert equal(three + three, nine) and equal(nine - three, three)
        assert not equal(three, six) and not equal(three, fmpq(1)) and not equal(fmpq(1), three)
    with pytest.raises(UnsupportedOperation):
        three * three


@pytest.mark.parametrize("arithmetic", [Exact2(), ExactE(1)])
def test_weights_that_sum_to_zero_are_refused(arithmetic):
    """A row that sees nothing has no average."""
    identity = RationalMatrix.identity(1)
    Q = arithmetic.project([arithmetic.numbers([Fraction(1), Fraction(2)])], identity)
    with pytest.raises(OutOfRange, match="row 1"):
        arithmetic.normalise(arithmetic.weights(arithmetic.scores(Q, Q, Visible([[0], []]))), Q)


@given(rationals, rationals, st.integers(1, 4))
def test_relu_keeps_what_is_positive(a, b, n):
    """Rationals, and `a e^(1/n) + b`, whose sign mpmath decides at 60 digits."""
    x = as_fmpq(a)
    assert Exact2().relu([x, fmpq(0)]) == [as_fmpq(max(a, Fraction(0))), fmpq(0)]
    arithmetic = ExactE(n)
    t = arithmetic.power(fmpq(1, n))
    (found,) = arithmetic.relu([t * x + as_fmpq(b)])
    with mpmath.workdps(60):
        real = (
            mpmath.exp(mpmath.mpf(1) / n) * (mpmath.mpf(a.numerator) / a.denominator)
            + mpmath.mpf(b.numerator) / b.denominator
        )
    assert arithmetic.equal(found, t * x + as_fmpq(b) if real > 0 else fmpq(0))
    with pytest.raises(UnsupportedOperation, match="logarithm"):
        Exact2().relu(Exact2().log([fmpq(3)]))
