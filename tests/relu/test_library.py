"""The library: stated errors at dense points in plain fractions and mpmath, exactness where it is promised, sizes by formula, mutants."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.independent import nearest
from tests.relu.plain import DIGITS, error_at, exactly_above, forward, grid, number
from verify.relu import library, size
from verify.relu.error import certify
from verify.relu.network import Network
from verify.relu.target import Exponential, Inversion, Logarithm, Reciprocal, Square

unit = st.fractions(0, 1, max_denominator=10**6)


def counted(network: Network) -> size.Size:
    """The five figures, counted from the layers."""
    layers = [*network.hidden, network.readout]
    stored = [w for a in layers for row in a.rows for _, w in row] + [b for a in layers for b in a.bias if b]
    widths = [len(a.bias) for a in network.hidden]
    bits = max(len(f"{abs(w.numerator):b}") + len(f"{w.denominator:b}") - 1 for w in stored)
    return size.Size(len(widths), max(widths), sum(widths), len(stored), bits)


@settings(max_examples=60)
@given(unit, unit, st.integers(1, 9))
def test_square_and_product_stay_within_their_errors(x: Fraction, y: Fraction, m: int) -> None:
    error = Fraction(1, 4 ** (m + 1))
    (square,), (product,) = forward(library.square(m), x), forward(library.product(m), x, y)
    assert 0 <= square - x * x <= error and abs(product - x * y) <= error
    assert forward(library.product(m), x, 0) == [0] and forward(library.product(m), 0, y) == [0]


@settings(max_examples=40)
@given(unit, st.integers(1, 6), st.integers(1, 24))
def test_reciprocal_and_inversion_stay_within_their_errors(share: Fraction, scale: int, bits: int) -> None:
    u = Fraction(1, 2**scale) + share * (1 - Fraction(1, 2**scale))
    assert exactly_above(Fraction(1, 2**bits), error_at(library.reciprocal(scale, bits), Reciprocal(), u))
    assert exactly_above(Fraction(1, 2**bits), error_at(library.inversion(scale, bits), Inversion(), 1 - u))


@settings(max_examples=40)
@given(unit, st.integers(0, 4), st.integers(1, 14))
def test_exp_and_log_stay_within_their_errors(share: Fraction, scale: int, bits: int) -> None:
    network = library.exponential(scale, bits)
    assert exactly_above(Fraction(1, 2**bits), error_at(network, Exponential(), -(2**scale) * share))
    if bits >= 2:
        assert exactly_above(Fraction(1, 2**bits), error_at(library.logarithm(bits), Logarithm(), 1 + share))


@settings(max_examples=40)
@given(st.data(), st.integers(1, 3), st.integers(1, 5), st.integers(2, 20), st.sampled_from([1, Fraction(7, 3)]))
def test_quotients_and_recovery_stay_within_their_errors(
    data: st.DataObject, columns: int, scale: int, bits: int, bound: Fraction
) -> None:
    b = [bound * (2 * data.draw(unit) - 1) for _ in range(columns)]
    u = Fraction(1, 2**scale) + data.draw(unit) * (1 - Fraction(1, 2**scale))
    allowed = bound / 2**bits
    for found, x in zip(forward(library.quotient(columns, scale, bits, bound), *b, u), b, strict=True):
        assert abs(found - x / u) <= allowed
    *found_b, found_A = forward(library.recovery(columns, scale, bits, bound), *b, 1 - u)
    assert all(abs(found - x / u) <= allowed for found, x in zip(found_b, b, strict=True))
    assert abs(found_A - (1 - u) / u) <= Fraction(1, 2**bits)


@settings(max_examples=30)
@given(st.data(), st.integers(1, 4), st.integers(1, 2), st.integers(1, 4), st.integers(2, 12))
def test_aggregation_stays_within_its_error(
    data: st.DataObject, parts: int, columns: int, scale: int, bits: int
) -> None:
    total = Fraction(1, 2**scale) + data.draw(unit) * (1 - Fraction(1, 2**scale))
    B = [[(2 * data.draw(unit) - 1) / parts for _ in range(columns)] for _ in range(parts)]
    x = [entry for row in B for entry in (*row, total / parts)]
    out = forward(library.aggregation(parts, columns, scale, bits), *x)
    for c, found in enumerate(out):
        assert abs(found - sum(row[c] for row in B) / total) <= Fraction(1, 2**bits)


@settings(max_examples=100)
@given(unit, st.integers(0, 5), st.integers(0, 4))
def test_rounding_is_exact_away_from_ties(x: Fraction, bits: int, finer: int) -> None:
    gap = Fraction(1, 2 ** (bits + finer))
    tie = abs((x * 2**bits) % 1 - Fraction(1, 2)) / 2**bits
    (found,) = forward(library.rounding(bits, gap), x)
    if tie >= gap / 2:
        assert found == nearest(x, bits)
    assert 0 <= found <= 1


@settings(max_examples=60)
@given(st.lists(st.fractions(-9, 9, max_denominator=50), min_size=2, max_size=40))
def test_tables_return_their_entries(entries: list[Fraction]) -> None:
    network = library.lookup(entries)
    assert [forward(network, x)[0] for x in range(len(entries))] == entries
    bound = size.lookup_size(len(entries), 0)
    assert network.depth <= bound.depth
    assert network.units <= bound.units and network.parameters <= bound.parameters


@pytest.mark.parametrize("gap", [Fraction(0), Fraction(1, 2), Fraction(-1, 9)])
def test_a_gap_wider_than_the_grid_is_refused(gap: Fraction) -> None:
    with pytest.raises(ValueError, match=r"at most 2\^-2"):
        library.rounding(2, gap)


# --- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", range(1, 16))
def test_sizes_of_square_and_product(m: int) -> None:
    assert counted(library.square(m)) == size.square_size(m)
    assert counted(library.product(m)) == size.product_size(m)


@pytest.mark.parametrize("scale", [1, 2, 3, 4, 8, 13])
@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 16, 33, 64])
def test_sizes_of_reciprocals(scale: int, bits: int) -> None:
    assert counted(library.reciprocal(scale, bits)) == size.reciprocal_size(scale, bits)
    assert counted(library.inversion(scale, bits)) == size.inversion_size(scale, bits)


@pytest.mark.parametrize("columns", [1, 2, 4, 7])
@pytest.mark.parametrize("scale", [1, 2, 6])
@pytest.mark.parametrize("bits", [1, 4, 9, 30])
def test_sizes_of_quotients(columns: int, scale: int, bits: int) -> None:
    assert counted(library.quotient(columns, scale, bits)) == size.quotient_size(columns, scale, bits)
    assert counted(library.recovery(columns, scale, bits)) == size.recovery_size(columns, scale, bits)
    for parts in (2, 5):
        found = counted(library.aggregation(parts, columns, scale, bits))
        assert found == size.aggregation_size(parts, columns, scale, bits)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 7, 8, 12, 25])
def test_sizes_of_exp_log_and_rounding(bits: int) -> None:
    for scale in (0, 1, 3):
        assert counted(library.exponential(scale, bits)) == size.exponential_size(scale, bits)
    assert counted(library.logarithm(bits)) == size.logarithm_size(bits)
    for gap_bits in (bits, bits + 1, bits + 5):
        assert counted(library.rounding(bits, Fraction(1, 2**gap_bits))) == size.rounding_size(bits, gap_bits)


# --- mutants -----------------------------------------------------------------------------------------------------------


def test_a_tooth_too_few_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = library.square_of
    monkeypatch.setattr(library, "square_of", lambda circuit, x, m: original(circuit, x, m - 1))
    assert certify(library.square(3), Square(), 0, 1).upper > Fraction(1, 4**4)


def test_a_newton_step_too_few_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = library.newton_plan(3, 6)
    monkeypatch.setattr(
        library, "newton_plan", lambda scale, bits: library.NewtonPlan(3, plan.precisions[:2], plan.teeth[:1])
    )
    assert certify(library.reciprocal(3, 6), Reciprocal(), Fraction(1, 8), 1).upper > Fraction(1, 2**6)


def test_a_rounding_without_its_shift_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = library.rounding_of
    monkeypatch.setattr(
        library, "rounding_of", lambda circuit, x, bits, gap: original(circuit, x - Fraction(1, 8), bits, gap)
    )
    (found,) = forward(library.rounding(2, Fraction(1, 16)), Fraction(2, 5))
    assert found != nearest(Fraction(2, 5), 2)


def test_the_interpolant_at_equal_corners_touches_the_chord() -> None:
    """One piece: parallel to the chord, half-way, against mpmath's minimum over lines."""
    network = library.interpolant(Square(), Fraction(0), Fraction(1), 1)
    (a,), (b,) = forward(network, 0), forward(network, 1)
    assert abs(a + Fraction(1, 8)) < Fraction(1, 2**60) and abs(b - Fraction(7, 8)) < Fraction(1, 2**60)
    with mpmath.workdps(DIGITS):
        worst: Any = max(abs(number(forward(network, x)[0] - x * x)) for x in grid(Fraction(0), Fraction(1), 100))
        assert abs(worst - mpmath.mpf(1) / 8) < mpmath.mpf(2) ** -60
