"""Transport: exact in the log domain of both kernels, refused when the rows do not fit, and noticed when broken."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import transport
from proofs.transport import Rows, fused_function, fused_transport, plain_function, plain_transport
from tests.proofs.checking import DIGITS, as_announced, ball_rows, caught, exponential, near, power, rows_of
from verify.arithmetic.interface import Kind
from verify.claims.functions import exact_entries
from verify.errors import OutOfRange, RequestError

places = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)
numbers = st.integers(-30, 30).map(Fraction)


def columns(draw: st.DrawFn, entries: st.SearchStrategy[Fraction], rows: int, width: int) -> list[list[Fraction]]:
    return [draw(st.lists(entries, min_size=rows, max_size=rows)) for _ in range(width)]


@st.composite
def plain_inputs(draw: st.DrawFn, entries: st.SearchStrategy[Fraction]) -> tuple[int, int, list[list[Fraction]]]:
    r = draw(st.integers(1, 4))
    M = draw(st.integers(r + 1, r + 5))
    return r, M, columns(draw, entries, M, r)


@st.composite
def fused_inputs(draw: st.DrawFn) -> tuple[int, int, int, list[list[Fraction]]]:
    n, r = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    M = draw(st.integers(n + r + 1, n + r + 3))
    tokens = columns(draw, st.integers(-6, 6).map(Fraction), M, 6)
    return n, r, M, [*tokens, *columns(draw, places, M, r)]


@settings(deadline=None, max_examples=40)
@given(plain_inputs(places))
def test_values_come_back_exactly(case: tuple[int, int, list[list[Fraction]]]) -> None:
    r, M, X = case
    function = plain_function(r, M, as_scores=False)
    assert exact_entries(function.evaluate, X) == X
    with mpmath.workdps(DIGITS):
        for row, expected in zip(ball_rows(function.evaluate, X), rows_of(X), strict=True):
            assert all(near(a, mpmath.mpf(b.numerator) / b.denominator) for a, b in zip(row, expected, strict=True))


@settings(deadline=None, max_examples=40)
@given(plain_inputs(numbers))
def test_scores_come_back_exactly(case: tuple[int, int, list[list[Fraction]]]) -> None:
    r, M, X = case
    assert exact_entries(plain_function(r, M, as_scores=True).evaluate, X) == X


@settings(deadline=None, max_examples=40)
@given(fused_inputs())
def test_fused_calls_return_sums_and_carried_numbers(case: tuple[int, int, int, list[list[Fraction]]]) -> None:
    n, r, M, X = case
    function = fused_function(n, r, M, as_scores=False)
    key, query = X[:3], X[3:6]

    def expected(E: Callable[[Fraction], Any], number: Callable[[Fraction], Any], i: int) -> list[Any]:
        weights = [E(query[0][i] * key[1][j]) for j in range(n)]
        B = sum((w * number(key[2][j]) for j, w in enumerate(weights)), number(Fraction(0)))
        return [B, sum(weights[1:], weights[0]), *(number(column[i]) for column in X[6:])]

    for i, row in enumerate(rows_of(exact_entries(function.evaluate, X))):
        assert row == expected(power, lambda x: x, i)
    with mpmath.workdps(DIGITS):
        for i, row in enumerate(ball_rows(function.evaluate, X)):
            wanted = expected(exponential, lambda x: mpmath.mpf(x.numerator) / x.denominator, i)
            assert all(near(a, b) for a, b in zip(row, wanted, strict=True))


@pytest.mark.parametrize(("r", "M"), [(1, 1), (2, 2), (5, 3), (3, 1)])
def test_too_many_numbers_are_refused(r: int, M: int) -> None:
    with pytest.raises(RequestError, match=f"smallest that would do is {r + 1}"):
        plain_transport(r, M, as_scores=True)


@pytest.mark.parametrize(("n", "r", "M"), [(1, 1, 2), (0, 1, 4), (3, 2, 5)])
def test_fused_calls_that_do_not_fit_are_refused(n: int, r: int, M: int) -> None:
    kinds = (Kind.SCORE, Kind.SCORE, Kind.VALUE)
    with pytest.raises(RequestError):
        fused_transport(transport.TOKEN, kinds, n, r, M, as_scores=False)


@pytest.mark.parametrize("value", [Fraction(0), Fraction(-1), Fraction(-4)])
def test_values_that_are_not_positive_are_refused(value: Fraction) -> None:
    with pytest.raises(OutOfRange):
        exact_entries(plain_function(1, 2, as_scores=False).evaluate, [[value, Fraction(1)]])


def test_claims_come_out_as_announced() -> None:
    as_announced("T.1", "T.2")


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "base rows not counted": (
        transport,
        "unnormalised",
        lambda averages, base, base_rows: [a / base for a in averages],
    ),
    "one base row too many": (
        transport,
        "unnormalised",
        lambda averages, base, base_rows: [a / base * (base_rows + 1) for a in averages],
    ),
    "not divided": (transport, "unnormalised", lambda averages, base, base_rows: [a * base_rows for a in averages]),
    "every carried row has role 0": (
        Rows,
        "roles",
        lambda self: (
            [(0, self.real, None, False)] * bool(self.real)
            + [(self.real + c, self.real + c + 1, 0, False) for c in range(self.carried)]
            + [(self.real + self.carried, self.total, None, True)]
        ),
    ),
    "keys of the wrong role": (transport, "one_hot", lambda position, width: [int(position is not None)] * width),
    "sums forget a token": (transport, "block_sums", lambda a, q, k, v, n: _sums(a, q, k, v, n - 1)),
    "smallest M off by one": (transport, "require", lambda M, smallest, construction: None),
}

_sums = transport.block_sums


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(where, attribute, mutant)
    assert caught("T.1", "T.2")
