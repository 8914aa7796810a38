"""Theorem C.1 (= 4.1), what its proof leaves open: hypothesis (R5, N26), permutation (N9, N10), several layers and heads (N8).

The theorem and its constructions are in `proofs.theorem_c1`, the probability in `proofs.sampling`.

* **R5.** The hypothesis `1/C <= a_ij <= C`, `D N max_j ||b_ij|| <= ||sum_j b_ij||` is a predicate on one instance (`satisfies`).
* **N8.** An error of relative size 2^-p after layer 1 can become 3/5 after layer 2, for every p, while both layers satisfy the hypothesis with
  C = 2, D = 1/2. And a union bound over ten heads that fail with probability 1/10 each says nothing.
* **N9.** N! permutations outnumber the settings of `c d^2` parameters of `O(log N)` bits from an explicit N on.
* **N10.** A call on S_t does not see tau(S_t). A gather outside does it: a concatenation of single rows.
* **N26.** The conditions on M cannot be met with M <= N below an explicit N, nor by most instances whose values have no common drift.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import permutations
from math import comb, factorial, isqrt

from flint import arb

from proofs.aggregation import ceiling
from proofs.registry import REGISTRY
from proofs.sampling import Setting, at_most, ball, fails_at_most, least, least_printed
from proofs.theorem_c1 import expected_estimators, query_starts, ratio, ratio_oracle, some_permutations
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim
from verify.claims.compare import Instance
from verify.claims.functions import Numbers, exact_entries, for_every_input, program_of
from verify.claims.samples import sample
from verify.claims.table import Table
from verify.claims.verdict import Outcome, Scope, Status
from verify.errors import RuleBroken
from verify.oracle.machine import INPUT_LENGTH, Machine
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.oracle.program import Program
from verify.transformer.attention import NO_MASK, Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap

R5 = REGISTRY.add(
    Claim(
        "R5",
        "'Average case' is deterministic boundedness",
        "The hypothesis of Theorem C.1 is a property of one instance, not of a distribution of instances; random instances need not have it.",
        "Review, minor comment 1",
        kind="comment",
    )
)
N8 = REGISTRY.add(
    Claim(
        "N8",
        "One layer and one head only",
        "Theorem C.1 bounds the error of one layer and one head: nothing bounds its growth through the weights of later layers, "
        "and a success probability of 0.9 for each head does not survive a union over H L heads.",
        "Theorem C.1, Appendix C",
        kind="finding",
    )
)
N9 = REGISTRY.add(
    Claim(
        "N9",
        "A permutation does not fit into the parameters",
        "An arbitrary permutation of N tokens needs log2 N! bits, more than O(log^2 N) parameters of O(log N) bits hold.",
        "Theorem C.1, Appendix C, with Lemma A.3",
        kind="finding",
    )
)
N10 = REGISTRY.add(
    Claim(
        "N10",
        "The permuted tokens are not in the block",
        "A call on block t sees the tokens of that block, but tau(S_t) lies in up to min(M, N/M) blocks: Lemma A.3 cannot fetch it in one "
        "call for each block. A row gather outside the oracle can.",
        "Theorem C.1, Appendix C",
        kind="finding",
    )
)
N26 = REGISTRY.add(
    Claim(
        "N26",
        "When the conditions of Theorem C.1 can be met at all",
        "D <= 1 always, so the theorem asks for M >= 128 log(40 d N)/(eps^2 D^2) >= 128 log(40 N)/eps^2: below an explicit N no M <= N "
        "satisfies it, and for values that are random signs with equal weights D^2 is 1/N on average, so that hardly any instance does.",
        "Theorem 4.1 = Theorem C.1, conditions on M, C and D",
        kind="finding",
    )
)

# ======================================================================================================================
# The hypothesis, as a predicate on one instance
# ======================================================================================================================


def weights_and_values(instance: Instance) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """The weights a_ij = 2^<q_i,k_j> (N x N; integer scores) and the values v_j (rows) of a single-head instance, directly."""
    head, X = instance.problem.head, list(zip(*instance.X, strict=True))

    def times(W: RationalMatrix) -> list[list[Fraction]]:
        return [[sum((x * W.rows[k][c] for k, x in enumerate(row)), Fraction(0)) for c in range(W.width)] for row in X]

    Q, K, V = times(head.W_Q), times(head.W_K), times(head.W_V)
    a = [[Fraction(2) ** _integer(sum((x * y for x, y in zip(q, k, strict=True)), Fraction(0))) for k in K] for q in Q]
    return a, V


def satisfies(a: Sequence[Sequence[Fraction]], v: Sequence[Sequence[Fraction]], C: Fraction, D: Fraction) -> bool:
    """Whether `1/C <= a_ij <= C` and `D N max_j ||b_ij|| <= ||sum_j b_ij||` in every row: the whole hypothesis of the theorem."""
    return all(
        all(1 / C <= x <= C for x in row) and D * D * bound <= total
        for row, (total, bound) in zip(a, _sums(a, v), strict=True)
    )


def best_constants(
    a: Sequence[Sequence[Fraction]], v: Sequence[Sequence[Fraction]]
) -> tuple[Fraction, Fraction | None]:
    """The least C and the square of the largest D for which an instance satisfies the hypothesis (None: all values are zero)."""
    C = max(max(x, 1 / x) for row in a for x in row)
    return C, min((total / bound for total, bound in _sums(a, v) if bound), default=None)


def _sums(a: Sequence[Sequence[Fraction]], v: Sequence[Sequence[Fraction]]) -> Iterator[tuple[Fraction, Fraction]]:
    """For every row, `||sum_j b_ij||^2` and `(N max_j ||b_ij||)^2`."""
    for row in a:
        b = [[x * entry for entry in values] for x, values in zip(row, v, strict=True)]
        total = [sum(column, Fraction(0)) for column in zip(*b, strict=True)]
        yield _square(total), len(row) ** 2 * max(_square(vector) for vector in b)


def _square(vector: Sequence[Fraction]) -> Fraction:
    return sum((x * x for x in vector), Fraction(0))


def _integer(score: Fraction) -> int:
    if score.denominator != 1:
        raise ValueError(f"score {score} is not an integer")
    return score.numerator


# ======================================================================================================================
# Claims: N8, one layer and one head
# ======================================================================================================================

TWO_BLOCKS = (0, 2, 1, 3)
"""A permutation of four tokens: the first block samples tokens 0 and 2, the second 1 and 3."""


def two_layers(p: int) -> tuple[Instance, Head]:
    """Four tokens (q, k, y, 1) with y = 2^-p, -2^-p, 2^-p, -2^-p, whose first layer is to be sampled with M = 2, and the head of the second layer.

    Layer 1 weighs tokens with k = 1 twice for the rows with q = 1, and averages (y, k, 1). The true averages of y are 0 in every row, those of k 1/2 or 2/3.
    Layer 2 has scores 2^p y_j for every row and values 6k - 3, that is 0 or 1.
    """
    y = Fraction(1, 2**p)
    zero, one = Fraction(0), Fraction(1)
    first = Head(
        RationalMatrix.from_entries(4, 1, {(0, 0): 1}),
        RationalMatrix.from_entries(4, 1, {(1, 0): 1}),
        RationalMatrix.from_entries(4, 3, {(2, 0): 1, (1, 1): 1, (3, 2): 1}),
    )
    second = Head(
        RationalMatrix.from_entries(3, 1, {(2, 0): 1}),
        RationalMatrix.from_entries(3, 1, {(0, 0): 2**p}),
        RationalMatrix.from_entries(3, 1, {(1, 0): 6, (2, 0): -3}),
    )
    classes = (zero, zero, one, one)
    X = (classes, classes, (y, -y, y, -y), (one,) * 4)
    return Instance(Problem.single_head(4, 2, first), X, ("exp2",)), second


@dataclass(frozen=True)
class Growth:
    """Squares of the largest relative row errors after each layer, and whether the theorem's hypothesis holds everywhere."""

    after_first: Fraction
    after_second: Fraction
    hypothesis: bool


def growth(p: int) -> Growth:
    """Layer 1 by the program `ratio`, layer 2 directly, beside the direct evaluation of both; exact, kernel exp2."""
    instance, second = two_layers(p)
    problem = instance.problem
    estimated = exact_entries(program_of(ratio(problem, TWO_BLOCKS)), instance.X)
    true = exact_entries(problem.transformer.evaluate, instance.X)
    C, D = Fraction(2), Fraction(1, 2)
    later = [Instance(Problem.single_head(4, 2, second), tuple(map(tuple, Y))) for Y in (true, estimated)]
    hypothesis = all(satisfies(*weights_and_values(found), C, D) for found in (instance, *later))
    true_end, estimated_end = (
        exact_entries(lambda arithmetic, X: second.attend(arithmetic, X, NO_MASK), found.X) for found in later
    )
    return Growth(_relative(estimated, true), _relative(estimated_end, true_end), hypothesis)


def _relative(output: Numbers, true: Numbers) -> Fraction:
    """The largest square of a row's relative error, for matrices by columns without zero rows."""
    rows = zip(zip(*output, strict=True), zip(*true, strict=True), strict=True)
    return max(_square([a - b for a, b in zip(*pair, strict=True)]) / _square(pair[1]) for pair in rows)


@N8.check(
    "repaired",
    "exact",
    name="growth",
    predicate="after layer 1 every row is within 2^-p relatively; after layer 2, evaluated exactly, the largest relative error is 3/5; both layers satisfy "
    "the hypothesis with C = 2, D = 1/2, on the true and on the computed run",
    implies="no function of C and D bounds how an error of layer 1 grows in layer 2",
    assumes=("FLINT",),
)
def error_grows_without_bound() -> Outcome:
    """For every p: layer 2 sees y only through the scores 2^p y_j, which are 0 on the true run and 1, 1, -1, -1 on the sampled one, so its output is
    (1+1)/4 = 1/2 against (1/2 + 1/2)/(2 + 2 + 1/2 + 1/2) = 1/5, while the rows (y, k, 1) of layer 1 differ by 2^-p in y alone. Run for p <= 20.
    """
    rows = []
    for p in range(21):
        found = growth(p)
        rows.append({"p": p, "layer 1, squared": str(found.after_first), "layer 2, squared": str(found.after_second)})
        small = found.after_first <= Fraction(1, 4**p)
        if not (found.hypothesis and small and found.after_second == Fraction(9, 25)):
            return _fault("the two-layer instance", {"p": p}, found, "errors at most 2^-p and exactly 3/5")
    factor = (found.after_second / found.after_first).numerator // (found.after_second / found.after_first).denominator
    return Outcome(
        Status.PROVED,
        Scope("this family of instances, every p"),
        "layer 1 by the program `ratio`, layer 2 exactly, beside the direct evaluation",
        "N = 4, M = 2, tau = (0, 2, 1, 3), numbers of p bits, kernel exp2",
        f"a relative error below 2^-p becomes 3/5; at p = 20 it grows by more than {isqrt(factor)}",
        {"rows": rows, "tau": list(TWO_BLOCKS), "C": "2", "D": "1/2"},
    )


@N8.check(
    "printed",
    "integers",
    name="union",
    predicate="the least number HL of heads with 1 - HL/10 <= 0, and the failure probability for each head that leaves 9/10",
    implies="0.9 for each head says nothing from ten heads on; a head must fail with probability at most 1/(10 HL)",
)
def union_over_heads() -> Outcome:
    """The union bound loses 1/10 a head; even for independent heads the product 0.9^HL drops below 1/2. With 1/(10 HL) each, the union is 1/10."""
    tenth = Fraction(1, 10)
    vacuous = next(HL for HL in range(1, 100) if 1 - HL * tenth <= 0)
    half = next(HL for HL in range(1, 100) if (1 - tenth) ** HL < Fraction(1, 2))
    needed = all(HL * Fraction(1, 10 * HL) == tenth for HL in range(1, 100))
    proved = (vacuous, half, needed) == (10, 7, True)
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        Scope("every HL"),
        "the success probability of HL heads, 0.9 each",
        "HL = H L heads in all layers",
        f"the union bound is empty from HL = {vacuous} on (HL = 9 leaves 1/10); independent heads fall below 1/2 at HL = {half}; "
        "1/(10 HL) for each head restores 0.9",
        {"vacuous from": vacuous, "independent below 1/2 from": half, "needed for each head": "1/(10 H L)"},
    )


@N8.check(
    "repaired",
    "ball",
    name="union-repaired",
    predicate="with 40 N H L and 40 d N H L in place of 40 N and 40 d N in the conditions on M, all heads' sums are within eps/4 with probability >= 9/10",
    implies="the union over heads costs an additive log(H L) in the conditions; the growth through layers is what remains",
    assumes=("Arb", "Hoeffding", "McDiarmid"),
)
def union_is_repaired() -> Outcome:
    """The check `conditions` of C.1 with N H L rows: only their number enters the union."""
    rows = []
    for HL in (1, 10, 144, 12288):
        s = Setting(2**16 * HL, 16, Fraction(2), Fraction(1, 2), Fraction(1, 2))
        M = least_printed(s)
        if not fails_at_most(s, M, Fraction(1, 10)):
            return _fault("the union over heads", {"HL": HL, "M": M}, "not below 1/10", "at most 1/10")
        rows.append({"H L": HL, "M": M})
    return Outcome(
        Status.PROVED,
        Scope("every N and H L by the argument of C.1's conditions; evaluated at N = 2^16"),
        "the failure probability of all heads together",
        "N = 2^16, d = 16, C = 2, D = eps = 1/2",
        f"M grows from {rows[0]['M']} for one head to {rows[-1]['M']} for {rows[-1]['H L']}",
        {"rows": rows},
    )


# ======================================================================================================================
# Claims: N9, bits of a permutation
# ======================================================================================================================


def permutation_bits(N: int) -> int:
    """ceil(log2 N!), the bits that name a permutation: exactly up to 2^12, by an enclosure of log Gamma above."""
    if N <= 2**12:
        return (factorial(N) - 1).bit_length()
    return least(partial(log2_factorial, N))


def log2_factorial(N: int) -> arb:
    """An enclosure of log2 N! (call it inside `working_precision`)."""
    return arb(N + 1).lgamma() / arb(2).log()


def capacity(N: int, c: int) -> int:
    """Bits in c d^2 parameters of b bits, with d = b = ceil(log2 N): what `O(log^2 N)` numbers of `O(log N)` bits hold."""
    d = (N - 1).bit_length()
    return c * d * d * d


def first_insufficient(c: int) -> int:
    """The least N with N! > 2^capacity: not all permutations have a name of their own."""
    N, product = 1, 1
    while product <= 1 << capacity(N, c):
        N += 1
        product *= N
    return N


def first_block(N: int, c: int) -> int | None:
    """The least M <= N/2 for which even the *sets* tau(S_t) of M out of N tokens, C(N, M) of them, outnumber 2^capacity (None: no M)."""
    bits = capacity(N, c)

    def outnumbers(M: int) -> bool:
        def count() -> arb:
            return log2_factorial(N) - log2_factorial(M) - log2_factorial(N - M)

        return not at_most(-Fraction(bits), lambda: -count())

    low, high = 0, N // 2
    if not outnumbers(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if outnumbers(middle) else (middle, high)
    return high


PERMUTED = [2**k for k in range(4, 21)]
"""N of the table."""

CONSTANT = 16
"""c, the constant that stands for the paper's O(d^2) parameters."""

BIT_HEADERS = (
    "N",
    "bits of a permutation",
    "bits of 16 d^2 parameters",
    "fits?",
    "least M whose sets tau(S_t) do not fit one call",
)


def bit_rows() -> list[list[str]]:
    """The table of N9."""
    rows = []
    for N in PERMUTED:
        needed, held, block = permutation_bits(N), capacity(N, CONSTANT), first_block(N, CONSTANT)
        rows.append(
            [str(N), str(needed), str(held), "yes" if needed <= held else "no", "none" if block is None else str(block)]
        )
    return rows


REGISTRY.tabulate(
    Table(
        "permutation bits",
        "N9",
        "Bits that name a permutation of N tokens, beside those in 16 d^2 parameters of b bits with d = b = log2 N",
        BIT_HEADERS,
        bit_rows,
    )
)


@N9.check(
    "printed",
    "integers",
    name="bits",
    predicate="N! > 2^(c d^2 b) with c = 16, d = b = ceil(log2 N): the least such N, and every larger N",
    implies="from that N on some permutation cannot be held by any setting of c d^2 parameters of b bits",
    assumes=("Arb",),
)
def permutations_outnumber_parameters() -> Outcome:
    """The least N by exact integers. Beyond: on 2^(k-1) < N <= 2^k the capacity c k^3 is constant and N! grows, so N = 2^(k-1)+1 decides; k = 13, ..., 20
    are computed, and for k >= 14 log2 (2^(k-1))! >= (k-2) 2^(k-2) >= 16 k^3, by induction: at k = 14 it is 49152 >= 43904, the left side at least doubles
    with k and the right side less than doubles ((5/4)^3 < 2).
    """
    first = {c: first_insufficient(c) for c in (1, 4, CONSTANT, 64)}
    N = first[CONSTANT]
    k = (N - 1).bit_length()
    later = all(permutation_bits(2 ** (j - 1) + 1) > capacity(2 ** (j - 1) + 1, CONSTANT) for j in range(k + 1, 21))
    start = k + 1 <= 14 and 12 * 2**12 >= CONSTANT * 14**3
    stirling = all(least(partial(log2_factorial, n)) == permutation_bits(n) for n in range(3, 200))
    proved = later and start and stirling and factorial(N - 1) <= 1 << capacity(N - 1, CONSTANT)
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        Scope(f"every N >= {N}, for c = {CONSTANT}"),
        "the number of permutations beside that of parameter settings",
        "c = 16, d = b = ceil(log2 N)",
        f"insufficient from N = {N} on ({(factorial(N) - 1).bit_length()} bits against {capacity(N, CONSTANT)}); at N = 2^20, "
        f"{permutation_bits(2**20)} bits against {capacity(2**20, CONSTANT)}",
        {"first N for c": {str(c): n for c, n in first.items()}, "headers": list(BIT_HEADERS), "rows": bit_rows()},
    )


@N9.check(
    "printed",
    "ball",
    name="one-call",
    predicate="C(N, M) > 2^(16 d^2 b) from the stated M <= N/2 on, for N = 2^4, ..., 2^20",
    implies="parameters may differ from call to call, so a call needs only its own tau(S_t): that fits for M up to the stated size, of order log^3 N / log(N/M), and not beyond",
    assumes=("Arb",),
)
def sets_outnumber_parameters() -> Outcome:
    """Only the set tau(S_t) matters to the estimators. C(N, M) grows in M up to N/2, so bisection finds the least M, and exact
    binomials confirm it; where there is none, all 2^N sets fit."""
    rows = []
    for N in PERMUTED:
        block = first_block(N, CONSTANT)
        rows.append({"N": N, "least M": block})
        bits = capacity(N, CONSTANT)
        right = N <= bits if block is None else comb(N, block - 1) <= 1 << bits < comb(N, block)
        if not right:
            return _fault("the least M", {"N": N}, block, "confirmed by exact binomials")
    return Outcome(
        Status.PROVED,
        Scope("N = 2^4, ..., 2^20"),
        "the number of sets tau(S_t) beside that of parameter settings",
        "c = 16, d = b = log2 N, M <= N/2",
        f"at N = 2^20 the sets do not fit from M = {rows[-1]['least M']} on; for N <= {max(r['N'] for r in rows if r['least M'] is None)} they always fit",
        {"rows": rows},
    )


# ======================================================================================================================
# Claims: N10, fetching the permuted tokens
# ======================================================================================================================


def needed_rows(tau: Sequence[int], M: int, t: int) -> list[int]:
    """The tokens that block t's call of Lemma A.3 must depend on: S_t itself and tau(S_t)."""
    block = range(t * M, (t + 1) * M)
    return sorted({*block, *(tau[i] for i in block)})


def fetch(problem: Problem, tau: Sequence[int], t: int) -> Program:
    """The single call of block t that reads every token it must depend on. Raises RuleBroken where these are more than M."""
    machine = Machine(problem.M, problem.d, declared_gather=True)
    X = machine.input("X", problem.N, problem.kinds)
    rows = needed_rows(tau, problem.M, t)
    oracle = Oracle(
        PositionalMap(((0, len(rows), TokenMap.identity(problem.kinds)),)),
        (Layer((problem.head,), TokenMap.identity([Kind.VALUE] * problem.head.width)),),
    )
    return machine.program(machine.call(oracle, machine.gather(X, rows), role="lookup"))


def blocks_met(tau: Sequence[int], M: int) -> int:
    """For each block t, the number of blocks that tau(S_t) meets; summed over t."""
    return sum(len({tau[i] // M for i in range(at, at + M)}) for at in range(0, len(tau), M))


def mean_blocks_met(N: int, M: int) -> Fraction:
    """The mean of `blocks_met` over all permutations: block u is missed by tau(S_t) with probability C(N-M, M)/C(N, M)."""
    return (N // M) ** 2 * (1 - Fraction(comb(N - M, M), comb(N, M)))


@N10.check(
    "printed",
    "integers",
    name="one-call",
    predicate="a call that reads S_t and tau(S_t), one token a row, stays within M rows for every t exactly if tau maps every block to itself: "
    "(M!)^(N/M) of the N! permutations",
    implies="for all other permutations the printed call cannot output x_tau(i) for its block",
)
def one_call_cannot_fetch() -> Outcome:
    """An oracle's answer is a function of the rows it reads. Two inputs that agree on S_t and differ in token tau(i), i in S_t, tau(i) not in S_t, give the
    same answer to a call on S_t, and different x_tau(i): so the call must read tau(i) as well. The machine refuses it when that makes more than M rows.
    """
    rows = []
    for N, M in ((2, 1), (4, 2), (6, 2), (6, 3)):
        problem, lawful = sample(N, M, 1, 0).problem, 0
        for tau in permutations(range(N)):
            fits = True
            for t in range(N // M):
                try:
                    fetch(problem, tau, t)
                except RuleBroken as error:
                    fits = False
                    if error.rule != INPUT_LENGTH or error.needed != len(needed_rows(tau, M, t)):
                        return _fault("the call's length", {"N": N, "M": M, "t": t}, error.needed, "all rows it needs")
            lawful += fits
        rows.append({"N": N, "M": M, "permutations": factorial(N), "one call a block suffices for": lawful})
        if lawful != factorial(M) ** (N // M):
            return _fault("lawful permutations", {"N": N, "M": M}, lawful, factorial(M) ** (N // M))
    return Outcome(
        Status.PROVED,
        Scope.sizes("(N, M) in (2, 1), (4, 2), (6, 2), (6, 3), every permutation"),
        "the single call that reads every token on which it depends",
        "all permutations of N tokens",
        "refused for all permutations but those that map every block to itself; smallest: N = 2, M = 1, the exchange of both tokens needs 2 rows; "
        "N = 4, M = 2: 4 of 24",
        {"rows": rows},
    )


@N10.check(
    "printed",
    "integers",
    name="blocks",
    predicate="the mean number of pairs (t, u) with tau(S_t) meeting S_u is exactly (N/M)^2 (1 - C(N-M,M)/C(N,M)); calls that join whole blocks side by side, a "
    "constant number c of them, need at least 1/c of that",
    implies="with M >= sqrt(N) fetching by calls on whole blocks takes as many calls as the quadratic construction, up to a constant: nothing is saved",
)
def fetching_meets_many_blocks() -> Outcome:
    """The mean by enumeration at small sizes; the formula at large ones. (C(N-M,M)/C(N,M) is about exp(-M^2/N).)"""
    for N, M in ((1, 1), (2, 1), (4, 2), (6, 2), (6, 3), (7, 7)):
        mean = Fraction(sum(blocks_met(tau, M) for tau in permutations(range(N))), factorial(N))
        if mean != mean_blocks_met(N, M):
            return _fault("the mean number of pairs of blocks", {"N": N, "M": M}, mean, mean_blocks_met(N, M))
    rows = []
    for N, M in ((2**16, 2**4), (2**16, 2**8), (2**16, 2**12), (2**20, 2**10)):
        mean, pairs = mean_blocks_met(N, M), (N // M) ** 2
        rows.append({"N": N, "M": M, "mean, rounded down": int(mean), "(N/M)^2": pairs, "N/M": N // M})
        if M * M >= N and 10 * mean < 6 * pairs:
            return _fault("the share of pairs", {"N": N, "M": M}, int(mean), "at least 6/10 of all pairs")
    return Outcome(
        Status.PROVED,
        Scope.sizes("means at N <= 7 by enumeration; the formula at N = 2^16 and 2^20"),
        "the pairs of blocks between which a random permutation moves tokens",
        "all permutations, equally likely",
        f"at N = 2^16, M = 2^8, {rows[1]['mean, rounded down']} of {rows[1]['(N/M)^2']} pairs on average, against N/M = {rows[1]['N/M']} calls",
        {"rows": rows},
    )


@N10.check(
    "repaired",
    "symbolic",
    name="gather",
    predicate="the program `ratio` whose permutation is N single rows, concatenated, has the same outputs as with a declared gather, and breaks no rule",
    implies="the gather is a concatenation of rows: if rows may be taken and concatenated one by one, the model allows it outside the oracle, at no call",
    assumes=("FLINT",),
)
def gather_is_a_concatenation() -> Outcome:
    """The same program with `rows` and `stack` in place of `gather`, on a machine where no gather is declared."""
    functions = []
    for N, M in ((1, 1), (2, 1), (3, 2), (4, 2), (5, 3)):
        for tau in some_permutations(N):
            problem = Problem.universal(N, M, 1)
            program = _by_concatenation(problem, tau)
            if program.broken_rules or program.cost.calls != ceiling(N, M):
                return _fault("the concatenation of rows", {"N": N, "M": M}, program.broken_rules, "no rule broken")
            functions.append(expected_estimators("ratio", lambda p, t: _by_concatenation(p, t), N, M, 1, tau))
    return for_every_input(
        functions,
        object_="the program `ratio` without a gather",
        sizes="(N, M) in (1, 1), (2, 1), (3, 2), (4, 2), (5, 3)",
    )


def _by_concatenation(problem: Problem, tau: Sequence[int]) -> Program:
    """`ratio` with the permutation as a concatenation of single rows."""
    machine = Machine(problem.M, problem.d, problem.mlp.cost)
    X = machine.input("X", problem.N, problem.kinds)
    permuted = machine.stack(*(machine.rows(X, i, i + 1) for i in tau))
    rows = min(problem.N, problem.M)
    answers = []
    for start, new in query_starts(problem.N, rows):
        pair = machine.join(machine.rows(permuted, start, start + rows), machine.rows(X, start, start + rows))
        answers.append(machine.rows(machine.call(ratio_oracle(problem, rows), pair, role="ratio"), new - start, rows))
    return machine.program(machine.stack(*answers))


# ======================================================================================================================
# Claims: R5, the hypothesis
# ======================================================================================================================


def _instance(q: Sequence[int], k: Sequence[int], v: Sequence[int]) -> Instance:
    """Tokens (q, k, v) and the head that reads them."""
    head = Head(*(RationalMatrix.from_entries(3, 1, {(c, 0): 1}) for c in range(3)))
    X = tuple(tuple(Fraction(x) for x in column) for column in (q, k, v))
    return Instance(Problem.single_head(len(q), max(1, len(q) // 2), head), X, ("exp2",))


@R5.check(
    "printed",
    "exact",
    name="predicate",
    predicate="the hypothesis is decided from one instance alone: true for the first instance, false for the second, with C = 2, D = 1/2, kernel exp2",
    implies="no distribution of inputs enters: the only randomness of the theorem is tau",
)
def hypothesis_is_a_predicate() -> Outcome:
    """First: scores -1, 0, 1 and values 1. Second: the same scores, values 1 and -1 that cancel in a row with equal weights, so D = 0 and no M suffices."""
    q, k = (1, 0, -1, 1), (1, -1, 0, 0)
    first, second = _instance(q, k, (1, 1, 1, 1)), _instance(q, k, (1, -1, 1, -1))
    C, D = Fraction(2), Fraction(1, 2)
    found = [satisfies(*weights_and_values(instance), C, D) for instance in (first, second)]
    best = [best_constants(*weights_and_values(instance)) for instance in (first, second)]
    proved = found == [True, False] and best[0][0] == 2 and best[1][1] == 0
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        Scope.instance(2),
        "the hypothesis of Theorem C.1 as a predicate",
        "two instances of four tokens (q, k, v), equal but for the signs of v",
        f"first: C = {best[0][0]}, largest D^2 = {best[0][1]}; second: C = {best[1][0]}, largest D^2 = {best[1][1]}",
        {"q": list(q), "k": list(k), "v": [[1, 1, 1, 1], [1, -1, 1, -1]], "satisfied": found},
    )


@R5.check(
    "printed",
    "exact",
    name="random",
    predicate="of 40 seeded random integer instances (N = 8, d = 2), how many satisfy the hypothesis with C = 4, D = 1/4; largest D never above 1",
    implies="random instances need not satisfy the hypothesis",
)
def random_instances_need_not_satisfy_it() -> Outcome:
    """`satisfies` and `best_constants` must agree on every instance. D <= 1: the norm of a sum is at most the sum of the norms."""
    C, D = Fraction(4), Fraction(1, 4)
    satisfied, worst, example = 0, Fraction(0), 0
    for seed in range(40):
        a, v = weights_and_values(sample(8, 4, 2, seed))
        least_C, largest_D = best_constants(a, v)
        holds = satisfies(a, v, C, D)
        if holds != (least_C <= C and (largest_D is None or largest_D >= D * D)) or (largest_D or 0) > 1:
            return _fault("the hypothesis", {"seed": seed}, holds, "the same from the best constants")
        satisfied += holds
        if least_C > worst:
            worst, example = least_C, seed
    return Outcome(
        Status.PROVED if satisfied < 40 else Status.REFUTED,
        Scope.instance(40),
        "the hypothesis of Theorem C.1 on random instances",
        "`sample(8, 4, 2, seed)`, seeds 0 to 39: entries of X in -2..2, of W_Q and W_K in -1..1; kernel exp2",
        f"{satisfied} of 40 satisfy it with C = 4, D = 1/4; seed {example} needs C = {worst}",
        {"satisfied": satisfied, "of": 40, "largest C": str(worst), "seed": example},
    )


# ======================================================================================================================
# Claims: N26, when the conditions can be met
# ======================================================================================================================


@N26.check(
    "printed",
    "ball",
    name="smallest-N",
    predicate="the least N for which some M <= N meets both printed conditions, by enclosures",
    implies="below that N the theorem is empty for every instance with these constants; the first row, C = D = d = 1, is the best case of all",
    assumes=("Arb",),
)
def smallest_possible_N() -> Outcome:
    """For both conditions N - c log(40 d N) is convex in N and negative at N = 1 (c >= 8 for eps <= 1, and log 40 > 1), so it is
    negative below its only zero above 1 and positive after: bisection finds the least N. For eps >= 1 output zero would do. D <= 1 by the triangle inequality; larger C, d, 1/D and 1/eps ask for more.
    """
    rows = []
    for C, D, d in ((Fraction(1), Fraction(1), 1), (Fraction(2), Fraction(1, 2), 16)):
        for eps in (Fraction(1), Fraction(1, 2), Fraction(1, 4), Fraction(1, 10)):
            N = smallest_N(d, C, D, eps)
            below, at = Setting(N - 1, d, C, D, eps), Setting(N, d, C, D, eps)
            if least_printed(below) <= N - 1 or least_printed(at) > N:
                return _fault("the least N", {"N": N, "d": d}, least_printed(at), "a least N")
            rows.append([str(x) for x in (C, D, d, eps, N)])
    return Outcome(
        Status.PROVED,
        Scope("every N, for these C, D, d and eps"),
        "both printed conditions with M <= N",
        "C = D = d = 1 (the best case) and C = 2, D = 1/2, d = 16",
        f"eps = 1 needs N >= {rows[0][4]} at best, eps = 1/10 needs N >= {rows[3][4]}; with C = 2, D = 1/2, d = 16: {rows[4][4]} and {rows[7][4]}",
        {"headers": ["C", "D", "d", "eps", "least N"], "rows": rows},
    )


def smallest_N(d: int, C: Fraction, D: Fraction, eps: Fraction) -> int:
    """The least N with `least_printed <= N`. (For eps <= 1: see the check above.)"""
    high = 2
    while least_printed(Setting(high, d, C, D, eps)) > high:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if least_printed(Setting(middle, d, C, D, eps)) <= middle:
            high = middle
        else:
            low = middle
    return high


def _least_sum(N: int) -> arb:
    """The second condition with M <= N, C = d = eps = 1, says that |sum v| is at least this."""
    return (ball(128 * N) * arb(40 * N).log()).sqrt()


@N26.check(
    "printed",
    "ball",
    name="random-signs",
    predicate="equal weights and N independent random signs as values: the mean of D^2 is exactly 1/N; the share of the 2^N instances for which the second "
    "condition (eps = 1) allows M <= N is at most 2^-300, counted exactly",
    implies="for values without a common drift the theorem asks for about 128 N log(40N) keys out of N: a random instance of this kind does not meet it",
    assumes=("Arb",),
)
def random_signs_do_not_meet_it() -> Outcome:
    """C = 1, d = 1, D = |sum v|/N. The sum of N independent signs has variance N. The condition with M <= N says (sum v)^2 >= 128 N log(40N).

    (For every N, Hoeffding's inequality bounds that share by 2 (40N)^-64; here it is counted.)
    """
    for N in range(1, 33):
        mean = sum(Fraction(comb(N, k) * (2 * k - N) ** 2, N * N) for k in range(N + 1)) / 2**N
        if mean != Fraction(1, N):
            return _fault("the mean of D^2", {"N": N}, mean, Fraction(1, N))
    rows = []
    for N in (2**11, 2**12, 2**13):
        threshold = least(partial(_least_sum, N))
        count = 2 * sum(comb(N, k) for k in range(ceiling(N + threshold, 2), N + 1))
        exponent = N - count.bit_length()
        rows.append({"N": N, "least |sum|": threshold, "share at most": f"2^-{exponent}"})
        if exponent < 300:
            return _fault("the share of sign vectors", {"N": N}, f"2^-{exponent}", "at most 2^-300")
    return Outcome(
        Status.PROVED,
        Scope.sizes("N <= 32 for the mean; N = 2048, 4096, 8192 for the share"),
        "all 2^N sign vectors as values, equal weights",
        "d = 1, C = 1, eps = 1",
        f"mean of D^2 = 1/N; share {rows[1]['share at most']} at N = 4096, where |sum v| must reach {rows[1]['least |sum|']}",
        {"rows": rows},
    )


def _fault(object_: str, size: dict[str, int], found: object, expected: object) -> Outcome:
    text = ", ".join(f"{name} = {value}" for name, value in size.items())
    return Outcome(
        Status.REFUTED, Scope.instance(), object_, text, f"{found} instead of {expected}", {**size, "found": str(found)}
    )
