"""Executes a recorded program in an arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from verify.arithmetic.interface import Arithmetic, Column
from verify.oracle.oracle import Oracle
from verify.oracle.program import Arrange, Call, Constants, Input, Instruction, Outside, Program, sources

Matrix: TypeAlias = list[Column]
Inputs: TypeAlias = Mapping[str, Sequence[Column]]


def run(
    program: Program,
    arithmetic: Arithmetic,
    inputs: Inputs,
    *,
    watch: Callable[[Call, Matrix, Matrix], None] | None = None,
) -> Matrix:
    """The columns of the program's output, for input matrices given by name as columns.

    `watch`, if given, sees every oracle call with what went in and what came out. Calls of one oracle in one round do not
    depend on each other: an arithmetic that profits runs them together. Matrices are dropped as soon as no later
    instruction reads them.
    """
    order = _order(program, arithmetic)
    last_use = {program.output: len(order)}
    for at, slots in enumerate(order):
        for slot in slots:
            for source in sources(program.instructions[slot]):
                last_use[source] = at
    memory: dict[int, Matrix] = {}
    for at, slots in enumerate(order):
        needed = [slot for slot in slots if slot in last_use]
        calls = [call for slot in needed if isinstance(call := program.instructions[slot], Call)]
        if calls:
            questions = [memory[call.source] for call in calls]
            answers = _ask(arithmetic, calls[0].oracle, questions)
            memory.update(zip(needed, answers, strict=True))
            if watch is not None:
                for call, question, answer in zip(calls, questions, answers, strict=True):
                    watch(call, question, answer)
        elif needed:
            memory[needed[0]] = _execute(arithmetic, program.instructions[needed[0]], inputs, memory)
        for slot in slots:
            for source in sources(program.instructions[slot]):
                if last_use[source] == at:
                    memory.pop(source, None)
    return memory[program.output]


def _order(program: Program, arithmetic: Arithmetic) -> list[list[int]]:
    """The slots in an order in which they can be filled, calls that run together in one list."""
    if not arithmetic.batch_rows:
        return [[slot] for slot in range(len(program.instructions))]
    by_round: dict[int, tuple[dict[int, list[list[int]]], list[list[int]]]] = {}
    for slot, instruction in enumerate(program.instructions):
        batches, others = by_round.setdefault(program.rounds[slot], ({}, []))
        if isinstance(instruction, Call):
            of_oracle = batches.setdefault(id(instruction.oracle), [[]])
            if of_oracle[-1] and (len(of_oracle[-1]) + 1) * instruction.oracle.rows > arithmetic.batch_rows:
                of_oracle.append([])
            of_oracle[-1].append(slot)
        else:
            others.append([slot])
    order: list[list[int]] = []
    for _, (batches, others) in sorted(by_round.items()):
        order += [batch for of_oracle in batches.values() for batch in of_oracle]
        order += others
    return order


def _execute(arithmetic: Arithmetic, instruction: Instruction, inputs: Inputs, memory: dict[int, Matrix]) -> Matrix:
    """What an instruction other than a call puts into memory."""
    match instruction:
        case Input(name, rows, kinds):
            given = list(inputs[name])
            if len(given) != len(kinds) or any(len(column) != rows for column in given):
                raise ValueError(f"input {name} must be {rows} x {len(kinds)}")
            return given
        case Constants(rows=table):
            return [arithmetic.numbers(list(column)) for column in zip(*table, strict=True)]
        case Arrange():
            return _arrange(arithmetic, instruction, [memory[s] for s in instruction.sources])
        case Outside(source, token_map):
            return token_map.apply(arithmetic, memory[source])
        case _:
            raise ValueError(f"unknown instruction {type(instruction).__name__}")


def _ask(arithmetic: Arithmetic, oracle: Oracle, questions: list[Matrix]) -> list[Matrix]:
    """The oracle's answers, in one run over all the questions where there are several."""
    if len(questions) == 1:
        return [oracle.run(arithmetic, questions[0])]
    stacked = [arithmetic.concatenate(column) for column in zip(*questions, strict=True)]
    answers = oracle.run(arithmetic, stacked, len(questions))
    height = oracle.rows
    return [[column[at : at + height] for column in answers] for at in range(0, len(questions) * height, height)]


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
