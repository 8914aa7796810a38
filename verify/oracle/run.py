"""Executes a recorded program in an arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from verify.arithmetic.interface import Arithmetic, Column
from verify.oracle.program import Arrange, Call, Constants, Input, Outside, Program, sources

Matrix = list[Column]


def run(
    program: Program,
    arithmetic: Arithmetic,
    inputs: Mapping[str, Sequence[Column]],
    *,
    watch: Callable[[Call, Matrix, Matrix], None] | None = None,
) -> Matrix:
    """The columns of the program's output, for input matrices given by name as columns.

    `watch`, if given, sees every oracle call with what went in and what came out. Matrices are dropped as soon as no
    later instruction reads them.
    """
    last_use = {program.output: len(program.instructions)}
    for at, instruction in enumerate(program.instructions):
        for source in sources(instruction):
            last_use[source] = max(at, last_use.get(source, 0))
    memory: dict[int, Matrix] = {}
    for at, instruction in enumerate(program.instructions):
        if at not in last_use:
            continue
        match instruction:
            case Input(name, rows, kinds):
                given = list(inputs[name])
                if len(given) != len(kinds) or any(len(column) != rows for column in given):
                    raise ValueError(f"input {name} must be {rows} x {len(kinds)}")
                memory[at] = given
            case Constants(rows=table):
                memory[at] = [arithmetic.numbers(list(column)) for column in zip(*table, strict=True)]
            case Arrange():
                memory[at] = _arrange(arithmetic, instruction, [memory[s] for s in instruction.sources])
            case Call(source, oracle):
                memory[at] = oracle.run(arithmetic, memory[source])
                if watch is not None:
                    watch(instruction, memory[source], memory[at])
            case Outside(source, token_map):
                memory[at] = token_map.apply(arithmetic, memory[source])
        for source in sources(instruction):
            if last_use[source] == at:
                memory.pop(source, None)
    return memory[program.output]


def _arrange(arithmetic: Arithmetic, instruction: Arrange, parts: list[Matrix]) -> Matrix:
    numbers = instruction.numbers
    match instruction.how:
        case "rows":
            return [column[numbers[0] : numbers[1]] for column in parts[0]]
        case "columns":
            return parts[0][numbers[0] : numbers[1]]
        case "stack":
            return [arithmetic.concatenate(column) for column in zip(*parts, strict=True)]
        case "join":
            return [column for part in parts for column in part]
        case "gather":
            return [arithmetic.concatenate([column[i : i + 1] for i in numbers]) for column in parts[0]]
        case _:
            raise ValueError(f"unknown arrangement {instruction.how}")
