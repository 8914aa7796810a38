"""Transformers, heads side by side and layers in turn, against an evaluation with plain fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.independent import head_exp2, nearest
from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2, ExactE
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import OutOfRange, RequestError, UnsupportedOperation
from verify.transformer.attention import CAUSAL, NO_MASK, Head, Mask
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import TokenMap

NUMBER, VALUE = Kind.NUMBER, Kind.VALUE
identity = RationalMatrix.identity


def transformer(parameters, mask, residual, mlp, width):
    kinds = [VALUE] * width + [NUMBER] * (width * residual)
    token_map = TokenMap.trace(kinds, lambda x: mlp(x[:width], x[width:]))
    return Transformer(
        tuple(
            Layer(tuple(Head(*(RationalMatrix.of(W) for W in head)) for head in heads), token_map, residual)
            for heads in parameters
        ),
        mask,
    )


@settings(max_examples=80)
@given(st.data(), st.integers(1, 4), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.booleans())
def test_layers_and_heads_against_plain_fractions(data, n, H, m, L, residual):
    mask = data.draw(st.sampled_from([NO_MASK, CAUSAL, Mask(True, 2), Mask(True, 1, 1)]))
    small = st.integers(-2, 2).map(Fraction)
    table = lambda rows, columns: [[data.draw(small) for _ in range(columns)] for _ in range(rows)]  # noqa: E731
    d = H * m
    X = table(n, d)
    parameters = [[[table(m, m) for _ in range(3)] for _ in range(H)] for _ in range(L)]

    def mlp(attention, own):
        """Rounds to integers, so that the next layer's scores are integers; entries stay small."""
        return [
            (y * Fraction(1, 2) + (own[c] if residual else 0) - attention[c - 1]).round(0)
            for c, y in enumerate(attention)
        ]

    def sees(i, j):
        return not mask.causal or (j <= i and (mask.window is None or j < mask.sinks or i - j < mask.window))

    current = X
    for heads in parameters:
        parts = [head_exp2([row[h * m : (h + 1) * m] for row in current], *head, sees) for h, head in enumerate(heads)]
        attention = [[x for part in parts for x in part[i]] for i in range(n)]
        current = [
            [nearest(y / 2 + (current[i][c] if residual else 0) - row[c - 1]) for c, y in enumerate(row)]
            for i, row in enumerate(attention)
        ]
    large = transformer(parameters, mask, residual, mlp, d)
    assert large.width == d
    arithmetic = Exact2()
    output = large.evaluate(arithmetic, [arithmetic.numbers(list(column)) for column in zip(*X, strict=True)])
    assert [[Fraction(int(x.p), int(x.q)) for x in row] for row in zip(*output, strict=True)] == current


def single(mlp=None):
    return Layer((Head(identity(1), identity(1), identity(1)),), mlp or TokenMap.identity([VALUE]))


@pytest.mark.parametrize("repeated", [True, False])
def test_a_layer_may_occur_twice(repeated):
    """The same object in both places is still two layers: values must become numbers in between."""
    first = single()
    layers = (first, first if repeated else single())
    arithmetic = ExactE(1)
    with pytest.raises(UnsupportedOperation, match="irrational value in a score"):
        Transformer(layers).evaluate(arithmetic, [arithmetic.numbers([Fraction(1), Fraction(2)])])
    same = Transformer(layers).evaluate(arithmetic, [arithmetic.numbers([Fraction(2), Fraction(2)])])
    assert [arithmetic.equal(x, fmpq(2)) for x in same[0]] == [True, True]
    with working_precision(100):
        ball = Ball("exp", 100)
        ((one, two),) = Transformer(layers).evaluate(ball, [ball.numbers([Fraction(1), Fraction(2)])])
        assert 1 < one < two < 2


def test_errors_name_layer_and_head():
    half = TokenMap.trace([VALUE] * 2, lambda x: [x[0], x[1] * Fraction(1, 2)])
    heads = tuple(Head(identity(1), identity(1), identity(1)) for _ in range(2))
    large = Transformer((Layer(heads, half), Layer(heads, half)))
    arithmetic = Exact2()
    columns = [arithmetic.numbers([Fraction(1)] * 2)] * 2
    with pytest.raises(RequestError, match=r"^layer 1, head 1, row 0, column 0: score 1/4 is not an integer"):
        large.evaluate(arithmetic, columns)
    one = Transformer((single(),))
    with pytest.raises(RequestError, match=r"^row 0, column 0: score 1/4"):
        one.evaluate(arithmetic, [arithmetic.numbers([Fraction(1, 2)])])
    dividing = TokenMap.trace([VALUE], lambda x: [x[0] / (x[0] - x[0])])
    with pytest.raises(OutOfRange):
        Transformer((single(dividing),)).evaluate(arithmetic, [arithmetic.numbers([Fraction(1)])])
