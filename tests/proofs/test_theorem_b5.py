"""Theorem B.5 and claim B.6: causal masks, against evaluations that share nothing with the engine; mutants are caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import causal, theorem_b5
from proofs.theorem_b5 import AGGREGATIONS, READINGS, block_size, calls_by_round, closed_calls, smallest_length
from tests.independent import head_exp, head_exp2
from tests.proofs.checking import caught
from tests.proofs.test_lemma_b1 import assert_close, instances, problem_of
from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2, ExactE
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import RequestError, RuleBroken
from verify.oracle.problem import Problem
from verify.oracle.run import run
from verify.transformer.attention import CAUSAL, Head
from verify.transformer.model import Transformer


def before(i: int, j: int) -> bool:
    return j <= i


def masked(instance) -> Problem:
    problem = problem_of(*instance)
    return replace(problem, transformer=Transformer(problem.transformer.layers, CAUSAL))


@pytest.mark.parametrize("name", AGGREGATIONS)
@settings(max_examples=70)
@given(instances(most=11))
def test_exact_exp2_against_fractions(name, instance):
    X, *W = instance[3:]
    problem, aggregation = masked(instance), AGGREGATIONS[name]
    if smallest_length(problem, aggregation) > problem.M:
        with pytest.raises(RequestError, match=f"would do is {smallest_length(problem, aggregation)}"):
            theorem_b5.repaired(problem, aggregation)
        problem = replace(problem, M=smallest_length(problem, aggregation))
    program, arithmetic = theorem_b5.repaired(problem, aggregation), Exact2()
    output = run(program, arithmetic, {"X": [arithmetic.numbers(column) for column in zip(*X, strict=True)]})
    got = [[Fraction(int(x.p), int(x.q)) for x in row] for row in zip(*output, strict=True)]
    assert got == head_exp2(X, *W, sees=before)
    counts = calls_by_round(problem, aggregation)
    assert (program.cost.calls, program.cost.rounds) == (sum(counts), len(counts))
    assert program.cost.longest_input <= problem.M
    assert not program.broken_rules


@pytest.mark.parametrize("name", AGGREGATIONS)
@settings(max_examples=15)
@given(instances(most=7, denominators=3))
def test_exact_exp_and_balls_against_mpmath(name, instance):
    X, *W = instance[3:]
    problem, aggregation = masked(instance), AGGREGATIONS[name]
    problem = replace(problem, M=max(problem.M, smallest_length(problem, aggregation)))
    program, exact = theorem_b5.repaired(problem, aggregation), ExactE(36)
    output = run(program, exact, {"X": [exact.numbers(column) for column in zip(*X, strict=True)]})
    with working_precision(300):
        ball = Ball("exp", 300)
        balls = run(program, ball, {"X": [ball.numbers(column) for column in zip(*X, strict=True)]})
    expected = head_exp(X, *W, digits=60, sees=before)
    for c in range(len(output)):
        for i in range(len(X)):
            assert_close(exact.enclose(output[c][i], 200), expected[i][c])
            assert_close(balls[c][i], expected[i][c])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_huge_and_tiny_scores_and_zero_rows(name, sign):
    for value in (1, 0):
        X = [[Fraction(x)] for x in (0, 300, 1, -300, 300, 0, -1)]
        W = [[[Fraction(1)]], [[Fraction(sign)]], [[Fraction(value)]]]
        problem = masked((7, 5, 1, X, *W))
        arithmetic = Exact2()
        output = run(
            theorem_b5.repaired(problem, AGGREGATIONS[name]), arithmetic, {"X": [arithmetic.numbers([x[0] for x in X])]}
        )
        expected = [row[0] for row in head_exp2(X, *W, sees=before)]
        assert [Fraction(int(x.p), int(x.q)) for x in output[0]] == expected


@given(st.integers(1, 60), st.integers(2, 20), st.integers(1, 3))
def test_closed_form(N, M, m):
    head = Head(*(RationalMatrix.identity(m) for _ in range(3)))
    problem = Problem.single_head(N, M, head, mask=CAUSAL)
    for name in ("tree", "chained"):
        aggregation = AGGREGATIONS[name]
        if M >= smallest_length(problem, aggregation):
            expected = 1 if N <= M else closed_calls(N, block_size(problem, aggregation))
            assert sum(calls_by_round(problem, aggregation)) == expected


@settings(max_examples=50)
@given(instances(most=8))
def test_printed_readings_against_fractions(instance):
    """A reading is right wherever the text's faults cannot show: a single block, or blocks of one token."""
    N, M, _, X, *W = instance
    problem = masked(instance)
    for reading in READINGS:
        if N % M:
            with pytest.raises(RuleBroken, match="divisibility"):
                theorem_b5.printed(problem, reading)
            continue
        arithmetic = Exact2()
        program = theorem_b5.printed(problem, reading)
        output = run(program, arithmetic, {"X": [arithmetic.numbers(column) for column in zip(*X, strict=True)]})
        got = [[Fraction(int(x.p), int(x.q)) for x in row] for row in zip(*output, strict=True)]
        if reading == "corrected" or N == M or M == 1:
            assert got == head_exp2(X, *W, sees=before)
        assert (program.cost.calls, program.cost.rounds) == theorem_b5.predict_printed(problem, reading)
        assert program.cost.longest_input == M + 1


# --- mutants -----------------------------------------------------------------------------------------------------------


def keys_not_shifted(monkeypatch):
    """The reverse call keeps the diagonal position: finding N2, made on purpose."""
    original = causal.CausalCalls.call

    def mutant(self, shape, keys, queries, sums, *, role):
        if not shape.real[0] and len(shape.real) > 1:
            shape = replace(shape, real=(True,) * len(shape.real))
            keys = [*list(keys)[1:], list(keys)[-1]]
        return original(self, shape, keys, queries, sums, role=role)

    monkeypatch.setattr(causal.CausalCalls, "call", mutant)


def not_turned_back(monkeypatch):
    original = causal.CausalCalls.reverse

    def mutant(self, key, query, block, queries, sums, *, base, last):
        answer = original(self, key, query, block, queries, sums, base=base, last=last)
        return self.machine.gather(answer, list(range(queries))[::-1])

    monkeypatch.setattr(causal.CausalCalls, "reverse", mutant)


def base_row_miscounted(monkeypatch):
    original = causal.unnormalised
    monkeypatch.setattr(causal, "unnormalised", lambda averages, base, rows: original(averages, base, 1))


def one_earlier_block_forgotten(monkeypatch):
    original = theorem_b5._one_call
    monkeypatch.setattr(
        theorem_b5,
        "_one_call",
        lambda calls, i, start, *rest, **named: original(calls, max(i - 1, 0) if i == 1 else i, start, *rest, **named),
    )


def mask_forgotten(monkeypatch):
    original = causal.causal_call
    monkeypatch.setattr(causal, "causal_call", lambda problem, shape: replace_mask(original(problem, shape)))


def replace_mask(oracle):
    return causal.Oracle(oracle.input_map, oracle.layers)


def wrong_cost(monkeypatch):
    original = theorem_b5.block_calls
    monkeypatch.setattr(theorem_b5, "calls_by_round", lambda p, a: [original(3, 2)])


@pytest.mark.parametrize(
    "mutate",
    [keys_not_shifted, not_turned_back, base_row_miscounted, one_earlier_block_forgotten, mask_forgotten, wrong_cost],
    ids=lambda f: f.__name__,
)
def test_mutant_is_caught(mutate, monkeypatch):
    mutate(monkeypatch)
    assert caught("B.5")


def test_without_a_mutant_everything_is_as_expected():
    assert not caught("B.5", "B.6", "N1", "N2", "N13", "R7")


def test_correcting_the_display_removes_n13(monkeypatch):
    """With the +1 put back, the finding can no longer be established."""
    original = theorem_b5.b6_program
    monkeypatch.setattr(theorem_b5, "b6_program", lambda problem, plus_one=True: original(problem, plus_one=True))
    assert caught("N13")


def test_correcting_b2_removes_n2(monkeypatch):
    original = theorem_b5.attach_printed
    monkeypatch.setattr(
        theorem_b5, "attach_printed", lambda machine, X, problem, reading: original(machine, X, problem, "corrected")
    )
    assert caught("N2")
