"""Statements that evidence files carry for `verify confirm`: what can be recomputed without this engine.

Each function returns one statement in the form that `verify/confirm/statement.py` documents. The engine writes them and never
reads them; the independent checker reads them and knows nothing of the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

from verify.arithmetic.exact import Exact2
from verify.arithmetic.interface import Column, Kind
from verify.errors import UnsupportedOperation, VerifyError
from verify.oracle.problem import Problem
from verify.oracle.program import BrokenRule, Program
from verify.oracle.run import run
from verify.transformer.token_map import TokenMap

Statement = dict[str, Any]
Matrix = Sequence[Sequence[Fraction | int]]
Expression = Any
"""A number, a name, or a list of an operation and expressions."""

MOST_ENTRIES = 96
"""Entries of an input that is written into evidence; larger ones stay in the engine."""

MOST_DIGITS = 60
"""Digits of an entry of an output that is written into evidence."""


def written(x: Fraction | int) -> str | int:
    """A number as evidence writes it: an integer, or "p/q"."""
    if x.denominator == 1 and abs(x.numerator) < 1 << 63:
        return int(x)
    return str(x)


def relation(means: str, comparison: str, left: Expression, right: Expression) -> Statement:
    """One comparison of two expressions."""
    return {"kind": "relation", "means": means, "relation": [comparison, _plain(left), _plain(right)]}


def table(
    means: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Fraction | int]],
    comparison: str,
    left: Expression,
    right: Expression,
) -> Statement:
    """One comparison in the columns' names, which holds for every row."""
    return {
        "kind": "table",
        "means": means,
        "columns": list(columns),
        "rows": [[written(x) for x in row] for row in rows],
        "relation": [comparison, _plain(left), _plain(right)],
    }


def attention(
    means: str,
    kernel: str,
    mask: Any,
    X: Sequence[Sequence[Fraction | int]],
    heads: Sequence[tuple[Matrix, Matrix, Matrix]],
    output: Sequence[Sequence[Fraction | int | str]],
    compared: str | dict[str, int],
) -> Statement:
    """An output beside the attention layer of these heads `(W_Q, W_K, W_V)` on X; all matrices by rows."""
    names = ("WQ", "WK", "WV")
    layer = [{name: _by_rows(W) for name, W in zip(names, head, strict=True)} for head in heads]
    instance = {"kernel": kernel, "mask": mask, "X": _by_rows(X), "layers": [layer]}
    return {
        "kind": "evaluation",
        "means": means,
        "instance": instance,
        "output": _by_rows(output),
        "relation": compared,
    }


def broken(rules: Sequence[BrokenRule]) -> tuple[Statement, ...]:
    """What broken rules come to: more was needed than the limit allows."""
    return tuple(relation(f"{b.rule}: what is needed exceeds the limit", ">", b.needed, b.limit) for b in rules)


def evaluation(
    means: str,
    problem: Problem,
    kernel: str,
    X: Sequence[Sequence[Fraction]],
    output: Sequence[Sequence[Fraction]],
    compared: str | dict[str, int],
) -> Statement | None:
    """An output (by columns, as X) beside the direct evaluation of the problem's transformer on X.

    None where the evidence cannot carry it: layers with MLPs or residuals, large inputs, long numbers.
    """
    transformer = problem.transformer
    long = any(len(str(x)) > MOST_DIGITS for column in output for x in column) if compared == "equal" else False
    if not _bare(problem) or sum(map(len, X)) > MOST_ENTRIES or long:
        return None
    mask = transformer.mask
    named: Any = "none"
    if mask.causal:
        named = "causal"
        if mask.window is not None:
            named = {"window": mask.window, "sinks": mask.sinks} if mask.sinks else {"window": mask.window}
    heads = [(head.W_Q.rows, head.W_K.rows, head.W_V.rows) for head in transformer.layers[0].heads]
    rows, results = list(zip(*X, strict=True)), list(zip(*output, strict=True))
    return attention(means, kernel, named, rows, heads, results, compared)


def on_numbers(program: Program, problem: Problem, compared: str = "equal", seed: int = 0) -> Statement | None:
    """A program for tokens in general position, run on one input of small numbers with kernel exp2.

    None where it cannot be run or written so. It is a sample of what the identity says: the checker compares the program's
    output with its own evaluation of the same input.
    """
    if not _bare(problem):
        return None
    random = Random(f"{problem.N} {problem.M} {seed}")
    X = [
        [
            Fraction(random.randint(-7, 7), 8) if kind is Kind.VALUE else Fraction(random.randint(-2, 2))
            for _ in range(problem.N)
        ]
        for kind in problem.kinds
    ]
    arithmetic = Exact2()
    try:
        output = fractions(run(program, arithmetic, {"X": [arithmetic.numbers(column) for column in X]}))
    except VerifyError:
        return None
    size = f"N = {problem.N}, M = {problem.M}"
    return evaluation(
        f"the construction's output {_says(compared)} the attention of the input at {size}",
        problem,
        "exp2",
        X,
        output,
        compared,
    )


def small_numbers(kinds: Sequence[Kind], rows: int, seed: int = 0) -> list[list[Fraction]]:
    """Columns of numbers that every construction takes: positive eighths below 1 as values, -1, 0 and 1 as scores."""
    random = Random(f"{rows} {len(kinds)} {seed}")
    return [
        [
            Fraction(random.randint(1, 7), 8) if kind is Kind.VALUE else Fraction(random.randint(-1, 1))
            for _ in range(rows)
        ]
        for kind in kinds
    ]


def fractions(columns: Sequence[Column]) -> list[list[Fraction]]:
    """Columns of rationals as plain fractions. Raises UnsupportedOperation where an entry is none."""
    try:
        return [[Fraction(int(x.p), int(x.q)) for x in column] for column in columns]
    except AttributeError:
        raise UnsupportedOperation("an entry is not a rational number") from None


def kept(statements: Sequence[Statement | None], most: int = 8) -> tuple[Statement, ...]:
    """Those that could be made, at most this many, from the first to the last."""
    made = [statement for statement in statements if statement is not None]
    if len(made) <= most:
        return tuple(made)
    return tuple(made[round(i * (len(made) - 1) / (most - 1))] for i in range(most))


def _says(compared: str) -> str:
    return {"equal": "equals", "differs": "differs from"}[compared]


def _bare(problem: Problem) -> bool:
    """Whether the transformer consists of attention only."""
    for layer in problem.transformer.layers:
        averages = [Kind.VALUE] * sum(head.width for head in layer.heads)
        if layer.residual or layer.mlp != TokenMap.identity(averages):
            return False
    return len(problem.transformer.layers) == 1


def _by_rows(rows: Sequence[Sequence[Fraction | int | str]]) -> list[list[str | int]]:
    return [[written(Fraction(x)) for x in row] for row in rows]


def _plain(expression: Expression) -> Any:
    if isinstance(expression, (list, tuple)):
        return [_plain(part) for part in expression]
    return expression if isinstance(expression, str) else written(expression)
