"""The weight of the synthetic token: what the printed inversion loses, and what choosing its score saves.

The printed Lemma B.1 recovers `A` from `r = A/(A+1)`, where 1 is the weight E(0) of a synthetic token. The inversion
`r/(1-r)` has condition number `A+1` (finding N7): where a block's weights sum to 2^g it costs g bits.

**Any known score c may replace 0** (`with_constant`). Then `r = A/(A+E(c))`, `r/(1-r) = A/E(c)`, and likewise the averages
`B/(A+E(c))` divided by `1-r` give `B/E(c)`. The factor `1/E(c)` is the same for every block of keys, so it cancels in
`sum_t B_t / sum_t A_t`: nobody needs to multiply by it. The condition number is `A/E(c) + 1`.

*What a legal choice of c is.* A parameter of the oracle, so it may depend on the large transformer and on the class of
inputs (a bound on scores), but not on the input: with scores in [-S, S] any c in [log n - S, log n + S] is as good a guess as
another, and the worst row still costs up to S bits or so.

**A score that the input decides, supplied by an oracle** (`supplied`). One call for each block of queries reads one block of
keys by the fused call with a base row, and its layer MLP returns `c_i = round(log A_i)`, a number on a coarse grid. The next
calls carry `c_i` in the query; the synthetic row's key turns it into the score c_i of row i. All blocks use the same c_i, so
`E(c_i)` cancels as before. Where a row's blocks have weights of about the same size, the condition number is about 2.

A base row with a value column of its own (the repaired B.1) needs none of this: `out / out_base` has condition number 2,
whatever the weights are.

The aggregation is that of `per_query` (Lemma A.2), so both constructions are legal in the paper's own model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from proofs.aggregation import require
from proofs.lemma_b1 import machine_for, per_query, query_starts
from proofs.registry import REGISTRY
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.claims.compare import on_instances, universal, within_target
from verify.claims.samples import samples
from verify.claims.verdict import Outcome, Scope, Status
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.oracle.program import Program
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire

T3 = REGISTRY.add(
    Claim(
        "T.3",
        "Synthetic weight",
        "In Lemma B.1 any known score c may stand for the synthetic token's 0, also one that an earlier oracle call supplies for each row: "
        "r/(1-r) = A/E(c), and the factor 1/E(c), the same for every block of keys, cancels in the aggregate.",
        "Ours; bears on N7",
        kind="construction",
    )
)


@part_of("T.3")
def with_constant(problem: Problem, score: Fraction | int) -> Program:
    """The printed inversion with a synthetic token of this score. Raises RequestError when M < 2 < N."""
    require(problem.M, min(problem.N, 2), "synthetic weight")
    machine = machine_for(problem)
    X = machine.input("X", problem.N, problem.kinds)
    return machine.program(per_query(machine, X, problem, lambda size: inverting_block(problem, size, Fraction(score))))


@part_of("T.3")
def supplied(problem: Problem) -> Program:
    """The same with the score `round(log A_i)` of the first block of keys, from one more call for each block of queries."""
    N, M = problem.N, problem.M
    require(M, min(N, 2), "supplied synthetic weight")
    machine = machine_for(problem)
    X = machine.input("X", N, problem.kinds)
    if N <= M:
        return machine.program(per_query(machine, X, problem))
    keys = machine.rows(X, 0, M)
    oracle = log_sum(problem)
    scores = []
    for start, new in query_starts(N, M):
        answer = machine.call(oracle, machine.join(keys, machine.rows(X, start, start + M)), role="log of the sum")
        scores.append(machine.rows(answer, new - start, M))
    queries = machine.join(X, machine.stack(*scores))
    return machine.program(per_query(machine, X, problem, lambda size: inverting_block(problem, size, None), queries))


def supplied_calls(N: int, M: int, calls: int) -> int:
    """Calls of `supplied`, given those of the per-query plan: one more for each block of queries."""
    return calls if N <= M else calls + -(-N // M)


def inverting_block(
    problem: Problem,
    size: int,
    score: Fraction | None,
    recover: Callable[[list[Wire]], Sequence[Wire]] | None = None,
) -> Oracle:
    """A block of `size` keys and M - size synthetic rows of this score; None: of the score that stands after the query token.

    Embedding `[query (d) | key (d) | a | b | real]`: a synthetic row adds `a_i b_j` to the scores. Returns `(B, A) / E(score)`.
    `recover`, if given, replaces the division of the averages `(B, A) / (A + (M - size) E(score))` by `1 - r`, r the last of them.
    """
    M, d, head, m = problem.M, problem.d, problem.head, problem.head.width
    given = 0 if score is not None else 1

    def tokens(real: bool) -> TokenMap:
        def place(x: list[Wire]) -> list[Wire | Fraction | int]:
            key, query, rest = x[:d], x[d : 2 * d], x[2 * d :]
            return [
                *query,
                *(key if real else [0] * d),
                rest[0] if given else 1,
                0 if real else 1 if score is None else score,
                int(real),
            ]

        return TokenMap.trace(problem.kinds * 2 + (Kind.NUMBER,) * given, place)

    one, scored = RationalMatrix.identity(1), head.W_Q.width
    W_Q = RationalMatrix.blocks(2 * d + 3, scored + 1, [(0, 0, head.W_Q), (2 * d, scored, one)])
    W_K = RationalMatrix.blocks(2 * d + 3, scored + 1, [(d, 0, head.W_K), (2 * d + 1, scored, one)])
    W_V = RationalMatrix.blocks(2 * d + 3, m + 1, [(d, 0, head.W_V), (2 * d + 2, m, one)])

    def invert(out: list[Wire]) -> Sequence[Wire]:
        left = 1 - out[m]
        recovered = recover(out) if recover else [average / left for average in out]
        return [x * (M - size) for x in recovered]

    return Oracle(
        PositionalMap(((0, size, tokens(True)), (size, M, tokens(False)))),
        (Layer((Head(W_Q, W_K, W_V),), TokenMap.trace([Kind.VALUE] * (m + 1), invert, name="ratio inversion")),),
    )


def log_sum(problem: Problem) -> Oracle:
    """`round(log A)` over M-1 keys: the fused call with a base row, and a logarithm rounded to whole numbers."""
    M, d, head = problem.M, problem.d, problem.head

    def tokens(real: bool) -> TokenMap:
        return TokenMap.trace(
            problem.kinds * 2,
            lambda x: [*x[d:], *(x[:d] if real else [0] * d), int(real), int(not real)],
        )

    W_Q = RationalMatrix.blocks(2 * d + 2, head.W_Q.width, [(0, 0, head.W_Q)])
    W_K = RationalMatrix.blocks(2 * d + 2, head.W_K.width, [(d, 0, head.W_K)])
    W_V = RationalMatrix.blocks(2 * d + 2, 2, [(2 * d, 0, RationalMatrix.identity(2))])
    mlp = TokenMap.trace([Kind.VALUE] * 2, lambda out: [(out[0] / out[1]).log().round(0)], name="log of the sum")
    return Oracle(
        PositionalMap(((0, M - 1, tokens(True)), (M - 1, M, tokens(False)))), (Layer((Head(W_Q, W_K, W_V),), mlp),)
    )


# ======================================================================================================================
# Claims
# ======================================================================================================================

SIZES = [(1, 1, 1), (3, 2, 1), (4, 2, 2), (5, 3, 1), (6, 4, 2)]
"""(N, M, value columns) at which the identity is checked for every input."""

SCORES = (0, 1, -2, 3)
"""Constant scores, as multiples of the score whose weight is the indeterminate e."""


@T3.check(
    "constant",
    "symbolic",
    predicate="the output equals the attention output as rational functions of all weights, values and e = E(1)",
    implies="exact for every input of these sizes and each of these scores",
    assumes=("FLINT",),
)
def identity_constant() -> Outcome:
    """Every size with every score."""
    outcome = None
    for score in SCORES:
        outcome = universal(
            lambda problem, score=score: with_constant(problem, score),  # type: ignore[misc]
            [Problem.universal(N, M, width) for N, M, width in SIZES],
            sizes="five sizes up to N = 6, M = 4 and 2 value columns, synthetic scores 0, 1, -2 and 3",
        )
        if outcome.status is not Status.PROVED:
            return outcome
    assert outcome is not None
    return outcome


@T3.check(
    "constant",
    "exact",
    predicate="output = direct evaluation on every sample, scores 0, 5 and -7",
    implies="exact on these instances, with equal, huge and tiny scores and zero rows",
    assumes=("FLINT", "Lindemann"),
)
def instances_constant() -> Outcome:
    """The usual samples."""
    instances = list(samples([(1, 1, 2), (5, 3, 2), (7, 4, 1)]))
    outcome = None
    for score in (0, 5, -7):
        outcome = on_instances(lambda problem, score=score: with_constant(problem, score), instances)  # type: ignore[misc]
        if outcome.status is not Status.PROVED:
            return outcome
    assert outcome is not None
    return outcome


@T3.check(
    "supplied",
    "ball",
    predicate="relative error at most 2^-N in every row, by enclosures",
    implies="the supplied score changes nothing in the output of these instances",
    assumes=("Arb",),
)
def enclosures_supplied() -> Outcome:
    """The usual samples, zero rows and equal scores included."""
    return within_target(supplied, list(samples([(5, 3, 2), (7, 4, 1), (6, 3, 2)])))


@T3.check(
    "supplied",
    "integers",
    predicate="counted calls = per-query calls + ceil(N/M), one more round, on a grid",
    implies="supplying the score costs a lower-order number of calls",
)
def cost_supplied() -> Outcome:
    """Counted against the formulas."""
    checked = 0
    for N in range(1, 12):
        for M in range(2, 7):
            problem = Problem.universal(N, M)
            plain, more = with_constant(problem, 0).cost, supplied(problem).cost
            wanted = (supplied_calls(N, M, plain.calls), plain.rounds + (N > M))
            if (more.calls, more.rounds) != wanted or more.longest_input > M:
                return Outcome(
                    Status.REFUTED,
                    Scope.instance(),
                    "calls and rounds",
                    f"N = {N}, M = {M}",
                    f"{more} against {wanted}",
                )
            checked += 1
    return Outcome(
        Status.PROVED,
        Scope.sizes("N up to 11, M from 2 to 6"),
        "calls and rounds of the supplied synthetic weight",
        "integers N, M",
        f"as by formula at all {checked} sizes",
        {"sizes": checked},
    )
