"""Lemma B.3 (= Lemma 3.3): H'L' independent single-head single-layer instances in one call of an oracle with L' layers, H' heads.

**Statement.** One oracle with L' layers, H' heads and embedding dimension `O(d H'L'/H)` runs H'L' independent instances
of single-head single-layer oracles.

**As printed** (`printed`). The instances' columns stand side by side; head h of layer l has `W' = [0;..;W;..;0]` and computes
instance (h, l); "the other parts are passed through the layer unchanged".

*What fails* (R2). `W^V'` drops the other blocks, and there is no residual connection: after layer 1 the input of every later
instance is gone. Certificate: two inputs that differ in instance (1, 2) only have the same layer-1 output, but instance
(1, 2) requires different answers. No other choice of values helps as long as the weights do not depend on the passed block:
see `pass_through_columns`. With L' = 1 nothing has to pass, and the printed packing is right.

**Repaired** (`pack`; legal in the paper's own model). Each layer passes everything that later layers need by fused transport
(`proofs.transport`): a call has one base row, then one row for each carried number, then the instances' own rows. Head h
carries for its column of instances the outputs that are done and the input-map columns that are still to come. A layer MLP does not know
the position, so the row's role travels too, as one number rho: 0 for a real row, c for the row of the c-th carried number, -1 for the base row;
the MLP turns it into indicators by interpolation, and every number that a real row does not need is masked by the indicator of rho = 0.

The synthetic rows come first, so that the construction also works under a causal mask: there row 0 sees only itself and reads rho = -2,
which counts as the base row too, and the row of a carried number may miss others, whose masked reading is a harmless constant.

Cost: an instance of R rows needs `R + T + 1 <= M` rows, T = `carried_numbers`; no row beyond R when L' = 1. MLP operations:
division, multiplication (interpolation, masking) and log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from random import Random
from typing import Any

from flint import fmpq, fmpq_mat

from proofs import lemma_b1
from proofs.aggregation import Node
from proofs.registry import REGISTRY
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.claims.compare import exact_rows, universal
from verify.claims.samples import sample
from verify.claims.verdict import Outcome, Scope, Status
from verify.oracle.machine import Machine, Stored
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.oracle.program import Arrange, Call, Constants, Input, Outside, Program
from verify.transformer.attention import CAUSAL, NO_MASK, Head, Mask
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import PositionalMap, Step, TokenMap, Wire, sum_of

B3 = REGISTRY.add(
    Claim(
        "B.3",
        "Packing instances across heads and layers",
        "One oracle with L' layers, H' heads and embedding dimension O(d H'L'/H) runs H'L' independent single-head "
        "single-layer instances.",
        "Lemma 3.3 = Lemma B.3, Section 3 and Appendix B.3",
        aliases=("3.3",),
    )
)


@dataclass(frozen=True)
class Bounds:
    """Constants of the class of inputs: every number that enters an instance is at most `number` in size, every average at most `value`."""

    number: Fraction
    value: Fraction


# ======================================================================================================================
# As printed
# ======================================================================================================================


@part_of("B.3")
def printed_packing(instances: Sequence[Sequence[Oracle]]) -> Oracle:
    """The printed oracle for `instances[l][h]`: layer l, head h computes its instance, everything else is dropped by `W^V'`.

    Each head of layer l sees its own slice `[X_h1, ..., X_hL']`; heads of later layers see what is left of theirs: the
    block of the instance that the layer before computed. All instances must have input maps of one width.
    """
    layers, heads = len(instances), len(instances[0])
    width = len(instances[0][0].input_map.kinds)
    maps = [instances[level][h].input_map for h in range(heads) for level in range(layers)]
    built = []
    for level in range(layers):
        here = []
        for h in range(heads):
            head = instances[level][h].layers[0].heads[0]
            W_Q, W_K = (
                RationalMatrix.blocks(layers * width, W.width, [(level * width, 0, W)]) for W in (head.W_Q, head.W_K)
            )
            W_V = RationalMatrix.blocks(layers * width, layers * width, [(level * width, level * width, head.W_V)])
            here.append(Head(W_Q, W_K, W_V))
        kinds = [Kind.VALUE] * (heads * layers * width)
        passed = TokenMap.identity(kinds) if level == layers - 1 else TokenMap.trace(kinds, _as_numbers)
        built.append(Layer(tuple(here), passed))
    return Oracle(side_by_side(maps), tuple(built))


def side_by_side(maps: Sequence[PositionalMap]) -> PositionalMap:
    """Several input maps on blocks of columns that stand side by side."""
    cuts = sorted({0, *(stop for m in maps for _, stop, _ in m.ranges)})
    ranges = []
    for start, stop in pairwise(cuts):
        parts = [_at(m, start) for m in maps]
        ranges.append((start, stop, _joined(parts)))
    return PositionalMap(tuple(ranges))


def _as_numbers(x: list[Wire]) -> list[Wire]:
    return [wire.number() for wire in x]


def _joined(parts: Sequence[TokenMap]) -> TokenMap:
    """Several token-wise maps side by side."""
    return TokenMap.trace([kind for part in parts for kind in part.inputs], lambda x: _apply_each(parts, x))


def _at(m: PositionalMap, position: int) -> TokenMap:
    return next(token_map for start, stop, token_map in m.ranges if start <= position < stop)


def _apply_each(parts: Sequence[TokenMap], x: Sequence[Wire]) -> list[Wire]:
    out, at = [], 0
    for part in parts:
        out += part(x[at : at + len(part.inputs)])
        at += len(part.inputs)
    return out


def pass_through_columns(M: int, d: int) -> int:
    """Columns that an exact linear pass-through of M tokens of d columns needs, when the weights do not depend on them: M d.

    Let `P` be the M x M matrix of attention weights (all positive), let the value of token j be `x_j W_j` (the input map
    may depend on the position) in k columns, and let row i be read by a linear map `Psi_i` (which may even depend on
    the row). Row i must return `x_i` for all inputs:  `sum_j P_ij x_j W_j Psi_i = x_i`, that is, `W_j Psi_i = 0` for
    j != i and `P_ii W_i Psi_i = I`. So the (M d) x k matrix of the `W_j` times the k x (M d) matrix of the `Psi_i` is block
    diagonal with invertible blocks: its rank is M d, hence k >= M d. (k = M d is attained by `W_j` = the j-th block.)
    """
    return M * d


# ======================================================================================================================
# Repaired
# ======================================================================================================================


@dataclass(frozen=True)
class _Item:
    """A carried number of one head: which instance (layer) and column, whether a finished average or an input column."""

    level: int
    column: int
    done: bool
    kind: Kind


def carried_numbers(widths: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> int:
    """T: the most numbers that a layer carries for one head, the role included; 0 for a single layer.

    `widths[l][h]` are the input-map columns of instance (l, h) and `outputs[l][h]` its attention columns (0 for an idle slot).
    """
    layers = len(widths)
    if layers == 1:
        return 0
    return 1 + max(
        sum(outputs[before][h] for before in range(level)) + sum(widths[later][h] for later in range(level + 1, layers))
        for level in range(layers)
        for h in range(len(widths[0]))
    )


class _Packing:
    """The oracle that runs `instances[l][h]` (None for an idle slot), all with the same number of rows and the same mask."""

    def __init__(self, instances: Sequence[Sequence[Oracle | None]], bounds: Bounds) -> None:
        self.instances, self.bounds = instances, bounds
        self.layers, self.heads = len(instances), len(instances[0])
        self.present = [oracle for row in instances for oracle in row if oracle is not None]
        self.rows, self.mask = self.present[0].rows, self.present[0].mask
        widths = [[0 if o is None else len(o.input_map.kinds) for o in row] for row in instances]
        outputs = [[0 if o is None else o.layers[0].heads[0].width for o in row] for row in instances]
        self.T = carried_numbers(widths, outputs)
        self.synthetic = self.T + 1 if self.T else 0
        self.slice = max(max(row) for row in widths) + (2 * self.T + 1 if self.T else 0)

    # --- what is carried -----------------------------------------------------------------------------------------------

    def items(self, level: int, h: int) -> list[_Item]:
        """The numbers that layer `level` carries for head h, in order; the role is the first one and not listed."""
        found = []
        for other in range(self.layers):
            oracle = self.instances[other][h]
            if oracle is None or other == level:
                continue
            if other < level:
                width = oracle.layers[0].heads[0].width
                found += [_Item(other, c, True, Kind.VALUE) for c in range(width)]
            else:
                found += [_Item(other, c, False, kind) for c, kind in enumerate(oracle.input_map.kinds)]
        return found

    def encode(self, item: _Item, x: Wire) -> Wire:
        """The score that carries a number: itself if it is one, else the logarithm of a positive shift of it."""
        return x if item.kind is Kind.SCORE else (x + self.shift(item)).log()

    def decode(self, item: _Item, weight: Wire) -> Wire:
        """The number behind the weight `E(encode(x))`."""
        if item.kind is Kind.SCORE:
            return weight.log()
        value = weight - self.shift(item)
        return value.number() if item.kind is Kind.NUMBER else value

    def shift(self, item: _Item) -> Fraction:
        """What makes a carried number positive."""
        return self.bounds.number if item.kind is Kind.NUMBER else self.bounds.value

    def idle_weight(self, item: _Item) -> Fraction:
        """The weight that decodes to what a synthetic row should read: 0, so that its key is 0; or 1 for a finished average,
        so that the instance's own MLP can divide by it."""
        if item.kind is Kind.SCORE:
            return Fraction(1)
        return self.shift(item) + int(item.done)

    # --- the oracle ----------------------------------------------------------------------------------------------------

    def oracle(self) -> Oracle:
        """The packed oracle on `rows + synthetic` rows; its output columns are the instances' outputs, layer by layer."""
        return Oracle(self.input_map(), tuple(self.layer(level) for level in range(self.layers)), self.mask)

    def input_map(self) -> PositionalMap:
        """Synthetic rows first: base, role, one for each carried number; then the instances' rows."""
        kinds = [kind for oracle in self.present for kind in _input_kinds(oracle)]
        ranges = [(p, p + 1, self._synthetic_row(kinds, p)) for p in range(self.synthetic)]
        for start, stop, inner in side_by_side([oracle.input_map for oracle in self.present]).ranges:
            ranges.append((start + self.synthetic, stop + self.synthetic, self._own_row(kinds, inner)))
        return PositionalMap(tuple(ranges))

    def _own_row(self, kinds: Sequence[Kind], inner: TokenMap) -> TokenMap:
        return TokenMap.trace(kinds, lambda x: self._first(inner(x), 0))

    def _synthetic_row(self, kinds: Sequence[Kind], position: int) -> TokenMap:
        total = sum(len(oracle.input_map.kinds) for oracle in self.present)
        rho = position or -1
        return TokenMap.trace(kinds, lambda x: self._first([x[0].constant(0)] * total, rho))

    def _first(self, columns: Sequence[Wire], rho: int) -> list[Wire | int]:
        """Layer 1's columns from all instances' input-map columns and the row's role."""
        by_instance: dict[tuple[int, int], Sequence[Wire]] = {}
        at = 0
        for level in range(self.layers):
            for h in range(self.heads):
                oracle = self.instances[level][h]
                if oracle is not None:
                    width = len(oracle.input_map.kinds)
                    by_instance[level, h] = columns[at : at + width]
                    at += width
        out: list[Wire | int] = []
        for h in range(self.heads):
            own = list(by_instance.get((0, h), []))
            if not self.T:
                out += self._slice(own, [], [], 0)
                continue
            carried = [self.encode(item, by_instance[item.level, h][item.column]) for item in self.items(0, h)]
            role = columns[0].constant(rho + 2).log()
            hot: list[Wire | int] = [int(rho == c) for c in range(1, self.T + 1)]
            out += self._slice(own, [role, *carried], hot, int(rho == -1))
        return out

    def _slice(
        self, own: Sequence[Wire | int], carried: Sequence[Wire | int], hot: Sequence[Wire | int], base: Wire | int
    ) -> list[Wire | int]:
        """`[own | carried scores (T) | one-hot role (T) | base]`, padded with zeros to the common width of a slice."""
        if not self.T:
            return [*own, *[0] * (self.slice - len(own))]
        room = self.slice - 2 * self.T - 1
        return [*own, *[0] * (room - len(own)), *carried, *[0] * (self.T - len(carried)), *hot, base]

    def layer(self, level: int) -> Layer:
        """Layer `level`: every head computes its instance and carries the rest."""
        heads = tuple(self._head(level, h) for h in range(self.heads))
        widths = [head.width for head in heads]

        def mlp(x: list[Wire]) -> Sequence[Wire | int]:
            parts, at = [], 0
            for width in widths:
                parts.append(x[at : at + width])
                at += width
            return self._after(level, parts)

        return Layer(heads, TokenMap.trace([Kind.VALUE] * sum(widths), mlp))

    def _head(self, level: int, h: int) -> Head:
        oracle = self.instances[level][h]
        if oracle is None:
            nothing = RationalMatrix.zero(self.slice, 1)
            own = Head(nothing, nothing, RationalMatrix.zero(self.slice, 0))
        else:
            own = oracle.layers[0].heads[0]
        room, T, width = self.slice - (2 * self.T + 1 if self.T else 0), self.T, own.W_V.width
        carry = RationalMatrix.identity(T)
        W_Q = RationalMatrix.blocks(self.slice, own.W_Q.width + T, [(0, 0, own.W_Q), (room, own.W_Q.width, carry)])
        W_K = RationalMatrix.blocks(self.slice, own.W_K.width + T, [(0, 0, own.W_K), (room + T, own.W_K.width, carry)])
        if not T:
            return Head(W_Q, W_K, RationalMatrix.blocks(self.slice, width, [(0, 0, own.W_V)]))
        read = RationalMatrix.identity(T + 1)
        return Head(
            W_Q, W_K, RationalMatrix.blocks(self.slice, width + T + 1, [(0, 0, own.W_V), (room + T, width, read)])
        )

    def _after(self, level: int, parts: Sequence[Sequence[Wire]]) -> list[Wire | int]:
        """The layer MLP: recover what was carried, finish this layer's averages, and lay out the next layer or the answers."""
        if not self.T:
            return [y for h, part in enumerate(parts) for y in self._finish(0, h, part)]
        rho = self._weights(parts[0], 0)[0] - 2
        indicator = interpolate(rho, [-2, *range(-1, self.T + 1)])
        real = indicator[2]
        known: list[dict[tuple[int, bool], dict[int, Wire]]] = []
        for h, part in enumerate(parts):
            weights, items = self._weights(part, level, h), self.items(level, h)
            table: dict[tuple[int, bool], dict[int, Wire]] = {}
            for item, weight in zip(items, weights[1:], strict=False):
                idle = self.idle_weight(item)
                masked = real * (weight - idle) + idle
                table.setdefault((item.level, item.done), {})[item.column] = self.decode(item, masked)
            own = part[: len(part) - self.T - 1]
            if own:
                synthetic = sum_of(part[len(part) - self.T - 1 :])
                # A synthetic row may see no real row at all: its share and its averages are replaced by 1.
                share = 1 - real * synthetic
                table[level, True] = {c: real * (x / share - 1) + 1 for c, x in enumerate(own)}
            known.append(table)
        if level == self.layers - 1:
            return [
                y
                for l_ in range(self.layers)
                for h in range(self.heads)
                if self.instances[l_][h] is not None
                for y in self._finish(l_, h, _in_order(known[h][l_, True]))
            ]
        base = indicator[0] + indicator[1]
        hot = [x.number() for x in indicator[3:]]
        role = (rho + indicator[0] + 2).log()
        out: list[Wire | int] = []
        for h in range(self.heads):
            own = _in_order(known[h].get((level + 1, False), {}))
            carried = [
                self.encode(item, known[h][item.level, item.done][item.column]) for item in self.items(level + 1, h)
            ]
            out += self._slice(own, [role, *carried], hot, base.number())
        return out

    def _weights(self, part: Sequence[Wire], level: int, h: int = 0) -> list[Wire]:
        """`E(carried score)` for the role and each carried number: the quotient of its column by the base column."""
        carried, base = part[len(part) - self.T - 1 : -1], part[-1]
        return [x / base for x in carried[: 1 + len(self.items(level, h))]]

    def _finish(self, level: int, h: int, averages: Sequence[Wire]) -> list[Wire]:
        oracle = self.instances[level][h]
        return [] if oracle is None else oracle.layers[0].mlp(averages)


def interpolate(x: Wire, points: Sequence[int]) -> list[Wire]:
    """For x among the points, the indicator of each: Lagrange's polynomials, from running products on both sides."""
    n = len(points)
    differences = [x - p for p in points]
    before, after = list(accumulate(differences, mul)), list(accumulate(reversed(differences), mul))
    out = []
    for i, p in enumerate(points):
        scale = Fraction(1, prod(p - q for q in points if q != p))
        if i == 0:
            product = after[n - 2]
        elif i == n - 1:
            product = before[n - 2]
        else:
            product = before[i - 1] * after[n - 2 - i]
        out.append(product * scale)
    return out


@part_of("B.3")
def pack(
    program: Program,
    machine: Machine,
    *,
    heads: int,
    layers: int,
    bounds: Bounds,
    slots: Callable[[Call], int] | None = None,
) -> Program:
    """The same computation with up to `heads * layers` calls of a round packed into one call of an oracle of L' layers, H' heads.

    `program` consists of calls of single-head single-layer oracles; its rounds are kept. Slots that a round leaves over are
    idle. `slots(call)`, if given, says how many calls like this one go into one oracle (at most `heads * layers`).
    The machine's own length M must have room for the synthetic rows (RuleBroken otherwise; see `largest_instance`).
    """
    stored: dict[int, Stored] = {}
    known: dict[tuple[int | None, ...], tuple[Oracle, int]] = {}
    for now in range(max(program.rounds) + 1):
        here = [slot for slot, known_in in enumerate(program.rounds) if known_in == now]
        groups: dict[tuple[int, Mask, int], list[tuple[int, Call]]] = {}
        for slot in here:
            call = program.instructions[slot]
            if isinstance(call, Call):
                room = heads * layers if slots is None else slots(call)
                # Under a causal mask later rows are not seen, so a shorter call can be lengthened.
                rows = 0 if call.oracle.mask.causal else call.oracle.rows
                groups.setdefault((rows, call.oracle.mask, room), []).append((slot, call))
        for (_, _, room), group in groups.items():
            for at in range(0, len(group), room):
                _packed_call(machine, group[at : at + room], stored, known, heads, layers, bounds)
        for slot in here:
            if slot not in stored:
                stored[slot] = _repeat(machine, program.instructions[slot], stored)
    return machine.program(stored[program.output])


class _ResidualPacking:
    """The same with residual connections (another model): everything stays in the row, no row is spent.

    The slice of head h holds, for each of its instances, the input-map columns and then the averages (zero until computed).
    """

    def __init__(self, instances: Sequence[Sequence[Oracle | None]]) -> None:
        self.instances = instances
        self.layers, self.heads = len(instances), len(instances[0])
        self.present = [oracle for row in instances for oracle in row if oracle is not None]
        self.synthetic = 0
        widths = [sum(self._room(level, h) for level in range(self.layers)) for h in range(self.heads)]
        self.slice = max(widths)

    def _room(self, level: int, h: int) -> int:
        oracle = self.instances[level][h]
        return 0 if oracle is None else len(oracle.input_map.kinds) + oracle.layers[0].heads[0].width

    def _start(self, level: int, h: int) -> int:
        return sum(self._room(before, h) for before in range(level))

    def oracle(self) -> Oracle:
        """The packed oracle on the instances' own rows."""
        inner = side_by_side([oracle.input_map for oracle in self.present])
        ranges = tuple((start, stop, self._lay_out(token_map)) for start, stop, token_map in inner.ranges)
        input_map = PositionalMap(ranges)
        kinds, layers = input_map.kinds, []
        for level in range(self.layers):
            layers.append(self._layer(level, kinds))
            kinds = layers[-1].mlp.kinds
        return Oracle(input_map, tuple(layers), self.present[0].mask)

    def _lay_out(self, inner: TokenMap) -> TokenMap:
        def place(x: list[Wire]) -> list[Wire | int]:
            columns, at = inner(x), 0
            found: dict[tuple[int, int], list[Wire]] = {}
            for level in range(self.layers):
                for h in range(self.heads):
                    oracle = self.instances[level][h]
                    if oracle is not None:
                        width = len(oracle.input_map.kinds)
                        found[level, h] = columns[at : at + width]
                        at += width
            out: list[Wire | int] = []
            for h in range(self.heads):
                own: list[Wire | int] = []
                for level in range(self.layers):
                    columns_here = found.get((level, h), [])
                    own += [*columns_here, *[0] * (self._room(level, h) - len(columns_here))]
                out += [*own, *[0] * (self.slice - len(own))]
            return out

        return TokenMap.trace(inner.inputs, place)

    def _layer(self, level: int, kinds: Sequence[Kind]) -> Layer:
        heads = []
        for h in range(self.heads):
            oracle = self.instances[level][h]
            nothing = RationalMatrix.zero(0, 1)
            own = oracle.layers[0].heads[0] if oracle else Head(nothing, nothing, RationalMatrix.zero(0, 0))
            at = self._start(level, h)
            heads.append(
                Head(*(RationalMatrix.blocks(self.slice, W.width, [(at, 0, W)]) for W in (own.W_Q, own.W_K, own.W_V)))
            )
        attended = sum(head.width for head in heads)

        def mlp(x: list[Wire]) -> Sequence[Wire]:
            rows, at = list(x[attended:]), 0
            for h, head in enumerate(heads):
                start = h * self.slice + self._start(level, h) + self._room(level, h) - head.width
                rows[start : start + head.width] = x[at : at + head.width]
                at += head.width
            return rows if level < self.layers - 1 else self._answers(rows)

        return Layer(tuple(heads), TokenMap.trace([Kind.VALUE] * attended + list(kinds), mlp), residual=True)

    def _answers(self, rows: Sequence[Wire]) -> list[Wire]:
        answers: list[Wire] = []
        for level in range(self.layers):
            for h in range(self.heads):
                oracle = self.instances[level][h]
                if oracle is None:
                    continue
                at, width = h * self.slice + self._start(level, h), len(oracle.input_map.kinds)
                columns, averages = rows[at : at + width], rows[at + width : at + self._room(level, h)]
                layer = oracle.layers[0]
                answers += layer.mlp([*averages, *(columns if layer.residual else [])])
        return answers


def _packed_call(
    machine: Machine,
    group: Sequence[tuple[int, Call]],
    stored: dict[int, Stored],
    known: dict[tuple[int | None, ...], tuple[Oracle, int]],
    heads: int,
    layers: int,
    bounds: Bounds,
) -> None:
    rows = max(call.oracle.rows for _, call in group)
    slots: list[Oracle | None] = [call.oracle for _, call in group] + [None] * (heads * layers - len(group))
    key = tuple(None if oracle is None else id(oracle) for oracle in slots)
    if key not in known:
        slots = [oracle and lengthened(oracle, rows) for oracle in slots]
        grid = [slots[level * heads : (level + 1) * heads] for level in range(layers)]
        packing = _ResidualPacking(grid) if machine.residual else _Packing(grid, bounds)
        known[key] = (packing.oracle(), packing.synthetic)
    oracle, synthetic = known[key]
    inputs = machine.join(*(_fill(machine, stored[call.source], rows) for _, call in group))
    if synthetic:
        # The synthetic rows hold no data of their own: any rows will do, the input map does not read them.
        inputs = machine.stack(*_copies(machine, inputs, synthetic), inputs)
    answers = machine.call(oracle, inputs, role="packed")
    answers = machine.rows(answers, synthetic, answers.rows)
    at = 0
    for slot, call in group:
        width = len(call.oracle.kinds)
        stored[slot] = machine.rows(machine.columns(answers, at, at + width), 0, call.oracle.rows)
        at += width


def lengthened(oracle: Oracle, rows: int) -> Oracle:
    """The same oracle with more rows at its end, which under a causal mask change nothing before them.

    They ask what the last row asks and show no key and no value of their own, where these stand in columns of their own: then they
    change their normaliser only, and a quotient that is defined in the last row is defined in them.
    """
    if oracle.rows == rows:
        return oracle
    (head,) = oracle.layers[0].heads
    shown = {*head.W_K.used_rows, *head.W_V.used_rows} - {*head.W_Q.used_rows}
    *_, (_, stop, last) = oracle.input_map.ranges
    nothing = len(last.steps)
    silent = replace(
        last,
        steps=(*last.steps, Step("constant", (), Fraction(0))),
        outputs=tuple(nothing if c in shown else index for c, index in enumerate(last.outputs)),
        kinds=tuple(Kind.NUMBER if c in shown else kind for c, kind in enumerate(last.kinds)),
    )
    return Oracle(PositionalMap((*oracle.input_map.ranges, (stop, rows, silent))), oracle.layers, oracle.mask)


def _fill(machine: Machine, m: Stored, rows: int) -> Stored:
    """m with copies of its last row, up to this many rows."""
    if m.rows == rows:
        return m
    last = machine.rows(m, m.rows - 1, m.rows)
    return machine.stack(m, *[last] * (rows - m.rows))


def _copies(machine: Machine, m: Stored, rows: int) -> list[Stored]:
    """This many rows of m, over and over."""
    return [machine.rows(m, 0, min(m.rows, rows - at)) for at in range(0, rows, m.rows)]


def _repeat(machine: Machine, instruction: object, stored: dict[int, Stored]) -> Stored:
    """An instruction other than a call, on the new machine."""
    match instruction:
        case Input(name, rows, kinds):
            return machine.input(name, rows, kinds)
        case Constants(rows=rows):
            return machine.constants(rows)
        case Arrange(how, sources, numbers):
            m = [stored[s] for s in sources]
            match how:
                case "rows":
                    return machine.rows(m[0], *numbers)
                case "columns":
                    return machine.columns(m[0], *numbers)
                case "stack":
                    return machine.stack(*m)
                case "join":
                    return machine.join(*m)
                case _:
                    return machine.gather(m[0], numbers)
        case Outside(source, token_map, detail):
            return machine.outside(token_map, stored[source], detail=detail)
    raise TypeError(f"unknown instruction {instruction!r}")


def largest_instance(M: int, *, layers: int, width: int, output: int) -> int:
    """The most rows that an instance may have inside an oracle of length M: `M - T - 1`, or M for a single layer.

    For instances of `width` input-map columns and `output` attention columns, all slots used.
    """
    T = carried_numbers([[width]] * layers, [[output]] * layers)
    return M - T - 1 if T else M


def _input_kinds(oracle: Oracle) -> tuple[Kind, ...]:
    return next(m.inputs for start, stop, m in oracle.input_map.ranges if stop > start)


def _in_order(columns: dict[int, Wire]) -> list[Wire]:
    return [columns[c] for c in sorted(columns)]


# ======================================================================================================================
# Claims
# ======================================================================================================================

R2 = REGISTRY.add(
    Claim(
        "R2",
        "Other blocks are not passed through unchanged",
        "Lemma B.3's printed W^V' drops the blocks of later instances, and without a residual connection no values bring them back: with "
        "weights that do not depend on the passed block, exact linear pass-through of M tokens of d columns needs M d columns.",
        "Review, major comment 2; Appendix B.3",
        kind="finding",
    )
)


def independent_heads(n: int, copies: int) -> list[Oracle]:
    """Instances in general position, each the attention of one head on n tokens (q, k, v)."""
    return [
        Oracle(
            PositionalMap(((0, n, TokenMap.identity(Problem.universal(n, n).kinds)),)),
            (Layer((Problem.universal(n, n).head,), TokenMap.identity([Kind.VALUE])),),
        )
        for _ in range(copies)
    ]


def independent_program(n: int, copies: int, mask: Mask = NO_MASK) -> Program:
    """One call for each of several independent instances on columns side by side; outputs side by side."""
    machine = Machine(n, 3)
    kinds = Problem.universal(n, n).kinds
    X = machine.input("X", n, kinds * copies)
    outputs = []
    for c, oracle in enumerate(independent_heads(n, copies)):
        masked = Oracle(oracle.input_map, oracle.layers, mask)
        outputs.append(machine.call(masked, machine.columns(X, 3 * c, 3 * c + 3)))
    return machine.program(machine.join(*outputs))


UNIVERSAL = [
    (n, heads, layers, causal) for n in (1, 2, 3) for heads, layers in ((2, 1), (1, 2), (2, 2)) for causal in (0, 1)
]
"""(rows, H', L', causal) at which packed instances are compared with the instances one by one, for every input."""


def _several_heads(n: int, copies: int, mask: Mask) -> Problem:
    """The instances as one layer of `copies` heads: its direct evaluation is theirs, one by one."""
    one = Problem.universal(n, n)
    layer = Layer((one.head,) * copies, TokenMap.identity([Kind.VALUE] * copies))
    return Problem(n, n, Transformer((layer,), mask), one.kinds * copies)


@B3.check(
    "repaired",
    "symbolic",
    predicate="outputs of the packed oracle = outputs of the H'L' instances as rational functions of all weights and values",
    implies="packing with transport is exact for every input of these sizes, with and without a causal mask",
    assumes=("FLINT",),
)
def packed_identity() -> Outcome:
    """H'L' heads on independent tokens in general position, packed into one call."""

    def build(problem: Problem) -> Program:
        copies = len(problem.layer.heads)
        program = independent_program(problem.N, copies, problem.transformer.mask)
        layers = problem.oracle_layers
        machine = Machine(1000, 3 * copies)
        bounds = Bounds(Fraction(1), Fraction(1))
        return pack(program, machine, heads=problem.oracle_heads, layers=layers, bounds=bounds)

    problems = [
        replace(
            _several_heads(n, heads * layers, CAUSAL if causal else NO_MASK), oracle_heads=heads, oracle_layers=layers
        )
        for n, heads, layers, causal in UNIVERSAL
    ]
    return universal(build, problems, sizes=f"(rows, H', L', causal) in {UNIVERSAL}")


@B3.check(
    "repaired",
    "integers",
    predicate="a packed call of H'L' instances of Lemma B.1 has embedding H'(e + 2T + 1), e = 4m + 4, T = carried_numbers",
    implies="embedding at most 10 H' L' (m + 1) for L' >= 2, so O(d H'L'/H) with d/H = m >= 1",
)
def packed_embedding() -> Outcome:
    """Counted on inner nodes of the tree plan; the bound is e(2L' - 1) + 5 <= 10 L'(m + 1) for every m >= 1 and L' >= 1."""
    rows = []
    for m in (1, 2, 3):
        for heads, layers in ((1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (3, 3)):
            e, output = 4 * m + 4, m + 2
            T = carried_numbers([[e] * heads] * layers, [[output] * heads] * layers)
            expected = heads * (e + (2 * T + 1 if T else 0))
            problem = sample(4 * m + 8, m + 3, m, 0).problem
            node = Node(0, 1, (1, 2))
            inner = lemma_b1.fused_block(problem, node, last=False)
            oracle = _Packing([[inner] * heads] * layers, Bounds(Fraction(1), Fraction(1))).oracle()
            if oracle.embedding != expected or expected > 10 * heads * layers * (m + 1):
                return Outcome(
                    Status.REFUTED,
                    Scope.instance(),
                    "embedding of a packed call",
                    f"m = {m}, H' = {heads}, L' = {layers}",
                    f"{oracle.embedding} instead of {expected}",
                )
            rows.append([m, heads, layers, expected])
    return Outcome(
        Status.PROVED,
        Scope.sizes("m up to 3, H' and L' up to 3"),
        "embedding of a packed call",
        "inner calls of the tree plan in every slot",
        "the formula holds and is at most 10 H' L' (m + 1)",
        {"columns": ["m", "H'", "L'", "embedding"], "rows": rows},
    )


@B3.check(
    "printed",
    "symbolic",
    predicate="outputs of the printed packing with L' = 1 = outputs of the instances",
    implies="side by side in one layer the printed packing is right: only depth is lost",
    assumes=("FLINT",),
    name="one-layer",
)
def printed_one_layer() -> Outcome:
    """The printed packing of H' instances in a single layer."""
    problems = [_several_heads(n, heads, NO_MASK) for n in (1, 2, 3) for heads in (1, 2, 3)]
    return universal(_printed_program, problems, sizes="n up to 3, H' up to 3, L' = 1")


def _printed_program(problem: Problem) -> Program:
    """The printed packing of a problem's heads into `oracle_layers` layers of `oracle_heads` heads, as one call."""
    heads = len(problem.layer.heads) // problem.oracle_layers
    n, layers = problem.N, problem.oracle_layers
    own = independent_heads(n, heads * layers)
    grid = [own[level * heads : (level + 1) * heads] for level in range(layers)]
    machine = Machine(n, 3 * heads * layers)
    X = machine.input("X", n, problem.kinds)
    answer = machine.call(printed_packing(grid), X)
    width = 3 * layers
    picked = []
    for level in range(layers):
        for h in range(heads):
            at = h * width + level * 3
            picked.append(machine.columns(answer, at, at + 1))
    return machine.program(machine.join(*picked))


@B3.check(
    "printed",
    "exact",
    predicate="two inputs that differ only in the second instance have different outputs after the printed layer 1",
    implies="layer 2 could still compute the second instance",
    expects=Status.REFUTED,
    name="two-layers",
)
def printed_two_layers() -> Outcome:
    """The certificate of R2, at the smallest size: one row, one column, L' = 2."""
    certificate = lost_block(1, 1)
    lost = certificate["layer 1 outputs"][0] == certificate["layer 1 outputs"][1]
    needed = certificate["required"][0] != certificate["required"][1]
    return Outcome(
        Status.REFUTED if lost and needed else Status.UNDECIDED,
        Scope("every size with L' >= 2: the columns of later instances have zero rows in W^V'; run at M = 1, d = 1"),
        "layer 1 of the printed oracle for two packed instances",
        "M = 1, d = 1, H' = 1, L' = 2 (the smallest)",
        "inputs 0 and 1 of the second instance give the same layer-1 output, but their required outputs are 0 and 1",
        certificate,
    )


def lost_block(M: int, d: int) -> dict[str, Any]:
    """Two inputs that differ in instance 2 only: layer-1 outputs of the printed packing (kernel exp2) and required outputs.

    Heads with W_Q = W_K = 0 and W_V = I, instance 1 zero; the outputs are written as rationals.
    """
    nothing, identity = RationalMatrix.zero(d, 1), RationalMatrix.identity(d)
    kinds = [Kind.NUMBER] * d
    instance = Oracle(
        PositionalMap(((0, M, TokenMap.identity(kinds)),)),
        (Layer((Head(nothing, nothing, identity),), TokenMap.identity([Kind.VALUE] * d)),),
    )
    packed = printed_packing([[instance], [instance]])
    first_layer = Oracle(packed.input_map, packed.layers[:1])
    outputs, required = [], []
    for value in (0, 1):
        X = [[Fraction(0)] * M] * d + [[Fraction(value)] * M] * d
        outputs.append(exact_rows(first_layer, X))
        required.append(exact_rows(instance, X[d:]))
    return {"M": M, "d": d, "second instance": ["all 0", "all 1"], "layer 1 outputs": outputs, "required": required}


@R2.check(
    "printed",
    "exact",
    predicate="two inputs with equal layer-1 outputs and different required outputs, for each M and d",
    implies="no later layer of the printed packing, whatever its MLPs, can compute the second instance",
    name="lost-block",
)
def block_is_lost() -> Outcome:
    """The certificate at several sizes; layer 1 never reads the second block into its values."""
    certificates = [lost_block(M, d) for M in (1, 2, 3) for d in (1, 2)]
    lost = all(
        c["layer 1 outputs"][0] == c["layer 1 outputs"][1] and c["required"][0] != c["required"][1]
        for c in certificates
    )
    return Outcome(
        Status.PROVED if lost else Status.REFUTED,
        Scope("every size: W^V' has zero rows on the second block; run at M up to 3, d up to 2"),
        "layer 1 of the printed packing on two inputs",
        "inputs that differ in the second instance only; smallest M = 1, d = 1",
        "equal outputs, different requirements" if lost else "the block is not lost",
        {"certificates": certificates},
    )


@R2.check(
    "printed",
    "integers",
    predicate="the product that a linear pass-through must equal has rank M d, for random positive weights",
    implies="fewer than M d columns cannot pass a block of M tokens of d columns when the weights do not depend on it",
    assumes=("FLINT",),
    name="rank",
)
def pass_through_rank() -> Outcome:
    """The proof is in `pass_through_columns`, for every size; here the rank of its block-diagonal matrix is computed."""
    random = Random(1)
    for M in range(1, 6):
        for d in range(1, 4):
            diagonal = [Fraction(random.randint(1, 9), random.randint(10, 99)) for _ in range(M)]
            entries = [[fmpq(0)] * (M * d) for _ in range(M * d)]
            for i in range(M * d):
                entries[i][i] = fmpq(diagonal[i // d].denominator, diagonal[i // d].numerator)
            if fmpq_mat(entries).rank() != pass_through_columns(M, d):
                return Outcome(Status.REFUTED, Scope.instance(), "rank", f"M = {M}, d = {d}", "rank below M d")
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "the rank of [W_1; ...; W_M][Psi_1, ..., Psi_M]",
        "any positive attention weights, any position-dependent linear values, any row-dependent linear reading",
        "the product is block diagonal with invertible blocks, so its rank is M d (argument for every size; ranks recomputed up to M = 5, d = 3)",
        {"largest recomputed": {"M": 5, "d": 3}},
    )


@R2.check(
    "repaired",
    "symbolic",
    predicate="outputs of the packed oracle with L' = 2 = outputs of the instances",
    implies="query-side transport passes the blocks within the paper's own model",
    assumes=("FLINT",),
    name="transport",
)
def transport_repairs_packing() -> Outcome:
    """The same check as Lemma B.3's repaired packing."""
    return packed_identity()
