"""Where the bits go: the condition number of each step of a program on one instance.

A step that multiplies relative errors by kappa costs log2(kappa) bits. For a map `y = f(x)` of values the condition is taken
row by row, in the 2-norm as the paper measures errors: `|| sum_i |x_i dy/dx_i| || / ||y||`. A score enters only through its
weight `E(score)`, where an absolute error of the score is a relative error of the weight, so for a score the condition is
`sum_i |x_i dy/dx_i|` itself; so it is for attention weights, `sum_c |q_c k_c|` (times ln 2 for kernel exp2).

For the printed inversion this gives `1/(1-r) = A+1`; for a prefix difference `(T+P)/|T-P|`; for a quotient 2; for the
logarithm of a carried sum 1, and for the weight made of it again `|log x|`.

Derivatives are exact: the straight-line programs of the token maps are differentiated along with their evaluation, in balls,
at the values that the program takes in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from flint import arb, arb_mat

from verify.arithmetic.ball import Ball, deciding, working_precision
from verify.arithmetic.interface import Arithmetic, Column, Entry, Kind, Visible
from verify.arithmetic.matrix import RationalMatrix
from verify.audit.error import norm
from verify.errors import UnsupportedOperation
from verify.oracle.program import Call, Program
from verify.oracle.run import run
from verify.transformer.attention import Mask
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap

WEIGHTS, AVERAGE, INPUT_MAP, LAYER_MAP = "attention weights", "attention average", "input MLP", "layer MLP"

START = 128
"""Bits at which conditions are first enclosed."""


@dataclass(frozen=True)
class StepCondition:
    """The largest condition number of one kind of step over all calls and rows, and the role of the call where it occurs."""

    step: str
    condition: arb
    role: str

    @property
    def bits_lost(self) -> arb:
        """log2 of the condition, not below 0."""
        if not self.condition.is_finite():
            return arb("inf")
        return (self.condition.log() / arb.const_log2()).max(arb(0)) if self.condition > 1 else arb(0)


def conditions(
    program: Program, kernel: Literal["exp", "exp2"], columns: Sequence[Sequence[Fraction]]
) -> list[StepCondition]:
    """The worst condition of every kind of step, in the order in which the steps first occur."""

    def question(bits: int) -> list[StepCondition]:
        with working_precision(bits):
            ball = Ball(kernel, bits)
            found: dict[str, StepCondition] = {}

            def watch(call: Call, given: list[Column], _: list[Column]) -> None:
                for step, condition in _of_call(ball, call, given):
                    before = found.get(step)
                    if before is None or not condition <= before.condition:
                        found[step] = StepCondition(step, condition, call.role)

            run(program, ball, {"X": [ball.numbers(column) for column in columns]}, watch=watch)
            return list(found.values())

    return deciding(question, START)


def _of_call(ball: Ball, call: Call, given: list[Column]) -> list[tuple[str, arb]]:
    oracle = call.oracle
    current, condition = _of_input_map(ball, oracle.input_map, given)
    found = condition
    for layer in oracle.layers:
        current, inside = _of_layer(ball, layer, current, oracle.mask)
        found += inside
    return found


def _of_input_map(
    ball: Ball, positional: PositionalMap, columns: list[Column]
) -> tuple[list[Column], list[tuple[str, arb]]]:
    parts, found = [], []
    for start, stop, token_map in positional.ranges:
        if stop > start:
            out, condition = _of_map(ball, token_map, [column[start:stop] for column in columns])
            parts.append(out)
            if token_map.cost:
                found.append((token_map.name or INPUT_MAP, condition))
    return [ball.concatenate(part) for part in zip(*parts, strict=True)], found


def _of_layer(
    ball: Ball, layer: Layer, columns: list[Column], mask: Mask
) -> tuple[list[Column], list[tuple[str, arb]]]:
    out: list[Column] = []
    found: list[tuple[str, arb]] = []
    at = 0
    for head in layer.heads:
        part = columns[at : at + head.W_Q.height]
        at += head.W_Q.height
        Q, K, V = (ball.project(part, W) for W in (head.W_Q, head.W_K, head.W_V))
        visible = mask.visible(len(part[0]))
        weights = ball.weights(ball.scores(Q, K, visible))
        columns_out = ball.normalise(weights, V)
        found.append((WEIGHTS, _of_weights(ball, Q, K, visible)))
        absolute = ball.normalise(weights, arb_mat(V.nrows(), V.ncols(), [abs(v) for v in V.entries()]))
        found.append((AVERAGE, _largest_ratio(absolute, columns_out)))
        out += columns_out
    if layer.residual:
        out += columns
    values, condition = _of_map(ball, layer.mlp, out)
    if layer.mlp.cost:
        found.append((layer.mlp.name or LAYER_MAP, condition))
    return values, found


def _of_weights(ball: Ball, Q: arb_mat, K: arb_mat, visible: Visible) -> arb:
    sizes = [arb_mat(m.nrows(), m.ncols(), [abs(x) for x in m.entries()]) for m in (Q, K)]
    products = sizes[0] * sizes[1].transpose()
    largest = arb(0)
    for i, seen in enumerate(visible.rows):
        for j in seen:
            largest = largest.max(products[i, j])
    return largest * arb.const_log2() if ball.kernel == "exp2" else largest


def _largest_ratio(above: Sequence[Column], below: Sequence[Column]) -> arb:
    """The largest over all rows of ||above|| / ||below||; rows that are zero above do not count."""
    largest = arb(0)
    for i in range(len(below[0]) if below else 0):
        top = norm([column[i].abs_upper() for column in above])
        bottom = norm([column[i].abs_lower() for column in below])
        if not top.is_zero():
            largest = largest.max(top / bottom if bottom > 0 else arb("inf"))
    return largest


def _of_map(ball: Ball, token_map: TokenMap, columns: list[Column]) -> tuple[list[Column], arb]:
    """The map's values and its condition (a score's is absolute, the values of a row count together)."""
    height = len(columns[0]) if columns else 0
    dual = _Dual(ball)
    inputs = [[(x, {index: arb(1)}) for x in column] for index, column in enumerate(columns)]
    out = token_map.apply(dual, inputs)
    values = [[x for x, _ in column] for column in out]
    if not token_map.cost:
        return values, arb(1)

    def size(gradient: dict[int, arb], row: int) -> arb:
        return sum((abs(columns[index][row] * d) for index, d in gradient.items()), arb(0))

    sizes = [[size(gradient, row) for row, (_, gradient) in enumerate(column)] for column in out]
    # What a map passes on unchanged is not a step.
    made = [c for c, index in enumerate(token_map.outputs) if token_map.steps[index].operation not in PASSIVE]
    scores = [c for c in made if token_map.kinds[c] is Kind.SCORE]
    others = [c for c in made if token_map.kinds[c] is not Kind.SCORE]
    largest = arb(0)
    for c in scores:
        for row in range(height):
            largest = largest.max(sizes[c][row])
    if others:
        largest = largest.max(_largest_ratio([sizes[c] for c in others], [values[c] for c in others]))
    return values, largest


PASSIVE = ("input", "constant", "number")
"""Steps of a token map that compute nothing."""


class _Dual(Arithmetic):
    """Numbers with their derivatives by the inputs of a token map: enough to differentiate it, and no attention."""

    name = "dual"

    def __init__(self, ball: Ball) -> None:
        self.ball = ball

    def numbers(self, entries: Sequence[Fraction]) -> Column:
        return [(x, {}) for x in self.ball.numbers(entries)]

    def _chain(self, values: Sequence[arb], *terms: tuple[Column, Sequence[arb]]) -> Column:
        """Values with the derivative `sum of slope * (derivative of argument)`."""
        out = []
        for row, value in enumerate(values):
            gradient: dict[int, arb] = {}
            for column, slopes in terms:
                for index, d in column[row][1].items():
                    step = slopes[row] * d
                    gradient[index] = gradient[index] + step if index in gradient else step
            out.append((value, gradient))
        return out

    def add(self, a: Column, b: Column) -> Column:
        one = [arb(1)] * len(a)
        return self._chain([x + y for (x, _), (y, _) in zip(a, b, strict=True)], (a, one), (b, one))

    def subtract(self, a: Column, b: Column) -> Column:
        one = [arb(1)] * len(a)
        return self._chain([x - y for (x, _), (y, _) in zip(a, b, strict=True)], (a, one), (b, [-x for x in one]))

    def multiply(self, a: Column, b: Column) -> Column:
        x, y = [v for v, _ in a], [v for v, _ in b]
        return self._chain([p * q for p, q in zip(x, y, strict=True)], (a, y), (b, x))

    def divide(self, a: Column, b: Column) -> Column:
        x, y = [v for v, _ in a], [v for v, _ in b]
        quotient = self.ball.divide(x, y)
        return self._chain(quotient, (a, [1 / q for q in y]), (b, [-z / q for z, q in zip(quotient, y, strict=True)]))

    def scale(self, a: Column, factor: Fraction) -> Column:
        c = self.ball.numbers([factor])[0]
        return self._chain([x * c for x, _ in a], (a, [c] * len(a)))

    def exp(self, scores: Column) -> Column:
        weights = self.ball.exp([x for x, _ in scores])
        rate = arb(1) if self.ball.kernel == "exp" else arb.const_log2()
        return self._chain(weights, (scores, [w * rate for w in weights]))

    def log(self, values: Column) -> Column:
        x = [v for v, _ in values]
        rate = arb(1) if self.ball.kernel == "exp" else arb.const_log2()
        return self._chain(self.ball.log(x), (values, [1 / (v * rate) for v in x]))

    def round_to_grid(self, a: Column, bits: int) -> Column:
        """Rounding is constant where it is differentiable."""
        return [(x, {}) for x in self.ball.round_to_grid([v for v, _ in a], bits)]

    def relu(self, a: Column) -> Column:
        """Slope 1 or 0; both enclosed where the sign is open."""
        x = [v for v, _ in a]
        slopes = [arb(1) if v > 0 else arb(0) if v < 0 else arb(0).union(arb(1)) for v in x]
        return self._chain(self.ball.relu(x), (a, slopes))

    def number(self, values: Column) -> Column:
        return values

    def concatenate(self, parts: Sequence[Column]) -> Column:
        return [x for part in parts for x in part]

    def project(self, columns: Sequence[Column], W: RationalMatrix) -> Any:
        raise UnsupportedOperation("derivatives are taken of token maps only")

    def scores(self, Q: Any, K: Any, visible: Visible) -> Any:
        raise UnsupportedOperation("derivatives are taken of token maps only")

    def weights(self, scores: Any) -> Any:
        raise UnsupportedOperation("derivatives are taken of token maps only")

    def normalise(self, weights: Any, V: Any) -> list[Column]:
        raise UnsupportedOperation("derivatives are taken of token maps only")

    def equal(self, a: Entry, b: Entry) -> bool | None:
        raise UnsupportedOperation("derivatives are not compared")
