"""What every construction of the paper starts from: a large transformer, the length of its input, and the oracle's M."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.transformer.attention import NO_MASK, Head, Mask
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import TokenMap


@dataclass(frozen=True)
class Problem:
    """Simulate `transformer` on inputs of N tokens by oracles that read at most M.

    `kinds` are the kinds of the input's columns (numbers, except in universal checks). `value_bound` is a constant c
    with |v| < c for every entry v of every value vector: it belongs to the class of inputs (numbers of O(log N) bits),
    not to one input; constructions that use logarithms shift by it to stay positive.
    """

    N: int
    M: int
    transformer: Transformer
    kinds: tuple[Kind, ...]
    value_bound: Fraction = Fraction(1)
    input_bound: Fraction = Fraction(1)
    """|x| <= input_bound for every entry x of the input, again for the whole class of inputs."""
    oracle_layers: int = 1
    """L'."""
    oracle_heads: int = 1
    """H'."""

    @classmethod
    def single_head(
        cls, N: int, M: int, head: Head, mlp: TokenMap | None = None, *, mask: Mask = NO_MASK, bound: Fraction | int = 1
    ) -> Problem:
        """One layer with one head (L = H = 1) on inputs of numbers."""
        layer = Layer((head,), mlp or TokenMap.identity([Kind.VALUE] * head.width))
        kinds = (Kind.NUMBER,) * head.W_Q.height
        return cls(N, M, Transformer((layer,), mask), kinds, Fraction(bound))

    @classmethod
    def universal(cls, N: int, M: int, width: int = 1, *, mask: Mask = NO_MASK) -> Problem:
        """One head in general position: tokens (q, k, v) with `width` value columns (see `verify.arithmetic.symbolic`)."""
        d = width + 2
        head = Head(
            RationalMatrix.from_entries(d, 1, {(0, 0): 1}),
            RationalMatrix.from_entries(d, 1, {(1, 0): 1}),
            RationalMatrix.from_entries(d, width, {(2 + c, c): 1 for c in range(width)}),
        )
        layer = Layer((head,), TokenMap.identity([Kind.VALUE] * width))
        kinds = (Kind.SCORE, Kind.SCORE, *[Kind.VALUE] * width)
        return cls(N, M, Transformer((layer,), mask), kinds, Fraction(1))

    @property
    def d(self) -> int:
        """Columns of the input."""
        return len(self.kinds)

    @property
    def head(self) -> Head:
        """The only head, where L = H = 1."""
        return self.layer.heads[0]

    @property
    def layer(self) -> Layer:
        """The only layer, where L = 1."""
        return self.transformer.layers[0]

    @property
    def mlp(self) -> TokenMap:
        """The only layer's MLP, where L = 1."""
        return self.layer.mlp


def value_bound(input_bound: Fraction, W_V: RationalMatrix) -> Fraction:
    """A power of two above |v| for every entry v of x W_V, for all x with entries of size at most `input_bound`."""
    sums = (sum((abs(row[c]) for row in W_V.rows), Fraction(0)) for c in range(W_V.width))
    return power_of_two_above([input_bound * total for total in sums])


def power_of_two_above(values: Sequence[Fraction]) -> Fraction:
    """The least power of two (at least 1) that exceeds every |value|: a bound for numbers of that many bits."""
    largest = max((abs(v) for v in values), default=Fraction(0))
    bound = Fraction(1)
    while bound <= largest:
        bound *= 2
    return bound
