"""Rational matrices against nested lists."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from tests.independent import encloses, times
from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2
from verify.arithmetic.matrix import RationalMatrix

entries = st.one_of(st.just(Fraction(0)), st.sampled_from([Fraction(1), Fraction(-1)]), st.fractions(-3, 3))


@st.composite
def tables(draw, height=None, width=None):
    n, m = height or draw(st.integers(1, 4)), width or draw(st.integers(1, 4))
    return [[draw(entries) for _ in range(m)] for _ in range(n)]


@given(tables())
def test_rows_columns_and_what_is_used(table):
    matrix = RationalMatrix.of(table)
    assert [list(row) for row in matrix.rows] == table
    assert (matrix.height, matrix.width) == (len(table), len(table[0]))
    assert [dict(column) for column in matrix.columns] == [
        {i: row[c] for i, row in enumerate(table) if row[c]} for c in range(len(table[0]))
    ]
    assert list(matrix.used_rows) == [i for i, row in enumerate(table) if any(row)]


def test_shapes():
    assert (RationalMatrix.of([], 3).height, RationalMatrix.of([], 3).width) == (0, 3)
    assert RationalMatrix.identity(2).rows == ((1, 0), (0, 1))
    assert RationalMatrix.zero(1, 2).rows == ((0, 0),)
    assert RationalMatrix.zero(0, 2).columns == ((), ())
    with pytest.raises(ValueError, match="ragged"):
        RationalMatrix.of([[1], [1, 2]])
    placed = RationalMatrix.blocks(3, 4, [(0, 2, RationalMatrix.identity(2)), (2, 0, RationalMatrix.of([[5, 6]]))])
    assert placed.rows == ((0, 0, 1, 0), (0, 0, 0, 1), (5, 6, 0, 0))


def test_matrices_are_compared_by_identity():
    """Arithmetics keep their own copy of a parameter by identity."""
    one, two = RationalMatrix.identity(1), RationalMatrix.identity(1)
    assert one != two and one == one and len({one, two}) == 2


@given(st.data(), st.integers(1, 4), st.integers(1, 4))
def test_projections_are_products(data, n, d):
    """X W in exact and ball arithmetic: zero columns, and entries 1 and -1, which take shortcuts."""
    X, W = data.draw(tables(n, d)), data.draw(tables(d))
    expected, matrix = times(X, W), RationalMatrix.of(W)
    exact = Exact2()
    columns = [exact.numbers(list(column)) for column in zip(*X, strict=True)]
    before = [list(column) for column in columns]
    for c, column in enumerate(exact.project(columns, matrix)):
        got = [Fraction(0)] * n if column is None else [Fraction(int(x.p), int(x.q)) for x in column]
        assert got == [row[c] for row in expected]
    assert columns == before
    with working_precision(60):
        ball = Ball("exp2", 60)
        for _ in range(2):  # the second time from the kept parameter
            product = ball.project([ball.numbers(list(column)) for column in zip(*X, strict=True)], matrix)
            assert (product.nrows(), product.ncols()) == (n, len(W[0]))
            for i in range(n):
                assert all(encloses(arb(product[i, c]), expected[i][c]) for c in range(len(W[0])))
