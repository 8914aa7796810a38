"""Corners and regions: the network between them is affine (plain fractions, dense points), and their number never exceeds the bound."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.relu.plain import forward, grid, networks
from verify.relu.bound import most_pieces
from verify.relu.network import Network, fraction
from verify.relu.pieces import pieces_on_line, regions, vertices

ends = st.tuples(st.fractions(-4, 0, max_denominator=3), st.fractions(Fraction(1, 8), 4, max_denominator=8))


@given(networks(1, 2), ends)
def test_the_polygon_is_the_network(network: Network, interval: tuple[Fraction, Fraction]) -> None:
    low, high = interval
    path = [(fraction(x), [fraction(v) for v in y]) for x, y in vertices(network, low, high)]
    assert path[0][0] == low and path[-1][0] == high
    for (a, left), (b, right) in pairwise(path):
        assert a < b
        for x in grid(a, b, 7):
            wanted = [p + (q - p) * (x - a) / (b - a) for p, q in zip(left, right, strict=True)]
            assert forward(network, x) == wanted


@given(networks(1, 1), ends)
def test_every_inner_corner_bends(network: Network, interval: tuple[Fraction, Fraction]) -> None:
    path = vertices(network, *interval)
    slopes = [(y1[0] - y0[0]) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(path)]
    assert all(a != b for a, b in pairwise(slopes))
    assert pieces_on_line(network, *interval) == len(slopes) <= most_pieces(network.widths)


def test_a_single_point() -> None:
    network = Network.from_json([{"inputs": 1, "rows": [[[0, "2"]]], "bias": ["1"]}])
    assert [fraction(x) for x, _ in vertices(network, 3, 3)] == [3] and pieces_on_line(network, 3, 3) == 1
    with pytest.raises(TypeError, match="reads 1 numbers, not two"):
        regions(network, (0, 1), (0, 1))


@settings(max_examples=60)
@given(networks(2, 2), st.lists(st.tuples(st.fractions(0, 1), st.fractions(0, 1)), min_size=1, max_size=9))
def test_regions_cover_the_rectangle_and_hold_the_network(
    network: Network, shares: list[tuple[Fraction, Fraction]]
) -> None:
    parts = regions(network, (-1, 2), (0, 3))
    areas = Fraction(0)
    for part in parts:
        corners = [(fraction(x), fraction(y)) for x, y in part.corners]
        ring = [*corners, corners[0]]
        areas += sum((a[0] * b[1] - a[1] * b[0] for a, b in pairwise(ring)), Fraction(0)) / 2
        middle = tuple(sum(c[k] for c in corners) / len(corners) for k in (0, 1))
        for s, t in shares:
            first, second = corners[int(s * (len(corners) - 1))], corners[int(t * (len(corners) - 1))]
            point = tuple((a * s + b * (1 - s) + c) / 2 for a, b, c in zip(first, second, middle, strict=True))
            rows = [[fraction(entry) for entry in row] for row in part.rows]
            assert forward(network, *point) == [c + a * point[0] + b * point[1] for c, a, b in rows]
    assert areas == 9
