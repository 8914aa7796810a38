"""Review, major 1: whole simulations with ReLU networks stay within Theorem 2's bound; transport and lookups; the theorems' numbers; mutants."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from math import factorial, log2
from typing import Any

import mpmath
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import relu_networks
from proofs.relu_networks import (
    CONSTANT,
    built,
    carried,
    curve,
    impossible_from,
    looked_up,
    networks_for,
    reached_alone,
    reached_together,
    reordered,
    with_networks,
)
from tests.proofs.checking import BITS, DIGITS, as_announced, caught
from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import RequestError
from verify.oracle.problem import Problem
from verify.oracle.run import run
from verify.relu import library, size
from verify.relu.network import Network
from verify.transformer.attention import Head

ONE = RationalMatrix.identity(1)
HEAD = Head(ONE, ONE, ONE)


def plain(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


@settings(max_examples=40)
@given(st.lists(st.integers(-1, 1), min_size=1, max_size=9), st.integers(2, 6), st.sampled_from([9, 14, 20]))
def test_errors_stay_below_theorem_2_exactly(tokens: list[int], M: int, bits: int) -> None:
    """Kernel exp2 with scores -1, 0, 1, against plain fractions: N = 1, N < M, N not divisible by M - 1, M = 2, equal scores."""
    problem = Problem.single_head(len(tokens), M, HEAD, bound=1)
    program = with_networks(problem, 1, bits)
    bound = networks_for(problem, 1, bits).error
    assert program.cost.longest_input <= M and 0 < bound < 1
    arithmetic = Exact2()
    (out,) = run(program, arithmetic, {"X": [arithmetic.numbers([Fraction(x) for x in tokens])]})
    for x, y in zip(tokens, out, strict=True):
        weights = [Fraction(2) ** (x * k) for k in tokens]
        wanted = sum((w * k for w, k in zip(weights, tokens, strict=True)), Fraction(0)) / sum(weights)
        assert abs(plain(y) - wanted) <= bound


@settings(max_examples=15)
@given(st.lists(st.fractions(-1, 1, max_denominator=7), min_size=1, max_size=7), st.integers(2, 4))
def test_errors_stay_below_theorem_2_for_exp(tokens: list[Fraction], M: int) -> None:
    """Kernel exp in balls, against mpmath."""
    problem = Problem.single_head(len(tokens), M, HEAD, bound=1)
    bits = 12
    bound = networks_for(problem, 2, bits).error
    with working_precision(2 * BITS), mpmath.workdps(DIGITS):
        ball = Ball("exp", 2 * BITS)
        (out,) = run(with_networks(problem, 2, bits), ball, {"X": [ball.numbers(tokens)]})
        reals = [mpmath.mpf(x.numerator) / x.denominator for x in tokens]
        for x, y in zip(reals, out, strict=True):
            weights = [mpmath.exp(x * k) for k in reals]
            wanted = sum(w * k for w, k in zip(weights, reals, strict=True)) / sum(weights)
            found = mpmath.mpf(y.mid().str(DIGITS, radius=False))
            assert abs(found - wanted) <= mpmath.mpf(bound.numerator) / bound.denominator + mpmath.mpf(10) ** -70


def test_lengths_and_accuracies_that_do_not_do() -> None:
    with pytest.raises(RequestError, match="oracle length 1 is too small"):
        networks_for(Problem.single_head(4, 1, HEAD, bound=1), 1, 12)
    with pytest.raises(RequestError, match="1 bits are too few"):
        networks_for(Problem.single_head(9, 2, HEAD, bound=1), 1, 1)
    with pytest.raises(RequestError, match="1 bits are too few"):
        carried(1, 9, 1)


@settings(max_examples=25)
@given(st.integers(1, 3), st.integers(1, 2), st.sampled_from([6, 9, 13]), st.data())
def test_transport_brings_numbers_back(r: int, base: int, bits: int, data: st.DataObject) -> None:
    """Kernel exp in balls, against the numbers themselves, freely chosen."""
    M = r + base
    X = [
        [data.draw(st.fractions(Fraction(1, 8), Fraction(5, 8), max_denominator=40)) for _ in range(M)]
        for _ in range(r)
    ]
    with working_precision(3 * BITS):
        ball = Ball("exp", 3 * BITS)
        out = carried(r, M, bits).run(ball, [ball.numbers(column) for column in X])
        for column, found in zip(X, out, strict=True):
            for x, y in zip(column, found, strict=True):
                gap = abs(y - ball.numbers([x])[0])
                assert gap <= ball.numbers([Fraction(base + 1, 2**bits)])[0]


@settings(max_examples=25)
@given(st.data(), st.integers(2, 6), st.integers(0, 3))
def test_lookups_are_exact(data: st.DataObject, N: int, bits: int) -> None:
    tau = data.draw(st.lists(st.integers(0, N - 1), min_size=N, max_size=N))
    pi = data.draw(st.permutations(range(N)))
    grid = st.integers(0, 2**bits).map(lambda k: Fraction(k, 2**bits))
    values = data.draw(st.lists(grid, min_size=N, max_size=N))
    arithmetic = Exact2()
    (out,) = looked_up(tau, 1, bits).run(arithmetic, [arithmetic.numbers(values)])
    assert [plain(x) for x in out] == [values[t] for t in tau]
    numbers = arithmetic.numbers([Fraction(i) for i in range(N)])
    *_, out = reordered(pi, 1, bits).run(arithmetic, [numbers, arithmetic.numbers(values)])
    assert [plain(x) for x in out] == [values[p] for p in pi]


# --- the theorems' numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [1, 3, 64])
@pytest.mark.parametrize("d", [3, 8, 21])
def test_theorem_1_s_inequality(c: int, d: int) -> None:
    """(sqrt 2 - 1) / sqrt(2 eps) > 2^P at eps = 2^-N, N = 2P + 4, P = c d^2, with mpmath; not at N = 2P + 2, so the constant is nearly sharp."""
    N, P = impossible_from(c, d), c * d * d
    with mpmath.workprec(N + 64):

        def pieces(N: int) -> Any:
            return (mpmath.sqrt(2) - 1) * mpmath.sqrt(mpmath.mpf(2) ** (N - 1))

        assert N == 2 * P + 4 and pieces(N) > mpmath.mpf(2) ** P > pieces(N - 2)


@pytest.mark.parametrize("d", range(4, 65, 6))
def test_rates_by_the_networks_themselves(d: int) -> None:
    """One more bit would break the budget; sizes counted from the formula, and at small d from built networks."""
    budget = CONSTANT * d * d
    for reached, parameters in (
        (reached_alone(d), lambda bits: size.inversion_size(d, bits).parameters),
        (reached_together(d), lambda bits: size.recovery_size(d, d, bits).parameters),
    ):
        assert parameters(reached) <= budget < parameters(reached + 1)
    if d <= 10:
        assert library.inversion(d, reached_alone(d)).parameters <= budget
        assert library.recovery(d, d, reached_together(d)).parameters <= budget


@pytest.mark.parametrize("c, d", [(1, 17), (16, 21), (1024, 28)])
def test_reorderings_do_not_fit_from_the_stated_size_on(c: int, d: int) -> None:
    """log2(N!) itself where N is small enough to multiply out, by Stirling's lower bound otherwise."""
    N = 2 ** (d - 1) + 1
    bits = log2(factorial(N)) if d < 18 else N * (log2(N) - 1.4427)
    assert bits > 64 * c * d**3


def test_every_error_of_the_curve_is_an_error_and_falls_with_the_bits() -> None:
    for N, M, d in relu_networks.LEMMA_31:
        rows = [row for row in curve() if row[:3] == (N, M, d)]
        assert [row[3] for row in rows] == list(relu_networks.BITS)
        for _, _, _, bits, parameters, low, high, bound in rows:
            assert 0 < low <= high <= Fraction(101, 100) * low and high <= bound and parameters > 30 * bits
        assert all(a[6] > b[6] for a, b in itertools.pairwise(rows))


def test_every_check_comes_out_as_announced() -> None:
    as_announced("R1")


# --- mutants -------------------------------------------------------------------------------------------------------------


def cruder(build: Callable[..., Network]) -> Callable[..., Network]:
    """The same network for half the bits."""
    return lambda *arguments: build(*arguments[:2], arguments[2] // 2, *arguments[3:])


_recovery, _quotient, _rounding, _lookup = library.recovery, library.quotient, library.rounding, library.lookup
_networks_for, _pointed = relu_networks.networks_for, relu_networks.pointed
_impossible, _recovery_size = relu_networks.impossible_from, size.recovery_size

MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "recovery to half the bits": (library, "recovery", cruder(_recovery)),
    "quotient to half the bits": (library, "quotient", cruder(_quotient)),
    "rounds to twice the step": (library, "rounding", lambda bits, gap: _rounding(max(bits - 1, 0), gap)),
    "a constant less in Theorem 1": (relu_networks, "impossible_from", lambda c, d: _impossible(c, d) - 10),
    "a formula for sizes off by one": (
        size,
        "recovery_size",
        lambda columns, scale, bits: _recovery_size(columns, scale, bits + 1),
    ),
    "another log": (library, "logarithm", lambda bits: library.inversion(1, bits)),
    "a pointer to another row": (
        relu_networks,
        "pointed",
        lambda N, w, gap, then: _pointed(N, w, max(gap // 4, 1), then),
    ),
    "a table read one place further": (library, "lookup", lambda values: _lookup([*values[1:], values[0]])),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(module, attribute, mutant)
    for cached in (built, curve):
        cached.cache_clear()
    try:
        assert caught("R1")
    finally:
        for cached in (built, curve):
            cached.cache_clear()
