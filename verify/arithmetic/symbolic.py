"""Attention with indeterminate weights and values: an identity that holds here holds for every input of that size.

A token is `x_i = (q_i, k_i, v_i)` and the head reads off its parts (`W_Q = (1,0,0)^T` and so on): every head on every
input has this form once its queries, keys and values are named. `q_i` and `k_j` are formal symbols; their product is a
formal score whose weight `a_i_j = E(q_i k_j)` is an indeterminate of its own, and the entries of `v_j` are
indeterminates too. Distinct pairs give independent indeterminates, so an equality of the resulting rational functions
is an equality for all scores and values whatever (over the reals, and over any field with an `E` that turns sums into
products).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import fmpq

from verify.arithmetic.formal import ONE, ZERO, FormalArithmetic, no_logarithm
from verify.arithmetic.interface import Column, Entry, Kind
from verify.arithmetic.ratio import Field, Ratio
from verify.errors import UnsupportedOperation

Monomial = tuple[str, ...]
"""A product of score symbols, sorted; the empty one stands for the number 1."""


class Form:
    """A polynomial in score symbols with rational coefficients: an entry of Q or K, or the formal part of a score."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Monomial, fmpq]) -> None:
        self.terms = {m: c for m, c in terms.items() if c}

    @staticmethod
    def of(x: Any) -> Form:
        """x as a form: a form itself or a rational."""
        return x if isinstance(x, Form) else Form({(): x})

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, (Form, fmpq)):
            return NotImplemented
        terms = dict(self.terms)
        for m, c in Form.of(other).terms.items():
            terms[m] = terms.get(m, ZERO) + c
        return Form(terms)

    __radd__ = __add__

    def __neg__(self) -> Form:
        return Form({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (Form, fmpq)):
            return NotImplemented
        terms: dict[Monomial, fmpq] = {}
        for m, c in self.terms.items():
            for n, d in Form.of(other).terms.items():
                product = tuple(sorted(m + n))
                terms[product] = terms.get(product, ZERO) + c * d
        return Form(terms)

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Form, fmpq)):
            return NotImplemented
        return self.terms == Form.of(other).terms

    __hash__ = None  # type: ignore[assignment]  # not needed, and a form equals the rational that it is


class Symbolic(FormalArithmetic):
    """Weights of the given monomials of score symbols, and values, as indeterminates over Q."""

    name = "symbolic"

    def __init__(self, weights: dict[Monomial, str], values: Sequence[str]) -> None:
        """`weights` names the weight of each score monomial that may occur; `values` are further indeterminates.

        The weight E(1) of the score 1 is always there, as the first indeterminate, `e`. Raises ValueError where two
        indeterminates have one name.
        """
        super().__init__()
        self._weights = {(): "e", **weights}
        names = [*self._weights.values(), *values]
        if len(set(names)) != len(names):
            raise ValueError("two indeterminates have the same name")
        self._scores = {name: monomial for monomial, name in self._weights.items()}
        self.field = Field(tuple(names))

    def symbol(self, name: str) -> Form:
        """The score symbol of this name."""
        return Form({(name,): ONE})

    def value(self, name: str) -> Ratio:
        """The indeterminate of this name."""
        return self.field.monomial({name: 1})

    def power(self, exponent: Any) -> Ratio:
        exponents: dict[str, int] = {}
        for monomial, coefficient in Form.of(exponent).terms.items():
            name = self._weights.get(monomial)
            if name is None or coefficient.q != 1:
                product = "*".join(monomial) or "1"
                raise UnsupportedOperation(f"symbolic arithmetic has no weight for the score {coefficient}*{product}")
            exponents[name] = exponents.get(name, 0) + int(coefficient.p)
        return self.field.monomial(exponents)

    def exponent_of(self, value: Entry) -> Any | None:
        exponents: dict[str, int] | None = {} if isinstance(value, fmpq) and value == 1 else None
        if isinstance(value, Ratio):
            exponents = value.monomial()
        if exponents is None or any(name not in self._scores for name in exponents):
            return None
        form = Form({self._scores[name]: fmpq(n) for name, n in exponents.items()})
        return form.terms.get((), ZERO) if set(form.terms) <= {()} else form

    def is_zero(self, value: Entry) -> bool:
        return not value

    def number(self, values: Column) -> Column:
        """Only a constant is a number here: no indeterminate value can be used in a score."""
        out = []
        for x in values:
            if isinstance(x, Form):
                raise UnsupportedOperation("symbolic arithmetic cannot use an indeterminate score as a number")
            known = x if isinstance(x, fmpq) else no_logarithm(x).rational()
            if known is None:
                raise UnsupportedOperation("symbolic arithmetic cannot use an indeterminate value in a score")
            out.append(known)
        return out


def universal_attention(n: int, width: int, copies: int = 1) -> tuple[Symbolic, list[Column]]:
    """The arithmetic and the columns `(q, k, v_0 ... v_(width-1))` of n tokens in general position.

    With `copies` > 1, that many independent inputs side by side. Besides the weights `a_i_j = E(q_i k_j)` of each copy,
    the arithmetic knows `E(q_i)` and `E(k_j)`, which occur where a query or a key is itself carried as a score.
    """
    weights: dict[Monomial, str] = {}
    scores: list[list[str]] = []
    values: list[list[list[str]]] = []
    for copy in range(copies):
        mark = f"{copy}_" if copies > 1 else ""
        q, k = [f"q_{mark}{i}" for i in range(n)], [f"k_{mark}{j}" for j in range(n)]
        weights |= {tuple(sorted((q[i], k[j]))): f"a_{mark}{i}_{j}" for i in range(n) for j in range(n)}
        weights |= {(name,): f"E_{name}" for name in (*q, *k)}
        scores += [q, k]
        values.append([[f"v_{mark}{j}_{c}" for j in range(n)] for c in range(width)])
    arithmetic = Symbolic(weights, [name for copy in values for column in copy for name in column])
    columns: list[Column] = []
    for copy in range(copies):
        columns += [[arithmetic.symbol(name) for name in column] for column in scores[2 * copy : 2 * copy + 2]]
        columns += [[arithmetic.value(name) for name in column] for column in values[copy]]
    return arithmetic, columns


def universal_tokens(
    n: int, kinds: Sequence[Kind], products: Sequence[tuple[int, int]] = ()
) -> tuple[Symbolic, list[Column]]:
    """The arithmetic and the columns of n tokens in general position, of these kinds (scores and values).

    A score column c holds the symbols `s_i_c`, each with a weight of its own; for each pair (a, b) of `products`, every
    product `s_i_a s_j_b` has a weight of its own too. A value column holds indeterminates. Raises UnsupportedOperation
    for a column of numbers: a number in general position is a score or a value.
    """
    names = [[f"{'s' if kind is Kind.SCORE else 'v'}_{i}_{c}" for i in range(n)] for c, kind in enumerate(kinds)]
    if Kind.NUMBER in kinds:
        raise UnsupportedOperation("in symbolic arithmetic a column holds either scores or values")
    scores = [names[c] for c, kind in enumerate(kinds) if kind is Kind.SCORE]
    weights: dict[Monomial, str] = {(name,): f"E_{name}" for column in scores for name in column}
    for a, b in products:
        weights |= {tuple(sorted((x, y))): f"E_{x}_{y}" for x in names[a] for y in names[b]}
    arithmetic = Symbolic(weights, [x for c, kind in enumerate(kinds) if kind is Kind.VALUE for x in names[c]])
    return arithmetic, [
        [arithmetic.symbol(x) if kind is Kind.SCORE else arithmetic.value(x) for x in names[c]]
        for c, kind in enumerate(kinds)
    ]
