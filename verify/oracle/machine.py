"""The lawful oracle machine: a construction talks to it and leaves behind a program.

A construction never sees a number of the input. It holds `Stored` matrices of known shape, arranges them, pads them with
constants and sends them to oracles whose parameters may depend on the large transformer but, for want of access, not on
the input. The result is a `Program`: pure data, which `verify.oracle.run` executes in any arithmetic, and whose costs
are known without running it.

The rules are those of the paper's model (Section 1.1 and 2.1); breaking one raises `RuleBroken` unless the machine was
told to waive it by name, and then the program says so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from verify.arithmetic.interface import Kind
from verify.errors import RuleBroken
from verify.oracle.oracle import Oracle, fits
from verify.oracle.program import Arrange, BrokenRule, Call, Constants, Input, Instruction, Outside, Program
from verify.transformer.token_map import TokenMap

INPUT_LENGTH = "input length"
PADDING = "padding"
TOKEN_MAP_COST = "token map cost"
ROW_GATHER = "row gather"
OUTSIDE_ARITHMETIC = "outside arithmetic"
RESIDUAL = "residual connection"
DIVISIBILITY = "divisibility"
PASS_THROUGH = "pass-through"

RULES = {
    INPUT_LENGTH: "an oracle reads at most M tokens",
    PADDING: "one input carries at most 4 (d+2)^2 padded constants",
    TOKEN_MAP_COST: "an oracle's MLP takes at most 16 (d+2)^2 operations, besides what the large transformer's MLP takes",
    ROW_GATHER: "rows are re-ordered outside an oracle only where the construction declares it",
    OUTSIDE_ARITHMETIC: "no arithmetic outside the oracles",
    RESIDUAL: "an MLP sees the attention output alone (unless the machine is one with residual connections: another model)",
    PASS_THROUGH: "(of a printed construction) what a later layer needs must be among the outputs of the layer before",
    DIVISIBILITY: "(of a printed construction, not of the model) M divides N",
}
"""Every rule that a construction can break, with the constants that stand for the paper's O(d^2)."""


@dataclass(frozen=True)
class Stored:
    """A matrix in memory: its shape and kinds, the round in which it is known, but none of its numbers."""

    slot: int
    rows: int
    kinds: tuple[Kind, ...]
    round: int
    padded: tuple[int, ...] = field(repr=False)
    """For each row, its entries that are padded constants: bit c for column c."""

    @property
    def constants(self) -> int:
        """How many of its entries are padded constants."""
        return sum(row.bit_count() for row in self.padded)


@dataclass
class Machine:
    """Records a program and counts its cost.

    `length` is M, `width` the large transformer's d, `mlp_cost` the operations of its costliest MLP; `waive` names rules
    that may be broken; `declared_gather` is what a construction sets when it wants the row gather; `residual` makes it a
    machine of another model, whose oracles have residual connections.
    """

    length: int
    width: int
    mlp_cost: int = 0
    waive: Collection[str] = ()
    declared_gather: bool = False
    residual: bool = False
    instructions: list[Instruction] = field(default_factory=list)
    broken: dict[tuple[str, str], BrokenRule] = field(default_factory=dict)

    # --- memory --------------------------------------------------------------------------------------------------

    def input(self, name: str, rows: int, kinds: Sequence[Kind]) -> Stored:
        """An input matrix, to be supplied under this name when the program runs."""
        return self._store(Input(name, rows, tuple(kinds)), tuple(kinds), 0, (0,) * rows)

    def constants(self, rows: Sequence[Sequence[Fraction | int]]) -> Stored:
        """A matrix of constants, for padding. Raises ValueError where it is empty or ragged."""
        exact = tuple(tuple(Fraction(x) for x in row) for row in rows)
        width = len(exact[0]) if exact else 0
        if not width or any(len(row) != width for row in exact):
            raise ValueError("a matrix of constants has at least one entry, and rows of one width")
        return self._store(Constants(exact), (Kind.NUMBER,) * width, 0, ((1 << width) - 1,) * len(exact))

    def rows(self, m: Stored, start: int, stop: int) -> Stored:
        """Rows start, ..., stop - 1."""
        if not 0 <= start < stop <= m.rows:
            raise ValueError(f"rows {start} to {stop} of a matrix of {m.rows}")
        if (start, stop) == (0, m.rows):
            return m
        return self._store(Arrange("rows", (m.slot,), (start, stop)), m.kinds, m.round, m.padded[start:stop])

    def columns(self, m: Stored, start: int, stop: int) -> Stored:
        """Columns start, ..., stop - 1."""
        if not 0 <= start < stop <= len(m.kinds):
            raise ValueError(f"columns {start} to {stop} of a matrix of {len(m.kinds)}")
        kept = (1 << (stop - start)) - 1
        padded = tuple(row >> start & kept for row in m.padded)
        return self._store(Arrange("columns", (m.slot,), (start, stop)), m.kinds[start:stop], m.round, padded)

    def stack(self, *parts: Stored) -> Stored:
        """The matrices one below the other."""
        if len(parts) == 1:
            return parts[0]
        kinds = parts[0].kinds
        for part in parts[1:]:
            if len(part.kinds) != len(kinds):
                raise ValueError("stacked matrices must have the same width")
            kinds = tuple(b if a is Kind.NUMBER else a for a, b in zip(kinds, part.kinds, strict=True))
        for part in parts:
            if not fits(part.kinds, kinds):
                raise TypeError("scores and values cannot be stacked in one column")
        return self._store(
            Arrange("stack", tuple(part.slot for part in parts)),
            kinds,
            max(part.round for part in parts),
            tuple(row for part in parts for row in part.padded),
        )

    def join(self, *parts: Stored) -> Stored:
        """The matrices side by side (feature-wise concatenation)."""
        if len(parts) == 1:
            return parts[0]
        if len({part.rows for part in parts}) != 1:
            raise ValueError("joined matrices must have the same number of rows")
        padded, width = parts[0].padded, len(parts[0].kinds)
        for part in parts[1:]:
            padded = tuple(left | right << width for left, right in zip(padded, part.padded, strict=True))
            width += len(part.kinds)
        return self._store(
            Arrange("join", tuple(part.slot for part in parts)),
            tuple(kind for part in parts for kind in part.kinds),
            max(part.round for part in parts),
            padded,
        )

    def gather(self, m: Stored, indices: Sequence[int]) -> Stored:
        """The rows with these indices, in this order: lawful only where declared."""
        if not self.declared_gather:
            self._require(ROW_GATHER, 0, len(indices), "rows are re-ordered without a declaration")
        if any(not 0 <= i < m.rows for i in indices):
            raise ValueError("gather outside the matrix")
        padded = tuple(m.padded[i] for i in indices)
        return self._store(Arrange("gather", (m.slot,), tuple(indices)), m.kinds, m.round, padded)

    # --- oracles -------------------------------------------------------------------------------------------------

    def call(self, oracle: Oracle, m: Stored, *, role: str = "") -> Stored:
        """The oracle's answer on a matrix; `role` says in a word what the call is for."""
        if m.rows != oracle.rows:
            raise ValueError(f"an oracle for {oracle.rows} rows was given {m.rows}")
        oracle.check_kinds(m.kinds)
        self._require(INPUT_LENGTH, self.length, m.rows, "an oracle is fed more than M rows")
        self._require(PADDING, 4 * (self.width + 2) ** 2, m.constants, "too many padded constants in one input")
        cost = max(token_map.cost for token_map in oracle.token_maps)
        limit = 16 * (self.width + 2) ** 2 + self.mlp_cost
        self._require(TOKEN_MAP_COST, limit, cost, "an MLP takes too many operations")
        if not self.residual and any(layer.residual for layer in oracle.layers):
            self._require(RESIDUAL, 0, 1, "an MLP sees the layer's input")
        return self._store(Call(m.slot, oracle, m.round + 1, role), oracle.kinds, m.round + 1, (0,) * m.rows)

    def outside(self, token_map: TokenMap, m: Stored, *, detail: str) -> Stored:
        """A token-wise map applied outside any oracle: never lawful, but it can be waived."""
        if not fits(m.kinds, token_map.inputs):
            raise TypeError("the map was traced for other kinds of columns")
        self._require(OUTSIDE_ARITHMETIC, 0, max(1, token_map.cost), detail)
        return self._store(Outside(m.slot, token_map, detail), token_map.kinds, m.round, (0,) * m.rows)

    def program(self, output: Stored) -> Program:
        """What was recorded, with `output` as its result."""
        return Program(
            tuple(self.instructions), output.slot, output.rows, output.kinds, tuple(self.broken.values()), self.residual
        )

    # -------------------------------------------------------------------------------------------------------------

    def _store(
        self, instruction: Instruction, kinds: tuple[Kind, ...], known_in: int, padded: tuple[int, ...]
    ) -> Stored:
        self.instructions.append(instruction)
        return Stored(len(self.instructions) - 1, len(padded), kinds, known_in, padded)

    def _require(self, rule: str, limit: int, needed: int, detail: str) -> None:
        if needed <= limit:
            return
        if rule not in self.waive:
            raise RuleBroken(rule, limit, needed, detail)
        before = self.broken.get((rule, detail))
        if before is None or before.needed < needed:
            self.broken[rule, detail] = BrokenRule(rule, limit, needed, detail)
