"""Quotients of sparse polynomials: the field of values of `exact` with kernel exp, and of `symbolic`.

A value is `coefficient * t^shift * (product of factors above) / (product of factors below)`, the factors being FLINT's sparse
polynomials over the rationals and `t` the first generator. Products are not multiplied out, and equal factors above and
below cancel: what attention multiplies and divides by are mostly the same few normalisers, and a greatest common divisor of
sparse polynomials with exponents like 10^12 would be hopeless. Where degrees are small (`REDUCED_DEGREE`) common divisors
are removed all the same. Nothing depends on this but speed: equality is decided by cross-multiplication.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from flint import fmpq, fmpq_mpoly, fmpq_mpoly_ctx, fmpz

_ZERO, _ONE = fmpq(0), fmpq(1)

REDUCED_DEGREE = 4096
"""Total degree up to which common divisors of a factor above and a factor below are removed."""

Factors: TypeAlias = tuple[fmpq_mpoly, ...]
"""Polynomials whose product is meant; none of them constant."""


class Field:
    """Q(generators), the field to which its `Ratio`s belong."""

    def __init__(self, generators: tuple[str, ...]) -> None:
        self.context = fmpq_mpoly_ctx.get(generators, "degrevlex")
        self.generators = generators
        self.index = {name: i for i, name in enumerate(generators)}
        self.one = self.context.constant(1)
        self._rest = (0,) * (len(generators) - 1)

    def constant(self, c: fmpq) -> Ratio:
        """The rational c."""
        return Ratio(self, c, 0, (), ())

    def power(self, n: int) -> Ratio:
        """t^n for any integer n, t the first generator."""
        return Ratio(self, _ONE, n, (), ())

    def monomial(self, exponents: Mapping[str, int]) -> Ratio:
        """The product of generators to these integer (possibly negative) powers."""
        up, down = [0] * len(self.generators), [0] * len(self.generators)
        for name, n in exponents.items():
            (up if n >= 0 else down)[self.index[name]] = abs(n)
        above, below = ((self.context.from_dict({tuple(powers): 1}),) if any(powers) else () for powers in (up, down))
        return Ratio(self, _ONE, 0, above, below)

    def lift(self, polynomial: fmpq_mpoly, by: int) -> fmpq_mpoly:
        """t^by * polynomial, by >= 0."""
        return polynomial if by == 0 else polynomial * self.context.from_dict({(by, *self._rest): 1})

    def product(self, factors: Factors) -> fmpq_mpoly:
        """The factors multiplied out."""
        if not factors:
            return self.one
        total = factors[0]
        for factor in factors[1:]:
            total = total * factor
        return total


class Ratio:
    """`coefficient * t^shift * above / below` (see the module). Immutable; mixes with FLINT rationals."""

    __slots__ = ("above", "below", "coefficient", "field", "shift")

    def __init__(self, field: Field, coefficient: fmpq, shift: int, above: Factors, below: Factors) -> None:
        self.field, self.coefficient, self.shift = field, coefficient, shift
        self.above, self.below = above, below

    @property
    def num(self) -> fmpq_mpoly:
        """Coefficient and numerator multiplied out."""
        return self.field.product(self.above) * self.coefficient

    @property
    def den(self) -> fmpq_mpoly:
        """The denominator multiplied out."""
        return self.field.product(self.below)

    def __bool__(self) -> bool:
        return bool(self.coefficient)

    def _same(self, other: Any) -> Ratio:
        if isinstance(other, Ratio):
            return other
        if isinstance(other, (fmpq, fmpz, int)):
            return self.field.constant(fmpq(other))
        raise TypeError(f"cannot combine a Ratio with {type(other).__name__}")

    def __add__(self, other: Any) -> Ratio:
        b = self._same(other)
        if not b.coefficient:
            return self
        if not self.coefficient:
            return b
        field, low = self.field, min(self.shift, b.shift)
        above, own_above, other_above = _common(self.above, b.above)
        below, own_below, other_below = _common(self.below, b.below)
        x = field.lift(_scaled(field.product(own_above + other_below), self.coefficient), self.shift - low)
        y = field.lift(_scaled(field.product(other_above + own_below), b.coefficient), b.shift - low)
        return _reduced(field, _ONE, low, (*above, x + y), below + own_below + other_below)

    __radd__ = __add__

    def __neg__(self) -> Ratio:
        return Ratio(self.field, -self.coefficient, self.shift, self.above, self.below)

    def __sub__(self, other: Any) -> Ratio:
        return self + (-self._same(other))

    def __rsub__(self, other: Any) -> Ratio:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Ratio:
        if isinstance(other, fmpq):
            if not other:
                return self.field.constant(_ZERO)
            return Ratio(self.field, self.coefficient * other, self.shift, self.above, self.below)
        b = self._same(other)
        coefficient, shift = self.coefficient * b.coefficient, self.shift + b.shift
        return _reduced(self.field, coefficient, shift, self.above + b.above, self.below + b.below)

    __rmul__ = __mul__

    def inverse(self) -> Ratio:
        """1 / self. Raises ZeroDivisionError at zero."""
        if not self.coefficient:
            raise ZeroDivisionError("inverse of zero")
        return Ratio(self.field, _ONE / self.coefficient, -self.shift, self.below, self.above)

    def __truediv__(self, other: Any) -> Ratio:
        return self * self._same(other).inverse()

    def __rtruediv__(self, other: Any) -> Ratio:
        return self._same(other) * self.inverse()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Ratio, fmpq, fmpz, int)):
            return NotImplemented
        return not (self - other)

    __hash__ = None  # type: ignore[assignment]  # one value has many representations

    def monomial(self) -> dict[str, int] | None:
        """The exponents (nonzero ones, by generator) if this is a product of powers of generators with coefficient 1, else None.

        If num/den = X^e, the leading monomials X^a of num and X^b of den satisfy e = a - b, and num X^b = den X^a; the
        converse is plain, so one comparison of polynomials decides it without a greatest common divisor.
        """
        if not self.coefficient:
            return None
        num, den = self.num, self.den
        if len(num) != len(den) or num.leading_coefficient() != den.leading_coefficient():
            return None
        above, below = num.monomial(0), den.monomial(0)
        if num * self.field.context.from_dict({below: 1}) != den * self.field.context.from_dict({above: 1}):
            return None
        exponents = [int(a) - int(b) for a, b in zip(above, below, strict=True)]
        exponents[0] += self.shift
        return {name: n for name, n in zip(self.field.generators, exponents, strict=True) if n}

    def rational(self) -> fmpq | None:
        """The rational number that this equals, or None when it is none (as an element of the field)."""
        if not self.coefficient or not (self.above or self.below or self.shift):
            return self.coefficient
        num, den = self.num, self.den
        if len(num) != len(den):
            return None
        lead = num.leading_coefficient() / den.leading_coefficient()
        return lead if self == lead else None


def _scaled(polynomial: fmpq_mpoly, factor: fmpq) -> fmpq_mpoly:
    return polynomial if factor == _ONE else polynomial * factor


def _common(a: Factors, b: Factors) -> tuple[Factors, Factors, Factors]:
    """The factors that two products share, and what is left of each."""
    if not a or not b:
        return (), a, b
    shared, left, right = [], [], list(b)
    for factor in a:
        for i, candidate in enumerate(right):
            if candidate is factor or candidate == factor:
                shared.append(right.pop(i))
                break
        else:
            left.append(factor)
    return tuple(shared), tuple(left), tuple(right)


def _reduced(field: Field, coefficient: fmpq, shift: int, above: Sequence[fmpq_mpoly], below: Factors) -> Ratio:
    """The quotient without constant factors, with equal factors cancelled, and in lowest terms where that is cheap."""
    over: list[fmpq_mpoly] = []
    for factor in above:
        if factor.is_constant():
            if not factor:
                return field.constant(_ZERO)
            coefficient = coefficient * factor.leading_coefficient()
        else:
            over.append(factor)
    if not coefficient:
        return field.constant(_ZERO)
    if not below:
        return Ratio(field, coefficient, shift, tuple(over), ())
    _, kept, rest = _common(tuple(over), below)
    top, bottom = list(kept), list(rest)
    for i, factor in enumerate(top):
        for j, divisor in enumerate(bottom):
            if max(factor.total_degree(), divisor.total_degree()) > REDUCED_DEGREE:
                continue
            common = factor.gcd(divisor)
            if not common.is_constant():
                factor, bottom[j] = factor / common, divisor / common
        top[i] = factor
    for factors, sign in ((top, 1), (bottom, -1)):
        for factor in factors:
            if factor.is_constant():
                lead = factor.leading_coefficient()
                coefficient = coefficient * lead if sign > 0 else coefficient / lead
    return Ratio(
        field,
        coefficient,
        shift,
        tuple(factor for factor in top if not factor.is_constant()),
        tuple(factor for factor in bottom if not factor.is_constant()),
    )
