"""A recorded oracle program: what a construction did, as data; inspected here, executed by `verify.oracle.run`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from verify.arithmetic.interface import Kind
from verify.oracle.oracle import Oracle
from verify.transformer.token_map import TokenMap


@dataclass(frozen=True)
class Input:
    """Load an input matrix by name."""

    name: str
    rows: int
    kinds: tuple[Kind, ...]


@dataclass(frozen=True)
class Constants:
    """Write down a matrix of constants."""

    rows: tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class Arrange:
    """Move whole rows or columns: `how` is rows, columns, stack, join or gather; `numbers` its bounds or indices."""

    how: str
    sources: tuple[int, ...]
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Call:
    """Ask an oracle, in this round of adaptivity."""

    source: int
    oracle: Oracle
    round: int
    role: str


@dataclass(frozen=True)
class Outside:
    """Apply a token-wise map outside any oracle (a broken rule)."""

    source: int
    token_map: TokenMap
    detail: str


Instruction: TypeAlias = Input | Constants | Arrange | Call | Outside


def sources(instruction: Instruction) -> tuple[int, ...]:
    """The slots that an instruction reads."""
    match instruction:
        case Arrange():
            return instruction.sources
        case Call() | Outside():
            return (instruction.source,)
        case _:
            return ()


@dataclass(frozen=True)
class BrokenRule:
    """A waived rule: what the model allows, and what the construction needed."""

    rule: str
    limit: int
    needed: int
    detail: str


@dataclass(frozen=True)
class Cost:
    """What a program costs, counted from its instructions."""

    calls: int
    rounds: int
    longest_input: int
    layers: int
    heads: int
    embedding: int
    parameters: int
    """Of the largest oracle called (its parameters are sent with each call)."""
    token_map_cost: int
    """Operations for each token of the costliest MLP."""
    operations: tuple[str, ...]
    """Operations beyond affine maps that some MLP uses, sorted."""


@dataclass(frozen=True)
class Program:
    """Instructions in order; instruction number s fills slot s."""

    instructions: tuple[Instruction, ...]
    output: int
    rows: int
    kinds: tuple[Kind, ...]
    broken_rules: tuple[BrokenRule, ...]
    residual: bool = False
    """Whether it needs oracles with residual connections, which the paper's model does not have."""

    def calls(self) -> Iterator[Call]:
        """The oracle calls, in order."""
        return (instruction for instruction in self.instructions if isinstance(instruction, Call))

    @cached_property
    def cost(self) -> Cost:
        """The cost, counted."""
        calls = list(self.calls())
        oracles = list({id(call.oracle): call.oracle for call in calls}.values())
        return Cost(
            calls=len(calls),
            rounds=max((call.round for call in calls), default=0),
            longest_input=max((oracle.rows for oracle in oracles), default=0),
            layers=max((len(oracle.layers) for oracle in oracles), default=0),
            heads=max((oracle.heads for oracle in oracles), default=0),
            embedding=max((oracle.embedding for oracle in oracles), default=0),
            parameters=max((oracle.parameters for oracle in oracles), default=0),
            token_map_cost=max((m.cost for oracle in oracles for m in oracle.token_maps), default=0),
            operations=tuple(sorted(frozenset().union(*(oracle.operations for oracle in oracles)))),
        )

    @cached_property
    def rounds(self) -> tuple[int, ...]:
        """For each slot, the round of adaptivity in which its matrix is known (0: before any call)."""
        known: list[int] = []
        for instruction in self.instructions:
            if isinstance(instruction, Call):
                known.append(instruction.round)
            else:
                known.append(max((known[source] for source in sources(instruction)), default=0))
        return tuple(known)

    @cached_property
    def calls_by_role(self) -> dict[str, int]:
        """How many calls serve each purpose."""
        return dict(Counter(call.role for call in self.calls()))
