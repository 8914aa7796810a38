"""Lemma A.2: the sum in every row, its shape (R8), and mutants."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import lemma_a2
from proofs.lemma_a2 import CONSTRUCTIONS, program_for, sum_function
from tests.proofs.checking import DIGITS, as_announced, ball_rows, caught, near, rows_of
from verify.arithmetic.exact import Exact2
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.functions import exact_entries
from verify.oracle.oracle import Oracle
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire


@st.composite
def inputs(draw: st.DrawFn) -> tuple[str, list[list[Fraction]]]:
    N, d = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    entry = st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**4)
    return draw(st.sampled_from(sorted(CONSTRUCTIONS))), [
        draw(st.lists(entry, min_size=N, max_size=N)) for _ in range(d)
    ]


@settings(deadline=None, max_examples=60)
@given(inputs())
def test_every_row_is_the_sum(case: tuple[str, list[list[Fraction]]]) -> None:
    name, X = case
    N, d = len(X[0]), len(X)
    function = sum_function(CONSTRUCTIONS[name], N, d)
    totals = [sum(column, Fraction(0)) for column in X]
    assert rows_of(exact_entries(function.evaluate, X)) == [totals] * N
    with mpmath.workdps(DIGITS):
        for row in ball_rows(function.evaluate, X):
            assert all(near(x, mpmath.mpf(t.numerator) / t.denominator) for x, t in zip(row, totals, strict=True))


def test_opposite_tokens_sum_to_zero() -> None:
    X = [[Fraction(5), Fraction(-5)]]
    assert exact_entries(sum_function(CONSTRUCTIONS["printed"], 2, 1).evaluate, X) == [[0, 0]]


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_shape_and_cost(name: str) -> None:
    program = program_for(CONSTRUCTIONS[name](5, 3), 3)
    assert (program.rows, len(program.kinds)) == (5, 3)
    assert program.cost.embedding == (4 if name == "printed" else 3)


def test_a_map_may_follow_the_sum() -> None:
    def quotient(total: list[Wire]) -> list[Wire]:
        return [total[0] / total[1]]

    oracle = lemma_a2.token_sum(3, 2, quotient)
    function = sum_function(lambda N, d: oracle, 3, 2)
    X = [[Fraction(1), Fraction(2), Fraction(3)], [Fraction(1), Fraction(1), Fraction(2)]]
    assert exact_entries(function.evaluate, X) == [[Fraction(3, 2)] * 3]


def test_the_slip_of_the_proof_would_not_compute_the_sum() -> None:
    """Keys `N x_i` with constant queries (as the proof prints for k_i) and values x_i: not the sum; with v_i for k_i it is."""

    def slip(rows: int, width: int) -> Oracle:
        kinds = [Kind.NUMBER] * width
        query = RationalMatrix.from_entries(2, 1, {(1, 0): 1})
        key, value = (RationalMatrix.from_entries(2, 1, {(0, 0): factor}) for factor in (rows, 1))
        head = Head(query, key, value)
        return Oracle(
            PositionalMap(((0, rows, TokenMap.trace(kinds, lambda x: [*x, 1])),)),
            (Layer((head,), TokenMap.identity([Kind.VALUE] * width)),),
        )

    arithmetic = Exact2()
    X = [arithmetic.numbers([Fraction(0), Fraction(1)])]
    (slipped,) = slip(2, 1).run(arithmetic, X)
    assert slipped[0] == slipped[1] and slipped[0] * 5 == 4
    (right,) = lemma_a2.printed(2, 1).run(arithmetic, X)
    assert right == [1, 1]


def test_claims_come_out_as_announced() -> None:
    as_announced("A.2", "R8")


def mutant(
    factor: Callable[[int], int], *, query: int = 1, extra: int = 1, key: int = 1
) -> Callable[[int, int], Oracle]:
    """The printed oracle with other values, queries, keys and columns."""

    def build(rows: int, width: int) -> Oracle:
        kinds = [Kind.NUMBER] * width
        W_Q = RationalMatrix.from_entries(width + extra, 1, {(width, 0): query})
        W_K = RationalMatrix.from_entries(width + extra, 1, {(width if key else 0, 0): 1})
        W_V = RationalMatrix.from_entries(width + extra, width, {(c, c): factor(rows) for c in range(width)})
        placed = TokenMap.trace([Kind.VALUE] * width if key else kinds, lambda x: [*x, *[1] * extra])
        return Oracle(
            PositionalMap(((0, rows, placed),)),
            (Layer((Head(W_Q, W_K, W_V),), TokenMap.identity([Kind.VALUE] * width)),),
        )

    return build


def half(rows: int, width: int) -> Oracle:
    oracle = lemma_a2.token_sum(rows, width)
    return Oracle(oracle.input_map, (Layer(oracle.layers[0].heads, TokenMap.identity([Kind.VALUE] * width)),))


MUTANTS: dict[str, tuple[str, Any]] = {
    "mean instead of sum": ("printed", mutant(lambda rows: 1)),
    "N+1 instead of N": ("printed", mutant(lambda rows: rows + 1)),
    "minus": ("printed", mutant(lambda rows: -rows)),
    "keys depend on the tokens": ("printed", mutant(lambda rows: rows, key=0)),
    "a column too many": ("printed", mutant(lambda rows: rows, extra=2)),
    "no factor": ("zero-constants", half),
}


def test_the_unchanged_copy_is_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONSTRUCTIONS, "printed", mutant(lambda rows: rows))
    assert not caught("A.2")


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    construction, build = MUTANTS[name]
    monkeypatch.setitem(CONSTRUCTIONS, construction, build)
    assert caught("A.2")
