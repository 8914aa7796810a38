"""Carrying numbers through an attention layer that has no residual connection (repairs of R2, R4 and N6).

**Query-side transport.** Row i of an attention layer outputs an average of values that are the same for all rows; only the
weights depend on the row, and only through its query. So a vector `x_i` of r numbers must travel in the query. Give the
rows of the call r+1 roles: role c < r has the one-hot key `e_c` and the one-hot value `e_c`, the base role has key 0 and
its own value column. Row i then sees weight `E(x_i[c])` on each row of role c and `E(0) = 1` on each base row:

    output_i[c] = n_c E(x_i[c]) / Z_i,   output_i[base] = n_0 / Z_i,   so   E(x_i[c]) = (output_i[c] / n_c) / (output_i[base] / n_0).

The unknown normaliser `Z_i` cancels in the quotient: exact for every `x_i`, whatever the row's own role. The layer MLP needs division
and, to get `x_i[c]` itself, a logarithm. A number that is not a score (a sum of weights, say) travels as `log(x + c)`,
`c` a bound that makes it positive, and comes out as `E(...) - c`, without a logarithm in the layer MLP.

**Fused transport.** The same rows appended to real tokens with scores of their own: the normaliser changes, nothing else
does. If moreover a carried number shares its value column with the real tokens' values, the attention itself *adds* it to
their sum; this is how `proofs.aggregation` merges blocks.

Under a causal mask the r+1 synthetic rows come first, so that every row after them sees them all.

Smallest M: r+1 for plain transport, r+2 with at least one real token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofs.aggregation import require
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.oracle.oracle import Oracle
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire


@dataclass(frozen=True)
class Rows:
    """The roles of the rows of a call: `real` tokens first, then one row for each of r carried numbers, then base rows."""

    real: int
    carried: int
    base: int

    @property
    def total(self) -> int:
        """Rows of the call."""
        return self.real + self.carried + self.base

    def roles(self) -> list[tuple[int, int, int | None, bool]]:
        """The ranges of positions with their role: (start, stop, carried number or None, whether base)."""
        at = self.real
        ranges: list[tuple[int, int, int | None, bool]] = [(0, at, None, False)] if self.real else []
        for c in range(self.carried):
            ranges.append((at + c, at + c + 1, c, False))
        if self.base:
            ranges.append((at + self.carried, self.total, None, True))
        return ranges


def one_hot(position: int | None, width: int) -> list[int]:
    """The unit vector, or zero."""
    return [int(c == position) for c in range(width)]


def plain_transport(r: int, M: int, *, as_scores: bool) -> Oracle:
    """One call that carries r numbers for each of M tokens through an attention layer unchanged.

    With `as_scores` the numbers are scores and come back as scores (the MLP takes a logarithm); otherwise they are
    positive values, travel as logarithms and come back as values. Raises RequestError when M < r+1.
    """
    require(M, r + 1, "query-side transport")
    rows = Rows(0, r, M - r)
    kind = Kind.NUMBER if as_scores else Kind.VALUE

    def tokens(position: int | None, base: bool) -> TokenMap:
        return TokenMap.trace(
            [kind] * r,
            lambda x: [*(x if as_scores else [wire.log() for wire in x]), *one_hot(position, r), int(base)],
        )

    identity = RationalMatrix.identity(r)
    head = Head(
        RationalMatrix.blocks(2 * r + 1, r, [(0, 0, identity)]),
        RationalMatrix.blocks(2 * r + 1, r, [(r, 0, identity)]),
        RationalMatrix.blocks(2 * r + 1, r + 1, [(r, 0, RationalMatrix.identity(r + 1))]),
    )

    def recover(out: Sequence[Wire]) -> list[Wire]:
        weights = unnormalised(out[:r], out[r], rows.base)
        return [w.log() for w in weights] if as_scores else weights

    return Oracle(
        PositionalMap(tuple((start, stop, tokens(c, base)) for start, stop, c, base in rows.roles())),
        (Layer((head,), TokenMap.trace([Kind.VALUE] * (r + 1), recover)),),
    )


def unnormalised(averages: Sequence[Wire], base: Wire, base_rows: int) -> list[Wire]:
    """The sums of weights behind normalised averages, from the average of n base rows of weight 1: `n average / base`."""
    return [average / base * base_rows for average in averages]
