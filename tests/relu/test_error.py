"""Certificates: never below an error at any sampled point, within 1 % of an attained one, and different for a different network."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs.relu_networks import RANGES, Built, built, trained
from tests.relu.plain import DIGITS, error_at, exactly_above, forward, grid, networks, number
from verify.relu import library
from verify.relu.error import certify, certify_product, sampled
from verify.relu.network import Network, fraction
from verify.relu.pieces import vertices
from verify.relu.target import Inversion, Square, Target

targets = st.sampled_from(RANGES)


@settings(max_examples=80)
@given(networks(1, 1), targets, st.lists(st.fractions(0, 1), min_size=1, max_size=20))
def test_no_sampled_error_exceeds_the_certificate(
    network: Network, case: tuple[Target, Fraction, Fraction], shares: list[Fraction]
) -> None:
    """Any network: adversarial points are the corners, their neighbourhoods, and whatever hypothesis thinks of."""
    target, low, high = case
    certificate = certify(network, target, low, high)
    corners = [fraction(x) for x, _ in vertices(network, low, high)]
    near = [min(high, max(low, x + s)) for x in corners for s in (Fraction(-1, 10**9), Fraction(0), Fraction(1, 10**9))]
    for x in [*near, *(low + (high - low) * share for share in shares), *grid(low, high, 40)]:
        assert exactly_above(certificate.upper, error_at(network, target, x))
        assert sampled(network, target, x) <= certificate.upper
    assert certificate.tight


@pytest.mark.parametrize("made", built(), ids=lambda made: made.name)
def test_the_library_s_certificates_hold_and_are_attained(made: Built) -> None:
    certificate = made.certificate
    assert certificate.upper <= made.stated
    if made.target is None:
        found = error_of_product(made.network, *certificate.at)
        assert found == certificate.upper == made.stated
        return
    attained = error_at(made.network, made.target, certificate.at[0])
    with mpmath.workdps(DIGITS):
        assert attained * mpmath.mpf("1.01") >= number(certificate.upper)
    for x in grid(made.low, made.high, 300):
        assert exactly_above(certificate.upper, error_at(made.network, made.target, x))


def error_of_product(network: Network, x: Fraction, y: Fraction) -> Fraction:
    return abs(forward(network, x, y)[0] - x * y)


@settings(max_examples=40)
@given(networks(2, 1), st.lists(st.tuples(st.fractions(0, 1), st.fractions(0, 1)), min_size=5, max_size=30))
def test_products_are_certified_on_the_whole_rectangle(
    network: Network, shares: list[tuple[Fraction, Fraction]]
) -> None:
    certificate = certify_product(network, (-1, 2), (Fraction(1, 2), 3))
    assert error_of_product(network, *certificate.at) == certificate.upper == certificate.attained
    for s, t in [*shares, (0, 0), (0, 1), (1, 0), (1, 1)]:
        x, y = -1 + 3 * Fraction(s), Fraction(1, 2) + Fraction(5, 2) * Fraction(t)
        assert error_of_product(network, x, y) <= certificate.upper


@pytest.mark.parametrize("m", range(1, 6))
def test_the_square_and_the_product_have_exactly_their_errors(m: int) -> None:
    wanted = Fraction(1, 4 ** (m + 1))
    found = certify(library.square(m), Square(), 0, 1)
    assert found.attained <= wanted <= found.upper <= wanted * (1 + Fraction(1, 2**200))
    if m <= 3:
        assert certify_product(library.product(m), (0, 1), (0, 1)).upper == wanted


def weights_of(network: Network) -> list[tuple[int, int, int, Fraction]]:
    """All stored weights and biases, as (layer, row, position, value)."""
    return [
        (at, r, position, layer.bias[r] if position < 0 else layer.rows[r][position][1])
        for at, layer in enumerate(network.layers)
        for r in range(layer.outputs)
        for position in range(-1, len(layer.rows[r]))
    ]


@pytest.mark.parametrize("widths, network", trained(), ids=str)
def test_a_weight_off_by_one_unit_in_the_last_place_gets_another_certificate(
    widths: tuple[int, ...], network: Network
) -> None:
    """All weights of units that are ever active; the unit is 2^-24. Where the piece of largest error does not see the weight, its values do."""
    low, high = Fraction(0), Fraction(15, 16)
    original, path = certify(network, Inversion(), low, high), vertices(network, low, high)
    seen = 0
    for at, row, position, value in weights_of(network):
        changed = network.with_weight(at, row, position, value + Fraction(1, 2**24))
        if vertices(changed, low, high) == path:
            # The function is the same on the range: a dead unit, or a bias of one that never bends. Then the certificate must be too.
            assert certify(changed, Inversion(), low, high) == original
            continue
        new = certify(changed, Inversion(), low, high)
        seen += new != original
    assert seen >= network.units
