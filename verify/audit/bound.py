"""A forward bound on the error of a whole program, by rows: see `verify.audit.forward` for its proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from flint import arb

from verify.arithmetic.ball import working_precision
from verify.arithmetic.rounded import Format
from verify.audit.error import norm
from verify.audit.forward import Forward
from verify.errors import PrecisionNeeded
from verify.oracle.program import Program
from verify.oracle.run import run

START, STOP = 128, 8192
"""Bits of the enclosures, doubled while the bound is infinite."""


@dataclass(frozen=True)
class ForwardBound:
    """Bounds on the error of every rounded run of a program, relative and absolute, over all rows in the 2-norm.

    They bound the distance from the program's own output in exact arithmetic: from the truth, where the construction is exact.
    """

    relative: arb
    absolute: arb


def forward_bound(
    program: Program,
    kernel: Literal["exp", "exp2"],
    columns: Sequence[Sequence[Fraction]],
    format: Format,
    accumulate: Format | None = None,
    shifted: bool = False,
) -> ForwardBound:
    """The bound for a run of `program` in `Rounded(kernel, format, ...)`; infinite where none is found up to `STOP` bits."""
    bits, infinite = START, ForwardBound(arb("inf"), arb("inf"))
    found = infinite
    while bits <= STOP:
        with working_precision(bits):
            arithmetic = Forward(kernel, bits, format, accumulate=accumulate, shifted=shifted)
            try:
                out = run(program, arithmetic, {"X": [arithmetic.numbers(column) for column in columns]})
                found = _by_rows(out)
            except PrecisionNeeded:
                found = infinite
            if found.relative.is_finite():
                return found
        bits *= 4
    return found


def _by_rows(out: list[Any]) -> ForwardBound:
    relative, absolute = arb(0), arb(0)
    for i in range(len(out[0])):
        error = norm([column.error[i].upper() for column in out])
        if not error.is_finite():
            return ForwardBound(arb("inf"), arb("inf"))
        size = norm([column.exact[i].abs_lower() for column in out])
        absolute = absolute.max(error)
        if not error.is_zero():
            relative = relative.max(error / size if size > 0 else arb("inf"))
    return ForwardBound(relative.upper(), absolute.upper())
