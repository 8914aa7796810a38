"""Rational enclosures: pairs of rationals `low <= x <= high`, with exp, log and square roots from their series.

An enclosure is rounded outward to `bits` significant bits after each step, so that long computations stay small; rationals of
fewer bits stay exact. Nothing here uses floating point.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from .document import Refused

LARGEST_EXPONENT = 1 << 16
"""Of exp and 2^x in absolute value."""

MOST_BITS = 1 << 18
"""Of the numerator and the denominator of an exact number."""


@dataclass(frozen=True)
class Enclosure:
    """All x with `low <= x <= high`; a number where both are equal."""

    low: Fraction
    high: Fraction
    bits: int

    @classmethod
    def of(cls, x: Fraction, bits: int) -> Enclosure:
        """A rational, exactly."""
        return cls(x, x, bits)

    @property
    def exact(self) -> bool:
        """Whether it holds a single number."""
        return self.low == self.high

    def _rounded(self, low: Fraction, high: Fraction) -> Enclosure:
        if low == high:  # rational arithmetic on numbers stays exact
            _require_moderate(low)
            return Enclosure(low, high, self.bits)
        return Enclosure(_round(low, self.bits, up=False), _round(high, self.bits, up=True), self.bits)

    def __add__(self, other: Enclosure) -> Enclosure:
        return self._rounded(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.high, -self.low, self.bits)

    def __sub__(self, other: Enclosure) -> Enclosure:
        return self + (-other)

    def __mul__(self, other: Enclosure) -> Enclosure:
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return self._rounded(min(corners), max(corners))

    def square(self) -> Enclosure:
        """x^2, never below 0."""
        if self.low <= 0 <= self.high:
            return self._rounded(Fraction(0), max(self.low**2, self.high**2))
        return self * self

    def inverse(self) -> Enclosure:
        """1/x. Raises ArithmeticError where it may be 0."""
        if self.low <= 0 <= self.high:
            raise ArithmeticError("division by a number that may be 0")
        return self._rounded(1 / self.high, 1 / self.low)

    def power(self, n: int) -> Enclosure:
        """x^n for an integer n of at most 2^16 in absolute value."""
        if abs(n) > LARGEST_EXPONENT:
            raise Refused(f"a power is larger than {LARGEST_EXPONENT}")
        base = self.inverse() if n < 0 else self
        result = Enclosure.of(Fraction(1), self.bits)
        for digit in bin(abs(n))[2:]:
            result = result.square()
            if digit == "1":
                result = result * base
        return result

    def exp(self) -> Enclosure:
        """e^x; only e^0 is exact."""
        if self.exact and not self.low:
            return Enclosure.of(Fraction(1), self.bits)
        return Enclosure(_exp(self.low, self.bits)[0], _exp(self.high, self.bits)[1], self.bits)

    def log(self) -> Enclosure:
        """log x. Raises ArithmeticError where x may be 0 or less; only log 1 is exact."""
        if self.low <= 0:
            raise ArithmeticError("logarithm of a number that may not be positive")
        return Enclosure(_log(self.low, self.bits)[0], _log(self.high, self.bits)[1], self.bits)

    def sqrt(self) -> Enclosure:
        """The square root; exact for squares of rationals. Raises ArithmeticError where x may be negative."""
        if self.low < 0:
            raise ArithmeticError("square root of a number that may be negative")
        return Enclosure(_sqrt(self.low, self.bits)[0], _sqrt(self.high, self.bits)[1], self.bits)


def _require_moderate(x: Fraction) -> None:
    """Exact numbers double their length in every squaring: an end to that."""
    if max(abs(x.numerator).bit_length(), x.denominator.bit_length()) > MOST_BITS:
        raise Refused(f"a number of more than {MOST_BITS} bits")


def _round(x: Fraction, bits: int, *, up: bool) -> Fraction:
    """x to `bits` significant bits, downward or upward."""
    if not x:
        return x
    shift = bits - (abs(x.numerator).bit_length() - x.denominator.bit_length())
    scaled = x.numerator << shift if shift >= 0 else x.numerator
    bottom = x.denominator if shift >= 0 else x.denominator << -shift
    whole = -(-scaled // bottom) if up else scaled // bottom
    return Fraction(whole, 1 << shift) if shift >= 0 else Fraction(whole << -shift)


def _exp(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of e^x: the series at y = x / 2^k with |y| <= 1/256, then k squarings.

    With n terms the rest is at most `2 |y|^n / n!` for |y| <= 1/2.
    """
    if not x:
        return Fraction(1), Fraction(1)
    if abs(x) > LARGEST_EXPONENT:
        raise Refused(f"exp of a number larger than {LARGEST_EXPONENT}")
    k = 8 + max(0, (abs(x.numerator) // x.denominator).bit_length())
    inner = bits + 2 * k + 8
    y = x / (1 << k)
    y_low, y_high = _round(y, inner, up=False), _round(y, inner, up=True)
    bounds = []
    for z, up in ((y_low, False), (y_high, True)):
        term, total, n = Fraction(1), Fraction(1), 0
        while abs(term) > Fraction(1, 1 << (inner + 4)):
            n += 1
            term = _round(term * z / n, 2 * inner, up=up)  # a relative 2^-2inner for each term: within the slack below
            total += term
        slack = 4 * abs(term) + Fraction(n + 1, 1 << (2 * inner - 2 - n.bit_length()))
        bounds.append(_round(total + slack if up else total - slack, inner, up=up))
    low, high = bounds
    for _ in range(k):
        low, high = _round(low * low, inner, up=False), _round(high * high, inner, up=True)
    return _round(low, bits, up=False), _round(high, bits, up=True)


def _log(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of log x: `x = 2^k m` with m in [2/3, 4/3] or so, `log m = 2 artanh((m-1)/(m+1))` and `log 2 = 2 artanh(1/3)`."""
    if x == 1:
        return Fraction(0), Fraction(0)
    k = x.numerator.bit_length() - x.denominator.bit_length()
    m = x / Fraction(2) ** k
    while m > Fraction(4, 3):
        m, k = m / 2, k + 1
    while m < Fraction(2, 3):
        m, k = m * 2, k - 1
    inner = bits + 2 * abs(k).bit_length() + 8
    low, high = _artanh((m - 1) / (m + 1), inner)
    two_low, two_high = _artanh(Fraction(1, 3), inner)
    low, high = (
        2 * low + 2 * k * (two_low if k >= 0 else two_high),
        2 * high + 2 * k * (two_high if k >= 0 else two_low),
    )
    return _round(low, bits, up=False), _round(high, bits, up=True)


def _artanh(z: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of artanh z = z + z^3/3 + z^5/5 + ... for |z| <= 1/3, where the rest is at most 9/8 of the next term's size."""
    if not z:
        return z, z
    sign = 1 if z > 0 else -1
    a = abs(z)
    a_low, a_high = _round(a, 2 * bits, up=False), _round(a, 2 * bits, up=True)
    limit = a / (1 << (bits + 4))
    low = high = Fraction(0)
    power_low, power_high, n = a_low, a_high, 1
    while power_high / n > limit:
        low, high = low + _round(power_low / n, 2 * bits, up=False), high + _round(power_high / n, 2 * bits, up=True)
        power_low = _round(power_low * a_low * a_low, 2 * bits, up=False)
        power_high = _round(power_high * a_high * a_high, 2 * bits, up=True)
        n += 2
    high += Fraction(9, 8) * power_high / n
    return (low, high) if sign > 0 else (-high, -low)


def _sqrt(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of the square root, from integer square roots."""
    top, bottom = isqrt(x.numerator), isqrt(x.denominator)
    if top * top == x.numerator and bottom * bottom == x.denominator:
        return Fraction(top, bottom), Fraction(top, bottom)
    shift = max(0, bits - (x.numerator.bit_length() - x.denominator.bit_length()) // 2 + 2)
    root = isqrt((x.numerator << (2 * shift)) // x.denominator)
    return Fraction(root, 1 << shift), Fraction(root + 1, 1 << shift)
