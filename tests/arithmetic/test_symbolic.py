"""Indeterminate weights and values: forms against plain polynomials, and nothing identified that is different."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.arithmetic.exact import Exact2
from verify.arithmetic.formal import LogScore
from verify.arithmetic.interface import Kind
from verify.arithmetic.ratio import Ratio
from verify.arithmetic.symbolic import Form, Symbolic, universal_attention, universal_tokens
from verify.errors import OutOfRange, UnsupportedOperation
from verify.oracle.problem import Problem
from verify.transformer.attention import CAUSAL, NO_MASK, Mask
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import TokenMap

NUMBER, SCORE, VALUE = Kind.NUMBER, Kind.SCORE, Kind.VALUE


def as_fmpq(x: Fraction | int) -> fmpq:
    return fmpq(x.numerator, x.denominator)


def as_fraction(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


def at(ratio: Ratio | fmpq, point: dict[str, Fraction]) -> Fraction:
    """The value of a rational function where its indeterminates have these values (1 where none is given)."""
    if isinstance(ratio, fmpq):
        return as_fraction(ratio)
    names = ratio.field.generators
    numbers = tuple(as_fmpq(point.get(name, Fraction(1))) for name in names)
    top, bottom = (as_fraction(polynomial(*numbers)) for polynomial in (ratio.num, ratio.den))
    return top / bottom * point.get(names[0], Fraction(1)) ** ratio.shift


# --- forms ----------------------------------------------------------------------------------------------------------------

SYMBOLS = ("p", "q", "r")


@st.composite
def forms(draw, depth: int = 3):
    """A form and its values at two points."""
    if depth == 0 or draw(st.booleans()):
        if draw(st.booleans()):
            c = draw(st.fractions(-3, 3, max_denominator=5))
            return as_fmpq(c), (c, c)
        which = draw(st.integers(0, 2))
        return Form({(SYMBOLS[which],): fmpq(1)}), (Fraction(which + 2), Fraction(1, which + 3))
    (x, u), (y, v) = draw(forms(depth - 1)), draw(forms(depth - 1))
    match draw(st.sampled_from("+-*n")):
        case "+":
            return x + y, tuple(a + b for a, b in zip(u, v, strict=True))
        case "-":
            return x - y, tuple(a - b for a, b in zip(u, v, strict=True))
        case "*":
            return x * y, tuple(a * b for a, b in zip(u, v, strict=True))
        case _:
            return -x, tuple(-a for a in u)


def form_at(form: Form, place: int) -> Fraction:
    total = Fraction(0)
    for monomial, c in form.terms.items():
        term = as_fraction(c)
        for name in monomial:
            which = SYMBOLS.index(name)
            term *= Fraction(which + 2) if place == 0 else Fraction(1, which + 3)
        total += term
    return total


@given(forms())
def test_forms_are_polynomials(drawn):
    x, values = drawn
    form = Form.of(x)
    assert (form_at(form, 0), form_at(form, 1)) == values
    assert all(form.terms.values()) and all(list(m) == sorted(m) for m in form.terms)
    assert bool(form) is bool(form.terms)


@given(forms(), forms())
def test_forms_are_equal_as_polynomials(one, other):
    (x, u), (y, v) = one, other
    x, y = Form.of(x), Form.of(y)
    assert (x == y) is (not (x - y))
    assert x + y == y + x and x * y == y * x and (x + y) * (x - y) == x * x - y * y
    if u != v:
        assert x != y
    assert x + fmpq(1) != x


def test_forms_and_rationals():
    p = Form({("p",): fmpq(1)})
    assert p - p == fmpq(0) and p - p + fmpq(3) == fmpq(3) and fmpq(3) == p - p + fmpq(3)
    assert p != fmpq(0) and p * fmpq(2) == p + p and fmpq(2) - p == -(p - fmpq(2))
    with pytest.raises(TypeError):
        p * 1.5


# --- indeterminates ---------------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.integers(1, 3), st.integers(1, 2), st.integers(1, 3))
def test_different_indeterminates_are_never_identified(n, width, copies):
    arithmetic, columns = universal_attention(n, width, copies)
    assert len(columns) == copies * (2 + width) and all(len(column) == n for column in columns)
    elements = [arithmetic.power(fmpq(1))]
    for copy in range(copies):
        q, k, *values = columns[copy * (2 + width) : (copy + 1) * (2 + width)]
        elements += [arithmetic.weight(x * y) for x in q for y in k]
        elements += arithmetic.exp(q) + arithmetic.exp(k)
        elements += [x for column in values for x in column]
    assert len(elements) == len(arithmetic.field.generators)
    for a, b in combinations(elements, 2):
        assert not arithmetic.equal(a, b)
    product = elements[0]
    for x in elements[1:]:
        product = product * x
    assert product.num.total_degree() == len(elements)


def test_copies_do_not_meet():
    arithmetic, columns = universal_attention(2, 1, 2)
    q, _, _, _, other_k, _ = columns
    with pytest.raises(UnsupportedOperation, match="no weight"):
        arithmetic.weight(q[0] * other_k[0])


@pytest.mark.parametrize(
    ("weights", "values"),
    [({("q",): "x"}, ["x"]), ({}, ["e"]), ({("q",): "e"}, []), ({("q",): "x", ("p",): "x"}, []), ({}, ["v", "v"])],
)
def test_one_name_for_two_indeterminates_is_refused(weights, values):
    with pytest.raises(ValueError, match="same name"):
        Symbolic(weights, values)


def test_tokens_in_general_position():
    arithmetic, (s, v, w) = universal_tokens(2, [SCORE, VALUE, SCORE], products=[(0, 2), (0, 0)])
    weights = [arithmetic.weight(x) for x in (*s, *w, s[0] * w[1], s[1] * w[0], s[0] * w[0], s[0] * s[1], s[0] * s[0])]
    for a, b in combinations([*weights, *v], 2):
        assert not arithmetic.equal(a, b)
    with pytest.raises(UnsupportedOperation, match="no weight"):
        arithmetic.weight(w[0] * w[1])
    with pytest.raises(UnsupportedOperation, match="scores or values"):
        universal_tokens(2, [NUMBER])


# --- weights and logarithms -------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-4, 4), min_size=5, max_size=5), st.data())
def test_the_weight_of_a_sum_is_a_product(n, data):
    arithmetic, (q, k, _) = universal_attention(2, 1)
    symbols = [q[0] * k[0], q[0] * k[1], q[1], k[0]]
    score = fmpq(n[4])
    for symbol, c in zip(symbols, n, strict=False):
        score = score + symbol * fmpq(c)
    point = {name: Fraction(data.draw(st.integers(2, 9))) for name in ("e", "a_0_0", "a_0_1", "E_q_1", "E_k_0")}
    expected = Fraction(1)
    for name, c in zip(("a_0_0", "a_0_1", "E_q_1", "E_k_0", "e"), n, strict=True):
        expected *= point[name] ** c
    weight = arithmetic.weight(score)
    assert at(weight, point) == expected
    (back,) = arithmetic.log([weight])
    assert arithmetic.equal_scores(back, score) and arithmetic.equal(back, score)


def test_weights_that_are_missing():
    arithmetic, (q, k, _) = universal_attention(2, 1)
    for score in (q[0] * q[1], k[0] * k[0], q[0] * fmpq(1, 2), q[0] * k[0] * k[1], fmpq(1, 2), q[0] + fmpq(1, 3)):
        with pytest.raises(UnsupportedOperation, match="no weight"):
            arithmetic.weight(score)


def test_what_is_no_number():
    arithmetic, (q, k, v) = universal_attention(2, 1)
    assert arithmetic.number([v[0] / v[0] * fmpq(5), fmpq(2)]) == [fmpq(5), fmpq(2)]
    (formal,) = arithmetic.log([v[0]])
    for wrong in (v[0], v[0] + v[1], arithmetic.weight(q[0]), q[0], q[0] * k[0], formal):
        with pytest.raises(UnsupportedOperation):
            arithmetic.number([wrong])
    for question in (lambda: arithmetic.round_to_grid([v[0]], 0), lambda: arithmetic.enclose(v[0], 53)):
        with pytest.raises(UnsupportedOperation):
            question()


def test_scores_are_equal_as_scores():
    """Also where a check compares outputs of kind score by `equal`."""
    arithmetic, (q, k, v) = universal_attention(2, 1)
    assert arithmetic.equal(q[0] + k[0], k[0] + q[0]) and not arithmetic.equal(q[0], q[1])
    one, two = arithmetic.log([v[0] * v[1]])[0], arithmetic.log([v[0]])[0] + arithmetic.log([v[1]])[0]
    assert isinstance(one, LogScore)
    assert arithmetic.equal(one, two) and not arithmetic.equal(one, arithmetic.log([v[0]])[0])
    (plain,) = arithmetic.log([arithmetic.weight(q[0]) * 2])
    assert not arithmetic.equal(plain, q[0]) and arithmetic.equal(plain - arithmetic.log([fmpq(2)])[0], q[0])


def test_weights_may_cancel_symbolically_and_then_there_is_no_average():
    arithmetic, (_, _, v) = universal_attention(2, 1)
    scores = arithmetic.log([v[0], -v[0]])
    with pytest.raises(OutOfRange, match="row 0"):
        arithmetic.normalise(arithmetic.weights([[(0, scores[0]), (1, scores[1])]]), [v])


# --- attention with copies ---------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(1, 3), st.sampled_from([NO_MASK, CAUSAL, Mask(True, 1), Mask(True, 2, 1)]), st.data())
def test_several_heads_side_by_side(n, mask, data):
    """Two heads on two independent inputs, one value column each, at random points."""
    copies = 2
    arithmetic, columns = universal_attention(n, 1, copies)
    head = Problem.universal(n, n).head
    layer = Layer((head,) * copies, TokenMap.trace([VALUE] * copies, lambda x: [x[0], x[1], x[0] * x[1]]))
    output = Transformer((layer,), mask).evaluate(arithmetic, columns)
    point, expected = {}, []
    positive, anything = st.fractions(Fraction(1, 5), 5, max_denominator=5), st.fractions(-5, 5, max_denominator=5)
    for copy in range(copies):
        a = [[data.draw(positive) for _ in range(n)] for _ in range(n)]
        v = [data.draw(anything) for _ in range(n)]
        point |= {f"a_{copy}_{i}_{j}": a[i][j] for i in range(n) for j in range(n)}
        point |= {f"v_{copy}_{j}_0": v[j] for j in range(n)}
        seen = [[j for j in range(n) if not mask.causal or j in mask.row(i, n)] for i in range(n)]
        expected.append([sum(a[i][j] * v[j] for j in seen[i]) / sum(a[i][j] for j in seen[i]) for i in range(n)])
    expected.append([x * y for x, y in zip(*expected, strict=True)])
    assert [[at(x, point) for x in column] for column in output] == expected


@given(st.integers(-9, 9), st.integers(1, 9))
def test_symbolic_and_exact_agree_on_rationals(a, b):
    arithmetic, _ = universal_attention(1, 1)
    exact = Exact2()
    columns = [[fmpq(a), fmpq(b)], [fmpq(b), fmpq(b)]]
    for operation in ("add", "subtract", "multiply", "divide"):
        assert getattr(arithmetic, operation)(*columns) == getattr(exact, operation)(*columns)
    with pytest.raises(OutOfRange):
        arithmetic.divide(columns[0], [fmpq(1), fmpq(0)])


def test_there_is_no_relu_without_an_order():
    with pytest.raises(UnsupportedOperation, match="no order"):
        Symbolic.relu(object.__new__(Symbolic), [])
