"""A compiler from formulas with `relu` to layered networks.

    circuit = Circuit([(0, 1), (-1, 1)])       # the ranges of the inputs
    x, y = circuit.inputs
    network = circuit.network([circuit.relu(x - y) + circuit.relu(y - x)])      # |x - y|

A `Node` is an affine combination of inputs and relu units. A unit stands in the layer after the last one that it reads; a
number that is needed in a later layer is carried by units that copy it: one a layer, for a relu unit is never negative,
and an input x of the range [low, high] is carried as x - low. So outside its ranges a network need not follow its formula.
Units that no output needs are left out; equal units are built once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from verify.relu.network import Affine, Network

Number: TypeAlias = Fraction | int


@dataclass(frozen=True)
class Node:
    """`constant + sum of weight * (input or unit)`; terms are (index, weight), indices increasing, no weight 0."""

    terms: tuple[tuple[int, Fraction], ...]
    constant: Fraction

    def __add__(self, other: Node | Number) -> Node:
        if not isinstance(other, Node):
            return Node(self.terms, self.constant + other)
        weights = dict(self.terms)
        for index, weight in other.terms:
            weights[index] = weights.get(index, Fraction(0)) + weight
        return Node(tuple(sorted((i, w) for i, w in weights.items() if w)), self.constant + other.constant)

    __radd__ = __add__

    def __mul__(self, factor: Number) -> Node:
        if not factor:
            return Node((), Fraction(0))
        return Node(tuple((index, weight * factor) for index, weight in self.terms), self.constant * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Number) -> Node:
        return self * (1 / Fraction(divisor))

    def __neg__(self) -> Node:
        return self * -1

    def __sub__(self, other: Node | Number) -> Node:
        return self + other * -1

    def __rsub__(self, other: Number) -> Node:
        return self * -1 + other


class Circuit:
    """Collects the units of one network. `ranges` are (low, high) of its inputs."""

    def __init__(self, ranges: Sequence[tuple[Number, Number]]) -> None:
        self.ranges = [(Fraction(low), Fraction(high)) for low, high in ranges]
        self._layer = [0] * len(ranges)
        self._units: list[Node | None] = [None] * len(ranges)
        self._known: dict[Node, Node] = {}
        self.inputs = [Node(((i, Fraction(1)),), Fraction(0)) for i in range(len(ranges))]

    def relu(self, node: Node) -> Node:
        """A unit `max(node, 0)`."""
        if node not in self._known:
            self._units.append(node)
            self._layer.append(1 + self._latest([node]))
            self._known[node] = Node(((len(self._units) - 1, Fraction(1)),), Fraction(0))
        return self._known[node]

    def layer(self, node: Node) -> int:
        """The layer after which the node's parts are all known: 0 for the inputs."""
        return self._latest([node])

    def _latest(self, nodes: Iterable[Node]) -> int:
        return max((self._layer[index] for node in nodes for index, _ in node.terms), default=0)

    def network(self, outputs: Sequence[Node]) -> Network:
        """The layered network with these outputs."""
        needed = [False] * len(self._units)
        until = [0] * len(self._units)  # the last layer in which the number must still be present
        last = self._latest(outputs)
        for output in outputs:
            for index, _ in output.terms:
                needed[index], until[index] = True, last
        for index in reversed(range(len(self._units))):
            node = self._units[index]
            if node is not None and needed[index]:
                for source, _ in node.terms:
                    needed[source] = True
                    until[source] = max(until[source], self._layer[index] - 1)
        # For each layer: which numbers stand in it, as (index, position); inputs carried beyond layer 0 lose their `low`.
        places: list[dict[int, int]] = [{i: i for i in range(len(self.ranges))}]
        hidden: list[Affine] = []
        for layer in range(1, last + 1):
            rows: list[Node] = []
            place: dict[int, int] = {}
            for index, unit in enumerate(self._units):
                if not needed[index] or not self._layer[index] <= layer <= until[index]:
                    continue
                if layer == self._layer[index]:
                    assert unit is not None
                    rows.append(unit)
                elif unit is None:
                    rows.append(Node(((index, Fraction(1)),), -self.ranges[index][0]))
                else:
                    rows.append(Node(((index, Fraction(1)),), Fraction(0)))
                place[index] = len(rows) - 1
            hidden.append(self._affine(rows, places[-1], first=layer == 1))
            places.append(place)
        return Network(tuple(hidden), self._affine(outputs, places[-1], first=last == 0))

    def _affine(self, rows: Sequence[Node], place: dict[int, int], *, first: bool) -> Affine:
        """Rows over numbers that stand at these places; after layer 0 an input stands there without its `low`."""
        out, bias = [], []
        width = len(self.ranges) if first else len(place)
        for node in rows:
            constant = node.constant
            for index, weight in node.terms:
                if not first and index < len(self.ranges):
                    constant += weight * self.ranges[index][0]
            out.append(tuple(sorted((place[index], weight) for index, weight in node.terms)))
            bias.append(constant)
        return Affine(width, tuple(out), tuple(bias))
