"""Quotients of sparse polynomials against evaluation at points with plain fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from verify.arithmetic.ratio import Field, Ratio

FIELD = Field(("t",))
POINTS = [Fraction(3, 2), Fraction(5, 3), Fraction(7, 11)]


class Tree:
    """A random expression: the Ratio and its value at each point (None where a divisor vanishes)."""

    def __init__(self, ratio: Ratio, values: list[Fraction]) -> None:
        self.ratio, self.values = ratio, values


def value(ratio: Ratio, at: Fraction) -> Fraction:
    point = fmpq(at.numerator, at.denominator)

    def evaluate(polynomial) -> Fraction:
        total = Fraction(0)
        for exponents, coefficient in polynomial.to_dict().items():
            total += Fraction(int(coefficient.p), int(coefficient.q)) * at ** int(exponents[0])
        return total

    assert point == fmpq(at.numerator, at.denominator)
    return evaluate(ratio.num) * at**ratio.shift / evaluate(ratio.den)


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> Tree:
    if depth == 0 or draw(st.booleans()):
        n, c = draw(st.integers(-6, 6)), draw(st.fractions(-3, 3, max_denominator=4))
        ratio = FIELD.power(n) * fmpq(c.numerator, c.denominator)
        return Tree(ratio, [c * at**n for at in POINTS])
    a, b = draw(trees(depth=depth - 1)), draw(trees(depth=depth - 1))
    operation = draw(st.sampled_from("+-*/"))
    if operation == "/" and (not b.ratio or 0 in b.values):
        operation = "+"
    match operation:
        case "+":
            return Tree(a.ratio + b.ratio, [x + y for x, y in zip(a.values, b.values, strict=True)])
        case "-":
            return Tree(a.ratio - b.ratio, [x - y for x, y in zip(a.values, b.values, strict=True)])
        case "*":
            return Tree(a.ratio * b.ratio, [x * y for x, y in zip(a.values, b.values, strict=True)])
        case _:
            return Tree(a.ratio / b.ratio, [x / y for x, y in zip(a.values, b.values, strict=True)])


@given(trees())
def test_arithmetic_against_evaluation(tree):
    assert [value(tree.ratio, at) for at in POINTS] == tree.values


@given(trees(), trees())
def test_equality_is_equality_of_functions(a, b):
    assert (a.ratio == b.ratio) == (not (a.ratio - b.ratio))
    if a.values != b.values:
        assert a.ratio != b.ratio
    assert a.ratio + b.ratio == b.ratio + a.ratio
    assert (a.ratio + b.ratio) - b.ratio == a.ratio
    if b.ratio:
        assert a.ratio / b.ratio * b.ratio == a.ratio


def test_known_identities_and_differences():
    t = FIELD.power(1)
    one = FIELD.constant(fmpq(1))
    assert (t * t - one) / (t - one) == t + one
    assert (t * t - one) / (t - one) != t + fmpq(2)
    assert not (t / t - one)
    assert FIELD.power(10**15) / FIELD.power(10**15 - 1) == t
    assert FIELD.power(-(10**15)) * FIELD.power(10**15) == one


def test_huge_exponents_cancel_without_a_common_divisor():
    """Products of normalisers with exponents of 10^12 stay products, and divide out again."""
    big = [sum((FIELD.power(10**12 * k + s) for k in range(1, 40)), FIELD.constant(fmpq(1))) for s in (0, 7, 11)]
    product = big[0] * big[1] * big[2]
    assert product / big[1] == big[2] * big[0]
    assert product / big[0] / big[1] / big[2] == FIELD.constant(fmpq(1))


@given(st.integers(-50, 50), st.fractions(-5, 5, max_denominator=7))
def test_rational_and_monomial(n, c):
    t = FIELD.power(1)
    element = (t + fmpq(1)) / (t + fmpq(1)) * fmpq(c.numerator, c.denominator)
    assert element.rational() == fmpq(c.numerator, c.denominator)
    assert (FIELD.power(n) * (t + fmpq(2)) / (t + fmpq(2))).monomial() == ({"t": n} if n else {})
    assert (t + fmpq(1)).rational() is None
    assert (t + fmpq(1)).monomial() is None
    assert (t * fmpq(2)).monomial() is None


def test_zero_has_no_inverse():
    t = FIELD.power(1)
    with pytest.raises(ZeroDivisionError):
        t / (t - t)
