"""Training: deterministic on one machine, exact afterwards; training again comes close to the stored networks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from proofs import train_networks
from proofs.relu_networks import RANGES, trained
from verify.relu.error import certify
from verify.relu.network import Network
from verify.relu.target import Inversion, Square
from verify.relu.training import WEIGHT_BITS, _forward, _start, train


def error(network: Network) -> Fraction:
    return certify(network, Inversion(), *RANGES[0][1:]).upper


def test_two_trainings_are_the_same_and_on_the_grid() -> None:
    first, second = (train(Square(), Fraction(0), Fraction(1), (3,), seed=1, starts=2) for _ in range(2))
    assert first == second and first.widths == (3,)
    assert all((w * 2**WEIGHT_BITS).denominator == 1 for layer in first.layers for w in layer.constants)
    assert certify(first, Square(), 0, 1).upper < Fraction(1, 16)


def test_the_derivatives_are_those_of_the_network() -> None:
    """Against difference quotients."""
    widths, x = (3, 2), np.linspace(0.05, 0.95, 7)
    p = _start(np.random.default_rng(5), widths)
    out, J = _forward(p, x, widths)
    for k in range(len(p)):
        step = np.zeros(len(p))
        step[k] = 1e-6
        quotient = (_forward(p + step, x, widths)[0] - _forward(p - step, x, widths)[0]) / 2e-6
        assert np.allclose(J[:, k], quotient, atol=1e-5)
    assert out.shape == (7,)


def test_the_stored_networks_are_those_of_the_script() -> None:
    assert tuple(widths for widths, _ in trained()) == train_networks.WIDTHS
    assert (Inversion(), *train_networks.RANGE) == RANGES[0]
    errors = [error(network) for _, network in trained()]
    assert errors[0] > errors[1] > errors[2] and errors[3] > errors[4]


@pytest.mark.slow
@pytest.mark.parametrize("widths, network", trained(), ids=str)
def test_training_again_comes_close(widths: tuple[int, ...], network: Network) -> None:
    again = train(Inversion(), *train_networks.RANGE, widths, train_networks.SEED)
    assert error(network) / 2 < error(again) < 2 * error(network)
