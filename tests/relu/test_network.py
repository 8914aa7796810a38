"""Networks: evaluation against plain fractions, counts against a count by hand, JSON there and back, bad shapes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.relu.plain import forward, networks
from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2
from verify.arithmetic.interface import Kind
from verify.relu.network import Affine, Network

points = st.fractions(-5, 5, max_denominator=9)


@given(networks(2, 2), points, points)
def test_a_network_computes_its_layers(network: Network, x: Fraction, y: Fraction) -> None:
    assert list(network(x, y)) == forward(network, x, y)


@given(networks(2, 2), points, points)
def test_the_traced_map_is_the_network_in_two_arithmetics(network: Network, x: Fraction, y: Fraction) -> None:
    wanted = forward(network, x, y)
    traced = network.token_map([Kind.NUMBER] * 2)
    arithmetic = Exact2()
    out = traced.apply(arithmetic, [arithmetic.numbers([x]), arithmetic.numbers([y])])
    assert [Fraction(int(c[0].p), int(c[0].q)) for c in out] == wanted
    with working_precision(200):
        ball = Ball("exp", 200)
        for (found,), value in zip(traced.apply(ball, [ball.numbers([x]), ball.numbers([y])]), wanted, strict=True):
            assert found.overlaps(ball.numbers([value])[0]) and found.rad() < 1e-40


@given(networks(2, 3))
def test_counts(network: Network) -> None:
    layers = [*network.hidden, network.readout]
    stored = [w for layer in layers for row in layer.rows for _, w in row]
    stored += [b for layer in layers for b in layer.bias if b]
    assert network.parameters == len(stored)
    assert network.units == sum(len(layer.bias) for layer in network.hidden)
    assert (network.depth, network.widths) == (len(network.hidden), tuple(len(a.bias) for a in network.hidden))
    longest = max([len(f"{abs(w.numerator):b}") + len(f"{w.denominator:b}") - 1 for w in stored], default=0)
    assert network.weight_bits == longest


@given(networks(1, 2))
def test_json_there_and_back(network: Network) -> None:
    assert Network.from_json(network.to_json()) == network


@given(networks(1, 1), st.data())
def test_one_weight_is_replaced_and_no_other(network: Network, data: st.DataObject) -> None:
    layer = data.draw(st.integers(0, network.depth))
    row = data.draw(st.integers(0, network.layers[layer].outputs - 1))
    position = data.draw(st.integers(-1, len(network.layers[layer].rows[row]) - 1))
    changed = network.with_weight(layer, row, position, Fraction(22, 7))
    differences = [
        (at, r)
        for at, (a, b) in enumerate(zip(network.layers, changed.layers, strict=True))
        for r in range(a.outputs)
        if (a.rows[r], a.bias[r]) != (b.rows[r], b.bias[r])
    ]
    assert differences == [(layer, row)]


def test_shapes_that_do_not_fit_are_refused() -> None:
    one, two = Affine(1, (((0, Fraction(1)),),), (Fraction(0),)), Affine(2, ((),), (Fraction(1),))
    with pytest.raises(ValueError, match="1 outputs is followed by one of 2 inputs"):
        Network((one,), two)
    with pytest.raises(ValueError, match="must not be zero"):
        Affine(1, (((0, Fraction(0)),),), (Fraction(0),))
    with pytest.raises(ValueError, match="columns of a row"):
        Affine(1, (((1, Fraction(1)),),), (Fraction(0),))
    with pytest.raises(ValueError, match="1 rows of weights, but 2 biases"):
        Affine(1, ((),), (Fraction(0), Fraction(0)))
    with pytest.raises(TypeError, match="reads 1 numbers, not 2"):
        Network((), one)(1, 2)


def test_no_hidden_layer_and_no_weight() -> None:
    nothing = Network((), Affine(1, ((),), (Fraction(0),)))
    assert nothing(5) == (0,) and nothing.parameters == nothing.units == nothing.weight_bits == 0
