"""Small ReLU networks as a standard optimiser finds them: the numerical opposite of a construction, certified all the same.

Levenberg's and Marquardt's method [Nocedal and Wright, Numerical Optimization, 2nd ed., Section 10.3] in floating point on a grid of points, from several
seeded starts, with weights on the points that move the least-squares fit towards the least maximum (Lawson's iteration). The result is rounded to multiples
of 2^-`WEIGHT_BITS` and is from then on an exact network like any other: nothing here is trusted. Floating point differs between machines, so
what is certified is a stored network, and training again only has to come close.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verify.relu.network import Affine, Network
from verify.relu.target import Target

Array = NDArray[np.float64]

WEIGHT_BITS = 24
"""Weights are rounded to multiples of 2^-24."""

POINTS = 300
"""Points of the training grid, denser where the target is steep."""


def train(target: Target, low: Fraction, high: Fraction, widths: Sequence[int], seed: int, starts: int = 6) -> Network:
    """The best of so many starts, by the largest error on the grid, for a network with these hidden layers."""
    x, y = _grid(target, low, high)
    scale = float(np.max(np.abs(y)))
    random = np.random.default_rng(seed)
    found = [_fit(x, y / scale, _start(random, widths), widths) for _ in range(starts)]
    best = min(found, key=lambda p: float(np.max(np.abs(_forward(p, x, widths)[0] - y / scale))))
    return _network(best, widths, low, high, scale)


def _grid(target: Target, low: Fraction, high: Fraction) -> tuple[Array, Array]:
    """Points in [0, 1], which stand for [low, high], and the target there: half of them even, half even in the target's values."""
    t = np.linspace(0.0, 1.0, 4 * POINTS)
    y = np.array([float(target.sample(low + (high - low) * Fraction(float(at)))) for at in t])
    rise = (y - y[0]) / (y[-1] - y[0])
    even = np.interp(np.linspace(0.0, 1.0, POINTS // 2), rise, t)
    x = np.unique(np.concatenate([np.linspace(0.0, 1.0, POINTS // 2), even]))
    return x, np.interp(x, t, y)


def _shapes(widths: Sequence[int]) -> list[tuple[int, int]]:
    sizes = [1, *widths, 1]
    return [(after, before + 1) for before, after in itertools.pairwise(sizes)]


def _start(random: np.random.Generator, widths: Sequence[int]) -> Array:
    """First-layer corners spread over [0, 1], the other weights normal with the variance 2/inputs."""
    parts = []
    for layer, (rows, columns) in enumerate(_shapes(widths)):
        W = random.normal(0.0, np.sqrt(2.0 / (columns - 1)), (rows, columns))
        if layer == 0:
            W[:, 0] = 1.0
            W[:, 1] = -(np.sort(random.uniform(0.0, 1.0, rows)) ** 0.5)
        elif layer < len(widths):
            W[:, -1] = 0.1
        parts.append(W.ravel())
    return np.concatenate(parts)


def _forward(p: Array, x: Array, widths: Sequence[int]) -> tuple[Array, Array]:
    """Outputs at all points, and their derivatives by all parameters."""
    values, tangents, at = x[:, None], np.zeros((len(x), 1, len(p))), 0
    shapes = _shapes(widths)
    for layer, (rows, columns) in enumerate(shapes):
        W = p[at : at + rows * columns].reshape(rows, columns)
        before = np.concatenate([values, np.ones((len(x), 1))], axis=1)
        values = before @ W.T
        tangents = np.einsum("rc,ncp->nrp", W[:, :-1], tangents)
        for r in range(rows):
            tangents[:, r, at + r * columns : at + (r + 1) * columns] += before
        if layer < len(shapes) - 1:
            on = values > 0
            values, tangents = values * on, tangents * on[:, :, None]
        at += rows * columns
    return values[:, 0], tangents[:, 0]


def _fit(x: Array, y: Array, p: Array, widths: Sequence[int]) -> Array:
    importance = np.ones(len(x))
    best, least = p, np.inf
    for _ in range(25):
        damping = 1e-2
        for _ in range(20):
            out, J = _forward(p, x, widths)
            residual = (out - y) * importance
            J = J * importance[:, None]
            step = np.linalg.solve(J.T @ J + damping * np.eye(len(p)), J.T @ residual)
            new = (_forward(p - step, x, widths)[0] - y) * importance
            if new @ new < residual @ residual:
                p, damping = p - step, damping / 3
            else:
                damping *= 4
        error = np.abs(_forward(p, x, widths)[0] - y)
        if np.max(error) < least:
            best, least = p, float(np.max(error))
        importance = importance * (0.5 + error / np.max(error)) ** 0.5
        importance /= np.sqrt(np.mean(importance**2))
    return best


def _network(p: Array, widths: Sequence[int], low: Fraction, high: Fraction, scale: float) -> Network:
    """The exact network on [low, high]: the change of variable goes into the first layer, the scale into the readout."""
    layers, at, shapes = [], 0, _shapes(widths)
    for layer, (rows, columns) in enumerate(shapes):
        W = [[Fraction(float(w)) for w in row] for row in p[at : at + rows * columns].reshape(rows, columns)]
        at += rows * columns
        if layer == 0:
            W = [[w / (high - low), b - w * low / (high - low)] for w, b in W]
        if layer == len(shapes) - 1:
            W = [[w * Fraction(scale) for w in row] for row in W]
        W = [[_rounded(w) for w in row] for row in W]
        layers.append(
            Affine(
                columns - 1,
                tuple(tuple((c, w) for c, w in enumerate(row[:-1]) if w) for row in W),
                tuple(row[-1] for row in W),
            )
        )
    return Network(tuple(layers[:-1]), layers[-1])


def _rounded(x: Fraction) -> Fraction:
    return Fraction(round(x * 2**WEIGHT_BITS), 2**WEIGHT_BITS)
