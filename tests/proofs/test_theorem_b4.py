"""Lemma B.2 and Theorem B.4: whole transformers against independent evaluations; costs; mutants are caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import REGISTRY, theorem_b4
from tests.independent import head_exp2, nearest
from verify.arithmetic.exact import Exact2
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import RequestError, RuleBroken
from verify.oracle.problem import Problem
from verify.oracle.run import run
from verify.transformer.attention import CAUSAL, NO_MASK, Head, Mask
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import TokenMap

HALF = Fraction(1, 2)


@st.composite
def models(draw: st.DrawFn):
    N, M = draw(st.integers(1, 7)), draw(st.integers(2, 26))
    L, H, m = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    oracle_layers, oracle_heads = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    residual = draw(st.booleans())
    mask = draw(st.sampled_from([NO_MASK, CAUSAL, Mask(True, 1), Mask(True, 2), Mask(True, 3, 1), Mask(True, 2, 3)]))
    matrix = st.lists(st.lists(st.integers(-1, 1).map(Fraction), min_size=m, max_size=m), min_size=m, max_size=m)
    weights = [[(draw(matrix), draw(matrix), draw(matrix)) for _ in range(H)] for _ in range(L)]
    entry = st.integers(-2, 2).map(Fraction)
    X = draw(st.lists(st.lists(entry, min_size=H * m, max_size=H * m), min_size=N, max_size=N))
    return N, M, H, m, oracle_layers, oracle_heads, residual, mask, weights, X


def problem_of(N, M, H, m, oracle_layers, oracle_heads, residual, mask, weights, X) -> Problem:
    d = H * m

    def mlp(x):
        total = [x[i] + x[d + i] for i in range(d)] if residual else x
        return [(total[i] + total[i - 1] * HALF).round(0) for i in range(d)]

    kinds = [Kind.VALUE] * d + ([Kind.NUMBER] * d if residual else [])
    layers = tuple(
        Layer(
            tuple(Head(*(RationalMatrix.of(W) for W in triple)) for triple in layer),
            TokenMap.trace(kinds, mlp),
            residual,
        )
        for layer in weights
    )
    return Problem(
        N, M, Transformer(layers, mask), (Kind.NUMBER,) * d, Fraction(1), Fraction(2), oracle_layers, oracle_heads
    )


def by_hand(H, m, residual, mask, weights, X):
    def sees(i, j):
        inside = mask.window is None or j < mask.sinks or j > i - mask.window
        return not mask.causal or (j <= i and inside)

    for layer in weights:
        parts = [head_exp2([row[h * m : (h + 1) * m] for row in X], *W, sees=sees) for h, W in enumerate(layer)]
        rows = [[x for part in parts for x in part[i]] for i in range(len(X))]
        if residual:
            rows = [[a + b for a, b in zip(row, x, strict=True)] for row, x in zip(rows, X, strict=True)]
        X = [[nearest(row[i] + row[i - 1] * HALF) for i in range(H * m)] for row in rows]
    return X


@pytest.mark.parametrize("minimise", ["calls", "rounds"])
@settings(max_examples=250)
@given(models())
def test_repaired_against_fractions(minimise, model):
    problem = problem_of(*model)
    try:
        program = theorem_b4.repaired(problem, minimise)
    except RequestError as error:
        smallest = int(error.right.split()[-1])
        assert smallest > problem.M
        program = theorem_b4.repaired(replace(problem, M=smallest), minimise)
        problem = replace(problem, M=smallest)
    assert_equals_hand(program, model)
    assert (program.cost.calls, program.cost.rounds) == theorem_b4.predict(problem, minimise)
    assert program.cost.longest_input <= problem.M
    assert not program.broken_rules
    assert (program.cost.layers, program.cost.heads) == (problem.oracle_layers, problem.oracle_heads)


def assert_equals_hand(program, model):
    _, _, H, m, _, _, residual, mask, weights, X = model
    arithmetic = Exact2()
    output = run(program, arithmetic, {"X": [arithmetic.numbers(column) for column in zip(*X, strict=True)]})
    got = [[Fraction(int(x.p), int(x.q)) for x in row] for row in zip(*output, strict=True)]
    assert got == by_hand(H, m, residual, mask, weights, X)


@settings(max_examples=200)
@given(models())
def test_residual_variant_against_fractions(model):
    problem = problem_of(*model)
    if problem.M < min(2, problem.N):
        problem = replace(problem, M=2)
    program = theorem_b4.residual(problem)
    assert_equals_hand(program, model)
    assert (program.cost.calls, program.cost.rounds) == theorem_b4.predict_residual(problem)
    assert program.cost.longest_input <= problem.M


@settings(max_examples=200)
@given(models())
def test_printed_with_waived_rules_against_fractions(model):
    problem = problem_of(*model)
    mask = problem.transformer.mask
    try:
        program = theorem_b4.printed(problem)
    except RuleBroken as error:
        if problem.oracle_layers > 1:
            assert error.rule == "pass-through"
        elif mask.window is None:
            assert error.rule == "divisibility" and problem.N % problem.M
        else:
            assert error.rule == "input length" and problem.N > problem.M
        return
    if mask != CAUSAL or problem.N == problem.M:
        assert_equals_hand(program, model)
    assert (program.cost.calls, program.cost.rounds) == theorem_b4.predict_printed(problem)


@pytest.mark.parametrize(
    "name", ["tree", "chained", "pairwise", "per-query", "token-wise", "blocks", "prefix-difference"]
)
@settings(max_examples=60)
@given(models())
def test_every_aggregation(name, model):
    problem = replace(problem_of(*model), oracle_layers=1)
    try:
        program = theorem_b4.repaired(problem, "calls", name)
    except RequestError:
        return
    assert_equals_hand(program, model)
    assert (program.cost.calls, program.cost.rounds) == theorem_b4.predict(problem, "calls", name)


@given(st.integers(2, 40), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_packing_divides_the_calls(N, H, oracle_heads, L):
    """With one head an oracle and one layer, H'L' = 1: the formula is the sum over heads; packing divides it, rounded up by round."""
    head = Head(*(RationalMatrix.identity(1) for _ in range(3)))
    layers = (Layer((head,) * H, TokenMap.identity([Kind.VALUE] * H)),) * L
    problem = Problem(N, 6, Transformer(layers), (Kind.NUMBER,) * H, Fraction(2), Fraction(1))
    alone, rounds = theorem_b4.predict(problem)
    shared, same = theorem_b4.predict(replace(problem, oracle_heads=oracle_heads))
    assert same == rounds
    assert alone <= shared * oracle_heads < alone + rounds * oracle_heads


# --- mutants -----------------------------------------------------------------------------------------------------------


def caught(name: str = "B.4") -> bool:
    checks = [c for c in REGISTRY.find(name).checks if c.construction == "repaired" and c.name != "target"]
    return any(not check.run().as_expected for check in checks)


def heads_in_another_order(monkeypatch):
    original = theorem_b4.Machine.join
    monkeypatch.setattr(theorem_b4.Machine, "join", lambda self, *parts: original(self, *parts[::-1]))


def slices_overlap(monkeypatch):
    original = theorem_b4.Machine.columns
    monkeypatch.setattr(
        theorem_b4.Machine,
        "columns",
        lambda self, m, start, stop: (
            original(self, m, 0, stop - start) if self.length < 30 else original(self, m, start, stop)
        ),
    )


def mlp_forgotten(monkeypatch):
    monkeypatch.setattr(theorem_b4, "_mlp_calls", lambda machine, numbers, stage, M: numbers)


def mlp_applied_twice(monkeypatch):
    original = theorem_b4.then_numbers
    monkeypatch.setattr(
        theorem_b4,
        "then_numbers",
        lambda mlp: (
            TokenMap.trace(mlp.inputs, lambda x: original(mlp)(original(mlp)(x)))
            if len(mlp.inputs) == len(mlp.outputs)
            else original(mlp)
        ),
    )


def last_block_not_shifted(monkeypatch):
    original = theorem_b4.Machine.rows
    monkeypatch.setattr(
        theorem_b4.Machine,
        "rows",
        lambda self, m, start, stop: (
            original(self, m, 0, stop - start) if 0 < start and stop == m.rows else original(self, m, start, stop)
        ),
    )


def packing_not_counted(monkeypatch):
    monkeypatch.setattr(theorem_b4, "predict", lambda p, minimise="calls", name=None: (1, 1))


@pytest.mark.parametrize(
    "mutate",
    [
        heads_in_another_order,
        slices_overlap,
        mlp_forgotten,
        mlp_applied_twice,
        last_block_not_shifted,
        packing_not_counted,
    ],
    ids=lambda f: f.__name__,
)
def test_mutant_is_caught(mutate, monkeypatch):
    mutate(monkeypatch)
    assert caught()


def test_without_a_mutant_everything_is_as_expected():
    for name in ("B.2", "B.4", "N6", "N19", "1.2", "R9", "N16", "N17"):
        for check in REGISTRY.find(name).checks:
            assert check.run().as_expected, (name, check.name)
