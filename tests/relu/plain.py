"""ReLU networks and their targets once more, in plain fractions and mpmath: nothing of the engine's arithmetic is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
from hypothesis import strategies as st

from verify.relu.network import Affine, Network
from verify.relu.target import Exponential, Inversion, Logarithm, Reciprocal, Square, Target

DIGITS = 90


def affine(layer: Affine, x: Sequence[Fraction]) -> list[Fraction]:
    return [b + sum((w * x[c] for c, w in row), Fraction(0)) for row, b in zip(layer.rows, layer.bias, strict=True)]


def forward(network: Network, *x: Fraction | int) -> list[Fraction]:
    """The network's output at a point."""
    values = [Fraction(entry) for entry in x]
    for layer in network.hidden:
        values = [max(entry, Fraction(0)) for entry in affine(layer, values)]
    return affine(network.readout, values)


FORMULAS: dict[type[Target], Any] = {
    Square: lambda x: x * x,
    Reciprocal: lambda x: 1 / x,
    Inversion: lambda x: x / (1 - x),
    Exponential: mpmath.exp,
    Logarithm: mpmath.log,
}


def number(x: Fraction) -> Any:
    """A fraction for mpmath (inside `mpmath.workdps`)."""
    return mpmath.mpf(x.numerator) / x.denominator


def error_at(network: Network, target: Target, x: Fraction) -> Any:
    """|network - target| at a point, to about 90 digits."""
    with mpmath.workdps(DIGITS):
        return abs(number(forward(network, x)[0]) - FORMULAS[type(target)](number(x)))


def exactly_above(upper: Fraction, found: Any) -> bool:
    """Whether a bound is above an mpmath number, but for that number's own rounding."""
    with mpmath.workdps(DIGITS):
        return bool(found <= number(upper) + mpmath.mpf(10) ** (20 - DIGITS))


def grid(low: Fraction, high: Fraction, points: int) -> Iterator[Fraction]:
    """Evenly spaced points, the ends included."""
    return (low + (high - low) * Fraction(i, points) for i in range(points + 1))


weights = st.fractions(-3, 3, max_denominator=4)


@st.composite
def networks(draw: st.DrawFn, inputs: int = 1, outputs: int = 1) -> Network:
    """Small networks with any weights, zeros and dead units among them."""
    layers, width = [], inputs
    for rows in [*draw(st.lists(st.integers(1, 4), max_size=3)), outputs]:
        entries = [[draw(weights) for _ in range(width)] for _ in range(rows)]
        kept = tuple(tuple((c, w) for c, w in enumerate(row) if w) for row in entries)
        layers.append(Affine(width, kept, tuple(draw(weights) for _ in range(rows))))
        width = rows
    return Network(tuple(layers[:-1]), layers[-1])
