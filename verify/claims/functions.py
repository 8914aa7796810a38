"""Comparing what a construction computes with a plain function of its input, where no large transformer is being
simulated.

Some lemmas of the paper are about one oracle that computes a given function of the tokens (a sum, a lookup, the input
itself). A `Function` names both sides: `evaluate` runs the construction, `reference` is written with column operations
only,
never with attention, so that the two sides share nothing but the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, Literal, TypeAlias

from flint import arb, fmpq

from verify.arithmetic.ball import Ball, deciding, working_precision
from verify.arithmetic.exact import Exact2, ExactE
from verify.arithmetic.interface import Arithmetic, Column, Entry, Kind
from verify.arithmetic.symbolic import universal_tokens
from verify.arithmetic.written import Written, size
from verify.claims.compare import contrast, middle
from verify.claims.evidence import Statement, fractions, kept, relation, small_numbers
from verify.claims.verdict import Outcome, Scope, Status
from verify.errors import PrecisionNeeded, VerifyError
from verify.oracle.program import Program
from verify.oracle.run import run

Kernel: TypeAlias = Literal["exp", "exp2"]
Evaluate: TypeAlias = Callable[[Arithmetic, list[Column]], list[Column]]
Numbers: TypeAlias = Sequence[Sequence[Fraction]]
"""A matrix of rationals, by columns."""


def program_of(program: Program) -> Evaluate:
    """The evaluation that runs a program whose only input is X."""
    return lambda arithmetic, X: run(program, arithmetic, {"X": X})


@dataclass(frozen=True)
class Function:
    """A construction beside the function that it should compute.

    `name` says which size it is; X has `rows` rows and columns of the given kinds; `products` lists the pairs of score
    columns
    whose products may occur as scores; `outputs` are the kinds of the results (scores and values are compared each in
    their way).
    """

    name: str
    rows: int
    kinds: tuple[Kind, ...]
    outputs: tuple[Kind, ...]
    evaluate: Evaluate
    reference: Evaluate
    products: tuple[tuple[int, int], ...] = ()


def for_every_input(functions: Iterable[Function], *, object_: str, sizes: str) -> Outcome:
    """Whether construction and function agree for all scores and values, as rational functions, at each of these
    sizes.
    """
    done = 0
    statements: list[Statement | None] = []
    for function in functions:
        arithmetic, X = universal_tokens(function.rows, function.kinds, function.products)
        row = _first_difference(arithmetic, function, X)
        if row is not None:
            return Outcome(
                Status.REFUTED,
                Scope.sizes(function.name),
                object_,
                f"{function.name}; every score and value an indeterminate",
                f"row {row[0]}, column {row[1]} is another rational function",
                {"size": function.name, "row": row[0], "column": row[1]},
                kept(_entries(function, small_numbers(function.kinds, function.rows), "!=", [row])),
            )
        done += 1
        statements += _entries(function, small_numbers(function.kinds, function.rows), "==")
    return Outcome(
        Status.PROVED if done else Status.UNDECIDED,
        Scope.sizes(sizes),
        object_,
        f"{sizes}; every score and value an indeterminate",
        f"equal as rational functions at all {done} sizes",
        {"sizes": sizes, "checked": done},
        kept(statements),
    )


def _first_difference(arithmetic: Arithmetic, function: Function, X: list[Column]) -> tuple[int, int] | None:
    found = contrast(*_sides(arithmetic, function, X), lambda a, b: arithmetic.equal(a, b))
    return None if found.equal else found.first or (0, 0)


def _sides(arithmetic: Arithmetic, function: Function, X: list[Column]) -> tuple[list[Column], list[Column]]:
    """Both sides; scores are compared by their weights, which determine them."""
    sides = []
    for side in (function.evaluate(arithmetic, X), function.reference(arithmetic, X)):
        if len(side) == len(function.outputs):
            pairs = zip(side, function.outputs, strict=True)
            side = [arithmetic.exp(column) if kind is Kind.SCORE else column for column, kind in pairs]
        sides.append(side)
    return sides[0], sides[1]


def on_numbers(
    cases: Sequence[tuple[Function, Numbers]], *, object_: str, kernels: Sequence[Kernel] = ("exp2", "exp")
) -> Outcome:
    """Whether construction and function agree exactly on these inputs, with these kernels."""
    runs = 0
    statements: list[Statement | None] = []
    for function, numbers in cases:
        if "exp2" in kernels:
            statements += _entries(function, numbers, "==")
        for kernel in kernels:
            arithmetic = exact_for(kernel, numbers)
            place = _first_difference(arithmetic, function, [arithmetic.numbers(column) for column in numbers])
            if place is not None:
                return Outcome(
                    Status.REFUTED,
                    Scope.instance(),
                    object_,
                    f"{function.name}, kernel {kernel}",
                    f"row {place[0]}, column {place[1]} differs",
                    {
                        "size": function.name,
                        "kernel": kernel,
                        "row": place[0],
                        "column": place[1],
                        "X": written(numbers),
                    },
                )
            runs += 1
    return Outcome(
        Status.PROVED if runs else Status.UNDECIDED,
        Scope.instance(len(cases)),
        object_,
        f"{len(cases)} inputs, kernels {' and '.join(kernels)}",
        f"every entry equal in all {runs} runs, decided exactly",
        {"instances": len(cases), "runs": runs},
        kept(statements),
    )


def exact_for(kernel: Kernel, numbers: Numbers) -> Exact2 | ExactE:
    """The exact arithmetic for a kernel in which products of two of these numbers are scores."""
    if kernel == "exp2":
        return Exact2()
    denominator = lcm(1, *(x.denominator for column in numbers for x in column))
    return ExactE(denominator * denominator)


def written(numbers: Numbers) -> list[list[str]]:
    """The rows of a matrix given by columns, as strings for evidence."""
    return [[str(x) for x in row] for row in zip(*numbers, strict=True)]


def within(
    cases: Sequence[tuple[Function, Numbers]], target_bits: int, *, object_: str, kernel: Kernel = "exp"
) -> Outcome:
    """Whether enclosures prove an absolute 2-norm error of at most 2^-target_bits in every row, on every input."""
    statements: list[Statement | None] = []
    for function, numbers in cases:

        def question(bits: int, function: Function = function, numbers: Numbers = numbers) -> bool:
            with working_precision(bits):
                arithmetic = Ball(kernel, bits)
                X = [arithmetic.numbers(column) for column in numbers]
                output = function.evaluate(arithmetic, X)
                errors = _square_errors(output, function.reference(arithmetic, X))
                limit = arb(2) ** (-2 * target_bits)
                if any(error > limit for error in errors):
                    return False
                if not all(error <= limit for error in errors):
                    raise PrecisionNeeded("an error is not yet separated from the target")
                middles = [[middle(x, bits) for x in column] for column in output]
                statements.extend(_close(function, numbers, kernel, middles, target_bits))
                return True

        if not deciding(question, target_bits + 64):
            return Outcome(
                Status.REFUTED,
                Scope.instance(),
                object_,
                f"{function.name}, kernel {kernel}",
                f"a row differs by more than 2^-{target_bits}",
                {"size": function.name, "kernel": kernel, "X": written(numbers)},
            )
    return Outcome(
        Status.PROVED if cases else Status.UNDECIDED,
        Scope.instance(len(cases)),
        object_,
        f"{len(cases)} inputs, kernel {kernel}",
        f"the error of every row is at most 2^-{target_bits}, by enclosures",
        {"instances": len(cases), "bits": target_bits},
        kept(statements),
    )


def _entries(
    function: Function, numbers: Numbers, comparison: str, places: Sequence[tuple[int, int]] = ()
) -> list[Statement | None]:
    """Entries of the construction's exact output (kernel exp2) against the reference's formula; by default two of them.

    Nothing where the construction cannot be run on these numbers.
    """
    try:
        arithmetic = exact_for("exp2", numbers)
        X = [arithmetic.numbers(column) for column in numbers]
        output = fractions(_sides(arithmetic, function, X)[0])
        formulas = _formulas(function, numbers, "exp2")
    except VerifyError:
        return []
    last = (function.rows - 1, len(output) - 1)
    found: list[Statement | None] = []
    for row, column in places or dict.fromkeys([(0, 0), last]):
        if row < len(output[column]) and size(formulas[column][row]) <= MOST_OPERATIONS:
            means = f"{function.name}: row {row}, column {column} of the output {_READ[comparison]} its formula"
            found.append(relation(means, comparison, output[column][row], formulas[column][row]))
    return found


def _close(
    function: Function, numbers: Numbers, kernel: Kernel, output: Sequence[Sequence[Fraction]], target_bits: int
) -> list[Statement | None]:
    """One entry of an enclosed output: its middle is within the target of the reference's formula."""
    try:
        formula = _formulas(function, numbers, kernel, weighed=False)[-1][-1]
    except VerifyError:
        return []
    if size(formula) > MOST_OPERATIONS:
        return []
    means = f"{function.name}, kernel {kernel}: the last entry of the output is within 2^-{target_bits} of its formula"
    difference = ["abs", ["-", output[-1][-1], formula]]
    return [relation(means, "<=", difference, Fraction(1, 1 << target_bits))]


def _formulas(function: Function, numbers: Numbers, kernel: Kernel, *, weighed: bool = True) -> list[Column]:
    """The reference's columns as expressions in the numbers; scores by their weights unless told otherwise."""
    arithmetic = Written(kernel)
    columns = function.reference(arithmetic, [arithmetic.numbers(column) for column in numbers])
    if not weighed:
        return columns
    pairs = zip(columns, function.outputs, strict=True)
    return [arithmetic.exp(column) if kind is Kind.SCORE else column for column, kind in pairs]


_READ = {"==": "equals", "!=": "differs from"}

MOST_OPERATIONS = 400
"""Of a formula that is written into evidence."""


def square_errors(function: Function, numbers: Numbers) -> list[Fraction]:
    """For every row, the exact square of the 2-norm of construction minus function, kernel exp2."""
    arithmetic = Exact2()
    X = [arithmetic.numbers(column) for column in numbers]
    errors = _square_errors(function.evaluate(arithmetic, X), function.reference(arithmetic, X))
    return [Fraction(int(error.p), int(error.q)) for error in errors]


def square_error_balls(function: Function, numbers: Numbers, bits: int) -> list[arb]:
    """For every row, a ball around the square of the 2-norm of construction minus function, kernel exp.

    Call it inside `working_precision(bits)`.
    """
    arithmetic = Ball("exp", bits)
    X = [arithmetic.numbers(column) for column in numbers]
    return _square_errors(function.evaluate(arithmetic, X), function.reference(arithmetic, X))


def _square_errors(output: list[Column], reference: list[Column]) -> list[Any]:
    if len(output) != len(reference):
        raise ValueError("construction and function differ in width")
    rows: list[list[Entry]] = [
        [a - b for a, b in zip(*pair, strict=True)] for pair in zip(output, reference, strict=True)
    ]
    return [sum((x * x for x in row[1:]), row[0] * row[0]) for row in zip(*rows, strict=True)]


def exact_entries(evaluate: Evaluate, numbers: Numbers) -> list[list[Fraction]]:
    """The columns that a construction returns on numbers, in exact exp2 arithmetic."""
    arithmetic = Exact2()
    columns = evaluate(arithmetic, [arithmetic.numbers(column) for column in numbers])
    return [[_fraction(x) for x in column] for column in columns]


def _fraction(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))
