"""Comparing constructions with plain functions: agreement is proved, a difference refuted with its place, nothing run is undecided."""

from __future__ import annotations

from fractions import Fraction

import pytest

from verify.arithmetic.interface import Arithmetic, Column, Kind
from verify.arithmetic.symbolic import universal_tokens
from verify.claims.functions import Function, exact_entries, for_every_input, on_numbers, square_errors, within
from verify.claims.verdict import Status
from verify.errors import UnsupportedOperation


def shifted(by: Fraction) -> Function:
    """Adds a constant to row 1 of the first column, beside the identity."""

    def evaluate(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        extra = arithmetic.numbers([Fraction(0), by])
        return [arithmetic.add(X[0], extra), *X[1:]]

    kinds = (Kind.VALUE, Kind.SCORE)
    return Function("N = 2", 2, kinds, kinds, evaluate, lambda _, X: X)


X = [[Fraction(1), Fraction(2)], [Fraction(3), Fraction(-4)]]


def test_agreement_is_proved() -> None:
    same = shifted(Fraction(0))
    assert for_every_input([same], object_="o", sizes="N = 2").status is Status.PROVED
    assert on_numbers([(same, X)], object_="o").status is Status.PROVED
    assert within([(same, X)], 50, object_="o").status is Status.PROVED


def test_a_difference_is_refuted_with_its_place() -> None:
    different = shifted(Fraction(1, 1024))
    for outcome in (
        for_every_input([different], object_="o", sizes="N = 2"),
        on_numbers([(different, X)], object_="o"),
    ):
        assert outcome.status is Status.REFUTED
        assert (outcome.evidence["row"], outcome.evidence["column"]) == (1, 0)
    assert within([(different, X)], 10, object_="o").status is Status.PROVED
    assert within([(different, X)], 11, object_="o").status is Status.REFUTED
    assert square_errors(different, X) == [0, Fraction(1, 1024**2)]
    assert exact_entries(different.evaluate, X)[0] == [1, 2 + Fraction(1, 1024)]


def test_a_wrong_width_is_refuted() -> None:
    kinds = (Kind.VALUE, Kind.SCORE)
    narrow = Function("N = 2", 2, kinds, kinds, lambda _, X: X[:1], lambda _, X: X)
    assert on_numbers([(narrow, X)], object_="o").status is Status.REFUTED
    assert for_every_input([narrow], object_="o", sizes="N = 2").status is Status.REFUTED


def test_nothing_run_is_undecided() -> None:
    assert for_every_input([], object_="o", sizes="none").status is Status.UNDECIDED
    assert on_numbers([], object_="o").status is Status.UNDECIDED
    assert within([], 10, object_="o").status is Status.UNDECIDED


def test_tokens_in_general_position_are_independent() -> None:
    arithmetic, (q, k, v) = universal_tokens(2, (Kind.SCORE, Kind.SCORE, Kind.VALUE), ((0, 1),))
    weights = [arithmetic.weight(q[i] * k[j]) for i in range(2) for j in range(2)]
    distinct = [*weights, *(arithmetic.weight(x) for x in (*q, *k)), *v]
    assert all(distinct[a] != distinct[b] for a in range(len(distinct)) for b in range(a))
    with pytest.raises(UnsupportedOperation):
        arithmetic.weight(q[0] * q[1])
    with pytest.raises(UnsupportedOperation):
        universal_tokens(2, (Kind.NUMBER,))
