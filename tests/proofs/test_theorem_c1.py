"""Theorem C.1: programs, tails, sample sizes and findings against evaluations that share nothing with the engine; mutants are caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, factorial, log, log2

import mpmath
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import sampling, theorem_c1, theorem_c1_findings
from proofs.sampling import Setting
from tests.independent import head_exp2, times
from tests.proofs.checking import ball_rows, near, rows_of
from verify.arithmetic.ball import working_precision
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim
from verify.claims.functions import exact_entries, program_of
from verify.claims.verdict import Status
from verify.errors import RequestError, RuleBroken
from verify.oracle.machine import DIVISIBILITY, INPUT_LENGTH, ROW_GATHER
from verify.oracle.problem import Problem
from verify.transformer.attention import Head
from verify.transformer.token_map import TokenMap

CLAIMS = ("C.1", "R5", "N8", "N9", "N10", "N14", "N25", "N26")
BUILD = {"ratio": theorem_c1.ratio, "sums": theorem_c1.sums, "printed": theorem_c1.printed}


def claim(name: str) -> Claim:
    return theorem_c1.REGISTRY.find(name)


def fails(name: str, *checks: str) -> bool:
    """Whether one of these checks (all if none is named) is decided otherwise than announced; breaking down does not count."""
    verdicts = [check.run() for check in claim(name).checks if not checks or check.name in checks]
    return any(not v.as_expected and v.outcome.status in (Status.PROVED, Status.REFUTED) for v in verdicts)


# --- the estimators, in plain fractions and in mpmath ----------------------------------------------------------------------


def met(name, N, M, tau, i):
    """The keys that query i meets, from the definition: its block, or for the last rows the last full block."""
    rows = min(N, M)
    start = min(i // rows * rows, N - rows)
    keys = min(N, M - 1) if name == "sums" else rows
    return [tau[j] for j in range(start, start + keys)]


def estimate(name, X, W_Q, W_K, W_V, M, tau, weight):
    N = len(X)
    Q, K, V = times(X, W_Q), times(X, W_K), times(X, W_V)
    out = []
    for i in range(N):
        keys = met(name, N, M, tau, i)
        a = [weight(sum((x * y for x, y in zip(Q[i], K[j], strict=True)), Fraction(0))) for j in keys]
        A = sum(a)
        B = [
            sum(w * V[j][c].numerator / V[j][c].denominator for w, j in zip(a, keys, strict=True))
            for c in range(len(V[0]))
        ]
        scale = Fraction(N, len(keys))
        scaled = [x * scale.numerator / scale.denominator for x in (*B, A)]
        ratios = [x / A for x in B]
        out.append({"ratio": ratios, "sums": scaled, "printed": [*ratios, scaled[-1]]}[name])
    return out


def plain_weight(s):
    assert s.denominator == 1
    return Fraction(2) ** s.numerator


def exponential(s):
    return mpmath.exp(mpmath.mpf(s.numerator) / s.denominator)


@st.composite
def instances(draw, entries=2, denominator=1, most=7):
    N, d, M = draw(st.integers(1, most)), draw(st.integers(1, 2)), draw(st.integers(1, most + 2))
    number = st.integers(-entries, entries).map(lambda x: Fraction(x, denominator))
    matrix = st.lists(st.lists(st.integers(-1, 1).map(Fraction), min_size=d, max_size=d), min_size=d, max_size=d)
    X = draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=N, max_size=N))
    return X, draw(matrix), draw(matrix), draw(matrix), M, tuple(draw(st.permutations(range(N))))


def build(name, instance):
    X, W_Q, W_K, W_V, M, tau = instance
    head = Head(*(RationalMatrix.of(W) for W in (W_Q, W_K, W_V)))
    return BUILD[name](Problem.single_head(len(X), M, head), tau)


def fits(name, instance):
    N, M = len(instance[0]), instance[4]
    return M >= 2 if name == "sums" else name == "ratio" or N % M == 0


@pytest.mark.parametrize("name", BUILD)
@settings(max_examples=60, deadline=None)
@given(instances())
def test_estimators_in_fractions(name, instance):
    if fits(name, instance):
        columns = exact_entries(program_of(build(name, instance)), list(zip(*instance[0], strict=True)))
        assert rows_of(columns) == estimate(name, *instance, plain_weight)


@pytest.mark.parametrize("name", BUILD)
@settings(max_examples=25, deadline=None)
@given(instances(denominator=3))
def test_estimators_in_balls_against_mpmath(name, instance):
    if fits(name, instance):
        with mpmath.workdps(80):
            expected = estimate(name, *instance, exponential)
            for row, truth in zip(
                ball_rows(program_of(build(name, instance)), list(zip(*instance[0], strict=True))),
                expected,
                strict=True,
            ):
                assert all(near(x, y) for x, y in zip(row, truth, strict=True))


@pytest.mark.parametrize("N, M", [(1, 1), (1, 5), (3, 3), (4, 7)])
def test_the_whole_input_is_no_sample(N, M):
    """M >= N: the output is the attention output itself, for every permutation, huge and tiny scores included."""
    X = [[Fraction((-1) ** i * 30 * i)] for i in range(N)]
    one = [[Fraction(1)]]
    for tau in permutations(range(N)):
        columns = exact_entries(program_of(build("ratio", (X, one, one, one, M, tau))), list(zip(*X, strict=True)))
        assert rows_of(columns) == head_exp2(X, one, one, one)


def test_zero_outputs_and_equal_scores():
    X, zero, one = [[Fraction(x)] for x in (3, -1, 4, 1, -5)], [[Fraction(0)]], [[Fraction(1)]]
    tau = (4, 2, 0, 1, 3)
    for name, M in (("ratio", 2), ("sums", 3)):
        nothing = exact_entries(program_of(build(name, (X, one, one, zero, M, tau))), list(zip(*X, strict=True)))
        assert not any(nothing[0])
        equal = exact_entries(program_of(build(name, (X, zero, one, one, M, tau))), list(zip(*X, strict=True)))
        assert rows_of(equal) == estimate(name, X, zero, one, one, M, tau, plain_weight)
    assert set(equal[1]) == {Fraction(5)}  # the weights' estimator is exact when all weights are 1


@pytest.mark.parametrize("name", ["ratio", "sums"])
def test_costs_by_counting(name):
    """Calls counted here block by block, beside the formulas and the machine."""
    for N, M in product(range(1, 12), range(2, 13)):
        X = [[Fraction(1)]] * N
        one = [[Fraction(1)]]
        program = build(name, (X, one, one, one, M, tuple(range(N))))
        calls, done = 0, 0
        while done < N:
            done, calls = done + M, calls + 1
        assert program.cost.calls == calls and program.cost.rounds == 1
        assert program.cost.longest_input <= M and not program.broken_rules


def test_the_layer_mlp_is_applied():
    head = Head(*[RationalMatrix.identity(1)] * 3)
    mlp = TokenMap.trace([Kind.VALUE], lambda x: [x[0] * 3 + 1])
    columns = exact_entries(
        program_of(theorem_c1.ratio(Problem.single_head(3, 2, head, mlp), (2, 0, 1))),
        [[Fraction(0), Fraction(0), Fraction(1)]],
    )
    assert columns == [[Fraction(5, 2), Fraction(5, 2), Fraction(1)]]


def test_limits():
    head = Head(*[RationalMatrix.identity(1)] * 3)
    with pytest.raises(RequestError, match="2"):
        theorem_c1.sums(Problem.single_head(3, 1, head), (0, 1, 2))
    with pytest.raises(RuleBroken) as error:
        theorem_c1.printed(Problem.single_head(3, 2, head), (0, 1, 2))
    assert error.value.rule == DIVISIBILITY


# --- unbiasedness ---------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-5, 5)), min_size=1, max_size=5), st.integers(1, 5))
def test_sums_are_unbiased_by_enumeration(tokens, n):
    """Over all sets of n of the keys: plain fractions, no program."""
    a, b = [Fraction(2) ** s for s, _ in tokens], [Fraction(2) ** s * v for s, v in tokens]
    n = min(n, len(a))
    samples = list(combinations(range(len(a)), n))
    for x in (a, b):
        assert sum(Fraction(len(x), n) * sum(x[j] for j in drawn) for drawn in samples) / len(samples) == sum(x)


def test_the_ratio_is_biased_by_hand():
    """N = 2, M = 1: weights 1 and 2, values 0 and 1."""
    (check,) = [c for c in claim("C.1").checks if c.name == "ratio-is-biased"]
    evidence = check.run().outcome.evidence["smallest"]
    assert (evidence["N"], evidence["M"], evidence["average"], evidence["attention"]) == (2, 1, "1/2", "2/3")


# --- tails and sample sizes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("N, K, M", [(1, 1, 1), (5, 0, 3), (6, 2, 4), (7, 7, 2), (8, 3, 8), (9, 4, 5)])
def test_tails_by_enumeration(N, K, M):
    marked = [1] * K + [0] * (N - K)
    without = [Fraction(sum(x), M) - Fraction(K, N) for x in combinations(marked, M)]
    found = dict(sampling.upper_tails(N, K, M))
    assert found == {s: Fraction(sum(x >= s for x in without), len(without)) for s in set(without) if s > 0}
    if N**M <= 10000:
        drawn = [Fraction(sum(x), M) - Fraction(K, N) for x in product(marked, repeat=M)]
        found = dict(sampling.upper_tails_with_replacement(N, K, M))
        assert found == {s: Fraction(sum(x >= s for x in drawn), len(drawn)) for s in set(drawn) if s > 0}


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 50),
    st.integers(0, 49),
    st.fractions(Fraction(1, 50), 3, max_denominator=50),
    st.fractions(Fraction(1, 9), 9, max_denominator=9),
)
def test_bounds_against_mpmath(N, below, s, span):
    M = max(1, N - below)
    with working_precision(320), mpmath.workdps(80):
        exponent = (
            mpmath.mpf(2 * M)
            * (mpmath.mpf(s.numerator) / s.denominator) ** 2
            / (mpmath.mpf(span.numerator) / span.denominator) ** 2
        )
        assert near(sampling.hoeffding(M, s, span), mpmath.exp(-exponent))
        assert near(sampling.serfling(N, M, s, span), mpmath.exp(-exponent / (1 - mpmath.mpf(M - 1) / N)))
        beyond = mpmath.mpf(s.numerator) / s.denominator - 1 / mpmath.sqrt(M)
        expected = mpmath.exp(-M * beyond**2 / 2) if beyond > 0 else mpmath.mpf(1)
        assert near(sampling.vector_bound(M, sampling.ball(s)), expected)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 2**20),
    st.integers(1, 64),
    st.fractions(1, 4, max_denominator=5),
    st.fractions(Fraction(1, 8), 1, max_denominator=8),
    st.fractions(Fraction(1, 8), 2, max_denominator=8),
)
def test_sample_sizes_against_mpmath(N, d, C, D, eps):
    s = Setting(N, d, C, D, eps)
    with mpmath.workdps(50):
        c, delta, e = (mpmath.mpf(x.numerator) / x.denominator for x in (C, D, eps))
        first = 8 * c**4 * mpmath.log(40 * N) / e**2
        second = 128 * (mpmath.log(d) + mpmath.log(40) + mpmath.log(N)) / (e * delta) ** 2
        assert sampling.least_printed(s) == int(mpmath.ceil(max(first, second)))
        weights = 8 * (c**2 - 1) ** 2 * mpmath.log(40 * N) / e**2
        coordinates = 32 * d * mpmath.log(40 * d * N) / (e * delta) ** 2
        vectors = 16 * (1 + mpmath.sqrt(2 * mpmath.log(20 * N))) ** 2 / (e * delta) ** 2
        assert sampling.least_hoeffding(s) == int(mpmath.ceil(max(weights, min(coordinates, vectors), 1)))
    # Serfling's size is the least M of its own inequality, found here by search
    M = sampling.least(lambda: sampling.without_replacement(N, sampling.weights_size(s)))
    if M <= N:
        q = float(weights)
        assert M / (1 - (M - 1) / N) >= q * (1 - 1e-9)
        assert M == 1 or (M - 1) / (1 - (M - 2) / N) <= q * (1 + 1e-9)


@pytest.mark.parametrize(
    "C, eps", [(Fraction(2), Fraction(1, 2)), (Fraction(3, 2), Fraction(1, 3)), (Fraction(1), Fraction(1))]
)
def test_worst_weights_by_enumeration(C, eps):
    N = 7
    for M in range(1, N + 1):
        worst = Fraction(0)
        for K in range(N + 1):
            a = [C] * K + [1 / C] * (N - K)
            off = [abs(Fraction(N, M) * sum(x) - sum(a)) > eps / 4 * sum(a) for x in combinations(a, M)]
            worst = max(worst, Fraction(sum(off), len(off)))
        assert sampling.worst_weights(Setting(N, 1, C, Fraction(1), eps), M) == worst


def test_worst_ratio_by_enumeration_on_the_edge_of_the_hypothesis():
    s = Setting(6, 1, Fraction(2), Fraction(1, 2), Fraction(1, 2))
    kinds = list(sampling.two_kinds(s))
    for K, (a, b), (c, e) in kinds:
        values = [b] * K + [e] * (6 - K)
        assert {a, c} <= {s.C, 1 / s.C} and s.D * 6 * max(map(abs, values)) <= abs(sum(values))
    for M in range(1, 7):
        worst = Fraction(0)
        for K, first, second in kinds:
            tokens = [first] * K + [second] * (6 - K)
            truth = sum(b for _, b in tokens) / sum(a for a, _ in tokens)
            drawn = [sum(b for _, b in x) / sum(a for a, _ in x) for x in combinations(tokens, M)]
            worst = max(worst, Fraction(sum(abs(x - truth) > s.eps * abs(truth) for x in drawn), len(drawn)))
        assert sampling.worst_ratio(s, M) == worst


def test_failure_bound_is_above_the_exact_failure():
    """Both sums of tokens (a, b) with d = 1, exactly, beside the bound of one row, at sizes where the bound is below 1."""
    N, eps = 40, Fraction(2)
    s = Setting(N, 1, Fraction(11, 10), Fraction(1), eps)
    for M in range(1, N + 1):
        with working_precision(128):
            one_row = sampling.failure_bound(s, M) / N
        assert not one_row < sampling.ball(sampling.worst_weights(s, M))


def test_serfling_never_needs_more_than_N():
    for s in (*theorem_c1.SMALL, *theorem_c1.LARGE):
        assert sampling.least_serfling(s) <= s.N


# --- the findings -------------------------------------------------------------------------------------------------------


def test_last_inequality_in_fractions():
    for k in range(1, 400):
        eps = Fraction(k, 100)
        assert (eps / 4 + (1 + eps / 4) * eps / (4 - eps) <= eps) == (eps <= 2)


@settings(max_examples=60, deadline=None)
@given(
    st.fractions(Fraction(1, 100), 2, max_denominator=100),
    st.fractions(-1, 1, max_denominator=20),
    st.fractions(-1, 1, max_denominator=20),
    st.fractions(-1, 1, max_denominator=20),
)
def test_sums_within_a_quarter_give_a_ratio_within_eps(eps, x, y, z):
    """A two-dimensional numerator and its perturbation, in squares."""
    B, A = (Fraction(3), Fraction(4)), Fraction(7)
    u, v = (y, z) if y * y + z * z <= 1 else (Fraction(3, 5), Fraction(4, 5))
    estimate_A = A * (1 + x * eps / 4)
    estimate_B = [b + 5 * e * eps / 4 for b, e in zip(B, (u, v), strict=True)]
    error = sum((p / estimate_A - q / A) ** 2 for p, q in zip(estimate_B, B, strict=True))
    assert error <= eps * eps * 25 / (A * A)


@pytest.mark.parametrize("p", [0, 1, 7, 30])
def test_growth_by_hand(p):
    """The two layers of N8 in plain fractions: true and sampled rows written out."""
    y = Fraction(1, 2**p)
    half, third = Fraction(1, 2), Fraction(2, 3)
    true = [(Fraction(0), half), (Fraction(0), half), (Fraction(0), third), (Fraction(0), third)]
    sampled = [(y, half), (y, half), (-y, third), (-y, third)]

    def second(rows):
        a = [plain_weight(2**p * r[0]) for r in rows]
        return sum(w * (6 * r[1] - 3) for w, r in zip(a, rows, strict=True)) / sum(a)

    found = theorem_c1_findings.growth(p)
    assert found.after_second == ((second(sampled) - second(true)) / second(true)) ** 2 == Fraction(9, 25)
    assert found.after_first == y * y / (half * half + 1)
    assert found.hypothesis


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1, max_size=5),
    st.integers(1, 16).map(Fraction),
    st.fractions(Fraction(1, 8), 1, max_denominator=8),
)
def test_hypothesis_from_its_definition(tokens, C, D):
    q, k, v = zip(*tokens, strict=True)
    instance = theorem_c1_findings._instance(q, k, v)
    N, expected = len(tokens), True
    for i in range(N):
        a = [Fraction(2) ** (q[i] * k[j]) for j in range(N)]
        b = [x * y for x, y in zip(a, v, strict=True)]
        expected &= all(1 / C <= x <= C for x in a) and D * N * max(map(abs, b)) <= abs(sum(b))
    a, values = theorem_c1_findings.weights_and_values(instance)
    assert theorem_c1_findings.satisfies(a, values, C, D) == expected
    least_C, largest = theorem_c1_findings.best_constants(a, values)
    assert expected == (least_C <= C and (largest is None or D * D <= largest))


def test_bits_of_a_permutation():
    for N in (2, 3, 4, 5, 10, 100, 1000):
        bits = theorem_c1_findings.permutation_bits(N)
        assert 2 ** (bits - 1) < factorial(N) <= 2**bits
    with mpmath.workdps(40):
        for N in (2**13, 2**20):
            assert theorem_c1_findings.permutation_bits(N) == int(mpmath.ceil(mpmath.loggamma(N + 1) / mpmath.log(2)))
    N = theorem_c1_findings.first_insufficient(16)
    d = 12
    assert 2048 < N <= 4096 and factorial(N) > 2 ** (16 * d**3) >= factorial(N - 1)
    assert all(sum(map(log2, range(1, n + 1))) < 16 * (n - 1).bit_length() ** 3 + 1e-6 for n in (16, 256, 2048, 2700))


def test_blocks_met_by_enumeration():
    for N, M in ((4, 2), (6, 3), (6, 2), (5, 1)):
        total = sum(len({(t // M, tau[t] // M) for t in range(N)}) for tau in permutations(range(N)))
        assert theorem_c1_findings.mean_blocks_met(N, M) == Fraction(total, factorial(N))


# --- correcting the printed formula makes the failure disappear ------------------------------------------------------------


def test_one_key_less_makes_step_1_legal():
    """`printed` breaks the length rule at every size; the same step on M-1 keys (`sums`) does not, and estimates the same sum."""
    one = [[Fraction(1)]]
    for N, M in ((2, 2), (4, 2), (6, 3)):
        X = [[Fraction(i % 2)] for i in range(N)]
        instance = (X, one, one, one, M, tuple(range(N)))
        assert {b.rule for b in build("printed", instance).broken_rules} == {INPUT_LENGTH, ROW_GATHER}
        assert not build("sums", instance).broken_rules


def test_a_permutation_inside_blocks_can_be_fetched():
    head = Head(*[RationalMatrix.identity(1)] * 3)
    problem = Problem.single_head(4, 2, head)
    theorem_c1_findings.fetch(problem, (1, 0, 3, 2), 0)
    with pytest.raises(RuleBroken) as error:
        theorem_c1_findings.fetch(problem, (2, 0, 3, 1), 0)
    assert (error.value.rule, error.value.needed) == (INPUT_LENGTH, 3)


def test_the_factor_d_corrects_the_coordinates():
    """With M = 32 d log(40 d N)/(eps D)^2 the union over coordinates gives 1/20; with the printed M it does not from d = 5 on."""
    N = 1024
    for d in (4, 5, 40):
        s = Setting(N, d, Fraction(1), Fraction(1, 2), Fraction(1, 2))

        def union(M, d=d):
            return 2 * d * N * mpmath.exp(-mpmath.mpf(M) / (16 * 32 * d))

        assert union(sampling.least(lambda s=s: sampling.coordinates_size(s))) <= 1 / 20
        assert (union(sampling.least_printed(s)) <= 1 / 20) == (d <= 4)


def test_a_larger_constant_holds_the_permutation():
    assert (
        theorem_c1_findings.capacity(2767, 16)
        < log2(factorial(2767) >> 27000) + 27000
        < theorem_c1_findings.capacity(2767, 17)
    )


def test_a_tenth_for_all_heads_survives_the_union():
    for HL in (10, 48):
        assert 1 - HL * Fraction(1, 10) <= 0 < 1 - HL * Fraction(1, 10 * HL) == Fraction(9, 10)


# --- mutants ------------------------------------------------------------------------------------------------------------


def test_every_check_comes_out_as_announced():
    for name in CLAIMS:
        assert claim(name).checks
        for check in claim(name).checks:
            verdict = check.run()
            assert verdict.as_expected, (name, check.name, verdict.outcome)
            assert verdict.outcome.detail and verdict.outcome.evidence


def test_mutant_wrong_scale(monkeypatch):
    """N/M instead of N/n in the fused call."""
    original = theorem_c1.sums_oracle
    monkeypatch.setattr(
        theorem_c1, "sums_oracle", lambda problem, keys: original(replace(problem, N=problem.N + 1), keys)
    )
    assert fails("C.1", "identity-sums")
    assert fails("C.1", "unbiased-sums")


def test_mutant_queries_are_permuted_instead_of_keys(monkeypatch):
    original = theorem_c1.Machine.join
    monkeypatch.setattr(theorem_c1.Machine, "join", lambda self, *parts: original(self, *reversed(parts)))
    assert fails("C.1", "identity-ratio")


def test_mutant_last_block_starts_late(monkeypatch):
    """The last block does not overlap: N not divisible by M breaks."""
    monkeypatch.setattr(theorem_c1, "query_starts", lambda N, rows: [(at, at) for at in range(0, N - N % rows, rows)])
    assert fails("C.1", "identity-ratio", "cost-ratio")


def test_mutant_no_permutation(monkeypatch):
    original = theorem_c1._permuted
    monkeypatch.setattr(theorem_c1, "_permuted", lambda problem, tau: original(problem, range(problem.N)))
    assert fails("C.1", "identity-ratio")
    assert fails("C.1", "unbiased-sums")


def test_mutant_ratio_of_all_keys(monkeypatch):
    """A ratio that meets every key is not biased."""
    original = theorem_c1.ratio
    monkeypatch.setattr(theorem_c1, "ratio", lambda problem, tau: original(replace(problem, M=problem.N), tau))
    assert fails("C.1", "ratio-is-biased")


def test_mutant_call_formula(monkeypatch):
    """N // M instead of ceil(N/M)."""
    monkeypatch.setattr(theorem_c1, "ceiling", lambda a, b: max(1, a // b))
    assert fails("C.1", "cost-ratio")
    assert fails("C.1", "cost-sums")


def test_mutant_hoeffding_exponent(monkeypatch):
    original = sampling.hoeffding
    monkeypatch.setattr(theorem_c1, "hoeffding", lambda M, s, span: original(2 * M, s, span))
    assert fails("C.1", "tails-hoeffding")


def test_mutant_serfling_sampling_fraction(monkeypatch):
    """1 - M/N instead of 1 - (M-1)/N."""
    original = sampling.serfling
    monkeypatch.setattr(theorem_c1, "serfling", lambda N, M, s, span: original(N, M + 1, s, span) if M < N else arb(0))
    assert fails("C.1", "tails-serfling")


def test_mutant_vector_bound_without_its_mean(monkeypatch):
    monkeypatch.setattr(theorem_c1, "vector_bound", lambda M, relative: (-2 * M * relative * relative).exp())
    assert fails("C.1", "tails-vectors")


@pytest.mark.parametrize(
    "size, factor", [("printed_weights_size", Fraction(7, 8)), ("printed_output_size", Fraction(1, 5))]
)
def test_mutant_smaller_constants(monkeypatch, size, factor):
    """7 for 8 and less than 32 for 128: below what the bounds need (the second printed constant has room to about 32)."""
    original = getattr(sampling, size)
    monkeypatch.setattr(sampling, size, lambda s: original(s) * sampling.ball(factor))
    assert fails("C.1", "conditions")


@pytest.mark.parametrize("factor", [Fraction(99, 100), Fraction(101, 100)])
@pytest.mark.parametrize("size", ["weights_size", "coordinates_size", "vector_size"])
def test_mutant_sizes_that_are_not_the_least(monkeypatch, size, factor):
    """One per cent either way: too few rows for the bound, or more than it needs."""
    original = getattr(sampling, size)
    monkeypatch.setattr(sampling, size, lambda s: original(s) * sampling.ball(factor))
    assert fails("C.1", "sample-sizes")


def test_mutant_exact_tails(monkeypatch):
    """A population is counted with one marked element too many."""
    original = sampling.hypergeometric
    monkeypatch.setattr(theorem_c1, "hypergeometric", lambda N, K, M, x: original(N, min(K + 1, N), M, x))
    assert fails("C.1", "distribution")


def test_mutant_second_layer_is_tame(monkeypatch):
    original = theorem_c1_findings.two_layers

    def mutant(p):
        instance, second = original(p)
        return instance, Head(second.W_Q, RationalMatrix.zero(3, 1), second.W_V)

    monkeypatch.setattr(theorem_c1_findings, "two_layers", mutant)
    assert fails("N8", "growth")


def test_mutant_machine_without_length_rule(monkeypatch):
    original = theorem_c1_findings.Machine.call

    def mutant(self, oracle, m, *, role=""):
        self.waive = (INPUT_LENGTH,)
        return original(self, oracle, m, role=role)

    monkeypatch.setattr(theorem_c1_findings.Machine, "call", mutant)
    assert fails("N10", "one-call")


def test_mutant_natural_bits(monkeypatch):
    """log N! instead of log2 N!."""
    monkeypatch.setattr(theorem_c1_findings, "log2_factorial", lambda N: arb(N + 1).lgamma())
    assert fails("N9", "bits")
    assert fails("N9", "one-call")


def test_mutant_blocks_met(monkeypatch):
    monkeypatch.setattr(
        theorem_c1_findings,
        "mean_blocks_met",
        lambda N, M: (N // M) ** 2 * (1 - Fraction(comb(N - M, M), comb(N, M)) ** 2),
    )
    assert fails("N10", "blocks")


def test_mutant_hypothesis(monkeypatch):
    """N is forgotten in the second condition."""
    original = theorem_c1_findings._sums
    monkeypatch.setattr(theorem_c1_findings, "_sums", lambda a, v: ((t, b / len(a) ** 2) for t, b in original(a, v)))
    assert fails("R5")


def test_mutant_threshold_of_random_signs(monkeypatch):
    original = theorem_c1_findings._least_sum
    monkeypatch.setattr(theorem_c1_findings, "_least_sum", lambda N: original(N) / 10)
    assert fails("N26", "random-signs")


def test_mutant_smallest_N(monkeypatch):
    original = theorem_c1_findings.smallest_N
    monkeypatch.setattr(theorem_c1_findings, "smallest_N", lambda *a: original(*a) + 1)
    assert fails("N26", "smallest-N")


def test_mutant_coordinates_without_dimension(monkeypatch):
    monkeypatch.setattr(theorem_c1, "coordinates_size", lambda s: sampling.printed_output_size(s) / 4)
    assert fails("N25")


def test_mutant_last_inequality(monkeypatch):
    """The sign at eps is taken from another polynomial."""
    monkeypatch.setattr(theorem_c1, "_sign", lambda polynomial, at: 1)
    assert fails("N14")


def test_logarithms_are_natural():
    """log in the conditions is the natural logarithm: base 2 would ask for more than is stated."""
    s = Setting(1024, 1, Fraction(1), Fraction(1), Fraction(1))
    assert sampling.least(lambda: sampling.printed_weights_size(s)) == -(-int(8 * log(40 * 1024) * 2**40) // 2**40)
