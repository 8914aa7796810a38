"""Forward error bounds of a rounded run, proved step by step and composed over a whole program.

`Forward` is an arithmetic: it runs a transformer or an oracle program with entries `(x, e)`, where the ball `x` encloses the
value in exact arithmetic and `e >= |computed - exact|` bounds the error of the same entry in a run of `Rounded`. So the
result's `e` is a bound on the whole, for the instance at hand, before any rounded run is made. It depends on the format
only through its unit roundoff `u` and its range, and grows with `u`: what it grants to p bits it grants to more.

The rules, for exact values `a, b`, errors `|a' - a| <= e_a`, and `rd(z) = u |z| + tiny` for the rounding of a result of size
`|z|` (`tiny = 0` for an unlimited exponent; infinite beyond the format's largest number):

* sum: `e_a + e_b + rd(|a| + |b| ...)`, product: `|a| e_b + |b| e_a + e_a e_b + rd`;
* quotient: `(e_a + |a/b| e_b) / (|b| - e_b) + rd`, since `a'/b' - a/b = ((a' - a) - (a/b)(b' - b)) / b'`. For the printed
  inversion `r/(1-r)` the divisor is `1/(A+1)`: relative errors grow by its inverse, the condition number `A + 1`;
* relu: `e_a`, since `|max(a', 0) - max(a, 0)| <= |a' - a|` and nothing is rounded;
* weight: `E(a) (E(e_a) - 1) + rd`; logarithm: `-log(1 - e_a/a) + rd`, from `|log(1+z)| <= -log(1-|z|)`;
* dot product of n terms, in the stated order: with exact factors each product and each of the n-1 sums multiplies by some
  `1 + theta`, `|theta| <= u`, so the result is off by at most `((1+u)^n - 1) sum |a_c b_c|` [Higham, Accuracy and Stability of
  Numerical Algorithms, 2nd ed., Section 3.1]; errors of the factors enter as in a product. Terms that are exactly zero do not
  count, nor does the product with an exact 1;
* softmax: numerator and denominator are dot products of weights, then a quotient.

In formats with an accumulation format, `u` of that format stands in the dot products, and the result is rounded once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from flint import arb, arb_mat, fmpq

from verify.arithmetic.ball import Ball
from verify.arithmetic.interface import Arithmetic, Column, Entry, Visible
from verify.arithmetic.matrix import RationalMatrix
from verify.arithmetic.rounded import Format
from verify.errors import OutOfRange, PrecisionNeeded


@dataclass(frozen=True)
class Bounded:
    """A column: enclosures of the exact values, and upper bounds of the errors."""

    exact: list[arb]
    error: list[arb]

    def __len__(self) -> int:
        return len(self.exact)

    def __getitem__(self, part: slice) -> Bounded:
        return Bounded(self.exact[part], self.error[part])


@dataclass(frozen=True)
class BoundedMatrix:
    """A projection: one row for each token."""

    exact: arb_mat
    error: arb_mat


class Forward(Arithmetic):
    """Enclosures and error bounds side by side (see the module). Use inside `working_precision`."""

    name = "forward"

    def __init__(
        self,
        kernel: Literal["exp", "exp2"],
        bits: int,
        format: Format,
        *,
        accumulate: Format | None = None,
        shifted: bool = False,
    ) -> None:
        """`bits` is the precision of the enclosures; the rest as for `Rounded`."""
        self.ball = Ball(kernel, bits)
        self.kernel, self.format, self.shifted = kernel, format, shifted
        self.accumulate = accumulate or format
        self._unit, self._tiny = _arb(format.unit), _arb(format.tiny)
        self._wide_unit, self._wide_tiny = _arb(self.accumulate.unit), _arb(self.accumulate.tiny)
        self._largest = None if format.largest is None else _arb(format.largest)
        self._same = self.accumulate == format

    def rounding(self, size: arb) -> arb:
        """A bound on the error of rounding a result of at most this size."""
        if self._largest is not None and not size * (1 + self._unit) <= self._largest:
            return arb("inf")
        return (size * self._unit + self._tiny).upper()

    # --- columns -------------------------------------------------------------------------------------------------

    def numbers(self, entries: Sequence[Fraction]) -> Column:
        return Bounded(self.ball.numbers(entries), [self._reading(x) for x in entries])

    def _reading(self, x: Fraction) -> arb:
        """0 for a number of the format (its odd part has at most p bits, and its exponent is in range)."""
        denominator = x.denominator
        if denominator & (denominator - 1) == 0 and self.format.least is None:
            numerator = abs(x.numerator)
            if numerator == 0 or (numerator // (numerator & -numerator)).bit_length() <= self.format.precision:
                return arb(0)
        return arb(0) if not x else self.rounding(_arb(abs(x)))

    def add(self, a: Bounded, b: Bounded) -> Bounded:
        return self._sum(a, b, self.ball.add(a.exact, b.exact))

    def subtract(self, a: Bounded, b: Bounded) -> Bounded:
        return self._sum(a, b, self.ball.subtract(a.exact, b.exact))

    def _sum(self, a: Bounded, b: Bounded, total: list[arb]) -> Bounded:
        errors = []
        for x, y, z, e, f in zip(a.exact, b.exact, total, a.error, b.error, strict=True):
            both = e + f
            if (x.is_zero() and e.is_zero()) or (y.is_zero() and f.is_zero()):
                errors.append(both.upper())  # adding an exact 0 rounds nothing
            else:
                errors.append((both + self.rounding(abs(z) + both)).upper())
        return Bounded(total, errors)

    def multiply(self, a: Bounded, b: Bounded) -> Bounded:
        product = self.ball.multiply(a.exact, b.exact)
        errors = []
        for x, y, z, e, f in zip(a.exact, b.exact, product, a.error, b.error, strict=True):
            carried = abs(x) * f + abs(y) * e + e * f
            errors.append((carried + self.rounding(abs(z) + carried)).upper())
        return Bounded(product, errors)

    def divide(self, a: Bounded, b: Bounded) -> Bounded:
        quotient = self.ball.divide(a.exact, b.exact)
        return Bounded(
            quotient,
            [self._quotient(z, y, e, f) for y, z, e, f in zip(b.exact, quotient, a.error, b.error, strict=True)],
        )

    def _quotient(self, quotient: arb, divisor: arb, above: arb, below: arb) -> arb:
        room = divisor.abs_lower() - below
        if not room > 0:
            return arb("inf")
        carried = (above + abs(quotient) * below) / room
        return (carried + self.rounding(abs(quotient) + carried)).upper()

    def scale(self, a: Bounded, factor: Fraction) -> Bounded:
        c = self.numbers([factor])
        return self.multiply(a, Bounded(c.exact * len(a), c.error * len(a)))

    def exp(self, scores: Bounded) -> Bounded:
        weights = self.ball.exp(scores.exact)
        return Bounded(weights, [self._weight(w, e) for w, e in zip(weights, scores.error, strict=True)])

    def _weight(self, weight: arb, error: arb) -> arb:
        if not error.is_finite():
            return arb("inf")
        # E(e) - 1 without cancellation: e is far below the precision of the enclosures.
        exponent = error if self.kernel == "exp" else error * arb.const_log2()
        carried = weight * exponent.expm1()
        return (carried + self.rounding(weight + carried)).upper()

    def log(self, values: Bounded) -> Bounded:
        logs = self.ball.log(values.exact)
        errors = []
        for x, z, e in zip(values.exact, logs, values.error, strict=True):
            part = e / x.abs_lower()
            if not part < 1:
                errors.append(arb("inf"))
                continue
            carried = -(-part).log1p()
            if self.kernel == "exp2":
                carried /= arb.const_log2()
            errors.append((carried + self.rounding(abs(z) + carried)).upper())
        return Bounded(logs, errors)

    def round_to_grid(self, a: Bounded, bits: int) -> Bounded:
        unit, half = arb(2) ** bits, arb(fmpq(1, 2))
        grid, errors = self.ball.round_to_grid(a.exact, bits), []
        for x, z, e in zip(a.exact, grid, a.error, strict=True):
            if not e.is_finite():
                errors.append(arb("inf"))
                continue
            low, high = ((x - e) * unit + half).floor(), ((x + e) * unit + half).floor()
            moved = ((high.upper() - low.lower()) / unit).upper() if not (low - high).is_zero() else arb(0)
            errors.append((moved + self.rounding(abs(z) + moved)).upper())
        return Bounded(grid, errors)

    def relu(self, a: Bounded) -> Bounded:
        return Bounded(self.ball.relu(a.exact), a.error)

    def number(self, values: Bounded) -> Bounded:
        return values

    def concatenate(self, parts: Sequence[Bounded]) -> Bounded:
        return Bounded([x for part in parts for x in part.exact], [e for part in parts for e in part.error])

    # --- attention -----------------------------------------------------------------------------------------------

    def project(self, columns: Sequence[Bounded], W: RationalMatrix) -> BoundedMatrix:
        height = len(columns[0]) if columns else 0
        exact, error = arb_mat(height, W.width), arb_mat(height, W.width)
        for c, terms in enumerate(W.columns):
            for i in range(height):
                if len(terms) == 1 and terms[0][1] == 1:
                    exact[i, c], error[i, c] = columns[terms[0][0]].exact[i], columns[terms[0][0]].error[i]
                elif terms:
                    factors = self.numbers([factor for _, factor in terms])
                    entries = Bounded([columns[k].exact[i] for k, _ in terms], [columns[k].error[i] for k, _ in terms])
                    exact[i, c], error[i, c] = self._dot(entries, factors)
        return BoundedMatrix(exact, error)

    def _dot(self, a: Bounded, b: Bounded) -> tuple[arb, arb]:
        total, carried, size, count = arb(0), arb(0), arb(0), 0
        for x, y, e, f in zip(a.exact, b.exact, a.error, b.error, strict=True):
            if (x.is_zero() and e.is_zero()) or (y.is_zero() and f.is_zero()):
                continue
            total += x * y
            carried += abs(x) * f + abs(y) * e + e * f
            size += (abs(x) + e) * (abs(y) + f)
            count += 1
        return total, (carried + self._accumulated(size, count)).upper()

    def _accumulated(self, size: arb, count: int) -> arb:
        """The rounding of a dot product of `count` terms whose sizes sum to `size`, and of its result."""
        if not count:
            return arb(0)
        grown = _growth(self._wide_unit, count)
        error = size * grown + 2 * count * self._wide_tiny
        if self._largest is not None and not size * (1 + grown) <= self._largest:
            return arb("inf")
        return error if self._same else error + self.rounding(size + error)

    def scores(self, Q: BoundedMatrix, K: BoundedMatrix, visible: Visible) -> Any:
        exact = Q.exact * K.exact.transpose()
        sizes, keys = _sizes(Q.exact), _sizes(K.exact)
        carried = sizes * K.error.transpose() + Q.error * (keys + K.error).transpose()
        size = (sizes + Q.error) * (keys + K.error).transpose()
        # Roundings in the dot product with key j: one for each factor but an exact 1, one for each sum.
        counts = []
        for j in range(K.exact.nrows()):
            entries = [(K.exact[j, c], K.error[j, c]) for c in range(K.exact.ncols())]
            live = [x for x, e in entries if not (x.is_zero() and e.is_zero())]
            ones = sum(bool(x == 1 and e.is_zero()) for x, e in entries)
            counts.append(0 if len(live) == ones <= 1 else len(live))
        error = arb_mat(exact.nrows(), exact.ncols())
        for i in range(exact.nrows()):
            for j, count in enumerate(counts):
                error[i, j] = (carried[i, j] + self._accumulated(size[i, j], count)).upper()
        return exact, error, visible.rows

    def weights(self, scores: Any) -> Any:
        exact, error, rows = scores
        weights, errors = arb_mat(exact.nrows(), exact.ncols()), arb_mat(exact.nrows(), exact.ncols())
        for i, seen in enumerate(rows):
            top, slack = arb(0), arb(0)
            if self.shifted and seen:
                for j in seen:
                    slack = slack.max(error[i, j])
                top = exact[i, seen[0]]
                for j in seen[1:]:
                    top = top.max(exact[i, j])
            for j in seen:
                s, e = exact[i, j], error[i, j]
                if self.shifted:
                    s, e = s - top, e + slack
                    e += self.rounding(abs(s) + e)
                weights[i, j] = self.ball.weight(s)
                errors[i, j] = self._weight(weights[i, j], e)
        return weights, errors, rows

    def normalise(self, weights: Any, V: BoundedMatrix) -> list[Column]:
        exact, error, rows = weights
        height, width = exact.nrows(), V.exact.ncols()
        sizes = _sizes(V.exact)
        above = exact * V.exact
        carried = exact * V.error + error * (sizes + V.error)
        size = (exact + error) * (sizes + V.error)
        live = [
            [not (V.exact[j, c].is_zero() and V.error[j, c].is_zero()) for j in range(V.exact.nrows())]
            for c in range(width)
        ]
        out = [Bounded([], []) for _ in range(width)]
        for i in range(height):
            seen = rows[i]
            total, total_error, total_size = arb(0), arb(0), arb(0)
            for j in seen:
                total += exact[i, j]
                total_error += error[i, j]
                total_size += exact[i, j] + error[i, j]
            total_error += self._accumulated(total_size, max(len(seen) - 1, 0))
            if not total > 0:
                raise PrecisionNeeded(f"the normaliser of row {i} is not separated from zero")
            for c in range(width):
                count = sum(live[c][j] for j in seen)
                out[c].exact.append(above[i, c] / total)
                bound = carried[i, c] + self._accumulated(size[i, c], count)
                out[c].error.append(
                    arb(0) if not count else self._quotient(out[c].exact[-1], total, bound, total_error)
                )
        return out

    # --- answers -------------------------------------------------------------------------------------------------

    def equal(self, a: Entry, b: Entry) -> bool | None:
        raise OutOfRange("error bounds are not compared")


def _arb(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def _growth(unit: arb, count: int) -> arb:
    """`(1 + unit)^count - 1`, an upper bound, without cancellation: at most `expm1(count unit)` as log(1+u) <= u."""
    return (unit * count).expm1().upper()


def _sizes(matrix: arb_mat) -> arb_mat:
    return arb_mat(matrix.nrows(), matrix.ncols(), [x.abs_upper() for x in matrix.entries()])
