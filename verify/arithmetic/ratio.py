"""Quotients of sparse polynomials: the field of values of `exact` with kernel exp, and of `symbolic`.

A value is `t^shift * numerator / denominator`, with FLINT's sparse polynomials over the rationals above and below and
`t` the first generator. Numerator and denominator are made coprime only where degrees are small (`REDUCED_DEGREE`): a
greatest common divisor of sparse polynomials with exponents like 10^12 would be hopeless. Nothing depends on it but
speed: the values of an attention row share their denominator, and equality is decided by cross-multiplication.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flint import fmpq, fmpq_mpoly, fmpq_mpoly_ctx, fmpz

_ZERO, _ONE = fmpq(0), fmpq(1)

REDUCED_DEGREE = 4096
"""Total degree up to which sums and products of fractions are reduced."""


class Field:
    """Q(generators), the field to which its `Ratio`s belong."""

    def __init__(self, generators: tuple[str, ...]) -> None:
        self.context = fmpq_mpoly_ctx.get(generators, "degrevlex")
        self.generators = generators
        self.index = {name: i for i, name in enumerate(generators)}
        self._one = self.context.constant(1)
        self._rest = (0,) * (len(generators) - 1)

    def constant(self, c: fmpq) -> Ratio:
        """The rational c."""
        return Ratio(self, 0, self.context.constant(c), None)

    def power(self, n: int) -> Ratio:
        """t^n for any integer n, t the first generator."""
        return Ratio(self, n, self._one, None)

    def monomial(self, exponents: Mapping[str, int]) -> Ratio:
        """The product of generators to these integer (possibly negative) powers."""
        up, down = [0] * len(self.generators), [0] * len(self.generators)
        for name, n in exponents.items():
            (up if n >= 0 else down)[self.index[name]] = abs(n)
        below = self.context.from_dict({tuple(down): 1}) if any(down) else None
        return Ratio(self, 0, self.context.from_dict({tuple(up): 1}), below)

    def lift(self, polynomial: fmpq_mpoly, by: int) -> fmpq_mpoly:
        """t^by * polynomial, by >= 0."""
        return polynomial if by == 0 else polynomial * self.context.from_dict({(by, *self._rest): 1})


class Ratio:
    """`t^shift * num / den`; `den` is None for 1. Immutable; mixes with FLINT rationals."""

    __slots__ = ("den", "field", "num", "shift")

    def __init__(self, field: Field, shift: int, num: fmpq_mpoly, den: fmpq_mpoly | None) -> None:
        self.field, self.shift, self.num, self.den = field, shift, num, den

    def __bool__(self) -> bool:
        return bool(self.num)

    def _same(self, other: Any) -> Ratio:
        if isinstance(other, Ratio):
            return other
        if isinstance(other, (fmpq, fmpz, int)):
            return self.field.constant(fmpq(other))
        raise TypeError(f"cannot combine a Ratio with {type(other).__name__}")

    def __add__(self, other: Any) -> Ratio:
        b = self._same(other)
        if not b.num:
            return self
        if not self.num:
            return b
        low = min(self.shift, b.shift)
        x, y = self.field.lift(self.num, self.shift - low), self.field.lift(b.num, b.shift - low)
        if _same_polynomial(self.den, b.den):
            return Ratio(self.field, low, x + y, self.den)
        if self.den is None:
            assert b.den is not None
            return Ratio(self.field, low, x * b.den + y, b.den)
        if b.den is None:
            return Ratio(self.field, low, x + y * self.den, self.den)
        return _reduced(self.field, low, x * b.den + y * self.den, self.den * b.den)

    __radd__ = __add__

    def __neg__(self) -> Ratio:
        return Ratio(self.field, self.shift, -self.num, self.den)

    def __sub__(self, other: Any) -> Ratio:
        return self + (-self._same(other))

    def __rsub__(self, other: Any) -> Ratio:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Ratio:
        if isinstance(other, fmpq):
            return Ratio(self.field, self.shift, self.num * other, self.den)
        b = self._same(other)
        shift = self.shift + b.shift
        if b.den is not None and _same_polynomial(self.num, b.den):
            return Ratio(self.field, shift, b.num, self.den)
        if self.den is not None and _same_polynomial(b.num, self.den):
            return Ratio(self.field, shift, self.num, b.den)
        return _reduced(self.field, shift, self.num * b.num, _product(self.den, b.den))

    __rmul__ = __mul__

    def inverse(self) -> Ratio:
        """1 / self. Raises ZeroDivisionError at zero."""
        if not self.num:
            raise ZeroDivisionError("inverse of zero")
        above = self.field.context.constant(1) if self.den is None else self.den
        if self.num.is_constant():
            return Ratio(self.field, -self.shift, above * (_ONE / self.num.leading_coefficient()), None)
        return Ratio(self.field, -self.shift, above, self.num)

    def __truediv__(self, other: Any) -> Ratio:
        b = self._same(other)
        if not b.num:
            raise ZeroDivisionError("division by zero")
        shift = self.shift - b.shift
        if _same_polynomial(self.den, b.den):
            if _same_polynomial(self.num, b.num):
                return self.field.power(shift)
            return _quotient(self.field, shift, self.num, b.num)
        return self * b.inverse()

    def __rtruediv__(self, other: Any) -> Ratio:
        return self._same(other) * self.inverse()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Ratio, fmpq, fmpz, int)):
            return NotImplemented
        b = self._same(other)
        if not self.num or not b.num:
            return bool(self.num) == bool(b.num)
        low = min(self.shift, b.shift)
        x, y = self.field.lift(self.num, self.shift - low), self.field.lift(b.num, b.shift - low)
        if _same_polynomial(self.den, b.den):
            return bool(x == y)
        left = x if b.den is None else x * b.den
        right = y if self.den is None else y * self.den
        return bool(left == right)

    __hash__ = None  # type: ignore[assignment]  # one value has many representations

    def monomial(self) -> dict[str, int] | None:
        """The exponents (nonzero ones, by generator) if this is a product of powers of generators with coefficient 1, else None.

        If num/den = X^e, the leading monomials X^a of num and X^b of den satisfy e = a - b, and num X^b = den X^a; the
        converse is plain, so one comparison of polynomials decides it without a greatest common divisor.
        """
        if not self.num:
            return None
        den = self.field.context.constant(1) if self.den is None else self.den
        if len(self.num) != len(den) or self.num.leading_coefficient() != den.leading_coefficient():
            return None
        above, below = self.num.monomial(0), den.monomial(0)
        if self.num * self.field.context.from_dict({below: 1}) != den * self.field.context.from_dict({above: 1}):
            return None
        exponents = [int(a) - int(b) for a, b in zip(above, below, strict=True)]
        exponents[0] += self.shift
        return {name: n for name, n in zip(self.field.generators, exponents, strict=True) if n}

    def rational(self) -> fmpq | None:
        """The rational number that this equals, or None when it is none (as an element of the field)."""
        if not self.num:
            return _ZERO
        lead = self.num.leading_coefficient() / (_ONE if self.den is None else self.den.leading_coefficient())
        return lead if self == lead else None


def _same_polynomial(a: fmpq_mpoly | None, b: fmpq_mpoly | None) -> bool:
    return a is b or (a is not None and b is not None and a == b)


def _product(a: fmpq_mpoly | None, b: fmpq_mpoly | None) -> fmpq_mpoly | None:
    if a is None:
        return b
    return a if b is None else a * b


def _reduced(field: Field, shift: int, num: fmpq_mpoly, den: fmpq_mpoly | None) -> Ratio:
    """num / den in lowest terms where that is cheap."""
    return Ratio(field, shift, num, None) if den is None else _quotient(field, shift, num, den)


def _quotient(field: Field, shift: int, num: fmpq_mpoly, den: fmpq_mpoly) -> Ratio:
    if num and not den.is_constant() and max(num.total_degree(), den.total_degree()) <= REDUCED_DEGREE:
        common = num.gcd(den)
        if not common.is_constant():
            num, den = num / common, den / common
    if den.is_constant():
        return Ratio(field, shift, num * (_ONE / den.leading_coefficient()), None)
    return Ratio(field, shift, num, den)
