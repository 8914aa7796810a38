"""Arithmetic in a finite field: values in F_p, scores in Z/(p-1), weight `E(s) = g^s` for a primitive root g.

`E` turns sums into products, as exp does, and everything else that a construction does to values are field operations. So an identity
between rational functions of weights and values can be tested here by evaluating both sides at random points, at sizes where exact
numbers would have millions of digits (Schwartz 1980, Zippel 1979); what such a test proves is said in `verify.arithmetic.degrees`.

A column holds up to three arrays: its entries as values (mod p), as scores (mod p-1), and for formal logarithms the factor m of a
score `s + log m`, whose weight is `g^s m`. So `log` needs no discrete logarithm. A number has both a value and a score; a score
that came in as such has no value, and a value no score.

All primes are below 2^31, so that a product of two residues fits into 64 bits. Sums of products are taken in float64 where they stay below
2^53, hence exactly: one factor as it is, the other in pieces of a few bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import gcd
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from verify.arithmetic.interface import Arithmetic, Column, Entry, Projection, Visible
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import UnsupportedOperation, VerifyError

Residues: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

MOST_BITS = 31
"""Bits of a prime."""

TILE = 64
"""Rows and columns of the pieces in which attention is evaluated."""

TILES = 48
"""Pieces that are evaluated together: as many as fit into a processor's cache."""

LOW = 16
"""Bits of an exponent that the first of two tables of powers looks at."""

MOST_POWERS = 256
"""Different exponents of one column of formal logarithms."""


class Unlucky(VerifyError):
    """A divisor, the sum of a row's weights or an argument of a logarithm is 0 mod p: this evaluation says nothing."""


@dataclass(frozen=True, eq=False)
class FiniteColumn:
    """Entries as values mod p, as scores mod p-1, and the factors of formal logarithms; None for what they do not have.

    A score without factors (the factor 1) has None there.
    """

    value: Residues | None
    score: Residues | None
    factor: Residues | None = None

    def __len__(self) -> int:
        array = self.value if self.value is not None else self.score
        assert array is not None
        return len(array)

    def __getitem__(self, at: slice) -> FiniteColumn:
        """Some of the entries."""
        return FiniteColumn(*(None if part is None else part[at] for part in (self.value, self.score, self.factor)))


class Finite(Arithmetic):
    """F_p with `E(s) = base^s`, or weights of kernel exp2 with base 2 (see the module)."""

    name = "finite"
    batch_rows = TILE * TILE

    def __init__(self, p: int, base: int) -> None:
        """For a prime p < 2^31 and a base that is not 0 mod p."""
        if not 2 < p < 2**MOST_BITS or not base % p:
            raise ValueError("a prime between 2 and 2^31 and a base that it does not divide")
        self.p, self.order = p, p - 1
        self._low = _powers(base, 1 << min(LOW, p.bit_length()), p)
        self._high = _powers(pow(base, 1 << LOW, p), (p >> LOW) + 1, p)
        self._kept: dict[int, tuple[object, FiniteColumn]] = {}
        """Columns of constants by the identity of the constants, which stand beside them and so stay alive."""
        self._divisor: tuple[Residues, Residues] | None = None
        """The last divisor and its inverse: all columns of a quotient are divided by the same one."""

    # --- columns -------------------------------------------------------------------------------------------------

    def values(self, residues: Residues) -> FiniteColumn:
        """The column of these values mod p, which are no scores."""
        return FiniteColumn(residues, None)

    def symbols(self, residues: Residues) -> FiniteColumn:
        """The column of these scores mod p-1, which are no values."""
        return FiniteColumn(None, residues)

    def numbers(self, entries: Sequence[Fraction]) -> FiniteColumn:
        value = np.array([self._residue(x, self.p) for x in entries], dtype=np.int64)
        scores = [self._residue(x, self.order) for x in entries] if self._has_scores(entries) else None
        return FiniteColumn(value, None if scores is None else np.array(scores, dtype=np.int64))

    def constant(self, value: Fraction, height: int) -> FiniteColumn:
        one = self.numbers([value])
        return FiniteColumn(*(None if x is None else np.broadcast_to(x, height) for x in (one.value, one.score)))

    def fixed(self, entries: tuple[Fraction, ...]) -> FiniteColumn:
        return self._keep(entries, entries)

    def place(self, column: FiniteColumn, constants: tuple[Fraction | None, ...], copies: int) -> FiniteColumn:
        given = np.array([x is not None for x in constants])
        instead = self._keep(constants, [x or Fraction(0) for x in constants])

        def placed(mine: Residues | None, theirs: Residues | None) -> Residues | None:
            if mine is None or theirs is None:
                return None
            return np.where(given, theirs, mine.reshape(copies, -1)).reshape(-1)

        factor = placed(column.factor, np.ones_like(given, dtype=np.int64))
        return self._column(
            placed(column.value, instead.value), placed(column.score, instead.score), factor, "a fraction is no score"
        )

    def _keep(self, constants: object, entries: Sequence[Fraction]) -> FiniteColumn:
        kept = self._kept.get(id(constants))
        if kept is None:
            kept = self._kept[id(constants)] = (constants, self.numbers(entries))
        return kept[1]

    def _has_scores(self, entries: Sequence[Fraction]) -> bool:
        return all(gcd(x.denominator, self.order) == 1 for x in entries)

    def _residue(self, x: Fraction, modulus: int) -> int:
        if x.denominator == 1:
            return x.numerator % modulus
        if gcd(x.denominator, modulus) != 1:
            raise Unlucky(f"the denominator of {str(x)[:40]} is not invertible mod {modulus}")
        return x.numerator * pow(x.denominator, -1, modulus) % modulus

    def add(self, a: FiniteColumn, b: FiniteColumn) -> FiniteColumn:
        return self._sum(a, b, 1)

    def subtract(self, a: FiniteColumn, b: FiniteColumn) -> FiniteColumn:
        return self._sum(a, b, -1)

    def _sum(self, a: FiniteColumn, b: FiniteColumn, sign: int) -> FiniteColumn:
        value = score = factor = None
        if a.value is not None and b.value is not None:
            value = (a.value + sign * b.value) % self.p
        if a.score is not None and b.score is not None:
            score = (a.score + sign * b.score) % self.order
            factor = a.factor
            if b.factor is not None:
                other = b.factor if sign > 0 else self._inverse(b.factor)
                factor = other if factor is None else factor * other % self.p
        return self._column(value, score, factor, "a score and a value cannot be added")

    def _column(self, value: Any, score: Any, factor: Any, otherwise: str) -> FiniteColumn:
        if value is None and score is None:
            raise UnsupportedOperation(f"finite arithmetic: {otherwise}")
        return FiniteColumn(value, score, factor)

    def multiply(self, a: FiniteColumn, b: FiniteColumn) -> FiniteColumn:
        value = score = None
        if a.value is not None and b.value is not None:
            value = a.value * b.value % self.p
        if a.score is not None and b.score is not None and a.factor is None and b.factor is None:
            score = a.score * b.score % self.order
        return self._column(value, score, None, "a score and a value cannot be multiplied")

    def divide(self, a: FiniteColumn, b: FiniteColumn) -> FiniteColumn:
        return FiniteColumn(self._value(a) * self._inverse(self._value(b)) % self.p, None)

    def scale(self, a: FiniteColumn, factor: Fraction) -> FiniteColumn:
        if factor == 1:
            return a
        value = score = power = None
        if a.value is not None:
            value = a.value * self._residue(factor, self.p) % self.p
        if a.score is not None and gcd(factor.denominator, self.order) == 1:
            score = a.score * self._residue(factor, self.order) % self.order
            if a.factor is not None:
                power = self._power(a.factor, self._residue(factor, self.order))
        return self._column(value, score, power, f"a score has no multiple by {factor} mod {self.order}")

    def exp(self, scores: FiniteColumn) -> FiniteColumn:
        if scores.score is None:
            raise UnsupportedOperation("finite arithmetic has no weight for a value")
        weight = self._weight(np.array(scores.score))
        return FiniteColumn(weight if scores.factor is None else weight * scores.factor % self.p, None)

    def log(self, values: FiniteColumn) -> FiniteColumn:
        value = self._value(values)
        if not value.all():
            raise Unlucky("the argument of a logarithm is 0 mod p")
        return FiniteColumn(None, np.zeros(len(value), dtype=np.int64), value)

    def number(self, values: FiniteColumn) -> FiniteColumn:
        if values.score is None or values.factor is not None:
            return super().number(values)  # type: ignore[no-any-return]
        return values

    def concatenate(self, parts: Sequence[FiniteColumn]) -> FiniteColumn:
        if len(parts) == 1:
            return parts[0]
        value = score = factor = None
        if all(part.value is not None for part in parts):
            value = np.concatenate([part.value for part in parts])
        if all(part.score is not None for part in parts):
            score = np.concatenate([part.score for part in parts])
            if any(part.factor is not None for part in parts):
                factor = np.concatenate(
                    [np.ones(len(part), dtype=np.int64) if part.factor is None else part.factor for part in parts]
                )
        return self._column(value, score, factor, "scores and values cannot stand in one column")

    def _value(self, column: FiniteColumn) -> Residues:
        if column.value is None:
            raise UnsupportedOperation("finite arithmetic cannot use a score as a value")
        return column.value

    def _power(self, base: Residues, exponent: int) -> Residues:
        """Entrywise base^exponent mod p, for exponent >= 0."""
        result, square = np.ones_like(base), base
        while exponent:
            if exponent & 1:
                result = result * square % self.p
            square = square * square % self.p
            exponent >>= 1
        return result

    def _inverse(self, values: Residues) -> Residues:
        """Entrywise 1/value mod p. Raises Unlucky where a value is 0."""
        if self._divisor is None or self._divisor[0] is not values:
            if not values.all():
                raise Unlucky("a divisor is 0 mod p")
            self._divisor = (values, self._inverses(values))
        return self._divisor[1]

    def _inverses(self, values: Residues) -> Residues:
        """From the inverses of the products of neighbours, so that only a few powers are taken."""
        if len(values) <= TILE:
            return self._power(values, self.p - 2)
        even = len(values) & ~1
        left, right = values[0:even:2], values[1:even:2]
        above = self._inverses(left * right % self.p)
        result = np.empty_like(values)
        result[0:even:2] = above * right % self.p
        result[1:even:2] = above * left % self.p
        if even < len(values):
            result[even:] = self._power(values[even:], self.p - 2)
        return result

    def _weight(self, exponents: Residues) -> Residues:
        """`base^s mod p` for residues s mod p-1, by two look-ups."""
        low = self._low.take(exponents & (len(self._low) - 1), mode="clip")
        exponents >>= LOW
        low *= self._high.take(exponents, mode="clip")
        return _reduce(low, self.p)

    # --- attention -----------------------------------------------------------------------------------------------

    def project(self, columns: Sequence[FiniteColumn], W: RationalMatrix) -> Projection:
        """The columns of X W; None for a zero column of W."""
        return [self._combine(columns, terms) if terms else None for terms in W.columns]

    def _combine(self, columns: Sequence[FiniteColumn], terms: Sequence[tuple[int, Fraction]]) -> FiniteColumn:
        total: FiniteColumn | None = None
        for i, factor in terms:
            term = self.scale(columns[i], factor)
            total = term if total is None else self.add(total, term)
        assert total is not None
        return total

    def scores(self, Q: Projection, K: Projection, visible: Visible) -> Any:
        """Queries and keys side by side: what they give is computed tile by tile in `normalise`."""
        pairs = [(q, k) for q, k in zip(Q, K, strict=True) if q is not None and k is not None]
        if any(column.score is None for pair in pairs for column in pair):
            raise UnsupportedOperation(
                "finite arithmetic cannot use a value, or a fraction without a residue, in a score"
            )
        return pairs, visible

    def weights(self, scores: Any) -> Any:
        return scores

    def normalise(self, weights: Any, V: Projection) -> list[Column]:
        pairs, visible = weights
        plain = [(q.score, k.score) for q, k in pairs if q.score.any() and k.score.any()]
        formal = [part for q, k in pairs for part in self._formal(q, k)]
        height = visible.length * visible.copies
        live = [c for c, column in enumerate(V) if column is not None]
        values = np.stack([*(self._value(V[c]) for c in live), np.ones(height, dtype=np.int64)], axis=1)
        tile = min(TILE, visible.length)
        pieces = _pieces(values, 53 - self.p.bit_length() - (tile - 1).bit_length(), self.p)
        sums = np.zeros((height, values.shape[1]), dtype=np.int64)
        for part in _tiles(visible, tile):
            weight = self._tile(plain, formal, part.rows, part.keys).astype(np.float64)
            if part.seen is not None:
                weight *= part.seen
            block = pieces.join(weight @ pieces.table[part.keys])
            for start, group in groupby(enumerate(part.starts), key=itemgetter(1)):
                number = [index for index, _ in group]
                end = min(start + tile, start - start % visible.length + visible.length)
                sums[start:end] += block[number[0] : number[-1] + 1, : end - start].sum(axis=0)
        sums %= self.p
        inverse = self._total_inverse(sums[:, -1])
        out: list[Column] = [FiniteColumn(np.zeros(height, dtype=np.int64), None)] * len(V)
        for position, c in enumerate(live):
            out[c] = FiniteColumn(sums[:, position] * inverse % self.p, None)
        return out

    def _total_inverse(self, totals: Residues) -> Residues:
        if not totals.all():
            raise Unlucky("the sum of a row's weights is 0 mod p")
        return self._inverse(totals)

    def _formal(self, q: FiniteColumn, k: FiniteColumn) -> Iterator[tuple[bool, Residues, Residues]]:
        """Formal logarithms on one side: (on the query's side, a power of their factors, where it is the one that counts)."""
        if q.factor is not None and k.factor is not None:
            raise UnsupportedOperation("finite arithmetic cannot multiply two logarithms")
        for on_query, mine, other in ((True, q, k), (False, k, q)):
            if mine.factor is None:
                continue
            assert other.score is not None
            exponents = np.unique(other.score)
            if len(exponents) > MOST_POWERS:
                raise UnsupportedOperation("finite arithmetic cannot multiply a logarithm by so many different numbers")
            for exponent in exponents:
                if exponent:
                    hit = other.score == exponent
                    yield on_query, self._power(mine.factor, int(exponent)), hit

    def _tile(self, plain: Any, formal: Any, rows: Residues, keys: Residues) -> Residues:
        """The weights of these rows and columns: (tiles, rows, columns)."""
        exponent: Residues | None = None
        for q, k in plain:
            product = q[rows][:, :, None] * k[keys][:, None, :]
            _reduce(product, self.order)
            if exponent is None:
                exponent = product
            else:
                exponent += product
                _reduce(exponent, self.order)
        ones = (*rows.shape, keys.shape[1])
        weight = np.ones(ones, dtype=np.int64) if exponent is None else self._weight(exponent)
        for on_query, power, hit in formal:
            if on_query:
                tiles, columns = np.nonzero(hit[keys])
                if len(tiles):
                    weight[tiles, :, columns] = weight[tiles, :, columns] * power[rows][tiles] % self.p
            else:
                tiles, lines = np.nonzero(hit[rows])
                if len(tiles):
                    weight[tiles, lines, :] = weight[tiles, lines, :] * power[keys][tiles] % self.p
        return weight

    # --- answers -------------------------------------------------------------------------------------------------

    def equal(self, a: Entry, b: Entry) -> bool:
        raise UnsupportedOperation("finite arithmetic compares whole columns")

    def agree(self, a: Sequence[FiniteColumn], b: Sequence[FiniteColumn]) -> Residues:
        """For each row, whether all values of two outputs agree mod p. Raises ValueError for outputs of different shape."""
        if len(a) != len(b) or any(len(x) != len(y) for x, y in zip(a, b, strict=True)):
            raise ValueError("outputs of different shape")
        same = np.ones(len(a[0]), dtype=bool)
        for x, y in zip(a, b, strict=True):
            same &= self._value(x) == self._value(y)
        return same


@dataclass(frozen=True)
class _Pieces:
    """A matrix of residues cut into pieces of `bits` bits, side by side: `table` = (low | next | ...) as float64."""

    table: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
    bits: int
    width: int
    p: int

    def join(self, product: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Residues:
        """What a product with the table says about the product with the matrix, mod p."""
        whole = _reduce(product.astype(np.int64), self.p)
        total = whole[..., -self.width :]
        for at in range(whole.shape[-1] - 2 * self.width, -1, -self.width):
            total = (total << self.bits) + whole[..., at : at + self.width]
            total = _reduce(total, self.p)
        return total


def _pieces(matrix: Residues, bits: int, p: int) -> _Pieces:
    count = -(-p.bit_length() // bits)
    parts = [matrix >> (bits * i) & ((1 << bits) - 1) for i in range(count)]
    return _Pieces(np.concatenate(parts, axis=1).astype(np.float64), bits, matrix.shape[1], p)


def _reduce(x: Residues, p: int) -> Residues:
    """x mod p in place, for entries that are not negative. (One division; numpy's own remainder takes twice as long.)"""
    quotient = x // p
    quotient *= p
    x -= quotient
    return x


def _powers(base: int, count: int, p: int) -> Residues:
    """base^0, ..., base^(count-1) mod p, by doubling."""
    table = np.ones(1, dtype=np.int64)
    while len(table) < count:
        table = np.concatenate([table, table * pow(base, len(table), p) % p])
    return table[:count]


def _bounds(visible: Visible) -> tuple[Residues, Residues]:
    """What each row sees as ranges of columns: (first, one past the last), each (ranges of a row) x rows, padded with empty ones."""
    ranges = [[(row.start, row.stop)] if isinstance(row, range) else _ranges(row) for row in visible.rows]
    most = max(map(len, ranges))
    padded = np.array([row + [(0, 0)] * (most - len(row)) for row in ranges], dtype=np.int64)
    return padded[:, :, 0].T, padded[:, :, 1].T


def _ranges(row: Sequence[int]) -> list[tuple[int, int]]:
    """Increasing numbers as ranges."""
    found: list[tuple[int, int]] = []
    for j in row:
        if found and found[-1][1] == j:
            found[-1] = (found[-1][0], j + 1)
        else:
            found.append((j, j + 1))
    return found


@dataclass(frozen=True)
class _Tiles:
    """Pieces of attention that are evaluated together; `seen` says which of their pairs count (None: all)."""

    starts: list[int]
    """First row of each piece."""
    rows: Residues
    keys: Residues
    seen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None


def _tiles(visible: Visible, tile: int) -> Iterator[_Tiles]:
    """All pieces that hold a pair that counts, from the first row of the first copy on."""
    first, last = _bounds(visible)
    length = visible.length
    places = np.array([place for row in range(0, length, tile) for place in _columns(first, last, row, tile, length)])
    tops = np.repeat(np.arange(visible.copies, dtype=np.int64) * length, len(places))
    everything = np.concatenate([tops[:, None], np.tile(places, (visible.copies, 1))], axis=1)
    steps = np.arange(tile)
    for at in range(0, len(everything), TILES):
        part = everything[at : at + TILES]
        top, row, column = part[:, 0:1], part[:, 1:2], part[:, 2:3]
        rows, keys, seen = row + steps, column + steps, None
        if not part[:, 3].all():
            inside = np.minimum(rows, length - 1)
            seen = np.zeros((len(rows), tile, tile), dtype=bool)
            for start, stop in zip(first, last, strict=True):
                seen |= (keys[:, None, :] >= start[inside][:, :, None]) & (keys[:, None, :] < stop[inside][:, :, None])
            seen &= (rows < length)[:, :, None]
            rows, keys = inside, np.minimum(keys, length - 1)
        yield _Tiles((top + row)[:, 0].tolist(), top + rows, top + keys, seen)


def _columns(first: Residues, last: Residues, row: int, tile: int, length: int) -> Iterator[tuple[int, int, bool]]:
    """Where the pieces of these rows begin: (row, column, whether every pair counts)."""
    starts, stops = first[:, row : row + tile], last[:, row : row + tile]
    done = 0
    for low, high in sorted(zip(starts.min(axis=1).tolist(), stops.max(axis=1).tolist(), strict=True)):
        for column in range(max(low, done), high, tile):
            inside = (starts <= column) & (column + tile <= stops)
            yield row, column, row + tile <= length and bool(inside.all(axis=1).any())
            done = column + tile
