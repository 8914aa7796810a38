"""Token-wise maps (the paper's MLPs) as straight-line programs, so that their cost can be counted.

A map is written as an ordinary Python function of wires and traced once:

    recover = TokenMap.trace([Kind.VALUE] * 2, lambda x: [x[0] / x[1]])

The paper grants its MLPs affine maps, "basic arithmetic operations" and, elsewhere, any continuous function on a compact
domain, in O(d^2) time (Section 2.1). The trace tells which of these a construction really uses (`operations`), how many
steps it takes (`cost`) and how many constants it stores (`parameters`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from operator import add

from verify.arithmetic.interface import Arithmetic, Column, Kind

OPERATION_NAMES = {
    "multiply": "multiplication",
    "divide": "division",
    "log": "log",
    "exp": "exp",
    "round": "rounding",
    "relu": "relu",
}
"""What each step beyond affine maps is called in results."""


@dataclass(frozen=True)
class Step:
    """One instruction: an operation on earlier results, by index, with at most one constant."""

    operation: str
    arguments: tuple[int, ...] = ()
    constant: Fraction | None = None


class Wire:
    """A number inside a map being traced. Supports + - * / with wires and exact rationals, log, exp, relu and rounding."""

    __slots__ = ("_trace", "index", "kind")

    def __init__(self, trace: _Trace, index: int, kind: Kind) -> None:
        self._trace, self.index, self.kind = trace, index, kind

    def _wire(self, other: Wire | Fraction | int) -> Wire:
        return other if isinstance(other, Wire) else self._trace.constant(Fraction(other))

    def __add__(self, other: Wire | Fraction | int) -> Wire:
        b = self._wire(other)
        return self._trace.step("add", (self, b), _sum_kind(self.kind, b.kind))

    __radd__ = __add__

    def __sub__(self, other: Wire | Fraction | int) -> Wire:
        b = self._wire(other)
        return self._trace.step("subtract", (self, b), _sum_kind(self.kind, b.kind))

    def __rsub__(self, other: Fraction | int) -> Wire:
        return self._wire(other) - self

    def __mul__(self, other: Wire | Fraction | int) -> Wire:
        if not isinstance(other, Wire):
            return self if other == 1 else self._trace.step("scale", (self,), self.kind, Fraction(other))
        if Kind.SCORE in (self.kind, other.kind):
            raise TypeError("a token-wise map cannot multiply scores: they only form a group")
        return self._trace.step("multiply", (self, other), _sum_kind(self.kind, other.kind))

    __rmul__ = __mul__

    def __truediv__(self, other: Wire | Fraction | int) -> Wire:
        if not isinstance(other, Wire):
            return self * (1 / Fraction(other))
        if Kind.SCORE in (self.kind, other.kind):
            raise TypeError("a token-wise map cannot divide scores: they only form a group")
        return self._trace.step("divide", (self, other), _sum_kind(self.kind, other.kind))

    def constant(self, value: Fraction | int) -> Wire:
        """A constant, as a wire of the same map."""
        return self._trace.constant(Fraction(value))

    def log(self) -> Wire:
        """The score s with E(s) = self."""
        if self.kind is Kind.SCORE:
            raise TypeError("the logarithm of a score has no meaning")
        return self._trace.step("log", (self,), Kind.SCORE)

    def exp(self) -> Wire:
        """The weight E(self) of a score."""
        if self.kind is Kind.VALUE:
            raise TypeError("only a score has a weight; take the number of a value first")
        return self._trace.step("exp", (self,), Kind.VALUE)

    def round(self, bits: int) -> Wire:
        """The nearest multiple of 2^-bits, ties up."""
        return self._trace.step("round", (self,), Kind.NUMBER, Fraction(bits))

    def relu(self) -> Wire:
        """max(self, 0)."""
        if self.kind is Kind.SCORE:
            raise TypeError("a score has no sign: take the relu of a number or a value")
        return self._trace.step("relu", (self,), self.kind)

    def number(self) -> Wire:
        """The same number, usable in scores: the step from one attention layer to the next."""
        return self if self.kind is Kind.NUMBER else self._trace.step("number", (self,), Kind.NUMBER)


def sum_of(wires: Sequence[Wire]) -> Wire:
    """The sum of at least one wire."""
    return reduce(add, wires)


class _Trace:
    def __init__(self, inputs: Sequence[Kind]) -> None:
        self.steps: list[Step] = [Step("input") for _ in inputs]
        self.wires = [Wire(self, i, kind) for i, kind in enumerate(inputs)]

    def step(self, operation: str, arguments: tuple[Wire, ...], kind: Kind, constant: Fraction | None = None) -> Wire:
        if any(wire._trace is not self for wire in arguments):
            raise TypeError("a wire belongs to another map")
        self.steps.append(Step(operation, tuple(wire.index for wire in arguments), constant))
        return Wire(self, len(self.steps) - 1, kind)

    def constant(self, value: Fraction) -> Wire:
        return self.step("constant", (), Kind.NUMBER, value)


@dataclass(frozen=True)
class TokenMap:
    """A token-wise map: `inputs` are the kinds of its arguments, `outputs` index the steps that it returns.

    `name` says what the map is for, where an audit names its steps.
    """

    inputs: tuple[Kind, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    kinds: tuple[Kind, ...]
    name: str = ""

    @classmethod
    def trace(
        cls,
        inputs: Sequence[Kind],
        function: Callable[[list[Wire]], Sequence[Wire | Fraction | int]],
        *,
        name: str = "",
    ) -> TokenMap:
        """The map that `function` computes on wires of these kinds. Raises TypeError where kinds do not fit."""
        trace = _Trace(inputs)
        constants: dict[Fraction, Wire] = {}
        results = []
        for result in function(list(trace.wires)):
            if not isinstance(result, Wire):
                value = Fraction(result)
                result = constants.setdefault(value, constants.get(value) or trace.constant(value))
            elif result._trace is not trace:
                raise TypeError("a wire belongs to another map")
            results.append(result)
        return cls(
            tuple(inputs),
            tuple(trace.steps),
            tuple(wire.index for wire in results),
            tuple(wire.kind for wire in results),
            name,
        )

    @classmethod
    def identity(cls, inputs: Sequence[Kind]) -> TokenMap:
        """The map that returns its arguments."""
        return cls.trace(inputs, lambda x: x)

    def __call__(self, wires: Sequence[Wire]) -> list[Wire]:
        """This map inside another one that is being traced."""
        if len(wires) != len(self.inputs):
            raise TypeError(f"the map takes {len(self.inputs)} numbers, not {len(wires)}")
        trace = wires[0]._trace if wires else None
        done: list[Wire] = []
        for position, step in enumerate(self.steps):
            if step.operation == "input":
                done.append(wires[position])
                continue
            a = [done[i] for i in step.arguments]
            match step.operation:
                case "constant":
                    assert trace is not None and step.constant is not None
                    done.append(trace.constant(step.constant))
                case "add":
                    done.append(a[0] + a[1])
                case "subtract":
                    done.append(a[0] - a[1])
                case "multiply":
                    done.append(a[0] * a[1])
                case "divide":
                    done.append(a[0] / a[1])
                case "scale":
                    assert step.constant is not None
                    done.append(a[0] * step.constant)
                case "log":
                    done.append(a[0].log())
                case "exp":
                    done.append(a[0].exp())
                case "round":
                    assert step.constant is not None
                    done.append(a[0].round(int(step.constant)))
                case "relu":
                    done.append(a[0].relu())
                case "number":
                    done.append(a[0].number())
                case _:
                    raise ValueError(f"unknown step {step.operation}")
        return [done[i] for i in self.outputs]

    @cached_property
    def cost(self) -> int:
        """Operations for each token: every step but reading an input, a constant, or a change of kind."""
        return sum(step.operation not in ("input", "constant", "number") for step in self.steps)

    @cached_property
    def parameters(self) -> int:
        """Stored constants."""
        return sum(step.constant is not None for step in self.steps)

    @cached_property
    def operations(self) -> frozenset[str]:
        """The operations beyond affine maps, by the names of `OPERATION_NAMES`."""
        return frozenset(OPERATION_NAMES[step.operation] for step in self.steps if step.operation in OPERATION_NAMES)

    def bound(self, size: Fraction) -> Fraction:
        """A bound on every result's size when every argument is at most `size` in size. Raises ValueError where there is none."""
        done: list[Fraction] = []
        for step in self.steps:
            a = [done[i] for i in step.arguments]
            constant = abs(step.constant) if step.constant is not None else Fraction(0)
            match step.operation:
                case "input":
                    done.append(size)
                case "constant":
                    done.append(constant)
                case "add" | "subtract":
                    done.append(a[0] + a[1])
                case "multiply":
                    done.append(a[0] * a[1])
                case "scale":
                    done.append(a[0] * constant)
                case "round":
                    assert step.constant is not None
                    done.append(a[0] + Fraction(1, 2) / Fraction(2) ** int(step.constant))
                case "number" | "relu":
                    done.append(a[0])
                case _:
                    raise ValueError(f"no bound on the results of {step.operation}")
        return max((done[i] for i in self.outputs), default=Fraction(0))

    def apply(self, arithmetic: Arithmetic, columns: Sequence[Column]) -> list[Column]:
        """The map on every token at once: one column in, one column out, for each argument and result."""
        if len(columns) != len(self.inputs):
            raise TypeError(f"the map takes {len(self.inputs)} columns, not {len(columns)}")
        done = _evaluate(arithmetic, self.steps, columns)
        return [done[i] for i in self.outputs]


def _evaluate(arithmetic: Arithmetic, steps: Sequence[Step], columns: Sequence[Column]) -> list[Column]:
    """The result of every step, on tokens with these columns."""
    height = len(columns[0]) if columns else 0
    done: list[Column] = []
    for position, step in enumerate(steps):
        a = [done[i] for i in step.arguments]
        match step.operation:
            case "input":
                done.append(columns[position])
            case "constant":
                assert step.constant is not None
                done.append(arithmetic.constant(step.constant, height))
            case "add":
                done.append(arithmetic.add(a[0], a[1]))
            case "subtract":
                done.append(arithmetic.subtract(a[0], a[1]))
            case "multiply":
                done.append(arithmetic.multiply(a[0], a[1]))
            case "divide":
                done.append(arithmetic.divide(a[0], a[1]))
            case "scale":
                assert step.constant is not None
                done.append(arithmetic.scale(a[0], step.constant))
            case "log":
                done.append(arithmetic.log(a[0]))
            case "exp":
                done.append(arithmetic.exp(a[0]))
            case "round":
                assert step.constant is not None
                done.append(arithmetic.round_to_grid(a[0], int(step.constant)))
            case "relu":
                done.append(arithmetic.relu(a[0]))
            case "number":
                done.append(arithmetic.number(a[0]))
            case _:
                raise ValueError(f"unknown step {step.operation}")
    return done


@dataclass(frozen=True)
class PositionalMap:
    """An input MLP that depends on the token's position: consecutive ranges of positions, each with its own map.

    The paper allows this of the *input* MLP only. `ranges` are (first position, one past the last, map); they cover
    the positions from 0 on without gaps.
    """

    ranges: tuple[tuple[int, int, TokenMap], ...]

    def __post_init__(self) -> None:
        at = 0
        for start, stop, token_map in self.ranges:
            if start != at or stop < start:
                raise ValueError("the ranges of a positional map must follow each other")
            if len(token_map.outputs) != len(self.ranges[0][2].outputs):
                raise ValueError("the maps of a positional map must have the same width")
            at = stop

    @property
    def length(self) -> int:
        """The number of positions covered."""
        return self.ranges[-1][1] if self.ranges else 0

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of the output columns: a number may stand among scores or among values."""
        columns = zip(*(token_map.kinds for start, stop, token_map in self.ranges if stop > start), strict=True)
        return tuple(_join(column) for column in columns)

    @property
    def cost(self) -> int:
        """Operations for the costliest token."""
        return max((token_map.cost for _, _, token_map in self.ranges), default=0)

    @property
    def parameters(self) -> int:
        """Stored constants, the ends of the ranges included."""
        return sum(token_map.parameters + 1 for _, _, token_map in self.ranges)

    @property
    def operations(self) -> frozenset[str]:
        """The operations beyond affine maps."""
        return frozenset().union(*(token_map.operations for _, _, token_map in self.ranges))

    @cached_property
    def _common(self) -> int | None:
        """Steps with which all the maps begin, if beyond them each map has nothing but constants; None otherwise."""
        steps = [token_map.steps for start, stop, token_map in self.ranges if stop > start]
        shortest = min(map(len, steps))
        common = next((i for i in range(shortest) if any(s[i] != steps[0][i] for s in steps)), shortest)
        plain = all(step.operation == "constant" for s in steps for step in s[common:])
        return common if plain else None

    @cached_property
    def _outputs(self) -> tuple[tuple[tuple[int, ...], tuple[Fraction | None, ...]], ...]:
        """For each output: the common steps that it takes its entries from, and in every position its constant, or None."""
        found = []
        for output in range(len(self.kinds)):
            taken: list[int] = []
            constants: list[Fraction | None] = []
            for start, stop, token_map in self.ranges:
                step = token_map.outputs[output]
                constant = token_map.steps[step].constant if token_map.steps[step].operation == "constant" else None
                constants += [constant] * (stop - start)
                if stop > start and constant is None and step not in taken:
                    taken.append(step)
            found.append((tuple(taken), tuple(constants)))
        return tuple(found)

    def apply(self, arithmetic: Arithmetic, columns: Sequence[Column], copies: int = 1) -> list[Column]:
        """The map on the tokens at positions 0, 1, ... of each of `copies` inputs of exactly `length` tokens, stacked."""
        ranges = [part for part in self.ranges if part[1] > part[0]]
        if len(ranges) == 1:
            return ranges[0][2].apply(arithmetic, columns)
        # The ranges of all copies, from the top of the stack to its bottom.
        tops = range(0, copies * self.length, self.length)
        if self._common is None:
            parts = [
                token_map.apply(arithmetic, [column[top + start : top + stop] for column in columns])
                for top in tops
                for start, stop, token_map in ranges
            ]
            return [arithmetic.concatenate(part) for part in zip(*parts, strict=True)]
        if any(len(columns) != len(token_map.inputs) for _, _, token_map in ranges):
            raise TypeError(f"the map takes {len(ranges[0][2].inputs)} columns, not {len(columns)}")
        # The maps of a construction mostly differ by the constants that mark a row's role: what they share is computed once.
        done = _evaluate(arithmetic, ranges[0][2].steps[: self._common], columns)
        out: list[Column] = []
        for output, (taken, constants) in enumerate(self._outputs):
            if not taken:
                column = arithmetic.fixed(constants)  # type: ignore[arg-type]  # nothing is taken: every entry is a constant
                out.append(column if copies == 1 else arithmetic.concatenate([column] * copies))
            elif len(taken) == 1:
                (step,) = taken
                out.append(
                    arithmetic.place(done[step], constants, copies)
                    if any(c is not None for c in constants)
                    else done[step]
                )
            else:
                pieces = [
                    arithmetic.constant(constant, stop - start)
                    if (constant := constants[start]) is not None
                    else done[token_map.outputs[output]][top + start : top + stop]
                    for top in tops
                    for start, stop, token_map in ranges
                ]
                out.append(arithmetic.concatenate(pieces))
        return out


def _sum_kind(a: Kind, b: Kind) -> Kind:
    return _join((a, b))


def _join(kinds: Sequence[Kind]) -> Kind:
    found = set(kinds) - {Kind.NUMBER}
    if len(found) > 1:
        raise TypeError("a score and a value cannot stand in the same place: pass through log or exp")
    return found.pop() if found else Kind.NUMBER
