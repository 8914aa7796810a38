"""Lemma A.3: exact lookups, the leak of the sharpened head against independent softmaxes, smallest gaps, and mutants."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import lemma_a3
from proofs.lemma_a3 import (
    error_bound,
    gathered,
    identity,
    own_row,
    pointed,
    recovers,
    rounded,
    sharpened,
    smallest_gap,
    smallest_gap_quadratic,
    sufficient_gap_quadratic,
    worst_values,
    wrong_weight,
    wrong_weight_quadratic,
)
from proofs.registry import REGISTRY
from tests.independent import head_exp, head_exp2, nearest
from tests.proofs.checking import DIGITS, as_announced, ball_rows, caught, near, rows_of
from verify.arithmetic.interface import Arithmetic, Column
from verify.claims.functions import Evaluate, exact_entries, program_of
from verify.errors import RequestError, RuleBroken
from verify.oracle.oracle import Oracle

values = st.fractions(min_value=-50, max_value=50, max_denominator=16)


def running(oracle: Oracle) -> Evaluate:
    def evaluate(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        return oracle.run(arithmetic, X)

    return evaluate


@st.composite
def lookups(draw: st.DrawFn) -> tuple[list[int], int, list[list[Fraction]]]:
    N, width = draw(st.integers(1, 6)), draw(st.integers(1, 2))
    tau = draw(st.lists(st.integers(0, N - 1), min_size=N, max_size=N))
    V = [draw(st.lists(values, min_size=N, max_size=N)) for _ in range(width)]
    return tau, draw(st.integers(0, 25)), V


def one_hot_parts(tau: list[int], gap: int, V: list[list[Fraction]]) -> tuple[Any, ...]:
    """X, W_Q, W_K, W_V of the one-hot head, written down independently: X = (query | key | values)."""
    N, width = len(tau), len(V)
    X = [
        [Fraction(gap * (tau[i] == j)) for j in range(N)] + [Fraction(i == j) for j in range(N)] + [v[i] for v in V]
        for i in range(N)
    ]
    size = 2 * N + width
    pick = lambda start, count: [[Fraction(r == start + c) for c in range(count)] for r in range(size)]  # noqa: E731
    return X, pick(0, N), pick(N, N), pick(2 * N, width)


@settings(deadline=None, max_examples=60)
@given(lookups())
def test_sharpened_head_is_the_softmax_and_within_its_bound(case: tuple[list[int], int, list[list[Fraction]]]) -> None:
    tau, gap, V = case
    N, width = len(tau), len(V)
    oracle = sharpened(tau, width, gap, identity)
    parts = one_hot_parts(tau, gap, V)
    found = rows_of(exact_entries(running(oracle), V))
    assert found == head_exp2(*parts)
    with mpmath.workdps(DIGITS):
        independent = head_exp(*parts, DIGITS)
        for row, wanted in zip(ball_rows(running(oracle), V), independent, strict=True):
            assert all(near(a, b) for a, b in zip(row, wanted, strict=True))
    for i, row in enumerate(found):
        for c in range(width):
            right = V[c][tau[i]]
            spread = max(abs(v - right) for v in V[c])
            assert (
                abs(row[c] - right)
                <= error_bound(spread, wrong_weight(N, gap))
                <= spread * (N - 1) / Fraction(2) ** gap
            )


@settings(deadline=None, max_examples=60)
@given(lookups())
def test_pointed_head_is_the_quadratic_softmax(case: tuple[list[int], int, list[list[Fraction]]]) -> None:
    tau, gap, V = case
    N, width = len(tau), len(V)
    found = rows_of(exact_entries(running(pointed(N, width, gap, identity)), [[Fraction(t) for t in tau], *V]))
    for i, row in enumerate(found):
        weights = [Fraction(2) ** (-gap * (p - tau[i]) ** 2) for p in range(N)]
        assert row == [sum(w * v for w, v in zip(weights, column, strict=True)) / sum(weights) for column in V]
        for c in range(width):
            spread = max(abs(v - V[c][tau[i]]) for v in V[c])
            assert abs(row[c] - V[c][tau[i]]) <= error_bound(spread, wrong_weight_quadratic(N, tau[i], gap))


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 7), st.integers(1, 12), st.integers(-2, 5), st.data())
def test_rounding_recovers_at_the_smallest_gap(N: int, k: int, bits: int, data: st.DataObject) -> None:
    h = Fraction(1, 2) ** bits
    tau = data.draw(st.lists(st.integers(0, N - 1), min_size=N, max_size=N))
    low = data.draw(st.integers(-20, 20))
    column = [h * (low + data.draw(st.integers(0, k))) for _ in range(N)]
    gap = smallest_gap(N, k, "exp2")
    (found,) = exact_entries(running(sharpened(tau, 1, gap, rounded(bits))), [column])
    assert found == [column[t] for t in tau]
    (leaky,) = exact_entries(running(sharpened(tau, 1, gap, identity)), [column])
    assert [nearest(x, bits) for x in leaky] == found


@pytest.mark.parametrize(
    ("N", "k", "gap"),
    [(1, 1, 0), (2, 1, 1), (3, 1, 2), (2, 2, 2), (5, 1, 3), (9, 1, 4), (9, 4, 6), (2, 1024, 11)],
)
def test_smallest_gaps_of_exp2_by_hand(N: int, k: int, gap: int) -> None:
    """2^g > (N-1)(2k-1); N = 2, k = 1 at gap 0 is a tie, which rounds up and away."""
    assert smallest_gap(N, k, "exp2") == gap


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_smallest_gap_against_brute_force(N: int, k: int) -> None:
    with mpmath.workdps(60):
        for kernel, base in (("exp2", mpmath.mpf(2)), ("exp", mpmath.e)):
            wanted = 0
            while not base**wanted > (N - 1) * (2 * k - 1):
                wanted += 1
            assert smallest_gap(N, k, "exp2" if kernel == "exp2" else "exp") == wanted


@settings(deadline=None, max_examples=15)
@given(st.integers(2, 6), st.integers(1, 5), st.sampled_from(["exp2", "exp"]))
def test_one_gap_less_fails_and_the_exact_gap_mends_it(N: int, k: int, kernel: Any) -> None:
    gap = smallest_gap(N, k, kernel)
    worst = worst_values(N, k, 0, 1)
    assert recovers(N, k, 0, gap, kernel, worst)
    assert not recovers(N, k, 0, gap - 1, kernel, worst)


def test_quadratic_gaps_do_not_grow_with_N() -> None:
    for k in (1, 3, 100):
        gaps = [smallest_gap_quadratic(N, k) for N in (3, 8, 40)]
        assert gaps == sorted(gaps) and gaps[-1] <= sufficient_gap_quadratic(k)


def test_exact_lookups() -> None:
    X = [[Fraction(3), Fraction(1, 7), Fraction(9), Fraction(2)], [Fraction(5), Fraction(8), Fraction(1), Fraction(4)]]
    assert exact_entries(program_of(own_row(2, 4)), X) == X
    square = [0, 0, 3, 1]
    assert exact_entries(program_of(gathered(square, 2, 3)), X) == [[column[t] for t in square] for column in X]
    with pytest.raises(RuleBroken):
        gathered(square, 2, 3, declared=False)
    with pytest.raises(RequestError):
        own_row(3, 3)


def test_equal_values_leave_no_error() -> None:
    (found,) = exact_entries(running(sharpened([1, 0, 2], 1, 0, identity)), [[Fraction(7, 3)] * 3])
    assert found == [Fraction(7, 3)] * 3


def test_one_row_is_exact_at_gap_zero() -> None:
    (found,) = exact_entries(running(sharpened([0], 1, 0, identity)), [[Fraction(-5, 9)]])
    assert found == [Fraction(-5, 9)]


def test_claims_come_out_as_announced() -> None:
    as_announced("A.3", "N12")


def test_the_table_is_what_the_formulas_say() -> None:
    rows = REGISTRY.tables["lookup-gaps"].to_json()["rows"]
    for N, k, exp2, exp, _ in rows:
        assert (str(smallest_gap(int(N), int(k), "exp2")), str(smallest_gap(int(N), int(k), "exp"))) == (exp2, exp)


_gap, _x, _sharpened, _pointed = smallest_gap, wrong_weight, sharpened, pointed

MUTANTS: dict[str, tuple[str, Any]] = {
    "gap one too small": ("smallest_gap", lambda N, k, kernel: max(0, _gap(N, k, kernel) - 1)),
    "gap one too large": ("smallest_gap", lambda N, k, kernel: _gap(N, k, kernel) + 1),
    "tie counted as recovered": ("smallest_gap", lambda N, k, kernel: max(0, ((N - 1) * (2 * k - 1) - 1).bit_length())),
    "one wrong row forgotten": ("wrong_weight", lambda N, gap: _x(N - 1, gap)),
    "bound without the spread": ("error_bound", lambda spread, x: x / (1 + x) / 2),
    "bound not met": ("error_bound", lambda spread, x: 2 * spread * x),
    "half the gap": ("sharpened", lambda tau, width, gap, then: _sharpened(tau, width, gap // 2, then)),
    "looks up its own row": (
        "sharpened",
        lambda tau, width, gap, then: _sharpened(list(range(len(tau))), width, gap, then),
    ),
    "quadratic code of half the gap": ("pointed", lambda N, width, gap, then: _pointed(N, width, gap // 2, then)),
    "gather in the wrong order": ("rows_of", lambda tau, skip: lambda a, X: list(X[skip:])),
    "quadratic gap too large": ("smallest_gap_quadratic", lambda N, k: smallest_gap_quadratic(N, k) + 1),
    "rounds to twice the step": ("rounded", lambda bits: rounded(bits - 1)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(lemma_a3, attribute, mutant)
    assert caught("A.3", "N12")
