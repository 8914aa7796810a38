"""Lemma B.1: printed, repaired and residual, against evaluations that share nothing with the engine; mutants are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import REGISTRY, lemma_b1
from proofs.aggregation import AGGREGATIONS, Node, chained_calls, leaves, pairwise_calls, tree_calls
from tests.independent import head_exp, head_exp2
from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2, ExactE
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.arithmetic.symbolic import universal_attention
from verify.commands import main
from verify.errors import RequestError, RuleBroken
from verify.oracle.machine import INPUT_LENGTH, OUTSIDE_ARITHMETIC
from verify.oracle.problem import Problem, power_of_two_above
from verify.oracle.program import Program
from verify.oracle.run import run
from verify.transformer.attention import Head
from verify.transformer.token_map import TokenMap

CONSTRUCTIONS: dict[str, Callable[[Problem], Program]] = {
    **{name: (lambda p, a=a: lemma_b1.repaired(p, a)) for name, a in AGGREGATIONS.items()},
    "residual": lemma_b1.residual,
    "printed": lemma_b1.printed,
}


def fits(name: str, N: int, M: int, d: int) -> bool:
    if name == "printed":
        return N % M == 0
    if name == "residual":
        return min(N, 2) <= M
    return AGGREGATIONS[name].smallest(N, d + 1) <= M


@st.composite
def instances(draw: st.DrawFn, scores: int = 2, most: int = 9, denominators: int = 1):
    N, d = draw(st.integers(1, most)), draw(st.integers(1, 2))
    M = draw(st.integers(1, most + 2))
    entry = st.integers(-scores, scores).map(Fraction)
    value = st.fractions(-3, 3, max_denominator=5)
    X = draw(st.lists(st.lists(entry, min_size=d, max_size=d), min_size=N, max_size=N))
    matrices = st.lists(st.lists(st.integers(-1, 1).map(Fraction), min_size=d, max_size=d), min_size=d, max_size=d)
    W_Q, W_K = draw(matrices), draw(matrices)
    W_V = draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=d, max_size=d))
    if denominators > 1:
        X = [[x / draw(st.integers(1, denominators)) for x in row] for row in X]
    return N, M, d, X, W_Q, W_K, W_V


def problem_of(N, M, d, X, W_Q, W_K, W_V) -> Problem:
    head = Head(*(RationalMatrix.of(W) for W in (W_Q, W_K, W_V)))
    largest = max(abs(x) for row in X for x in row)
    bound = power_of_two_above([largest * sum(abs(row[c]) for row in W_V) for c in range(d)])
    return Problem.single_head(N, M, head, bound=bound)


@pytest.mark.parametrize("name", CONSTRUCTIONS)
@settings(max_examples=60)
@given(instances())
def test_exact_exp2_against_fractions(name, instance):
    N, M, d, X, *W = instance
    if not fits(name, N, M, d):
        return
    arithmetic = Exact2()
    columns = [arithmetic.numbers(column) for column in zip(*X, strict=True)]
    output = run(CONSTRUCTIONS[name](problem_of(*instance)), arithmetic, {"X": columns})
    assert [[Fraction(int(x.p), int(x.q)) for x in row] for row in zip(*output, strict=True)] == head_exp2(X, *W)


@pytest.mark.parametrize("name", CONSTRUCTIONS)
@settings(max_examples=10)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 2), st.data())
def test_symbolic_against_fractions(name, N, M, width, data):
    """The rational function that comes out, at random positive weights and values, is the average written down by hand."""
    if not fits(name, N, M, width):
        return
    arithmetic, columns = universal_attention(N, width)
    output = run(CONSTRUCTIONS[name](Problem.universal(N, M, width)), arithmetic, {"X": columns})
    number = st.fractions(Fraction(1, 9), 9, max_denominator=9)
    at = {generator: data.draw(number) for generator in arithmetic.field.generators}

    def value(x) -> Fraction:
        point = {g: fmpq(v.numerator, v.denominator) for g, v in at.items()}
        num, den = (p.subs(point).leading_coefficient() for p in (x.num, x.den))
        quotient = num / den * point["e"] ** x.shift
        return Fraction(int(quotient.p), int(quotient.q))

    for c in range(width):
        for i in range(N):
            weights = [at[f"a_{i}_{j}"] for j in range(N)]
            expected = sum(w * at[f"v_{j}_{c}"] for j, w in enumerate(weights)) / sum(weights)
            assert value(output[c][i]) == expected


@pytest.mark.parametrize("name", CONSTRUCTIONS)
@settings(max_examples=20)
@given(instances(most=6, denominators=3))
def test_exact_exp_against_mpmath(name, instance):
    N, M, d, X, *W = instance
    if not fits(name, N, M, d):
        return
    arithmetic = ExactE(36)
    columns = [arithmetic.numbers(column) for column in zip(*X, strict=True)]
    output = run(CONSTRUCTIONS[name](problem_of(*instance)), arithmetic, {"X": columns})
    expected = head_exp(X, *W, digits=60)
    for c, column in enumerate(output):
        for i, entry in enumerate(column):
            assert_close(arithmetic.enclose(entry, 200), expected[i][c])


@pytest.mark.parametrize("name", CONSTRUCTIONS)
@settings(max_examples=20)
@given(instances(most=8, scores=4, denominators=7))
def test_ball_against_mpmath(name, instance):
    N, M, d, X, *W = instance
    if not fits(name, N, M, d):
        return
    with working_precision(300):
        arithmetic = Ball("exp", 300)
        columns = [arithmetic.numbers(column) for column in zip(*X, strict=True)]
        output = run(CONSTRUCTIONS[name](problem_of(*instance)), arithmetic, {"X": columns})
    expected = head_exp(X, *W, digits=60)
    for c, column in enumerate(output):
        for i, entry in enumerate(column):
            assert_close(entry, expected[i][c])


def assert_close(ball, expected):
    mid, rad, exponent = (int(x) for x in ball.mid_rad_10exp(50))
    with mpmath.workdps(60):
        scale = mpmath.mpf(10) ** exponent
        assert abs(mid * scale - expected) <= rad * scale + mpmath.mpf(10) ** -40 * (1 + abs(expected))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", ["tree", "chained", "pairwise", "per-query", "residual"])
def test_huge_and_tiny_scores(name, sign):
    """Scores of +-90000 next to 0: exact arithmetic neither saturates nor overflows."""
    X = [[Fraction(x)] for x in (300, 0, -300, 1, 300, -1, 0)]
    W_Q, W_K, W_V = [[Fraction(1)]], [[Fraction(sign)]], [[Fraction(1)]]
    arithmetic = Exact2()
    program = CONSTRUCTIONS[name](problem_of(7, 4, 1, X, W_Q, W_K, W_V))
    output = run(program, arithmetic, {"X": [arithmetic.numbers([row[0] for row in X])]})
    assert [Fraction(int(x.p), int(x.q)) for x in output[0]] == [row[0] for row in head_exp2(X, W_Q, W_K, W_V)]


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_equal_scores_and_zero_rows(name):
    """W_Q = 0 averages the values; W_V = 0 gives rows of exact zeros."""
    X = [[Fraction(x)] for x in (3, 1, -4, 1, 5, -9)]
    for W_Q, W_V in ((0, 1), (1, 0)):
        matrices = [[[Fraction(w)]] for w in (W_Q, 1, W_V)]
        arithmetic = Exact2()
        program = CONSTRUCTIONS[name](problem_of(6, 6 if name == "printed" else 4, 1, X, *matrices))
        output = run(program, arithmetic, {"X": [arithmetic.numbers([row[0] for row in X])]})
        assert output[0] == [fmpq(-1, 2) if W_V else fmpq(0)] * 6


@pytest.mark.parametrize("name", CONSTRUCTIONS)
@settings(max_examples=25)
@given(instances(most=7))
def test_layer_mlp_is_applied_by_an_oracle(name, instance):
    """A layer MLP that mixes, shifts and rounds; nothing outside the oracles except in the printed construction."""
    N, M, d, X, *W = instance
    if not fits(name, N, M, d):
        return
    mlp = TokenMap.trace([Kind.VALUE] * d, lambda x: [(x[0] * 3 - Fraction(1, 2)).round(1), x[-1]])
    problem = problem_of(*instance)
    problem = Problem.single_head(N, M, problem.head, mlp, bound=problem.value_bound)
    program = CONSTRUCTIONS[name](problem)
    arithmetic = Exact2()
    output = run(program, arithmetic, {"X": [arithmetic.numbers(column) for column in zip(*X, strict=True)]})
    half = Fraction(1, 2)
    for i, row in enumerate(head_exp2(X, *W)):
        expected = Fraction(((row[0] * 3 - half) * 2 + half).__floor__(), 2)
        assert [Fraction(int(c[i].p), int(c[i].q)) for c in output] == [expected, row[-1]]
    assert any(b.rule == OUTSIDE_ARITHMETIC for b in program.broken_rules) == (name == "printed")


@given(st.integers(1, 60), st.integers(1, 24), st.integers(1, 4))
def test_every_call_is_lawful_and_counted(N, M, d):
    head = Head(*(RationalMatrix.identity(d) for _ in range(3)))
    problem = Problem.single_head(N, M, head)
    for name, aggregation in AGGREGATIONS.items():
        smallest = aggregation.smallest(N, d + 1)
        if smallest > M:
            with pytest.raises(RequestError, match=f"smallest that would do is {smallest}"):
                lemma_b1.repaired(problem, aggregation)
            lemma_b1.repaired(replace(problem, M=smallest), aggregation)
            continue
        cost = lemma_b1.repaired(problem, aggregation).cost
        predicted = lemma_b1.predict_repaired(problem, aggregation)
        assert cost.longest_input <= M
        assert (cost.calls, cost.rounds) == (predicted.calls, predicted.rounds), name
        assert (cost.embedding, cost.parameters) == (predicted.embedding, predicted.parameters), name
        assert sum(sum(now.values()) for now in aggregation.calls_by_round(N, M, d + 1)) == cost.calls
        assert len(aggregation.calls_by_round(N, M, d + 1)) == cost.rounds


@given(st.integers(1, 200), st.integers(3, 40), st.integers(2, 12))
def test_tree_calls_is_least(N, M, r):
    """The closed formula against counting up: the fewest calls n whose capacity reaches N."""
    if M < r + 1:
        return

    def capacity(n: int) -> int:
        if n == 1:
            return M
        outer = (n + 1) // 2
        return outer * (M - 1) + (n - 1 - outer) * (M - r - 1) + (M - r)

    n = 1
    while capacity(n) < N:
        n += 1
    assert tree_calls(N, M, r) == n
    assert n <= pairwise_calls(N, M, r)
    if M >= r + 2:
        assert n <= chained_calls(N, M, r)
    assert leaves(N, M) == (1 if N <= M else -(-N // (M - 1)))


def test_division_alone_suffices_for_the_per_query_aggregation():
    head = Head(*(RationalMatrix.identity(1) for _ in range(3)))
    problem = Problem.single_head(9, 3, head)
    assert lemma_b1.repaired(problem, AGGREGATIONS["per-query"]).cost.operations == ("division",)
    assert lemma_b1.repaired(problem, AGGREGATIONS["tree"]).cost.operations == ("division", "log")


def test_a_value_bound_that_is_too_small_is_noticed():
    """Shifting by a constant that does not bound the values leaves a negative number under the logarithm."""
    head = Head(*(RationalMatrix.identity(1) for _ in range(3)))
    problem = Problem.single_head(5, 3, head, bound=1)
    arithmetic = Exact2()
    program = lemma_b1.repaired(problem, AGGREGATIONS["tree"])
    with pytest.raises(Exception, match="bound on the values is too small"):
        run(program, arithmetic, {"X": [arithmetic.numbers([Fraction(-2)] * 5)]})


# --- what fails as printed, and what would repair it ------------------------------------------------------------------


def test_printed_fails_only_by_its_rules():
    problem = Problem.single_head(4, 2, Head(*(RationalMatrix.identity(1) for _ in range(3))))
    broken = {b.rule: (b.limit, b.needed) for b in lemma_b1.printed(problem).broken_rules}
    assert broken[INPUT_LENGTH] == (2, 3)
    assert OUTSIDE_ARITHMETIC in broken
    with pytest.raises(RuleBroken, match="divisibility"):
        lemma_b1.printed(Problem.single_head(5, 2, problem.head))


def test_length_rule_is_the_only_thing_wrong_with_step_one():
    """On a machine one row longer, the same printed calls break no length rule."""
    problem = Problem.single_head(4, 2, Head(*(RationalMatrix.identity(1) for _ in range(3))))
    machine = lemma_b1.machine_for(problem, waive=(OUTSIDE_ARITHMETIC,))
    machine.length = 3
    lemma_b1.attach_printed(machine, machine.input("X", 4, problem.kinds), problem)
    assert INPUT_LENGTH not in {b.rule for b in machine.broken.values()}


# --- mutants ------------------------------------------------------------------------------------------------------------


def caught() -> bool:
    """Whether `verify check B.1` would report a verdict other than the expected one."""
    checks = [check for check in REGISTRY.find("B.1").checks if check.construction == "repaired"]
    return any(not check.run().as_expected for check in checks)


def drop_the_synthetic_token(monkeypatch):
    """Leaves read M keys and no base row; the MLP divides by a column that is not there, taken as A."""
    original = lemma_b1.fused_block

    def mutant(problem, node, *, last):
        return original(problem, node, last=True) if not node.children else original(problem, node, last=last)

    monkeypatch.setattr(lemma_b1, "fused_block", mutant)


def forget_to_remove_its_mass(monkeypatch):
    """`r` is taken for `r/(1-r)`: averages are used as if they were sums."""
    monkeypatch.setattr(lemma_b1, "unnormalised", lambda averages, base, rows: list(averages))


def swap_query_and_key_halves(monkeypatch):
    original = lemma_b1.Machine.join

    def mutant(self, *parts):
        return original(self, parts[1], parts[0], *parts[2:]) if len(parts) >= 2 else original(self, *parts)

    monkeypatch.setattr(lemma_b1.Machine, "join", mutant)


def leave_one_block_out(monkeypatch):
    original = lemma_b1.key_rows

    def mutant(machine, X, node, M):
        return original(machine, X, Node(0, node.stop - node.start, node.children), M)

    monkeypatch.setattr(lemma_b1, "key_rows", mutant)


def block_off_by_one(monkeypatch):
    original = lemma_b1.query_starts
    monkeypatch.setattr(
        lemma_b1, "query_starts", lambda N, M: [(max(0, s - 1), max(0, new - 1)) for s, new in original(N, M)]
    )


def wrong_normaliser(monkeypatch):
    """Several base rows counted as one."""
    original = lemma_b1.unnormalised
    monkeypatch.setattr(lemma_b1, "unnormalised", lambda averages, base, rows: original(averages, base, 1))


def forget_the_shift(monkeypatch):
    """The last call does not subtract the constant that was added to the values."""
    original = lemma_b1.fused_block

    def mutant(problem, node, *, last):
        return (
            original(replace(problem, value_bound=problem.value_bound * 2), node, last=last)
            if last and node.children
            else original(problem, node, last=last)
        )

    monkeypatch.setattr(lemma_b1, "fused_block", mutant)


def base_row_forgotten_in_the_cost(monkeypatch):
    monkeypatch.setattr(lemma_b1, "query_blocks", lambda N, M: 1)
    monkeypatch.setattr(lemma_b1, "predict_repaired", lambda p, a: lemma_b1.Prediction(1, 1, 1, 1))


MUTANTS = [
    drop_the_synthetic_token,
    forget_to_remove_its_mass,
    swap_query_and_key_halves,
    leave_one_block_out,
    block_off_by_one,
    wrong_normaliser,
    forget_the_shift,
    base_row_forgotten_in_the_cost,
]


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda f: f.__name__)
def test_mutant_is_caught(mutate, monkeypatch):
    mutate(monkeypatch)
    assert caught()


def test_without_a_mutant_everything_is_as_expected():
    assert not caught()


def test_the_command_reports_a_mutant(monkeypatch, capsys):
    """The exit code of `verify check B.1` is 1 under a mutant, 0 without."""
    for mutate, code in ((None, 0), (wrong_normaliser, 1)):
        if mutate is not None:
            mutate(monkeypatch)
        with pytest.raises(SystemExit) as stop:
            main(["check", "B.1", "--construction", "repaired", "--arithmetic", "symbolic", "--jobs", "1"])
        assert stop.value.code == code
    assert "refuted" in capsys.readouterr().out


def test_findings_are_as_expected():
    for name in ("R3", "R4", "R6", "N4", "N15", "N11", "covering"):
        for check in REGISTRY.find(name).checks:
            assert check.run().as_expected, (name, check.name)
