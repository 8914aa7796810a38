"""Theorem C.1 (= 4.1): `O((N/M) HL/(H'L'))` calls when the attention weights are bounded, by sampling keys.

**Statement.** If `1/C <= a_ij <= C` and `D N max_j ||b_ij|| <= ||sum_j b_ij||` for all rows i (b_ij = a_ij v_j), then
`O((N/M) HL/(H'L'))` calls approximate the transformer within a factor (1+eps) with probability 0.9, provided that

    M >= 8 C^4 log(40 N) / eps^2    and    M >= 128 (log d + log 40 + log N) / (eps^2 D^2).

**As printed** (`printed`). Draw a permutation tau of the tokens; by Lemma A.3, "one call for each block", map x_i to
`[x_i, x_tau(i)]`. Then as in Lemma B.1, query block S_t against the keys tau(S_t) only: estimators `(N/M) sum_{j in S_t} a_i,tau(j)`
for the weights and `sum b_i,tau(j) / sum a_i,tau(j)` for the output.

*What fails.* Step 1 reads M+1 rows (R3). A call on block t cannot fetch tau(S_t), which lies in up to min(M, N/M) blocks (N10), and
as a parameter tau takes log2 N! bits (N9). M must divide N. One head and one layer are bounded; nothing bounds how the error
grows through later layers, and 0.9 for each head says nothing about ten heads (N8). What is *not* wrong: the weight estimator is unbiased, and
the ratio, though biased, needs no more than both sums within eps/4, which the printed conditions do ensure
(`proofs.sampling` has the derivation, with Hoeffding's inequality for sampling without replacement and a bound
for vectors that does not depend on d; N14 the last step; N25 how much room the second condition leaves).

**Repaired.** The permutation by a row gather outside the oracle, declared (it is a concatenation of single rows). Then

* `ratio`: one call of min(N, M) rows for each block of queries: rows `[x_tau(j), x_j]`, output `sum b / sum a` over the
  block, then the layer's MLP. The factor N/M cancels, so no synthetic row and no step 1 is needed: this alone is the theorem's algorithm.
* `sums`: one fused call of min(N+1, M) rows, n = min(N, M-1) keys and a base row of weight 1: both estimators
  `(N/n) sum b` and `(N/n) sum a`.

Both take exactly `ceil(N/M)` calls in one round, N divisible by M or not (the last block of queries overlaps its predecessor, its sample is still
M of the N keys). Each row's sample is a uniformly random set, so that its tails are those of sampling without replacement; the
conditions on M are conditions on the size of that sample, which is M-1 in `sums`. Smallest M: 1 for `ratio`, 2 for `sums`.

What is checked here is one head of one layer. H L heads take `H L ceil(N/M)` single-head calls (to be packed as in Lemma B.3), with an error that
the theorem does not bound (N8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations
from math import comb, factorial

from flint import arb, fmpq, fmpq_poly

from proofs.aggregation import ceiling, require
from proofs.lemma_b1 import printed_cross_block, printed_ratio
from proofs.registry import REGISTRY
from proofs.sampling import (
    Setting,
    at_most,
    ball,
    coordinates_size,
    fails_at_most,
    hoeffding,
    hypergeometric,
    least,
    least_exact,
    least_hoeffding,
    least_printed,
    least_serfling,
    printed_output_size,
    printed_weights_size,
    serfling,
    unmet,
    upper_tails,
    upper_tails_with_replacement,
    vector_bound,
    vector_size,
    worst_ratio,
    worst_weights,
)
from verify.arithmetic.interface import Arithmetic, Column, Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.claims.functions import (
    Function,
    Numbers,
    exact_entries,
    for_every_input,
    on_numbers,
    program_of,
    within,
)
from verify.claims.samples import sample
from verify.claims.table import Table
from verify.claims.verdict import Outcome, Scope, Status
from verify.errors import RuleBroken
from verify.oracle.machine import DIVISIBILITY, INPUT_LENGTH, ROW_GATHER, Machine, Stored
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.oracle.program import Program
from verify.oracle.run import run
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire

C1 = REGISTRY.add(
    Claim(
        "C.1",
        "Bounded weights: a linear number of calls",
        "If 1/C <= a_ij <= C and D N max_j ||b_ij|| <= ||sum_j b_ij||, then O((N/M) HL/(H'L')) calls give a (1+eps) approximation with "
        "probability 0.9, for M >= 8 C^4 log(40N)/eps^2 and M >= 128 (log d + log 40 + log N)/(eps^2 D^2).",
        "Theorem 4.1 = Theorem C.1, Section 4 and Appendix C",
        aliases=("4.1",),
        kind="lemma",
    )
)
N14 = REGISTRY.add(
    Claim(
        "N14",
        "The last inequality of the proof",
        "The last inequality of the proof of Theorem C.1 is garbled; what it needs, eps/4 + (1+eps/4) eps/(4-eps) <= eps, holds exactly for "
        "0 < eps <= 2 and fails for 2 < eps < 4.",
        "Theorem C.1, Appendix C, last display",
        kind="finding",
    )
)
N25 = REGISTRY.add(
    Claim(
        "N25",
        "The second condition: no log d is needed, and coordinates do not give it",
        "Theorem C.1's second condition suffices, but Hoeffding's inequality with a union over coordinates gives it only up to d = 4 (it asks for "
        "M >= 32 d log(40 d N)/(eps^2 D^2)); a bound for vectors gives it for every d, without the term log d and with a smaller constant.",
        "Theorem 4.1 = Theorem C.1, second condition on M",
        kind="finding",
    )
)

# ======================================================================================================================
# As printed
# ======================================================================================================================


@part_of("C.1")
def printed(problem: Problem, tau: Sequence[int]) -> Program:
    """The construction as printed, with its broken rules waived: outputs `[sum b / sum a | (N/M) sum a]`, before the layer's MLP.

    `tau` lists tau(0), ..., tau(N-1). The permutation is done outside, since no call can do it (N10). Raises RuleBroken if M
    does not divide N.
    """
    N, M = problem.N, problem.M
    if N % M:
        raise RuleBroken(DIVISIBILITY, M, N, "the printed construction cuts N tokens into N/M blocks of M")
    machine = Machine(M, problem.d, problem.mlp.cost, waive=(INPUT_LENGTH, ROW_GATHER))
    X = machine.input("X", N, problem.kinds)
    permuted = machine.gather(X, tau)
    zero = machine.constants([[0] * (2 * problem.d)])
    ratios, weights = printed_ratio(problem), printed_weights(problem)
    answers = []
    for at in range(0, N, M):
        pair = machine.join(machine.rows(permuted, at, at + M), machine.rows(X, at, at + M))
        weight = machine.call(weights, machine.stack(pair, zero), role="weights (step 1)")
        answers.append(machine.join(machine.call(ratios, pair, role="ratio (step 2)"), machine.rows(weight, 0, M)))
    return machine.program(machine.stack(*answers))


def printed_weights(problem: Problem) -> Oracle:
    """Step 1 of Lemma B.1 on M keys and a zero row, M+1 rows, with the factor N/M in the MLP."""
    step = printed_cross_block(problem)
    (layer,) = step.layers
    scaled = TokenMap.trace([Kind.VALUE], lambda r: [layer.mlp(r)[0] * Fraction(problem.N, problem.M)])
    return Oracle(step.input_map, (Layer(layer.heads, scaled),))


# ======================================================================================================================
# Repaired
# ======================================================================================================================


@part_of("C.1")
def ratio(problem: Problem, tau: Sequence[int]) -> Program:
    """The ratio estimator and the layer's MLP, `ceil(N/M)` calls of min(N, M) rows."""
    machine, X, permuted = _permuted(problem, tau)
    rows = min(problem.N, problem.M)
    oracle = ratio_oracle(problem, rows)
    answers = []
    for start, new in query_starts(problem.N, rows):
        pair = machine.join(machine.rows(permuted, start, start + rows), machine.rows(X, start, start + rows))
        answers.append(machine.rows(machine.call(oracle, pair, role="ratio"), new - start, rows))
    return machine.program(machine.stack(*answers))


def ratio_oracle(problem: Problem, rows: int) -> Oracle:
    """Rows `[key token, query token]`; outputs `sum b / sum a` over the keys, through the layer's MLP."""
    d, head = problem.d, problem.head
    return Oracle(
        PositionalMap(((0, rows, TokenMap.identity(problem.kinds * 2)),)),
        (
            Layer(
                (
                    Head(
                        RationalMatrix.blocks(2 * d, head.W_Q.width, [(d, 0, head.W_Q)]),
                        RationalMatrix.blocks(2 * d, head.W_K.width, [(0, 0, head.W_K)]),
                        RationalMatrix.blocks(2 * d, head.W_V.width, [(0, 0, head.W_V)]),
                    ),
                ),
                problem.mlp,
            ),
        ),
    )


@part_of("C.1")
def sums(problem: Problem, tau: Sequence[int]) -> Program:
    """Both estimators, `[(N/n) sum b | (N/n) sum a]` over n = min(N, M-1) keys, `ceil(N/M)` calls of min(N+1, M) rows.

    Raises RequestError when M < 2.
    """
    N, M = problem.N, problem.M
    require(M, 2, "both estimators in one call")
    machine, X, permuted = _permuted(problem, tau)
    queries, keys = min(N, M), min(N, M - 1)
    oracle = sums_oracle(problem, keys)
    answers = []
    for start, new in query_starts(N, queries):
        pair = machine.join(machine.rows(permuted, start, start + queries), machine.rows(X, start, start + queries))
        if queries == keys:  # the whole input fits beside the base row, whose own tokens are not read
            pair = machine.stack(pair, machine.rows(pair, 0, 1))
        answers.append(machine.rows(machine.call(oracle, pair, role="sums"), new - start, queries))
    return machine.program(machine.stack(*answers))


def sums_oracle(problem: Problem, keys: int) -> Oracle:
    """Rows `[key token, query token]`, the last one the base row: embedding `[query (d) | key (d) | real | base]`."""
    d, head, m = problem.d, problem.head, problem.head.width

    def tokens(real: bool) -> TokenMap:
        def place(x: list[Wire]) -> list[Wire | int]:
            return [*x[d:], *(x[:d] if real else [0] * d), int(real), int(not real)]

        return TokenMap.trace(problem.kinds * 2, place)

    width, one = 2 * d + 2, RationalMatrix.identity(1)
    both = Head(
        RationalMatrix.blocks(width, head.W_Q.width, [(0, 0, head.W_Q)]),
        RationalMatrix.blocks(width, head.W_K.width, [(d, 0, head.W_K)]),
        RationalMatrix.blocks(width, m + 2, [(d, 0, head.W_V), (2 * d, m, one), (2 * d + 1, m + 1, one)]),
    )

    def recover(out: list[Wire]) -> list[Wire]:
        return [out[c] / out[m + 1] * Fraction(problem.N, keys) for c in range(m + 1)]

    return Oracle(
        PositionalMap(((0, keys, tokens(True)), (keys, keys + 1, tokens(False)))),
        (Layer((both,), TokenMap.trace([Kind.VALUE] * (m + 2), recover)),),
    )


def _permuted(problem: Problem, tau: Sequence[int]) -> tuple[Machine, Stored, Stored]:
    machine = Machine(problem.M, problem.d, problem.mlp.cost, declared_gather=True)
    X = machine.input("X", problem.N, problem.kinds)
    return machine, X, machine.gather(X, tau)


def query_starts(N: int, rows: int) -> list[tuple[int, int]]:
    """For each block of queries, where it starts and the first query that is new in it (the last block overlaps)."""
    return [(min(at, N - rows), at) for at in range(0, N, rows)]


def sampled_keys(N: int, rows: int, keys: int, tau: Sequence[int]) -> list[tuple[int, ...]]:
    """For each query, the keys that it meets when blocks of `rows` queries meet the first `keys` of their permuted tokens."""
    found: list[tuple[int, ...]] = []
    for start, new in query_starts(N, rows):
        found += [tuple(tau[start : start + keys])] * (start + rows - new)
    return found


# --- costs: each formula is written here and nowhere else -----------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """Cost by formula, to be compared with what the machine counts."""

    calls: int
    rounds: int
    longest_input: int
    embedding: int


def predict_ratio(problem: Problem) -> Prediction:
    """`ceil(N/M)` calls, embedding 2d."""
    N, M = problem.N, problem.M
    widest = max(2 * problem.d, problem.head.width, len(problem.mlp.outputs))
    return Prediction(ceiling(N, M), 1, min(N, M), widest)


def predict_sums(problem: Problem) -> Prediction:
    """`ceil(N/M)` calls, embedding 2d+2."""
    N, M = problem.N, problem.M
    return Prediction(ceiling(N, M), 1, min(N + 1, M), max(2 * problem.d, problem.head.width) + 2)


def predict_printed(problem: Problem) -> Prediction:
    """`2 N/M` calls (and N/M more for a permutation that no call can do), M+1 rows, embedding 2d+1."""
    return Prediction(2 * (problem.N // problem.M), 1, problem.M + 1, max(2 * problem.d + 1, problem.head.width))


# ======================================================================================================================
# What the programs compute, written with column operations only
# ======================================================================================================================


def estimators(
    arithmetic: Arithmetic, X: Sequence[Column], keys: Sequence[Sequence[int]]
) -> tuple[list[Column], Column]:
    """For tokens (q, k, v_0, ...): `sum b_ij` (by columns) and `sum a_ij` over the keys j that row i meets."""
    q, k, values = X[0], X[1], X[2:]

    def pick(column: Column, r: int) -> Column:
        return arithmetic.concatenate([column[met[r] : met[r] + 1] for met in keys])

    A = arithmetic.numbers([Fraction(0)] * len(keys))
    B = [A for _ in values]
    for r in range(len(keys[0])):
        a = arithmetic.exp(arithmetic.multiply(q, pick(k, r)))
        A = arithmetic.add(A, a)
        B = [arithmetic.add(b, arithmetic.multiply(a, pick(v, r))) for b, v in zip(B, values, strict=True)]
    return B, A


Build = Callable[[Problem, Sequence[int]], Program]


def _expected(name: str, N: int, M: int, tau: Sequence[int]) -> Callable[[Arithmetic, list[Column]], list[Column]]:
    """What the construction of this name should output, as a function of the tokens (q, k, v)."""
    rows = min(N, M)
    keys = min(N, M - 1) if name == "sums" else rows

    def reference(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        B, A = estimators(arithmetic, X, sampled_keys(N, rows, keys, tau))
        ratios = [arithmetic.divide(b, A) for b in B]
        scaled = [arithmetic.scale(column, Fraction(N, keys)) for column in (*B, A)]
        return {"ratio": ratios, "sums": scaled, "printed": [*ratios, scaled[-1]]}[name]

    return reference


def expected_estimators(name: str, build: Build, N: int, M: int, m: int, tau: Sequence[int]) -> Function:
    """A construction on tokens in general position, beside what it should output."""
    program = build(Problem.universal(N, M, m), tau)
    return Function(
        f"N = {N}, M = {M}, {m} value columns, tau = {list(tau)}",
        N,
        (Kind.SCORE, Kind.SCORE, *[Kind.VALUE] * m),
        (Kind.VALUE,) * len(program.kinds),
        program_of(program),
        _expected(name, N, M, tau),
        ((0, 1),),
    )


def _average(build: Build, N: int, M: int, *, whole: Callable[[Arithmetic, list[Column]], list[Column]]) -> Function:
    """The average of a construction's output over all N! permutations, beside `whole`."""
    programs = [build(Problem.universal(N, M, 1), tau) for tau in permutations(range(N))]

    def evaluate(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        outputs = [run(program, arithmetic, {"X": X}) for program in programs]
        total = outputs[0]
        for output in outputs[1:]:
            total = [arithmetic.add(a, b) for a, b in zip(total, output, strict=True)]
        return [arithmetic.scale(column, Fraction(1, len(programs))) for column in total]

    return Function(
        f"N = {N}, M = {M}",
        N,
        (Kind.SCORE, Kind.SCORE, Kind.VALUE),
        (Kind.VALUE,) * len(programs[0].kinds),
        evaluate,
        whole,
        ((0, 1),),
    )


def _whole_sums(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
    """`sum_j b_ij` and `sum_j a_ij` over all keys."""
    n = len(X[0])
    B, A = estimators(arithmetic, X, [range(n)] * n)
    return [*B, A]


def _whole_ratio(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
    """The attention output."""
    *B, A = _whole_sums(arithmetic, X)
    return [arithmetic.divide(b, A) for b in B]


# ======================================================================================================================
# Claims: the constructions
# ======================================================================================================================

CONSTRUCTIONS: dict[str, Build] = {
    "ratio": lambda problem, tau: ratio(problem, tau),
    "sums": lambda problem, tau: sums(problem, tau),
}

SIZES = [
    (1, 1, 1),
    (1, 2, 1),
    (2, 1, 1),
    (2, 2, 1),
    (3, 2, 1),
    (3, 3, 2),
    (3, 4, 1),
    (4, 2, 1),
    (4, 3, 1),
    (5, 2, 1),
    (5, 3, 2),
]
"""(N, M, value columns) at which the programs are compared with the estimators, for several permutations each."""

AVERAGED = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3), (4, 4)]
"""(N, M) at which all N! permutations are averaged."""

GRID = [(N, M, d) for N in (*range(1, 17), 23, 40) for M in (*range(1, 10), 16, 50) for d in (1, 2, 3)]
"""(N, M, d) at which formulas are compared with the machine's counts."""


def some_permutations(N: int) -> list[tuple[int, ...]]:
    """All permutations of up to three tokens; of more, the identity, the reversal, a rotation and one that mixes blocks."""
    if N <= 3:
        return list(permutations(range(N)))
    mixed = (*range(0, N, 2), *range(1, N, 2))
    return [tuple(range(N)), tuple(reversed(range(N))), (*range(1, N), 0), mixed]


def _register(name: str, build: Build, smallest: int, predict: Callable[[Problem], Prediction]) -> None:
    @C1.check(
        "repaired",
        "symbolic",
        name=f"identity-{name}",
        predicate="output = the estimator over the keys tau(S_t), as rational functions of all weights and values",
        implies="the program computes the theorem's estimator, for every input of these sizes and these permutations",
        assumes=("FLINT",),
    )
    def identity() -> Outcome:
        sizes = [(N, M, m) for N, M, m in SIZES if M >= smallest]
        functions = [
            expected_estimators(name, build, N, M, m, tau) for N, M, m in sizes for tau in some_permutations(N)
        ]
        text = "(N, M, value columns) in " + ", ".join(map(str, sizes))
        return for_every_input(functions, object_=f"the program `{name}`", sizes=text)

    @C1.check(
        "repaired",
        "exact",
        name=f"instances-{name}",
        predicate="output = the estimator over the keys tau(S_t), entry by entry",
        implies="the program computes the estimator on these inputs under both kernels, huge, tiny and equal scores included",
        assumes=("FLINT", "Lindemann"),
    )
    def instances() -> Outcome:
        return on_numbers(_cases(name, build, smallest), object_=f"the program `{name}`")

    @C1.check(
        "repaired",
        "ball",
        name=f"enclosures-{name}",
        predicate="the output lies within 2^-100 of the estimator",
        implies="a run at working precision returns the estimator",
        assumes=("Arb",),
    )
    def enclosures() -> Outcome:
        return within(_cases(name, build, smallest)[:12], 100, object_=f"the program `{name}`")

    @C1.check(
        "repaired",
        "integers",
        name=f"cost-{name}",
        predicate="counted calls = ceil(N/M), one round, longest input <= M, embedding by formula, no rule broken",
        implies="the linear call count holds exactly at these sizes, N not divisible by M included, within the model and a declared gather",
    )
    def cost() -> Outcome:
        sizes = [(N, M, d) for N, M, d in GRID if M >= smallest]
        return _costs(build, predict, sizes, f"the program `{name}`", legal=True)


def _cases(name: str, build: Build, smallest: int) -> list[tuple[Function, Numbers]]:
    """Sizes with equal, ordinary, huge and tiny scores, zero and opposite values."""
    scores = [Fraction(x) for x in (1, -2, 0, 3, 60, -60, 1)]
    cases: list[tuple[Function, Numbers]] = []
    for seed, (N, M, m) in enumerate((N, M, m) for N, M, m in SIZES if M >= smallest):
        X = [[scores[(seed + 2 * c + i) % 7] for i in range(N)] for c in range(m + 2)]
        zero = [X[0], [Fraction(0)] * N, *[[Fraction(0)] * N] * m]
        for tau in some_permutations(N)[-2:]:
            cases += [(expected_estimators(name, build, N, M, m, tau), numbers) for numbers in (X, zero)]
    return cases


_register("ratio", CONSTRUCTIONS["ratio"], 1, predict_ratio)
_register("sums", CONSTRUCTIONS["sums"], 2, predict_sums)


@C1.check(
    "repaired",
    "symbolic",
    name="unbiased-sums",
    predicate="the average of both estimators over all N! permutations = sum_j b_ij and sum_j a_ij, as rational functions",
    implies="weight estimator and numerator are unbiased, for every input of these sizes",
    assumes=("FLINT",),
)
def sums_are_unbiased() -> Outcome:
    """All permutations are run. (For every N and n: each key lies among the first n of a block for n (N-1)! of the N! permutations.)"""
    functions = [_average(CONSTRUCTIONS["sums"], N, M, whole=_whole_sums) for N, M in AVERAGED if M >= 2]
    return for_every_input(
        functions,
        object_="the average of the program `sums` over all permutations",
        sizes="(N, M) in " + ", ".join(str(size) for size in AVERAGED if size[1] >= 2),
    )


@C1.check(
    "repaired",
    "symbolic",
    name="ratio-is-biased",
    predicate="the average of the ratio estimator over all N! permutations differs from the attention output as a rational function whenever M < N, and "
    "equals it when M >= N",
    implies="the theorem cannot argue from the expectation of the ratio; it needs the deviations of both sums, which imply the ratio's (N14)",
    assumes=("FLINT",),
)
def ratio_is_biased() -> Outcome:
    """Sizes in increasing order, so that the first bias is the smallest: at N = 2, M = 1 the values v_j are averaged with equal weights."""
    smallest: dict[str, int | str] = {}
    for N, M in AVERAGED:
        average = _average(CONSTRUCTIONS["ratio"], N, M, whole=_whole_ratio)
        found = for_every_input([average], object_="the average of the program `ratio`", sizes=average.name)
        if found.status is not (Status.PROVED if M >= N else Status.REFUTED):
            return _fault("the average of the ratio", {"N": N, "M": M}, found.status.value, "a bias exactly if M < N")
        if M < N and not smallest:
            X = [[Fraction(1)] * N, [Fraction(j) for j in range(N)], [Fraction(j) for j in range(N)]]
            mean, truth = (exact_entries(side, X)[0][0] for side in (average.evaluate, average.reference))
            smallest = {"N": N, "M": M, "average": str(mean), "attention": str(truth)}
    return Outcome(
        Status.PROVED,
        Scope.sizes("(N, M) in " + ", ".join(map(str, AVERAGED))),
        "the average of the program `ratio` over all permutations",
        "tokens in general position; the smallest bias at q = 1, k_j = v_j = j, kernel exp2",
        f"biased exactly if M < N; smallest N = {smallest['N']}, M = {smallest['M']}: {smallest['average']} on average instead of "
        f"{smallest['attention']}",
        {"smallest": smallest, "sizes": [list(size) for size in AVERAGED]},
    )


@C1.check(
    "repaired",
    "exact",
    name="distribution",
    predicate="over all N! permutations, the weight estimator of each row takes the value (N/n)(x C + (n-x)/C) in exactly the hypergeometric share",
    implies="the tails of `proofs.sampling` are those of the program, on these populations",
    assumes=("FLINT",),
)
def program_has_hypergeometric_tails() -> Outcome:
    """Weights C = 2 for K keys and 1/2 for the others, N = 5, M = 4 (n = 3) and M = 3 (n = 2), every K, all 120 permutations."""
    N, runs = 5, 0
    for M, K in ((M, K) for M in (3, 4) for K in range(N + 1)):
        n = M - 1
        X = [[Fraction(1)] * N, [Fraction(1 if j < K else -1) for j in range(N)], [Fraction(1)] * N]
        counts: dict[tuple[int, Fraction], int] = {}
        for tau in permutations(range(N)):
            runs += 1
            for i, value in enumerate(exact_entries(program_of(sums(Problem.universal(N, M, 1), tau)), X)[1]):
                counts[i, value] = counts.get((i, value), 0) + 1
        share = {
            Fraction(N, n) * (2 * x + Fraction(n - x, 2)): factorial(N) * hypergeometric(N, K, n, x) // comb(N, n)
            for x in range(n + 1)
        }
        expected = {(i, value): count for i in range(N) for value, count in share.items() if count}
        if counts != expected:
            return _fault("the weight estimator's distribution", {"N": N, "M": M, "K": K}, counts, expected)
    return Outcome(
        Status.PROVED,
        Scope.instance(12),
        "the program `sums` under all permutations",
        "N = 5, M = 3 and 4, K = 0, ..., 5 keys of weight 2, the others 1/2",
        f"the hypergeometric distribution in every row, from {runs} runs",
        {"N": N, "runs": runs},
    )


@C1.check(
    "printed",
    "integers",
    name="legal",
    predicate="no call reads more than M rows, and rows are only re-ordered by calls",
    implies="the printed construction is legal in the paper's model",
    expects=Status.REFUTED,
)
def printed_is_legal() -> Outcome:
    """Step 1 appends a row to M rows, whatever the size (R3); the permutation is N10."""
    for N, M in ((1, 1), (2, 1), (2, 2)):
        program = printed(sample(N, M, 1, 0).problem, tuple(range(N)))
        if program.broken_rules:
            rules = [{"rule": b.rule, "limit": b.limit, "needed": b.needed} for b in program.broken_rules]
            return Outcome(
                Status.REFUTED,
                Scope.every_size(),
                "the printed construction's calls",
                f"N = {N}, M = {M}, d = 1 (the smallest)",
                "; ".join(f"{b.rule}: limit {b.limit}, needed {b.needed}" for b in program.broken_rules),
                {"N": N, "M": M, "d": 1, "broken_rules": rules},
            )
    return Outcome(Status.PROVED, Scope.sizes("N <= 2"), "the printed construction's calls", "", "no rule broken")


@C1.check(
    "printed",
    "symbolic",
    name="identity-waived",
    predicate="with the broken rules waived, the outputs are both printed estimators, as rational functions",
    implies="the printed algebra is right where M divides N",
    assumes=("FLINT",),
)
def printed_identity() -> Outcome:
    """Every permutation of up to three tokens, four of more."""
    sizes = [(1, 1, 1), (2, 1, 1), (2, 2, 1), (3, 3, 2), (4, 2, 1)]
    functions = [
        expected_estimators("printed", lambda p, t: printed(p, t), N, M, m, tau)
        for N, M, m in sizes
        for tau in some_permutations(N)
    ]
    text = "(N, M, value columns) in " + ", ".join(map(str, sizes))
    return for_every_input(functions, object_="the printed construction, rules waived", sizes=text)


@C1.check(
    "printed",
    "integers",
    name="cost",
    predicate="counted calls = 2 N/M, one round, longest input M+1, embedding by formula",
    implies="the printed construction makes 2N/M calls besides those meant for the permutation; `ratio` alone makes half of them",
)
def printed_cost() -> Outcome:
    """On the sizes that M divides."""
    return _costs(
        lambda p, t: printed(p, t),
        predict_printed,
        [(N, M, d) for N, M, d in GRID if N % M == 0],
        "printed",
        legal=False,
    )


def _costs(
    build: Build,
    predict: Callable[[Problem], Prediction],
    sizes: Sequence[tuple[int, int, int]],
    object_: str,
    *,
    legal: bool,
) -> Outcome:
    for N, M, d in sizes:
        problem = sample(N, M, d, 0).problem
        program, prediction = build(problem, tuple(reversed(range(N)))), predict(problem)
        cost = program.cost
        counted = Prediction(cost.calls, cost.rounds, cost.longest_input, cost.embedding)
        if counted != prediction or (legal and (cost.longest_input > M or program.broken_rules)):
            return _fault(object_, {"N": N, "M": M, "d": d}, counted, prediction)
    return Outcome(
        Status.PROVED,
        Scope.sizes(f"{len(sizes)} sizes (N, M, d) up to {max(sizes)}"),
        object_,
        "sizes (N, M, d) on a grid, edges included",
        f"formulas and counts agree at all {len(sizes)} sizes",
        {"sizes": len(sizes)},
    )


def _fault(object_: str, size: dict[str, int], found: object, expected: object) -> Outcome:
    text = ", ".join(f"{name} = {value}" for name, value in size.items())
    return Outcome(
        Status.REFUTED, Scope.instance(), object_, text, f"{found} instead of {expected}", {**size, "found": str(found)}
    )


# ======================================================================================================================
# Claims: tails and sample sizes
# ======================================================================================================================

TAIL_SIZES = range(1, 15)
"""N of the populations of zeros and ones at which every K and M is checked."""


@C1.check(
    "bounds",
    "ball",
    name="tails-hoeffding",
    predicate="exact binomial tail <= exp(-2 M s^2) and exact hypergeometric tail <= exp(-2 M s^2), at every attained deviation s",
    implies="Hoeffding's bound, with and without replacement, as this project evaluates it, holds for all populations of zeros and ones of these sizes",
    assumes=("Arb",),
)
def hoeffding_holds() -> Outcome:
    """One side, every K; the other side is K -> N-K. Between attained deviations the tail is constant and the bound falls."""
    tails = [
        (N, K, M, s, tail)
        for N in TAIL_SIZES
        for K in range(N + 1)
        for M in range(1, N + 1)
        for source in (upper_tails, upper_tails_with_replacement)
        for s, tail in source(N, K, M)
    ]
    return _tails(tails, lambda N, M, s: hoeffding(M, s, Fraction(1)), "Hoeffding's bound")


@C1.check(
    "bounds",
    "ball",
    name="tails-serfling",
    predicate="exact hypergeometric tail <= exp(-2 M s^2 / (1 - (M-1)/N)), at every attained deviation s",
    implies="Serfling's bound as this project evaluates it holds for all populations of zeros and ones of these sizes",
    assumes=("Arb",),
)
def serfling_holds() -> Outcome:
    """As for Hoeffding's bound, without replacement."""
    tails = [
        (N, K, M, s, tail)
        for N in TAIL_SIZES
        for K in range(N + 1)
        for M in range(1, N + 1)
        for s, tail in upper_tails(N, K, M)
    ]
    return _tails(tails, lambda N, M, s: serfling(N, M, s, Fraction(1)), "Serfling's bound")


def _tails(
    tails: Sequence[tuple[int, int, int, Fraction, Fraction]], bound: Callable[[int, int, Fraction], arb], object_: str
) -> Outcome:
    for N, K, M, s, tail in tails:
        if not at_most(tail, partial(bound, N, M, s)):
            return _fault(
                object_, {"N": N, "K": K, "M": M}, f"below the exact tail {tail} at s = {s}", "an upper bound"
            )
    return Outcome(
        Status.PROVED if tails else Status.UNDECIDED,
        Scope.sizes(f"N <= {max(TAIL_SIZES)}, every K and M"),
        object_,
        f"populations of K ones and N-K zeros, N <= {max(TAIL_SIZES)}, every M and every s",
        f"never below the exact tail, at {len(tails)} attained deviations",
        {"deviations": len(tails), "largest N": max(TAIL_SIZES)},
    )


def _vector_tail(M: int, square: Fraction) -> arb:
    """The bound for vectors at a distance whose square, in units of beta^2, is given."""
    return vector_bound(M, ball(square).sqrt())


POPULATIONS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 0), (-1, 0)),
    ((5, 0), (5, 0), (5, 0), (5, 0), (5, 0), (-5, 0), (-5, 0), (-5, 0), (-5, 0), (-5, 0)),
    ((5, 0), (3, 4), (-3, 4), (-5, 0), (-3, -4), (3, -4), (0, 5), (0, -5), (4, 3), (-4, -3)),
    ((5, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)),
)
"""Ten vectors each: axes, two opposite points, a circle, one outlier."""


@C1.check(
    "bounds",
    "ball",
    name="tails-vectors",
    predicate="exact probability that the mean of M out of N vectors is at distance >= s from the mean of all <= vector_bound, for every attained s",
    implies="the bound for vectors as this project evaluates it holds on these populations (its proof in `proofs.sampling` holds for all)",
    assumes=("Arb",),
)
def vector_bound_holds() -> Outcome:
    """All C(10, M) samples of four populations in the plane, every M."""
    checked = 0
    for at, population in enumerate(POPULATIONS):
        N, beta = len(population), max(x * x + y * y for x, y in population)
        whole = (sum(x for x, _ in population), sum(y for _, y in population))
        for M in range(1, N + 1):
            distances = sorted(
                (
                    Fraction(
                        sum((N * sum(p[c] for p in drawn) - M * whole[c]) ** 2 for c in (0, 1)), (N * M) ** 2 * beta
                    )
                    for drawn in combinations(population, M)
                ),
                reverse=True,
            )
            for i, square in enumerate(distances):
                if square == 0 or (i + 1 < len(distances) and distances[i + 1] == square):
                    continue
                checked += 1
                tail = Fraction(i + 1, len(distances))
                if tail < 1 and not at_most(tail, partial(_vector_tail, M, square)):
                    return _fault(
                        "the bound for vectors", {"population": at, "M": M}, f"below {tail}", "an upper bound"
                    )
    return Outcome(
        Status.PROVED,
        Scope.instance(len(POPULATIONS)),
        "the bound for vectors",
        "four populations of ten vectors in the plane, every M, every sample",
        f"never below the exact tail, at {checked} attained distances",
        {"deviations": checked, "populations": [list(map(list, p)) for p in POPULATIONS]},
    )


SETTINGS = [
    Setting(N, d, C, D, eps)
    for N in (1, 2, 16, 2**10, 2**20, 2**40)
    for d in (1, 5, 40)
    for C in (Fraction(1), Fraction(11, 10), Fraction(2), Fraction(100))
    for D in (Fraction(1), Fraction(1, 2), Fraction(1, 100))
    for eps in (Fraction(2), Fraction(1, 2), Fraction(1, 100))
]
"""Where the conditions on M are evaluated."""


@C1.check(
    "printed",
    "ball",
    name="conditions",
    predicate="with both printed conditions on M, all weight sums and numerators are within eps/4 with probability >= 9/10; "
    "C^4 - (C^2-1)^2 = 2C^2 - 1 > 0 and log 20 > 1/2",
    implies="the printed constants suffice for one head and one layer, 0 < eps <= 2, when sampling is without replacement and ||.|| is the 2-norm",
    assumes=("Arb", "Hoeffding", "McDiarmid"),
)
def printed_conditions_suffice() -> Outcome:
    """For every N, d, C >= 1, 0 < D <= 1 and eps > 0.

    *Weights.* Mean at least 1/C, interval C - 1/C; Hoeffding for a deviation eps/(4C) on both sides of N rows gives
    `2N exp(-M eps^2/(8 (C^2-1)^2))`, and `M eps^2 >= 8 C^4 log(40N) >= 8 (C^2-1)^2 log(40N)` makes that at most 2N/(40N) = 1/20.
    *Numerator.* With L = log(20N) >= log 20 > 1/2, 1 <= sqrt(2L), so 16 (1 + sqrt(2L))^2 <= 16 (2 sqrt(2L))^2 = 128 L <= 128 log(40dN);
    hence M (eps D/4 - 1/sqrt(M))^2/2 >= L, and the bound for vectors is at most N/(20N) = 1/20. *Together* 1/10, and N14 goes on
    from there. The check decides the two inequalities and evaluates the bound itself at the least M on a grid.
    """
    C = fmpq_poly([0, 1])
    identity = C**4 - (C**2 - 1) ** 2 == 2 * C**2 - 1
    logarithm = at_most(Fraction(1, 2), lambda: arb(20).log())
    bad = [s for s in SETTINGS if not fails_at_most(s, least_printed(s), Fraction(1, 10))]
    proved = identity and logarithm and not bad
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        Scope.every_size(),
        "the failure probability allowed by the printed conditions",
        f"every N, d, C, D and eps by the argument; the bound itself at the least M for {len(SETTINGS)} settings",
        "at most 1/10" if proved else f"not shown at {bad[:1]}",
        {"settings": len(SETTINGS), "identity": identity, "log 20 > 1/2": logarithm},
    )


SMALL = [
    Setting(N, 1, C, D, eps)
    for N in (16, 48, 96)
    for C, D, eps in (
        (Fraction(1), Fraction(1), Fraction(1, 2)),
        (Fraction(11, 10), Fraction(9, 10), Fraction(1, 2)),
        (Fraction(2), Fraction(1, 2), Fraction(1)),
        (Fraction(2), Fraction(1, 2), Fraction(1, 2)),
    )
]
"""Settings small enough for exact tails."""

LARGE = [
    Setting(2**k, k, Fraction(2), Fraction(1, 2), eps)
    for k in (12, 16, 20, 30)
    for eps in (Fraction(1, 2), Fraction(1, 10))
]
"""Settings of a real size, with d = log2 N."""


@dataclass(frozen=True)
class Sizes:
    """The least M of each kind for one setting; `exact` are the least M from exact tails of two-valued populations."""

    first: int
    second: int
    hoeffding: int
    serfling: int
    exact_weights: int | None
    exact_ratio: int | None

    @property
    def printed(self) -> int:
        """Both printed conditions."""
        return max(self.first, self.second)


def sample_sizes(s: Setting, *, exact: bool) -> Sizes:
    """All of them; a row's failure probability is 1/(20N) for the weights and 1/(10N) for the ratio."""
    weights = least_exact(lambda M: worst_weights(s, M), s.N, Fraction(1, 20 * s.N)) if exact else None
    output = least_exact(lambda M: worst_ratio(s, M), s.N, Fraction(1, 10 * s.N)) if exact else None
    return Sizes(
        least(lambda: printed_weights_size(s)),
        least(lambda: printed_output_size(s)),
        least_hoeffding(s),
        least_serfling(s),
        weights,
        output,
    )


@C1.check(
    "bounds",
    "ball",
    name="sample-sizes",
    predicate="least M from exact tails of two-valued populations <= least M from Serfling <= least M from Hoeffding <= printed M, in every setting; "
    "each by formula meets the bound it is solved from, one less does not",
    implies="the printed conditions are sufficient but far from necessary; where the printed M exceeds N the theorem says nothing",
    assumes=("Arb",),
)
def sample_sizes_are_ordered() -> Outcome:
    """The settings of the table `sample sizes`; exact tails where N is small."""
    rows, vacuous = [], 0
    for s in (*SMALL, *LARGE):
        found = sample_sizes(s, exact=s in SMALL)
        chain = [found.exact_weights or 1, found.serfling, found.hoeffding, found.printed]
        if chain != sorted(chain) or (found.exact_ratio or 1) > found.serfling:
            return _fault("sample sizes", {"N": s.N, "d": s.d}, found, "increasing sizes")
        if wrong := list(unmet(s)):
            return _fault("sample sizes", {"N": s.N, "d": s.d}, wrong, "the least M that meets its bound")
        vacuous += found.printed > s.N
        rows.append(_size_row(s, found))
    return Outcome(
        Status.PROVED,
        Scope.instance(len(rows)),
        "the least M by each argument",
        "the settings (N, d, C, D, eps) of the evidence",
        f"ordered in all {len(rows)} settings; the printed conditions ask for M > N in {vacuous} of them",
        {"headers": list(SIZE_HEADERS), "rows": rows},
    )


SIZE_HEADERS = (
    "N", "d", "C", "D", "eps", "condition 1", "condition 2", "printed M", "M <= N?", "Hoeffding", "Serfling",
    "exact, weights", "exact, ratio",
)  # fmt: skip


def _size_row(s: Setting, found: Sizes) -> list[str]:
    exact = ["not computed" if x is None else str(x) for x in (found.exact_weights, found.exact_ratio)]
    verdict = "yes" if found.printed <= s.N else "no: vacuous"
    numbers = (s.N, s.d, s.C, s.D, s.eps, found.first, found.second, found.printed)
    return [*map(str, numbers), verdict, str(found.hoeffding), str(found.serfling), *exact]


REGISTRY.tabulate(
    Table(
        "sample sizes",
        "C.1",
        "Least M by the conditions of Theorem C.1, by Hoeffding's and Serfling's inequalities with the union over N rows, and from exact tails of "
        "two-valued populations (a lower bound on what any argument by rows can reach, d = 1)",
        SIZE_HEADERS,
        lambda: [_size_row(s, sample_sizes(s, exact=s in SMALL)) for s in (*SMALL, *LARGE)],
    )
)


@N25.check(
    "printed",
    "ball",
    name="coordinates",
    predicate="32 d log(40dN) <= 128 log(40dN) exactly for d <= 4, and 16 (1 + sqrt(2 log(20N)))^2 <= 128 log(40dN) for every d",
    implies="a union over coordinates needs more than the printed condition from d = 5 on (in the 2-norm; in the maximum norm it needs a quarter of "
    "it); the bound for vectors needs less for every d and has no term log d",
    assumes=("Arb", "McDiarmid"),
)
def coordinates_do_not_give_the_second_condition() -> Outcome:
    """The first is 32 d <= 128; the second is the argument of C.1's check `conditions`, for every N and d. Evaluated on a grid.

    Coordinates: each must be within eps D beta/(4 sqrt(d)) for the 2-norm of the error to be within eps D beta/4, and the interval of a coordinate
    has length up to 2 beta: `2 d N exp(-M eps^2 D^2/(32 d)) <= 1/20`.
    """
    C, D, eps = Fraction(1), Fraction(1, 2), Fraction(1, 2)
    rows = []
    for N in (16, 2**10, 2**20, 2**40):
        for d in (1, 2, 4, 5, 8, 40):
            s = Setting(N, d, C, D, eps)
            sizes = (printed_output_size, coordinates_size, vector_size)
            stated, coordinates, vectors = (least(partial(size, s)) for size in sizes)
            rows.append({"N": N, "d": d, "printed": stated, "coordinates": coordinates, "vectors": vectors})
            if (coordinates <= stated) != (d <= 4) or vectors > stated:
                return _fault(
                    "sample sizes of the numerator", {"N": N, "d": d}, rows[-1], "coordinates fit up to d = 4 only"
                )
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "sample sizes for the numerator",
        "every N and d by the argument; evaluated for C = 1, D = eps = 1/2",
        f"coordinates fit the printed condition up to d = 4; at N = {N}, d = 40: printed {stated}, coordinates {coordinates}, vectors {vectors}",
        {"rows": rows},
    )


# ======================================================================================================================
# Claims: N14, the last inequality
# ======================================================================================================================


@N14.check(
    "repaired",
    "exact",
    name="factored",
    predicate="4 (4-eps) (eps/4) + (4+eps) eps = 8 eps and eps (4-eps) - 2 eps = eps (2-eps), as polynomials over Q",
    implies="eps - [eps/4 + (1+eps/4) eps/(4-eps)] = eps (2-eps)/(4-eps), which is >= 0 exactly for 0 < eps <= 2 among 0 < eps < 4",
    assumes=("FLINT",),
)
def last_inequality() -> Outcome:
    """Both sides times 4 (4-eps) > 0: the left side of the inequality is 2 eps/(4-eps), and eps minus it has the factors eps > 0, 2-eps and 4-eps > 0.

    It is also what the error is: with A' = (1-eps/4) A and B' = (1+eps/4) B the ratio is off by exactly 2 eps/(4-eps), so that for
    2 < eps < 4 sums within eps/4 do not give a ratio within eps, and from eps = 4 on the estimate of A may be zero. (For eps >= 1 the
    definition is empty anyway: output zero is within eps ||T(X)||.)
    """
    eps = fmpq_poly([0, 1])
    left = (4 - eps) * eps + (4 + eps) * eps
    difference = eps * (4 - eps) - 2 * eps
    identities = left == 8 * eps and difference == eps * (2 - eps)
    attained = all((1 + e / 4) / (1 - e / 4) - 1 == 2 * e / (4 - e) for e in (Fraction(k, 10) for k in range(1, 40)))
    signs = {
        str(e): _sign(difference, e)
        for e in (Fraction(1, 100), Fraction(1), Fraction(2), 2 + Fraction(1, 2**40), Fraction(3), Fraction(399, 100))
    }
    expected = {e: (1 if Fraction(e) < 2 else 0 if Fraction(e) == 2 else -1) for e in signs}
    proved = identities and attained and signs == expected
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        Scope("every eps with 0 < eps < 4"),
        "the last inequality of the proof, as a polynomial in eps",
        "0 < eps < 4",
        "holds exactly for eps <= 2, with equality at 2; fails for 2 < eps < 4, where the left side 2 eps/(4-eps) grows without bound",
        {"difference": "eps (2 - eps)/(4 - eps)", "signs": signs, "attained": attained},
    )


def _sign(polynomial: fmpq_poly, at: Fraction) -> int:
    value = polynomial(fmpq(at.numerator, at.denominator))
    return int(value > 0) - int(value < 0)
