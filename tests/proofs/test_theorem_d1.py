"""Theorem D.1: windows and sinks against evaluations that share nothing with the engine; mutants are caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import causal, theorem_d1
from proofs.theorem_d1 import VARIANTS, calls_by_round, smallest_length
from tests.independent import head_exp, head_exp2
from tests.proofs.checking import caught
from tests.proofs.test_lemma_b1 import assert_close, instances, problem_of
from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2, ExactE
from verify.errors import RequestError, RuleBroken
from verify.oracle.machine import INPUT_LENGTH
from verify.oracle.problem import Problem
from verify.oracle.run import run
from verify.transformer.attention import Mask
from verify.transformer.model import Transformer

windows = st.tuples(st.integers(1, 12), st.integers(0, 5))


def masked(instance, r, s) -> Problem:
    problem = problem_of(*instance)
    return replace(problem, transformer=Transformer(problem.transformer.layers, Mask(True, r, s)))


def seen(r, s):
    return lambda i, j: j <= i and (j < s or j > i - r)


def exact_rows(program, X):
    arithmetic = Exact2()
    output = run(program, arithmetic, {"X": [arithmetic.numbers(column) for column in zip(*X, strict=True)]})
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in zip(*output, strict=True)]


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=120)
@given(instances(most=13), windows)
def test_exact_exp2_against_fractions(variant, instance, window):
    X, *W = instance[3:]
    problem = masked(instance, *window)
    smallest = smallest_length(problem, variant)
    if smallest > problem.M:
        with pytest.raises(RequestError, match=f"would do is {smallest}"):
            theorem_d1.repaired(problem, variant)
        problem = replace(problem, M=smallest)
    program = theorem_d1.repaired(problem, variant)
    assert exact_rows(program, X) == head_exp2(X, *W, sees=seen(*window))
    counts = calls_by_round(problem, variant, "calls")
    assert (program.cost.calls, program.cost.rounds) == (sum(counts), len(counts))
    assert program.cost.longest_input <= problem.M
    assert not program.broken_rules


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=15)
@given(instances(most=8, denominators=3), windows)
def test_exact_exp_and_balls_against_mpmath(variant, instance, window):
    X, *W = instance[3:]
    problem = masked(instance, *window)
    problem = replace(problem, M=max(problem.M, smallest_length(problem, variant)))
    program, exact = theorem_d1.repaired(problem, variant), ExactE(36)
    output = run(program, exact, {"X": [exact.numbers(column) for column in zip(*X, strict=True)]})
    with working_precision(400):
        ball = Ball("exp", 400)
        balls = run(program, ball, {"X": [ball.numbers(column) for column in zip(*X, strict=True)]})
    expected = head_exp(X, *W, digits=60, sees=seen(*window))
    for c in range(len(output)):
        for i in range(len(X)):
            assert_close(exact.enclose(output[c][i], 200), expected[i][c])
            assert_close(balls[c][i], expected[i][c])


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_that_cancel_badly(variant):
    """A huge score early in the sequence: the prefix difference loses 600 bits there, and exact arithmetic does not care."""
    X = [[Fraction(x)] for x in (25, 1, 0, -1, 1, 25, 0, 1, -1)]
    W = [[[Fraction(1)]], [[Fraction(1)]], [[Fraction(1)]]]
    program = theorem_d1.repaired(masked((9, 8, 1, X, *W), 2, 0), variant)
    assert exact_rows(program, X) == head_exp2(X, *W, sees=seen(2, 0))


@settings(max_examples=120)
@given(instances(most=12), windows)
def test_printed_at_every_chunk_offset(instance, window):
    N, M, _, X, *W = instance
    (r, s), problem = window, masked(instance, *window)
    r, s = min(r, N), min(s, N)
    if N > M and (s or M <= r):
        with pytest.raises(RuleBroken, match="input length"):
            theorem_d1.printed(problem)
        return
    program = theorem_d1.printed(problem)
    assert exact_rows(program, X) == head_exp2(X, *W, sees=seen(*window))
    assert (program.cost.calls, program.cost.rounds) == theorem_d1.predict_printed(problem)
    if N > M and N >= 2 * (M - r):
        # A full chunk beyond the first holds M tokens, and claim B.6 adds a row.
        assert INPUT_LENGTH in {b.rule for b in program.broken_rules}


@given(st.integers(10, 400), st.integers(8, 30), st.integers(1, 4), st.integers(0, 3))
def test_calls_grow_linearly(N, M, r, s):
    """Twice the tokens, at most twice the calls and a constant: for fixed r, s and M."""
    problem = masked((3, M, 1, [[Fraction(1)]] * 3, *[[[Fraction(1)]]] * 3), r, s)
    for variant in VARIANTS:
        if smallest_length(replace(problem, N=N), variant) <= M:
            once, twice = (sum(calls_by_round(replace(problem, N=n), variant, "calls")) for n in (N, 2 * N))
            assert twice <= 2 * once + 3 * (r + s) + 6


# --- mutants -----------------------------------------------------------------------------------------------------------


def window_off_by_one(monkeypatch):
    original = theorem_d1.window_of
    monkeypatch.setattr(theorem_d1, "window_of", lambda problem: (original(problem)[0] + 1, original(problem)[1]))


def one_sink_too_many(monkeypatch):
    original = theorem_d1.window_of
    monkeypatch.setattr(theorem_d1, "window_of", lambda problem: (original(problem)[0], original(problem)[1] + 1))


def sinks_forgotten(monkeypatch):
    monkeypatch.setattr(theorem_d1, "_with_sinks", lambda calls, start, count, s, sums: sums)


def first_queries_too_few(monkeypatch):
    original = theorem_d1.first_queries
    monkeypatch.setattr(theorem_d1, "first_queries", lambda problem: max(1, original(problem) - 1))


def nothing_subtracted(monkeypatch):
    original = causal.causal_call
    monkeypatch.setattr(causal, "causal_call", lambda problem, shape: original(problem, replace(shape, subtract=False)))


def weights_not_exponentials(monkeypatch):
    original = theorem_d1._dot
    monkeypatch.setattr(theorem_d1, "_dot", lambda q, k: original(q, k) * 2)


def cost_of_one_pass(monkeypatch):
    monkeypatch.setattr(theorem_d1, "tail_rounds", lambda problem, variant: [1])


@pytest.mark.parametrize(
    "mutate",
    [
        window_off_by_one,
        one_sink_too_many,
        sinks_forgotten,
        first_queries_too_few,
        nothing_subtracted,
        weights_not_exponentials,
        cost_of_one_pass,
    ],
    ids=lambda f: f.__name__,
)
def test_mutant_is_caught(mutate, monkeypatch):
    mutate(monkeypatch)
    assert caught("D.1")


def test_without_a_mutant_everything_is_as_expected():
    assert not caught("D.1", "N3", "N20")


def test_a_longer_oracle_removes_n3():
    """With M >= N the printed sinks fit into one chunk and are right."""
    X = [[Fraction(x)] for x in (1, 0, 2, -1, 1)]
    W = [[[Fraction(1)]], [[Fraction(1)]], [[Fraction(1)]]]
    program = theorem_d1.printed(masked((5, 5, 1, X, *W), 2, 1))
    assert exact_rows(program, X) == head_exp2(X, *W, sees=seen(2, 1))
