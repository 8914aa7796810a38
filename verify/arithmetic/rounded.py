"""Rounded arithmetic: every operation is rounded to nearest (ties to even), as MPFR does it through gmpy2.

A `Format` is a set of binary floating-point numbers: p significant bits with an unlimited exponent (`bits(p)`), or one of
the machine formats float16, bfloat16, float32 and float64 with their exponent range, subnormal numbers, infinities and NaN.
The unit roundoff is `u = 2^-p`: without underflow and overflow a rounded result is `x (1 + theta)` with `|theta| <= u`.

What is rounded, and in which order (an error bound is worth nothing without it):

* inputs and parameters are rounded to the format when they are read;
* a dot product multiplies and adds from the first index to the last, each product and each sum rounded in the
  *accumulation* format (the format itself unless a wider one is asked for), the result once more in the format. Terms with
  a structural zero (an entry of a parameter matrix that is 0) are left out, and a factor 1 is not multiplied: neither
  would change a bit;
* `exp`, `log`, quotients and every step of a token-wise map are rounded in the format, correctly (MPFR's functions are);
* a softmax is `E(score)`, the weighted sums, the sum of the weights (both in the order of the tokens, in the accumulation
  format) and one division. With `shifted`, the row's largest score is subtracted from its scores first, as accelerators do.

Infinities and NaN are results like any other: nothing is raised, and `exceptions` tells what happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import gmpy2
from flint import arb, fmpz

from verify.arithmetic.interface import Arithmetic, Column, Entry, Visible
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import UnsupportedOperation

EXCEPTIONS = {
    "overflow": "overflow",
    "invalid": "invalid operation (NaN)",
    "divzero": "division by zero",
    "underflow": "underflow",
}
"""What can happen in a run, by the name of MPFR's flag."""


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: `precision` significant bits; exponents from `least` to `greatest`, None without limits.

    As in IEEE 754, a normal number is `m 2^e` with `1 <= m < 2` and `least <= e <= greatest`; below, subnormal numbers are
    the multiples of `2^(least - precision + 1)`.
    """

    name: str
    precision: int
    least: int | None = None
    greatest: int | None = None

    @property
    def unit(self) -> Fraction:
        """The unit roundoff u = 2^-precision."""
        return Fraction(1, 1 << self.precision)

    @property
    def tiny(self) -> Fraction:
        """Half the distance of subnormal numbers, the largest error of an operation that underflows (0 without limits)."""
        return Fraction(0) if self.least is None else Fraction(2) ** (self.least - self.precision)

    @property
    def largest(self) -> Fraction | None:
        """The largest finite number, None without limits."""
        if self.greatest is None:
            return None
        return (2 - Fraction(1, 1 << (self.precision - 1))) * Fraction(2) ** self.greatest

    def context(self) -> Any:
        """A gmpy2 context that rounds to nearest in this format."""
        # MPFR writes a number as m 2^e with 1/2 <= m < 1, so its exponents are one more than IEEE's.
        if self.least is None or self.greatest is None:
            return gmpy2.context(
                precision=self.precision,
                emax=gmpy2.get_emax_max(),
                emin=gmpy2.get_emin_min(),
                round=gmpy2.RoundToNearest,
            )
        return gmpy2.context(
            precision=self.precision,
            emax=self.greatest + 1,
            emin=self.least - self.precision + 2,
            subnormalize=True,
            round=gmpy2.RoundToNearest,
        )


FORMATS = {
    "float16": Format("float16", 11, -14, 15),
    "bfloat16": Format("bfloat16", 8, -126, 127),
    "float32": Format("float32", 24, -126, 127),
    "float64": Format("float64", 53, -1022, 1023),
}
"""The machine formats."""

MOST_BITS = 1 << 20
"""The most significant bits of a format."""


def bits(precision: int) -> Format:
    """The format of `precision` >= 2 significant bits and unlimited exponent."""
    if not 2 <= precision <= MOST_BITS:
        raise ValueError(f"a format has between 2 and {MOST_BITS} bits")
    return Format(f"{precision} bits", precision)


class Rounded(Arithmetic):
    """Arithmetic in a `Format` with kernel exp or exp2 (see the module for what is rounded, and in which order)."""

    name = "rounded"
    batch_rows = 256

    def __init__(
        self,
        kernel: Literal["exp", "exp2"],
        format: Format,
        *,
        accumulate: Format | None = None,
        shifted: bool = False,
    ) -> None:
        """`accumulate` is the format of products and sums inside dot products, at least as precise as `format`."""
        if accumulate is not None and accumulate.precision < format.precision:
            raise ValueError("sums are accumulated in a format at least as precise")
        self.kernel, self.format, self.shifted = kernel, format, shifted
        self.accumulate = accumulate or format
        self._context, self._wide = format.context(), self.accumulate.context()
        self._same = self.accumulate == format
        self._zero = gmpy2.mpfr(0)
        self._weight = self._context.exp if kernel == "exp" else self._context.exp2
        self._log = self._context.log if kernel == "exp" else self._context.log2
        self._kept: dict[int, tuple[Any, Any]] = {}

    @property
    def exceptions(self) -> tuple[str, ...]:
        """What has happened so far: overflow, invalid operations, divisions by zero, underflow."""
        return tuple(
            name for flag, name in EXCEPTIONS.items() if getattr(self._context, flag) or getattr(self._wide, flag)
        )

    # --- columns -------------------------------------------------------------------------------------------------

    def numbers(self, entries: Sequence[Fraction]) -> Column:
        return [self._read(x) for x in entries]

    def _read(self, x: Fraction) -> Any:
        with gmpy2.context(self._context) as active:
            value = gmpy2.mpfr(gmpy2.mpq(x.numerator, x.denominator))
            self._context.overflow |= active.overflow
            self._context.underflow |= active.underflow
        return value

    def constant(self, value: Fraction, height: int) -> Column:
        return [self._read(value)] * height

    def fixed(self, entries: tuple[Fraction, ...]) -> Column:
        kept = self._kept.get(id(entries))
        if kept is None:
            kept = self._kept[id(entries)] = (entries, self.numbers(entries))
        return kept[1]

    def add(self, a: Column, b: Column) -> Column:
        add = self._context.add
        return [add(x, y) for x, y in zip(a, b, strict=True)]

    def subtract(self, a: Column, b: Column) -> Column:
        subtract = self._context.sub
        return [subtract(x, y) for x, y in zip(a, b, strict=True)]

    def multiply(self, a: Column, b: Column) -> Column:
        multiply = self._context.mul
        return [multiply(x, y) for x, y in zip(a, b, strict=True)]

    def divide(self, a: Column, b: Column) -> Column:
        divide = self._context.div
        return [divide(x, y) for x, y in zip(a, b, strict=True)]

    def scale(self, a: Column, factor: Fraction) -> Column:
        multiply, c = self._context.mul, self._read(factor)
        return [multiply(c, x) for x in a]

    def exp(self, scores: Column) -> Column:
        return [self._weight(s) for s in scores]

    def log(self, values: Column) -> Column:
        return [self._log(x) for x in values]

    def round_to_grid(self, a: Column, bits: int) -> Column:
        return [self._to_grid(x, bits) for x in a]

    def _to_grid(self, x: Any, bits: int) -> Any:
        if not gmpy2.is_finite(x):
            return x
        unit = Fraction(2) ** bits
        p, q = x.as_integer_ratio()
        whole = (Fraction(int(p), int(q)) * unit + Fraction(1, 2)).__floor__()
        return self._read(whole / unit)

    def relu(self, a: Column) -> Column:
        """Nothing is rounded. (NaN stays NaN.)"""
        zero = self._read(Fraction(0))
        return [zero if x <= 0 else x for x in a]

    def number(self, values: Column) -> Column:
        return values

    def concatenate(self, parts: Sequence[Column]) -> Column:
        return [x for part in parts for x in part]

    # --- attention -----------------------------------------------------------------------------------------------

    def project(self, columns: Sequence[Column], W: RationalMatrix) -> list[Column | None]:
        """The columns of X W, each a list; a zero column of W gives None."""
        kept = self._kept.get(id(W))
        if kept is None:
            terms = [[(i, None if c == 1 else self._read(c)) for i, c in column] for column in W.columns]
            kept = self._kept[id(W)] = (W, terms)
        return [self._combine(columns, terms) for terms in kept[1]]

    def _combine(self, columns: Sequence[Column], terms: Sequence[tuple[int, Any]]) -> Column | None:
        if not terms:
            return None
        if len(terms) == 1 and terms[0][1] is None:
            return columns[terms[0][0]]
        multiply, add = self._wide.mul, self._wide.add
        total: Column | None = None
        for i, factor in terms:
            term = columns[i] if factor is None else [multiply(x, factor) for x in columns[i]]
            total = list(term) if total is None else [add(s, x) for s, x in zip(total, term, strict=True)]
        assert total is not None
        return self._narrow(total)

    def _narrow(self, entries: list[Any]) -> list[Any]:
        return entries if self._same else [self._context.plus(x) for x in entries]

    def scores(self, Q: Sequence[Column | None], K: Sequence[Column | None], visible: Visible) -> Any:
        live = [(q, k) for q, k in zip(Q, K, strict=True) if q is not None and k is not None]
        height = visible.length * visible.copies
        queries = [[q[i] for q, _ in live] for i in range(height)]
        keys = [[k[i] for _, k in live] for i in range(height)]
        multiply, add, zero = self._wide.mul, self._wide.add, self._zero

        def dot(q: list[Any], k: list[Any]) -> Any:
            if not q:
                return zero
            total = multiply(q[0], k[0])
            for c in range(1, len(q)):
                total = add(total, multiply(q[c], k[c]))
            return total

        rows = []
        for top in range(0, height, visible.length):
            for i, seen in enumerate(visible.rows):
                q = queries[top + i]
                rows.append(([top + j for j in seen], self._narrow([dot(q, keys[top + j]) for j in seen])))
        return rows

    def weights(self, scores: Any) -> Any:
        weight, subtract = self._weight, self._context.sub
        out = []
        for seen, row in scores:
            if self.shifted and row:
                top = max(row)
                row = [subtract(s, top) for s in row]
            out.append((seen, [weight(s) for s in row]))
        return out

    def normalise(self, weights: Any, V: Sequence[Column | None]) -> list[Column]:
        multiply, add, divide, plus = self._wide.mul, self._wide.add, self._context.div, self._context.plus
        out: list[Column] = [[] for _ in V]
        for seen, row in weights:
            total = row[0] if row else self._zero
            for w in row[1:]:
                total = add(total, w)
            total = plus(total)
            for c, column in enumerate(V):
                if column is None:
                    out[c].append(divide(self._zero, total))
                    continue
                mean = self._zero
                for w, j in zip(row, seen, strict=True):
                    mean = add(mean, multiply(w, column[j]))
                out[c].append(divide(plus(mean), total))
        return out

    # --- answers -------------------------------------------------------------------------------------------------

    def equal(self, a: Entry, b: Entry) -> bool | None:
        """Whether two rounded numbers are the same (NaN is equal to nothing)."""
        return bool(a == b)

    def enclose(self, entry: Entry, bits: int) -> arb:
        """The rounded number itself, as an exact ball. Raises UnsupportedOperation where it is not finite."""
        if not gmpy2.is_finite(entry):
            raise UnsupportedOperation(f"{entry} has no place on the real line")
        return exactly(entry)


def exactly(entry: Any) -> arb:
    """A finite rounded number as a ball of radius 0, at any working precision."""
    mantissa, exponent = entry.as_mantissa_exp()
    return arb((fmpz(int(mantissa)), int(exponent)))
