"""Certified errors: the exact sup-norm distance between a network and its target, on a whole interval or rectangle."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import arb, fmpq

from verify.arithmetic.ball import dyadic, working_precision
from verify.arithmetic.formal import rational
from verify.relu.network import Network, fraction
from verify.relu.pieces import regions, vertices
from verify.relu.target import BITS, Target


@dataclass(frozen=True)
class Certificate:
    """The error of one output over the stated range lies in [`attained`, `upper`]: at the point `at` it is at least `attained`."""

    upper: Fraction
    attained: Fraction
    at: tuple[Fraction, ...]
    pieces: int
    """Affine pieces (regions) of the network."""

    @property
    def tight(self) -> bool:
        """Whether the upper bound is within 1 % of an error that is attained."""
        return 100 * self.upper <= 101 * self.attained or not self.upper


def certify(
    network: Network, target: Target, low: Fraction | int, high: Fraction | int, output: int = 0
) -> Certificate:
    """The sup of |network - target| over [low, high], for one output of a network that reads one number.

    On each affine piece the error is extreme at the ends or where the target's slope is the piece's (`verify.relu.target`),
    so finitely many enclosures of `BITS` bits give the whole interval. The target must be defined on it.
    """
    path = vertices(network, low, high)
    with working_precision(BITS):
        corners = [(arb(x), abs(arb(y[output]) - target.value(x)), fraction(x)) for x, y in path]
        upper, attained, at = arb(0), arb(0), corners[0][2]
        for _, error, place in corners:
            upper = upper.max(error)
            if error.lower() > attained:
                attained, at = error.lower(), place
        for ((x0, y0), (x1, y1)), ((ball0, _, _), (ball1, _, _)) in zip(pairwise(path), pairwise(corners), strict=True):
            slope = (y1[output] - y0[output]) / (x1 - x0)
            ends = target.slope(x0), target.slope(x1)
            between = min(ends[0].lower(), ends[1].lower()), max(ends[0].upper(), ends[1].upper())
            # A slope surely outside the target's slopes means that the error is monotone on the piece: its ends are enough.
            if arb(slope) < between[0] or arb(slope) > between[1]:
                continue
            touching = target.touching(arb(slope))
            error = abs(target.gap(arb(slope)) - arb(y0[output] - slope * x0))
            upper = upper.max(error)
            if error.lower() > attained and ball0 < touching < ball1:
                attained, at = error.lower(), fraction(_middle(touching))
        return Certificate(_above(upper), _below(attained), (at,), max(1, len(path) - 1))


def certify_product(
    network: Network, x: tuple[Fraction | int, Fraction | int], y: tuple[Fraction | int, Fraction | int]
) -> Certificate:
    """The exact sup of |network(x, y) - x y| over a rectangle: `upper` and `attained` agree.

    `x y` minus an affine function has its only stationary point at a saddle, so on each polygon the error is extreme on an edge,
    where it is a quadratic in one parameter: at a corner, or at the parabola's apex if that lies inside the edge.
    """
    worst, at = fmpq(-1), (fmpq(0), fmpq(0))
    parts = regions(network, x, y)
    for region in parts:
        for p, q in pairwise([*region.corners, region.corners[0]]):
            dx, dy = q[0] - p[0], q[1] - p[1]
            shares = [fmpq(0)]
            if bend := dx * dy:
                # error(share) = e(p) + share (e' along the edge) + share^2 dx dy
                row = region.rows[0]
                first = p[0] * dy + p[1] * dx - row[1] * dx - row[2] * dy
                apex = -first / (2 * bend)
                if 0 < apex < 1:
                    shares.append(apex)
            for share in shares:
                point = (p[0] + share * dx, p[1] + share * dy)
                error = abs(point[0] * point[1] - region.at(0, point))
                if error > worst:
                    worst, at = error, point
    exact = fraction(worst)
    return Certificate(exact, exact, (fraction(at[0]), fraction(at[1])), len(parts))


def sampled(network: Network, target: Target, x: Fraction, output: int = 0) -> Fraction:
    """A lower bound on the error at one point."""
    with working_precision(BITS):
        return _below(abs(arb(rational(network(x)[output])) - target.value(rational(x))))


def _above(x: arb) -> Fraction:
    return dyadic(x.upper())


def _below(x: arb) -> Fraction:
    return max(Fraction(0), dyadic(x.lower()))


def _middle(x: arb) -> fmpq:
    return rational(dyadic(x.mid()))
