"""Lower bounds: never above what a built or random network achieves; counts against brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import factorial

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs.relu_networks import RANGES, impossible_for_all_from, impossible_from
from tests.relu.plain import DIGITS, networks
from verify.relu import library
from verify.relu.bound import (
    least_pieces,
    least_table_parameters,
    least_units,
    least_units_any_depth,
    most_pieces,
    permutation_bits,
    reachable_bits,
)
from verify.relu.error import certify
from verify.relu.network import Network
from verify.relu.target import Exponential, Inversion, Square, Target

names = {"ids": lambda x: getattr(x, "name", str(x))}


@settings(max_examples=80)
@given(networks(1, 1), st.sampled_from(RANGES))
def test_no_network_beats_the_bound(network: Network, case: tuple[Target, Fraction, Fraction]) -> None:
    target, low, high = case
    found = certify(network, target, low, high)
    if found.upper:
        needed = least_pieces(target, low, high, found.upper)
        assert needed <= found.pieces <= most_pieces(network.widths)
        assert least_units_any_depth(needed) <= network.units
        if network.depth:
            assert least_units(needed, network.depth) <= network.units


@pytest.mark.parametrize("target, low, high", RANGES, **names)
@settings(max_examples=15)
@given(pieces=st.integers(1, 12))
def test_the_best_polygon_meets_the_bound(target: Target, low: Fraction, high: Fraction, pieces: int) -> None:
    network = library.interpolant(target, low, high, pieces)
    found = certify(network, target, low, high)
    assert network.units <= pieces
    assert least_pieces(target, low, high, found.upper) == found.pieces == pieces
    assert least_pieces(target, low, high, found.upper * (1 - Fraction(1, 2**20))) == pieces + 1


@settings(max_examples=30)
@given(st.fractions(Fraction(1, 10**6), Fraction(1, 10)), st.integers(1, 30))
def test_closed_forms(error: Fraction, A: int) -> None:
    """The module's table, with mpmath: the square on [0, 1], and r/(1-r) for A from 0 to 30."""
    with mpmath.workdps(DIGITS):
        eps = mpmath.mpf(error.numerator) / error.denominator
        square = mpmath.ceil(1 / mpmath.sqrt(8 * eps) - mpmath.mpf(10) ** -60)
        inversion = mpmath.ceil((mpmath.sqrt(A + 1) - 1) / mpmath.sqrt(2 * eps) - mpmath.mpf(10) ** -60)
    assert least_pieces(Square(), Fraction(0), Fraction(1), error) == max(1, square)
    assert least_pieces(Inversion(), Fraction(0), Fraction(A, A + 1), error) == max(1, inversion)


@pytest.mark.parametrize("error", [Fraction(1, 50), Fraction(1, 400), Fraction(1, 3000)])
def test_exp_by_another_greedy_division(error: Fraction) -> None:
    """Longest pieces by bisection on the deviation from the chord, found here by mpmath."""
    with mpmath.workdps(60):

        def deviation(a: mpmath.mpf, b: mpmath.mpf) -> mpmath.mpf:
            s = (mpmath.exp(b) - mpmath.exp(a)) / (b - a)
            return (mpmath.exp(a) - s * a - (s - s * mpmath.log(s))) / 2

        eps, at, count = mpmath.mpf(error.numerator) / error.denominator, mpmath.mpf(-4), 0
        while at < 0:
            count += 1
            if deviation(at, mpmath.mpf(0)) <= eps:
                break
            low, high = at, mpmath.mpf(0)
            for _ in range(150):
                middle = (low + high) / 2
                low, high = (middle, high) if deviation(at, middle) <= eps else (low, middle)
            at = low
    assert least_pieces(Exponential(), Fraction(-4), Fraction(0), error) == count


@given(st.integers(1, 40), st.integers(1, 5))
def test_least_units_is_the_least(pieces: int, depth: int) -> None:
    units = least_units(pieces, depth)
    best = max(most_pieces(w) for w in product(range(units + 1), repeat=min(depth, 3)) if sum(w) == units)
    if depth <= 3:
        assert best >= pieces
        if units:
            worse = (most_pieces(w) for w in product(range(units), repeat=depth) if sum(w) == units - 1)
            assert max(worse) < pieces
    assert least_units_any_depth(pieces) <= units


def test_a_square_wave_reaches_every_piece() -> None:
    """The bound (w+1)^depth on pieces is not an overcount by nature: a sawtooth of m teeth has 2^m pieces with 2 units a layer."""
    for m in range(1, 7):
        found = certify(library.square(m), Square(), 0, 1)
        assert found.pieces == 2**m <= most_pieces(library.square(m).widths)


@pytest.mark.parametrize("scale", [1, 2, 5, 30])
@pytest.mark.parametrize("parameters", [1, 7, 100, 5000])
def test_reachable_bits_is_the_bound_on_pieces_solved(scale: int, parameters: int) -> None:
    bits = reachable_bits(scale, parameters)
    with mpmath.workdps(3200 if parameters > 1000 else 200):
        eps = mpmath.mpf(2) ** (-(mpmath.mpf(bits.numerator) / bits.denominator))
        needed = (mpmath.sqrt(2**scale) - 1) / mpmath.sqrt(2 * eps)
        assert abs(needed / mpmath.mpf(2) ** parameters - 1) < mpmath.mpf(10) ** -60


def test_small_tables_by_enumeration() -> None:
    """One weight of b bits gives 2^b settings: too few for 2^(n e) tables, enough from the bound on."""
    for entries, entry_bits, weight_bits in product(range(1, 6), range(1, 5), range(1, 7)):
        P = least_table_parameters(entries, entry_bits, weight_bits)
        tables, settings_of = 2 ** (entries * entry_bits), 2**weight_bits
        assert settings_of**P >= tables and (P == 0 or settings_of ** (P - 1) < tables)
        free = least_table_parameters(entries, entry_bits, weight_bits, fixed=False)
        assert free <= P and (settings_of * (free + 1) * (free + 2)) ** free >= tables


@given(st.integers(1, 200))
def test_permutation_bits(N: int) -> None:
    assert 2 ** permutation_bits(N) <= factorial(N) < 2 ** (permutation_bits(N) + 1)


@pytest.mark.parametrize("c", [1, 2, 4, 16, 64])
def test_the_threshold_by_going_through_all_sizes(c: int) -> None:
    """N_0(c) is the first N from which the condition holds without exception: every N up to 2^17."""
    fails = [N for N in range(2, 2**17) if impossible_from(c, (N - 1).bit_length()) > N]
    assert impossible_for_all_from(c) == fails[-1] + 1


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="positive error on a proper interval"):
        least_pieces(Square(), Fraction(0), Fraction(1), Fraction(0))
    with pytest.raises(ValueError, match="positive error on a proper interval"):
        least_pieces(Square(), Fraction(1), Fraction(1), Fraction(1))
