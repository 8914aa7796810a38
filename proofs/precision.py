"""Precision (findings N7 and N18): what `O(log N)`-bit numbers can reach, what `eps = 2^-N` needs, and which construction meets it.

The paper asks for a relative error of `Theta(2^-N)` in every row with numbers of `O(log N)` bits. Here `u = 2^-P` is the unit
roundoff of P-bit floating-point numbers with any exponent, every operation rounded to nearest (`verify.arithmetic.rounded`).

**Theorem 1 (outputs).** *Let N be no power of two, D its odd part. There is an input of N tokens whose true output is 1/D in
every row, and every P-bit number y has `|y - 1/D| / (1/D) > 1/(D 2^(P+1))`. So no algorithm whatever whose output has
`P < N - 1 - log2 N` bits simulates to relative error 2^-N.* Proof. Equal scores, value 1 on 2^a of the N = 2^a D tokens, 0
on the others. Write y = m 2^-k with an integer |m| < 2^P. For k <= 0, D y is a multiple of D > 2, so off 1 by at least 1.
For k > 0, `|D y - 1| = |D m - 2^k| / 2^k >= 2^-k`, since D does not divide 2^k; and unless the relative error is above 1/2,
`2^k <= 2 D m < D 2^(P+1)`. Fixed-point numbers of P bits are among these. In particular `P = O(log N)` is impossible.

**Theorem 2 (the printed inversion).** *Let A + 1 = 3 2^g. Whatever P-bit number `1/2 <= r < 1` stands for A/(A+1), however it
was computed, `A' = r/(1-r)`, even without rounding, has `|A' - A| / A >= (A+1) / (6 2^P)`. So a relative error of 2^-N in A
needs `P >= N + log2(A+1) - log2 6` bits.* Proof. 1-r = k 2^-P for an integer k >= 1, so A'+1 = 2^P/k = (A+1) x/k with
x = 2^P/(A+1) = 2^(P-g)/3, which is at least 1/3 away from every integer. `|x/k - 1| = |x-k|/k` is at least 1/2 if k >= 2x,
otherwise at least `(1/3)/(2x) = (A+1)/(6 2^P)`; and |A'-A|/A > |A'-A|/(A+1). (For P < g + 1 no such r is left: 1 - r = 0.)
With bounded scores A = O(M) and this is O(log N) bits beyond N; with scores of order N it is a constant times N.

**Theorem 3 (per-query).** *Let L = H = 1, no mask, and let every number be rounded to P bits. With `d` input columns, `m` score
columns, `S >= sum_c (sum_a |x_ia W_Q,ac|) (sum_b |x_jb W_K,bc|)` for all i, j, and R merging rounds, the per-query
construction of Lemma B.1 has in row i the relative error at most `kappa_i (exp(Lambda) - 1)`, where*

    Lambda = 2 (exp((2d+4+m) u) - 1) S + (d + 2 + 2(M+5) + 2R(M+2) + 1) u,
    kappa_i = || sum_j a_ij |x_j| |W_V| ||  /  || sum_j a_ij x_j W_V ||.

Proof. Rounding to nearest multiplies by some e^theta, `|theta| <= log(1+u) <= u`. Expand every number of a run into a sum of
products of inputs, parameters and weights; a product and a quotient add their theta's, a sum passes them on and adds u for
each of its additions that the term goes through. Reading x and W: 2u; a projection: d u; a score: m u. So a score is off by at
most `eta = (exp((2d+4+m)u) - 1) S`, a weight by a factor e^(eta+u). In a leaf the row's normaliser divides all columns alike,
and the base column's numerator (exact ones) is exact: it cancels in `out / out_base`. A term of the numerator picks up
product, at most M-1 additions, division, division of the base column, quotient and the factor n_base: with the weight's own u
at most (M+5)u + eta. A merge of up to M sums has exact weights 1: scaling by the number of rows, product, M-1 additions,
division, at most (M+2)u. The last quotient: u. Terms of B have (d+2)u more than those of A. So B and A consist of their true
terms times e^theta, with |theta| summing to Lambda; with |v| replaced by |x| |W_V| in B this is the bound.

Corollary. `P >= N + log2 kappa + log2(2 Lambda/u)` bits suffice. If scores are at most polynomial in N and rows do not cancel
by more than a polynomial factor, then N + O(log N) bits reach 2^-N, and c log2 N bits reach N^-(c - O(1)).

**N18 with rounding.** A row whose true value is 0 by cancellation has relative error 0 or infinity. Constructions that shift
values by a bound (transport of sums) miss it at most precisions; the printed construction and the per-query one meet it in
the antisymmetric example at every precision, since equal terms cancel exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Literal

from flint import arb, fmpq

from proofs import lemma_a3, lemma_b1, synthetic_weight, theorem_d1
from proofs.aggregation import AGGREGATIONS, per_query_rounds
from proofs.registry import REGISTRY
from proofs.transport import plain_transport
from verify.arithmetic.ball import working_precision
from verify.arithmetic.decimals import nearest_decimal
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.arithmetic.rounded import FORMATS, bits
from verify.audit import baseline
from verify.audit.audit import Options, Subject, rounded_run, search, two_places
from verify.audit.bound import forward_bound
from verify.audit.error import measure
from verify.audit.search import Search
from verify.audit.steps import StepCondition, conditions
from verify.claims.claim import Claim, remembered
from verify.claims.figure import Figure
from verify.claims.table import Table
from verify.claims.verdict import Outcome, Scope, Status
from verify.oracle.problem import Problem, power_of_two_above, value_bound
from verify.oracle.program import Program
from verify.transformer.attention import NO_MASK, Head, Mask
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import TokenMap

N7 = REGISTRY.add(
    Claim(
        "N7",
        "Precision",
        "A relative error of 2^-N in every row is out of reach of O(log N)-bit numbers: the output alone needs N - 1 - log2 N bits, and the "
        "printed inversion r/(1-r) another log2(A+1). N + O(log N) bits suffice for the per-query construction when scores are at most "
        "polynomial and rows do not cancel.",
        "Section 1.1 (numbers, eps), Lemma B.1",
        kind="finding",
    )
)

N28 = REGISTRY.add(
    Claim(
        "N28",
        "Zero rows under rounding",
        "A row that is 0 by cancellation must be met exactly. Under rounding, a construction that shifts values to make them positive misses it, "
        "at most precisions; the printed construction and the per-query one meet it in the smallest example, at every precision tried.",
        "Section 2.1 (simulates); bears on N18",
        kind="finding",
    )
)


# ======================================================================================================================
# The theorems' formulas
# ======================================================================================================================


def best_relative_error(value: Fraction, P: int) -> Fraction:
    """The least relative error of a P-bit number for a positive rational, by exact rounding to nearest."""
    k = 0
    while value * Fraction(2) ** k >= 1 << P:
        k -= 1
    while value * Fraction(2) ** k < 1 << (P - 1):
        k += 1
    scaled = value * Fraction(2) ** k
    whole = scaled.__floor__()
    return min(abs(scaled - whole), abs(scaled - whole - 1)) / scaled


def inversion_error(A: Fraction, P: int) -> Fraction:
    """The least relative error of `r/(1-r)` for A over all P-bit numbers `1/2 <= r < 1`, in exact arithmetic."""
    x = Fraction(1 << P) / (A + 1)
    candidates = {max(1, min(x.__floor__() + step, 1 << (P - 1))) for step in (-1, 0, 1, 2)}
    return min(abs(Fraction(1 << P, k) - 1 - A) / A for k in candidates)


def per_query_lambda(N: int, M: int, d: int, m: int, S: Fraction, P: int) -> arb:
    """Lambda of Theorem 3, an upper bound."""
    u = Fraction(1, 1 << P)
    merges = per_query_rounds(N, M) - 1 if N > M else 0
    linear = (d + 2 + 2 * (M + 5) + 2 * merges * (M + 2) + 1) * u
    with working_precision(128):
        return (2 * _arb((2 * d + 4 + m) * u).expm1() * _arb(S) + _arb(linear)).upper()


def score_size(problem: Problem, X: tuple[tuple[Fraction, ...], ...]) -> Fraction:
    """S of Theorem 3 for one input, given by columns."""
    head = problem.head

    def sizes(W: RationalMatrix) -> list[list[Fraction]]:
        return [
            [sum((abs(x[i] * factor) for i, factor in column), Fraction(0)) for column in W.columns]
            for x in zip(*X, strict=True)
        ]

    Q, K = sizes(head.W_Q), sizes(head.W_K)
    return max(sum((a * b for a, b in zip(q, k, strict=True)), Fraction(0)) for q in Q for k in K)


def _arb(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


# ======================================================================================================================
# Sample instances: scores that stay bounded, that grow like log N, that grow like N
# ======================================================================================================================

Growth = Literal["bounded", "log N", "N"]
GROWTHS: tuple[Growth, ...] = ("bounded", "log N", "N")

SIZES = ((8, 4), (16, 8), (32, 8))
"""(N, M) of the tables."""

Build = Callable[[Problem], Program]


def _tree(problem: Problem) -> Program:
    return lemma_b1.repaired(problem, AGGREGATIONS["tree"])


def _per_query(problem: Problem) -> Program:
    return lemma_b1.repaired(problem, AGGREGATIONS["per-query"])


def _tuned(problem: Problem) -> Program:
    """A constant synthetic score that only the class of inputs decides: the middle of the scores' range, plus log of a block."""
    largest = problem.input_bound**2 * sum((abs(q) for row in problem.head.W_Q.rows for q in row), Fraction(0)) / 2
    return synthetic_weight.with_constant(problem, round(largest / 2) + (problem.M - 1).bit_length())


BUILDS: dict[str, Build] = {
    "printed": lemma_b1.printed,
    "tuned": _tuned,
    "supplied": synthetic_weight.supplied,
    "tree": _tree,
    "per-query": _per_query,
}
"""Constructions of Lemma B.1 whose bits are compared."""


def scale(N: int, growth: Growth) -> Fraction:
    """The scale of the scores: 1, log2 N or N/2."""
    return {"bounded": Fraction(1), "log N": Fraction((N - 1).bit_length()), "N": Fraction(N, 2)}[growth]


def sample(N: int, M: int, growth: Growth) -> tuple[Problem, tuple[tuple[Fraction, ...], ...]]:
    """One head of width 2 on tokens with entries in [0, 1], with scores `scale <x_i, x_j>` up to 2 scale."""
    random, s = Random(f"precision {N} {M} {growth}"), scale(N, growth)
    X = tuple(tuple(Fraction(random.randint(0, 16), 16) for _ in range(N)) for _ in range(2))
    return _problem(N, M, RationalMatrix.of([[s, 0], [0, s]]), X, NO_MASK), X


def window_sample(N: int, M: int, growth: Growth) -> tuple[Problem, tuple[tuple[Fraction, ...], ...]]:
    """Tokens (1, t), t = 1 for every third token and 0 for the others, scores `scale t_j`, a window of `WINDOW` tokens.

    A heavy key just before a window is what a prefix difference has to cancel.
    """
    X = (tuple(Fraction(1) for _ in range(N)), tuple(Fraction(int(j % 3 == 0)) for j in range(N)))
    W_Q = RationalMatrix.of([[0, scale(N, growth)], [0, 0]])
    return _problem(N, M, W_Q, X, Mask(causal=True, window=WINDOW)), X


def _problem(N: int, M: int, W_Q: RationalMatrix, X: tuple[tuple[Fraction, ...], ...], mask: Mask) -> Problem:
    identity = RationalMatrix.identity(2)
    layer = Layer((Head(W_Q, identity, identity),), TokenMap.identity([Kind.VALUE] * 2))
    largest = power_of_two_above([x for column in X for x in column])
    return Problem(N, M, Transformer((layer,), mask), (Kind.NUMBER,) * 2, value_bound(largest, identity), largest)


def subject(build: Build, problem: Problem, X: tuple[tuple[Fraction, ...], ...]) -> Subject:
    """A construction on an input, under kernel exp."""
    return Subject("exp", problem.transformer, X, build(problem), problem.M)


@remembered
def fewest(name: str, N: int, M: int, growth: Growth) -> Search:
    """The search for 2^-N for one construction on the sample instance."""
    problem, X = sample(N, M, growth)
    case = subject(BUILDS[name], problem, X)
    return search(case, Options(None, Fraction(1, 1 << N)), case.truth)


# ======================================================================================================================
# Claims
# ======================================================================================================================


@N7.check(
    "outputs",
    "integers",
    predicate="the best P-bit number for 1/D misses it by more than 1/(D 2^(P+1)), relatively, for every odd D and P tried",
    implies="Theorem 1: no algorithm with outputs of fewer than N - 1 - log2 N bits simulates to 2^-N, for every N that is no power of two",
)
def outputs_need_bits() -> Outcome:
    """The proof is in the module; here the inequality, and its consequence for each N, against exact rounding."""
    smallest = None
    for N in range(3, 130):
        D = N // (N & -N)
        if D == 1:
            continue
        for P in range(2, N + 4):
            error = best_relative_error(Fraction(1, D), P)
            if not error > Fraction(1, D << (P + 1)):
                return Outcome(
                    Status.REFUTED, Scope.instance(), "the inequality", f"D = {D}, P = {P}", f"error {error}"
                )
            if N << (P + 1) < 1 << N and error <= Fraction(1, 1 << N):
                return Outcome(Status.REFUTED, Scope.instance(), "the consequence", f"N = {N}, P = {P}", "is reached")
        logarithmic = 2 * (N - 1).bit_length()
        if smallest is None and best_relative_error(Fraction(1, D), logarithmic) > Fraction(1, 1 << N):
            smallest = (N, logarithmic)
    assert smallest is not None
    N, P = smallest
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "P-bit numbers near 1/D, D the odd part of N",
        "equal scores, value 1 on N/D of the N tokens; every P",
        f"holds for N up to 129 and every P up to N+3; with 2 ceil(log2 N) bits the target is first out of reach at N = {N} ({P} bits)",
        {"N up to": 129, "first N out of reach of 2 ceil(log2 N) bits": N, "bits": P},
    )


@N7.check(
    "printed",
    "integers",
    predicate="the best r/(1-r) for A = 3 2^g - 1 over all P-bit r is off by at least (A+1)/(6 2^P), relatively",
    implies="Theorem 2: the printed inversion needs N + log2(A+1) - log2 6 bits for a relative error of 2^-N in A",
)
def inversion_needs_bits() -> Outcome:
    """The proof is in the module; here the inequality against a search over the candidates for r."""
    tried = 0
    for g in range(0, 40):
        A = Fraction(3 * (1 << g) - 1)
        for P in range(g + 2, g + 60):
            error = inversion_error(A, P)
            if not error >= (A + 1) / (6 * Fraction(1 << P)):
                return Outcome(
                    Status.REFUTED, Scope.instance(), "the inequality", f"g = {g}, P = {P}", f"error {error}"
                )
            tried += 1
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "P-bit numbers r near A/(A+1)",
        "A = 3 2^g - 1, every g and P >= g + 2",
        f"holds in all {tried} cases with g < 40; for instance A = 2 in 8 bits is off by at least {inversion_error(Fraction(2), 8)}",
        {"g below": 40, "cases": tried, "A = 2, P = 8": str(inversion_error(Fraction(2), 8))},
    )


@N7.check(
    "per-query",
    "rounded",
    predicate="measured relative error <= kappa (exp(Lambda) - 1) in every row and at every precision tried",
    implies="Theorem 3: N + log2 kappa + log2(2 Lambda/u) bits reach 2^-N, for every N, M, d",
    assumes=("Arb", "MPFR"),
)
def per_query_bound() -> Outcome:
    """The proof is in the module; here the bound against measured errors, values of both signs included."""
    loosest, runs = arb(0), 0
    for N, M in ((1, 2), (3, 2), (5, 4), (9, 3), (12, 12), (16, 5)):
        for growth in GROWTHS:
            problem, X = sample(N, M, growth)
            X = (X[0], tuple(x - Fraction(1, 2) for x in X[1]))
            case = subject(_per_query, problem, X)
            S = score_size(problem, X)
            for P in (8, 20, 53, 120):
                output, _ = rounded_run(case, Options(None, Fraction(1)), bits(P))
                measured = measure(output, case.truth, P).relative
                with working_precision(128):
                    bound = _kappa(case) * per_query_lambda(N, M, 2, 2, S, P).expm1()
                    if not measured.upper <= bound:
                        return Outcome(
                            Status.REFUTED if measured.lower > bound else Status.UNDECIDED,
                            Scope.instance(),
                            "the bound of Theorem 3",
                            f"N = {N}, M = {M}, P = {P}, scores {growth}",
                            f"measured {measured.upper.str(5)}, bound {bound.str(5)}",
                        )
                    if measured.lower > 0 and P > 50:
                        loosest = loosest.max((bound / measured.lower).log() / arb.const_log2())
                runs += 1
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "the per-query construction with every operation rounded to nearest",
        "any input; L = H = 1, no mask",
        f"measured errors of {runs} runs are below it, by at most {nearest_decimal(loosest, 3)} bits at 53 bits and more",
        {"runs": runs, "loosest by bits": nearest_decimal(loosest, 4)},
    )


def _kappa(case: Subject) -> arb:
    """max_i kappa_i: absolute values of inputs and of W_V on top, the output below."""
    (head,) = case.transformer.layers[0].heads
    positive = RationalMatrix.of([[abs(x) for x in row] for row in head.W_V.rows])
    columns = case.truth.enclosures(128)
    # Scores need the signed tokens, values their sizes: both stand in one token.
    d = len(case.columns)
    both = (*case.columns, *(tuple(abs(x) for x in column) for column in case.columns))
    padded = [RationalMatrix.blocks(2 * d, W.width, [(0, 0, W)]) for W in (head.W_Q, head.W_K)]
    over = Head(padded[0], padded[1], RationalMatrix.blocks(2 * d, positive.width, [(d, 0, positive)]))
    layer = Layer((over,), TokenMap.identity([Kind.VALUE] * over.width))
    top = Subject(case.kernel, Transformer((layer,)), both, case.program, case.block).truth.enclosures(128)
    largest = arb(0)
    for i in range(len(both[0])):
        above = sum((column[i] * column[i] for column in top), arb(0)).sqrt()
        below = sum((column[i] * column[i] for column in columns), arb(0)).sqrt()
        largest = largest.max(above / below)
    return largest.upper()


@N7.check(
    "printed",
    "rounded",
    predicate="for scores that grow like N and N >= 16, printed needs at least N/2 bits more than per-query, which needs at most N + 6",
    implies="on these instances the printed inversion costs a constant times N bits, the fused call does not",
    assumes=("Arb", "MPFR"),
    name="growth",
)
def printed_loses_bits() -> Outcome:
    """The sample instances with scores up to N: fewest bits, found by runs from the proved floor to the proved ceiling."""
    rows = []
    for N, M in SIZES:
        printed, fused = fewest("printed", N, M, "N"), fewest("per-query", N, M, "N")
        lost = _largest_log_sum(N, M)
        rows.append([N, M, printed.fewest, fused.fewest, nearest_decimal(lost, 4)])
        if fused.fewest > N + 6 or (N >= 16 and 2 * (printed.fewest - fused.fewest) < N):
            return Outcome(
                Status.REFUTED,
                Scope.instance(),
                "fewest bits",
                f"N = {N}, M = {M}",
                f"{printed.fewest} and {fused.fewest}",
            )
    return Outcome(
        Status.PROVED,
        Scope.instance(len(SIZES)),
        "fewest bits for a relative error of 2^-N, scores up to N",
        f"(N, M) in {list(SIZES)}",
        "; ".join(f"N = {N}: printed {p}, per query {f}, log2(A+1) up to {lost}" for N, _, p, f, lost in rows),
        {"columns": ["N", "M", "printed", "per query", "log2(A+1)"], "rows": rows},
    )


def _largest_log_sum(N: int, M: int) -> arb:
    """log2(A + 1) for the row and block with the largest A."""
    problem, X = sample(N, M, "N")
    factor = problem.head.W_Q.rows[0][0]
    tokens = list(zip(*X, strict=True))
    with working_precision(128):
        largest = arb(0)
        for q in tokens:
            for start in range(0, N, M):
                scores = [
                    factor * sum((a * b for a, b in zip(q, k, strict=True)), Fraction(0))
                    for k in tokens[start : start + M]
                ]
                largest = largest.max(sum((_arb(s).exp() for s in scores), arb(0)))
        return (largest + 1).log() / arb.const_log2()


ZERO_SIZES = ((4, 3), (4, 2), (6, 4))
ZERO_BITS = tuple(range(4, 65))


@N28.check(
    "tree",
    "rounded",
    predicate="some row that is 0 by cancellation is missed at some precision",
    implies="transport with a shift does not simulate zero rows under rounding, at the precisions named",
    assumes=("MPFR",),
    expects=Status.REFUTED,
)
def zero_rows_shifted() -> Outcome:
    """Values 3 and -3 in turn, equal scores; N = 4 and M = 3 is the smallest case in which sums are carried for m = 1."""
    missed = [P for P in ZERO_BITS if not _meets_zero(_tree, 4, 3, P)]
    if not missed:
        return Outcome(
            Status.PROVED, Scope.instance(), "zero rows", "N = 4, M = 3", f"met at every precision {ZERO_BITS}"
        )
    return Outcome(
        Status.REFUTED,
        Scope.instance(),
        "the fused construction (tree) on tokens 3, -3, 3, -3 with equal scores, M = 3, kernel exp",
        f"P from {ZERO_BITS[0]} to {ZERO_BITS[-1]} bits",
        f"a row is not 0 at {len(missed)} of {len(ZERO_BITS)} precisions, first at {missed[0]} bits",
        {"tokens": [3, -3, 3, -3], "M": 3, "missed at bits": missed},
    )


@N28.check(
    "printed",
    "rounded",
    predicate="every row that is 0 by cancellation is met exactly, at every precision",
    implies="the printed construction keeps antisymmetric zero rows on these instances",
    assumes=("MPFR",),
)
def zero_rows_printed() -> Outcome:
    """Values 3 and -3 in turn: the terms of B cancel exactly in the stated order."""
    return _zero_rows("printed", lemma_b1.printed, [(2, 1), (4, 2), (6, 2)])


@N28.check(
    "per-query",
    "rounded",
    predicate="every row that is 0 by cancellation is met exactly, at every precision",
    implies="without a shift nothing is lost on these instances",
    assumes=("MPFR",),
)
def zero_rows_per_query() -> Outcome:
    """The same through the per-query plan."""
    return _zero_rows("per query", _per_query, [(2, 2), (4, 3), (6, 3), (6, 5)])


def _zero_rows(name: str, build: Build, sizes: list[tuple[int, int]]) -> Outcome:
    for N, M in sizes:
        for P in ZERO_BITS:
            if not _meets_zero(build, N, M, P):
                return Outcome(
                    Status.REFUTED, Scope.instance(), f"{name} on zero rows", f"N = {N}, M = {M}, {P} bits", "missed"
                )
    return Outcome(
        Status.PROVED,
        Scope.instance(len(sizes) * len(ZERO_BITS)),
        f"{name} on tokens 3, -3, ... with equal scores",
        f"(N, M) in {sizes}, P from {ZERO_BITS[0]} to {ZERO_BITS[-1]} bits, kernel exp",
        "every output row is exactly 0",
        {"sizes": [list(size) for size in sizes], "bits": [ZERO_BITS[0], ZERO_BITS[-1]]},
    )


def _meets_zero(build: Build, N: int, M: int, P: int) -> bool:
    one = RationalMatrix.identity(1)
    X = (tuple(Fraction(3 if i % 2 == 0 else -3) for i in range(N)),)
    problem = Problem.single_head(N, M, Head(RationalMatrix.zero(1, 1), one, one), bound=4)
    output, _ = rounded_run(subject(build, problem, X), Options(None, Fraction(1)), bits(P))
    return not any(y for column in output for y in column)


# ======================================================================================================================
# Tables
# ======================================================================================================================


def _fewest_rows() -> list[list[str]]:
    rows = []
    for growth in GROWTHS:
        for N, M in SIZES:
            cells = []
            for name in BUILDS:
                found = fewest(name, N, M, growth)
                cells.append(
                    str(found.fewest)
                    if found.always == found.fewest
                    else f"{found.fewest} (always: {found.always or '?'})"
                )
            rows.append([growth, str(N), str(M), *cells])
    return rows


REGISTRY.tabulate(
    Table(
        "fewest bits",
        "N7",
        "Fewest bits for a relative error of 2^-N in every row, on one sample instance for each growth of the scores (kernel exp, "
        "d = 2, entries in [0, 1]). Every smaller number of bits was run, or is proved impossible.",
        ("scores", "N", "M", *BUILDS),
        _fewest_rows,
    )
)

WINDOW_SIZES = ((8, 6), (16, 8))
WINDOW = 2


def _window_rows() -> list[list[str]]:
    rows = []
    for growth in GROWTHS:
        for N, M in WINDOW_SIZES:
            problem, X = window_sample(N, M, growth)
            cells = []
            for variant in theorem_d1.VARIANTS:
                case = Subject("exp", problem.transformer, X, theorem_d1.repaired(problem, variant), M)
                cells.append(str(search(case, Options(None, Fraction(1, 1 << N)), case.truth).fewest))
            rows.append([growth, str(N), str(M), *cells])
    return rows


REGISTRY.tabulate(
    Table(
        "fewest bits of a window",
        "N7",
        f"Fewest bits for a relative error of 2^-N with a window of {WINDOW} tokens, variants of Theorem D.1, where every third "
        "key is heavy: the printed prefix difference cancels, the others do not.",
        ("scores", "N", "M", *theorem_d1.VARIANTS),
        _window_rows,
    )
)


def _practice_rows() -> list[list[str]]:
    rows = []
    for growth in GROWTHS:
        for N, M in SIZES[1:]:
            problem, X = sample(N, M, growth)
            for dtype in ("bfloat16", "float16", "float32"):
                cells = []
                for name in ("printed", "tree", "per-query"):
                    case = subject(BUILDS[name], problem, X)
                    output, _ = rounded_run(case, Options(None, Fraction(1)), FORMATS[dtype])
                    cells.append(_digits(measure(output, case.truth, FORMATS[dtype].precision).relative.upper))
                arithmetic = Options(None, Fraction(1)).arithmetic("exp", FORMATS[dtype])
                merged = baseline.merged(arithmetic, problem.transformer, X, M)
                cells.append(_digits(measure(merged, case.truth, FORMATS[dtype].precision).relative.upper))
                rows.append([growth, str(N), str(M), dtype, *cells])
    return rows


def _digits(error: arb) -> str:
    """Two digits and a power of ten."""
    if not error.is_finite():
        return "overflow"
    if error.is_zero():
        return "0"
    mantissa, _, exponent = (int(part) for part in arb(error.mid()).mid_rad_10exp(6))
    digits = f"{mantissa:.1e}"
    shown, power = digits.split("e")
    return f"{shown}e{int(power) + exponent}"


def _beyond() -> dict[str, dict[str, list[tuple[float, float]]]]:
    return {
        f"scores {growth}": {
            name: [(float(N), float(fewest(name, N, M, growth).fewest - N)) for N, M in SIZES] for name in BUILDS
        }
        for growth in GROWTHS
    }


REGISTRY.draw(
    Figure(
        "fewest bits",
        "N7",
        "Bits beyond N that reach a relative error of 2^-N (same instances as the table), for scores that stay bounded, grow like log N and "
        "grow like N: the printed inversion loses log2(A+1) bits, the others a constant",
        "N",
        "fewest bits - N",
        _beyond,
    )
)

REGISTRY.tabulate(
    Table(
        "machine formats",
        "N7",
        "Relative errors (worst row) of constructions of Lemma B.1 in machine formats, beside a plain blockwise log-sum-exp merge in the same "
        "format; the construction's softmax subtracts nothing, the merge subtracts the largest score.",
        ("scores", "N", "M", "format", "printed", "tree", "per-query", "log-sum-exp"),
        _practice_rows,
    )
)


def _bound_rows() -> list[list[str]]:
    rows = []
    for growth in GROWTHS:
        N, M = 16, 8
        problem, X = sample(N, M, growth)
        for name, build in BUILDS.items():
            case = subject(build, problem, X)
            output, _ = rounded_run(case, Options(None, Fraction(1)), bits(53))
            measured = measure(output, case.truth, 53).relative
            bound = forward_bound(case.program, "exp", X, bits(53)).relative
            with working_precision(64):
                loose = nearest_decimal((bound / measured.lower).log() / arb.const_log2(), 3)
            rows.append([growth, name, _digits(measured.upper), _digits(bound), loose])
    return rows


REGISTRY.tabulate(
    Table(
        "forward bounds",
        "N7",
        "Measured relative error at 53 bits (unlimited exponent) against the proved forward bound, N = 16, M = 8; loose by so many bits.",
        ("scores", "construction", "measured", "bound", "bits"),
        _bound_rows,
    )
)


def _passing_rows() -> list[list[str]]:
    """Passing two numbers of each token through a layer: the truth is attention with a window of one token, which returns the token."""
    rows = []
    for N in (4, 8, 16, 32):
        random, identity = Random(f"passing {N}"), RationalMatrix.identity(2)
        X = tuple(tuple(Fraction(random.randint(1, 16), 16) for _ in range(N)) for _ in range(2))
        passed = _problem(N, N, identity, X, Mask(causal=True, window=1))
        # (N-1) e^-g times a spread below 1, against values of at least 1/16: this gap leaks less than 2^-N.
        gap = (7 * (N + 6 + N.bit_length())) // 10 + 1
        cells = []
        for oracle in (
            lemma_a3.sharpened(range(N), 2, gap, lambda x: x),
            plain_transport(2, N, as_scores=True),
        ):
            machine = lemma_b1.machine_for(passed)
            program = machine.program(machine.call(oracle, machine.input("X", N, passed.kinds), role="pass"))
            case = Subject("exp", passed.transformer, X, program, N)
            cells.append(str(search(case, Options(None, Fraction(1, 1 << N)), case.truth).fewest))
        rows.append([str(N), str(gap), *cells])
    return rows


REGISTRY.tabulate(
    Table(
        "fewest bits to pass a token",
        "N7",
        "Fewest bits to pass two numbers k/16 of each of N tokens through one attention layer to relative error 2^-N: the sharpened identity head, "
        "whose leak e^-g vanishes below half a unit of the last place, so that short numbers pass exactly; and query-side transport, which leaks "
        "nothing and rounds a logarithm.",
        ("N", "gap", "sharpened", "transport"),
        _passing_rows,
    )
)


def _law_rows() -> list[list[str]]:
    """Least squares through the fewest bits of the table's sizes, beside what is proved at the largest."""
    rows = []
    for growth in GROWTHS:
        for name in BUILDS:
            points = [(N, fewest(name, N, M, growth).fewest) for N, M in SIZES]
            slope, shift = _line(points)
            N, M = SIZES[-1]
            proved = "-"
            if name == "per-query":
                proved = f"<= {_sufficient_bits(N, M, growth)}"
            rows.append(
                [
                    growth,
                    name,
                    f"{float(slope):.2f} N + {float(shift):.1f}".replace("+ -", "- "),
                    str(points[-1][1]),
                    proved,
                ]
            )
    return rows


def _line(points: list[tuple[int, int]]) -> tuple[Fraction, Fraction]:
    count = len(points)
    x, y = (Fraction(sum(p[c] for p in points), count) for c in (0, 1))
    slope = sum(((a - x) * (b - y) for a, b in points), Fraction(0)) / sum(
        ((a - x) ** 2 for a, _ in points), Fraction(0)
    )
    return slope, y - slope * x


def _sufficient_bits(N: int, M: int, growth: Growth) -> int:
    """The least P for which Theorem 3 promises 2^-N on the sample instance (its bound falls with P)."""
    problem, X = sample(N, M, growth)
    case, S = subject(_per_query, problem, X), score_size(problem, X)
    P = N
    with working_precision(128):
        kappa = _kappa(case)
        while not kappa * per_query_lambda(N, M, 2, 2, S, P).expm1() <= arb(2) ** -N:
            P += 1
    return P


REGISTRY.tabulate(
    Table(
        "laws of the fewest bits",
        "N7",
        f"The fewest bits of the table as a line in N (least squares), what the runs need at N = {SIZES[-1][0]}, and what Theorem 3 proves to suffice there.",
        ("scores", "construction", "fitted", "run", "proved"),
        _law_rows,
    )
)

STEPS_AT: tuple[int, int, Growth] = (16, 8, "N")


@remembered
def _steps(name: str) -> list[StepCondition]:
    problem, X = sample(*STEPS_AT)
    return conditions(subject(BUILDS[name], problem, X).program, "exp", X)


def _step_rows() -> list[list[str]]:
    return [
        [name, step.step, step.role, nearest_decimal(step.condition, 3), two_places(step.bits_lost)]
        for name in BUILDS
        for step in _steps(name)
    ]


REGISTRY.tabulate(
    Table(
        "where the bits go",
        "N7",
        "Condition number of every step and the bits it loses, on the sample instance with N = 16, M = 8 and scores up to N.",
        ("construction", "step", "call", "condition", "bits"),
        _step_rows,
    )
)

REGISTRY.draw(
    Figure(
        "where the bits go",
        "N7",
        "Bits lost by each step (log2 of its condition number), N = 16, M = 8, scores up to N",
        "bits lost",
        "",
        lambda: {
            name: {step.step: [(0.0, float(two_places(step.bits_lost)))] for step in _steps(name)}
            for name in ("printed", "supplied", "tree")
        },
        bars=True,
    )
)
