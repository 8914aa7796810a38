"""Heads and masks in every arithmetic, against ten lines of plain fractions or mpmath."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.independent import encloses, head_exp, head_exp2
from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2, ExactE, common_denominator
from verify.arithmetic.matrix import RationalMatrix
from verify.arithmetic.symbolic import universal_attention
from verify.errors import RequestError
from verify.oracle.problem import Problem
from verify.transformer.attention import CAUSAL, NO_MASK, Head, Mask


def sees(mask: Mask, i: int, j: int) -> bool:
    """Definitions 2.3 to 2.5 in the paper's own counting, from 1."""
    i, j = i + 1, j + 1
    if not mask.causal:
        return True
    if mask.window is None:
        return j <= i
    return j <= i and (j <= mask.sinks or i - mask.window + 1 <= j)


masks = st.one_of(
    st.just(NO_MASK),
    st.just(CAUSAL),
    st.builds(lambda r: Mask(True, r), st.integers(1, 8)),
    st.builds(lambda r, s: Mask(True, r, s), st.integers(1, 8), st.integers(0, 8)),
)


@given(masks, st.integers(1, 9))
def test_every_row_sees_what_the_definitions_say(mask, n):
    """Windows and sinks longer than the input included; columns in increasing order, none twice."""
    for i, row in enumerate(mask.visible(n).rows):
        assert list(row) == [j for j in range(n) if sees(mask, i, j)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 2},
        {"sinks": 1},
        {"causal": True, "window": 0},
        {"causal": True, "window": -1},
        {"causal": True, "sinks": 2},
        {"causal": True, "window": 2, "sinks": -1},
        {"window": 3, "sinks": 1},
    ],
)
def test_masks_that_the_paper_does_not_have_are_refused(wrong):
    """A window without causality would otherwise be ignored, an empty one would average over nothing."""
    with pytest.raises(ValueError, match="window"):
        Mask(**wrong)


@pytest.mark.parametrize(
    ("Q", "K", "V", "words"),
    [((2, 1), (2, 2), (2, 1), "same width"), ((2, 1), (3, 1), (2, 1), "height"), ((2, 1), (2, 1), (1, 1), "height")],
)
def test_matrices_of_a_head_fit_together(Q, K, V, words):
    """Exact arithmetic would otherwise leave out the columns of K that Q does not have."""
    with pytest.raises(ValueError, match=words):
        Head(*(RationalMatrix.zero(*shape) for shape in (Q, K, V)))


@st.composite
def heads(draw, entries):
    """X, W_Q, W_K, W_V by rows: n tokens of d numbers, queries of m, values of width w."""
    n, d, m, w = (draw(st.integers(1, most)) for most in (5, 3, 2, 3))
    table = lambda rows, columns: [[draw(entries) for _ in range(columns)] for _ in range(rows)]  # noqa: E731
    return table(n, d), table(d, m), table(d, m), table(d, w)


integers = st.integers(-4, 4).map(Fraction)
rationals = st.fractions(-2, 2, max_denominator=4)


def attended(arithmetic, drawn, mask):
    X, *matrices = drawn
    head = Head(*(RationalMatrix.of(W) for W in matrices))
    columns = [arithmetic.numbers(list(column)) for column in zip(*X, strict=True)]
    return [list(row) for row in zip(*head.attend(arithmetic, columns, mask), strict=True)]


def as_fraction(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


def as_fmpq(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


@given(heads(integers), masks)
def test_exp2_exactly_and_by_balls(drawn, mask):
    expected = head_exp2(*drawn, lambda i, j: sees(mask, i, j))
    assert [[as_fraction(x) for x in row] for row in attended(Exact2(), drawn, mask)] == expected
    with working_precision(70):
        for row, wanted in zip(attended(Ball("exp2", 70), drawn, mask), expected, strict=True):
            for ball, value in zip(row, wanted, strict=True):
                assert encloses(ball, value)
                assert ball.rad() < 1e-6


def near(ball: arb, value: mpmath.mpf, digits: int) -> bool:
    """Whether the value, known to `digits` digits, lies in the ball or as near to it as that."""
    mid, rad, exponent = (int(part) for part in ball.mid_rad_10exp(digits))
    with mpmath.workdps(digits + 20):
        unit = mpmath.mpf(10) ** exponent
        return bool(abs(mid * unit - value) <= (rad + 1) * unit + abs(value) * mpmath.mpf(10) ** (5 - digits))


@settings(max_examples=60)
@given(heads(rationals), masks)
def test_exp_exactly_and_by_balls(drawn, mask):
    expected = head_exp(*drawn, 120, lambda i, j: sees(mask, i, j))
    X, W_Q, W_K, _ = drawn
    exact = ExactE(common_denominator(X, W_Q, W_K))
    rows = attended(exact, drawn, mask)
    with working_precision(90):
        balls = attended(Ball("exp", 90), drawn, mask)
        for i, wanted in enumerate(expected):
            for c, value in enumerate(wanted):
                enclosure = exact.enclose(rows[i][c], 400)
                assert enclosure.rad() <= arb(10) ** -100 * (1 + abs(enclosure))
                assert near(enclosure, value, 100) and near(balls[i][c], value, 100)
                assert balls[i][c].overlaps(enclosure)


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(1, 2), masks, st.data())
def test_symbolic_attention_is_attention_at_every_point(n, width, mask, data):
    """Random numbers put for the indeterminates: the same fraction as the definition gives."""
    arithmetic, columns = universal_attention(n, width)
    output = Problem.universal(n, n, width).head.attend(arithmetic, columns, mask)
    positive, any_value = st.fractions(Fraction(1, 9), 9, max_denominator=9), st.fractions(-9, 9, max_denominator=9)
    a = [[data.draw(positive) for _ in range(n)] for _ in range(n)]
    v = [[data.draw(any_value) for _ in range(width)] for _ in range(n)]
    point = {f"a_{i}_{j}": a[i][j] for i in range(n) for j in range(n)}
    point |= {f"v_{j}_{c}": v[j][c] for j in range(n) for c in range(width)}
    at = tuple(as_fmpq(point.get(name, Fraction(1))) for name in arithmetic.field.generators)
    for c in range(width):
        for i in range(n):
            seen = [j for j in range(n) if sees(mask, i, j)]
            expected = sum(a[i][j] * v[j][c] for j in seen) / sum(a[i][j] for j in seen)
            got = output[c][i]
            value = as_fraction(got.num(*at)) / as_fraction(got.den(*at)) if got else Fraction(0)
            assert got.shift == 0 and value == expected


@pytest.mark.parametrize("size", [10**6, 10**15, 10**30])
def test_huge_scores_of_kernel_exp(size):
    """Scores +-size: the weights differ by far more than any float holds; the averages are still enclosed tightly."""
    drawn = ([[Fraction(1), Fraction(3)], [Fraction(-1), Fraction(5)]], [[size], [0]], [[1], [0]], [[0], [1]])
    exact = ExactE(1)
    rows = attended(exact, drawn, NO_MASK)
    t = exact.power(fmpq(size))
    assert rows[0][0] == (t * t * fmpq(3) + fmpq(5)) / (t * t + fmpq(1))
    assert rows[0][0] != fmpq(3) and rows[1][0] != fmpq(5)
    assert exact.sign(rows[0][0] - fmpq(3)) == 1 and exact.sign(rows[1][0] - fmpq(5)) == -1
    with working_precision(200):
        for i, value in ((0, 3), (1, 5)):
            assert abs(exact.enclose(rows[i][0], 200) - value) < arb(10) ** -50
            assert abs(attended(Ball("exp", 200), drawn, NO_MASK)[i][0] - value) < arb(10) ** -50


def test_wrong_scores_are_named_by_row_and_column():
    head = Head(*(RationalMatrix.identity(1) for _ in range(3)))
    arithmetic = Exact2()
    for column, place in (([1, "1/2"], "row 0, column 1"), ([1025, 0], "row 0, column 0")):
        with pytest.raises(RequestError) as caught:
            head.attend(arithmetic, [arithmetic.numbers([Fraction(x) for x in column])], NO_MASK)
        assert caught.value.where == place
    unseen = [arithmetic.numbers([Fraction(1, 2), Fraction(2), Fraction(4)])]
    with pytest.raises(RequestError):
        head.attend(arithmetic, unseen, CAUSAL)
