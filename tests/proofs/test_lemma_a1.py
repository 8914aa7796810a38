"""Lemma A.1: the block of ones for every input, N15's rank, and mutants."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import lemma_a1
from proofs.lemma_a1 import U, phi, printed
from tests.proofs.checking import as_announced, ball_rows, caught, near, rows_of
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.functions import exact_entries
from verify.transformer.token_map import PositionalMap, TokenMap


@st.composite
def blocks(draw: st.DrawFn) -> tuple[int, int, int, int, list[list[Fraction]]]:
    N, d = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    entry = st.fractions(min_value=-100, max_value=100, max_denominator=50)
    X = [draw(st.lists(entry, min_size=N, max_size=N)) for _ in range(d)]
    return N, d, draw(st.integers(0, N)), draw(st.integers(0, d)), X


@settings(deadline=None, max_examples=80)
@given(blocks())
def test_the_block_is_written_for_every_input(case: tuple[int, int, int, int, list[list[Fraction]]]) -> None:
    N, d, a, b, X = case
    wanted = [[1 if i < a and c < b else 0 for c in range(d)] for i in range(N)]
    function = printed(N, d, a, b)
    assert rows_of(exact_entries(function.evaluate, X)) == wanted
    for row, expected in zip(ball_rows(function.evaluate, X), wanted, strict=True):
        assert all(near(x, y) for x, y in zip(row, expected, strict=True))


def test_shapes_are_as_stated() -> None:
    assert len(phi(3, 2, 1).kinds) == 3
    assert (U(4, 2).height, U(4, 2).width) == (5, 4)
    assert U(2, 1).rows == ((0, 0), (0, 0), (1, 0))


def test_claims_come_out_as_announced() -> None:
    as_announced("A.1", "N15")


def append(constants: tuple[int, int], N: int, d: int, a: int) -> PositionalMap:
    kinds = [Kind.VALUE] * d
    maps = [TokenMap.trace(kinds, lambda x, constant=constant: [*x, constant]) for constant in constants]
    return PositionalMap(((0, a, maps[0]), (a, N, maps[1])))


MUTANTS: dict[str, tuple[str, Any]] = {
    "ones on the other rows": ("phi", lambda N, d, a: append((0, 1), N, d, a)),
    "ones on all rows": ("phi", lambda N, d, a: append((1, 1), N, d, a)),
    "twos": ("phi", lambda N, d, a: append((2, 0), N, d, a)),
    "one row too few": ("phi", lambda N, d, a: append((1, 0), N, d, max(0, a - 1))),
    "one column too many": (
        "U",
        lambda d, b: RationalMatrix.from_entries(d + 1, d, {(d, c): 1 for c in range(min(d, b + 1))}),
    ),
    "reads the tokens": (
        "U",
        lambda d, b: RationalMatrix.from_entries(d + 1, d, {(r, c): 1 for r in (0, d) for c in range(b)}),
    ),
    "first row instead of last": (
        "U",
        lambda d, b: RationalMatrix.from_entries(d + 1, d, {(0, c): 1 for c in range(b)}),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(lemma_a1, attribute, mutant)
    assert caught("A.1")


def test_a_second_column_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [Kind.VALUE]
    wide = TokenMap.trace(kinds, lambda x: [*x, 1, 1])
    monkeypatch.setattr(lemma_a1, "phi", lambda N, d, a: PositionalMap(((0, N, wide),)))
    assert caught("N15")
