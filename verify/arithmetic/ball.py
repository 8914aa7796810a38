"""Ball arithmetic: every number is a rigorous enclosure (Arb), at a working precision that the caller raises as needed.

A run at one precision never answers wrongly; it may answer "open". `deciding` repeats a run at doubled precision until
nothing is open or the stated limit is reached.

python-flint keeps one precision for the whole process: `working_precision` sets and restores it, and this module is the
only one that touches it. The setting is not safe across threads (processes are fine).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, Literal, TypeVar

from flint import arb, arb_mat, ctx, fmpq

from verify.arithmetic.interface import Arithmetic, Column, Entry, Visible
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import OutOfRange, PrecisionNeeded, RequestError, Undecided

PRECISION_LIMIT = 1 << 15
"""Bits at which `deciding` gives up."""

SCORE_LIMIT = 1 << 4096
"""Size up to which a score is taken at any precision. (Arb can hold the weight of one of p bits at somewhat more than p bits.)"""

Answer = TypeVar("Answer")


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Arb's working precision inside the block, in bits."""
    before: int = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def deciding(question: Callable[[int], Answer], start: int, limit: int = PRECISION_LIMIT) -> Answer:
    """The first answer of `question(bits)` that does not raise PrecisionNeeded, for bits = start, 2 start, ... <= limit.

    Raises Undecided, with the last reason, at the limit.
    """
    bits, reason = start, ""
    while bits <= max(limit, start):
        try:
            return question(bits)
        except PrecisionNeeded as error:
            reason = str(error)
            bits *= 2
    raise Undecided(f"open at {limit} bits: {reason}")


def dyadic(x: arb) -> Fraction:
    """The exact value of a finite ball of radius 0."""
    if not x.is_finite():
        raise PrecisionNeeded("an enclosure is unbounded")
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


class Ball(Arithmetic):
    """Arb balls at `bits` bits with kernel exp or exp2. Use inside `working_precision(bits)` (see `precision`)."""

    name = "ball"

    def __init__(self, kernel: Literal["exp", "exp2"], bits: int) -> None:
        self.kernel, self.bits = kernel, bits
        with working_precision(bits):
            self._log2 = arb.const_log2()
        self._parameters: dict[int, tuple[RationalMatrix, arb_mat]] = {}

    # --- columns -------------------------------------------------------------------------------------------------

    def numbers(self, entries: Sequence[Fraction]) -> Column:
        return [arb(fmpq(x.numerator, x.denominator)) for x in entries]

    def add(self, a: Column, b: Column) -> Column:
        return [x + y for x, y in zip(a, b, strict=True)]

    def subtract(self, a: Column, b: Column) -> Column:
        return [x - y for x, y in zip(a, b, strict=True)]

    def multiply(self, a: Column, b: Column) -> Column:
        return [x * y for x, y in zip(a, b, strict=True)]

    def divide(self, a: Column, b: Column) -> Column:
        out = [x / y for x, y in zip(a, b, strict=True)]
        for x, y in zip(out, b, strict=True):
            if not x.is_finite():
                if y.is_zero():
                    raise OutOfRange("division by zero in a token-wise map")
                raise PrecisionNeeded("a divisor is not separated from zero")
        return out

    def scale(self, a: Column, factor: Fraction) -> Column:
        if factor == 1:
            return list(a)
        c = arb(fmpq(factor.numerator, factor.denominator))
        return [x * c for x in a]

    def exp(self, scores: Column) -> Column:
        return [self.weight(s) for s in scores]

    def weight(self, score: arb) -> arb:
        """`E(score)` of one score. Raises RequestError where the score exceeds `SCORE_LIMIT` in size.

        Arb's exp is unbounded where a score is long for the working precision: then more of it is needed.
        """
        ball = score.exp() if self.kernel == "exp" else (score * self._log2).exp()
        if not ball.is_finite():
            if abs(score) > SCORE_LIMIT:
                raise RequestError(
                    f"score {score.str(5)} is too large",
                    right=f"ball arithmetic takes scores up to 2^{SCORE_LIMIT.bit_length() - 1} in size",
                )
            raise PrecisionNeeded("the weight of a score is unbounded")
        return ball

    def log(self, values: Column) -> Column:
        out = []
        for x in values:
            if not x > 0:
                if x <= 0:
                    raise OutOfRange(
                        "logarithm of a value that is not positive: a declared bound on the values is too small"
                    )
                raise PrecisionNeeded("an argument of a logarithm is not separated from zero")
            out.append(x.log() if self.kernel == "exp" else x.log() / self._log2)
        return out

    def round_to_grid(self, a: Column, bits: int) -> Column:
        unit, half = arb(2) ** bits, arb(fmpq(1, 2))
        out = []
        for x in a:
            whole = (x * unit + half).floor().unique_fmpz()
            if whole is None:
                raise PrecisionNeeded("a value to be rounded is too close to a tie")
            out.append(arb(whole) / unit)
        return out

    def relu(self, a: Column) -> Column:
        zero = arb(0)
        return [x.max(zero) for x in a]

    def number(self, values: Column) -> Column:
        return values

    def concatenate(self, parts: Sequence[Column]) -> Column:
        return [x for part in parts for x in part]

    # --- attention -----------------------------------------------------------------------------------------------

    def project(self, columns: Sequence[Column], W: RationalMatrix) -> arb_mat:
        height = len(columns[0]) if columns else 0
        used = W.used_rows
        if not used:
            return arb_mat(height, W.width)
        X = arb_mat(height, len(used), [x for row in zip(*(columns[i] for i in used), strict=True) for x in row])
        return X * self._parameter(W)

    def _parameter(self, W: RationalMatrix) -> arb_mat:
        kept = self._parameters.get(id(W))
        if kept is None:
            used = W.used_rows
            entries = [arb(fmpq(x.numerator, x.denominator)) for i in used for x in W.rows[i]]
            kept = self._parameters[id(W)] = (W, arb_mat(len(used), W.width, entries))
        return kept[1]

    def scores(self, Q: arb_mat, K: arb_mat, visible: Visible) -> Any:
        return (Q * K.transpose(), visible.rows)

    def weights(self, scores: Any) -> arb_mat:
        S, visible = scores
        n, m = S.nrows(), S.ncols()
        entries, zero = S.entries(), arb(0)
        weights: list[arb] = []
        for i, seen in enumerate(visible):
            row = entries[i * m : (i + 1) * m]
            try:
                if len(seen) == m:
                    weights.extend(self.exp(row))
                else:
                    kept = [zero] * m
                    for j in seen:
                        kept[j] = self.weight(row[j])
                    weights.extend(kept)
            except RequestError as error:
                raise RequestError(error.what, where=f"row {i}", right=error.right) from None
        return arb_mat(n, m, weights)

    def normalise(self, weights: arb_mat, V: arb_mat) -> list[Column]:
        n, width = weights.nrows(), V.ncols()
        totals = (weights * arb_mat(weights.ncols(), 1, [1] * weights.ncols())).entries()
        sums = (weights * V).entries()
        for i, total in enumerate(totals):
            if not total > 0:
                raise PrecisionNeeded(f"the normaliser of row {i} is not separated from zero")
        return [[sums[i * width + c] / totals[i] for i in range(n)] for c in range(width)]

    # --- answers -------------------------------------------------------------------------------------------------

    def equal(self, a: arb, b: arb) -> bool | None:
        """False when the balls are disjoint; otherwise open (overlap does not prove equality)."""
        return None if a.overlaps(b) else False

    def enclose(self, entry: Entry, bits: int) -> arb:
        return arb(entry)
