"""What a rounded construction is compared with: attention without any oracle, in the same format.

* `direct`: the definition, one softmax a row;
* `merged`: blocks of keys, each with its largest score, its sum of weights and its weighted values, merged one after the other
  by log-sum-exp rescaling, as online-softmax kernels do (Milakov and Gimelshein 2018; Dao et al. 2022). Every step is
  rounded in the format itself (the products and sums of scores in the accumulation format).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import gmpy2

from verify.arithmetic.interface import Column
from verify.arithmetic.rounded import Rounded
from verify.transformer.model import Transformer


def direct(arithmetic: Rounded, transformer: Transformer, columns: Sequence[Sequence[Fraction]]) -> list[Column]:
    """The transformer as it stands, every operation rounded."""
    return transformer.evaluate(arithmetic, [arithmetic.numbers(column) for column in columns])


def merged(
    arithmetic: Rounded, transformer: Transformer, columns: Sequence[Sequence[Fraction]], block: int
) -> list[Column]:
    """The same with the keys in blocks of `block` tokens, merged by their largest scores."""
    current: list[Column] = [arithmetic.numbers(column) for column in columns]
    for layer in transformer.layers:
        out: list[Column] = []
        at = 0
        for head in layer.heads:
            part = current[at : at + head.W_Q.height]
            at += head.W_Q.height
            Q, K, V = (arithmetic.project(part, W) for W in (head.W_Q, head.W_K, head.W_V))
            scores = arithmetic.scores(Q, K, transformer.mask.visible(len(part[0])))
            rows = [_merged_row(arithmetic, seen, row, V, block) for seen, row in scores]
            out += [list(column) for column in zip(*rows, strict=True)]
        current = layer.mlp.apply(arithmetic, out + current if layer.residual else out)
    return current


def _merged_row(
    arithmetic: Rounded, seen: Sequence[int], scores: Sequence[Any], V: Sequence[Column | None], block: int
) -> list[Any]:
    """One row: running maximum, sum of weights and weighted values, rescaled whenever the maximum moves."""
    zero = gmpy2.mpfr(0)
    top, total, sums = None, zero, [zero] * len(V)
    for start in range(0, len(seen), block):
        here = range(start, min(start + block, len(seen)))
        best = max(scores[p] for p in here)
        new = best if top is None else max(top, best)
        if top is not None and new != top:
            (shrink,) = arithmetic.exp(arithmetic.subtract([top], [new]))
            (total,) = arithmetic.multiply([total], [shrink])
            sums = arithmetic.multiply(sums, [shrink] * len(sums))
        top = new
        weights = arithmetic.exp(arithmetic.subtract([scores[p] for p in here], [top] * len(here)))
        for w, p in zip(weights, here, strict=True):
            (total,) = arithmetic.add([total], [w])
            values = [zero if column is None else column[seen[p]] for column in V]
            sums = arithmetic.add(sums, arithmetic.multiply([w] * len(values), values))
    result: list[Any] = arithmetic.divide(sums, [total] * len(sums))
    return result
