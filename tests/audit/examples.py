"""Instances and programs that the tests of the audit share."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

import proofs  # noqa: F401 (fills the registry)
from proofs.registry import REGISTRY
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.audit.audit import Subject
from verify.oracle.problem import Problem, power_of_two_above, value_bound
from verify.transformer.attention import CAUSAL, NO_MASK, Head, Mask
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import TokenMap

Rows = list[list[Fraction]]


def subject(
    kernel: Any, X: Rows, W: tuple[Rows, Rows, Rows], M: int, construction: str, mask: Mask = NO_MASK
) -> Subject:
    """One head on tokens X, simulated by a construction of the registry with oracles of length M."""
    head = Head(*(RationalMatrix.of(rows) for rows in W))
    columns = tuple(tuple(column) for column in zip(*X, strict=True))
    transformer = Transformer((Layer((head,), TokenMap.identity([Kind.VALUE] * head.width)),), mask)
    largest = power_of_two_above([x for row in X for x in row])
    problem = Problem(len(X), M, transformer, (Kind.NUMBER,) * len(X[0]), value_bound(largest, head.W_V), largest)
    return Subject(kernel, transformer, columns, REGISTRY.constructions[construction].build(problem, "calls"), M)


def matrices(entries: Any, d: int) -> Any:
    """d x d matrices of such entries."""
    return st.lists(st.lists(entries, min_size=d, max_size=d), min_size=d, max_size=d)


halves = st.integers(-4, 4).map(lambda n: Fraction(n, 2))
whole = st.integers(-2, 2).map(Fraction)


@st.composite
def subjects(draw: Any, kernel: str = "exp") -> Subject:
    """Small instances of every kind: N from 1 to 7, M that divides N or not, causal or not, any construction that serves."""
    d = draw(st.integers(1, 2))
    entries = halves if kernel == "exp" else whole
    X = draw(st.lists(st.lists(entries, min_size=d, max_size=d), min_size=1, max_size=7))
    W = tuple(draw(matrices(entries, d)) for _ in range(3))
    mask = draw(st.sampled_from([NO_MASK, NO_MASK, CAUSAL]))
    construction = draw(st.sampled_from(["repaired", "chained", "per-query", "residual"]))
    return subject(kernel, X, W, draw(st.integers(7, 9) | st.just(6 if d == 1 else 7)), construction, mask)
