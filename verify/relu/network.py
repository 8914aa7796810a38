"""A feed-forward ReLU network whose weights are exact rationals.

`hidden` layers apply an affine map and `relu(x) = max(x, 0)` entrywise; the last affine map, `readout`, has no relu. What a
network costs is counted here and nowhere else: `depth` hidden layers, `units` relus, `parameters` nonzero weights and
biases, `weight_bits` of the longest of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from flint import fmpq

from verify.arithmetic.formal import rational
from verify.arithmetic.interface import Kind
from verify.transformer.token_map import TokenMap, Wire, sum_of


@dataclass(frozen=True)
class Affine:
    """`x -> W x + bias`: row r of W holds its nonzero weights as (column, weight) in increasing order of columns."""

    inputs: int
    rows: tuple[tuple[tuple[int, Fraction], ...], ...]
    bias: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.bias):
            raise ValueError(f"{len(self.rows)} rows of weights, but {len(self.bias)} biases")
        for row in self.rows:
            columns = [column for column, _ in row]
            if columns != sorted(set(columns)) or not all(0 <= column < self.inputs for column in columns):
                raise ValueError(f"the columns of a row must increase and stay below {self.inputs}")
            if not all(weight for _, weight in row):
                raise ValueError("a weight that is stored must not be zero")

    @property
    def outputs(self) -> int:
        """Rows of W."""
        return len(self.rows)

    @cached_property
    def constants(self) -> tuple[Fraction, ...]:
        """The nonzero weights and biases."""
        return (*(weight for row in self.rows for _, weight in row), *(b for b in self.bias if b))

    @cached_property
    def _flint(self) -> tuple[tuple[tuple[tuple[int, fmpq], ...], fmpq], ...]:
        return tuple(
            (tuple((column, rational(weight)) for column, weight in row), rational(b))
            for row, b in zip(self.rows, self.bias, strict=True)
        )

    def apply(self, x: Sequence[fmpq]) -> list[fmpq]:
        """`W x + bias`, exactly."""
        out = []
        for row, b in self._flint:
            for column, weight in row:
                b = b + weight * x[column]
            out.append(b)
        return out


@dataclass(frozen=True)
class Network:
    """A ReLU network: see the module. Raises ValueError where the layers do not fit each other."""

    hidden: tuple[Affine, ...]
    readout: Affine

    def __post_init__(self) -> None:
        for before, after in pairwise(self.layers):
            if before.outputs != after.inputs:
                raise ValueError(f"a layer of {before.outputs} outputs is followed by one of {after.inputs} inputs")

    @property
    def layers(self) -> tuple[Affine, ...]:
        """The affine maps in order, the readout last."""
        return (*self.hidden, self.readout)

    @property
    def inputs(self) -> int:
        """Numbers read."""
        return self.layers[0].inputs

    @property
    def outputs(self) -> int:
        """Numbers returned."""
        return self.readout.outputs

    @property
    def depth(self) -> int:
        """Hidden layers."""
        return len(self.hidden)

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of each hidden layer."""
        return tuple(layer.outputs for layer in self.hidden)

    @property
    def units(self) -> int:
        """Relus."""
        return sum(self.widths)

    @cached_property
    def parameters(self) -> int:
        """Nonzero weights and biases of all layers."""
        return sum(len(layer.constants) for layer in self.layers)

    @cached_property
    def weight_bits(self) -> int:
        """Bits of numerator and denominator together, of the longest weight or bias."""
        return max(
            (
                abs(c.numerator).bit_length() + c.denominator.bit_length() - 1
                for layer in self.layers
                for c in layer.constants
            ),
            default=0,
        )

    def __call__(self, *x: Fraction | int) -> tuple[Fraction, ...]:
        """The output at a rational point, exactly. Raises TypeError for a wrong number of arguments."""
        if len(x) != self.inputs:
            raise TypeError(f"the network reads {self.inputs} numbers, not {len(x)}")
        values = [rational(Fraction(entry)) for entry in x]
        for layer in self.hidden:
            values = [relu(entry) for entry in layer.apply(values)]
        return tuple(fraction(entry) for entry in self.readout.apply(values))

    def on_wires(self, x: Sequence[Wire]) -> list[Wire]:
        """The network inside a token-wise map that is being traced (weights 1 cost no step)."""
        if len(x) != self.inputs:
            raise TypeError(f"the network reads {self.inputs} numbers, not {len(x)}")
        values = list(x)
        for layer in self.hidden:
            values = [wire.relu() for wire in _affine(layer, values)]
        return _affine(self.readout, values)

    def token_map(self, inputs: Sequence[Kind], name: str = "") -> TokenMap:
        """The network as a token-wise map on arguments of these kinds."""
        return TokenMap.trace(inputs, self.on_wires, name=name)

    def to_json(self) -> list[dict[str, Any]]:
        """The layers as JSON data: rows of (column, weight), and biases, as strings."""
        return [
            {
                "inputs": layer.inputs,
                "rows": [[[column, str(weight)] for column, weight in row] for row in layer.rows],
                "bias": [str(b) for b in layer.bias],
            }
            for layer in self.layers
        ]

    @classmethod
    def from_json(cls, layers: Sequence[Mapping[str, Any]]) -> Network:
        """The network that `to_json` wrote. Raises ValueError where the layers do not fit."""
        read = [
            Affine(
                layer["inputs"],
                tuple(tuple((column, Fraction(weight)) for column, weight in row) for row in layer["rows"]),
                tuple(Fraction(b) for b in layer["bias"]),
            )
            for layer in layers
        ]
        return cls(tuple(read[:-1]), read[-1])

    def with_weight(self, layer: int, row: int, position: int, weight: Fraction) -> Network:
        """The same network with one stored weight replaced; `position` -1 is the bias. For seeded faults."""
        old = self.layers[layer]
        if position < 0:
            bias = (*old.bias[:row], weight, *old.bias[row + 1 :])
            new = replace(old, bias=bias)
        else:
            entries = list(old.rows[row])
            entries[position] = (entries[position][0], weight)
            new = replace(
                old, rows=(*old.rows[:row], tuple(entry for entry in entries if entry[1]), *old.rows[row + 1 :])
            )
        layers = (*self.layers[:layer], new, *self.layers[layer + 1 :])
        return Network(layers[:-1], layers[-1])


def relu(x: fmpq) -> fmpq:
    """`max(x, 0)`."""
    return x if x.p > 0 else fmpq(0)


def fraction(x: fmpq) -> Fraction:
    """The same number for Python."""
    return Fraction(int(x.p), int(x.q))


def _affine(layer: Affine, x: Sequence[Wire]) -> list[Wire]:
    out = []
    for row, b in zip(layer.rows, layer.bias, strict=True):
        terms = [x[column] * weight for column, weight in row]
        if b or not terms:
            terms.append(x[0].constant(b))
        out.append(sum_of(terms))
    return out
