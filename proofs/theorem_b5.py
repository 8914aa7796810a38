"""Theorem B.5 (= 3.5) with claim B.6: causal masks on both sides.

**Statement.** A transformer with a causal mask is simulated by `O((N/M)^2 HL/(H'L'))` calls to oracles with a causal mask.
This module has the single-head single-layer case; `proofs.theorem_b4` composes heads and layers.

**Claim B.6, as printed** (`printed_b6`). Rows `[0,1]`, then `[x_j,1]`, causal: row i+1 gives `r = sum_{j<=i} a_ij / (sum + E(0))`. Right, but for M+1 rows (R3);
its displayed denominator sums one term too many for the row it describes (R7), and its displayed score matrix lacks the +1 of `W' = diag(W,1)` (N13), without
which the inversion is off by the factor E(1).

**Theorem B.5, as printed** (`printed`). Blocks t' < t of M tokens, `A1 = sum over S_t' and [i]`, `A2 = sum over S_t' minus [i]`. Read literally the split is by
the tokens' numbers, so A1 is the whole block and A2 is empty (N1), while the causal calls split by the position inside the block. The call for B2/A2 reverses both blocks without shift or zero row, so
it contains the diagonal position, which the call for A2 does not (N2); with the zero row kept it yields `B2/(A2+1)` instead. Each reading (`READINGS`) is run; the smallest
failure is N = 4, M = 2, d = 1. With `B2 = (B2/(A2+1)) (A2+1)` (reading `corrected`) the output is right.

**Repaired** (`attach`; legal in the paper's own model, with a declared row gather). Blocks of b = M-r-1 tokens, r = m+1. For each block of queries: one
forward call on its own keys, which is the causal mask within the block, and for each earlier block of keys one forward and one reverse call
(`proofs.causal`), the repaired A1 and A2: split by position *inside* the block. What earlier calls found is carried by fused transport; the plan
of merges is a heap (`tree`) or a path (`chained`). `per-query` merges by Lemma A.2, whose last row sees
all others under a causal mask; it needs no carried rows, so b = M-1 and M >= 2 suffice.

Calls (tree, chained): `ceil(N/b)^2` (block s takes 2s+1; a block of one token has no reverse call: `n(n+1)/2` for n = N blocks of b = 1);
1 if N <= M. Smallest M: r+2 = m+3 (tree, chained), 2 (per-query); any M >= N.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from proofs.aggregation import Node, Plan, ceiling, merge_rounds, plan_rounds, require
from proofs.causal import CausalCalls
from proofs.lemma_a2 import token_sum
from proofs.lemma_b1 import invert_ratio, large_head, machine_for
from proofs.registry import REGISTRY
from verify.arithmetic.interface import Arithmetic, Column, Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.claims.compare import Instance, exact_rows, on_instances, universal, within_target
from verify.claims.functions import Function, for_every_input, program_of
from verify.claims.samples import sample, samples
from verify.claims.verdict import Outcome, Scope, Status
from verify.errors import RuleBroken
from verify.oracle.machine import DIVISIBILITY, INPUT_LENGTH, OUTSIDE_ARITHMETIC, Machine, Stored
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.oracle.program import Program
from verify.transformer.attention import CAUSAL, Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire, sum_of

B5 = REGISTRY.add(
    Claim(
        "B.5",
        "Causal masks",
        "A transformer with a causal mask is simulated by O((N/M)^2 HL/(H'L')) calls to oracles with a causal mask.",
        "Theorem 3.5 = Theorem B.5, Section 3 and Appendix B.5",
        aliases=("3.5",),
    )
)


B6 = REGISTRY.add(
    Claim(
        "B.6",
        "Prefix weights under a causal mask",
        "With a first row [0, 1] and values 0, 1, ..., 1 a causal oracle's row i+1 outputs sum_{j<=i} a_ij / (sum_{j<=i} a_ij + E(0)).",
        "Claim B.6, Appendix B.5",
    )
)


# ======================================================================================================================
# As printed
# ======================================================================================================================

READINGS = ("by number", "diagonal kept", "zero row kept", "corrected")
"""Readings of the printed text: A2 empty as its definition says; B2/A2 from the call without zero row; from the call with it; and the latter corrected."""


def printed_rows(
    problem: Problem, *, zero_row: bool, tokens: bool, finish: Callable[[list[Wire]], Sequence[Wire]] | None = None
) -> Oracle:
    """A printed causal call on rows `[key token | query token]`, with the zero row first or without it.

    Values are the tokens' (`tokens`) or the indicators 1 of real rows; `finish` is the layer MLP.
    """
    d, head, M = problem.d, problem.head, problem.M
    kinds = problem.kinds * 2
    real = TokenMap.trace(kinds, lambda x: [*x, 1])
    ranges = [(0, M, real)]
    if zero_row:
        ranges = [(0, 1, TokenMap.trace(kinds, lambda x: [*x, 0])), (1, M + 1, real)]
    W_V = (
        RationalMatrix.blocks(2 * d + 1, head.width, [(0, 0, head.W_V)])
        if tokens
        else RationalMatrix.from_entries(2 * d + 1, 1, {(2 * d, 0): 1})
    )
    built = Head(
        RationalMatrix.blocks(2 * d + 1, head.W_Q.width, [(d, 0, head.W_Q)]),
        RationalMatrix.blocks(2 * d + 1, head.W_K.width, [(0, 0, head.W_K)]),
        W_V,
    )
    outputs = [Kind.VALUE] * W_V.width
    mlp = TokenMap.trace(outputs, finish) if finish else TokenMap.identity(outputs)
    return Oracle(PositionalMap(tuple(ranges)), (Layer((built,), mlp),), CAUSAL)


def printed_b6(problem: Problem, *, plus_one: bool = True) -> Oracle:
    """Claim B.6's oracle for M tokens: rows `[0,1]`, `[x_j,1]`, `W' = diag(W,1)`, and the inversion as layer MLP.

    Without `plus_one` the real-real scores lack the +1, as the displayed matrix has it (N13).
    """
    d, head, M = problem.d, problem.head, problem.M
    one = RationalMatrix.identity(1)
    # Columns: token, the constant 1, the indicator of real rows, the indicator of the zero row.
    key_of_one = d if plus_one else d + 2
    W_Q = RationalMatrix.blocks(d + 3, head.W_Q.width + 1, [(0, 0, head.W_Q), (d, head.W_Q.width, one)])
    W_K = RationalMatrix.blocks(d + 3, head.W_K.width + 1, [(0, 0, head.W_K), (key_of_one, head.W_K.width, one)])
    W_V = RationalMatrix.from_entries(d + 3, 1, {(d + 1, 0): 1})
    return Oracle(
        PositionalMap(
            (
                (0, 1, TokenMap.trace(problem.kinds, lambda x: [*x, 1, 0, 1])),
                (1, M + 1, TokenMap.trace(problem.kinds, lambda x: [*x, 1, 1, 0])),
            )
        ),
        (Layer((Head(W_Q, W_K, W_V),), TokenMap.trace([Kind.VALUE], invert_ratio)),),
        CAUSAL,
    )


def b6_program(problem: Problem, *, plus_one: bool = True) -> Program:
    """Claim B.6 on all N = M tokens; the output is the prefix weights, one for each token."""
    machine = _printed_machine(problem)
    X = machine.input("X", problem.N, problem.kinds)
    zero = machine.constants([[0] * problem.d])
    answer = machine.call(printed_b6(problem, plus_one=plus_one), machine.stack(zero, X))
    return machine.program(machine.rows(answer, 1, problem.N + 1))


@part_of("B.5")
def printed(problem: Problem, reading: str) -> Program:
    """The printed construction in one of its `READINGS`, with the rules that it breaks waived. Raises RuleBroken if M does not divide N."""
    machine = _printed_machine(problem)
    X = machine.input("X", problem.N, problem.kinds)
    return machine.program(attach_printed(machine, X, problem, reading))


def attach_printed(machine: Machine, X: Stored, problem: Problem, reading: str) -> Stored:
    """The printed construction on a matrix that a machine with waived rules already holds."""
    N, M, d = problem.N, problem.M, problem.d
    if N % M:
        raise RuleBroken(DIVISIBILITY, M, N, "the printed construction cuts N tokens into N/M blocks of M")
    zero = machine.constants([[0] * d])
    both_zero = machine.join(zero, zero)
    own_weights = printed_b6(problem)
    weights = printed_rows(problem, zero_row=True, tokens=False, finish=invert_ratio)
    ratio = printed_rows(problem, zero_row=False, tokens=True)
    kept = printed_rows(problem, zero_row=True, tokens=True)
    answers = []
    for s in range(N // M):
        queries = machine.rows(X, s * M, (s + 1) * M)
        parts: list[Stored] = []
        for t in range(s):
            keys = machine.rows(X, t * M, (t + 1) * M)
            pair = machine.join(keys, queries)
            A1 = machine.rows(machine.call(weights, machine.stack(both_zero, pair), role="A1"), 1, M + 1)
            parts += [machine.call(ratio, pair, role="B1/A1"), A1]
            if reading == "by number":
                continue
            backwards = list(range(M - 1, -1, -1))
            reversed_pair = machine.join(machine.gather(keys, backwards), machine.gather(queries, backwards))
            shifted = machine.join(
                machine.stack(zero, machine.gather(keys, backwards)),
                machine.stack(machine.gather(queries, backwards), zero),
            )
            A2 = machine.gather(machine.rows(machine.call(weights, shifted, role="A2"), 0, M), backwards)
            if reading == "diagonal kept":
                B2 = machine.call(ratio, reversed_pair, role="B2/A2")
            else:
                B2 = machine.rows(machine.call(kept, shifted, role="B2/A2"), 0, M)
            parts += [machine.gather(B2, backwards), A2]
        pair = machine.join(queries, queries)
        A = machine.rows(machine.call(own_weights, machine.stack(zero, queries), role="A1"), 1, M + 1)
        parts += [machine.call(ratio, pair, role="B1/A1"), A]
        aggregate = _printed_sum(problem, len(parts) // 2, s, reading)
        answers.append(
            machine.outside(aggregate, machine.join(*parts), detail="the aggregation is not given as oracle calls")
        )
    return machine.stack(*answers)


def _printed_sum(problem: Problem, terms: int, s: int, reading: str) -> TokenMap:
    """`sum (B/A) A / sum A` over all parts; the corrected reading multiplies `B2/(A2+1)` by `A2+1`."""
    m = problem.head.width

    def aggregate(x: list[Wire]) -> Sequence[Wire]:
        parts = [(x[t * (m + 1) : t * (m + 1) + m], x[t * (m + 1) + m]) for t in range(terms)]
        factors = [
            A + 1 if reading == "corrected" and t % 2 == 1 and t < 2 * s else A for t, (_, A) in enumerate(parts)
        ]
        total = sum_of([A for _, A in parts])
        numerators = [
            sum_of([ratio[c] * factor for (ratio, _), factor in zip(parts, factors, strict=True)]) for c in range(m)
        ]
        return problem.mlp([numerator / total for numerator in numerators])

    return TokenMap.trace([Kind.VALUE] * (terms * (m + 1)), aggregate)


def _printed_machine(problem: Problem) -> Machine:
    machine = machine_for(problem, waive=(INPUT_LENGTH, OUTSIDE_ARITHMETIC))
    machine.declared_gather = True
    return machine


def predict_printed(problem: Problem, reading: str) -> tuple[int, int]:
    """Calls and rounds: for each block two calls on its own keys, and four (two, by number) for each earlier block; one round."""
    n = problem.N // problem.M
    return 2 * n + (2 if reading == "by number" else 4) * n * (n - 1) // 2, 1


# ======================================================================================================================
# Repaired
# ======================================================================================================================


@dataclass(frozen=True)
class CausalAggregation:
    """How a block's calls are merged; `plan(n)` is the tree of n calls, None for the per-query aggregation."""

    name: str
    plan: Callable[[int], Plan] | None


def heap(n: int) -> Plan:
    """n calls, each merging up to two others."""
    return tuple(Node(0, 0, tuple(c for c in (2 * i + 1, 2 * i + 2) if c < n)) for i in range(n))


def path(n: int) -> Plan:
    """n calls, each merging the one before."""
    return tuple(Node(0, 0, (i + 1,) if i + 1 < n else ()) for i in range(n))


AGGREGATIONS = {
    "tree": CausalAggregation("tree", heap),
    "chained": CausalAggregation("chained", path),
    "per-query": CausalAggregation("per-query", None),
}


# --- cost formulas ---------------------------------------------------------------------------------------------------------


def block_size(problem: Problem, aggregation: CausalAggregation) -> int:
    """b: tokens in a block."""
    r = problem.head.width + 1
    return problem.M - 1 if aggregation.plan is None else problem.M - r - 1


def block_calls(s: int, b: int) -> int:
    """Calls for block s of queries (from 0): its own, and two for each earlier block (one if blocks have a single token)."""
    return 1 + s * (2 if b > 1 else 1)


def smallest_length(problem: Problem, aggregation: CausalAggregation) -> int:
    """The least M that would do."""
    return min(problem.N, 2 if aggregation.plan is None else problem.head.width + 3)


def calls_by_round(problem: Problem, aggregation: CausalAggregation) -> list[int]:
    """How many calls fall into each round."""
    N, M = problem.N, problem.M
    if N <= M:
        return [1]
    b = block_size(problem, aggregation)
    counts: list[int] = []

    def add(own: list[int], times: int = 1) -> None:
        counts.extend([0] * (len(own) - len(counts)))
        for now, n in enumerate(own):
            counts[now] += times * n

    for s in range(ceiling(N, b)):
        n = block_calls(s, b)
        if aggregation.plan is not None:
            add(plan_rounds(aggregation.plan(n)))
        else:
            add([n])
            add([0, *(sum(now.values()) for now in merge_rounds(n, M))], min(b, N - s * b))
    return counts


def closed_calls(N: int, b: int) -> int:
    """Calls of the tree and the path in closed form, for N > M: `ceil(N/b)^2`, or n(n+1)/2 for blocks of one token."""
    n = ceiling(N, b)
    return n * n if b > 1 else n * (n + 1) // 2


def least_length(problem: Problem, *, carried_only: bool = False) -> int:
    """The least M that would do for some aggregation."""
    return min(smallest_length(problem, a) for a in AGGREGATIONS.values() if a.plan is not None or not carried_only)


def best(problem: Problem, minimise: str, *, carried_only: bool = False) -> CausalAggregation:
    """The aggregation with the fewest calls, or rounds; with `carried_only`, among those whose sums travel as logarithms.

    (Inside oracles of several layers other sums, of unknown size, cannot pass.) Raises RequestError with the smallest M that would do.
    """
    allowed = [a for a in AGGREGATIONS.values() if a.plan is not None or not carried_only]
    fitting = [a for a in allowed if problem.M >= smallest_length(problem, a)]
    if not fitting:
        require(problem.M, least_length(problem, carried_only=carried_only), "repaired")

    def cost(a: CausalAggregation) -> tuple[int, int]:
        counts = calls_by_round(problem, a)
        return (len(counts), sum(counts)) if minimise == "rounds" else (sum(counts), len(counts))

    return min(fitting, key=cost)


# --- the repaired construction ------------------------------------------------------------------------------------------------


@part_of("B.5")
def repaired(problem: Problem, aggregation: CausalAggregation) -> Program:
    """The program for a problem with L = H = 1 and a causal mask."""
    machine = causal_machine(problem)
    X = machine.input("X", problem.N, problem.kinds)
    return machine.program(attach(machine, X, problem, aggregation))


def causal_machine(problem: Problem) -> Machine:
    """A machine with the problem's limits, on which rows may be gathered."""
    machine = machine_for(problem)
    machine.declared_gather = True
    return machine


@part_of("B.5")
def attach(machine: Machine, X: Stored, problem: Problem, aggregation: CausalAggregation) -> Stored:
    """The repaired construction on a matrix that the machine already holds. Raises RequestError when M is too small."""
    require(problem.M, smallest_length(problem, aggregation), aggregation.name)
    if problem.N <= problem.M:
        return machine.call(under_causal_mask(large_head(problem)), X, role="whole input")
    if aggregation.plan is None:
        return _per_query(machine, X, problem)
    b, N = block_size(problem, aggregation), problem.N
    calls = CausalCalls(machine, X, problem)
    answers = []
    for s in range(ceiling(N, b)):
        start, rows = s * b, min(b, N - s * b)
        plan = aggregation.plan(block_calls(s, b))
        sums: dict[int, Stored] = {}
        for i in reversed(range(len(plan))):
            carried = [sums.pop(child) for child in plan[i].children]
            sums[i] = _one_call(calls, i, start, rows, b, carried, last=i == 0)
        answers.append(sums[0])
    return machine.stack(*answers)


@part_of("B.5")
def attach_residual(machine: Machine, X: Stored, problem: Problem) -> Stored:
    """The residual variant (the model changed): running sums stay in the row, so blocks have b = M-1 tokens; heap of calls.

    Calls as in `closed_calls` with b = M-1 (one if N <= M), rounds those of the heap. Needs M >= 2 or N <= M.
    """
    require(problem.M, min(problem.N, 2), "residual")
    if problem.N <= problem.M:
        return machine.call(under_causal_mask(large_head(problem)), X, role="whole input")
    b, N = problem.M - 1, problem.N
    calls = CausalCalls(machine, X, replace(problem, value_bound=Fraction(0)), residual=True)
    answers = []
    for s in range(ceiling(N, b)):
        start, rows = s * b, min(b, N - s * b)
        plan = heap(block_calls(s, b))
        sums: dict[int, Stored] = {}
        for i in reversed(range(len(plan))):
            children = [sums.pop(child) for child in plan[i].children]
            sums[i] = _one_call(calls, i, start, rows, b, children, last=i == 0, base=int(i > 0 or bool(children)))
        answers.append(sums[0])
    return machine.stack(*answers)


def residual_calls_by_round(problem: Problem) -> list[int]:
    """How many calls of the residual variant fall into each round."""
    if problem.N <= problem.M:
        return [1]
    b = problem.M - 1
    counts: list[int] = []
    for s in range(ceiling(problem.N, b)):
        own = plan_rounds(heap(block_calls(s, b)))
        counts += [0] * (len(own) - len(counts))
        for now, n in enumerate(own):
            counts[now] += n
    return counts


def _one_call(
    calls: CausalCalls,
    i: int,
    start: int,
    rows: int,
    b: int,
    carried: Sequence[Stored],
    *,
    last: bool,
    base: int | None = None,
) -> Stored:
    """Call i of block s of queries, s = start/b: the reverse calls are numbers 0, ..., s-1, then the forward calls, its own keys last.

    So in a heap the s inner calls are the reverse ones and the s+1 leaves the forward ones: a reverse call always merges something, and no sum
    that has to be carried is zero.
    """
    s = start // b
    base = int(not last) if base is None else base
    if b > 1 and i < s:
        return calls.reverse(i * b, start, b, rows, carried, base=base, last=last)
    key = (i - s if b > 1 else i) * b
    return calls.forward(key, start, rows, carried, base=base, last=last)


def _per_query(machine: Machine, X: Stored, problem: Problem) -> Stored:
    """Every call a leaf; each query's partial sums are summed by Lemma A.2, M at a time, and read off the last row."""
    N, M, m = problem.N, problem.M, problem.head.width
    b = M - 1
    unshifted = replace(problem, value_bound=Fraction(0))
    calls = CausalCalls(machine, X, unshifted)
    ends = CausalCalls(machine, X, problem)
    known: dict[tuple[int, bool], Oracle] = {}

    def divide(total: list[Wire]) -> Sequence[Wire]:
        return problem.mlp([total[c] / total[m] for c in range(m)])

    def summing(rows: int, final: bool) -> Oracle:
        if (rows, final) not in known:
            oracle = token_sum(rows, m + 1, divide) if final else token_sum(rows, m + 1)
            known[rows, final] = under_causal_mask(oracle)
        return known[rows, final]

    answers = []
    for s in range(ceiling(N, b)):
        start, rows = s * b, min(b, N - s * b)
        n = block_calls(s, b)
        if n == 1:
            answers.append(_one_call(ends, 0, start, rows, b, [], last=True))
            continue
        partial = [_one_call(calls, i, start, rows, b, [], last=False) for i in range(n)]
        for u in range(rows):
            # The query's own block comes first: under the mask no row of a sum may be empty, since the last MLP divides.
            queue = [machine.rows(part, u, u + 1) for part in reversed(partial)]
            own, take = queue[0], (n - 2) % (M - 1) + 2
            while len(queue) > 1:
                group, queue = queue[:take], queue[take:]
                own_first = [own, *(part for part in group if part is not own)] if own in group else group
                total = machine.call(summing(len(group), not queue), machine.stack(*own_first), role="sum (A.2)")
                queue.append(machine.rows(total, len(group) - 1, len(group)))
                own = queue[-1] if own in group else own
                take = M
            answers.append(queue[0])
    return machine.stack(*answers)


def under_causal_mask(oracle: Oracle) -> Oracle:
    """The same oracle with a causal mask."""
    return Oracle(oracle.input_map, oracle.layers, CAUSAL)


# ======================================================================================================================
# Claims
# ======================================================================================================================

N1 = REGISTRY.add(
    Claim(
        "N1",
        "A2 is empty as defined",
        "For t' < t and i in S_t every token of S_t' comes before i, so S_t' minus [i], the range of A2, is empty; the calls split by the "
        "position inside the block instead.",
        "Theorem B.5, Appendix B.5",
        kind="finding",
    )
)
N2 = REGISTRY.add(
    Claim(
        "N2",
        "The calls for A2 and B2/A2 do not match",
        "The call for B2/A2 includes the diagonal position, the call for A2 does not; with the zero row kept it yields B2/(A2+1). Either "
        "reading gives a wrong attention output.",
        "Theorem B.5, Appendix B.5",
        kind="finding",
    )
)
N13 = REGISTRY.add(
    Claim(
        "N13",
        "Missing +1 in the displayed scores",
        "Claim B.6's displayed score matrix lacks the +1 in its real-real entries; read literally the inversion is off by the factor E(1).",
        "Claim B.6, Appendix B.5",
        kind="finding",
    )
)
R7 = REGISTRY.add(
    Claim(
        "R7",
        "Denominator of claim B.6",
        "The displayed denominator sum_{j<=i} a_(i-1),j + exp(0) has one term too many; row i outputs sum_{j<=i-1} a_(i-1),j over "
        "sum_{j<=i-1} a_(i-1),j + exp(0).",
        "Review, minor comment 3",
        kind="comment",
    )
)

UNIVERSAL_SIZES = [(1, 1, 1), (2, 2, 1), (3, 2, 1), (4, 4, 1), (6, 3, 1), (6, 4, 1), (6, 5, 1), (7, 6, 1), (5, 5, 2)]
INSTANCE_SIZES = [(1, 1, 1), (3, 2, 1), (5, 4, 1), (9, 5, 1), (11, 6, 2), (12, 7, 2)]
GRID = [(N, M, d) for N in (*range(1, 14), 25) for M in (*range(1, 9), 12) for d in (1, 2)]
PRINTED_SIZES = [(1, 1, 1), (2, 1, 1), (2, 2, 1), (3, 1, 1), (3, 3, 1), (4, 2, 1), (6, 2, 1), (6, 3, 1), (4, 2, 2)]


def _fitting(aggregation: CausalAggregation, sizes: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    least = 2 if aggregation.plan is None else 0
    return [(N, M, m) for N, M, m in sizes if min(N, least or m + 3) <= M]


def _register(aggregation: CausalAggregation) -> None:
    def build(problem: Problem) -> Program:
        return repaired(problem, aggregation)

    @B5.check(
        "repaired",
        "symbolic",
        name=f"identity-{aggregation.name}",
        predicate="output = causal attention output as rational functions of all weights and values",
        implies="the repaired construction is exact for every input of these sizes (values below the declared bound where logarithms are used)",
        assumes=("FLINT",),
    )
    def identity() -> Outcome:
        sizes = _fitting(aggregation, UNIVERSAL_SIZES)
        problems = [Problem.universal(N, M, m, mask=CAUSAL) for N, M, m in sizes]
        return universal(build, problems, sizes=f"(N, M, value columns) in {sizes}")

    @B5.check(
        "repaired",
        "exact",
        name=f"instances-{aggregation.name}",
        predicate="output = direct evaluation under the causal mask, entry by entry",
        implies="the repaired construction is exact on these instances under both kernels",
        assumes=("FLINT", "Lindemann"),
    )
    def instances() -> Outcome:
        return on_instances(build, list(samples(_fitting(aggregation, INSTANCE_SIZES), mask=CAUSAL)))

    @B5.check(
        "repaired",
        "ball",
        name=f"target-{aggregation.name}",
        predicate="||output_i - direct_i|| <= 2^-N ||direct_i|| for every row i, by enclosures",
        implies="the run meets the paper's definition of simulation at working precision",
        assumes=("Arb",),
    )
    def target() -> Outcome:
        # W_V = identity and no zero token: no row of the output vanishes, which balls could not show.
        found = []
        for N, M, d in ((12, 6, 2), (15, 8, 1)):
            given = sample(N, M, d, 11, mask=CAUSAL)
            W = given.problem.head
            head = Head(W.W_Q, W.W_K, RationalMatrix.identity(d))
            X = tuple(tuple(x + 3 for x in column) for column in given.X)
            found.append(Instance(Problem.single_head(N, M, head, mask=CAUSAL, bound=8), X))
        return within_target(build, found)

    @B5.check(
        "repaired",
        "integers",
        name=f"cost-{aggregation.name}",
        predicate="counted calls and rounds = formula (and ceil(N/b)^2 for carried sums); longest input <= M; no rule broken",
        implies="the cost formula holds at these sizes and the construction is legal in the paper's model",
    )
    def cost() -> Outcome:
        sizes = _fitting(aggregation, GRID)
        for N, M, d in sizes:
            problem = sample(N, M, d, 0, mask=CAUSAL).problem
            program, counts = build(problem), calls_by_round(problem, aggregation)
            counted = (program.cost.calls, program.cost.rounds)
            closed = (
                aggregation.plan is None or N <= M or closed_calls(N, block_size(problem, aggregation)) == sum(counts)
            )
            if (
                counted != (sum(counts), len(counts))
                or not closed
                or program.cost.longest_input > M
                or program.broken_rules
            ):
                return Outcome(
                    Status.REFUTED,
                    Scope.instance(),
                    "the program",
                    f"N = {N}, M = {M}, d = {d}",
                    f"counted {counted}, formula {counts}",
                )
        return Outcome(
            Status.PROVED,
            Scope.sizes(f"{len(sizes)} sizes (N, M, d) up to N = 25, M = 12"),
            "the programs",
            "sizes on a grid, edges included",
            f"formulas and counts agree at all {len(sizes)} sizes",
            {"sizes": len(sizes)},
        )


for _aggregation in AGGREGATIONS.values():
    _register(_aggregation)


def first_failure(reading: str) -> Outcome:
    """The smallest (N, M) at which a reading of the printed construction is wrong, with a small exact instance of it."""
    found = universal(
        lambda p: printed(p, reading),
        (Problem.universal(N, M, m, mask=CAUSAL) for N, M, m in sorted(PRINTED_SIZES)),
        sizes=f"(N, M, value columns) in {PRINTED_SIZES}",
    )
    if found.status is not Status.REFUTED:
        return found
    N, M = found.evidence["N"], found.evidence["M"]
    # The smallest instance: tokens 0 except one value 1 at a key after the query's position in an earlier block.
    X = tuple(tuple(Fraction(int(j == at)) for j in range(N)) for at in (1,))
    head = Head(RationalMatrix.zero(1, 1), RationalMatrix.zero(1, 1), RationalMatrix.identity(1))
    instance = Instance(Problem.single_head(N, M, head, mask=CAUSAL), X, ("exp2",))
    worked = on_instances(lambda p: printed(p, reading), [instance])
    return Outcome(
        Status.REFUTED,
        found.scope,
        f"the printed construction, reading `{reading}`, on tokens in general position",
        f"{found.input}; the smallest among {sorted(PRINTED_SIZES)}",
        f"{found.detail}; for instance equal weights and tokens {[str(x) for x in X[0]]}: {worked.detail}",
        {**found.evidence, "reading": reading, "instance": dict(worked.evidence)},
    )


def _register_reading(reading: str) -> None:
    expected = Status.PROVED if reading == "corrected" else Status.REFUTED

    @B5.check(
        "corrected" if reading == "corrected" else "printed",
        "symbolic",
        name=f"reading-{reading.replace(' ', '-')}",
        predicate="with the broken rules waived, output = causal attention output",
        implies="this reading of the printed construction is right",
        expects=expected,
        assumes=("FLINT",),
    )
    def check() -> Outcome:
        return first_failure(reading)


for _reading in READINGS:
    _register_reading(_reading)


@B5.check(
    "printed",
    "integers",
    name="legal",
    predicate="no call reads more than M rows, and no arithmetic happens outside the oracles",
    implies="the printed construction is legal in the paper's model",
    expects=Status.REFUTED,
)
def printed_is_legal() -> Outcome:
    """Claim B.6's first row is there at every size; the smallest is N = M = 1."""
    program = printed(sample(1, 1, 1, 0, mask=CAUSAL).problem, "corrected")
    rules = [{"rule": b.rule, "limit": b.limit, "needed": b.needed} for b in program.broken_rules]
    return Outcome(
        Status.REFUTED if rules else Status.PROVED,
        Scope.every_size(),
        "the printed construction's calls",
        "N = M = 1 (the smallest); every block is fed with one more row",
        "; ".join(f"{r['rule']}: limit {r['limit']}, needed {r['needed']}" for r in rules) or "no rule broken",
        {"N": 1, "M": 1, "broken_rules": rules},
    )


def prefix_weights(n: int, *, plus_one: bool = True) -> Function:
    """Claim B.6 on n tokens (q, k) beside the prefix sums of their weights."""
    head = Head(
        RationalMatrix.from_entries(2, 1, {(0, 0): 1}),
        RationalMatrix.from_entries(2, 1, {(1, 0): 1}),
        RationalMatrix.zero(2, 1),
    )
    problem = replace(Problem.single_head(n, n, head, mask=CAUSAL), kinds=(Kind.SCORE, Kind.SCORE))

    def reference(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        q, k = X
        sums = []
        for i in range(n):
            weights = arithmetic.exp(arithmetic.multiply(q[i : i + 1] * (i + 1), k[: i + 1]))
            total = weights[:1]
            for j in range(1, i + 1):
                total = arithmetic.add(total, weights[j : j + 1])
            sums.append(total)
        return [arithmetic.concatenate(sums)]

    evaluate = program_of(b6_program(problem, plus_one=plus_one))
    return Function(f"N = M = {n}", n, problem.kinds, (Kind.VALUE,), evaluate, reference, ((0, 1),))


@B6.check(
    "printed",
    "symbolic",
    name="identity-waived",
    predicate="with the length rule waived, the inverted outputs = prefix sums of weights",
    implies="the claim's algebra is right for every input of these sizes",
    assumes=("FLINT",),
)
def b6_identity() -> Outcome:
    """With the +1 that W' = diag(W,1) gives to every score."""
    return for_every_input(
        [prefix_weights(n) for n in range(1, 7)], object_="claim B.6's oracle", sizes="N = M up to 6"
    )


@B6.check(
    "printed",
    "integers",
    name="legal",
    predicate="the call reads at most M rows",
    implies="the claim's oracle is legal",
    expects=Status.REFUTED,
)
def b6_is_legal() -> Outcome:
    """The first row [0,1] comes on top of M tokens, for every M."""
    lengths = {n: b6_program(replace(Problem.universal(n, n, 1, mask=CAUSAL))).cost.longest_input for n in (1, 2, 3)}
    return Outcome(
        Status.REFUTED if all(length == n + 1 for n, length in lengths.items()) else Status.PROVED,
        Scope.every_size(),
        "the rows of claim B.6's call",
        "M tokens; smallest M = 1",
        "M+1 rows: limit 1, needed 2 at M = 1",
        {"rows by M": {str(n): length for n, length in lengths.items()}},
    )


@N1.check(
    "printed",
    "integers",
    predicate="S_t' minus [i] is empty for all t' < t and i in S_t",
    implies="as defined, A2 = 0 and A1 is the whole block, which the causal calls do not compute",
)
def a2_is_empty() -> Outcome:
    """Every token of S_t' is at most t'M < i. Enumerated up to N = 24."""
    for N in range(1, 25):
        for M in (M for M in range(1, N + 1) if N % M == 0):
            for t in range(2, N // M + 1):
                for earlier in range(1, t):
                    block = set(range((earlier - 1) * M + 1, earlier * M + 1))
                    if any(block - set(range(1, i + 1)) for i in range((t - 1) * M + 1, t * M + 1)):
                        return Outcome(
                            Status.REFUTED, Scope.instance(), "S_t' minus [i]", f"N = {N}, M = {M}", "not empty"
                        )
    return Outcome(
        Status.PROVED,
        Scope("every size: t' < t gives j <= t'M < (t-1)M + 1 <= i; enumerated up to N = 24"),
        "the index sets of A1 and A2",
        "blocks of M tokens numbered from 1",
        "A2's range is always empty; with A2 = 0 the construction first fails at N = 4, M = 2 (see B.5, reading `by number`)",
        {"first failure": dict(first_failure("by number").evidence)},
    )


@N2.check(
    "printed",
    "symbolic",
    predicate="both readings of the call for B2/A2 fail, and B2 = (B2/(A2+1)) (A2+1) removes the failure",
    implies="the printed calls for A2 and B2/A2 cannot be used together",
    assumes=("FLINT",),
)
def b2_does_not_match() -> Outcome:
    """The two readings and their correction, on tokens in general position."""
    outcomes = {reading: first_failure(reading) for reading in READINGS[1:]}
    wrong = all(outcomes[reading].status is Status.REFUTED for reading in READINGS[1:3])
    proved = wrong and outcomes["corrected"].status is Status.PROVED
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        Scope.sizes(f"(N, M, value columns) in {PRINTED_SIZES}"),
        "the printed construction in three readings",
        "tokens in general position",
        "; ".join(f"{reading}: {o.detail}" for reading, o in outcomes.items()),
        {reading: dict(o.evidence) for reading, o in outcomes.items()},
    )


@N13.check(
    "printed",
    "symbolic",
    predicate="with scores <q,k> between real rows and 1 against the first row, the inversion returns A/E(1), not A",
    implies="the +1 is needed in every entry, as W' = diag(W,1) gives it; the display is a slip",
    assumes=("FLINT", "text of the paper"),
)
def display_without_one() -> Outcome:
    """The literal display beside the prefix sums, and beside the prefix sums divided by E(1)."""
    literal = for_every_input([prefix_weights(1, plus_one=False)], object_="the displayed scores", sizes="N = M = 1")

    def divided(n: int) -> Function:
        plain = prefix_weights(n, plus_one=False)

        def reference(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
            one = arithmetic.exp(arithmetic.numbers([Fraction(1)] * n))
            return [arithmetic.divide(plain.reference(arithmetic, X)[0], one)]

        return replace(plain, reference=reference)

    off = for_every_input([divided(n) for n in range(1, 6)], object_="the displayed scores", sizes="N = M up to 5")
    proved = literal.status is Status.REFUTED and off.status is Status.PROVED
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        off.scope,
        "claim B.6 with the displayed scores",
        "N = M up to 5, every score an indeterminate",
        "the inversion returns A/E(1); smallest: N = M = 1, kernel exp2, score 0: 1/2 instead of 1",
        {"smallest": {"N": 1, "M": 1, "kernel": "exp2", "computed": "1/2", "needed": "1"}},
    )


@R7.check(
    "printed",
    "exact",
    predicate="the oracle's ratio for a token differs from the displayed quotient and equals the corrected one",
    implies="the sum in the denominator ends at the token itself",
)
def denominator() -> Outcome:
    """Equal weights (all scores 0): token i gives i/(i+1); the display's denominator would be i + 2 for every token but the last."""
    nothing = RationalMatrix.zero(1, 1)
    for n in (1, 2, 3):
        problem = Problem.single_head(n, n, Head(nothing, nothing, nothing), mask=CAUSAL)
        built = printed_b6(problem)
        bare = Oracle(built.input_map, (replace(built.layers[0], mlp=TokenMap.identity([Kind.VALUE])),), CAUSAL)
        ratios = [row[0] for row in exact_rows(bare, [[Fraction(0)] * (n + 1)])][1:]
        corrected = [str(Fraction(i, i + 1)) for i in range(1, n + 1)]
        displayed = [str(Fraction(i, min(i + 1, n) + 1)) for i in range(1, n + 1)]
        if ratios != corrected or (n > 1 and ratios == displayed):
            return Outcome(Status.REFUTED, Scope.instance(), "the ratios", f"N = M = {n}", f"{ratios}")
    return Outcome(
        Status.PROVED,
        Scope.instance(3),
        "claim B.6's ratios before inversion, kernel exp2",
        "equal weights, N = M = 1, 2, 3; smallest difference at N = 2",
        "token 1 of 2 gives 1/2; the displayed denominator would give 1/3",
        {"N": 2, "weights": "all 1", "oracle": "1/2", "displayed": "1/3"},
    )
