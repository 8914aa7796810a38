"""Token-wise maps: tracing, inlining, cost, kinds and bounds, against plain fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.arithmetic.exact import Exact2
from verify.arithmetic.interface import Kind
from verify.transformer.token_map import PositionalMap, TokenMap

NUMBER, SCORE, VALUE = Kind.NUMBER, Kind.SCORE, Kind.VALUE
numbers = st.fractions(-4, 4, max_denominator=6)


def plain(column):
    return [Fraction(int(x.p), int(x.q)) for x in column]


def apply(token_map, *rows):
    arithmetic = Exact2()
    return [
        plain(c) for c in token_map.apply(arithmetic, [arithmetic.numbers(list(r)) for r in zip(*rows, strict=True)])
    ]


def formula(x):
    return [(x[0] + x[1]) * Fraction(1, 3) - 2, x[0] * x[1], (5 - x[1]).round(1), x[0] / 4]


@given(numbers, numbers)
def test_a_traced_map_computes_what_was_written(a, b):
    token_map = TokenMap.trace([NUMBER, NUMBER], formula)
    rounded = Fraction(((5 - b) * 2 + Fraction(1, 2)).__floor__(), 2)
    assert apply(token_map, (a, b)) == [[(a + b) / 3 - 2], [a * b], [rounded], [a / 4]]
    assert token_map.cost == 7
    assert token_map.operations == {"multiplication", "rounding"}


@given(numbers, numbers)
def test_inlining_is_composition(a, b):
    inner = TokenMap.trace([NUMBER, NUMBER], lambda x: [x[0] - x[1], x[1] * 2])
    outer = TokenMap.trace([NUMBER, NUMBER], lambda x: inner(inner(x)))
    assert apply(outer, (a, b)) == [[a - b - 2 * b], [4 * b]]
    assert outer.cost == 2 * inner.cost


@given(numbers, numbers)
def test_bound_is_a_bound(a, b):
    token_map = TokenMap.trace(
        [VALUE, VALUE], lambda x: [x[0] * 3 - x[1], (x[0] + x[1] * Fraction(-1, 2)).round(2), x[0] * x[1]]
    )
    size = max(abs(a), abs(b))
    assert max(abs(column[0]) for column in apply(token_map, (a, b))) <= token_map.bound(size)


def test_no_bound_on_a_quotient():
    with pytest.raises(ValueError, match="no bound"):
        TokenMap.trace([VALUE, VALUE], lambda x: [x[0] / x[1]]).bound(Fraction(1))


@pytest.mark.parametrize(
    ("kinds", "function"),
    [
        ([SCORE, SCORE], lambda x: [x[0] * x[1]]),
        ([SCORE, NUMBER], lambda x: [x[0] / x[1]]),
        ([SCORE], lambda x: [x[0].log()]),
        ([VALUE], lambda x: [x[0].exp()]),
        ([SCORE, VALUE], lambda x: [x[0] + x[1]]),
    ],
)
def test_scores_and_values_are_kept_apart(kinds, function):
    with pytest.raises(TypeError):
        TokenMap.trace(kinds, function)


def test_kinds_of_results():
    token_map = TokenMap.trace(
        [VALUE, NUMBER], lambda x: [x[0] + x[1], x[0].log(), x[1].exp(), x[0].number(), x[0].round(0)]
    )
    assert token_map.kinds == (VALUE, SCORE, VALUE, NUMBER, NUMBER)


def test_a_wire_of_another_map_is_refused():
    kept = []
    TokenMap.trace([NUMBER], lambda x: kept.append(x[0]) or [x[0]])
    with pytest.raises(TypeError, match="another map"):
        TokenMap.trace([NUMBER], lambda x: [x[0] + kept[0]])
    with pytest.raises(TypeError, match="another map"):
        TokenMap.trace([NUMBER], lambda x: [kept[0]])
    with pytest.raises(TypeError, match="another map"):
        TokenMap.trace([NUMBER], lambda x: [x[0], kept[0].constant(3)])


def test_positional_maps_cover_their_positions():
    one, two = (TokenMap.trace([NUMBER], lambda x, c=c: [x[0] + c]) for c in (1, 2))
    positional = PositionalMap(((0, 2, one), (2, 5, two)))
    arithmetic = Exact2()
    assert plain(positional.apply(arithmetic, [arithmetic.numbers([Fraction(0)] * 5)])[0]) == [1, 1, 2, 2, 2]
    assert positional.length == 5
    with pytest.raises(ValueError, match="follow each other"):
        PositionalMap(((0, 2, one), (3, 5, two)))


@given(numbers, numbers)
def test_relu_is_traced_counted_and_bounded(a, b):
    token_map = TokenMap.trace([NUMBER, NUMBER], lambda x: [(x[0] - x[1]).relu() + (x[1] - x[0]).relu()])
    assert apply(token_map, (a, b)) == [[abs(a - b)]]
    assert "relu" in token_map.operations and token_map.cost == 5
    with pytest.raises(TypeError, match="a score has no sign"):
        TokenMap.trace([SCORE], lambda x: [x[0].relu()])
