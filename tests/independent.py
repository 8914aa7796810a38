"""Attention evaluated without the toolkit: plain fractions for kernel exp2, mpmath at high precision for kernel exp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath
from flint import arb

Rows = Sequence[Sequence[Fraction]]
Sees = Callable[[int, int], bool]


def everything(i: int, j: int) -> bool:
    return True


def times(X: Rows, W: Rows) -> list[list[Fraction]]:
    return [[sum((x * W[k][c] for k, x in enumerate(row)), Fraction(0)) for c in range(len(W[0]))] for row in X]


def head_exp2(X: Rows, W_Q: Rows, W_K: Rows, W_V: Rows, sees: Sees = everything) -> list[list[Fraction]]:
    """Rows of one head, weights 2^score, all scores integers."""
    Q, K, V = times(X, W_Q), times(X, W_K), times(X, W_V)
    out = []
    for i, q in enumerate(Q):
        weights = {}
        for j, k in enumerate(K):
            if sees(i, j):
                score = sum((a * b for a, b in zip(q, k, strict=True)), Fraction(0))
                assert score.denominator == 1
                weights[j] = Fraction(2) ** int(score)
        total = sum(weights.values())
        out.append([sum(w * V[j][c] for j, w in weights.items()) / total for c in range(len(V[0]))])
    return out


def head_exp(X: Rows, W_Q: Rows, W_K: Rows, W_V: Rows, digits: int, sees: Sees = everything) -> list[list[mpmath.mpf]]:
    """Rows of one head, weights e^score, at this many digits."""
    with mpmath.workdps(digits):
        Q, K, V = times(X, W_Q), times(X, W_K), times(X, W_V)
        out = []
        for i, q in enumerate(Q):
            weights = {}
            for j, k in enumerate(K):
                if sees(i, j):
                    score = sum((a * b for a, b in zip(q, k, strict=True)), Fraction(0))
                    weights[j] = mpmath.exp(mpmath.mpf(score.numerator) / score.denominator)
            total = mpmath.fsum(weights.values())
            out.append(
                [
                    mpmath.fsum(w * V[j][c].numerator / V[j][c].denominator for j, w in weights.items()) / total
                    for c in range(len(V[0]))
                ]
            )
        return out


def nearest(x: Fraction, bits: int = 0) -> Fraction:
    """The nearest multiple of 2^-bits, ties up."""
    unit = Fraction(2) ** bits
    return Fraction((x * unit + Fraction(1, 2)).__floor__()) / unit


def ends(ball: arb) -> tuple[Fraction, Fraction]:
    """The ends of a ball, exactly: its midpoint and radius are dyadic numbers, which no conversion rounds."""
    mid, rad = (Fraction(int(m)) * Fraction(2) ** int(e) for m, e in (x.man_exp() for x in (ball.mid(), ball.rad())))
    return mid - rad, mid + rad


def encloses(ball: arb, x: Fraction) -> bool:
    """Whether x is in the ball. (`arb.contains` would first round x to a ball of its own.)"""
    low, high = ends(ball)
    return low <= x <= high
