"""Rational matrices: the parameters of transformers and oracles, independent of any arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property


@dataclass(frozen=True, eq=False)
class RationalMatrix:
    """A matrix of exact rationals, stored by rows; compared by identity, so that arithmetics can cache conversions."""

    rows: tuple[tuple[Fraction, ...], ...]
    width: int

    @classmethod
    def of(cls, rows: Iterable[Iterable[Fraction | int]], width: int | None = None) -> RationalMatrix:
        """The matrix with these rows; `width` is needed only when there are none. Raises ValueError if ragged."""
        exact = tuple(tuple(Fraction(x) for x in row) for row in rows)
        columns = len(exact[0]) if exact else (width or 0)
        if any(len(row) != columns for row in exact):
            raise ValueError("ragged matrix")
        return cls(exact, columns)

    @classmethod
    def identity(cls, n: int) -> RationalMatrix:
        """The n x n identity."""
        return cls.from_entries(n, n, {(i, i): Fraction(1) for i in range(n)})

    @classmethod
    def zero(cls, height: int, width: int) -> RationalMatrix:
        """The height x width zero matrix."""
        return cls.from_entries(height, width, {})

    @classmethod
    def from_entries(cls, height: int, width: int, entries: Mapping[tuple[int, int], Fraction | int]) -> RationalMatrix:
        """The height x width matrix with the given nonzero entries."""
        rows = [[Fraction(0)] * width for _ in range(height)]
        for (i, j), value in entries.items():
            rows[i][j] = Fraction(value)
        return cls(tuple(tuple(row) for row in rows), width)

    @classmethod
    def blocks(cls, height: int, width: int, placed: Sequence[tuple[int, int, RationalMatrix]]) -> RationalMatrix:
        """Zero except for the `placed` blocks, each given as (top row, left column, block)."""
        entries: dict[tuple[int, int], Fraction] = {}
        for top, left, block in placed:
            for i, row in enumerate(block.rows):
                for j, value in enumerate(row):
                    if value:
                        entries[top + i, left + j] = value
        return cls.from_entries(height, width, entries)

    @property
    def height(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @cached_property
    def columns(self) -> tuple[tuple[tuple[int, Fraction], ...], ...]:
        """For each column, its nonzero entries as (row, value)."""
        return tuple(tuple((i, row[j]) for i, row in enumerate(self.rows) if row[j]) for j in range(self.width))

    @cached_property
    def used_rows(self) -> tuple[int, ...]:
        """The rows that are not entirely zero: the input columns that the matrix reads."""
        return tuple(i for i, row in enumerate(self.rows) if any(row))
