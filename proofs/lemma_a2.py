"""Lemma A.2: one single-head layer outputs the sum of all tokens, in every row.

As printed: constant queries and keys, so that all weights are 1/N, and values `N x_i` (the paper prints `k_i` for `v_i`).
The statement speaks of a 1 x d output; a transformer's output is N x d, and every row of it is the sum (comment R8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proofs.registry import REGISTRY
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.oracle.oracle import Oracle
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire

A2 = REGISTRY.add(
    Claim(
        "A.2",
        "Sum of all tokens",
        "One single-layer single-head transformer outputs, in every row, the sum of all tokens of its input.",
        "Lemma A.2, Appendix A",
    )
)


@part_of("A.2")
def token_sum(rows: int, width: int, then: Callable[[list[Wire]], Sequence[Wire]] = lambda total: total) -> Oracle:
    """The oracle whose every output row is `then(sum of its input rows)`.

    All scores are 0, so every weight is 1/rows; the layer MLP multiplies by the number of rows, which is known. No
    constant column is needed, because the constant queries may be zero.
    """
    kinds = [Kind.VALUE] * width
    nothing = RationalMatrix.zero(width, 1)
    head = Head(nothing, nothing, RationalMatrix.identity(width))
    mlp = TokenMap.trace(kinds, lambda mean: then([x * rows for x in mean]))
    return Oracle(PositionalMap(((0, rows, TokenMap.identity(kinds)),)), (Layer((head,), mlp),))
