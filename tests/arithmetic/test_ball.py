"""Balls enclose, and say so when they cannot decide."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import mpmath
import pytest
from flint import arb, arb_mat, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from tests.independent import encloses, ends
from verify.arithmetic.ball import SCORE_LIMIT, Ball, deciding, working_precision
from verify.arithmetic.exact import ExactE
from verify.arithmetic.interface import Visible
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import OutOfRange, PrecisionNeeded, RequestError, Undecided

rationals = st.fractions(-50, 50, max_denominator=97)


def exact(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


def inside(ball: arb, value: mpmath.mpf) -> bool:
    mid, rad, exponent = (int(part) for part in ball.mid_rad_10exp(120))
    with mpmath.workdps(140):
        unit = mpmath.mpf(10) ** exponent
        return bool(abs(mid * unit - value) <= (rad + 1) * unit)


@pytest.mark.parametrize("bits", [53, 113])
def test_exp_encloses_at_dyadic_points(bits):
    """The kind of input on which mpmath's interval exp has been seen to fail (its issue 1181): full mantissas, many of them."""
    random = Random(1181)
    with working_precision(bits), mpmath.workprec(400):
        ball = Ball("exp", bits)
        for _ in range(4000):
            numerator, shift = random.randrange(-(2**bits), 2**bits), random.randrange(bits - 10, bits + 60)
            x = arb(fmpq(numerator, 2**shift))
            assert x.is_exact()
            low, high = ends(ball.weight(x))
            value = mpmath.exp(mpmath.ldexp(numerator, -shift))
            sign, mantissa, exponent, _ = value._mpf_
            middle, error = Fraction(int(mantissa)) * Fraction(2) ** exponent, Fraction(2) ** (exponent + 2)
            assert sign == 0 and low <= middle - error and middle + error <= high
            assert high - low <= middle * Fraction(2) ** (4 - bits)


@given(st.integers(-300, 300), rationals)
def test_exp2_and_log_enclose(n, x):
    with working_precision(90):
        ball = Ball("exp2", 90)
        power = ball.weight(arb(n))
        assert encloses(power, Fraction(2) ** n)
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


# --- scores and divisors that need more precision -------------------------------------------------------------------------


@given(st.integers(20, 1200), st.sampled_from([1, -1]), st.sampled_from(["exp", "exp2"]))
def test_long_scores_need_precision_and_are_not_refused(digits, sign, kernel):
    """Arb's exp is unbounded where a score has more bits than the working precision."""
    score = Fraction(sign * 10**digits)

    def question(bits: int) -> arb:
        with working_precision(bits):
            one, two = Ball(kernel, bits).exp([arb(exact(score)), arb(exact(score + 1))])
            ratio = two / one
            if not ratio.rad() < 1e-6:
                raise PrecisionNeeded("wide")
            return ratio

    ratio = deciding(question, 53)
    if kernel == "exp2":
        assert encloses(ratio, Fraction(2))
    else:
        with mpmath.workdps(140):
            assert inside(ratio, mpmath.e + 0)


def test_scores_beyond_every_limit_are_refused():
    for kernel in ("exp", "exp2"):
        with working_precision(100):
            ball = Ball(kernel, 100)
            with pytest.raises(RequestError, match="too large; ball arithmetic takes scores up to 2\\^4096"):
                ball.weight(arb(SCORE_LIMIT) * 2)
            assert ball.weight(-arb(SCORE_LIMIT) * 2) < 1e-300
            for unknown in (arb("nan"), arb(0, "inf"), arb(0, SCORE_LIMIT * 4)):
                with pytest.raises(PrecisionNeeded):
                    ball.weight(unknown)


@given(st.lists(st.fractions(-9, 9, max_denominator=20), min_size=1, max_size=6), st.sampled_from([24, 53, 200]))
def test_columns_contain_what_fractions_say(entries, bits):
    with working_precision(bits):
        ball = Ball("exp2", bits)
        A, B = ball.numbers(entries), ball.numbers(entries[::-1])
        pairs = list(zip(entries, entries[::-1], strict=True))
        for got, wanted in (
            (ball.add(A, B), [x + y for x, y in pairs]),
            (ball.subtract(A, B), [x - y for x, y in pairs]),
            (ball.multiply(A, B), [x * y for x, y in pairs]),
            (ball.scale(A, Fraction(-7, 3)), [x * Fraction(-7, 3) for x in entries]),
            (ball.concatenate([A, B]), [*entries, *entries[::-1]]),
            (ball.constant(Fraction(1, 3), 4), [Fraction(1, 3)] * 4),
        ):
            assert len(got) == len(wanted)
            assert all(encloses(x, y) for x, y in zip(got, wanted, strict=True))
        if 0 in entries:
            with pytest.raises(OutOfRange):
                ball.divide(A, B)
        else:
            assert all(encloses(q, x / y) for q, (x, y) in zip(ball.divide(A, B), pairs, strict=True))


@pytest.mark.parametrize("numerator", [arb(0), arb(1), arb(0, 1)])
@pytest.mark.parametrize("divisor", [arb(0, 1), arb(1, 1), arb(-1, 1), arb(0, "1e-100"), arb("nan")])
def test_no_quotient_by_what_may_be_zero(numerator, divisor):
    """Zero over a ball around zero included."""
    with working_precision(60), pytest.raises(PrecisionNeeded):
        Ball("exp", 60).divide([arb(2), numerator], [arb(3), divisor])


@pytest.mark.parametrize("argument", [arb(0, 1), arb(1, 1), arb(1, 2), arb("nan")])
def test_no_logarithm_of_what_may_not_be_positive(argument):
    with working_precision(60), pytest.raises(PrecisionNeeded):
        Ball("exp", 60).log([arb(2), argument])


@pytest.mark.parametrize("argument", [arb(0), arb(-3), arb(-3, 1)])
def test_no_logarithm_of_what_is_not_positive(argument):
    with working_precision(60), pytest.raises(OutOfRange):
        Ball("exp2", 60).log([argument])


@given(st.integers(-40, 40), st.integers(-3, 8), st.integers(1, 300), st.booleans())
def test_a_ball_next_to_a_tie_is_rounded_only_on_one_side_of_it(k, bits, exponent, above):
    """(k + 1/2) 2^-bits +- 2^-exponent: decided once the ball is clear of the tie; ties that balls hold exactly go up."""
    tie, offset = (Fraction(k) + Fraction(1, 2)) / Fraction(2) ** bits, Fraction(1, 2 ** (exponent + 12))
    with working_precision(500):
        ball = Ball("exp", 500)
        center = tie + offset if above else tie - offset
        up, down = Fraction(k + 1) / Fraction(2) ** bits, Fraction(k) / Fraction(2) ** bits
        (rounded,) = ball.round_to_grid([arb(exact(center), exact(offset / 2))], bits)
        assert rounded == arb(exact(up if above else down))
        (rounded,) = ball.round_to_grid([arb(exact(tie))], bits)
        assert rounded == arb(exact(up))
        with pytest.raises(PrecisionNeeded):
            ball.round_to_grid([arb(exact(center), exact(offset * 2))], bits)


def test_a_normaliser_that_may_be_zero_is_not_divided_by():
    with working_precision(60):
        ball = Ball("exp", 60)
        for weights in ([0, 0], [arb(0, 1), 1]):
            with pytest.raises(PrecisionNeeded, match="row 0"):
                ball.normalise(arb_mat(1, 2, weights), arb_mat(2, 1, [1, 2]))


def test_precision_is_restored_when_a_question_fails_at_any_depth():
    before = ctx.prec

    def question(bits: int) -> int:
        with working_precision(bits), working_precision(3 * bits):
            assert ctx.prec == 3 * bits
            raise PrecisionNeeded("never")

    with pytest.raises(Undecided, match="open at 400 bits: never"):
        deciding(question, 100, limit=400)
    assert ctx.prec == before
    seen = []
    with pytest.raises(Undecided):
        deciding(lambda bits: seen.append(bits) or question(bits), 900, limit=400)
    assert seen == [900]
    with pytest.raises(OutOfRange):
        deciding(lambda bits: Ball("exp", bits).log([arb(-1)]), 100)
    assert ctx.prec == before


@given(st.integers(1, 5), st.sampled_from([53, 113]), st.data())
def test_weights_that_a_row_does_not_see_are_exactly_zero(n, bits, data):
    numbers = [Fraction(data.draw(st.integers(-6, 6))) for _ in range(n)]
    with working_precision(bits):
        ball = Ball("exp2", bits)
        Q = ball.project([ball.numbers(numbers)], RationalMatrix.identity(1))
        weights = ball.weights(ball.scores(Q, Q, Visible([[i] for i in range(n)]))).entries()
        for i in range(n):
            for j in range(n):
                weight = weights[i * n + j]
                assert encloses(weight, Fraction(2) ** int(numbers[i] ** 2)) if i == j else weight.is_zero()


@given(rationals, st.fractions(0, 2, max_denominator=9))
def test_relu_encloses_every_value_of_the_ball(x, radius):
    """Balls on either side of zero and across it."""
    with working_precision(100):
        ball = Ball("exp", 100)
        middle, r = ball.numbers([x, radius])
        (found,) = ball.relu([middle + arb(0, 1) * r])
        for share in (Fraction(-1), Fraction(-1, 3), Fraction(0), Fraction(1)):
            assert encloses(found, max(x + share * radius, Fraction(0)))
        if x > radius:
            assert found.overlaps(middle) and not found.contains(0)
