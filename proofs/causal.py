"""Calls of a causal oracle that add up blocks of keys: what Theorems B.5 and D.1 are built from.

Under a causal mask a row sees only the rows before it and itself. So the synthetic rows of a call come first: base rows, then one row
for each carried number (the one for A first, so that no row divides by nothing), then the rows with tokens of their own. Row p of these
sees all synthetic rows and the keys of the rows 0, ..., p.

* **forward**: row p holds a query and the key at the same position of another block, so the query sees the keys up to its own position;
* **reverse** (the printed `phi reverses both blocks and shifts`): rows in reversed order, keys shifted by one row, so the query sees the keys
  strictly after its own position. Row 0 has no key: it is a base row, which every row sees.

For queries and keys of two different blocks the two together cover each pair once; within one block the forward call alone is the causal mask.

Token-wise maps: division, and log where sums are carried. Rows are re-ordered outside the oracle by a declared gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from proofs.transport import one_hot, unnormalised
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.oracle.machine import Machine, Stored
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.transformer.attention import CAUSAL, Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire, sum_of


@dataclass(frozen=True)
class Shape:
    """One causal call: `base` base rows, r rows for carried sums if it has `children`, then a row for each entry of `real`.

    `real[p]` says whether row p has a key of its own. A row without one is a base row if `null_is_base`, else its value is zero
    (it changes the normaliser only, which cancels in a last call). `last` calls return the attention output, others `(B + cA, A)`.
    With `subtract`, a last call returns the quotient for the single child's sums *minus* its own (prefix differences). `offsets`, if given, holds
    constants (u, w) for each entry of `real`: the query in row p gives the key in row p' the score `<q, k> + <u_p, w_p'>`. With `residual` (the model changed) the
    children's sums stay in the row and take no rows of their own; a last call that has children then needs a base row as well.
    """

    base: int
    children: int
    real: tuple[bool, ...]
    last: bool
    null_is_base: bool = True
    subtract: bool = False
    residual: bool = False
    offsets: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()


def synthetic_rows(problem: Problem, shape: Shape) -> int:
    """Rows that come before the rows with tokens."""
    return shape.base + (problem.head.width + 1 if shape.children and not shape.residual else 0)


def causal_call(problem: Problem, shape: Shape) -> Oracle:
    """The oracle for a shape. Input row: `[key token (d) | query token (d) | r sums for each child]`.

    Embedding `[query (d) | logarithms (r) | key (d) | one-hot role (r) | real | base | u | w]`.
    """
    d, head, m = problem.d, problem.head, problem.head.width
    r = m + 1
    carried = r if shape.children and not shape.residual else 0
    kept = r if shape.children and shape.residual else 0
    bound = problem.value_bound
    # Carried sums have value columns of their own when they are to be subtracted.
    own_columns = carried if shape.subtract else 0
    offset_columns = len(shape.offsets[0][0]) if shape.offsets else 0
    no_offset = ((0,) * offset_columns, (0,) * offset_columns)

    def tokens(
        number: int | None, real: bool, base: bool, offset: tuple[tuple[int, ...], tuple[int, ...]] = no_offset
    ) -> TokenMap:
        def place(x: list[Wire]) -> list[Wire | int]:
            key, query, sums = x[:d], x[d : 2 * d], x[2 * d :]
            merged = [sum_of(sums[c::r]) for c in range(r if shape.children else 0)]
            return [
                *query,
                *(total.log() for total in merged[:carried]),
                *(key if real else [0] * d),
                *one_hot(number, carried),
                int(real),
                int(base),
                *offset[0],
                *offset[1],
                *merged[:kept],
            ]

        return TokenMap.trace(problem.kinds * 2 + (Kind.VALUE,) * (r * shape.children), place)

    ranges: list[tuple[int, int, TokenMap]] = []

    def extend(count: int, token_map: TokenMap) -> None:
        at = ranges[-1][1] if ranges else 0
        if count:
            ranges.append((at, at + count, token_map))

    extend(shape.base, tokens(None, False, True))
    for c in [m, *range(m)] if carried else []:
        extend(1, tokens(c, False, False))
    rows = zip(shape.real, shape.offsets or (no_offset,) * len(shape.real), strict=True)
    for (real, offset), group in groupby(rows):
        extend(len(list(group)), tokens(None, real, not real and shape.null_is_base, offset))

    at_key, at_role = d + carried, 2 * d + carried
    at_real, at_base = 2 * d + 2 * carried, 2 * d + 2 * carried + 1
    at_u, at_w = at_base + 1, at_base + 1 + offset_columns
    height = at_w + offset_columns + kept
    carry, term, scored = RationalMatrix.identity(carried), RationalMatrix.identity(offset_columns), head.W_Q.width
    W_Q, W_K = (
        RationalMatrix.blocks(
            height,
            scored + carried + offset_columns,
            [(at_token, 0, W), (at_number, scored, carry), (at_offset, scored + carried, term)],
        )
        for W, at_token, at_number, at_offset in ((head.W_Q, 0, d, at_u), (head.W_K, at_key, at_role, at_w))
    )
    one = RationalMatrix.identity(1)
    needs_base = not shape.last or bool(kept)
    columns = r + own_columns + needs_base
    placed = [
        (at_key, 0, head.W_V),
        (at_real, 0, RationalMatrix.of([[bound] * m + [1]])),
        (at_role, 0, carry),
    ]
    if shape.subtract:
        # Twice the number, so that no row divides by 0, not even one that takes all averages for 1 (a synthetic row of Lemma B.3).
        placed[-1] = (at_role, r, RationalMatrix.from_entries(r, r, {(c, c): 2 for c in range(r)}))
    if needs_base:
        placed.append((at_base, r + own_columns, one))
    W_V = RationalMatrix.blocks(height, columns, placed)
    visible_base = shape.base + (1 if shape.null_is_base and shape.real and not shape.real[0] else 0)

    def recover(out: list[Wire]) -> Sequence[Wire]:
        sums = list(out[:r])
        if shape.subtract:
            sums = [b / 2 - a for a, b in zip(sums, out[r : 2 * r], strict=True)]
        if needs_base:
            sums = unnormalised(sums, out[columns - 1], visible_base)
        if kept:
            sums = [a + b for a, b in zip(sums, out[len(out) - kept :], strict=True)]
        return problem.mlp([sums[c] / sums[m] - bound for c in range(m)]) if shape.last else sums

    input_map = PositionalMap(tuple(ranges))
    seen = [Kind.VALUE] * columns + list(input_map.kinds if shape.residual else ())
    layer = Layer((Head(W_Q, W_K, W_V),), TokenMap.trace(seen, recover), shape.residual)
    return Oracle(input_map, (layer,), CAUSAL)


@dataclass
class CausalCalls:
    """Makes causal calls on a matrix of tokens X that the machine holds, sharing oracles of the same shape."""

    machine: Machine
    X: Stored
    problem: Problem
    residual: bool = False

    def __post_init__(self) -> None:
        self._oracles: dict[Shape, Oracle] = {}

    def call(
        self, shape: Shape, keys: Sequence[int], queries: Sequence[int], sums: Sequence[Stored], *, role: str
    ) -> Stored:
        """One call with these key and query tokens, row by row, and the children's sums in the order of the rows.

        Returns the answers of the rows with tokens. Where a row has no key, or a synthetic row no token, any token will do: the
        input map does not read it.
        """
        if shape not in self._oracles:
            self._oracles[shape] = causal_call(self.problem, shape)
        extra = synthetic_rows(self.problem, shape)
        machine = self.machine
        columns = [self.take(self.X, [0] * extra + list(keys)), self.take(self.X, [queries[0]] * extra + list(queries))]
        columns += [self.take(own, [0] * extra + list(range(len(queries)))) for own in sums]
        answer = machine.call(self._oracles[shape], machine.join(*columns), role=role)
        return machine.rows(answer, extra, answer.rows)

    def take(self, m: Stored, indices: Sequence[int]) -> Stored:
        """Rows by index: a slice where that is enough, otherwise a gather."""
        first = indices[0]
        if list(indices) == list(range(first, first + len(indices))):
            return self.machine.rows(m, first, first + len(indices))
        return self.machine.gather(m, indices)

    def forward(self, key: int, query: int, rows: int, sums: Sequence[Stored], *, base: int, last: bool) -> Stored:
        """Queries `query, ...` against the keys `key, ...` up to the same position; answers in order."""
        shape = Shape(base, len(sums), (True,) * rows, last, residual=self.residual)
        keys, queries = range(key, key + rows), range(query, query + rows)
        return self.call(shape, keys, queries, sums, role="last" if last else "forward")

    def reverse(
        self, key: int, query: int, block: int, queries: int, sums: Sequence[Stored], *, base: int, last: bool
    ) -> Stored:
        """The first `queries` of a block of queries against the keys of another block strictly after the same position; in order.

        The query at the block's last position meets no key here: without `sums` its answer is zero, which no logarithm can carry.
        """
        positions = [block - 1 - p for p in range(block)]
        named = [query + min(u, queries - 1) for u in positions]
        keys = [0] + [key + block - p for p in range(1, block)]
        order = [min(u, queries - 1) for u in positions]
        shape = Shape(base, len(sums), (False,) + (True,) * (block - 1), last, residual=self.residual)
        carried = [self.take(own, order) for own in sums]
        answer = self.call(shape, keys, named, carried, role="last" if last else "reverse")
        return self.take(answer, [block - 1 - u for u in range(queries)])
