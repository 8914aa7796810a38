"""Transformers (Definition 2.2) and their direct evaluation, the yardstick of every construction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from verify.arithmetic.interface import Arithmetic, Column, Kind
from verify.errors import RequestError
from verify.transformer.attention import NO_MASK, Head, Mask
from verify.transformer.token_map import TokenMap


@dataclass(frozen=True)
class Layer:
    """One attention layer and its MLP.

    With H heads, head h sees the h-th slice of the input's columns, all slices of equal width; the head outputs stand
    side by side and go through `mlp` token by token. There is no residual connection, as in the paper; with
    `residual=True` (a change of the model) `mlp` sees the attention output followed by the layer's own input.
    """

    heads: tuple[Head, ...]
    mlp: TokenMap
    residual: bool = False

    @property
    def width(self) -> int:
        """Columns of the layer's input."""
        return sum(head.W_Q.height for head in self.heads)

    def attend(self, arithmetic: Arithmetic, columns: Sequence[Column], mask: Mask, copies: int = 1) -> list[Column]:
        """The layer's output on tokens with these columns (of `copies` inputs of one length)."""
        out: list[Column] = []
        at = 0
        for h, head in enumerate(self.heads):
            with _inside(f"head {h}" if len(self.heads) > 1 else ""):
                out += head.attend(arithmetic, columns[at : at + head.W_Q.height], mask, copies)
            at += head.W_Q.height
        if self.residual:
            out += list(columns)
        return self.mlp.apply(arithmetic, out)


@dataclass(frozen=True)
class Transformer:
    """A large transformer: layers, a mask and no input MLP of its own (apply one to X beforehand)."""

    layers: tuple[Layer, ...]
    mask: Mask = NO_MASK

    @cached_property
    def width(self) -> int:
        """Columns of the input, d."""
        return self.layers[0].width

    def evaluate(self, arithmetic: Arithmetic, columns: Sequence[Column]) -> list[Column]:
        """The direct evaluation of all layers on an input given by its columns."""
        current = list(columns)
        for number, layer in enumerate(self.layers):
            with _inside(f"layer {number}" if len(self.layers) > 1 else ""):
                current = layer.attend(arithmetic, current, self.mask)
            if number + 1 < len(self.layers):
                current = [
                    column if kind is Kind.NUMBER else arithmetic.number(column)
                    for column, kind in zip(current, layer.mlp.kinds, strict=True)
                ]
        return current


@contextmanager
def _inside(place: str) -> Iterator[None]:
    """Puts a place in front of where a wrong score was met (layers, heads, rows and columns count from 0)."""
    try:
        yield
    except RequestError as error:
        if not place:
            raise
        where = ", ".join(filter(None, (place, error.where)))
        raise RequestError(error.what, where=where, right=error.right) from None
