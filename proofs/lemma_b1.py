"""Lemma B.1 (= Lemma 3.1): one layer, one head, `O(N^2/M^2)` calls to a single-head single-layer oracle.

**Statement.** For every transformer with L = H = 1 on N tokens there is an algorithm that simulates it by `O((N/M)^2)`
calls to an oracle with L' = H' = 1, input length M and embedding dimension `O(d)`.

Notation: `S_t` is the t-th block of tokens, `A_it = sum_{j in S_t} a_ij`, `B_it = sum_{j in S_t} a_ij v_j`.

**As printed** (`printed`). Step 1 feeds a block of M tokens and one synthetic row whose weight is `E(0)`; row i outputs
`r = A/(A + E(0))`, and the layer MLP returns `E(0) r/(1-r) = A`. Step 2 feeds the same tokens without the synthetic row,
for `B/A`. Then "`sum_t (B_it/A_it) A_it / sum_t A_it`, trivially or with A.2".

*What fails.* Step 1 feeds M+1 rows to an oracle that accepts M (R3). The aggregation is arithmetic outside the oracle, and
no sequence of calls is given (R4); the large transformer's MLP has the same problem (N6). M must divide N. The algebra
itself is right: with these rules waived the printed formulas give the attention output for every input.

**Repaired** (`repaired`; legal in the paper's own model). One *fused* call for a block of keys: values `[v_j + c, 1]` on
real rows, a base row of weight 1 with a value column of its own; the quotients of the output columns by the base column are
`B + cA` and `A`. What earlier calls found travels in the queries as logarithms, on one row for each of the r = m+1 numbers
(fused transport, `proofs.transport`), in the value columns where the attention adds it to the block's own sums. The last call needs
no base row: its quotient is the attention output itself, and its MLP goes on with the large transformer's MLP.
Queries occupy every row, whatever the row's role on the key side, so every call serves M queries. Which call merges which is
the plan of `proofs.aggregation`: `tree`, `chained`, `pairwise`, or `per-query` by Lemma A.2; `repaired` takes the best.

MLP operations beyond affine maps: division and log (transport) for the first three, division alone for `per-query`.

**Residual variant** (`residual`). The model changed: a layer MLP also sees the layer's input, so carrying takes no rows.

Smallest M: 2 (per-query, residual), r+1 = m+2 (tree, pairwise), m+3 (chained); any M >= N.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from proofs.aggregation import (
    AGGREGATIONS,
    Aggregation,
    Node,
    Plan,
    ceiling,
    choose,
    depth,
    leaves,
    query_blocks,
    require,
    residual_plan,
)
from proofs.lemma_a2 import token_sum
from proofs.registry import REGISTRY
from proofs.transport import Rows, one_hot, unnormalised
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.claims.compare import on_instances, universal, within_target
from verify.claims.evidence import Expression, Statement, broken, table
from verify.claims.samples import sample, samples
from verify.claims.verdict import Outcome, Scope, Status
from verify.errors import RuleBroken
from verify.oracle.machine import DIVISIBILITY, INPUT_LENGTH, OUTSIDE_ARITHMETIC, Machine, Stored
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.oracle.program import Outside, Program
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire, sum_of


@dataclass(frozen=True)
class Prediction:
    """Cost by formula, to be compared with what the machine counts."""

    calls: int
    rounds: int
    embedding: int
    parameters: int


B1 = REGISTRY.add(
    Claim(
        "B.1",
        "One layer, one head",
        "Every transformer with L = H = 1 on N tokens is simulated by O((N/M)^2) calls to a single-head single-layer "
        "oracle with input length M and embedding dimension O(d).",
        "Lemma 3.1 = Lemma B.1, Section 3 and Appendix B.1",
        aliases=("3.1",),
    )
)


# ======================================================================================================================
# As printed
# ======================================================================================================================


@part_of("B.1")
def printed(problem: Problem) -> Program:
    """The construction as printed, with the rules that it breaks waived. Raises RuleBroken if M does not divide N."""
    machine = machine_for(problem, waive=(INPUT_LENGTH, OUTSIDE_ARITHMETIC))
    X = machine.input("X", problem.N, problem.kinds)
    return machine.program(attach_printed(machine, X, problem))


@part_of("B.1")
def attach_printed(machine: Machine, X: Stored, problem: Problem) -> Stored:
    """The printed construction on a matrix that the machine already holds; the machine must waive the rules it breaks."""
    N, M, d = problem.N, problem.M, problem.d
    if N % M:
        raise RuleBroken(DIVISIBILITY, M, N, "the printed construction cuts N tokens into N/M blocks of M")
    blocks = [machine.rows(X, t * M, (t + 1) * M) for t in range(N // M)]
    zero_row = machine.constants([[0] * d])
    same, cross, ratio = printed_same_block(problem), printed_cross_block(problem), printed_ratio(problem)
    answers = []
    for s, queries in enumerate(blocks):
        sums: list[Stored] = []
        for t, keys in enumerate(blocks):
            pair = machine.join(keys, queries)
            if s == t:
                weight = machine.call(same, machine.stack(keys, zero_row), role="A (step 1)")
            else:
                padding = machine.join(zero_row, zero_row)
                weight = machine.call(cross, machine.stack(pair, padding), role="A (step 1)")
            sums += [machine.call(ratio, pair, role="B/A (step 2)"), machine.rows(weight, 0, M)]
        answers.append(
            machine.outside(
                printed_aggregation(problem), machine.join(*sums), detail="the aggregation is not given as oracle calls"
            )
        )
    return machine.stack(*answers)


def printed_same_block(problem: Problem) -> Oracle:
    """Step 1 for queries and keys of the same block: rows `[x_j, 1]` and `[0, 1]`, `W' = diag(W, 1)`."""
    M, d, head = problem.M, problem.d, problem.head
    one = RationalMatrix.identity(1)
    W_Q, W_K = (RationalMatrix.blocks(d + 2, W.width + 1, [(0, 0, W), (d, W.width, one)]) for W in (head.W_Q, head.W_K))
    return Oracle(
        PositionalMap(
            (
                (0, M, TokenMap.trace(problem.kinds, lambda x: [*x, 1, 1])),
                (M, M + 1, TokenMap.trace(problem.kinds, lambda x: [*x, 1, 0])),
            )
        ),
        (
            Layer(
                (Head(W_Q, W_K, _reads(d + 2, d + 1)),),
                TokenMap.trace([Kind.VALUE], invert_ratio, name="ratio inversion"),
            ),
        ),
    )


def printed_cross_block(problem: Problem) -> Oracle:
    """Step 1 for two blocks: rows `[key token, query token]` and a zero row."""
    M, d, head = problem.M, problem.d, problem.head
    kinds = problem.kinds * 2
    W_Q = RationalMatrix.blocks(2 * d + 1, head.W_Q.width, [(d, 0, head.W_Q)])
    W_K = RationalMatrix.blocks(2 * d + 1, head.W_K.width, [(0, 0, head.W_K)])
    return Oracle(
        PositionalMap(
            (
                (0, M, TokenMap.trace(kinds, lambda x: [*x, 1])),
                (M, M + 1, TokenMap.trace(kinds, lambda x: [*x, 0])),
            )
        ),
        (
            Layer(
                (Head(W_Q, W_K, _reads(2 * d + 1, 2 * d)),),
                TokenMap.trace([Kind.VALUE], invert_ratio, name="ratio inversion"),
            ),
        ),
    )


def invert_ratio(r: Sequence[Wire]) -> list[Wire]:
    """`A = E(0) r/(1-r)` from `r = A/(A + E(0))`, E(0) = 1."""
    return [r[0] / (1 - r[0])]


def printed_ratio(problem: Problem) -> Oracle:
    """Step 2: rows `[key token, query token]`, no synthetic row; outputs `B/A`."""
    M, d, head = problem.M, problem.d, problem.head
    kinds = problem.kinds * 2
    full = Head(
        RationalMatrix.blocks(2 * d, head.W_Q.width, [(d, 0, head.W_Q)]),
        RationalMatrix.blocks(2 * d, head.W_K.width, [(0, 0, head.W_K)]),
        RationalMatrix.blocks(2 * d, head.W_V.width, [(0, 0, head.W_V)]),
    )
    return Oracle(
        PositionalMap(((0, M, TokenMap.identity(kinds)),)),
        (Layer((full,), TokenMap.identity([Kind.VALUE] * head.width)),),
    )


def printed_aggregation(problem: Problem) -> TokenMap:
    """`sum_t (B_t/A_t) A_t / sum_t A_t` and the large transformer's MLP, from all `(B_t/A_t, A_t)` of a row."""
    T, m = problem.N // problem.M, problem.head.width

    def aggregate(x: list[Wire]) -> Sequence[Wire]:
        parts = [(x[t * (m + 1) : t * (m + 1) + m], x[t * (m + 1) + m]) for t in range(T)]
        total = sum_of([A for _, A in parts])
        return problem.mlp([sum_of([ratio[c] * A for ratio, A in parts]) / total for c in range(m)])

    return TokenMap.trace([Kind.VALUE] * (T * (m + 1)), aggregate, name="aggregation")


def predict_printed(problem: Problem) -> Prediction:
    """`2 (N/M)^2` calls in one round (aggregation not counted: it is not given), embedding 2d+1."""
    T, d = problem.N // problem.M, problem.d
    embedding = max(d + 2, 2 * d + 1 if T > 1 else 2 * d)
    same = 3 * (d + 2) ** 2 + 6
    cross = 3 * (2 * d + 1) ** 2 + 5
    return Prediction(2 * T * T, 1, embedding, max(same, cross if T > 1 else 3 * (2 * d) ** 2 + 1))


# ======================================================================================================================
# Repaired
# ======================================================================================================================


def repaired(problem: Problem, aggregation: Aggregation) -> Program:
    """The construction, legal in the paper's own model, with the given aggregation. Raises RequestError if M is too small."""
    machine = machine_for(problem)
    X = machine.input("X", problem.N, problem.kinds)
    return machine.program(attach(machine, X, problem, aggregation))


@part_of("B.1")
def attach(machine: Machine, X: Stored, problem: Problem, aggregation: Aggregation) -> Stored:
    """The repaired construction on a matrix that the machine already holds (`problem.kinds` are its columns)."""
    r = problem.head.width + 1
    require(problem.M, aggregation.smallest(problem.N, r), aggregation.name)
    if aggregation.plan is None:
        return per_query(machine, X, problem)
    plan = aggregation.plan(problem.N, problem.M, r)
    return _follow(machine, X, problem, plan, lambda node: fused_block(problem, node, last=node is plan[0]))


def best(problem: Problem, minimise: str = "calls") -> Aggregation:
    """The aggregation that minimises calls (or rounds) for this problem."""
    return choose(problem.N, problem.M, problem.head.width + 1, minimise)


def fused_block(problem: Problem, node: Node, *, last: bool) -> Oracle:
    """The oracle for one node of a plan.

    Input row: `[key token (d) | query token (d) | r sums for each child]`. Row j reads the key token only if j is a real row.
    Embedding: `[query (d) | logarithms (r) | key (d) | one-hot role (r) | real | base]`, without the parts in r at a leaf.
    """
    M, d, head, m = problem.M, problem.d, problem.head, problem.head.width
    if last and not node.children:
        return large_head(problem)
    r, keys = m + 1, node.stop - node.start
    carried = r if node.children else 0
    rows = Rows(keys, carried, M - keys - carried)
    bound = problem.value_bound

    def tokens(number: int | None, real: bool) -> TokenMap:
        def place(x: list[Wire]) -> list[Wire | int]:
            key, query, sums = x[:d], x[d : 2 * d], x[2 * d :]
            merged = [sum_of(sums[c::r]) for c in range(carried)]
            return [
                *query,
                *(total.log() for total in merged),
                *(key if real else [0] * d),
                *one_hot(number, carried),
                int(real),
                int(not real and number is None),
            ]

        return TokenMap.trace(
            problem.kinds * 2 + (Kind.VALUE,) * (r * len(node.children)), place, name="transport (log of the sums)"
        )

    at_key, at_role, at_real, at_base = d + carried, 2 * d + carried, 2 * d + 2 * carried, 2 * d + 2 * carried + 1
    carry = RationalMatrix.identity(carried)
    W_Q = RationalMatrix.blocks(at_base + 1, head.W_Q.width + carried, [(0, 0, head.W_Q), (d, head.W_Q.width, carry)])
    W_K = RationalMatrix.blocks(
        at_base + 1, head.W_K.width + carried, [(at_key, 0, head.W_K), (at_role, head.W_K.width, carry)]
    )
    real_row = RationalMatrix.of([[bound] * m + [1]])
    W_V = RationalMatrix.blocks(
        at_base + 1,
        r if last else r + 1,
        [(at_key, 0, head.W_V), (at_role, 0, carry), (at_real, 0, real_row)]
        + ([] if last else [(at_base, r, RationalMatrix.identity(1))]),
    )

    def recover(out: list[Wire]) -> Sequence[Wire]:
        if last:
            return problem.mlp([out[c] / out[m] - bound for c in range(m)])
        return unnormalised(out[:r], out[r], rows.base)

    return Oracle(
        PositionalMap(
            tuple(
                (start, stop, tokens(number, real=number is None and not base))
                for start, stop, number, base in rows.roles()
            )
        ),
        (
            Layer(
                (Head(W_Q, W_K, W_V),),
                TokenMap.trace(
                    [Kind.VALUE] * W_V.width, recover, name="last quotient" if last else "recovery of the sums"
                ),
            ),
        ),
    )


def large_head(problem: Problem) -> Oracle:
    """The large transformer itself, when its input fits into one call."""
    return Oracle(
        PositionalMap(((0, problem.N, TokenMap.identity(problem.kinds)),)), (Layer((problem.head,), problem.mlp),)
    )


def per_query(
    machine: Machine,
    X: Stored,
    problem: Problem,
    leaf: Callable[[int], Oracle] | None = None,
    queries_from: Stored | None = None,
    divide: Callable[[list[Wire]], Sequence[Wire]] | None = None,
) -> Stored:
    """Leaves return `(B, A)` for each block of keys; each query's partial sums are summed by Lemma A.2, M at a time.

    `leaf(n)`, if given, is another oracle for a block of n keys, which may return any multiple of `(B, A)` that is the same for
    all blocks; `queries_from` then holds one row for each query, the token first; `divide` replaces the last quotients `B/A`.
    """
    N, M, m = problem.N, problem.M, problem.head.width
    if N <= M:
        return machine.call(large_head(problem), X, role="whole input")
    if leaf is None:
        unshifted = Problem(N, M, problem.transformer, problem.kinds, Fraction(0))
        leaf = partial(_unshifted_leaf, unshifted)
    blocks = [Node(at, min(N, at + M - 1), ()) for at in range(0, N, M - 1)]
    keys = [key_rows(machine, X, block, M) for block in blocks]
    oracles = {size: leaf(size) for size in {b.stop - b.start for b in blocks}}

    def finish(total: list[Wire]) -> Sequence[Wire]:
        return problem.mlp(list(divide(total)) if divide else [total[c] / total[m] for c in range(m)])

    sums = {rows: token_sum(rows, m + 1) for rows in range(2, M + 1)}
    last = {rows: token_sum(rows, m + 1, finish) for rows in range(2, M + 1)}
    answers = []
    for start, new in query_starts(N, M):
        queries = machine.rows(queries_from or X, start, start + M)
        partial_sums = [
            machine.call(oracles[block.stop - block.start], machine.join(key, queries), role="block")
            for block, key in zip(blocks, keys, strict=True)
        ]
        for i in range(new, start + M):
            queue = [machine.rows(part, i - start, i - start + 1) for part in partial_sums]
            # The first merge takes what makes every later one full, so that ceil((K-1)/(M-1)) merges suffice.
            take = (len(queue) - 2) % (M - 1) + 2
            while len(queue) > 1:
                group, queue = queue[:take], queue[take:]
                oracle = (sums if queue else last)[len(group)]
                queue.append(machine.rows(machine.call(oracle, machine.stack(*group), role="sum (A.2)"), 0, 1))
                take = M
            answers.append(queue[0])
    return machine.stack(*answers)


def _unshifted_leaf(problem: Problem, size: int) -> Oracle:
    return fused_block(problem, Node(0, size, ()), last=False)


def predict_repaired(problem: Problem, aggregation: Aggregation) -> Prediction:
    """Calls and rounds by the formulas of `proofs.aggregation`; embedding 4d+4 when sums are carried (2d+2r+2 in general)."""
    N, M, d, r = problem.N, problem.M, problem.d, problem.head.width + 1
    calls, rounds = aggregation.calls(N, M, r), aggregation.rounds(N, M, r)
    output, mlp = len(problem.mlp.outputs), problem.mlp.parameters
    if N <= M:
        embedding = max(d, problem.head.width, output)
        return Prediction(calls, rounds, embedding, 3 * embedding**2 + 1 + mlp)
    # A range of positions stores its end and the constants 0 and 1.
    if aggregation.plan is None:
        widest, merge = max(2 * d + 2, r + 1), max(r, output)
        scaled = r if N % (M - 1) else 0  # only the last block of keys has more than one base row
        parameters = max(3 * widest**2 + 6 + scaled, 3 * merge**2 + 1 + r + mlp)
        return Prediction(calls, rounds, max(widest, merge), parameters)
    return Prediction(calls, rounds, *_plan_size(problem, aggregation.plan(N, M, r), r))


def _plan_size(problem: Problem, plan: Plan, r: int) -> tuple[int, int]:
    """Embedding dimension and parameters of the largest oracle of a plan."""
    d, M, output = problem.d, problem.M, len(problem.mlp.outputs)
    embedding, parameters = 0, 0
    for node in plan:
        carried = r if node.children else 0
        base = M - (node.stop - node.start) - carried
        width = 2 * d + 2 * carried + 2
        ranges = (node.stop > node.start) + carried + (base > 0)
        if node is plan[0]:
            width, constants = max(width, output), r - 1 + problem.mlp.parameters
        else:
            constants = r * (base > 1)
        embedding, parameters = max(embedding, width), max(parameters, 3 * width**2 + 3 * ranges + constants)
    return embedding, parameters


# ======================================================================================================================
# Residual variant
# ======================================================================================================================


@part_of("B.1")
def residual(problem: Problem) -> Program:
    """The model changed: layer MLPs see `[attention output, input]`, so running sums stay in the row. Needs M >= 2 or N <= M."""
    machine = machine_for(problem, residual=True)
    X = machine.input("X", problem.N, problem.kinds)
    return machine.program(attach_residual(machine, X, problem))


@part_of("B.1")
def attach_residual(machine: Machine, X: Stored, problem: Problem) -> Stored:
    """The residual variant on a matrix that a machine with residual connections already holds."""
    require(problem.M, min(problem.N, 2), "residual")
    plan = residual_plan(problem.N, problem.M)
    return _follow(machine, X, problem, plan, lambda node: residual_block(problem, node, last=node is plan[0]))


def residual_block(problem: Problem, node: Node, *, last: bool) -> Oracle:
    """Row: `[key token | query token | r sums for each child]`; embedding `[query | key | real | base | merged sums]`."""
    M, d, head, m = problem.M, problem.d, problem.head, problem.head.width
    if last and not node.children:
        return large_head(problem)
    r, keys = m + 1, node.stop - node.start
    carried = r if node.children else 0
    rows = Rows(keys, 0, M - keys)

    def tokens(real: bool) -> TokenMap:
        def place(x: list[Wire]) -> list[Wire | int]:
            key, query, sums = x[:d], x[d : 2 * d], x[2 * d :]
            merged = [sum_of(sums[c::r]) for c in range(carried)]
            return [*query, *(key if real else [0] * d), int(real), int(not real), *merged]

        return TokenMap.trace(problem.kinds * 2 + (Kind.VALUE,) * (r * len(node.children)), place)

    width = 2 * d + 2 + carried
    W_V = RationalMatrix.blocks(
        width,
        r + 1,
        [(d, 0, head.W_V), (2 * d, m, RationalMatrix.identity(1)), (2 * d + 1, r, RationalMatrix.identity(1))],
    )
    block = Head(
        RationalMatrix.blocks(width, head.W_Q.width, [(0, 0, head.W_Q)]),
        RationalMatrix.blocks(width, head.W_K.width, [(d, 0, head.W_K)]),
        W_V,
    )
    input_map = PositionalMap(tuple((start, stop, tokens(not base)) for start, stop, _, base in rows.roles()))

    def merge(x: list[Wire]) -> Sequence[Wire]:
        found, before = unnormalised(x[:r], x[r], rows.base), x[r + 1 + 2 * d + 2 :]
        total = [a + b for a, b in zip(found, before, strict=True)] if before else found
        return problem.mlp([total[c] / total[m] for c in range(m)]) if last else total

    mlp = TokenMap.trace((Kind.VALUE,) * (r + 1) + input_map.kinds, merge)
    return Oracle(input_map, (Layer((block,), mlp, residual=True),))


def predict_residual(problem: Problem) -> tuple[int, int]:
    """Calls `ceil(N/M) ceil(N/(M-1))` (one if N <= M) and rounds."""
    nodes = leaves(problem.N, problem.M)
    return query_blocks(problem.N, problem.M) * nodes, depth(nodes)


# ======================================================================================================================


def _follow(machine: Machine, X: Stored, problem: Problem, plan: Plan, oracle_for: Callable[[Node], Oracle]) -> Stored:
    """Follows a plan: for every block of queries, its calls from the leaves to the root."""
    N, M = problem.N, problem.M
    oracles = _shared(plan, oracle_for)
    if len(plan) == 1:
        return machine.call(oracles[0], X, role="whole input")
    keys = [key_rows(machine, X, node, M) for node in plan]
    answers = []
    for start, new in query_starts(N, M):
        queries = machine.rows(X, start, start + M)
        sums: dict[int, Stored] = {}
        for i in reversed(range(len(plan))):
            carried = [sums.pop(child) for child in plan[i].children]
            role = "last" if i == 0 else "merge" if carried else "block"
            sums[i] = machine.call(oracles[i], machine.join(keys[i], queries, *carried), role=role)
        answers.append(machine.rows(sums[0], new - start, M))
    return machine.stack(*answers)


def _shared(plan: Plan, oracle_for: Callable[[Node], Oracle]) -> list[Oracle]:
    """One oracle for each node; nodes of the same shape share it (its parameters do not depend on which keys it reads)."""
    known: dict[tuple[int, int, bool], Oracle] = {}
    oracles = []
    for i, node in enumerate(plan):
        shape = (node.stop - node.start, len(node.children), i == 0)
        if shape not in known:
            known[shape] = oracle_for(node)
        oracles.append(known[shape])
    return oracles


def key_rows(machine: Machine, X: Stored, node: Node, M: int) -> Stored:
    """M rows whose first ones are the node's keys; the others are any tokens, which the input map does not read."""
    keys = node.stop - node.start
    if keys == 0:
        return machine.rows(X, 0, M)
    own = machine.rows(X, node.start, node.stop)
    return own if keys == M else machine.stack(own, machine.rows(X, 0, M - keys))


def query_starts(N: int, M: int) -> list[tuple[int, int]]:
    """For each block of M queries, where it starts and the first query that is new in it (the last block overlaps)."""
    return [(min(t * M, N - M), t * M) for t in range(ceiling(N, M))]


def machine_for(problem: Problem, *, waive: Sequence[str] = (), residual: bool = False) -> Machine:
    """A machine with the problem's limits."""
    return Machine(problem.M, problem.d, problem.mlp.cost, waive=waive, residual=residual)


def _reads(height: int, row: int) -> RationalMatrix:
    """The one-column matrix that reads one input column."""
    return RationalMatrix.from_entries(height, 1, {(row, 0): 1})


# ======================================================================================================================
# Claims
# ======================================================================================================================

UNIVERSAL_SIZES = [(1, 1, 1), (2, 1, 1), (2, 2, 1), (3, 2, 1), (5, 3, 1), (6, 3, 1), (6, 4, 1), (5, 4, 2), (7, 5, 1)]
"""(N, M, value columns) at which the identities are checked for every input."""

INSTANCE_SIZES = [(1, 1, 1), (2, 3, 1), (4, 4, 2), (5, 4, 1), (9, 4, 1), (12, 6, 2), (13, 7, 3)]
"""(N, M, d) of the sampled instances."""

GRID = [(N, M, d) for N in (*range(1, 17), 23, 40) for M in (*range(1, 10), 16) for d in (1, 2, 3)]
"""(N, M, d) at which formulas are compared with the machine's counts."""


def _fitting(aggregation: Aggregation, sizes: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    return ((N, M, m) for N, M, m in sizes if aggregation.smallest(N, m + 1) <= M)


def _register(name: str, aggregation: Aggregation) -> None:
    def build(problem: Problem) -> Program:
        return repaired(problem, aggregation)

    @B1.check(
        "repaired",
        "symbolic",
        name=f"identity-{name}",
        predicate="output = attention output as rational functions of all weights and values",
        implies="the construction computes the attention layer exactly, for every input of these sizes (where logarithms are "
        "used: with values below the declared bound, so that what stands under them is positive)",
        assumes=("FLINT",),
    )
    def identity() -> Outcome:
        # The bound is 1 here; for another bound c, divide all values by c: the program and the attention output scale alike.
        sizes = list(_fitting(aggregation, UNIVERSAL_SIZES))
        return universal(build, (Problem.universal(N, M, m) for N, M, m in sizes), sizes=_describe(sizes))

    @B1.check(
        "repaired",
        "exact",
        name=f"instances-{name}",
        predicate="output = direct evaluation, entry by entry",
        implies="the construction is exact on these instances under both kernels",
        assumes=("FLINT", "Lindemann"),
    )
    def instances() -> Outcome:
        return on_instances(build, list(samples(list(_fitting(aggregation, INSTANCE_SIZES)))))

    @B1.check(
        "repaired",
        "ball",
        name=f"target-{name}",
        predicate="||output_i - direct_i|| <= 2^-N ||direct_i|| for every row i, by enclosures",
        implies="the run meets the paper's definition of simulation at working precision",
        assumes=("Arb",),
    )
    def target() -> Outcome:
        return within_target(build, [sample(N, M, d, 7) for N, M, d in _fitting(aggregation, [(16, 6, 2), (20, 7, 3)])])

    @B1.check(
        "repaired",
        "integers",
        name=f"cost-{name}",
        predicate="counted calls, rounds, embedding and parameters = formulas; longest input <= M; no rule broken",
        implies="the cost formulas hold at these sizes and the construction is legal in the paper's model",
    )
    def cost() -> Outcome:
        return _costs(
            build,
            lambda p: predict_repaired(p, aggregation),
            list(_fitting(aggregation, GRID)),
            f"repaired, {name}",
            aggregation.formula,
        )


for _name, _aggregation in AGGREGATIONS.items():
    _register(_name, _aggregation)


@B1.check(
    "printed",
    "integers",
    predicate="no call reads more than M rows, and no arithmetic happens outside the oracles",
    implies="the printed construction is legal in the paper's model",
    expects=Status.REFUTED,
    name="legal",
)
def printed_is_legal() -> Outcome:
    """The smallest (N, M, d) at which the printed construction breaks a rule; step 1 stacks a full block of M tokens and a
    synthetic row whatever the size, so the length rule is broken at every size."""
    for N, M, d in sorted((N, M, d) for N in (1, 2) for M in (1, 2) for d in (1, 2) if N % M == 0):
        program = printed(sample(N, M, d, 0).problem)
        if program.broken_rules:
            rules = [
                {"rule": b.rule, "limit": b.limit, "needed": b.needed, "why": b.detail} for b in program.broken_rules
            ]
            return Outcome(
                Status.REFUTED,
                Scope("every size"),
                "the printed construction's calls",
                f"N = {N}, M = {M}, d = {d} (the smallest); step 1 always appends a row to a full block",
                "; ".join(f"{b.rule}: limit {b.limit}, needed {b.needed}" for b in program.broken_rules),
                {"N": N, "M": M, "d": d, "broken_rules": rules},
                broken(program.broken_rules),
            )
    return Outcome(Status.PROVED, Scope.sizes("N, M, d <= 2"), "the printed construction's calls", "", "no rule broken")


@B1.check(
    "printed",
    "symbolic",
    predicate="with the broken rules waived, output = attention output as rational functions",
    implies="the printed algebra is right: only the rules of the model are broken",
    assumes=("FLINT",),
    name="identity-waived",
)
def printed_identity() -> Outcome:
    """The printed formulas, for every input of the sizes that M divides."""
    sizes = [(N, M, m) for N, M, m in [(1, 1, 1), (2, 1, 1), (2, 2, 1), (4, 2, 1), (6, 3, 1), (4, 2, 2)]]
    return universal(printed, (Problem.universal(N, M, m) for N, M, m in sizes), sizes=_describe(sizes))


@B1.check(
    "printed",
    "integers",
    predicate="counted calls, rounds, embedding and parameters = formulas",
    implies="the printed construction makes 2 (N/M)^2 calls before any aggregation",
    name="cost",
)
def printed_cost() -> Outcome:
    """Formulas against counts, on the sizes that M divides."""
    sizes = [(N, M, d) for N, M, d in GRID if N % M == 0]
    return _costs(printed, predict_printed, sizes, "printed", ["*", 2, ["^", ["/", "N", "M"], 2]], legal=False)


@B1.check(
    "residual",
    "symbolic",
    predicate="output = attention output as rational functions of all weights and values",
    implies="with residual connections the construction needs no transport",
    assumes=("FLINT",),
    name="identity-residual",
)
def residual_identity() -> Outcome:
    """The residual variant, for every input of these sizes."""
    sizes = [(N, M, m) for N, M, m in UNIVERSAL_SIZES if min(N, 2) <= M]
    return universal(residual, (Problem.universal(N, M, m) for N, M, m in sizes), sizes=_describe(sizes))


@B1.check(
    "residual",
    "exact",
    predicate="output = direct evaluation, entry by entry",
    implies="the residual variant is exact on these instances under both kernels",
    assumes=("FLINT", "Lindemann"),
    name="instances-residual",
)
def residual_instances() -> Outcome:
    """The residual variant on sampled instances."""
    return on_instances(residual, list(samples(INSTANCE_SIZES)))


# --- findings ----------------------------------------------------------------------------------------------------------

R3 = REGISTRY.add(
    Claim(
        "R3",
        "M+1 rows for an oracle of length M",
        "Step 1 of Lemma B.1 feeds M+1 rows to an oracle that accepts M.",
        "Review, major comment 3",
        kind="finding",
    )
)
R4 = REGISTRY.add(
    Claim(
        "R4",
        "Aggregation not given as oracle calls",
        "The last step of Lemma B.1 multiplies, adds and divides outside the oracles; no sequence of calls is given.",
        "Review, major comment 4",
        kind="finding",
    )
)
R6 = REGISTRY.add(
    Claim(
        "R6",
        "Blocks off by one",
        "The proof of Lemma B.1 defines S_t = {(t-1)M, ..., tM}: these sets have M+1 elements and overlap; the notation "
        "section's S_t = {(t-1)M+1, ..., tM} is a partition.",
        "Review, minor comment 2",
        kind="comment",
    )
)
N4 = REGISTRY.add(
    Claim(
        "N4",
        "Step 2 counted twice",
        "Step 2 of Lemma B.1 takes (N/M)^2 calls; where the paper counts it as N/M, the count is too small.",
        "Lemma B.1, step 2",
        kind="finding",
    )
)
N15 = REGISTRY.add(
    Claim(
        "N15",
        "Columns that the constructions need",
        "The printed constructions need more columns than stated: Lemma B.1 appends the constant 1 and the indicator of real tokens.",
        "Lemmas A.1, A.2 and B.1",
        kind="finding",
    )
)

_DIVIDED = [(N, M, d) for N, M, d in GRID if N % M == 0]


@R3.check(
    "printed",
    "integers",
    predicate="the longest input of the printed construction is M + 1, for every block length M",
    implies="the printed construction breaks the length rule at every size",
)
def printed_reads_one_row_too_many() -> Outcome:
    """Step 1 stacks a full block and a synthetic row, so the length is M+1 for every M; the machine counts it on a grid."""
    wrong = [(N, M, d) for N, M, d in _DIVIDED if printed(sample(N, M, d, 0).problem).cost.longest_input != M + 1]
    return Outcome(
        Status.REFUTED if wrong else Status.PROVED,
        Scope.sizes(f"{len(_DIVIDED)} sizes (N, M, d) with M dividing N"),
        "the longest input that the printed construction feeds to an oracle",
        "sizes on a grid",
        f"not M+1 at {wrong[0]}" if wrong else "always M+1; smallest: N = 1, M = 1, d = 1 needs 2 rows",
        {"smallest": {"N": 1, "M": 1, "d": 1, "needed": 2}, "sizes": len(_DIVIDED)},
    )


@R3.check(
    "repaired",
    "integers",
    predicate="no call of the repaired construction reads more than M rows",
    implies="blocks of M-1 tokens and a base row remove the fault at a constant factor",
)
def repaired_stays_within_length() -> Outcome:
    """Every aggregation on the grid, N not divisible by M included."""
    done = 0
    for aggregation in AGGREGATIONS.values():
        for N, M, d in _fitting(aggregation, GRID):
            longest = repaired(sample(N, M, d, 0).problem, aggregation).cost.longest_input
            done += 1
            if longest > M:
                return _size_fault("longest input", N, M, d, longest, M)
    return Outcome(
        Status.PROVED,
        Scope.sizes(f"{done} sizes and aggregations"),
        "the longest input that the repaired construction feeds to an oracle",
        "sizes on a grid, divisible or not",
        "never more than M",
        {"checked": done},
    )


@R4.check(
    "printed",
    "integers",
    predicate="a machine that allows no outside arithmetic refuses the printed construction",
    implies="as printed, the last step is not an oracle algorithm",
)
def printed_aggregates_outside() -> Outcome:
    """The machine with only the length rule waived refuses the aggregation, whatever the size."""
    refused = []
    for N, M in ((1, 1), (2, 1), (4, 2)):
        problem = sample(N, M, 1, 0).problem
        machine = machine_for(problem, waive=(INPUT_LENGTH,))
        try:
            attach_printed(machine, machine.input("X", N, problem.kinds), problem)
        except RuleBroken as error:
            refused.append({"N": N, "M": M, "rule": error.rule, "operations": error.needed})
    proved = len(refused) == 3 and all(r["rule"] == OUTSIDE_ARITHMETIC for r in refused)
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        Scope("every size: the aggregation is one outside map for each block of queries; run at three sizes"),
        "the printed construction on a machine without waived arithmetic",
        "N = M = 1 (the smallest), N = 2, M = 1, and N = 4, M = 2",
        "refused: arithmetic outside the oracle" if proved else "not refused",
        {"refused": refused},
    )


@R4.check(
    "repaired",
    "integers",
    predicate="the repaired construction runs on a machine that waives nothing, and ends in an oracle call",
    implies="the aggregation and the layer MLP are oracle calls, for every aggregation",
)
def repaired_aggregates_inside() -> Outcome:
    """No rule is waived when the repaired programs are built, so that building them is the check."""
    done = 0
    for aggregation in AGGREGATIONS.values():
        for N, M, d in _fitting(aggregation, GRID):
            program = repaired(sample(N, M, d, 0).problem, aggregation)
            done += 1
            if program.broken_rules or any(isinstance(step, Outside) for step in program.instructions):
                return _size_fault("outside arithmetic", N, M, d, 1, 0)
    return Outcome(
        Status.PROVED,
        Scope.sizes(f"{done} sizes and aggregations"),
        "the repaired programs",
        "sizes on a grid",
        "no arithmetic outside the oracles",
        {"checked": done},
    )


@R6.check(
    "printed",
    "integers",
    predicate="the sets {(t-1)M, ..., tM}, t = 1..N/M, cover some token twice or name token 0",
    implies="sums over the sets of the proof are not sums over the tokens",
)
def printed_blocks_overlap() -> Outcome:
    """|S_t| = M+1 and S_t and S_(t+1) share tM, for all t and M; counted on a grid, with the smallest wrong output."""
    bad, sizes = [], [(N, M) for N in range(1, 25) for M in range(1, N + 1) if N % M == 0]
    for N, M in sizes:
        named = [j for t in range(1, N // M + 1) for j in range((t - 1) * M, t * M + 1)]
        notation = [j for t in range(1, N // M + 1) for j in range((t - 1) * M + 1, t * M + 1)]
        if sorted(notation) != list(range(1, N + 1)):
            return _size_fault("the partition of the notation section", N, M, 1, 1, 0)
        if len(named) == N + N // M and named.count(0) == 1:
            bad.append((N, M))
    proved = bad == sizes
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        Scope.sizes("N up to 24, every M that divides N"),
        "the index sets of the proof, beside those of the notation section",
        "N tokens numbered from 1",
        "N/M indices too many, token 0 among them; smallest: N = M = 1 gives {0, 1}; with equal weights and values 1 and 0, "
        "N = 2, M = 1 averages to 2/3 instead of 1/2",
        {
            "smallest": {"N": 1, "M": 1, "S_1": [0, 1]},
            "wrong average": {"N": 2, "M": 1, "printed": "2/3", "correct": "1/2"},
        },
    )


@N4.check(
    "printed",
    "integers",
    predicate="the machine counts (N/M)^2 calls of step 2, which exceeds N/M whenever M < N",
    implies="the count N/M for step 2 is a slip; the total O((N/M)^2) is not affected",
    assumes=("text of the paper",),
)
def step_two_takes_a_square() -> Outcome:
    """Calls by role in the printed program."""
    for N, M, d in _DIVIDED:
        counted = printed(sample(N, M, d, 0).problem).calls_by_role["B/A (step 2)"]
        if counted != (N // M) ** 2:
            return _size_fault("calls of step 2", N, M, d, counted, (N // M) ** 2)
    return Outcome(
        Status.PROVED,
        Scope.sizes(f"{len(_DIVIDED)} sizes (N, M, d) with M dividing N"),
        "calls of step 2 in the printed program",
        "sizes on a grid",
        "(N/M)^2 calls; smallest where that is not N/M: N = 2, M = 1 takes 4, not 2",
        {"smallest": {"N": 2, "M": 1, "calls": 4, "stated": 2}},
    )


@N15.check(
    "printed",
    "integers",
    predicate="the same-block oracle of step 1 has embedding dimension d + 2, not d + 1",
    implies="step 1 needs the constant 1 for the scores and a second column for the values 1 and 0",
)
def printed_needs_two_columns() -> Outcome:
    """The values `1 for real tokens, 0 for the synthetic one` are not the constant column, which is 1 on both."""
    for d in range(1, 9):
        embedding = printed_same_block(sample(2, 2, d, 0).problem).embedding
        if embedding != d + 2:
            return _size_fault("embedding of step 1", 2, 2, d, embedding, d + 2)
    return Outcome(
        Status.PROVED,
        Scope.sizes("d = 1, ..., 8"),
        "the oracle of step 1, built as printed",
        "rows [x_j, 1] and [0, 1]",
        "embedding d + 2: the row as printed has d + 1 columns and its last one cannot serve as constant and as value",
        {"d": list(range(1, 9)), "embedding": [d + 2 for d in range(1, 9)]},
    )


def _size_fault(what: str, N: int, M: int, d: int, found: int, expected: int) -> Outcome:
    return Outcome(
        Status.REFUTED,
        Scope.instance(),
        what,
        f"N = {N}, M = {M}, d = {d}",
        f"{what}: {found} instead of {expected}",
        {"N": N, "M": M, "d": d, "found": found, "expected": expected},
    )


def _costs(
    build: Callable[[Problem], Program],
    predict: Callable[[Problem], Prediction],
    sizes: Sequence[tuple[int, int, int]],
    object_: str,
    calls: Expression,
    *,
    legal: bool = True,
) -> Outcome:
    """Compares the machine's counts with the formulas at each (N, M, d)."""
    rows = []
    for N, M, d in sizes:
        problem = sample(N, M, d, 0).problem
        program, prediction = build(problem), predict(problem)
        counted = Prediction(program.cost.calls, program.cost.rounds, program.cost.embedding, program.cost.parameters)
        if counted != prediction or (legal and (program.cost.longest_input > M or program.broken_rules)):
            return Outcome(
                Status.REFUTED,
                Scope.instance(),
                object_,
                f"N = {N}, M = {M}, d = {d}",
                f"counted {counted}, predicted {prediction}, longest input {program.cost.longest_input}",
                {"N": N, "M": M, "d": d, "longest_input": program.cost.longest_input},
            )
        rows.append([N, M, d, program.cost.calls, program.cost.longest_input])
    return Outcome(
        Status.PROVED,
        Scope.sizes(f"{len(sizes)} sizes (N, M, d) up to {max(sizes)}"),
        object_,
        "sizes (N, M, d) on a grid, edges included",
        f"formulas and counts agree at all {len(sizes)} sizes",
        {"sizes": len(sizes)},
        counts(rows, calls, legal=legal),
    )


def counts(rows: Sequence[Sequence[int]], calls: Expression, *, legal: bool = True) -> tuple[Statement, ...]:
    """Counted (N, M, d, calls, longest input): inputs of at most M rows, and calls as in the formula for N > M."""
    columns = ("N", "M", "d", "calls", "longest")
    statements = []
    if beyond := [row for row in rows if row[0] > row[1]]:
        statements.append(table("the counted calls are those of the formula", columns, beyond, "==", "calls", calls))
    if legal:
        statements.append(table("no call reads more than M rows", columns, rows, "<=", "longest", "M"))
    return tuple(statements)


def _describe(sizes: Sequence[tuple[int, int, int]]) -> str:
    """Sizes for people."""
    return "(N, M, value columns) in " + ", ".join(str(size) for size in sizes)
