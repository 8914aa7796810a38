"""What a ReLU network computes, exactly: a continuous piecewise-linear function, followed layer by layer.

On an interval (`vertices`) it is the list of its corners. On a rectangle (`regions`) it is a list of convex polygons with an
affine map on each. Both are exact rational arithmetic: no sampling, and nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import fmpq

from verify.arithmetic.formal import rational
from verify.relu.network import Affine, Network, relu

Point = tuple[fmpq, fmpq]


def vertices(network: Network, low: Fraction | int, high: Fraction | int) -> list[tuple[fmpq, list[fmpq]]]:
    """`(x, network(x))` at the ends of [low, high] and at every point between which the network is affine.

    The network reads one number. Points where the slope happens not to change are left out.
    """
    if network.inputs != 1:
        raise TypeError(f"the network reads {network.inputs} numbers, not one")
    ends = [rational(Fraction(low))] if low == high else [rational(Fraction(low)), rational(Fraction(high))]
    points, values = ends, [[x] for x in ends]
    for layer in network.hidden:
        before = [layer.apply(row) for row in values]
        cut_points, cut_values = [points[0]], [before[0]]
        for i in range(1, len(points)):
            left, right, a, b = points[i - 1], points[i], before[i - 1], before[i]
            # A unit changes sign between two neighbours at most once, for its argument is affine there.
            cuts = sorted({p / (p - q) for p, q in zip(a, b, strict=True) if p.p * q.p < 0}, key=_order)
            for share in cuts:
                cut_points.append(left + share * (right - left))
                cut_values.append([p + share * (q - p) for p, q in zip(a, b, strict=True)])
            cut_points.append(right)
            cut_values.append(b)
        points, values = cut_points, [[relu(x) for x in row] for row in cut_values]
    return _corners([(x, network.readout.apply(row)) for x, row in zip(points, values, strict=True)])


def _order(x: fmpq) -> fmpq:
    return x


def _corners(path: list[tuple[fmpq, list[fmpq]]]) -> list[tuple[fmpq, list[fmpq]]]:
    kept = path[:1]
    for (_, _), here, after in zip(path, path[1:], path[2:], strict=False):
        x, y = kept[-1]
        left, right = here[0] - x, after[0] - here[0]
        if any((b - a) * right != (c - b) * left for a, b, c in zip(y, here[1], after[1], strict=True)):
            kept.append(here)
    return kept + path[-1:] if len(path) > 1 else kept


def pieces_on_line(network: Network, low: Fraction | int, high: Fraction | int) -> int:
    """The exact number of affine pieces on [low, high]."""
    return max(1, len(vertices(network, low, high)) - 1)


@dataclass(frozen=True)
class Region:
    """A convex polygon, by its corners in order, and the affine map of the network on it: rows (constant, x, y)."""

    corners: tuple[Point, ...]
    rows: tuple[tuple[fmpq, fmpq, fmpq], ...]

    def at(self, row: int, point: Point) -> fmpq:
        """One output at a point."""
        constant, along_x, along_y = self.rows[row]
        return constant + along_x * point[0] + along_y * point[1]


def regions(
    network: Network, x: tuple[Fraction | int, Fraction | int], y: tuple[Fraction | int, Fraction | int]
) -> list[Region]:
    """The network on the rectangle of these ranges, which must not be degenerate. It reads two numbers."""
    if network.inputs != 2:
        raise TypeError(f"the network reads {network.inputs} numbers, not two")
    (x0, x1), (y0, y1) = ((rational(Fraction(a)), rational(Fraction(b))) for a, b in (x, y))
    zero, one = fmpq(0), fmpq(1)
    current = [Region(((x0, y0), (x1, y0), (x1, y1), (x0, y1)), ((zero, one, zero), (zero, zero, one)))]
    for layer in network.hidden:
        current = [part for region in current for part in _bent(region, layer)]
    return [Region(region.corners, _compose(network.readout, region.rows)) for region in current]


def _compose(layer: Affine, rows: Sequence[tuple[fmpq, fmpq, fmpq]]) -> tuple[tuple[fmpq, fmpq, fmpq], ...]:
    columns = [layer.apply(column) for column in zip(*rows, strict=True)]
    free = layer.apply([fmpq(0)] * layer.inputs)
    # The bias belongs to the constant alone: it is taken off the two slopes again.
    return tuple(
        (constant, along_x - b, along_y - b) for constant, along_x, along_y, b in zip(*columns, free, strict=True)
    )


def _bent(region: Region, layer: Affine) -> list[Region]:
    """The region cut along the zero lines of the layer's units, each part with the map after the relu."""
    rows = _compose(layer, region.rows)
    parts = [Region(region.corners, rows)]
    for unit in range(len(rows)):
        parts = [half for part in parts for half in _halves(part, unit)]
    zero = (fmpq(0), fmpq(0), fmpq(0))
    return [
        Region(
            part.corners,
            tuple(
                row if any(part.at(unit, corner).p > 0 for corner in part.corners) else zero
                for unit, row in enumerate(part.rows)
            ),
        )
        for part in parts
    ]


def _halves(region: Region, unit: int) -> list[Region]:
    """The region itself where the unit keeps its sign on it, otherwise the two parts on either side of its zero line."""
    signs = [region.at(unit, corner) for corner in region.corners]
    if all(s.p >= 0 for s in signs) or all(s.p <= 0 for s in signs):
        return [region]
    sides: tuple[list[Point], list[Point]] = ([], [])
    for (here, s), (after, t) in pairwise([*zip(region.corners, signs, strict=True), (region.corners[0], signs[0])]):
        if s.p >= 0:
            sides[0].append(here)
        if s.p <= 0:
            sides[1].append(here)
        if s.p * t.p < 0:
            share = s / (s - t)
            cut = (here[0] + share * (after[0] - here[0]), here[1] + share * (after[1] - here[1]))
            sides[0].append(cut)
            sides[1].append(cut)
    return [Region(tuple(side), region.rows) for side in sides]
