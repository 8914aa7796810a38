"""Measured errors against plain fractions (kernel exp2) and mpmath (kernel exp)."""

from __future__ import annotations

from fractions import Fraction

import gmpy2
import mpmath
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audit.examples import Rows, halves, matrices, subject, whole
from verify.arithmetic.ball import working_precision
from verify.audit.error import measure, meets
from verify.audit.truth import Truth

ONE = [[Fraction(1)]]


def fraction(x: arb) -> Fraction:
    """A ball of radius 0 as a fraction."""
    mantissa, exponent = x.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def attention(X: Rows, W: tuple[Rows, Rows, Rows], weight) -> list[list]:
    """The definition, in whatever numbers `weight` returns."""
    Q, K, V = (
        [[sum((x * w for x, w in zip(row, c, strict=True)), Fraction(0)) for c in zip(*M, strict=True)] for row in X]
        for M in W
    )
    out = []
    for q in Q:
        weights = [weight(sum((a * b for a, b in zip(q, k, strict=True)), Fraction(0))) for k in K]
        out.append([sum(w * v[c] for w, v in zip(weights, V, strict=True)) / sum(weights) for c in range(len(V[0]))])
    return out


instances = st.integers(1, 2).flatmap(
    lambda d: st.tuples(
        st.lists(st.lists(whole, min_size=d, max_size=d), min_size=1, max_size=4),
        st.tuples(*[matrices(whole, d)] * 3),
        st.integers(0, 2**30),
    )
)


def near_but_not(X: list[list], seed: int, bits: int) -> list[list]:
    """Numbers of few bits near these, by columns; some of them exactly right."""
    out = []
    for c in range(len(X[0])):
        column = []
        for i, row in enumerate(X):
            off = (seed >> (3 * (i + c))) % 4
            with gmpy2.context(precision=bits):
                column.append(
                    gmpy2.mpfr(gmpy2.mpq(row[c].numerator, row[c].denominator)) + off * gmpy2.mpfr(2) ** -bits
                )
        out.append(column)
    return out


@settings(max_examples=60)
@given(instances)
def test_exp2_errors_are_those_of_plain_fractions(instance) -> None:
    X, W, seed = instance
    true = attention(X, W, lambda s: Fraction(2) ** int(s))
    output = near_but_not(true, seed, 12)
    truth = subject("exp2", X, W, 9, "repaired").truth
    found = measure(output, truth, 12)
    squares = []
    for i, row in enumerate(true):
        rounded = [Fraction(*(int(part) for part in column[i].as_integer_ratio())) for column in output]
        squares.append((sum((a - b) ** 2 for a, b in zip(rounded, row, strict=True)), sum(b**2 for b in row)))
    absolute = max(error for error, _ in squares)
    assert fraction(found.absolute.lower) ** 2 <= absolute <= fraction(found.absolute.upper) ** 2
    if any(error and not size for error, size in squares):
        assert not found.relative.upper.is_finite() and not found.relative.lower.is_finite()
        assert not meets(output, truth, 12, Fraction(10**9))
    else:
        relative = max((error / size for error, size in squares if error), default=Fraction(0))
        assert fraction(found.relative.lower) ** 2 <= relative <= fraction(found.relative.upper) ** 2
        assert fraction(found.relative.upper) <= fraction(found.relative.lower) * Fraction(102, 100)
        if relative:
            assert meets(output, truth, 12, fraction(found.relative.upper))
            assert not meets(output, truth, 12, fraction(found.relative.lower) * Fraction(99, 100))
            error, size = squares[found.row]
            assert error == relative * size


@settings(max_examples=40)
@given(
    st.lists(st.lists(halves, min_size=2, max_size=2), min_size=1, max_size=4),
    st.tuples(*[matrices(halves, 2)] * 3),
    st.integers(0, 2**30),
)
def test_exp_errors_are_those_of_mpmath(X: Rows, W: tuple[Rows, Rows, Rows], seed: int) -> None:
    with mpmath.workdps(60):
        true = attention(X, W, lambda s: mpmath.exp(mpmath.mpf(s.numerator) / s.denominator))
        true = [
            [mpmath.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else mpmath.mpf(x) for x in row]
            for row in true
        ]
        exact = [[Fraction(int(mpmath.floor(x * 2**150)), 2**150) for x in row] for row in true]
        output = near_but_not(exact, seed, 20)
        found = measure(output, subject("exp", X, W, 9, "repaired").truth, 20)
        worst = mpmath.mpf(0)
        for i, row in enumerate(true):
            rounded = [column[i] for column in output]
            error = mpmath.sqrt(
                sum(
                    (mpmath.mpf(str(int(y.as_integer_ratio()[0]))) / int(y.as_integer_ratio()[1]) - t) ** 2
                    for y, t in zip(rounded, row, strict=True)
                )
            )
            worst = max(worst, error)
        upper = mpmath.mpf(fraction(found.absolute.upper).numerator) / fraction(found.absolute.upper).denominator
        assert worst <= upper * (1 + mpmath.mpf(10) ** -30) + mpmath.mpf(10) ** -40
        assert upper <= worst * mpmath.mpf("1.011") + mpmath.mpf(10) ** -40


def test_a_row_of_zeros_must_be_met_exactly() -> None:
    """Equal weights, values 1 and -1: the truth is 0, and any other number is infinitely wrong."""
    truth = subject("exp", [[Fraction(1)], [Fraction(-1)]], ([[Fraction(0)]], ONE, ONE), 9, "repaired").truth
    zero, tiny = gmpy2.mpfr(0), gmpy2.mpfr(2) ** -400
    assert measure([[zero, zero]], truth, 53).relative.upper.is_zero()
    missed = measure([[zero, tiny]], truth, 53)
    assert not missed.relative.lower.is_finite() and (missed.row, missed.column) == (1, 0)
    assert missed.absolute.upper <= arb((1, -399))
    assert not meets([[zero, tiny]], truth, 53, Fraction(1))


@pytest.mark.parametrize("bad", [gmpy2.inf(), -gmpy2.inf(), gmpy2.nan()])
def test_what_is_not_finite_is_infinitely_wrong_and_named(bad) -> None:
    truth = Truth(
        "exp", subject("exp", [[Fraction(1)]] * 2, (ONE, ONE, ONE), 9, "repaired").transformer, ((Fraction(1),) * 2,)
    )
    found = measure([[gmpy2.mpfr(1), bad]], truth, 53)
    assert not found.finite and not found.absolute.lower.is_finite() and (found.row, found.column) == (1, 0)


def test_a_lucky_exact_result_has_error_zero() -> None:
    """Equal values: the output is exactly 1 whatever the weights, also under kernel exp."""
    truth = subject(
        "exp",
        [[Fraction(1, 2), Fraction(1)], [Fraction(2), Fraction(1)]],
        (*[[[Fraction(1), Fraction(0)]] * 2] * 2, [[Fraction(0), Fraction(0)], [Fraction(1), Fraction(1)]]),
        9,
        "repaired",
    ).truth
    one = gmpy2.mpfr(1)
    assert measure([[one, one], [one, one]], truth, 53).relative.upper.is_zero()
    with working_precision(64):
        assert truth.is_entry(0, 0, fmpq(1)) is True and truth.is_entry(0, 0, fmpq(2)) is False
