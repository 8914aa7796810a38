"""Seeded sample instances: ordinary ones and the edges (equal scores, zero rows, huge and tiny scores, N = 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from random import Random

from verify.arithmetic.matrix import RationalMatrix
from verify.claims.compare import Instance
from verify.oracle.problem import Problem, power_of_two_above, value_bound
from verify.transformer.attention import NO_MASK, Head, Mask


def sample(N: int, M: int, d: int, seed: int, *, flavour: str = "ordinary", mask: Mask = NO_MASK) -> Instance:
    """One instance of a single head with integer entries.

    Flavours: `ordinary`; `equal` (W_Q = 0: all scores are equal); `zero` (W_V = 0: every output row is zero);
    `huge` and `tiny` (scores around +400 and -400 on part of the pairs).
    """
    random = Random(f"{N} {M} {d} {seed} {flavour}")
    W_Q, W_K, W_V = (
        RationalMatrix.of([[random.randint(-size, size) for _ in range(d)] for _ in range(d)]) for size in (1, 1, 2)
    )
    X = [[Fraction(random.randint(-2, 2)) for _ in range(N)] for _ in range(d)]
    match flavour:
        case "equal":
            W_Q = RationalMatrix.zero(d, d)
        case "zero":
            W_V = RationalMatrix.zero(d, d)
        case "huge" | "tiny":
            sign = 1 if flavour == "huge" else -1
            W_Q, W_K = (
                RationalMatrix.identity(d),
                RationalMatrix.of([[sign * 100 * int(i == j) for j in range(d)] for i in range(d)]),
            )
        case "ordinary":
            pass
        case _:
            raise ValueError(f"unknown flavour {flavour}")
    head = Head(W_Q, W_K, W_V)
    largest = power_of_two_above([x for column in X for x in column])
    return Instance(Problem.single_head(N, M, head, mask=mask, bound=value_bound(largest, W_V)), tuple(map(tuple, X)))


def samples(sizes: Sequence[tuple[int, int, int]], *, mask: Mask = NO_MASK) -> Iterator[Instance]:
    """For each (N, M, d), one instance of every flavour."""
    for seed, (N, M, d) in enumerate(sizes):
        for flavour in ("ordinary", "equal", "zero", "huge", "tiny"):
            yield sample(N, M, d, seed, flavour=flavour, mask=mask)
