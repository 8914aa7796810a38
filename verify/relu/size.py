"""What the networks of `verify.relu.library` cost, by formula; each is compared with the built network in the tests.

Notation: m, m_k are the teeth of a product, K >= 1 the Newton steps, T = m_1 + ... + m_K, T' = T - m_K, S the scale. A tooth of a square costs
three units (two for the sawtooth, one for the sum), a product two squares; the rest carries numbers from layer to layer.
So everything is linear in T, and T is about the bits wanted plus the scale: the sum of a geometric series.
"""

from __future__ import annotations

from dataclasses import dataclass

from verify.relu.library import logarithm_plan, newton_plan, quotient_teeth, squaring_plan


@dataclass(frozen=True)
class Size:
    """Hidden layers, units of the widest, all units, nonzero weights and biases, bits of the longest of these."""

    depth: int
    width: int
    units: int
    parameters: int
    weight_bits: int


def square_size(m: int) -> Size:
    """`library.square(m)`, m >= 1."""
    return Size(m, min(m + 1, 3), 3 * m - 1, 8 * m - 3, 2 * m)


def product_size(m: int) -> Size:
    """`library.product(m)`, m >= 1."""
    return Size(m + 1, min(2 * m + 2, 6), 6 * m + 1, 16 * m + 2, 2 * m)


def reciprocal_size(scale: int, bits: int) -> Size:
    """`library.reciprocal(scale, bits)`."""
    *early, last = newton_plan(scale, bits).teeth
    K, T, before = len(early) + 1, sum(early) + last, sum(early)
    return Size(
        depth=1 + 2 * T + 4 * K,
        width=max(scale + 1, 8 if early else 7),
        units=scale - 2 + 13 * T + 10 * K + 2 * before,
        parameters=3 * scale + 33 * T + 14 * K + 2 * before,
        weight_bits=max(scale + 7, 2 * last - min(scale, 2), *(2 * m - 1 for m in (last, *early) if m in early)),
    )


def inversion_size(scale: int, bits: int) -> Size:
    """`library.inversion(scale, bits)`: one more unit, for u = 1 - r."""
    *early, last = newton_plan(scale, bits).teeth
    K, T, before = len(early) + 1, sum(early) + last, sum(early)
    of_u = reciprocal_size(scale, bits)
    return Size(
        of_u.depth + 1, of_u.width, of_u.units + 1, 3 * scale + 2 + 33 * T + 11 * K + 2 * before, of_u.weight_bits
    )


def quotient_size(columns: int, scale: int, bits: int) -> Size:
    """`library.quotient(columns, scale, bits)` with bound 1: one reciprocal, and a product for each column."""
    *early, last = newton_plan(scale, bits + 1).teeth
    K, T, before, m = len(early) + 1, sum(early) + last, sum(early), quotient_teeth(scale, bits)
    return Size(
        depth=3 + 2 * T + 4 * K + m,
        width=max(scale + 1 + columns, (8 if early else 7) + columns, 6 * columns + 1),
        units=scale + 13 * T + 10 * K + 2 * before + m + columns * (3 + 6 * m + 2 * T + 4 * K),
        parameters=3 * scale + 1 + 33 * T + 14 * K + 2 * before + m + columns * (6 + 16 * m + 2 * T + 4 * K),
        weight_bits=max(scale + 7, 2 * m - 2, *(2 * teeth - 1 for teeth in (last, *early))),
    )


def recovery_size(columns: int, scale: int, bits: int) -> Size:
    """`library.recovery(columns, scale, bits)` with bound 1: the quotients, and a unit for 1 - r."""
    *early, last = newton_plan(scale, bits + 1).teeth
    K, T, before, m = len(early) + 1, sum(early) + last, sum(early), quotient_teeth(scale, bits)
    of_u = quotient_size(columns, scale, bits)
    return Size(
        depth=of_u.depth + 1,
        width=of_u.width,
        units=of_u.units + 1 + columns,
        parameters=3 * scale + 4 + 33 * T + 11 * K + 2 * before + m + columns * (7 + 16 * m + 2 * T + 4 * K),
        weight_bits=of_u.weight_bits,
    )


def aggregation_size(parts: int, columns: int, scale: int, bits: int) -> Size:
    """`library.aggregation(parts, columns, scale, bits)` with bound 1: a quotient of sums."""
    *early, last = newton_plan(scale, bits + 1).teeth
    K, T, before, m = len(early) + 1, sum(early) + last, sum(early), quotient_teeth(scale, bits)
    of_sums = quotient_size(columns, scale, bits)
    return Size(
        depth=of_sums.depth + 1,
        width=of_sums.width,
        units=of_sums.units + 1 + columns,
        parameters=3 * scale
        + 33 * T
        + 11 * K
        + 2 * before
        + m
        + parts
        + columns * (6 + 16 * m + 2 * T + 4 * K + parts),
        weight_bits=of_sums.weight_bits,
    )


def exponential_size(scale: int, bits: int) -> Size:
    """`library.exponential(scale, bits)`."""
    plan = squaring_plan(scale, bits)
    s, m = plan.squarings, plan.teeth
    return Size((1 + s) * (1 + m), min(m + 2, 4), 1 + 4 * m + 3 * s * m, 2 - 3 * s + 9 * m + 8 * s * m, 2 * m + 1)


def logarithm_size(bits: int) -> Size:
    """`library.logarithm(bits)`: each Newton step an exponential of its own."""
    depth, units, parameters, steps = 1, 4, 13, logarithm_plan(bits)
    for plan, q in steps:
        s, m = plan.squarings, plan.teeth
        depth += 4 + s + m + s * m + q
        units += 10 + 2 * s + 5 * m + 5 * s * m + 8 * q
        parameters += 14 - s + 10 * m + 10 * s * m + 18 * q
    plan, q = steps[-1]
    return Size(depth, 8 if len(steps) > 1 else 7, units - q, parameters - q, max(14, 2 * plan.teeth + 1))


def rounding_size(bits: int, gap_bits: int) -> Size:
    """`library.rounding(bits, 2^-gap_bits)`."""
    return Size(
        bits + 2,
        min(bits + 2, 4),
        3 + 4 * bits,
        6 + 14 * bits + (0 if bits else 2) - (2 if gap_bits == bits else 0),
        2 * gap_bits + 1 - bits,
    )


def lookup_size(entries: int, bits: int) -> Size:
    """`library.lookup` of `entries` values in general position of at most so many bits: a unit for each step of the table.

    An upper bound: three parameters a unit, fewer where neighbouring steps are equal.
    """
    return Size(1, entries - 1, entries - 1, 3 * (entries - 1), 0)
