"""Sampling M of N numbers without replacement: exact tails, the classical bounds, and the sample size that each asks for.

Theorem C.1 replaces a sum over N keys by N/M times the sum over M keys drawn without replacement. This module holds the
probability that the theorem needs, apart from the construction.

**Scalars.** For numbers in an interval of length `span`, the mean of M draws exceeds the mean of all N by s or more with
probability at most

    exp(-2 M s^2 / span^2)                        (`hoeffding`: with replacement, Hoeffding 1963, Theorem 2; without, Theorem 4)
    exp(-2 M s^2 / ((1 - (M-1)/N) span^2))        (`serfling`: without, Serfling 1974, Corollary 1.1)

and likewise below, so twice that for both sides. `upper_tails` gives the exact probabilities for numbers 0 and 1 (the
hypergeometric distribution), against which the bounds are checked.

**Vectors.** For vectors with ||b_j|| <= beta in any Euclidean space, the mean of M draws is further than s from the mean of all N
with probability at most

    exp(-M (s/beta - 1/sqrt(M))^2 / 2)   if s > beta/sqrt(M)         (`vector_bound`; no factor for the dimension).

Proof. *With replacement:* let f be the norm of (mean of the draws - mean of all). Exchanging one draw moves f by at most 2 beta/M,
so E exp(t(f - E f)) <= exp(t^2 beta^2/(2M)) (McDiarmid 1989), and (E f)^2 <= E f^2 <= beta^2/M. *Without:* draw a set Omega
of M different indices, then a pattern of repetitions as M independent draws have it, then fill the pattern with different elements of Omega
in random order. The result has the law of M independent draws, and given Omega each draw is uniform on Omega, so the mean of the draws
has conditional expectation equal to the mean over Omega. By Jensen's inequality E phi(mean over Omega) <= E phi(mean of independent draws) for every
convex phi; this is Hoeffding's Theorem 4, and the argument does not ask for scalars. With phi(x) = exp(t ||x - mean of all||)
and t = M (s - beta/sqrt(M))/beta^2, Markov's inequality gives the bound.

**Sample sizes.** The theorem has C and D with 1/C <= a_ij <= C and D N max_j ||b_ij|| <= ||sum_j b_ij||, and wants, with probability 0.9,
both sums within a relative eps/4 in all N rows. Half of the failure probability goes to each sum: 1/(20N) for each row.
The mean weight is at least 1/C and the weights' interval has length C - 1/C; the mean of the b_ij has norm at least D beta.
Each `..._size` below is the real number that M must reach (Serfling's are capped by N, where nothing is left to chance).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import comb, isqrt, lcm

from flint import arb, fmpq

from verify.arithmetic.ball import deciding, working_precision
from verify.errors import PrecisionNeeded

# ======================================================================================================================
# Exact tails
# ======================================================================================================================


def hypergeometric(N: int, K: int, M: int, x: int) -> int:
    """How many of the C(N, M) sets of M out of N elements contain exactly x of K marked ones."""
    return comb(K, x) * comb(N - K, M - x) if 0 <= x <= M else 0


def upper_tails(N: int, K: int, M: int) -> Iterator[tuple[Fraction, Fraction]]:
    """For numbers of which K are 1 and N-K are 0: every attained deviation s > 0 of the mean of M draws from K/N, largest
    first, with the probability of a deviation of at least s. Between two attained deviations the probability does not change.
    """
    count, total = 0, comb(N, M)
    for x in range(min(K, M), -1, -1):
        deviation = Fraction(x, M) - Fraction(K, N)
        if deviation <= 0:
            return
        ways = hypergeometric(N, K, M, x)
        count += ways
        if ways:
            yield deviation, Fraction(count, total)


def upper_tails_with_replacement(N: int, K: int, M: int) -> Iterator[tuple[Fraction, Fraction]]:
    """The same for M independent draws (the binomial distribution)."""
    count, total = 0, N**M
    for x in range(M, -1, -1):
        deviation = Fraction(x, M) - Fraction(K, N)
        if deviation <= 0:
            return
        ways = comb(M, x) * K**x * (N - K) ** (M - x)
        count += ways
        if ways:
            yield deviation, Fraction(count, total)


# ======================================================================================================================
# Bounds (balls; call them inside `working_precision`)
# ======================================================================================================================


def hoeffding(M: int, s: Fraction, span: Fraction) -> arb:
    """One-sided, with or without replacement: exp(-2 M s^2 / span^2)."""
    return ball(-2 * M * s * s / (span * span)).exp()


def serfling(N: int, M: int, s: Fraction, span: Fraction) -> arb:
    """One-sided, without replacement: exp(-2 M s^2 / ((1 - (M-1)/N) span^2))."""
    left = 1 - Fraction(M - 1, N)
    return ball(-2 * M * s * s / (left * span * span)).exp()


def vector_bound(M: int, relative: arb) -> arb:
    """For vectors of norm at most beta, with or without replacement: the probability of a distance above `relative` beta."""
    beyond = relative - 1 / arb(M).sqrt()
    if beyond <= 0:
        return arb(1)
    return (-M * beyond * beyond / 2).exp()  # where the ball `beyond` contains 0, this one contains 1


def ball(x: Fraction | int) -> arb:
    """An enclosure of a rational."""
    exact = Fraction(x)
    return arb(fmpq(exact.numerator, exact.denominator))


def at_most(exact: Fraction, bound: Callable[[], arb]) -> bool:
    """Whether a rational is at most a real number given by enclosures; decided at growing precision."""

    def question(bits: int) -> bool:
        with working_precision(bits):
            limit, value = bound(), ball(exact)
            if value <= limit:
                return True
            if value > limit:
                return False
            raise PrecisionNeeded("a tail is not yet separated from its bound")

    return deciding(question, 64)


# ======================================================================================================================
# Sample sizes
# ======================================================================================================================


@dataclass(frozen=True)
class Setting:
    """The numbers in Theorem C.1: C >= 1, 0 < D <= 1, eps > 0, N tokens, values of d coordinates."""

    N: int
    d: int
    C: Fraction
    D: Fraction
    eps: Fraction


def printed_weights_size(s: Setting) -> arb:
    """`8 C^4 log(40 N) / eps^2`, the theorem's first condition."""
    return ball(8 * s.C**4 / s.eps**2) * arb(40 * s.N).log()


def printed_output_size(s: Setting) -> arb:
    """`128 (log d + log 40 + log N) / (eps^2 D^2)`, the theorem's second condition."""
    return ball(128 / (s.eps * s.D) ** 2) * (arb(s.d).log() + arb(40).log() + arb(s.N).log())


def weights_size(s: Setting) -> arb:
    """Hoeffding for the weights: `2 N exp(-M eps^2 / (8 (C^2-1)^2)) <= 1/20`."""
    return ball(8 * (s.C**2 - 1) ** 2 / s.eps**2) * arb(40 * s.N).log()


def coordinates_size(s: Setting) -> arb:
    """Hoeffding for each coordinate of the numerator within eps D beta/(4 sqrt(d)): `2 d N exp(-M eps^2 D^2/(32 d)) <= 1/20`."""
    return ball(32 * s.d / (s.eps * s.D) ** 2) * arb(40 * s.d * s.N).log()


def vector_size(s: Setting) -> arb:
    """`vector_bound` for the numerator within eps D beta/4: `N exp(-M (eps D/4 - 1/sqrt(M))^2 / 2) <= 1/20`."""
    root = 1 + (2 * arb(20 * s.N).log()).sqrt()
    return ball(16 / (s.eps * s.D) ** 2) * root * root


def without_replacement(N: int, size: arb) -> arb:
    """Serfling's sample size where Hoeffding's is `size`: M/(1 - (M-1)/N) >= size, that is, M >= size (N+1)/(N + size)."""
    return size * (N + 1) / (N + size)


def least(size: Callable[[], arb]) -> int:
    """The least integer M >= 1 with M >= size, decided by enclosures."""

    def question(bits: int) -> int:
        with working_precision(bits):
            whole = size().ceil().unique_fmpz()
        if whole is None:
            raise PrecisionNeeded("a sample size is not yet separated from an integer")
        return max(1, int(whole))

    return deciding(question, 64)


def least_printed(s: Setting) -> int:
    """The least M that the theorem's two conditions allow."""
    return max(least(lambda: printed_weights_size(s)), least(lambda: printed_output_size(s)))


def least_hoeffding(s: Setting) -> int:
    """The least M by Hoeffding for the weights, and for the numerator by the better of coordinates and vectors."""
    output = min(least(lambda: coordinates_size(s)), least(lambda: vector_size(s)))
    return max(least(lambda: weights_size(s)), output)


def least_serfling(s: Setting) -> int:
    """The least M by Serfling for weights and coordinates (or the vector bound), never more than N: all keys are no sample."""
    weights = least(lambda: without_replacement(s.N, weights_size(s)))
    coordinates = least(lambda: without_replacement(s.N, coordinates_size(s)))
    return min(s.N, max(weights, min(coordinates, least(lambda: vector_size(s)))))


def unmet(s: Setting) -> Iterator[str]:
    """The formulas whose least M does not meet the bound that it was solved from, or is not the least that does; none if all is well.

    The bounds are taken in their own words: a row's probability, at most 1/(20N). Coordinates only where sqrt(d) is rational.
    """
    N, mean, span, root = s.N, s.eps / (4 * s.C), s.C - 1 / s.C, isqrt(s.d)
    bounds: dict[str, tuple[int, Callable[[int], arb]]] = {
        "vectors": (least(lambda: vector_size(s)), lambda M: vector_bound(M, ball(s.eps * s.D / 4)))
    }
    if span:
        bounds["weights"] = least(lambda: weights_size(s)), lambda M: 2 * hoeffding(M, mean, span)
        M = least(lambda: without_replacement(N, weights_size(s)))
        if M <= N:
            bounds["weights, without replacement"] = M, lambda M: 2 * serfling(N, M, mean, span)
    if root * root == s.d:
        each = s.eps * s.D / (4 * root)
        bounds["coordinates"] = least(lambda: coordinates_size(s)), lambda M: 2 * s.d * hoeffding(M, each, Fraction(2))
    for name, (M, tail) in bounds.items():
        meets = [at_most(Fraction(-1, 20 * N), lambda tail=tail, m=m: -tail(m)) for m in (M, M - 1) if m]  # type: ignore[misc]
        if meets not in ([True], [True, False]):
            yield name


def failure_bound(s: Setting, M: int) -> arb:
    """A bound on the probability that some row's weight sum or numerator is further than eps/4 from the truth, relatively."""
    rows, span = arb(s.N), s.C - 1 / s.C
    weights = arb(0) if span == 0 else 2 * rows * hoeffding(M, s.eps / (4 * s.C), span)
    return weights + rows * vector_bound(M, ball(s.eps * s.D / 4))


def fails_at_most(s: Setting, M: int, allowed: Fraction) -> bool:
    """Whether `failure_bound` is at most `allowed`, decided at growing precision."""
    return at_most(-allowed, lambda: -failure_bound(s, M))


# --- from exact tails -----------------------------------------------------------------------------------------------------


def worst_weights(s: Setting, M: int) -> Fraction:
    """The largest probability, over all populations of K weights C and N-K weights 1/C, that the weight sum is off by more than eps/4."""
    N, total, worst = s.N, comb(s.N, M), 0
    high, low = (s.C**2).numerator, (s.C**2).denominator  # the weights in units of 1/C, and that times the denominator
    for K in range(N + 1):
        truth = M * (K * high + (N - K) * low)
        bad = sum(
            hypergeometric(N, K, M, x)
            for x in range(max(0, M - N + K), min(K, M) + 1)
            if 4 * abs(N * (x * high + (M - x) * low) - truth) > s.eps * truth
        )
        worst = max(worst, bad)
    return Fraction(worst, total)


def two_kinds(s: Setting) -> Iterator[tuple[int, tuple[Fraction, Fraction], tuple[Fraction, Fraction]]]:
    """Populations of two kinds of tokens, with d = 1, on the edge of the hypothesis: (K, (a, b) of K tokens, (a, b) of the others).

    The weights are C and 1/C either way round; one kind has b = 1 and the other the least b that D and |b| <= 1 allow.
    """
    for K in range(1, s.N):
        for a, other_a in ((s.C, 1 / s.C), (1 / s.C, s.C)):
            smallest = max(Fraction(-1), (s.D * s.N - K) / (s.N - K))
            yield K, (a, Fraction(1)), (other_a, smallest)


def worst_ratio(s: Setting, M: int) -> Fraction:
    """The largest probability, over `two_kinds`, that the ratio estimator is off by more than eps, relatively."""
    N, total, worst = s.N, comb(s.N, M), 0
    for K, (a, b), (other_a, other_b) in two_kinds(s):
        unit = lcm(a.denominator, b.denominator, other_a.denominator, other_b.denominator)
        a1, b1, a2, b2 = (int(x * unit) for x in (a, b, other_a, other_b))
        A, B = K * a1 + (N - K) * a2, K * b1 + (N - K) * b2
        p, q, bad = s.eps.numerator, s.eps.denominator, 0
        for x in range(max(0, M - N + K), min(K, M) + 1):
            sampled_A, sampled_B = x * a1 + (M - x) * a2, x * b1 + (M - x) * b2
            if q * abs(sampled_B * A - sampled_A * B) > p * abs(B) * sampled_A:
                bad += hypergeometric(N, K, M, x)
        worst = max(worst, bad)
    return Fraction(worst, total)


def least_exact(worst: Callable[[int], Fraction], N: int, allowed: Fraction) -> int:
    """The least M such that from M on, up to N, the worst probability found is at most `allowed`."""
    M = N
    while M > 1 and worst(M - 1) <= allowed:
        M -= 1
    return M
