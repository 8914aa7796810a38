"""Theorem D.1: windows and sinks against evaluations that share nothing with the engine; mutants are caught."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import causal, theorem_b4, theorem_d1
from proofs.theorem_d1 import VARIANTS, calls_by_round, smallest_length
from tests.independent import head_exp, head_exp2, nearest
from tests.proofs.checking import as_announced, caught
from tests.proofs.test_lemma_b1 import assert_close, instances, problem_of
from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2, ExactE
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import RequestError, RuleBroken
from verify.oracle.machine import INPUT_LENGTH
from verify.oracle.problem import Problem
from verify.oracle.run import run
from verify.transformer.attention import Head, Mask
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import TokenMap

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


@settings(max_examples=60)
@given(instances(most=10), windows)
def test_sinks_in_front_correct_the_printed_formula(instance, window):
    """The reading with the fault corrected, wherever the window itself can be run; beyond the first chunk the printed one is refused (N3)."""
    N, M, _, X, *W = instance
    problem = masked(instance, *window)
    if N > M and min(window[0], N) >= M:
        return
    program = theorem_d1.printed(problem, "sinks first")
    assert exact_rows(program, X) == head_exp2(X, *W, sees=seen(*window))


def test_sinks_inside_the_chunk_take_the_wrong_tokens():
    """N = 3, M = 2, r = s = 1, equal scores: query 2 averages over tokens 1 and 2 instead of 0 and 2."""
    X = [[Fraction(x)] for x in (8, 4, 2)]
    W = [[[Fraction(0)]], [[Fraction(0)]], [[Fraction(1)]]]
    problem = masked((3, 2, 1, X, *W), 1, 1)
    with pytest.raises(RuleBroken):
        theorem_d1.printed(problem)
    assert exact_rows(theorem_d1.printed(problem, "inside the chunk"), X) == [[8], [6], [3]]
    assert exact_rows(theorem_d1.printed(problem, "sinks first"), X) == [[8], [6], [5]]
    assert head_exp2(X, *W, sees=seen(1, 1)) == [[8], [6], [5]]


@settings(max_examples=60)
@given(
    st.integers(1, 4),
    st.integers(0, 2),
    st.lists(st.integers(-6, 6), min_size=2, max_size=9),
)
def test_discounted_difference_is_well_conditioned(r, s, tokens):
    """`T - P` is the visible weight and `P` at most that, in plain fractions, with binomials from factorials."""
    one, N = [[Fraction(1)]], len(tokens)
    X = [[Fraction(x)] for x in tokens]
    problem = replace(masked((N, N + 8, 1, X, one, one, one), r, s), input_bound=Fraction(8))
    factor = theorem_d1.discount(problem)
    assert factor == 2 * 64 + 1
    for i in range(N):
        weights = {j: Fraction(2) ** (tokens[i] * tokens[j]) for j in range(i + 1)}
        visible = sum(w for j, w in weights.items() if seen(r, s)(i, j))
        removed = sum(w / 2 ** (factor * math.comb(i - j, r)) for j, w in weights.items() if not seen(r, s)(i, j))
        assert removed <= visible


def test_packed_variants():
    """Inside oracles of two layers, whose synthetic rows take all averages for 1; the discount does not pass there."""
    one = [[Fraction(1)]]
    X = [[Fraction(x)] for x in (2, 1, 0, -1, 1, 2, 0, 1, -1)]
    for window in ((2, 0), (2, 1), (3, 2)):
        problem = replace(masked((9, 26, 1, X, one, one, one), *window), oracle_layers=2, input_bound=Fraction(2))
        for variant in ("token-wise", "blocks", "prefix-difference"):
            program = theorem_b4.repaired(problem, "calls", variant)
            assert exact_rows(program, X) == head_exp2(X, one, one, one, sees=seen(*window))
            assert (program.cost.calls, program.cost.rounds) == theorem_b4.predict(problem, "calls", variant)
            assert program.cost.longest_input <= 26 and not program.broken_rules
        with pytest.raises(RequestError, match="one layer"):
            theorem_b4.repaired(problem, "calls", "discounted")


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_layers_of_two_heads(variant):
    """Composed by Theorem B.4, rounding between the layers."""
    matrices = [
        [[[Fraction(1)]], [[Fraction(1)]], [[Fraction(2)]]],
        [[[Fraction(-1)]], [[Fraction(1)]], [[Fraction(1)]]],
    ]
    heads = tuple(Head(*(RationalMatrix.of(W) for W in head)) for head in matrices)
    mlp = TokenMap.trace([Kind.VALUE] * 2, lambda x: [wire.round(0) for wire in x])
    problem = Problem(
        9, 9, Transformer((Layer(heads, mlp),) * 2, Mask(True, 2, 1)), (Kind.NUMBER,) * 2, Fraction(8), Fraction(2)
    )
    X = [
        [Fraction(a), Fraction(b)]
        for a, b in zip((1, 0, 2, -1, 1, 0, 1, 2, -2), (0, 1, -1, 1, 2, 0, 1, 1, 0), strict=True)
    ]
    rows = X
    for _ in range(2):
        parts = [head_exp2([[row[h]] for row in rows], *matrices[h], sees=seen(2, 1)) for h in range(2)]
        rows = [[nearest(a[0]), nearest(b[0])] for a, b in zip(*parts, strict=True)]
    program = theorem_b4.repaired(problem, "calls", variant)
    assert exact_rows(program, X) == rows
    assert (program.cost.calls, program.cost.rounds) == theorem_b4.predict(problem, "calls", variant)


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


def sinks_not_seen(monkeypatch):
    original = theorem_d1.visible_places
    monkeypatch.setattr(theorem_d1, "visible_places", lambda i, r, s: original(i, r, 0))


def sinks_discounted(monkeypatch):
    original = theorem_d1.offset
    monkeypatch.setattr(theorem_d1, "offset", lambda i, j, start, s, r, factor: original(i, j, start, 0, r, factor))


def discount_linear_in_the_bound(monkeypatch):
    """2b + b instead of 2b^2: enough for small entries only."""
    monkeypatch.setattr(theorem_d1, "discount", lambda problem: 3 * int(problem.input_bound) + 1)


def no_discount(monkeypatch):
    monkeypatch.setattr(theorem_d1, "discount", lambda problem: 1)


def one_column_less(monkeypatch):
    original = theorem_d1.offset
    monkeypatch.setattr(theorem_d1, "offset", lambda *given: tuple((*part[:-1], 0) for part in original(*given)))


def prior_key_forgotten(monkeypatch):
    original = theorem_d1.prior_keys
    monkeypatch.setattr(theorem_d1, "prior_keys", lambda problem, start: max(0, original(problem, start) - 1))


def attention_reads_tokens(monkeypatch):
    original = theorem_d1.one_hot
    monkeypatch.setattr(theorem_d1, "one_hot", lambda position, width: [*original(position, width)[:-1], 1])


def printed_sinks_one_row_late(monkeypatch):
    original = theorem_d1._printed_chunk

    def mutant(machine, X, problem, start, count, reading):
        return original(machine, X, problem, start, count, "prefix" if reading == "sinks first" else reading)

    monkeypatch.setattr(theorem_d1, "_printed_chunk", mutant)


def nothing_subtracted(monkeypatch):
    original = causal.causal_call
    monkeypatch.setattr(causal, "causal_call", lambda problem, shape: original(problem, replace(shape, subtract=False)))


def weights_not_exponentials(monkeypatch):
    original = theorem_d1._dot
    monkeypatch.setattr(theorem_d1, "_dot", lambda q, k: original(q, k) * 2)


def blocks_too_large(monkeypatch):
    original = theorem_d1.block_size
    monkeypatch.setattr(theorem_d1, "block_size", lambda problem: original(problem) + 1)


def one_chunk_is_enough(monkeypatch):
    monkeypatch.setattr(theorem_d1, "calls_by_round", lambda *given, **named: [1])


@pytest.mark.parametrize(
    "mutate",
    [
        window_off_by_one,
        one_sink_too_many,
        sinks_not_seen,
        sinks_discounted,
        discount_linear_in_the_bound,
        no_discount,
        one_column_less,
        prior_key_forgotten,
        attention_reads_tokens,
        printed_sinks_one_row_late,
        nothing_subtracted,
        weights_not_exponentials,
        blocks_too_large,
        one_chunk_is_enough,
    ],
    ids=lambda f: f.__name__,
)
def test_mutant_is_caught(mutate, monkeypatch):
    mutate(monkeypatch)
    assert caught("N23", "N3", "N20", "D.1")


def test_without_a_mutant_everything_is_as_expected():
    as_announced("D.1", "N3", "N20", "N23")


def test_a_longer_oracle_removes_n3():
    """With M >= N the printed sinks fit into one chunk and are right."""
    X = [[Fraction(x)] for x in (1, 0, 2, -1, 1)]
    W = [[[Fraction(1)]], [[Fraction(1)]], [[Fraction(1)]]]
    program = theorem_d1.printed(masked((5, 5, 1, X, *W), 2, 1))
    assert exact_rows(program, X) == head_exp2(X, *W, sees=seen(2, 1))
