"""Theorem C.2: the long call against independent softmaxes, the error bounds, the findings, and mutants."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import theorem_c2
from proofs.registry import REGISTRY
from proofs.theorem_c2 import (
    CODES,
    Code,
    Instances,
    against_direct,
    distances,
    fewest_columns,
    gap_code,
    norm_bound,
    other_weight,
    packed,
    printed_code,
    quadratic_code,
    separate,
    set_code,
    smallest_gap,
    sufficient_gap,
    token_instances,
    unit_code,
    worst_tokens,
)
from tests.independent import Rows, head_exp, head_exp2, times
from tests.proofs.checking import DIGITS, as_announced, ball_rows, caught, near, rows_of
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.functions import exact_entries, program_of, square_errors
from verify.errors import RuleBroken
from verify.oracle.machine import OUTSIDE_ARITHMETIC, Machine
from verify.transformer.attention import Head

Case = tuple[Instances, list[list[Fraction]], int]


@st.composite
def cases(draw: st.DrawFn, most: int = 4) -> Case:
    """Instances with heads of their own, tokens by columns, and B."""
    K, M, d = draw(st.integers(1, most)), draw(st.integers(1, 3)), draw(st.integers(1, 2))

    def matrix() -> RationalMatrix:
        return RationalMatrix.of([[draw(st.integers(-1, 1)) for _ in range(d)] for _ in range(d)])

    heads = tuple(Head(matrix(), matrix(), matrix()) for _ in range(K))
    X = [[Fraction(draw(st.integers(-2, 2))) for _ in range(K * M)] for _ in range(d)]
    return Instances(M, heads, (Kind.NUMBER,) * d), X, draw(st.integers(1, 4))


def long_head(instances: Instances, X: list[list[Fraction]], code: Code) -> tuple[Rows, Rows, Rows, Rows]:
    """The long call written down independently: rows `[q u | k v | value]` and matrices that pick the parts."""
    M, width, m, r = instances.M, instances.heads[0].width, instances.heads[0].W_Q.width, code.columns
    rows = []
    for i, x in enumerate(rows_of(X)):
        t, head = i // M, instances.heads[i // M]
        q, k, v = (times([x], W.rows)[0] for W in (head.W_Q, head.W_K, head.W_V))
        rows.append([*q, *code.queries[t], *k, *code.keys[t], *v])
    size = 2 * (m + r) + width

    def pick(start: int, count: int) -> list[list[Fraction]]:
        return [[Fraction(a == start + c) for c in range(count)] for a in range(size)]

    return rows, pick(0, m + r), pick(m + r, m + r), pick(2 * (m + r), width)


def short_heads(instances: Instances, X: list[list[Fraction]]) -> list[list[Fraction]]:
    """Every instance by itself, kernel exp2, independently."""
    M, rows = instances.M, rows_of(X)
    return [
        row
        for t, head in enumerate(instances.heads)
        for row in head_exp2(rows[t * M : (t + 1) * M], head.W_Q.rows, head.W_K.rows, head.W_V.rows)
    ]


@settings(deadline=None, max_examples=60)
@given(cases(), st.sampled_from(sorted(CODES)), st.booleans())
def test_the_call_is_the_long_softmax(case: Case, name: str, inside: bool) -> None:
    instances, X, B = case
    code = CODES[name](instances.K, Fraction(B))
    program = packed(instances, code, inside=inside)
    parts = long_head(instances, X, code)
    assert rows_of(exact_entries(program_of(program), X)) == head_exp2(*parts)
    with mpmath.workdps(DIGITS):
        for row, wanted in zip(ball_rows(program_of(program), X), head_exp(*parts, DIGITS), strict=True):
            assert all(near(a, b) for a, b in zip(row, wanted, strict=True))


@settings(deadline=None, max_examples=60)
@given(cases(), st.sampled_from(sorted(CODES)))
def test_the_error_is_within_the_bounds(case: Case, name: str) -> None:
    instances, X, B = case
    K, M, N = instances.K, instances.M, instances.N
    code = CODES[name](K, Fraction(B))
    found = rows_of(exact_entries(program_of(packed(instances, code)), X))
    c2 = norm_bound(instances, X)
    ours = 4 * c2 * (K - 1) ** 2 * Fraction(2) ** int(2 * (2 * c2 - B * B))
    printed = c2 * Fraction(N, M) ** 2 * Fraction(2) ** int(2 * (2 * c2 - B * B)) * (1 + Fraction(2) ** int(c2)) ** 2
    assert ours <= printed
    for row, wanted in zip(found, short_heads(instances, X), strict=True):
        assert sum((a - b) ** 2 for a, b in zip(row, wanted, strict=True)) <= ours


@settings(deadline=None, max_examples=60)
@given(cases())
def test_separate_columns_are_exact(case: Case) -> None:
    instances, X, _ = case
    program = separate(instances)
    assert rows_of(exact_entries(program_of(program), X)) == short_heads(instances, X)
    with mpmath.workdps(DIGITS):
        rows = rows_of(X)
        for t, head in enumerate(instances.heads):
            own = slice(t * instances.M, (t + 1) * instances.M)
            wanted = head_exp(rows[own], head.W_Q.rows, head.W_K.rows, head.W_V.rows, DIGITS)
            for row, right in zip(ball_rows(program_of(program), X)[own], wanted, strict=True):
                assert all(near(a, b) for a, b in zip(row, right, strict=True))


@pytest.mark.parametrize("K", range(1, 30))
def test_printed_codes_have_the_products_of_the_paper(K: int) -> None:
    B = Fraction(3)
    code = printed_code(K, B)
    r = code.columns
    assert len(set(code.queries)) == K
    for u, v in zip(code.queries, code.keys, strict=True):
        assert set(u) <= {0, -B} and u.count(Fraction(0)) * 2 == r
        assert v == tuple(B + x for x in u)
    for t in range(K):
        for s in range(K):
            product = sum(a * b for a, b in zip(code.queries[t], code.keys[s], strict=True))
            assert product == 0 if s == t else -Fraction(r, 2) * B * B <= product <= -B * B


def test_fewest_columns() -> None:
    assert [fewest_columns(K) for K in (1, 2, 3, 6, 7, 20, 21, 70, 71)] == [0, 2, 4, 4, 6, 6, 8, 8, 10]
    for K in range(1, 300):
        assert fewest_columns(K) == min(r for r in range(0, 20, 2) if comb(r, r // 2) >= K)


def test_outside_products_need_the_waiver() -> None:
    instances = token_instances(2, 1)
    program = packed(instances, printed_code(2, Fraction(1)))
    assert {broken.rule for broken in program.broken_rules} == {OUTSIDE_ARITHMETIC}
    assert not packed(instances, printed_code(2, Fraction(1)), inside=True).broken_rules
    machine = Machine(2, 3)
    with pytest.raises(RuleBroken):
        list(theorem_c2._products(machine, machine.input("X", 2, instances.kinds), instances))


# --- findings and their corrections -------------------------------------------------------------------------------------------


def test_lower_bound_fails_as_printed_and_holds_corrected() -> None:
    for r, K in ((2, 2), (4, 3), (4, 6)):
        for sets in list(combinations(combinations(range(r), r // 2), K))[:10]:
            for M in (1, 3):
                code, instances = set_code(sets, r, Fraction(1), Fraction(1)), token_instances(K, M)
                weight, N = other_weight(instances, code, 0, Fraction(1)), K * M
                assert weight < N * Fraction(1, 4)
                assert weight >= (N - M) * Fraction(1, 2 ** (1 + r // 2))
                shared = [len(set(sets[0]) - set(s)) for s in sets[1:]]
                assert weight == M * sum(Fraction(1, 2 ** (1 + away)) for away in shared)


@pytest.mark.parametrize("B", [1, 2, 5, 20])
def test_rows_of_zeros_are_missed_by_codes_and_met_by_separate_columns(B: int) -> None:
    X = [[Fraction(0)] * 4, [Fraction(0)] * 4, [Fraction(v) for v in (1, -1, 1, 1)]]
    instances = token_instances(2, 2)
    for name, code in CODES.items():
        (found,) = exact_entries(program_of(packed(instances, code(2, Fraction(B)))), X)
        assert found[0] == Fraction(1, 2 ** (B * B) + 1), name
    assert exact_entries(program_of(separate(instances)), X)[0][:2] == [0, 0]


def test_one_instance_is_exact() -> None:
    instances, X = (
        token_instances(1, 3),
        [[Fraction(v) for v in column] for column in ((1, 0, 2), (2, 1, 0), (5, 7, 9))],
    )
    for code in CODES.values():
        program = packed(instances, code(1, Fraction(2)))
        assert rows_of(exact_entries(program_of(program), X)) == short_heads(instances, X)


# --- how large B must be ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize(("K", "M", "c"), [(2, 1, 1), (2, 3, 2), (3, 1, 1), (5, 1, 2), (4, 2, 1)])
def test_the_smallest_gap_is_the_smallest(name: str, K: int, M: int, c: int) -> None:
    N = K * M
    gap = smallest_gap(distances(unit_code(name), K), Fraction(c), N, "exp2")
    for g, met in ((gap, True), (gap - 1, False)):
        instances = token_instances(K, M)
        function = against_direct(instances, packed(instances, gap_code(name, K, g)), name)
        worst = max(max(square_errors(function, worst_tokens(K, M, t, Fraction(c)))) for t in range(K))
        assert (worst <= Fraction(1, 4**N)) is met


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 12), st.integers(1, 3), st.integers(1, 60), st.sampled_from(sorted(CODES)))
def test_smallest_gap_of_exp_against_mpmath(K: int, c: int, target: int, name: str) -> None:
    code = CODES[name](K, Fraction(1))
    with mpmath.workdps(DIGITS):

        def worst(gap: int) -> Any:
            leaks = [
                mpmath.fsum(mpmath.exp(2 * c * c - gap * int(code.separation(t, s))) for s in range(K) if s != t)
                for t in range(K)
            ]
            return max(2 * c * x / (1 + x) for x in leaks)

        gap = smallest_gap(distances(unit_code(name), K), Fraction(c), target, "exp")
        assert worst(gap) <= mpmath.mpf(2) ** -target
        assert gap == 0 or worst(gap - 1) > mpmath.mpf(2) ** -target


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 500), st.integers(1, 4), st.integers(1, 300))
def test_sufficient_gaps_against_mpmath(K: int, c: int, target: int) -> None:
    with mpmath.workdps(200):
        for printed in (False, True):
            factor = c * K * (1 + mpmath.exp(c * c)) if printed else 2 * c * (K - 1)
            exactly = 2 * c * c + mpmath.log(factor) + target * mpmath.log(2)
            assert sufficient_gap(K, Fraction(c), target, printed=printed) == max(0, int(mpmath.ceil(exactly)))


def test_the_table_is_in_order() -> None:
    for row in REGISTRY.tables["converse-bits"].to_json()["rows"]:
        printed_bound, ours, printed, quadratic = map(int, row[4:8])
        assert quadratic <= printed <= ours <= printed_bound


def test_claims_come_out_as_announced() -> None:
    as_announced("C.2", "N5", "N18", "N27")


# --- mutants --------------------------------------------------------------------------------------------------------------------

_set_code, _quadratic, _smallest, _norm = set_code, quadratic_code, smallest_gap, norm_bound
_bound, _printed_bound, _projections = theorem_c2.square_bound, theorem_c2.printed_square_bound, theorem_c2.projections
_with_code, _relative = theorem_c2._with_code, theorem_c2.relative_leak

MUTANTS: dict[str, tuple[str, Any]] = {
    "key code left out": ("set_code", lambda sets, r, left, right: _set_code(sets, r, left, 0 * right)),
    "codes all the same": ("set_code", lambda sets, r, left, right: _set_code([sets[0]] * len(sets), r, left, right)),
    "sign of the code": ("set_code", lambda sets, r, left, right: _set_code(sets, r, -left, right)),
    "half of B": ("printed_code", lambda K, B, r=None: printed_code(K, B / 2, r)),
    "linear key code": (
        "quadratic_code",
        lambda K, gap: replace(_quadratic(K, gap), keys=tuple((Fraction(s), Fraction(s)) for s in range(K))),
    ),
    "code of the next instance": (
        "_with_code",
        lambda products, code, t, m: _with_code(products, code, (t + 1) % len(code.queries), m),
    ),
    "projections of the first instance": ("projections", lambda instances, t: _projections(instances, 0)),
    "bound without the 2": ("square_bound", lambda c2, x, number=Fraction: _bound(c2, x, number) / 4),
    "bound not met": ("square_bound", lambda c2, x, number=Fraction: _bound(c2, x, number) * 4),
    "leak forgets 2c^2": ("relative_leak", lambda K, c2, gap, E: _relative(K, c2 * 0, gap, E)),
    "printed bound without 1 + E(c^2)": (
        "printed_square_bound",
        lambda N, M, c2, gap, E, number: _printed_bound(N, M, c2, gap, E, number) / ((1 + E(c2)) * (1 + E(c2))),
    ),
    "B^2 one too large": ("smallest_gap", lambda *a: _smallest(*a) + 1),
    "B^2 one too small": ("smallest_gap", lambda *a: max(0, _smallest(*a) - 1)),
    "two columns too many": ("fewest_columns", lambda K: fewest_columns(K) + 2),
    "embedding off by one": ("embedding", lambda m, values, columns: 2 * (m + columns) + values + 1),
    "zero row with zero leak": ("_zero_row", lambda K, M: [[Fraction(0)] * (K * M)] * 3),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(theorem_c2, attribute, mutant)
    assert caught("C.2", "N5", "N18", "N27")


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(1, 40), st.fractions(min_value=0, max_value=6, max_denominator=8))
def test_the_closed_gap_is_enough(K: int, M: int, c: Fraction) -> None:
    gap = theorem_c2.enough_gap(K * M, M, c)
    with mpmath.workdps(100):
        square = mpmath.mpf(c.numerator) ** 2 / c.denominator**2
        for base in (mpmath.mpf(2), mpmath.e):
            bound = 2 * mpmath.sqrt(square) * (K - 1) * base ** (2 * square - gap)
            assert bound <= mpmath.mpf(2) ** (-K * M) * (1 + mpmath.mpf(10) ** -90)


def test_too_small_a_closed_gap_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theorem_c2, "enough_gap", lambda N, M, c: N // 2)
    assert caught("C.2")
