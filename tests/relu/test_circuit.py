"""The compiler: the layered network computes its formula, at random formulas, inside the stated ranges; unneeded units are left out."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.relu.plain import forward
from verify.relu.circuit import Circuit

RANGES = ((-2, 3), (1, 4))
small = st.fractions(-3, 3, max_denominator=4)
inside = st.tuples(st.fractions(-2, 3, max_denominator=8), st.fractions(1, 4, max_denominator=8))


@given(st.data(), inside)
def test_a_random_formula(data: st.DataObject, point: tuple[Fraction, Fraction]) -> None:
    circuit = Circuit(RANGES)
    nodes, values = list(circuit.inputs), list(point)
    for _ in range(data.draw(st.integers(0, 8))):
        i, j = (data.draw(st.integers(0, len(nodes) - 1)) for _ in range(2))
        a, b, c = (data.draw(small) for _ in range(3))
        node, value = nodes[i] * a - b * nodes[j] + c, values[i] * a - b * values[j] + c
        if data.draw(st.booleans()):
            node, value = circuit.relu(node), max(value, Fraction(0))
        nodes.append(node)
        values.append(value)
    outputs = [data.draw(st.integers(0, len(nodes) - 1)) for _ in range(2)]
    network = circuit.network([nodes[k] for k in outputs])
    assert forward(network, *point) == [values[k] for k in outputs]


def test_an_input_needed_late_is_carried_with_its_sign() -> None:
    circuit = Circuit(RANGES)
    x, y = circuit.inputs
    deep = circuit.relu(circuit.relu(circuit.relu(y) - 2) - 1)
    network = circuit.network([x + deep])
    assert forward(network, -2, 4) == [-1] and forward(network, 3, 1) == [3]
    assert network.widths == (2, 2, 2)


def test_equal_units_are_built_once_and_unneeded_ones_not_at_all() -> None:
    circuit = Circuit(RANGES)
    x, y = circuit.inputs
    circuit.relu(y - 3)
    total = circuit.relu(x - y) + circuit.relu(x + y * -1)
    assert circuit.network([total]).units == 1
    assert circuit.layer(total) == 1 and circuit.layer(x) == 0


def test_terms_that_cancel_leave_nothing() -> None:
    circuit = Circuit(RANGES)
    x, _ = circuit.inputs
    unit = circuit.relu(x)
    network = circuit.network([unit - unit + 7])
    assert network.depth == 0 and network.parameters == 1 and forward(network, 2, 2) == [7]
