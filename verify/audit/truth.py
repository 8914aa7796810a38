"""The true output of a transformer: enclosures as narrow as wanted and, where an exact arithmetic can run it, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Literal

from flint import arb, fmpq

from verify.arithmetic.ball import PRECISION_LIMIT, Ball, working_precision
from verify.arithmetic.exact import Exact2, ExactE, ScoreDenominator, common_denominator
from verify.arithmetic.interface import Column
from verify.errors import PrecisionNeeded, Undecided, VerifyError
from verify.transformer.model import Transformer


@dataclass(frozen=True)
class Truth:
    """The direct evaluation of a transformer on an input given by its columns, over the reals."""

    kernel: Literal["exp", "exp2"]
    transformer: Transformer
    columns: tuple[tuple[Fraction, ...], ...]
    _known: dict[int, list[list[arb]]] = field(default_factory=dict, repr=False)

    @property
    def N(self) -> int:
        """Tokens of the input."""
        return len(self.columns[0])

    @cached_property
    def exactly(self) -> tuple[Exact2 | ExactE, list[Column]] | None:
        """An exact arithmetic and the output's columns in it; None where neither exact arithmetic can run the transformer."""
        try:
            return _evaluate_exactly(self.kernel, self.transformer, self.columns)
        except VerifyError:
            return None

    def enclosures(self, bits: int) -> list[list[arb]]:
        """Balls around the output's entries, by columns, from a run at `bits` bits or as many more as it needs.

        Raises Undecided where it would need more than `PRECISION_LIMIT`, RequestError for scores that no ball can hold.
        """
        if bits not in self._known:
            self._known[bits] = self._enclose(bits)
        return self._known[bits]

    def _enclose(self, bits: int) -> list[list[arb]]:
        # A rational output needs no balls: it is known at any precision.
        if self.kernel == "exp2" and self.exactly is not None:
            arithmetic, columns = self.exactly
            return [[arithmetic.enclose(x, bits) for x in column] for column in columns]
        reason = ""
        while bits <= PRECISION_LIMIT:
            with working_precision(bits):
                ball = Ball(self.kernel, bits)
                try:
                    out: list[list[arb]] = self.transformer.evaluate(ball, [ball.numbers(c) for c in self.columns])
                    return out
                except PrecisionNeeded as error:
                    reason = str(error)
            bits *= 2
        raise Undecided(f"the true output is open at {PRECISION_LIMIT} bits: {reason}")

    def rational_row(self, row: int) -> list[fmpq] | None:
        """A row of the output, if all its entries are known to be rational."""
        if self.exactly is None:
            return None
        entries = [column[row] for column in self.exactly[1]]
        known = [entry if isinstance(entry, fmpq) else entry.rational() for entry in entries]
        return known if all(entry is not None for entry in known) else None

    def is_entry(self, row: int, column: int, value: fmpq) -> bool | None:
        """Whether an entry of the output is exactly this rational; None where no exact arithmetic can tell."""
        if self.exactly is None:
            return None
        arithmetic, columns = self.exactly
        return arithmetic.equal(columns[column][row], value)


def _evaluate_exactly(
    kernel: Literal["exp", "exp2"], transformer: Transformer, columns: Sequence[Sequence[Fraction]]
) -> tuple[Exact2 | ExactE, list[Column]]:
    if kernel == "exp2":
        rationals = Exact2()
        return rationals, transformer.evaluate(rationals, [rationals.numbers(c) for c in columns])
    first = transformer.layers[0]
    queries = [row for head in first.heads for row in head.W_Q.rows]
    keys = [row for head in first.heads for row in head.W_K.rows]
    denominator = common_denominator(columns, queries, keys)
    while True:
        functions = ExactE(denominator)
        try:
            return functions, transformer.evaluate(functions, [functions.numbers(c) for c in columns])
        except ScoreDenominator as error:
            denominator = lcm(denominator, error.denominator)
