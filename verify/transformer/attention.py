"""Attention as the paper defines it: heads (Definition 2.1) and the four masks (Definitions 2.3 to 2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verify.arithmetic.interface import Arithmetic, Column, Visible
from verify.arithmetic.matrix import RationalMatrix


@dataclass(frozen=True)
class Mask:
    """Which columns j a row i sees; rows and columns count from 0 here, from 1 in the paper.

    * no mask: every j;
    * causal (Definition 2.3): j <= i;
    * window r (Definition 2.4): i - r < j <= i;
    * window r with s sinks (Definition 2.5): j <= i, and j < s or i - r < j.
    """

    causal: bool = False
    window: int | None = None
    sinks: int = 0

    def __post_init__(self) -> None:
        if self.window is None and not self.sinks:
            return
        if not self.causal or self.window is None or self.window < 1 or self.sinks < 0:
            raise ValueError("a window has at least one column and is causal; sinks (not fewer than 0) need a window")

    def row(self, i: int, n: int) -> Sequence[int]:
        """The columns that row i of n sees, in increasing order."""
        if not self.causal:
            return range(n)
        if self.window is None:
            return range(i + 1)
        start = max(0, i - self.window + 1)
        return range(i + 1) if start <= self.sinks else [*range(self.sinks), *range(start, i + 1)]

    def visible(self, n: int, copies: int = 1) -> Visible:
        """`row(i, n)` for every i of an input of n tokens, the same for each copy."""
        return Visible([self.row(i, n) for i in range(n)], copies)


NO_MASK = Mask()
CAUSAL = Mask(causal=True)


@dataclass(frozen=True)
class Head:
    """One attention head: `W_Q`, `W_K` (d x m) and `W_V` (d x m'), no scaling of the scores (Definition 2.1)."""

    W_Q: RationalMatrix
    W_K: RationalMatrix
    W_V: RationalMatrix

    def __post_init__(self) -> None:
        if self.W_Q.width != self.W_K.width:
            raise ValueError("W_Q and W_K must have the same width")
        if not self.W_Q.height == self.W_K.height == self.W_V.height:
            raise ValueError("W_Q, W_K and W_V must have the same height")

    @property
    def width(self) -> int:
        """Columns of the output."""
        return self.W_V.width

    def attend(self, arithmetic: Arithmetic, columns: Sequence[Column], mask: Mask, copies: int = 1) -> list[Column]:
        """The columns of the head's output on the tokens with these columns: row i is sum_j a_ij v_j / sum_j a_ij.

        With several `copies`, inputs of one length stand one below the other, and each is attended by itself.
        """
        length = len(columns[0]) // copies
        Q, K, V = (arithmetic.project(columns, W) for W in (self.W_Q, self.W_K, self.W_V))
        scores = arithmetic.scores(Q, K, mask.visible(length, copies))
        return arithmetic.normalise(arithmetic.weights(scores), V)
