"""Precision: the theorems' inequalities by brute force over all numbers of few bits, the bound on random inputs, and mutants."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import gmpy2
import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import lemma_b1, precision
from proofs.aggregation import AGGREGATIONS, per_query_rounds
from tests.proofs.checking import as_announced, caught
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.arithmetic.rounded import Rounded, bits
from verify.audit.audit import Options, Subject, rounded_run
from verify.oracle.problem import Problem
from verify.transformer.attention import Head
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import TokenMap


def numbers(P: int, low: int, high: int) -> list[Fraction]:
    """Every positive P-bit number m 2^e with 2^(P-1) <= m < 2^P and low <= e <= high."""
    return [Fraction(m) * Fraction(2) ** e for e, m in product(range(low, high + 1), range(1 << (P - 1), 1 << P))]


@pytest.mark.parametrize("P", [2, 3, 4, 6])
@pytest.mark.parametrize("D", [3, 5, 7, 9, 11, 21])
def test_theorem_1_by_brute_force(P: int, D: int) -> None:
    value = Fraction(1, D)
    best = min(abs(y - value) / value for y in numbers(P, -P - 8, 1))
    assert precision.best_relative_error(value, P) == best
    assert best > Fraction(1, D << (P + 1))


@pytest.mark.parametrize("g", [0, 1, 2, 3])
@pytest.mark.parametrize("P", [5, 6, 8])
def test_theorem_2_by_brute_force(g: int, P: int) -> None:
    """Over every P-bit r in [1/2, 1)."""
    A = Fraction(3 * 2**g - 1)
    best = min(abs(r / (1 - r) - A) / A for r in numbers(P, -P, -P))
    assert precision.inversion_error(A, P) == best
    assert best >= (A + 1) / (6 * 2**P)


entries = st.fractions(-2, 2, max_denominator=8)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(entries, entries), min_size=1, max_size=9),
    st.lists(entries, min_size=12, max_size=12),
    st.integers(2, 6),
    st.sampled_from([6, 11, 24, 53, 90]),
)
def test_theorem_3_bounds_every_row(tokens: list, weights: list, M: int, P: int) -> None:
    """Both sides in mpmath, from the statement: the run's absolute error against `G_i (exp(Lambda) - 1)`."""
    W_Q, W_K, W_V = ([weights[4 * k : 4 * k + 2], weights[4 * k + 2 : 4 * k + 4]] for k in range(3))
    N, X = len(tokens), tuple(zip(*tokens, strict=True))
    head = Head(*(RationalMatrix.of(W) for W in (W_Q, W_K, W_V)))
    layer = Layer((head,), TokenMap.identity([Kind.VALUE] * 2))
    problem = Problem(N, M, Transformer((layer,)), (Kind.NUMBER,) * 2, Fraction(32), Fraction(2))
    program = lemma_b1.repaired(problem, AGGREGATIONS["per-query"])
    output, _ = rounded_run(Subject("exp", problem.transformer, X, program, M), Options(None, Fraction(1)), bits(P))

    def project(x, W, size=lambda y: y):
        return [sum((size(x[a]) * size(W[a][c]) for a in range(2)), Fraction(0)) for c in range(2)]

    with mpmath.workdps(80):

        def real(x: Fraction):
            return mpmath.mpf(x.numerator) / x.denominator

        S = max(
            sum(a * b for a, b in zip(project(x, W_Q, abs), project(y, W_K, abs), strict=True))
            for x in tokens
            for y in tokens
        )
        u = mpmath.mpf(2) ** -P
        R = per_query_rounds(N, M) - 1 if N > M else 0
        Lambda = 2 * mpmath.expm1((2 * 2 + 4 + 2) * u) * real(S) + (2 + 2 + 2 * (M + 5) + 2 * R * (M + 2) + 1) * u
        for i, x in enumerate(tokens):
            scores = [sum(a * b for a, b in zip(project(x, W_Q), project(y, W_K), strict=True)) for y in tokens]
            a = [mpmath.exp(real(s)) for s in scores]
            true = [
                sum(w * real(project(y, W_V)[c]) for w, y in zip(a, tokens, strict=True)) / sum(a) for c in range(2)
            ]
            G = [
                sum(w * real(project(y, W_V, abs)[c]) for w, y in zip(a, tokens, strict=True)) / sum(a)
                for c in range(2)
            ]
            for c in range(2):
                p, q = output[c][i].as_integer_ratio()
                error = abs(mpmath.mpf(int(p)) / int(q) - true[c])
                assert error <= G[c] * mpmath.expm1(Lambda) * (1 + mpmath.mpf(10) ** -60)


def test_every_check_comes_out_as_announced() -> None:
    as_announced("N7", "N28")


def test_a_run_that_rounds_more_than_it_says_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Rounded.divide

    def sloppy(self: Rounded, a: object, b: object) -> object:
        context = gmpy2.context(precision=max(2, self.format.precision - 12))
        return [context.plus(x) for x in honest(self, a, b)]

    monkeypatch.setattr(Rounded, "divide", sloppy)
    precision.fewest.cache_clear()
    assert caught("N7")
    precision.fewest.cache_clear()


def test_a_bound_without_the_merges_is_too_small_to_be_trusted() -> None:
    """Lambda grows with every part that the proof counts."""
    at = precision.per_query_lambda(16, 5, 2, 2, Fraction(4), 53)
    assert precision.per_query_lambda(4, 5, 2, 2, Fraction(4), 53) < at
    assert precision.per_query_lambda(16, 5, 2, 2, Fraction(3), 53) < at
    assert precision.per_query_lambda(16, 5, 2, 2, Fraction(4), 54) < at


def test_a_leak_is_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed ratio with a tiny number added."""
    honest = lemma_b1.printed_ratio

    def leaking(problem: Problem):
        oracle = honest(problem)
        mlp = TokenMap.trace([Kind.VALUE] * problem.head.width, lambda x: [y + Fraction(1, 2**90) for y in x])
        return type(oracle)(oracle.input_map, (Layer(oracle.layers[0].heads, mlp),), oracle.mask)

    monkeypatch.setattr(lemma_b1, "printed_ratio", leaking)
    assert caught("N28")
