"""Arithmetic that computes nothing: every operation is written down, as an expression that another program can evaluate.

Entries are rationals or lists of an operation and its arguments, as the statements of evidence files have them
(`verify/confirm/statement.py` documents the operations). Running a reference here yields the formula that it stands for, at given
numbers; the independent checker evaluates the formula itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from verify.arithmetic.interface import Arithmetic, Column, Entry, Projection, Visible
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import UnsupportedOperation


class Written(Arithmetic):
    """Expressions over the rationals with the weights of one kernel."""

    name = "written"

    def __init__(self, kernel: Literal["exp", "exp2"]) -> None:
        self.kernel = kernel

    def numbers(self, entries: Sequence[Fraction]) -> Column:
        return list(entries)

    def add(self, a: Column, b: Column) -> Column:
        return [_both("+", x, y) for x, y in zip(a, b, strict=True)]

    def subtract(self, a: Column, b: Column) -> Column:
        return [_both("-", x, y) for x, y in zip(a, b, strict=True)]

    def multiply(self, a: Column, b: Column) -> Column:
        return [_both("*", x, y) for x, y in zip(a, b, strict=True)]

    def divide(self, a: Column, b: Column) -> Column:
        return [_both("/", x, y) for x, y in zip(a, b, strict=True)]

    def scale(self, a: Column, factor: Fraction) -> Column:
        return [_both("*", factor, x) for x in a]

    def exp(self, scores: Column) -> Column:
        return [[self.kernel, x] for x in scores]

    def number(self, values: Column) -> Column:
        return values

    def concatenate(self, parts: Sequence[Column]) -> Column:
        return [x for part in parts for x in part]

    def project(self, columns: Sequence[Column], W: RationalMatrix) -> Projection:
        rows = zip(*columns, strict=True)
        return [
            [_sum([_both("*", x, w[c]) for x, w in zip(row, W.rows, strict=True)]) for c in range(W.width)]
            for row in rows
        ]

    def scores(self, Q: Projection, K: Projection, visible: Visible) -> Any:
        if visible.copies != 1:
            raise UnsupportedOperation("written arithmetic takes one input at a time")
        return [
            {j: _sum([_both("*", x, y) for x, y in zip(Q[i], K[j], strict=True)]) for j in row}
            for i, row in enumerate(visible.rows)
        ]

    def weights(self, scores: Any) -> Any:
        return [{j: [self.kernel, score] for j, score in row.items()} for row in scores]

    def normalise(self, weights: Any, V: Projection) -> list[Column]:
        return [
            [
                _both("/", _sum([_both("*", w, V[j][c]) for j, w in row.items()]), _sum(list(row.values())))
                for row in weights
            ]
            for c in range(len(V[0]))
        ]

    def equal(self, a: Entry, b: Entry) -> bool | None:
        return None  # nothing is evaluated here


def size(expression: Entry) -> int:
    """Numbers and operations in an expression."""
    return sum(map(size, expression[1:])) + 1 if isinstance(expression, list) else 1


def _both(operation: str, a: Entry, b: Entry) -> Entry:
    if operation == "+" and isinstance(a, list) and a[0] == "+":
        return [*a, b]  # one sum, not a tower: the depth of evidence is limited
    if operation == "+" and a == 0:
        return b
    return [operation, a, b]


def _sum(terms: list[Entry]) -> Entry:
    total: Entry = Fraction(0)
    for term in terms:
        total = _both("+", total, term)
    return total
