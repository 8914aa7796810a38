"""Comparing a construction with the direct evaluation, and the checks that every construction shares.

A proofs module says which problems; this module says in which arithmetics, so that `proofs/` names none:

* `universal` runs a construction on tokens in general position, where equality holds for every input of that size;
* `on_instances` runs it on given instances, exactly with both kernels, and in ball arithmetic against the target 2^-N.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from flint import arb

from verify.arithmetic.ball import Ball, deciding, dyadic, working_precision
from verify.arithmetic.exact import Exact2, ExactE, common_denominator
from verify.arithmetic.interface import Arithmetic, Column, Entry
from verify.arithmetic.symbolic import Symbolic, universal_attention
from verify.claims.evidence import Statement, evaluation, fractions, kept
from verify.claims.evidence import on_numbers as sampled
from verify.claims.verdict import Outcome, Scope, Status
from verify.errors import PrecisionNeeded, RuleBroken, Undecided, UnsupportedOperation
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.oracle.program import Program
from verify.oracle.run import run

Build = Callable[[Problem], Program]


@dataclass(frozen=True)
class Comparison:
    """Output of a program beside the direct evaluation, by columns; `equal` is None where it could not be decided."""

    output: list[Column]
    direct: list[Column]
    equal: bool | None
    first: tuple[int, int] | None
    """Row and column of the first entry that differs (or is open)."""


def compare(program: Program, problem: Problem, arithmetic: Arithmetic, X: Sequence[Column]) -> Comparison:
    """Runs the direct evaluation, then the program, on the same input in the same arithmetic."""
    direct = problem.transformer.evaluate(arithmetic, X)
    output = run(program, arithmetic, {"X": X})
    return contrast(output, direct, arithmetic.equal)


def contrast(output: list[Column], direct: list[Column], equal: Callable[[Entry, Entry], bool | None]) -> Comparison:
    """Two outputs beside each other; a difference of shape is a difference."""
    if len(output) != len(direct) or any(len(a) != len(b) for a, b in zip(output, direct, strict=True)):
        return Comparison(output, direct, False, None)
    undecided: tuple[int, int] | None = None
    for i in range(len(direct[0])):
        for c, (a, b) in enumerate(zip(output, direct, strict=True)):
            same = equal(a[i], b[i])
            if same is False:
                return Comparison(output, direct, False, (i, c))
            if same is None and undecided is None:
                undecided = (i, c)
    return Comparison(output, direct, True if undecided is None else None, undecided)


@dataclass(frozen=True)
class Instance:
    """A concrete input for a problem: X by columns, and the kernels under which it makes sense."""

    problem: Problem
    X: tuple[tuple[Fraction, ...], ...]
    kernels: tuple[Literal["exp", "exp2"], ...] = ("exp2", "exp")

    def describe(self) -> dict[str, Any]:
        """The instance as JSON data."""
        layers = [
            [
                {
                    name: [[str(x) for x in row] for row in W.rows]
                    for name, W in (("WQ", head.W_Q), ("WK", head.W_K), ("WV", head.W_V))
                }
                for head in layer.heads
            ]
            for layer in self.problem.transformer.layers
        ]
        X = [[str(x) for x in row] for row in zip(*self.X, strict=True)]
        return {"N": self.problem.N, "M": self.problem.M, "X": X, "heads": layers}


def exact_arithmetic(kernel: Literal["exp", "exp2"], instance: Instance) -> Arithmetic:
    """The exact arithmetic in which the instance's first layer can run."""
    if kernel == "exp2":
        return Exact2()
    heads = instance.problem.layer.heads
    queries = [row for head in heads for row in head.W_Q.rows]
    keys = [row for head in heads for row in head.W_K.rows]
    return ExactE(common_denominator(instance.X, queries, keys))


def universal(build: Build, problems: Iterable[Problem], *, sizes: str) -> Outcome:
    """Whether the construction equals the direct evaluation for all weights and values, at each of these problems' sizes."""
    done = 0
    statements: list[Statement | None] = []
    for problem in problems:
        heads = problem.layer.heads
        width = heads[0].width
        arithmetic, X = universal_attention(problem.N, width, len(heads))
        try:
            program = build(problem)
            comparison = compare(program, problem, arithmetic, X)
        except RuleBroken as error:
            return Outcome(
                Status.REFUTED,
                Scope.sizes(f"N = {problem.N}, M = {problem.M}"),
                "the program built for tokens in general position",
                f"N = {problem.N}, M = {problem.M}",
                str(error),
                {"N": problem.N, "M": problem.M, "rule": error.rule, "limit": error.limit, "needed": error.needed},
            )
        if not comparison.equal:
            row, column = comparison.first or (0, 0)
            return Outcome(
                Status.REFUTED,
                Scope.sizes(f"N = {problem.N}, M = {problem.M}"),
                "the program run on tokens in general position",
                f"N = {problem.N}, M = {problem.M}, {width} value columns; weights and values indeterminate",
                f"row {row}, column {column} differs from the attention output as a rational function",
                {"N": problem.N, "M": problem.M, "width": width, "row": row, "column": column},
                kept([next((s for s in (sampled(program, problem, "differs", seed) for seed in range(8)) if s), None)]),
            )
        done += 1
        statements.append(sampled(program, problem))
    return Outcome(
        Status.PROVED,
        Scope.sizes(sizes),
        "the program run on tokens in general position",
        f"{sizes}; every weight a_ij and every value entry an indeterminate",
        f"equal to the attention output as rational functions at all {done} sizes",
        {"sizes": sizes, "checked": done},
        kept(statements),
    )


def on_instances(build: Build, instances: Sequence[Instance]) -> Outcome:
    """Whether the construction equals the direct evaluation exactly, on every instance with every kernel of it."""
    runs = 0
    statements: list[Statement | None] = []
    for instance in instances:
        program = build(instance.problem)
        for kernel in instance.kernels:
            arithmetic = exact_arithmetic(kernel, instance)
            X = [arithmetic.numbers(column) for column in instance.X]
            comparison = compare(program, instance.problem, arithmetic, X)
            if not comparison.equal:
                return _counterexample(instance, kernel, comparison)
            runs += 1
            if kernel == "exp2":
                statements.append(_beside(instance, comparison, "equal"))
    return Outcome(
        Status.PROVED,
        Scope.instance(len(instances)),
        "the program run beside the direct evaluation",
        f"{len(instances)} instances, {runs} runs with kernels exp2 (rationals) and exp (Q(e^(1/D)))",
        "every entry equal, decided exactly",
        {"instances": len(instances), "runs": runs},
        kept(statements),
    )


def same_on_indeterminates(program: Program, n: int, width: int) -> bool:
    """Whether a program whose only input X has `width` columns of n values returns it unchanged, for all values."""
    names = [[f"x_{i}_{c}" for i in range(n)] for c in range(width)]
    arithmetic = Symbolic({}, [name for column in names for name in column])
    X = [[arithmetic.value(name) for name in column] for column in names]
    return contrast(run(program, arithmetic, {"X": X}), X, arithmetic.equal).equal is True


def exact_rows(oracle: Oracle, X: Sequence[Sequence[Fraction]]) -> list[list[str]]:
    """The rows of an oracle's answer on numbers given by columns, in exact exp2 arithmetic, written as rationals."""
    arithmetic = Exact2()
    columns = oracle.run(arithmetic, [arithmetic.numbers(column) for column in X])
    return [[str(x) for x in row] for row in zip(*columns, strict=True)]


def _beside(instance: Instance, comparison: Comparison, compared: str) -> Statement | None:
    """The output of an exact run beside the direct evaluation, for the independent checker."""
    try:
        output = fractions(comparison.output)
    except UnsupportedOperation:
        return None
    verb = {"equal": "equals", "differs": "differs from"}[compared]
    size = f"N = {instance.problem.N}, M = {instance.problem.M}"
    means = f"the construction's output {verb} the attention of the input at {size}"
    return evaluation(means, instance.problem, "exp2", instance.X, output, compared)


def _counterexample(instance: Instance, kernel: str, comparison: Comparison) -> Outcome:
    row, column = comparison.first or (0, 0)
    values = {}
    if comparison.first is not None:
        arithmetic = exact_arithmetic("exp2" if kernel == "exp2" else "exp", instance)
        for name, columns in (("output", comparison.output), ("direct", comparison.direct)):
            values[name] = arithmetic.enclose(columns[column][row], 128).str(20)
    return Outcome(
        Status.REFUTED,
        Scope.instance(),
        "the program run beside the direct evaluation",
        f"N = {instance.problem.N}, M = {instance.problem.M}, d = {instance.problem.d}, kernel {kernel}",
        f"row {row}, column {column}: {values.get('output', 'wrong shape')} instead of {values.get('direct', '')}",
        {"kernel": kernel, "row": row, "column": column, **values, "instance": instance.describe()},
        kept([_beside(instance, comparison, "differs")] if kernel == "exp2" else []),
    )


def within_target(build: Build, instances: Sequence[Instance], kernel: Literal["exp", "exp2"] = "exp") -> Outcome:
    """Whether enclosures prove a relative error of at most 2^-N in every row, on every instance."""
    worst = 0
    statements: list[Statement | None] = []
    for instance in instances:
        N, program = instance.problem.N, build(instance.problem)

        def question(bits: int, instance: Instance = instance, program: Program = program, N: int = N) -> bool:
            with working_precision(bits):
                arithmetic = Ball(kernel, bits)
                X = [arithmetic.numbers(column) for column in instance.X]
                comparison = compare(program, instance.problem, arithmetic, X)
                if comparison.equal is False:
                    return False
                target = arb(2) ** (-2 * N)
                for row in range(N):
                    pairs = [(a[row], b[row]) for a, b in zip(comparison.output, comparison.direct, strict=True)]
                    error = _square_norm([a - b for a, b in pairs])
                    size = _square_norm([b for _, b in pairs])
                    if not (error <= target * size or (error.is_zero() and size.is_zero())):
                        raise PrecisionNeeded("the error is not yet below the target")
                middles = [[middle(x, bits) for x in column] for column in comparison.output]
                means = (
                    f"the construction's output is within 2^-{N} of the attention of the input, relative, in every row"
                )
                statements.append(evaluation(means, instance.problem, kernel, instance.X, middles, {"within": N}))
                return True

        try:
            met = deciding(question, 2 * N + 64)
        except Undecided as error:
            return Outcome(
                Status.UNDECIDED,
                Scope.instance(),
                "balls around both outputs",
                f"N = {N}, M = {instance.problem.M}, kernel {kernel}",
                f"{error} (a row whose true value is zero cannot be met by balls)",
                {"kernel": kernel, "instance": instance.describe()},
            )
        if not met:
            return Outcome(
                Status.REFUTED,
                Scope.instance(),
                "balls around both outputs",
                f"N = {N}, M = {instance.problem.M}, kernel {kernel}",
                "the balls around output and direct evaluation are disjoint",
                {"kernel": kernel, "instance": instance.describe()},
            )
        worst = max(worst, N)
    return Outcome(
        Status.PROVED,
        Scope.instance(len(instances)),
        "balls around both outputs",
        f"{len(instances)} instances, kernel {kernel}, N up to {worst}",
        "the relative error is at most 2^-N in every row",
        {"instances": len(instances), "largest N": worst},
        kept(statements, 2),
    )


def deviation(
    output: Callable[[Arithmetic], list[Column]],
    reference: Callable[[Arithmetic], list[Column]],
    kernel: Literal["exp", "exp2"],
    bits: int,
    negligible: Fraction,
) -> tuple[Fraction, Fraction]:
    """Bounds (lower, upper) on the largest absolute difference of two outputs over all entries, from enclosures.

    They are within 1 % of each other, or the upper one is at most `negligible`. Starts at a working precision of `bits`. Raises
    Undecided where the limit of `deciding` is reached.
    """

    def question(precision: int) -> tuple[Fraction, Fraction]:
        with working_precision(precision):
            arithmetic = Ball(kernel, precision)
            pairs = zip(output(arithmetic), reference(arithmetic), strict=True)
            errors = [abs(x - y) for a, b in pairs for x, y in zip(a, b, strict=True)]
            upper = max((dyadic(error.upper()) for error in errors), default=Fraction(0))
            lower = max((dyadic(error.lower()) for error in errors), default=Fraction(0))
            if upper > negligible and 100 * upper > 101 * max(lower, Fraction(0)):
                raise PrecisionNeeded("the error is not yet known to 1 %")
            return max(lower, Fraction(0)), upper

    return deciding(question, bits)


def middle(x: arb, bits: int) -> Fraction:
    """A rational near the middle of a ball: within 2^-bits of it."""
    scaled = (x * arb(2) ** bits).mid().floor().unique_fmpz()
    assert scaled is not None
    return Fraction(int(scaled), 1 << bits)


def _square_norm(entries: Sequence[arb]) -> arb:
    """The square of the 2-norm. (Not by `** 2`, which is not a number for a ball around zero.)"""
    return sum((x * x for x in entries), arb(0))
