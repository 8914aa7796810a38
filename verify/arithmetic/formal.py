"""What the exact and the symbolic arithmetics share: scores as pairs (exponent, logarithm), attention by exact sums.

In both, a score is `a + log(m)` with `a` in some additive group on which `E` is known and `m` a nonzero value, and its
weight is `E(a) m`. So `log` is formal, `E(log m) = m` holds by construction, and a run never leaves the field of values.
Where a value is itself the weight `E(a)` of a score of the group, `log` returns that `a` (E is injective on the reals),
so that a carried query or key can be multiplied again in a later layer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from flint import fmpq, fmpq_mat

from verify.arithmetic.interface import Arithmetic, Column, Entry, Projection, Visible
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import OutOfRange, UnsupportedOperation

ZERO, ONE = fmpq(0), fmpq(1)


def rational(x: Fraction | int) -> fmpq:
    """The FLINT rational equal to x."""
    return fmpq(x.numerator, x.denominator)


class LogScore:
    """The score `exponent + log(factor)`; its weight is `E(exponent) * factor`.

    Sums of such scores multiply the factors; only integer multiples stay inside the field, so any other multiple of a
    logarithm raises UnsupportedOperation.
    """

    __slots__ = ("exponent", "factor")

    def __init__(self, exponent: Any, factor: Any) -> None:
        self.exponent, self.factor = exponent, factor

    def __add__(self, other: Any) -> LogScore:
        if isinstance(other, LogScore):
            return LogScore(self.exponent + other.exponent, self.factor * other.factor)
        return LogScore(self.exponent + other, self.factor)

    __radd__ = __add__

    def __neg__(self) -> LogScore:
        return LogScore(-self.exponent, ONE / self.factor)

    def __sub__(self, other: Any) -> LogScore:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> LogScore:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> LogScore:
        if not isinstance(other, fmpq) or other.q != 1:
            raise UnsupportedOperation("a logarithm can only be multiplied by an integer in exact arithmetic")
        n = int(other.p)
        if n == 1:
            return self
        factor = ONE
        for _ in range(abs(n)):
            factor = factor * self.factor
        return LogScore(self.exponent * other, factor if n >= 0 else ONE / factor)

    __rmul__ = __mul__


class FormalArithmetic(Arithmetic):
    """Columns are lists whose entries support `+ - * /`; attention is evaluated by exact sums."""

    batch_rows = 256

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, Any]] = {}
        """Parameters in FLINT's form, by identity; each stands beside the object itself, which keeps the identity alive."""

    @abstractmethod
    def power(self, exponent: Any) -> Entry:
        """`E(exponent)` for the additive part of a score."""

    @abstractmethod
    def is_zero(self, value: Entry) -> bool:
        """Whether a value is zero."""

    def positive(self, value: Entry) -> bool:
        """Whether a value may stand under a logarithm."""
        return not self.is_zero(value)

    def exponent_of(self, value: Entry) -> Any | None:
        """The additive score `a` with `E(a) = value`, where the value is such a pure weight; None otherwise."""
        return None

    # --- columns -------------------------------------------------------------------------------------------------

    def numbers(self, entries: Sequence[Fraction]) -> Column:
        return [rational(x) for x in entries]

    def constant(self, value: Fraction, height: int) -> Column:
        return [rational(value)] * height

    def fixed(self, entries: tuple[Fraction, ...]) -> Column:
        kept = self._kept.get(id(entries))
        if kept is None:
            kept = self._kept[id(entries)] = (entries, self.numbers(entries))
        return kept[1]

    def add(self, a: Column, b: Column) -> Column:
        return [x + y for x, y in zip(a, b, strict=True)]

    def subtract(self, a: Column, b: Column) -> Column:
        return [x - y for x, y in zip(a, b, strict=True)]

    def multiply(self, a: Column, b: Column) -> Column:
        return [x * y for x, y in zip(a, b, strict=True)]

    def divide(self, a: Column, b: Column) -> Column:
        if any(self.is_zero(y) for y in b):
            raise OutOfRange("division by zero in a token-wise map")
        return [x / y for x, y in zip(a, b, strict=True)]

    def scale(self, a: Column, factor: Fraction) -> Column:
        if factor.numerator == 1 == factor.denominator:
            return a
        c = rational(factor)
        return [x * c for x in a]

    def exp(self, scores: Column) -> Column:
        return [self.weight(s) for s in scores]

    def weight(self, score: Any) -> Entry:
        """`E(score)` of one score."""
        if isinstance(score, LogScore):
            return self.power(score.exponent) * score.factor
        return self.power(score)

    def log(self, values: Column) -> Column:
        return [self._log(x) for x in values]

    def _log(self, value: Entry) -> Any:
        exponent = self.exponent_of(value)
        if exponent is not None:
            return exponent
        if not self.positive(value):
            raise OutOfRange("logarithm of a value that is not positive: a declared bound on the values is too small")
        return LogScore(ZERO, value)

    def equal(self, a: Entry, b: Entry) -> bool:
        if isinstance(a, LogScore) or isinstance(b, LogScore):
            return bool(self.weight(a) == self.weight(b))
        return bool(a == b)

    def equal_scores(self, a: Any, b: Any) -> bool | None:
        """Whether two scores are equal: of additive scores, whether their difference is 0; otherwise, whether their weights agree."""
        if isinstance(a, LogScore) or isinstance(b, LogScore):
            return self.equal(self.weight(a), self.weight(b))
        return not (a - b)

    def concatenate(self, parts: Sequence[Column]) -> Column:
        return [x for part in parts for x in part]

    # --- attention -----------------------------------------------------------------------------------------------

    def project(self, columns: Sequence[Column], W: RationalMatrix) -> Projection:
        """The columns of X W, each a list; a zero column of W gives None."""
        unit, used, dense, factor = self._parameter(W)
        product: dict[int, Column] = {}
        if dense:
            if all(type(x) is fmpq for i in used for x in columns[i]):
                height = len(columns[0])
                rows = [x for row in zip(*(columns[i] for i in used), strict=True) for x in row]
                entries = (fmpq_mat(height, len(used), rows) * factor).entries()
                product = {c: entries[at :: len(dense)] for at, c in enumerate(dense)}
            else:
                product = {c: self._combine(columns, W.columns[c]) for c in dense}
        return [product[c] if c in product else columns[unit[c]] if c in unit else None for c in range(W.width)]

    def _parameter(self, W: RationalMatrix) -> tuple[dict[int, int], list[int], list[int], fmpq_mat]:
        """Columns of W that are unit vectors (with the row of their 1); the others, with the rows that they use, as a matrix."""
        kept = self._kept.get(id(W))
        if kept is None:
            unit = {c: terms[0][0] for c, terms in enumerate(W.columns) if len(terms) == 1 and terms[0][1] == 1}
            dense = [c for c, terms in enumerate(W.columns) if terms and c not in unit]
            used = sorted({i for c in dense for i, _ in W.columns[c]})
            factor = fmpq_mat(len(used), len(dense), [rational(W.rows[i][c]) for i in used for c in dense])
            kept = self._kept[id(W)] = (W, (unit, used, dense, factor))
        found: tuple[dict[int, int], list[int], list[int], fmpq_mat] = kept[1]
        return found

    def _combine(self, columns: Sequence[Column], terms: Sequence[tuple[int, Fraction]]) -> Column:
        total: Column | None = None
        for i, factor in terms:
            term = self.scale(columns[i], factor)
            total = term if total is None else self.add(total, term)
        return total

    def scores(self, Q: Projection, K: Projection, visible: Visible) -> Any:
        live = [c for c in range(len(Q)) if Q[c] is not None and K[c] is not None]
        height = visible.length * visible.copies
        queries = [[Q[c][i] for c in live] for i in range(height)]
        keys = [[(p, K[c][j]) for p, c in enumerate(live) if not _is_rational_zero(K[c][j])] for j in range(height)]
        return [
            [(top + j, _dot(queries[top + i], keys[top + j])) for j in seen]
            for top in range(0, height, visible.length)
            for i, seen in enumerate(visible.rows)
        ]

    def weights(self, scores: Any) -> Any:
        return [self.row_weights(i, row) for i, row in enumerate(scores)]

    def row_weights(self, i: int, row: Sequence[tuple[int, Any]]) -> list[tuple[int, Entry]]:
        """The weights of row i, up to one common factor."""
        return [(j, self.weight(s)) for j, s in row]

    def normalise(self, weights: Any, V: Projection) -> list[Column]:
        # For each column its nonzero values, None for 1: the synthetic columns of a construction are mostly 0 and 1.
        values = [
            {}
            if column is None
            else {j: None if type(v) is fmpq and v == ONE else v for j, v in enumerate(column) if v}
            for column in V
        ]
        out: list[Column] = [[] for _ in V]
        for i, row in enumerate(weights):
            total = _sum([w for _, w in row])
            if self.is_zero(total):
                raise OutOfRange(f"the weights of row {i} sum to zero")
            for c, column in enumerate(values):
                terms = [w if column[j] is None else w * column[j] for j, w in row if j in column]
                out[c].append(_sum(terms) / total if terms else ZERO)
        return out


def no_logarithm(x: Any) -> Any:
    """x itself. Raises UnsupportedOperation for a formal logarithm, which has no place among numbers and values."""
    if isinstance(x, LogScore):
        raise UnsupportedOperation("exact arithmetic cannot use the logarithm of a value as a number")
    return x


def _is_rational_zero(x: Any) -> bool:
    return isinstance(x, fmpq) and not x


def _sum(terms: Sequence[Any]) -> Any:
    if not terms:
        return ZERO
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _dot(q: Sequence[Any], k: Sequence[tuple[int, Any]]) -> Any:
    total: Any = ZERO
    first = True
    for p, factor in k:
        term = q[p] * factor
        total = term if first else total + term
        first = False
    return total
