"""Statements that can be recomputed, and what a file's statements confirm.

* `{"kind": "relation", "means": ..., "relation": [op, left, right]}` compares two expressions.
* `{"kind": "table", "means": ..., "columns": [names], "rows": [[numbers]], "relation": [op, left, right]}` compares two
  expressions in the columns' names for every row.
* `{"kind": "evaluation", "means": ..., "instance": ..., "output": [[numbers]], "relation": R}` evaluates attention by its definition
  (see `evaluation`) and compares it with an output: R is "equal", "differs" (in at least one entry), or `{"within": k}`: in every
  row the 2-norm of the difference is at most 2^-k times that of the direct evaluation.

An expression is a number, a column's name, or a list of an operation and its arguments: + - * / (two or more arguments), ^ (an
integer exponent), min, max, abs, floor, ceil, sqrt, exp, log, exp2, log2, binomial, factorial, count (how many of the following
arguments are not 0). A comparison is one of == != < <= > >=. Comparisons are decided by enclosures of growing precision; one that
stays open is not confirmed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb, factorial, floor
from typing import Any

from .document import Refused, rational
from .enclosure import Enclosure
from .evaluation import Rows, evaluate, matrix

PRECISIONS = (128, 512, 2048, 8192)
MOST_FACTORIAL = 4000
MOST_STATEMENTS = 10_000


@dataclass(frozen=True)
class Finding:
    """Whether a file is confirmed, how many statements were recomputed, and what to tell."""

    confirmed: bool
    statements: int
    lines: tuple[str, ...]


def confirm(document: Mapping[str, Any]) -> Finding:
    """Recomputes every statement of a document that `read` returned. Raises Refused for statements of another form."""
    statements = document["statements"]
    if len(statements) > MOST_STATEMENTS:
        raise Refused(f"more than {MOST_STATEMENTS} statements")
    _require_support(document["status"], statements)
    failed = []
    for number, statement in enumerate(statements):
        try:
            held = _decide(statement)
        except Refused as error:
            raise Refused(f"statement {number}: {error}") from None
        if held is not True:
            failed.append(
                f"statement {number} {'does not hold' if held is False else 'stays open'}: {_means(statement)}"
            )
    name = f"{document['claim']}, {document['construction']}, {document['check']}"
    if not statements:
        line = f"not confirmed: {name}: nothing here can be recomputed from the file alone; run: {document['command']}"
        return Finding(False, 0, (line,))
    if failed:
        return Finding(
            False, len(statements), (*failed, f"not confirmed: {name}: {len(failed)} of {len(statements)} statements")
        )
    what = "1 statement" if len(statements) == 1 else f"{len(statements)} statements"
    lines = (
        f"confirmed: {name}: {what} recomputed, standard library only",
        *dict.fromkeys(f"  {_means(statement)}" for statement in statements[:8]),
        f"  the whole verdict ({document['status']}, {document['scope']}) is re-derived by: {document['command']}",
    )
    return Finding(True, len(statements), lines)


def _require_support(status: str, statements: list[Any]) -> None:
    """A refutation that offers only agreement contradicts itself."""
    if status == "refuted" and statements:
        relations = [s.get("relation") for s in statements if isinstance(s, dict)]
        if all(r == "equal" or isinstance(r, dict) for r in relations):
            raise Refused("the verdict is refuted, but every statement says that the construction agrees")


def _means(statement: Any) -> str:
    return str(statement["means"])[:200]


def _decide(statement: Any) -> bool | None:
    if not isinstance(statement, dict) or not isinstance(statement.get("means"), str):
        raise Refused("a statement is an object with a kind and a meaning")
    shapes: dict[str, tuple[set[str], Callable[[Any], bool | None]]] = {
        "relation": ({"relation"}, lambda s: _compare(s["relation"], {})),
        "table": ({"columns", "rows", "relation"}, _table),
        "evaluation": ({"instance", "output", "relation"}, _evaluation),
    }
    kind = statement.get("kind")
    if not isinstance(kind, str) or kind not in shapes or set(statement) != shapes[kind][0] | {"kind", "means"}:
        raise Refused("its kind is unknown, or its members are not those of its kind")
    return shapes[kind][1](statement)


# --- relations -----------------------------------------------------------------------------------------------------------


def _table(statement: Any) -> bool | None:
    columns, rows = statement["columns"], statement["rows"]
    if not isinstance(columns, list) or not all(isinstance(c, str) and c.isidentifier() for c in columns):
        raise Refused("columns is not a list of names")
    if not isinstance(rows, list) or not rows or not all(isinstance(r, list) and len(r) == len(columns) for r in rows):
        raise Refused("rows is not a list of rows with an entry for each column")
    found: bool | None = True
    for row in rows:
        held = _compare(statement["relation"], {name: rational(x) for name, x in zip(columns, row, strict=True)})
        if held is False:
            return False
        found = found if held else None
    return found


def _compare(relation: Any, names: Mapping[str, Fraction]) -> bool | None:
    if not isinstance(relation, list) or len(relation) != 3 or relation[0] not in ("==", "!=", "<", "<=", ">", ">="):
        raise Refused("a relation is a list of a comparison and two expressions")
    sign, left, right = relation
    for bits in PRECISIONS:
        try:
            a, b = _value(left, names, bits), _value(right, names, bits)
        except ArithmeticError:
            continue
        held = _ordered(sign, a, b)
        if held is not None:
            return held
    return None


def _ordered(sign: str, a: Enclosure, b: Enclosure) -> bool | None:
    match sign:
        case "==" | "!=":
            if a.exact and b.exact:
                return (a.low == b.low) is (sign == "==")
            apart = a.high < b.low or b.high < a.low
            return (sign == "!=") if apart else None
        case "<" | "<=":
            surely: Callable[[Fraction, Fraction], bool] = operator.lt if sign == "<" else operator.le
            if surely(a.high, b.low):
                return True
            return None if surely(a.low, b.high) else False
        case _:
            return _ordered({">": "<", ">=": "<="}[sign], b, a)


def _value(expression: Any, names: Mapping[str, Fraction], bits: int) -> Enclosure:
    if isinstance(expression, str) and expression in names:
        return Enclosure.of(names[expression], bits)
    if not isinstance(expression, list):
        return Enclosure.of(rational(expression), bits)
    if not expression or not isinstance(expression[0], str):
        raise Refused("an expression is a number, a name, or a list that starts with an operation")
    arguments = [_value(part, names, bits) for part in expression[1:]]
    name = expression[0]
    if name in ("+", "-", "*", "/", "min", "max") and len(arguments) >= 2:
        result = arguments[0]
        for argument in arguments[1:]:
            result = _two(name, result, argument)
        return result
    if name == "count":
        return Enclosure.of(Fraction(sum(_exactly(x) != 0 for x in arguments)), bits)
    if name in ("^", "binomial") and len(arguments) == 2:
        n = _whole(arguments[1])
        if name == "^":
            return arguments[0].power(n)
        top = _whole(arguments[0])
        if not 0 <= top <= MOST_FACTORIAL or n < 0:
            raise Refused(f"a binomial coefficient of more than {MOST_FACTORIAL}")
        return Enclosure.of(Fraction(comb(top, n)), bits)
    if len(arguments) != 1:
        raise Refused(f"unknown operation {name[:20]!r}, or a wrong number of arguments")
    return _one(name, arguments[0], bits)


def _two(name: str, a: Enclosure, b: Enclosure) -> Enclosure:
    match name:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a * b.inverse()
        case "min":
            return Enclosure(min(a.low, b.low), min(a.high, b.high), a.bits)
        case _:
            return Enclosure(max(a.low, b.low), max(a.high, b.high), a.bits)


def _one(name: str, x: Enclosure, bits: int) -> Enclosure:
    match name:
        case "abs":
            return x if x.low >= 0 else -x if x.high <= 0 else Enclosure(Fraction(0), max(-x.low, x.high), bits)
        case "floor" | "ceil":
            whole = floor if name == "floor" else ceil
            low, high = whole(x.low), whole(x.high)
            if low != high:
                raise ArithmeticError("an integer part is open")
            return Enclosure.of(Fraction(low), bits)
        case "sqrt":
            return x.sqrt()
        case "exp":
            return x.exp()
        case "log":
            return x.log()
        case "exp2":
            if x.exact and x.low.denominator == 1:
                return Enclosure.of(Fraction(2), bits).power(int(x.low))
            return (x * Enclosure.of(Fraction(2), bits).log()).exp()
        case "log2":
            if x.exact and x.low > 0 and 1 in (x.low.numerator, x.low.denominator):
                power = max(x.low.numerator, x.low.denominator)
                if power & (power - 1) == 0:
                    k = power.bit_length() - 1
                    return Enclosure.of(Fraction(k if x.low.denominator == 1 else -k), bits)
            return x.log() * Enclosure.of(Fraction(2), bits).log().inverse()
        case "factorial":
            n = _whole(x)
            if not 0 <= n <= MOST_FACTORIAL:
                raise Refused(f"a factorial of more than {MOST_FACTORIAL}")
            return Enclosure.of(Fraction(factorial(n)), bits)
        case _:
            raise Refused(f"unknown operation {name[:20]!r}")


def _exactly(x: Enclosure) -> Fraction:
    if not x.exact:
        raise Refused("a number must be rational here")
    return x.low


def _whole(x: Enclosure) -> int:
    value = _exactly(x)
    if value.denominator != 1:
        raise Refused("a number must be an integer here")
    return int(value)


# --- evaluations ---------------------------------------------------------------------------------------------------------


def _evaluation(statement: Any) -> bool | None:
    relation = statement["relation"]
    close = relation["within"] if isinstance(relation, dict) and set(relation) == {"within"} else None
    if relation not in ("equal", "differs") and not (type(close) is int and 1 <= close <= 1 << 16):
        raise Refused('the relation of an evaluation is "equal", "differs" or {"within": k}')
    for bits in PRECISIONS:
        try:
            direct = evaluate(statement["instance"], bits)
        except ArithmeticError:
            continue
        output = matrix(statement["output"], bits)
        if len(output) != len(direct) or len(output[0]) != len(direct[0]):
            raise Refused("output and direct evaluation have different shapes")
        held = _close(output, direct, close) if close is not None else _same(output, direct, relation == "equal")
        if held is not None:
            return held
    return None


def _same(output: Rows, direct: Rows, equal: bool) -> bool | None:
    """Whether all entries are equal, or (with `equal` False) at least one differs."""
    every: bool | None = True
    for row, other in zip(output, direct, strict=True):
        for a, b in zip(row, other, strict=True):
            same = _ordered("==", a, b)
            if same is False:
                return not equal
            every = every if same else None
    return None if every is None else equal


def _close(output: Rows, direct: Rows, k: int) -> bool | None:
    every: bool | None = True
    for row, other in zip(output, direct, strict=True):
        bits = row[0].bits
        error = size = Enclosure.of(Fraction(0), bits)
        for a, b in zip(row, other, strict=True):
            error, size = error + (a - b).square(), size + b.square()
        held = _ordered("<=", error, size * Enclosure.of(Fraction(1, 1 << (2 * k)), bits))
        if held is False:
            return False
        every = every if held else None
    return every
