"""One construction on a user's own instance, beside the direct evaluation: what `verify simulate` reports."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any

from flint import arb

from verify.arithmetic.ball import Ball, deciding, working_precision
from verify.arithmetic.decimals import decimal_ball, upper_decimal
from verify.arithmetic.exact import SCORE_LIMIT, Exact2, ExactE, ScoreDenominator, common_denominator
from verify.arithmetic.interface import Arithmetic, Entry, Kind
from verify.claims.compare import Comparison, contrast
from verify.claims.construction import Construction
from verify.errors import OutOfRange, PrecisionNeeded, RequestError, RuleBroken, Undecided, VerifyError
from verify.oracle.problem import Problem, power_of_two_above, value_bound
from verify.oracle.program import Program
from verify.oracle.run import run
from verify.transformer.instance import Instance

ARITHMETICS = ("exact", "ball")
"""The arithmetics in which an instance can run. (Symbolic arithmetic has no numbers: it serves `verify check`.)"""

DIGITS = 60
"""Significant digits of printed balls."""

CONFIRMATION_LIMIT = 1_000_000
"""Weights times value columns up to which a ball run also asks exact arithmetic whether the outputs are equal."""


@dataclass(frozen=True)
class Request:
    """What to simulate, and how."""

    instance: Instance
    oracle_length: int
    oracle_layers: int = 1
    oracle_heads: int = 1
    arithmetic: str = "exact"
    minimise: str = "calls"

    def problem(self) -> Problem:
        """The instance as a problem, for the class of inputs whose entries are below the same power of two."""
        first = self.instance.transformer.layers[0]
        entries = power_of_two_above([x for column in self.instance.columns for x in column])
        return Problem(
            self.instance.N,
            self.oracle_length,
            self.instance.transformer,
            (Kind.NUMBER,) * self.instance.d,
            max(value_bound(entries, head.W_V) for head in first.heads),
            entries,
            self.oracle_layers,
            self.oracle_heads,
        )


def simulate(request: Request, construction: Construction) -> dict[str, Any]:
    """The `simulation-result/1` document. Raises RequestError for requests that cannot be met (with the smallest M that would do)."""
    if request.arithmetic not in ARITHMETICS:
        raise RequestError(
            f"arithmetic {request.arithmetic[:40]!r} cannot run an instance",
            where="--arithmetic",
            right=f"one of {', '.join(ARITHMETICS)} (symbolic identities: verify check)",
        )
    problem = request.problem()
    try:
        program = construction.build(problem, request.minimise)
    except RuleBroken as error:
        broken = {"rule": error.rule, "limit": error.limit, "needed": error.needed, "claim": construction.claim}
        return _result(request, construction, None, [broken | {"why": error.detail}])
    broken_rules = [
        {"rule": b.rule, "limit": b.limit, "needed": b.needed, "claim": construction.claim, "why": b.detail}
        for b in program.broken_rules
    ]
    result = _result(request, construction, program, broken_rules)
    calls, rounds = construction.predict(problem, request.minimise)
    result["predicted"] = {"calls": calls, "rounds": rounds}
    try:
        result |= _exact(request, program) if request.arithmetic == "exact" else _ball(request, program)
    except OutOfRange as error:
        result["why"] = f"the construction breaks down: {error}"
    return result


def held(result: dict[str, Any]) -> bool:
    """Whether the simulation did what its claim says: equal, and no rule of the model broken."""
    return result["equal"] is True and not result["broken_rules"]


def _result(
    request: Request, construction: Construction, program: Program | None, broken: list[dict[str, Any]]
) -> dict[str, Any]:
    oracle: dict[str, Any] = {
        "length": request.oracle_length,
        "layers": request.oracle_layers,
        "heads": request.oracle_heads,
    }
    if program is not None:
        cost = program.cost
        oracle |= {
            "longest_input": cost.longest_input,
            "embedding": cost.embedding,
            "calls": cost.calls,
            "rounds": cost.rounds,
            "parameters": cost.parameters,
            "mlp_operations": list(cost.operations),
        }
    return {
        "format": "simulation-result/1",
        "construction": construction.name,
        "model": "residual" if program is not None and program.residual else "paper",
        "arithmetic": request.arithmetic,
        "output": None,
        "direct": None,
        "equal": False,
        "relative_error": None,
        "absolute_error": None,
        "oracle": oracle,
        "predicted": None,
        "broken_rules": broken,
    }


# --- exact ---------------------------------------------------------------------------------------------------------------


def _exact(request: Request, program: Program) -> dict[str, Any]:
    arithmetic, comparison = compare_exactly(request, program)

    def written(entry: Entry) -> Any:
        if isinstance(arithmetic, Exact2):
            return str(entry)
        return decimal_ball(lambda bits: arithmetic.enclose(entry, bits), DIGITS)

    output, direct = (
        _rows([[written(x) for x in column] for column in side]) for side in (comparison.output, comparison.direct)
    )
    equal = bool(comparison.equal)
    errors = {"relative_error": "0", "absolute_error": "0"}
    if not equal:
        errors = _errors(comparison, arithmetic)
    return {"output": output, "direct": direct, "equal": equal, **errors}


def compare_exactly(request: Request, program: Program) -> tuple[Exact2 | ExactE, Comparison]:
    """Direct evaluation and program in exact arithmetic, with a denominator of the scores that serves both."""
    instance = request.instance
    if instance.kernel == "exp2":
        # Carried sums are scores too: of up to N keys, and larger than the user's own by the bits of their values.
        return Exact2(), _compare(Exact2(), request, program, Exact2(2 * SCORE_LIMIT))
    first = instance.transformer.layers[0]
    queries = [row for head in first.heads for row in head.W_Q.rows]
    keys = [row for head in first.heads for row in head.W_K.rows]
    denominator = common_denominator(instance.columns, queries, keys)
    while True:
        exact = ExactE(denominator)
        try:
            return exact, _compare(exact, request, program)
        except ScoreDenominator as error:
            denominator = lcm(denominator, error.denominator)


def _compare(
    arithmetic: Arithmetic, request: Request, program: Program, inside: Arithmetic | None = None
) -> Comparison:
    """The direct evaluation first, so that errors name places of the user's own instance; then the program, in `inside`."""
    X = [arithmetic.numbers(column) for column in request.instance.columns]
    direct = request.instance.transformer.evaluate(arithmetic, X)
    try:
        output = run(program, inside or arithmetic, {"X": X})
    except RequestError as error:
        raise RequestError(error.what, where="inside an oracle call", right=error.right) from None
    return contrast(output, direct, arithmetic.equal)


# --- ball ----------------------------------------------------------------------------------------------------------------


def _ball(request: Request, program: Program) -> dict[str, Any]:
    instance = request.instance

    def question(bits: int) -> dict[str, Any]:
        with working_precision(bits):
            comparison = _compare(Ball(instance.kernel, bits), request, program)
            sides = [[_narrow(x) for x in column] for side in (comparison.output, comparison.direct) for column in side]
            half = len(comparison.output)
            return {
                "output": _rows(sides[:half]),
                "direct": _rows(sides[half:]),
                "equal": False if comparison.equal is False else "undecided",
                **_errors(comparison, Ball(instance.kernel, bits)),
            }

    try:
        result = deciding(question, instance.N + 64 + 4 * DIGITS)
    except Undecided as error:
        return {"equal": "undecided", "why": str(error)}
    weights = program.cost.calls * program.cost.longest_input**2 * (instance.d + 1)
    if result["equal"] == "undecided" and weights <= CONFIRMATION_LIMIT:
        try:
            if compare_exactly(request, program)[1].equal:
                result["equal"] = True
        except VerifyError:
            pass  # exact arithmetic cannot take the instance: equality stays undecided
    return result


def _narrow(x: arb) -> dict[str, str]:
    """A printed ball of half the digits of exact results, or a request for more precision."""
    if not x.is_finite():
        raise PrecisionNeeded("an entry of the output is unbounded")
    width = arb(10) ** (-(DIGITS // 2))
    if not arb(x.rad()) <= width * (1 + abs(x)):
        raise PrecisionNeeded("an entry of the output is known to too few digits")
    return decimal_ball(lambda bits: x, DIGITS, best_effort=True)


# -------------------------------------------------------------------------------------------------------------------------


def _errors(comparison: Comparison, arithmetic: Arithmetic) -> dict[str, str]:
    """Upper bounds, over all rows, of the 2-norm error and of the error relative to the row's norm, as the paper measures them."""
    if len(comparison.output) != len(comparison.direct):
        return {"relative_error": "inf", "absolute_error": "inf"}
    bits = 256
    with working_precision(bits):
        relative, absolute = arb(0), arb(0)
        for i in range(len(comparison.direct[0])):
            pairs = [
                (arithmetic.enclose(a[i], bits), arithmetic.enclose(b[i], bits))
                for a, b in zip(comparison.output, comparison.direct, strict=True)
            ]
            error = _norm([(a - b).abs_upper() for a, b in pairs])
            size = _norm([b.abs_lower() for _, b in pairs])
            exact = all(arithmetic.equal(a[i], b[i]) for a, b in zip(comparison.output, comparison.direct, strict=True))
            if exact:
                continue
            absolute = absolute.max(error)
            relative = relative.max(error / size if size > 0 else arb("inf"))
        return {"relative_error": upper_decimal(relative), "absolute_error": upper_decimal(absolute)}


def _norm(sizes: list[arb]) -> arb:
    """The 2-norm of numbers that are not negative. (The square of a ball around zero reaches below zero and has no root.)"""
    return sum((x * x for x in sizes), arb(0)).sqrt()


def _rows(columns: list[list[Any]]) -> list[list[Any]]:
    return [list(row) for row in zip(*columns, strict=True)]
