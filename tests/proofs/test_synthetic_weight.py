"""Synthetic weights: any constant or supplied score gives the attention output; what the choice costs; mutants."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import synthetic_weight
from proofs.synthetic_weight import inverting_block, supplied, with_constant
from tests.proofs.checking import BITS, DIGITS, as_announced, caught, near
from verify.arithmetic.ball import Ball, deciding, working_precision
from verify.arithmetic.exact import Exact2
from verify.arithmetic.matrix import RationalMatrix
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.oracle.run import run
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import TokenMap

ONE = RationalMatrix.identity(1)
HEAD = Head(ONE, ONE, ONE)


@settings(max_examples=60)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.integers(2, 6), st.integers(-40, 40))
def test_any_constant_score_is_exact(tokens: list[int], M: int, score: int) -> None:
    """Kernel exp2, against plain fractions; scores far above and far below the real ones included."""
    problem = Problem.single_head(len(tokens), M, HEAD, bound=4)
    program = with_constant(problem, score)
    assert program.broken_rules == () and program.cost.longest_input <= M
    arithmetic = Exact2()
    (out,) = run(program, arithmetic, {"X": [[fmpq(x) for x in tokens]]})
    for x, y in zip(tokens, out, strict=True):
        weights = [Fraction(2) ** (x * k) for k in tokens]
        wanted = sum((w * k for w, k in zip(weights, tokens, strict=True)), Fraction(0)) / sum(weights)
        assert Fraction(int(y.p), int(y.q)) == wanted


@settings(max_examples=25)
@given(st.lists(st.fractions(-3, 3, max_denominator=5), min_size=1, max_size=7), st.integers(3, 5))
def test_a_supplied_score_is_exact(tokens: list[Fraction], M: int) -> None:
    """Kernel exp in balls, against mpmath. (With M = 2, log A is a score, which can be a tie that no ball rounds.)"""
    problem = Problem.single_head(len(tokens), M, HEAD, bound=4)
    program = supplied(problem)
    assert program.broken_rules == () and program.cost.longest_input <= M

    def question(bits: int):
        with working_precision(bits):
            ball = Ball("exp", bits)
            return run(program, ball, {"X": [ball.numbers(tokens)]})[0]

    out = deciding(question, BITS)
    with mpmath.workdps(DIGITS):
        reals = [mpmath.mpf(x.numerator) / x.denominator for x in tokens]
        for x, y in zip(reals, out, strict=True):
            weights = [mpmath.exp(x * k) for k in reals]
            assert near(y, sum(w * k for w, k in zip(weights, reals, strict=True)) / sum(weights))


def test_every_check_comes_out_as_announced() -> None:
    as_announced("T.3")


def forgets_the_mass(problem: Problem, size: int, score: Fraction | None) -> Oracle:
    """The synthetic token's mass is left in."""
    oracle = inverting_block(problem, size, score)
    mlp = TokenMap.identity(oracle.layers[0].mlp.inputs)
    return Oracle(oracle.input_map, (Layer(oracle.layers[0].heads, mlp),), oracle.mask)


def depends_on_the_block(problem: Problem, size: int, score: Fraction | None) -> Oracle:
    """Another score for blocks of another size: the factor no longer cancels."""
    return inverting_block(problem, size, None if score is None else score + size)


def forgets_how_many(problem: Problem, size: int, score: Fraction | None) -> Oracle:
    """The number of synthetic rows is not multiplied back."""
    oracle = inverting_block(problem, size, score)
    m = problem.head.width
    mlp = TokenMap.trace(oracle.layers[0].mlp.inputs, lambda out: [x / (1 - out[m]) for x in out])
    return Oracle(oracle.input_map, (Layer(oracle.layers[0].heads, mlp),), oracle.mask)


@pytest.mark.parametrize("mutant", [forgets_the_mass, depends_on_the_block, forgets_how_many])
def test_mutants_are_caught(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic_weight, "inverting_block", mutant)
    assert caught("T.3")
