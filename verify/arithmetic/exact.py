"""Exact arithmetic for both kernels.

* `Exact2`, kernel exp2: scores are integers, values rationals, `E(s) = 2^s`.
* `ExactE`, kernel exp: scores are rationals, values lie in `Q(t)` with `t = e^(1/D)`, `D` a common denominator of the
  scores, so `E(n/D) = t^n`. By Lindemann's theorem `e^(1/D)` is transcendental; hence two elements of `Q(t)` are equal
  as real numbers exactly when they are equal as rational functions, which FLINT decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from math import lcm
from typing import Any

from flint import arb, fmpq, fmpq_mpoly

from verify.arithmetic.ball import working_precision
from verify.arithmetic.formal import FormalArithmetic, LogScore, no_logarithm
from verify.arithmetic.interface import Column, Entry
from verify.arithmetic.ratio import Field, Ratio
from verify.errors import PrecisionNeeded, RequestError, Undecided, UnsupportedOperation

SCORE_LIMIT = 1 << 20
"""Largest absolute integer score of exact exp2: a weight then has about a million bits."""

PRECISION_LIMIT = 1 << 16
"""Bits at which deciding the order of two elements of Q(t) gives up (equality is always decided)."""


class ScoreDenominator(UnsupportedOperation):
    """A score is not a multiple of 1/D; `denominator` is its own denominator, for a run with a larger D."""

    def __init__(self, denominator: int, message: str) -> None:
        self.denominator = denominator
        super().__init__(message)


class Exact2(FormalArithmetic):
    """Rationals with `E(s) = 2^s` for integer s."""

    name = "exact"

    def __init__(self, score_limit: int = SCORE_LIMIT) -> None:
        """Scores are at most `score_limit` in size."""
        super().__init__()
        self.score_limit = score_limit

    def power(self, exponent: fmpq) -> fmpq:
        if exponent.q != 1:
            raise RequestError(
                f"score {_shown(exponent)} is not an integer",
                right="exact arithmetic with kernel exp2 needs integer scores (kernel exp takes any rational)",
            )
        if abs(exponent.p) > self.score_limit:
            raise RequestError(
                f"score {_shown(exponent)} is too large", right=f"exact exp2 takes scores up to {SCORE_LIMIT} in size"
            )
        return fmpq(2) ** int(exponent.p)

    def row_weights(self, i: int, row: Sequence[tuple[int, Any]]) -> list[tuple[int, Entry]]:
        # A common power of two is divided out, so that the weights of plain scores are integers and sums stay cheap.
        exponents = [_exponent(s) for _, s in row]
        for (j, _), exponent in zip(row, exponents, strict=True):
            if exponent.q != 1 or abs(exponent.p) > self.score_limit:
                try:
                    self.power(exponent)
                except RequestError as error:
                    raise RequestError(error.what, where=f"row {i}, column {j}", right=error.right) from None
        powers = [int(exponent.p) for exponent in exponents]
        low = min(powers, default=0)
        weights = []
        for (j, s), power in zip(row, powers, strict=True):
            weight = fmpq(1 << (power - low))
            weights.append((j, weight * s.factor if isinstance(s, LogScore) else weight))
        return weights

    def is_zero(self, value: fmpq) -> bool:
        return not value

    def positive(self, value: fmpq) -> bool:
        return bool(value.p > 0)  # the comparison of two fmpq is several times as slow

    def exponent_of(self, value: fmpq) -> fmpq | None:
        p = int(value.p)
        if p <= 0 or p & (p - 1):
            return None
        q = int(value.q)
        return None if q & (q - 1) else fmpq(p.bit_length() - q.bit_length())

    def round_to_grid(self, a: Column, bits: int) -> Column:
        return [_nearest(no_logarithm(x), bits) for x in a]

    def relu(self, a: Column) -> Column:
        return [x if no_logarithm(x).p > 0 else fmpq(0) for x in a]

    def number(self, values: Column) -> Column:
        return [no_logarithm(x) for x in values]

    def enclose(self, entry: fmpq, bits: int) -> arb:
        with working_precision(bits):
            return arb(entry)


class ExactE(FormalArithmetic):
    """`Q(t)`, `t = e^(1/D)`, with `E(n/D) = t^n` (see the module)."""

    name = "exact"

    def __init__(self, denominator: int) -> None:
        """Every score of the run must be a multiple of 1/denominator (use `common_denominator`)."""
        super().__init__()
        self.denominator = denominator
        self.field = Field(("t",))

    def numbers(self, entries: Sequence[Fraction]) -> Column:
        return [fmpq(x.numerator, x.denominator) for x in entries]

    def power(self, exponent: fmpq) -> Ratio:
        scaled = exponent * self.denominator
        if scaled.q != 1:
            raise ScoreDenominator(
                int(exponent.q), f"score {_shown(exponent)} is not a multiple of 1/{_shown(fmpq(self.denominator))}"
            )
        return self.field.power(int(scaled.p))

    def is_zero(self, value: Entry) -> bool:
        return not value

    def positive(self, value: Entry) -> bool:
        return self.sign(value) > 0

    def exponent_of(self, value: Entry) -> fmpq | None:
        if isinstance(value, fmpq):
            return fmpq(0) if value == 1 else None
        exponents = value.monomial()
        return None if exponents is None else fmpq(exponents.get("t", 0), self.denominator)

    def sign(self, value: Entry) -> int:
        """-1, 0 or 1: zero is decided in the field, the rest by enclosures of growing precision."""
        if not value:
            return 0
        if isinstance(value, fmpq):
            return 1 if value > 0 else -1
        bits = 64
        while bits <= PRECISION_LIMIT:
            with working_precision(bits):
                # The power of t that stands in front is positive, and may be too large for any ball.
                ball = arb(value.coefficient)
                for factor in (*value.above, *value.below):
                    ball = ball * self._sum(factor)[0]
            if ball > 0:
                return 1
            if ball < 0:
                return -1
            bits *= 2
        raise Undecided(f"the sign of a nonzero element of Q(t) is open at {PRECISION_LIMIT} bits")

    def round_to_grid(self, a: Column, bits: int) -> Column:
        return [self._round(x, bits) for x in a]

    def relu(self, a: Column) -> Column:
        return [x if self.sign(x) > 0 else fmpq(0) for x in a]

    def _round(self, x: Entry, bits: int) -> fmpq:
        known = x if isinstance(x, fmpq) else no_logarithm(x).rational()
        if known is not None:
            return _nearest(known, bits)
        precision = 64 + max(bits, 0)
        while precision <= PRECISION_LIMIT:
            with working_precision(precision), suppress(PrecisionNeeded):
                scaled = self.enclose(x, precision) * arb(2) ** bits + arb(fmpq(1, 2))
                whole = scaled.floor().unique_fmpz()
                if whole is not None:
                    return fmpq(whole) / fmpq(2) ** bits
            precision *= 2
        raise Undecided(f"rounding to {bits} bits is open at {PRECISION_LIMIT} bits")

    def number(self, values: Column) -> Column:
        out = []
        for x in values:
            known = x if isinstance(x, fmpq) else no_logarithm(x).rational()
            if known is None:
                raise UnsupportedOperation(
                    "exact arithmetic with kernel exp cannot use an irrational value in a score; "
                    "round it first (round_bits), or use ball arithmetic"
                )
            out.append(known)
        return out

    def enclose(self, entry: Entry, bits: int) -> arb:
        """A ball around the real number that the element of Q(t) stands for, from t = e^(1/D) by direct summation."""
        with working_precision(bits):
            if isinstance(entry, fmpq):
                return arb(entry)
            # The common power of t is split off, so that huge scores cancel instead of overflowing.
            ball, shift = arb(entry.coefficient), entry.shift
            for factors, sign in ((entry.above, 1), (entry.below, -1)):
                for factor in factors:
                    total, top = self._sum(factor)
                    ball, shift = (ball * total, shift + top) if sign > 0 else (ball / total, shift - top)
            ball = ball * arb(fmpq(shift, self.denominator)).exp()
            if not ball.is_finite():
                raise PrecisionNeeded("a denominator is not separated from zero")
            return ball

    def _sum(self, polynomial: fmpq_mpoly) -> tuple[arb, int]:
        terms = [(int(exponents[0]), coefficient) for exponents, coefficient in polynomial.to_dict().items()]
        top = max((n for n, _ in terms), default=0)
        total = arb(0)
        for n, coefficient in terms:
            total += arb(coefficient) * arb(fmpq(n - top, self.denominator)).exp()
        return total, top


def common_denominator(columns: Sequence[Sequence[Fraction]], *parameters: Sequence[Sequence[Fraction]]) -> int:
    """A D such that every score `<x_i A, x_j B>` is a multiple of 1/D, for x with these columns and A, B among the parameters."""
    inputs = lcm(1, *(x.denominator for column in columns for x in column))
    scale = 1
    for matrix in parameters:
        scale *= lcm(1, *(x.denominator for row in matrix for x in row))
    return inputs * inputs * scale


def _exponent(score: Any) -> fmpq:
    exponent: fmpq = score.exponent if isinstance(score, LogScore) else score
    return exponent


def _shown(x: fmpq) -> str:
    """A rational as FLINT writes it (Python's own limit on digits does not apply), cut where it is long."""
    text = str(x)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"


def _nearest(x: fmpq, bits: int) -> fmpq:
    unit = fmpq(2) ** bits
    return fmpq((x * unit + fmpq(1, 2)).floor()) / unit
