"""The functions that the paper's MLPs are asked for, each with what certifying an approximation needs.

A target is smooth and strictly convex or concave on its range, so that the difference to an affine function `slope x + b`
is extreme at the ends of an interval and at one point between, where the derivative is `slope`. Values there are closed
forms, enclosed by Arb at `BITS` bits.

`least_error(a, b)` is the best any affine function can do on [a, b]: half the largest distance between the chord and the
graph. (The best one is parallel to the chord and lies half-way: its error has the same size, with alternating signs, at a,
at the touching point and at b; Chebyshev. The same three points show that nothing does better.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, fmpq

from verify.arithmetic.ball import working_precision
from verify.arithmetic.formal import rational

BITS = 320
"""Working precision of the enclosures, in bits."""


class Target(ABC):
    """A function of one number: see the module."""

    name: str
    formula: str

    @abstractmethod
    def value(self, x: fmpq) -> arb:
        """The function at a rational point."""

    @abstractmethod
    def slope(self, x: fmpq) -> arb:
        """Its derivative at a rational point."""

    @abstractmethod
    def touching(self, slope: arb) -> arb:
        """The point at which the derivative is `slope`."""

    @abstractmethod
    def gap(self, slope: arb) -> arb:
        """`f(x) - slope x` at that point."""

    @abstractmethod
    def _deviation(self, a: arb, b: arb) -> arb:
        """The largest distance between the graph on [a, b] and its chord, cancellation avoided where a formula does."""

    def least_error(self, a: arb, b: arb) -> arb:
        """The least sup-norm error of an affine function on [a, b]."""
        return self._deviation(a, b) / 2

    def sample(self, x: Fraction) -> arb:
        """The function at a Python rational."""
        with working_precision(BITS):
            return self.value(rational(x))


@dataclass(frozen=True)
class Square(Target):
    """`x^2`."""

    name: str = "square"
    formula: str = "x^2"

    def value(self, x: fmpq) -> arb:
        return arb(x * x)

    def slope(self, x: fmpq) -> arb:
        return arb(2 * x)

    def touching(self, slope: arb) -> arb:
        return slope / 2

    def gap(self, slope: arb) -> arb:
        return -slope * slope / 4

    def _deviation(self, a: arb, b: arb) -> arb:
        return (b - a) ** 2 / 4


@dataclass(frozen=True)
class Reciprocal(Target):
    """`1/u` on positive numbers."""

    name: str = "reciprocal"
    formula: str = "1/u"

    def value(self, x: fmpq) -> arb:
        return arb(1 / x)

    def slope(self, x: fmpq) -> arb:
        return arb(-1 / (x * x))

    def touching(self, slope: arb) -> arb:
        return 1 / (-slope).sqrt()

    def gap(self, slope: arb) -> arb:
        return 2 * (-slope).sqrt()

    def _deviation(self, a: arb, b: arb) -> arb:
        return (1 / a.sqrt() - 1 / b.sqrt()) ** 2


@dataclass(frozen=True)
class Inversion(Target):
    """`r/(1-r)` for r < 1: the reciprocal of u = 1 - r, less 1."""

    name: str = "ratio inversion"
    formula: str = "r/(1-r)"

    def value(self, x: fmpq) -> arb:
        return arb(x / (1 - x))

    def slope(self, x: fmpq) -> arb:
        return arb(1 / ((1 - x) * (1 - x)))

    def touching(self, slope: arb) -> arb:
        return 1 - 1 / slope.sqrt()

    def gap(self, slope: arb) -> arb:
        return 2 * slope.sqrt() - 1 - slope

    def _deviation(self, a: arb, b: arb) -> arb:
        return (1 / (1 - a).sqrt() - 1 / (1 - b).sqrt()) ** 2


@dataclass(frozen=True)
class Exponential(Target):
    """`e^x`."""

    name: str = "exp"
    formula: str = "e^x"

    def value(self, x: fmpq) -> arb:
        return arb(x).exp()

    def slope(self, x: fmpq) -> arb:
        return arb(x).exp()

    def touching(self, slope: arb) -> arb:
        return slope.log()

    def gap(self, slope: arb) -> arb:
        return slope - slope * slope.log()

    def _deviation(self, a: arb, b: arb) -> arb:
        s = (b - a).expm1() / (b - a)
        return a.exp() * (1 + s * s.log() - s)


@dataclass(frozen=True)
class Logarithm(Target):
    """`log x` on positive numbers."""

    name: str = "log"
    formula: str = "log x"

    def value(self, x: fmpq) -> arb:
        return arb(x).log()

    def slope(self, x: fmpq) -> arb:
        return arb(1 / x)

    def touching(self, slope: arb) -> arb:
        return 1 / slope

    def gap(self, slope: arb) -> arb:
        return -slope.log() - 1

    def _deviation(self, a: arb, b: arb) -> arb:
        s = (b / a).log() / (b / a - 1)
        return s - 1 - s.log()
