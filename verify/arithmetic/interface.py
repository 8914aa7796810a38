"""The one interface behind which every number system stands.

Three kinds of numbers meet in attention, and the interface keeps them apart:

* a **number** is an input entry, usable on either side;
* a **score** is what `<q_i, k_j>` yields: it lives in a group, and its weight `E(score)` is a value;
* a **value** is what attention averages: it lives in a field.

`E` turns a score into a value, `log` (where the arithmetic has one) turns a positive value into a score with
`E(log v) = v`. In the reals the distinction is invisible; in `Q(e^(1/D))`, in the symbolic arithmetic and in a finite
field it is what makes a run honest.

All operations work on whole columns (one entry for each token), so that an arithmetic may vectorise. What an arithmetic
cannot do raises `UnsupportedOperation` with the reason.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeAlias

from flint import arb

from verify.arithmetic.matrix import RationalMatrix
from verify.errors import UnsupportedOperation

Entry: TypeAlias = Any
"""One number in the arithmetic's own representation."""

Column: TypeAlias = Any
"""One entry for each token, in the arithmetic's own representation; supports `len` and slicing."""

Projection: TypeAlias = Any
"""The result of `project`: the rows q_i, k_i or v_i in whatever layout suits the arithmetic."""


@dataclass(frozen=True)
class Visible:
    """Which tokens each token sees, in `copies` inputs of one length that stand one below the other.

    `rows[i]` are the columns j that row i of an input sees, of the same input: copies do not see each other.
    """

    rows: Sequence[Sequence[int]]
    copies: int = 1

    @property
    def length(self) -> int:
        """Tokens of one input."""
        return len(self.rows)


class Kind(Enum):
    """What a column holds: see the module's description."""

    NUMBER = "number"
    SCORE = "score"
    VALUE = "value"


class Arithmetic(ABC):
    """A number system in which transformers and oracle programs run."""

    name: str

    batch_rows: int = 0
    """Calls of one oracle in one round run together, up to so many rows (0: one by one, and never with several copies)."""

    # --- columns -------------------------------------------------------------------------------------------------

    @abstractmethod
    def numbers(self, entries: Sequence[Fraction]) -> Column:
        """The column of these exact rationals."""

    def constant(self, value: Fraction, height: int) -> Column:
        """The column of `height` copies of a rational. (Columns are never changed in place, so it may be shared.)"""
        return self.numbers([value] * height)

    def fixed(self, entries: tuple[Fraction, ...]) -> Column:
        """The column of these rationals, which belong to a map and come again: an arithmetic may keep it, by identity."""
        return self.numbers(entries)

    def place(self, column: Column, constants: tuple[Fraction | None, ...], copies: int) -> Column:
        """The column with constants instead of some entries, the same in each of `copies` stacked parts; None leaves an entry.

        The constants belong to a map and come again: an arithmetic may keep what it makes of them, by identity.
        """
        pieces = []
        for top in range(0, copies * len(constants), len(constants)):
            at = top
            for constant, run in groupby(constants):
                height = len(list(run))
                kept = constant is None
                pieces.append(column[at : at + height] if kept else self.constant(constant or Fraction(0), height))
                at += height
        return self.concatenate(pieces)

    @abstractmethod
    def add(self, a: Column, b: Column) -> Column:
        """Entrywise a + b."""

    @abstractmethod
    def subtract(self, a: Column, b: Column) -> Column:
        """Entrywise a - b."""

    @abstractmethod
    def multiply(self, a: Column, b: Column) -> Column:
        """Entrywise a * b."""

    @abstractmethod
    def divide(self, a: Column, b: Column) -> Column:
        """Entrywise a / b. Raises OutOfRange on a zero divisor."""

    @abstractmethod
    def scale(self, a: Column, factor: Fraction) -> Column:
        """Entrywise factor * a."""

    @abstractmethod
    def exp(self, scores: Column) -> Column:
        """Entrywise weight E(score)."""

    def log(self, values: Column) -> Column:
        """Entrywise score s with E(s) = value. Raises OutOfRange where the value is not positive."""
        raise UnsupportedOperation(f"{self.name} arithmetic has no logarithm")

    def round_to_grid(self, a: Column, bits: int) -> Column:
        """Entrywise nearest multiple of 2^-bits, ties up."""
        raise UnsupportedOperation(f"{self.name} arithmetic has no order, so it cannot round")

    def relu(self, a: Column) -> Column:
        """Entrywise max(a, 0)."""
        raise UnsupportedOperation(f"{self.name} arithmetic has no order, so it has no relu")

    def number(self, values: Column) -> Column:
        """The same numbers, now usable as input of scores. Raises UnsupportedOperation where that makes no sense."""
        raise UnsupportedOperation(f"{self.name} arithmetic cannot use a value as the input of a score")

    @abstractmethod
    def concatenate(self, parts: Sequence[Column]) -> Column:
        """The columns one below the other."""

    # --- attention -----------------------------------------------------------------------------------------------

    @abstractmethod
    def project(self, columns: Sequence[Column], W: RationalMatrix) -> Projection:
        """The rows of X W, for X given by its columns."""

    @abstractmethod
    def scores(self, Q: Projection, K: Projection, visible: Visible) -> Any:
        """`<q_i, k_j>` for every row i and every j that it sees (for several copies: i and j count through all of them)."""

    @abstractmethod
    def weights(self, scores: Any) -> Any:
        """`E(<q_i, k_j>)`, up to one nonzero factor for each row (which normalising cancels)."""

    @abstractmethod
    def normalise(self, weights: Any, V: Projection) -> list[Column]:
        """The columns of the head's output: row i is `sum_j weight_ij v_j / sum_j weight_ij`."""

    # --- answers -------------------------------------------------------------------------------------------------

    @abstractmethod
    def equal(self, a: Entry, b: Entry) -> bool | None:
        """Whether two values are equal; None where this arithmetic cannot decide it."""

    def equal_scores(self, a: Entry, b: Entry) -> bool | None:
        """Whether two scores are equal; None where this arithmetic cannot decide it."""
        return self.equal(a, b)

    def enclose(self, entry: Entry, bits: int) -> arb:
        """A rigorous ball around a value, computed at a working precision of `bits`."""
        raise UnsupportedOperation(f"{self.name} arithmetic has no place on the real line")
