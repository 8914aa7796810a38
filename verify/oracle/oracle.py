"""The small transformer that a construction may call, parameters included (Section 2.1: they are part of the query)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from verify.arithmetic.interface import Arithmetic, Column, Kind
from verify.transformer.attention import NO_MASK, Mask
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap


@dataclass(frozen=True, eq=False)
class Oracle:
    """A transformer with `len(layers)` layers on inputs of a fixed number of rows (at most M, which the machine checks).

    `input_map` is the input MLP, the only one that may depend on the position.
    """

    input_map: PositionalMap
    layers: tuple[Layer, ...]
    mask: Mask = NO_MASK

    @property
    def rows(self) -> int:
        """Tokens it reads."""
        return self.input_map.length

    @property
    def heads(self) -> int:
        """Heads of the widest layer, H'."""
        return max(len(layer.heads) for layer in self.layers)

    @cached_property
    def token_maps(self) -> tuple[PositionalMap | TokenMap, ...]:
        """The input MLP and the layer MLPs."""
        return (self.input_map, *(layer.mlp for layer in self.layers))

    @property
    def operations(self) -> frozenset[str]:
        """Operations beyond affine maps that its MLPs use."""
        return frozenset().union(*(token_map.operations for token_map in self.token_maps))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of the output columns."""
        return self.layers[-1].mlp.kinds

    @cached_property
    def embedding(self) -> int:
        """The embedding dimension: columns of the widest matrix that enters or leaves an attention layer."""
        widths = [len(self.input_map.kinds)]
        for layer in self.layers:
            widths += [layer.width, sum(head.width for head in layer.heads), len(layer.mlp.outputs)]
        return max(widths)

    @cached_property
    def parameters(self) -> int:
        """Numbers that describe it: three square matrices for each head (width: the embedding over H'), and the MLPs' constants."""
        matrices = sum(3 * len(layer.heads) * (-(-self.embedding // len(layer.heads))) ** 2 for layer in self.layers)
        return matrices + sum(token_map.parameters for token_map in self.token_maps)

    def check_kinds(self, inputs: Sequence[Kind]) -> None:
        """Raises TypeError where a score is used as a value or a value as a score, anywhere inside."""
        for start, stop, token_map in self.input_map.ranges:
            if stop > start and not fits(inputs, token_map.inputs):
                raise TypeError("the input map was traced for other kinds of columns")
        kinds = self.input_map.kinds
        for layer in self.layers:
            if layer.width != len(kinds):
                raise TypeError(f"a layer reads {layer.width} columns and gets {len(kinds)}")
            at = 0
            for head in layer.heads:
                part = kinds[at : at + head.W_Q.height]
                at += head.W_Q.height
                if any(part[i] is Kind.VALUE for i in (*head.W_Q.used_rows, *head.W_K.used_rows)):
                    raise TypeError("a value enters a score without log or number")
                if any(part[i] is Kind.SCORE for i in head.W_V.used_rows):
                    raise TypeError("a score is averaged as if it were a value")
            attended = [Kind.VALUE] * sum(head.width for head in layer.heads)
            if not fits([*attended, *(kinds if layer.residual else ())], layer.mlp.inputs):
                raise TypeError("a layer MLP was traced for other kinds of columns")
            kinds = layer.mlp.kinds

    def run(self, arithmetic: Arithmetic, columns: Sequence[Column], copies: int = 1) -> list[Column]:
        """The oracle's answer on tokens with these columns; with `copies`, its answers on so many inputs, stacked."""
        current = self.input_map.apply(arithmetic, columns, copies)
        for layer in self.layers:
            current = layer.attend(arithmetic, current, self.mask, copies)
        return current


def fits(given: Sequence[Kind], wanted: Sequence[Kind]) -> bool:
    """Whether columns of the given kinds may enter a map traced for the wanted ones: a number may stand for anything."""
    return len(given) == len(wanted) and all(g is w or g is Kind.NUMBER for g, w in zip(given, wanted, strict=True))
