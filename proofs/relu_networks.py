"""Review, major comment 1: what ReLU MLPs of bounded size can do for the constructions, and what they cannot.

**The question.** The constructions let MLPs divide, take logarithms, round and look things up in `O(d^2)` time, d = O(log N). Do ReLU networks of
`c d^2` parameters recover A from `r = A/(A+1)`, and do they do the lookups?

**Theorem 1 (no, not to 2^-N).** Let c be any constant and d = ceil(log2 N). No ReLU network with at most `c d^2` nonzero parameters, of any depth and with any
real weights, is within 2^-N of `r/(1-r)` on [0, 1/2], that is, for 0 <= A <= 1, once `N >= 2 c d^2 + 4`; and that holds for every N from an explicit N_0(c) on.

*Proof.* On a line a network of P nonzero parameters has at most 2^P affine pieces; within eps of r/(1-r) for A from 0 to 1 it needs `(sqrt(2) - 1)/sqrt(2 eps)` of them
(`verify.relu.bound`). With eps = 2^-N and N >= 2P + 4 that is at least `(sqrt(2) - 1) 2^(P + 3/2) = (4 - 2 sqrt(2)) 2^P > 2^P`, as 3 > 2 sqrt(2). For N in
(2^(d-1), 2^d] the condition follows from `2^(d-1) + 1 >= 2 c d^2 + 4`; if that holds for some d >= 3 it holds for d + 1, since 2 d^2 >= (d+1)^2. A larger
range of A contains this one. The same bound holds for `b/u` (on the line b = 1), for log, and for products (squares on a diagonal), with other constants.

The theorem is about the layer MLP that the printed Lemma B.1 asks for. It does not say that no other oracle computation recovers A.

**Theorem 2 (yes, to a quasi-polynomial rate for one number and to a polynomial one for d columns).** With weights E(s) in [2^-g, 2^g] and value entries of size at most
c_v, the per-query construction of Lemma B.1 with the networks `recovery` and `quotient` of `verify.relu.library`, both of `bits` bits, in place of its
divisions is within

    c_v 2^-bits (2 W / (N 2^-g - W 2^-bits) + 1),    W = number of synthetic rows in all calls for one query,

of attention in every entry. *Proof.* Each block's sums are off by at most `w c_v 2^-bits` and `w 2^-bits` for w synthetic rows, so B and A by W times that;
`B'/A' - B/A = ((B' - B) - (B/A)(A' - A))/A'`, |B/A| <= c_v, A' >= N 2^-g - W 2^-bits; the last network adds `c_v 2^-bits`. The sizes of the networks are formulas
(`verify.relu.size`): linear in bits + scale for one number, and times d for d columns. So `64 d^2` parameters reach `2^-(d^2) = N^(-log2 N)` for A alone with A
up to N, and `2^-d = 1/N` for all d columns of B at once (table `relu-threshold`). Between the two theorems the exponent of the rate differs by a constant factor for A
alone; for the d columns together it is open whether more than 2^-O(d) is possible.

**Lookups.** A table of N entries takes N-1 units in one layer (`lookup`); by counting no architecture holds all tables of N entries of log2 N bits in fewer than
N log2 N / bits parameters of so many bits, nor all reorderings in fewer than log2(N!) / bits: more than `c d^2` for all large N when bits = O(log N). So the random
permutation of Theorem C.1 does not fit into an MLP of the paper's budget; as a declared rearrangement of rows it needs none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import log2
from random import Random

from proofs.lemma_a3 import lookup, pointed, sharpened
from proofs.lemma_b1 import machine_for, per_query
from proofs.lemma_b3 import Bounds, pack
from proofs.registry import REGISTRY
from proofs.synthetic_weight import inverting_block
from proofs.transport import plain_transport
from verify.arithmetic.interface import Arithmetic, Column
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of, remembered
from verify.claims.compare import Instance, deviation
from verify.claims.evidence import table
from verify.claims.figure import Figure
from verify.claims.functions import on_numbers
from verify.claims.table import Table
from verify.claims.verdict import Outcome, Scope, Status
from verify.errors import RequestError
from verify.oracle.machine import TOKEN_MAP_COST, Machine
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.oracle.program import Program
from verify.oracle.run import run
from verify.relu import library, size
from verify.relu.bound import (
    least_pieces,
    least_table_parameters,
    least_units,
    least_units_any_depth,
    most_pieces,
    permutation_bits,
    reachable_bits,
)
from verify.relu.error import Certificate, certify, certify_product
from verify.relu.network import Network
from verify.relu.pieces import pieces_on_line, vertices
from verify.relu.target import Exponential, Inversion, Logarithm, Reciprocal, Square, Target
from verify.transformer.attention import Head
from verify.transformer.token_map import PositionalMap, TokenMap, Wire

R1 = REGISTRY.add(
    Claim(
        "R1",
        "ReLU MLPs instead of arbitrary ones",
        "With ReLU MLPs of c d^2 parameters, d = ceil(log2 N), the recovery of A from A/(A+1) cannot reach 2^-N for any c and all large N, nor can lookup tables "
        "of N entries fit; the repaired Lemma B.1 survives with the rate N^(-log2 N) for A alone and 1/N for all d columns, for scores and values bounded by constants.",
        "Review, major comment 1; Section 2.1, Lemmas B.1, B.3 and A.3",
        kind="comment",
    )
)

CONSTANT = 64
"""The c of `c d^2` for which Theorem 2 states its rates."""


# ======================================================================================================================
# Theorem 1: what is impossible
# ======================================================================================================================


def impossible_from(c: int, d: int) -> int:
    """The least N for which Theorem 1 excludes 2^-N with `c d^2` parameters."""
    return 2 * c * d * d + 4


def impossible_for_all_from(c: int) -> int:
    """N_0(c): from here on every N has `N >= 2 c d^2 + 4` with d = ceil(log2 N), and the N before it has not."""
    d = 3
    while (1 << d - 1) + 1 < impossible_from(c, d):
        d += 1
    # Every N > 2^(d-1) is excluded. Some of (2^(d-2), 2^(d-1)] may be too, but not all: d is the first whose lower end is.
    return min(max(impossible_from(c, d - 1), (1 << d - 2) + 1), (1 << d - 1) + 1)


@R1.check(
    "printed",
    "ball",
    predicate="N >= 2 c d^2 + 4 for every N from N_0(c) on, and with eps = 2^-N the pieces needed exceed 2^(c d^2), by enclosures, for all d up to 64",
    implies="Theorem 1: no ReLU network of c d^2 nonzero parameters recovers A from A/(A+1) to 2^-N for N >= N_0(c), whatever its depth and weights",
    expects=Status.REFUTED,
    assumes=("Arb",),
)
def recovery_is_impossible() -> Outcome:
    """The closed condition at every d up to 64, beside the enclosed bound, for six constants; the step to d + 1 is in the module."""
    rows = []
    for c in (1, 4, 16, 64, 256, 1024):
        first = impossible_for_all_from(c)
        start = (first - 1).bit_length()
        for d in range(start, 65):
            N = max(first, 2 ** (d - 1) + 1)
            if impossible_from(c, d) > N or reachable_bits(1, c * d * d) > N or not 2 * d * d >= (d + 1) ** 2:
                return _failed("Theorem 1", f"c = {c}, d = {d}, N = {N}", "the condition does not hold")
        before = first - 1
        if before >= impossible_from(c, (before - 1).bit_length()):
            return _failed("Theorem 1", f"c = {c}", f"N_0 = {first} is not the least")
        rows.append([c, start, first])
    return Outcome(
        Status.REFUTED,
        Scope.every_size(),
        "ReLU networks with at most c d^2 nonzero parameters, d = ceil(log2 N), as the MLP r -> r/(1-r)",
        "r in [0, 1/2] (A from 0 to 1), every depth, all real weights",
        "Theorem 1: not within 2^-N for any N >= N_0(c), with N_0 = "
        + ", ".join(f"{first} (c = {c})" for c, _, first in rows)
        + "; at N_0 more than 2^(c d^2) affine pieces are needed and at most 2^(c d^2) are possible",
        {"c": [c for c, _, _ in rows], "d": [d for _, d, _ in rows], "N_0": [first for _, _, first in rows]},
        (
            table(
                "at N_0(c) the bits wanted exceed those that c d^2 parameters can reach",
                ("c", "d", "N"),
                rows,
                ">=",
                "N",
                ["+", ["*", 2, "c", ["^", "d", 2]], 4],
            ),
        ),
    )


RANGES: tuple[tuple[Target, Fraction, Fraction], ...] = (
    (Inversion(), Fraction(0), Fraction(15, 16)),
    (Reciprocal(), Fraction(1, 8), Fraction(1)),
    (Square(), Fraction(0), Fraction(1)),
    (Exponential(), Fraction(-4), Fraction(0)),
    (Logarithm(), Fraction(1), Fraction(4)),
)
"""Targets with ranges (the square is the product on its diagonal)."""


@R1.check(
    "lower-bound",
    "ball",
    predicate="n affine pieces of the best polygon have exactly the error at which n are the least; no built network has more pieces than its widths allow, or fewer "
    "than its error needs",
    implies="the bounds behind Theorem 1 are met by networks that exist, so they are neither wrong nor weak",
    assumes=("Arb", "FLINT"),
)
def bounds_are_met() -> Outcome:
    """Best polygons for five targets, then every network of the library on one number."""
    rows = []
    for target, low, high in RANGES:
        for n in (1, 2, 3, 5, 8, 13):
            network = library.interpolant(target, low, high, n)
            found = certify(network, target, low, high)
            needed = least_pieces(target, low, high, found.upper)
            below = least_pieces(target, low, high, found.upper * (1 - Fraction(1, 2**20)))
            if not needed == n == found.pieces or below != n + 1 or not found.tight:
                return _failed(
                    target.name, f"{n} pieces", f"{needed} needed at the certified error, {below} just below it"
                )
            rows.append([n, network.units, least_units(needed, 1), least_units_any_depth(needed)])
    for made in built():
        if isinstance(made.target, Target):
            pieces = pieces_on_line(made.network, made.low, made.high)
            needed = least_pieces(made.target, made.low, made.high, made.certificate.upper)
            if not needed <= pieces <= most_pieces(made.network.widths):
                return _failed(made.name, "", f"{needed} needed, {pieces} present, {made.network.widths} units")
            least = least_units(needed, made.network.depth)
            rows.append([needed, made.network.units, least, least_units_any_depth(needed)])
    return Outcome(
        Status.PROVED,
        Scope.instance(len(rows)),
        "best polygons with 1 to 13 pieces for five functions, and the networks of the library",
        "; ".join(f"{target.formula} on [{low}, {high}]" for target, low, high in RANGES),
        f"least number of pieces = pieces of the best polygon at its certified error, one more just below it; bounds on units below what all {len(rows)} networks have",
        {"networks": len(rows)},
        (
            table(
                "a network has at least the units that its error needs in one layer or its own depth, and log2 of the pieces in any",
                ("pieces", "units", "least", "any"),
                rows,
                "<=",
                ["max", "least", "any", ["ceil", ["log2", "pieces"]]],
                "units",
            ),
        ),
    )


# ======================================================================================================================
# The networks
# ======================================================================================================================


@dataclass(frozen=True)
class Built:
    """A network of the library with its certificate, the error stated for it, and its size by formula."""

    name: str
    network: Network
    target: Target | None
    low: Fraction
    high: Fraction
    stated: Fraction
    predicted: size.Size
    certificate: Certificate


@cache
def built() -> tuple[Built, ...]:
    """Small instances of every network whose error is certified by following all of its pieces."""
    made = []

    def add(
        name: str,
        network: Network,
        target: Target,
        low: Fraction | int,
        high: Fraction | int,
        stated: Fraction,
        predicted: size.Size,
    ) -> None:
        a, b = Fraction(low), Fraction(high)
        made.append(Built(name, network, target, a, b, stated, predicted, certify(network, target, a, b)))

    for m in (1, 2, 3, 4, 6, 8):
        add(f"square, m = {m}", library.square(m), Square(), 0, 1, Fraction(1, 4 ** (m + 1)), size.square_size(m))
    for m in (1, 2, 3, 4):
        network, unit = library.product(m), (0, 1)
        found = certify_product(network, unit, unit)
        stated = Fraction(1, 4 ** (m + 1))
        made.append(
            Built(f"product, m = {m}", network, None, Fraction(0), Fraction(1), stated, size.product_size(m), found)
        )
    for scale, bits in ((1, 3), (1, 6), (2, 4), (3, 6), (4, 8)):
        low = Fraction(1, 2**scale)
        stated = Fraction(1, 2**bits)
        where = f"scale {scale}, {bits} bits"
        of_u, of_r = size.reciprocal_size(scale, bits), size.inversion_size(scale, bits)
        add(f"1/u, {where}", library.reciprocal(scale, bits), Reciprocal(), low, 1, stated, of_u)
        add(f"r/(1-r), {where}", library.inversion(scale, bits), Inversion(), 0, 1 - low, stated, of_r)
    for scale, bits in ((0, 4), (1, 4), (2, 5)):
        predicted, stated = size.exponential_size(scale, bits), Fraction(1, 2**bits)
        network = library.exponential(scale, bits)
        add(f"e^x, scale {scale}, {bits} bits", network, Exponential(), -(2**scale), 0, stated, predicted)
    for bits in (4, 7, 9):
        stated = Fraction(1, 2**bits)
        add(f"log x, {bits} bits", library.logarithm(bits), Logarithm(), 1, 2, stated, size.logarithm_size(bits))
    return tuple(made)


def measured_size(network: Network) -> size.Size:
    """What a built network costs, counted."""
    return size.Size(network.depth, max(network.widths), network.units, network.parameters, network.weight_bits)


@R1.check(
    "networks",
    "ball",
    predicate="certified sup-norm error <= stated error, within 1 % of an error attained; depth, width, units, parameters, weight bits as by formula",
    implies="the networks of Theorem 2 exist with the stated sizes and errors (those that are too large to follow piece by piece: by the proofs in the library)",
    assumes=("Arb", "FLINT"),
)
def networks_are_as_stated() -> Outcome:
    """Every network of `built`, then sizes alone on a larger grid."""
    worst = Fraction(0)
    for made in built():
        found = made.certificate
        if found.upper > made.stated or not found.tight:
            return _failed(made.name, "", f"certified error {found.upper}, stated {made.stated}")
        if measured_size(made.network) != made.predicted:
            return _failed(made.name, "", f"{measured_size(made.network)}, by formula {made.predicted}")
        worst = max(worst, found.upper / made.stated)
    sizes, rows = 0, []
    for columns in (1, 2, 3):
        for scale in (1, 3, 7):
            for bits in (2, 8, 20):
                pairs = (
                    (library.quotient(columns, scale, bits), size.quotient_size(columns, scale, bits)),
                    (library.recovery(columns, scale, bits), size.recovery_size(columns, scale, bits)),
                    (library.aggregation(3, columns, scale, bits), size.aggregation_size(3, columns, scale, bits)),
                )
                for network, predicted in pairs:
                    if measured_size(network) != predicted:
                        return _failed(
                            "size", f"{columns}, {scale}, {bits}", f"{measured_size(network)}, by formula {predicted}"
                        )
                    sizes += 1
    for m in range(1, 13):
        square, product = library.square(m), library.product(m)
        rows.append([m, square.units, square.parameters, product.units, product.parameters])
    return Outcome(
        Status.PROVED,
        Scope.instance(len(built()) + sizes),
        f"{len(built())} networks with certified errors (square, product, 1/u, r/(1-r), e^x, log x), {sizes} more with sizes alone",
        "parameters in the names of the networks",
        f"every certified error at most the stated one (largest ratio {float(worst):.3f}) and attained within 1 %; every size as by formula",
        {"networks": len(built()), "sizes": sizes, "largest ratio": str(worst)},
        (
            table(
                "a square of m teeth has 3m-1 units and 8m-3 parameters, a product 6m+1 and 16m+2",
                ("m", "su", "sp", "pu", "pp"),
                rows,
                "==",
                ["+", ["abs", ["-", "su", ["-", ["*", 3, "m"], 1]]], ["abs", ["-", "sp", ["-", ["*", 8, "m"], 3]]],
                 ["abs", ["-", "pu", ["+", ["*", 6, "m"], 1]]], ["abs", ["-", "pp", ["+", ["*", 16, "m"], 2]]]],
                0,
            ),
        ),
    )  # fmt: skip


@R1.check(
    "networks",
    "exact",
    predicate="rounding to multiples of 2^-b is exact at and beyond the stated distance from every tie; a table returns its entries",
    implies="the networks for Lemma A.3's rounding and for lookups are exact where they are used",
    assumes=("FLINT",),
)
def rounding_and_tables_are_exact() -> Outcome:
    """Rounding at the ends of every interval on which it should be constant (a constant at both ends, checked between by its corners); tables at every entry."""
    checked = 0
    for bits in range(4):
        for gap_bits in (bits + 1, bits + 3):
            gap = Fraction(1, 2**gap_bits)
            network, step = library.rounding(bits, gap), Fraction(1, 2**bits)
            for k in range(2**bits + 1):
                low, high = (
                    max(Fraction(0), (k - Fraction(1, 2)) * step + gap / 2),
                    min(Fraction(1), (k + Fraction(1, 2)) * step - gap / 2),
                )
                values = {(str(y[0])) for _, y in vertices(network, low, high)}
                if values != {str(k * step)}:
                    return _failed(
                        "rounding", f"b = {bits}, gap 2^-{gap_bits}, near {k * step}", f"values {sorted(values)}"
                    )
                checked += 1
    random = Random(1)
    for entries in (2, 3, 7, 32):
        contents = [Fraction(random.randint(0, 2**10)) for _ in range(entries)]
        network = library.lookup(contents)
        if [network(x)[0] for x in range(entries)] != contents or network.units > size.lookup_size(entries, 0).units:
            return _failed("lookup", f"{entries} entries", "another table came back")
        checked += entries
    return Outcome(
        Status.PROVED,
        Scope.instance(checked),
        "rounding networks for b = 0, ..., 3 on every interval between ties; tables of 2, 3, 7 and 32 entries",
        "x in [0, 1] at distance gap/2 or more from ties; x = 0, ..., n-1",
        f"exact on all {checked} intervals and entries",
        {"checked": checked},
    )


# ======================================================================================================================
# Theorem 2: what is reached, by construction
# ======================================================================================================================


def largest_bits(parameters: Callable[[int], int], budget: int) -> int:
    """The most bits >= 1 whose network fits the budget; 0 if none does. (Sizes increase with the bits.)"""
    if parameters(1) > budget:
        return 0
    high = 2
    while parameters(high) <= budget:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if parameters(middle) <= budget else (low, middle)
    return low


def reached_alone(d: int, c: int = CONSTANT) -> int:
    """Bits of A alone with `c d^2` parameters, for A < 2^d."""
    return largest_bits(lambda bits: size.inversion_size(d, bits).parameters, c * d * d)


def reached_together(d: int, c: int = CONSTANT) -> int:
    """Bits of all d columns of B, and A, with `c d^2` parameters, for A < 2^d."""
    return largest_bits(lambda bits: size.recovery_size(d, d, bits).parameters, c * d * d)


@R1.check(
    "budget",
    "integers",
    predicate=f"with {CONSTANT} d^2 parameters, d = 4, ..., 64: at least d^2 bits of A alone, at least d bits of d columns; never more than Theorem 1 allows",
    implies="Theorem 2's rates: N^(-log2 N) for A alone, 1/N for the d columns of B, at every N from 16 to 2^64",
)
def budget_reaches() -> Outcome:
    """By the size formulas, which the other checks compare with built networks."""
    rows = []
    for d in range(4, 65):
        alone, together = reached_alone(d), reached_together(d)
        if alone < d * d or together < d or alone > reachable_bits(d, CONSTANT * d * d):
            return _failed("bits reached", f"d = {d}", f"{alone} for A alone, {together} for {d} columns")
        rows.append([d, alone, together])
    return Outcome(
        Status.PROVED,
        Scope.sizes(f"d = ceil(log2 N) from 4 to 64 (N up to 2^64), {CONSTANT} d^2 parameters"),
        "sizes of the networks for r/(1-r) and for all of (B, A), by formula",
        "A < 2^d, values bounded by a constant",
        f"Theorem 2: 2^-(d^2) = N^(-log2 N) for A alone and 2^-d = 1/N for d columns are reached with {CONSTANT} d^2 parameters; at d = 64: "
        f"2^-{rows[-1][1]} and 2^-{rows[-1][2]}, where 2^-N would be 2^-(2^64)",
        {"d": [d for d, _, _ in rows], "alone": [a for _, a, _ in rows], "together": [t for _, _, t in rows]},
        (
            table("A alone reaches at least d^2 bits, and no more than Theorem 1 allows", ("d", "alone", "together"), rows, "<=",
                  ["max", ["^", "d", 2], ["-", "alone", ["+", ["*", 2, CONSTANT, ["^", "d", 2]], 4]]], "alone"),
            table("the d columns together reach at least d bits", ("d", "alone", "together"), rows, "<=", "d", "together"),
        ),
    )  # fmt: skip


# ======================================================================================================================
# End to end
# ======================================================================================================================


@dataclass(frozen=True)
class Networks:
    """The two networks of Theorem 2 for one class of inputs, with what the proof says about them."""

    recover: Network
    divide: Network
    shrink: Fraction
    """The factor that brings the sums into the range of `divide`."""
    error: Fraction
    """The bound of Theorem 2 on every entry of the output."""


def networks_for(problem: Problem, weight_bits: int, bits: int) -> Networks:
    """For weights in [2^-weight_bits, 2^weight_bits]. Raises RequestError when M < 2 or the bits do not separate the sum from zero."""
    N, M, m = problem.N, problem.M, problem.head.width
    if M < 2:
        raise RequestError(f"oracle length {M} is too small for ReLU MLPs", right="the smallest that would do is 2")
    largest, bound = 2**weight_bits, problem.value_bound
    sizes = [min(N, at + M - 1) - at for at in range(0, N, M - 1)]
    synthetic = sum(M - keys for keys in sizes)
    least = Fraction(N, largest)
    if 2 * synthetic * Fraction(1, 2**bits) > least:
        raise RequestError(f"{bits} bits are too few", right=f"{synthetic} synthetic rows against sums of {least}")
    # 1 - r >= w/(A + w), and A <= keys 2^g.
    scale = max(1, *(_log2_above(Fraction(keys * largest + M - keys, M - keys)) for keys in sizes))
    top = _log2_above(Fraction(N * largest + synthetic))
    last = _log2_above(2**top / (least / 2))
    off = bound / 2**bits * (2 * synthetic / (least - synthetic * Fraction(1, 2**bits)) + 1)
    return Networks(
        library.recovery(m, scale, bits, bound), library.quotient(m, last, bits, bound), Fraction(1, 2**top), off
    )


def _log2_above(x: Fraction) -> int:
    """The least k >= 0 with 2^k >= x."""
    k = 0
    while 2**k < x:
        k += 1
    return k


@part_of("R1")
def with_networks(problem: Problem, weight_bits: int, bits: int) -> Program:
    """The per-query construction of Lemma B.1 with ReLU layer MLPs throughout. Waives the limit on their cost: see Theorem 1."""
    networks = networks_for(problem, weight_bits, bits)
    machine = machine_for(problem, waive=(TOKEN_MAP_COST,))
    X = machine.input("X", problem.N, problem.kinds)
    return machine.program(
        per_query(
            machine,
            X,
            problem,
            lambda keys: inverting_block(problem, keys, Fraction(0), networks.recover.on_wires),
            divide=lambda total: networks.divide.on_wires([x * networks.shrink for x in total]),
        )
    )


def bounded(N: int, M: int, d: int, seed: int) -> Instance:
    """An instance of a single head with scores in [-1, 1] and values in [-1, 1] (weights in [2^-2, 2^2] for both kernels)."""
    random = Random(f"relu {N} {M} {d} {seed}")
    X = tuple(tuple(Fraction(random.randint(-4, 4), 4) for _ in range(N)) for _ in range(d))
    identity = RationalMatrix.identity(d)
    scaled = RationalMatrix.of([[Fraction(int(i == j), d) for j in range(d)] for i in range(d)])
    return Instance(Problem.single_head(N, M, Head(identity, scaled, identity), bound=1), X, ("exp",))


GUARD = 128
"""Bits of working precision beyond what the networks' teeth use up."""


def end_to_end(program: Program, instance: Instance, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds on the largest error of a program's output on an instance, kernel exp."""

    def output(arithmetic: Arithmetic) -> list[Column]:
        return run(program, arithmetic, {"X": [arithmetic.numbers(column) for column in instance.X]})

    def direct(arithmetic: Arithmetic) -> list[Column]:
        return instance.problem.transformer.evaluate(arithmetic, [arithmetic.numbers(column) for column in instance.X])

    return deviation(output, direct, "exp", 8 * bits + GUARD, Fraction(1, 2 ** (4 * bits + GUARD)))


LEMMA_31 = [(4, 2, 1), (5, 3, 2), (8, 4, 2), (16, 4, 2)]
"""(N, M, d) of the instances for Lemma 3.1."""

BITS = (8, 12, 16, 24, 32)
"""Bits of the networks."""


@remembered
def curve() -> tuple[tuple[int, int, int, int, int, Fraction, Fraction, Fraction], ...]:
    """(N, M, d, bits, parameters of the larger network, error attained, error bounded, bound of Theorem 2)."""
    rows = []
    for N, M, d in LEMMA_31:
        instance = bounded(N, M, d, 0)
        for bits in BITS:
            networks = networks_for(instance.problem, 2, bits)
            low, high = end_to_end(with_networks(instance.problem, 2, bits), instance, bits)
            larger = max(networks.recover.parameters, networks.divide.parameters)
            rows.append((N, M, d, bits, larger, low, high, networks.error))
    return tuple(rows)


@R1.check(
    "lemma-3.1",
    "ball",
    predicate="error of the whole simulation, by enclosures, <= the bound of Theorem 2; and 2^-N reached at small N, with more than 64 d^2 parameters",
    implies="Theorem 2 on these instances: the repaired Lemma B.1 works with ReLU MLPs to the accuracy of its networks",
    assumes=("Arb",),
)
def block_sums_with_networks() -> Outcome:
    """Four sizes, five accuracies."""
    rows, reached = curve(), []
    for N, M, d, bits, parameters, low, high, bound in rows:
        if high > bound:
            return _failed(
                "Lemma 3.1",
                f"N = {N}, M = {M}, d = {d}, {bits} bits",
                f"error {float(high):.3g}, bound {float(bound):.3g}",
            )
        if not low:
            return _failed(
                "Lemma 3.1", f"N = {N}, M = {M}, d = {d}, {bits} bits", "no error at all: the networks were not used"
            )
        if high <= Fraction(1, 2**N):
            reached.append((N, parameters, CONSTANT * ((N - 1).bit_length()) ** 2))
    N, parameters, budget = max(reached)
    return Outcome(
        Status.PROVED,
        Scope.instance(len(rows)),
        "the per-query construction of Lemma B.1 with the networks `recovery` and `quotient` as layer MLPs, beside attention",
        f"(N, M, d) in {LEMMA_31}, scores and values in [-1, 1], kernel exp, networks of {', '.join(map(str, BITS))} bits",
        f"every error at most the bound of Theorem 2; 2^-N is met up to N = {N} here, with {parameters} parameters ({CONSTANT} d^2 = {budget})",
        {"sizes": [list(size_) for size_ in LEMMA_31], "bits": list(BITS), "error bits": [f"{-log2(row[6]):.2f}" for row in rows]},
        (
            table(
                "errors in units of 2^-64, rounded up, against the bounds of Theorem 2, rounded down",
                ("N", "bits", "error", "bound"),
                [[N, bits, -(-high.numerator * 2**64 // high.denominator), int(bound * 2**64)] for N, _, _, bits, _, _, high, bound in rows],
                "<=",
                "error",
                "bound",
            ),
        ),
    )  # fmt: skip


@part_of("R1")
def carried(r: int, M: int, bits: int) -> Oracle:
    """Query-side transport of r numbers in [1/8, 5/8] (what repairs Lemma 3.3) with a ReLU layer MLP: a quotient network, then log networks; kernel exp.

    With base rows b: `e^x = b out/out_base`, off by at most `b 2^-bits`; log has slope at most 1 there. So the numbers come back within `(b + 1) 2^-bits`.
    """
    base = M - r
    if 2**bits < 8 * base:
        raise RequestError(
            f"{bits} bits are too few", right=f"at least {_log2_above(Fraction(8 * base))} for {base} base rows"
        )
    divide = library.quotient(r, _log2_above(Fraction(2 * r + base, base)) or 1, bits)
    take_log = library.logarithm(bits)

    def mlp(out: list[Wire]) -> Sequence[Wire]:
        weights = divide.on_wires(out)
        return [x for w in weights for x in take_log.on_wires([w * base])]

    return plain_transport(r, M, as_scores=True, mlp=mlp)


@R1.check(
    "lemma-3.3",
    "ball",
    predicate="numbers carried through a layer by query-side transport with a ReLU MLP come back within (M - r + 1) 2^-bits; two packed heads give what one by one gives",
    implies="the repaired packing works with ReLU MLPs to the accuracy of its networks (the printed one fails with any MLP: R2)",
    assumes=("Arb",),
)
def transport_with_networks() -> Outcome:
    """Several sizes and accuracies; then the packed program of Lemma 3.1 with H' = 2."""
    checked, worst = 0, Fraction(0)
    for r, M in ((1, 2), (2, 4), (3, 4)):
        for bits in (6, 10, 16):
            oracle, random = carried(r, M, bits), Random(f"carried {r} {M}")
            X = [[Fraction(random.randint(8, 40), 64) for _ in range(M)] for _ in range(r)]
            bound = Fraction(M - r + 1, 2**bits)
            _, high = deviation(
                lambda arithmetic, oracle=oracle, X=X: oracle.run(arithmetic, [arithmetic.numbers(c) for c in X]),  # type: ignore[misc]
                lambda arithmetic, X=X: [arithmetic.numbers(c) for c in X],  # type: ignore[misc]
                "exp",
                24 * bits + GUARD,
                Fraction(1, 2 ** (4 * bits + GUARD)),
            )
            if high > bound:
                return _failed(
                    "transport", f"r = {r}, M = {M}, {bits} bits", f"error {float(high):.3g}, bound {float(bound):.3g}"
                )
            checked, worst = checked + 1, max(worst, high / bound)
    for N, M, d, bits in ((5, 3, 2, 8), (6, 3, 1, 12)):
        instance = bounded(N, M, d, 1)
        one = with_networks(instance.problem, 2, bits)
        packed = pack(
            one, Machine(M, d, waive=(TOKEN_MAP_COST,)), heads=2, layers=1, bounds=Bounds(Fraction(1), Fraction(1))
        )
        _, high = end_to_end(packed, instance, bits)
        bound = networks_for(instance.problem, 2, bits).error
        if high > bound or packed.cost.calls >= one.cost.calls:
            return _failed("packed heads", f"N = {N}, M = {M}", f"error {float(high):.3g}, {packed.cost.calls} calls")
        checked += 1
    return Outcome(
        Status.PROVED,
        Scope.instance(checked),
        "query-side transport with quotient and log networks as layer MLP, and Lemma 3.1's program packed into H' = 2 heads",
        "r up to 3 numbers in [1/8, 5/8], M up to 4, 6 to 16 bits, kernel exp; N = 5 and 6",
        f"every error at most the bound (largest ratio {float(worst):.3f})",
        {"checked": checked, "largest ratio": str(worst.limit_denominator(10**6))},
    )


@part_of("R1")
def looked_up(tau: Sequence[int], width: int, bits: int) -> Oracle:
    """Lemma A.3 with a ReLU layer MLP: a sharpened head, then the rounding network; values are multiples of 2^-bits in [0, 1]; kernel exp2.

    The wrong rows' share `x/(1+x)`, x = (N-1) 2^-gap, must stay below half a step less half the network's gap of a quarter step: x <= 3/8 2^-bits is enough.
    """
    gap = _log2_above(max(Fraction(1), (len(tau) - 1) * Fraction(8, 3) * 2**bits))
    network = library.rounding(bits, Fraction(1, 2 ** (bits + 2)))
    return sharpened(tau, width, gap, lambda x: [y for wire in x for y in network.on_wires([wire])])


@part_of("R1")
def reordered(pi: Sequence[int], width: int, bits: int) -> Oracle:
    """A permutation of the tokens by a table: the input MLP turns a token's own number into `pi(number)` by a ReLU table, the head points there, and the layer
    MLP rounds. Tokens are (number, values). The machine's limit on an MLP's cost has to be waived once N is large.
    """
    N = len(pi)
    gap = 1
    while 2 * Fraction(2) ** -gap / (1 - Fraction(2) ** (-3 * gap)) > Fraction(3, 8) / 2**bits:
        gap += 1
    rounds = library.rounding(bits, Fraction(1, 2 ** (bits + 2)))
    at = library.lookup([Fraction(p) for p in pi])
    head = pointed(N, width, gap, lambda x: [y for wire in x for y in rounds.on_wires([wire])])
    ranges = tuple(
        (start, stop, TokenMap.trace(inner.inputs, lambda x, inner=inner: inner([*at.on_wires(x[:1]), *x[1:]])))  # type: ignore[misc]
        for start, stop, inner in head.input_map.ranges
    )
    return Oracle(PositionalMap(ranges), head.layers, head.mask)


@R1.check(
    "lemma-A.3",
    "exact",
    predicate="the sharpened head with the rounding network returns rho(x_tau) exactly; the ReLU table reorders tokens by a random permutation exactly",
    implies="lookups on a grid are exact with ReLU MLPs on these inputs; their price is the table (next check)",
    assumes=("FLINT",),
)
def lookups_with_networks() -> Outcome:
    """Random indexing functions, constants and the identity; random permutations."""
    cases = []
    for N, width, bits in ((2, 1, 0), (3, 2, 1), (5, 1, 3), (7, 2, 2)):
        random = Random(f"lookup {N}")
        for tau in ([random.randrange(N) for _ in range(N)], [0] * N, list(range(N))):
            values = [[Fraction(random.randint(0, 2**bits), 2**bits) for _ in range(N)] for _ in range(width)]
            cases.append((lookup(f"N = {N}, tau = {tau}", looked_up(tau, width, bits), width, tau), values))
        pi = list(range(N))
        random.shuffle(pi)
        values = [[Fraction(random.randint(0, 2**bits), 2**bits) for _ in range(N)] for _ in range(width)]
        oracle = reordered(pi, width, bits)
        numbers = [[Fraction(i) for i in range(N)], *values]
        cases.append((lookup(f"N = {N}, pi = {pi}", oracle, width, pi, pointer=True), numbers))
    return on_numbers(cases, object_="Lemma A.3 with ReLU MLPs beside the rows looked up", kernels=("exp2",))


@R1.check(
    "tables",
    "integers",
    predicate="log2(N!) <= P bits is violated by P = c d^2 parameters of 64 d bits, for c = 1, ..., 1024 and all N from N_1(c) on",
    implies="no architecture with c d^2 parameters of O(log N) bits holds all N! reorderings of Theorem C.1; a table of one layer takes N-1 units",
)
def tables_do_not_fit() -> Outcome:
    """`log2(N!) >= (N/2) log2(N/2)`, against `64 c d^3`; by the closed bound at every d up to 64, in full at small N."""
    for N in range(2, 200):
        whole = 2 ** (permutation_bits(N) + 1)
        if whole**2 < Fraction(N, 2) ** N:
            return _failed("factorial", f"N = {N}", "N! < (N/2)^(N/2)")
    rows = []
    for c in (1, 16, 1024):
        d = 4
        while 2 ** (d - 2) * (d - 2) <= 64 * c * d**3:
            d += 1
        if not all(2 ** (e - 2) * (e - 2) > 64 * c * e**3 for e in range(d, 200)):
            return _failed("tables", f"c = {c}", "the condition does not stay")
        rows.append([c, d, 2 ** (d - 1) + 1])
    for N in (2, 3, 8, 33, 100):
        pi = list(range(N))
        Random(f"table {N}").shuffle(pi)
        network = library.lookup([Fraction(p) for p in pi])
        least, most = least_table_parameters(N, 1, network.weight_bits, fixed=False), size.lookup_size(N, 0)
        if network.units > most.units or not least <= network.parameters <= most.parameters:
            return _failed("tables", f"N = {N}", f"{network.units} units, {network.parameters} parameters")
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "all reorderings of N tokens against c d^2 parameters of 64 d bits each, d = ceil(log2 N)",
        "every architecture that holds them all; c = 1, 16, 1024",
        "too many reorderings for "
        + ", ".join(f"N > 2^{d - 1} (c = {c})" for c, d, _ in rows)
        + ": log2(N!) > 64 c d^3; the table in one layer has at most N-1 units and 3(N-1) parameters",
        {"c": [c for c, _, _ in rows], "d": [d for _, d, _ in rows]},
        (
            table(
                "half of N numbers of at least log2(N/2) bits each are more than 64 c d^3 bits",
                ("c", "d", "N"),
                rows,
                ">",
                ["*", ["^", 2, ["-", "d", 2]], ["-", "d", 2]],
                ["*", 64, "c", ["^", "d", 3]],
            ),
        ),
    )


# ======================================================================================================================
# Trained networks
# ======================================================================================================================

TRAINED = "trained_networks.json"
"""Written by `python -m proofs.train_networks`."""


@cache
def trained() -> tuple[tuple[tuple[int, ...], Network], ...]:
    """(hidden widths, network) for r/(1-r) on [0, 15/16], as found by `verify.relu.training`."""
    data = json.loads(files("proofs").joinpath(TRAINED).read_text())
    return tuple((tuple(entry["widths"]), Network.from_json(entry["layers"])) for entry in data["networks"])


@R1.check(
    "trained",
    "ball",
    predicate="certified error of each stored network; at least the pieces, units and parameters that the lower bounds ask for at that error",
    implies="what a standard optimiser finds obeys the lower bounds; certified like any other network",
    assumes=("Arb", "FLINT"),
)
def trained_networks() -> Outcome:
    """The stored networks, exactly."""
    target, low, high = RANGES[0]
    found = []
    for widths, network in trained():
        certificate = certify(network, target, low, high)
        needed = least_pieces(target, low, high, certificate.upper)
        if network.widths != widths or not certificate.tight or not needed <= certificate.pieces <= most_pieces(widths):
            return _failed(
                "trained network", f"hidden layers {widths}", f"{certificate.pieces} pieces, {needed} needed"
            )
        found.append((widths, network, certificate, needed))
    rows = [[n, c.pieces, net.units, most_pieces(w)] for w, net, c, n in found]
    return Outcome(
        Status.PROVED,
        Scope.instance(len(found)),
        "networks found by Levenberg and Marquardt's method from seeded starts, rounded to 24 bits, for r/(1-r)",
        f"r in [{low}, {high}] (A from 0 to 15)",
        "; ".join(
            f"{'+'.join(map(str, w))} units: error {float(c.upper):.4f} in {c.pieces} pieces ({n} are the least)" for w, _, c, n in found
        ),
        {"widths": [list(w) for w, _, _, _ in found], "error": [f"{float(c.upper):.6f}" for _, _, c, _ in found]},
        (table("pieces needed <= pieces present <= pieces possible", ("needed", "pieces", "units", "most"), rows, "<=", ["max", "needed", ["-", "pieces", ["-", "most", "pieces"]]], "pieces"),),
    )  # fmt: skip


def _failed(object_: str, where: str, found: str) -> Outcome:
    return Outcome(Status.UNDECIDED, Scope.instance(), object_, where, found, {"where": where, "found": found})


# ======================================================================================================================
# Tables and figures
# ======================================================================================================================


def _threshold_rows() -> list[list[str]]:
    rows = []
    for d in (4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64):
        alone, together = reached_alone(d), reached_together(d)
        beyond = impossible_from(CONSTANT, d)
        verdict = "impossible" if 2**d >= beyond else "open" if 2**d > alone else "reached"
        rows.append([f"2^{d}", str(CONSTANT * d * d), str(together), str(alone), str(beyond), f"2^{d}", verdict])
    return rows


REGISTRY.tabulate(
    Table(
        "relu-threshold",
        "R1",
        f"Bits (-log2 of the error) with {CONSTANT} d^2 parameters, d = log2 N, for A < N: reached by construction for d columns and for A alone; excluded by Theorem 1 "
        "from the fifth column on; wanted for 2^-N.",
        ("N", "parameters", "d columns", "A alone", "excluded from", "wanted", "2^-N for A"),
        _threshold_rows,
    )
)


def _network_rows() -> list[list[str]]:
    rows = []
    for made in built():
        found, s = made.certificate, made.predicted
        rows.append(
            [made.name, *map(str, (s.depth, s.width, s.units, s.parameters, s.weight_bits)), f"{-log2(made.stated):.0f}", f"{-log2(found.upper):.2f}", str(found.pieces)]
        )  # fmt: skip
    return rows


REGISTRY.tabulate(
    Table(
        "relu-networks",
        "R1",
        "Networks with their sizes (by formula and as built), stated and certified error in bits, and the affine pieces (regions for the product) followed for the certificate.",
        ("network", "depth", "width", "units", "parameters", "weight bits", "stated", "certified", "pieces"),
        _network_rows,
    )
)


def _reordering_rows() -> list[list[str]]:
    rows = []
    for N in (4, 16, 64, 256, 1024):
        pi, d = list(range(N)), (N - 1).bit_length()
        Random(f"table {N}").shuffle(pi)
        network = library.lookup([Fraction(p) for p in pi])
        rows.append(
            [str(N), str(permutation_bits(N)), str(network.units), str(network.parameters), str(network.weight_bits), str(CONSTANT * d * d)]
        )  # fmt: skip
    return rows


REGISTRY.tabulate(
    Table(
        "relu-reordering",
        "R1",
        f"A random permutation of N tokens through a ReLU table in one layer, beside log2(N!) and the budget {CONSTANT} d^2.",
        ("N", "log2(N!)", "units", "parameters", "weight bits", f"{CONSTANT} d^2"),
        _reordering_rows,
    )
)


def _threshold_curves() -> dict[str, dict[str, list[tuple[float, float]]]]:
    ds = range(4, 65, 4)
    return {
        f"{CONSTANT} d^2 parameters": {
            "wanted: 2^-N": [(d, d) for d in ds],
            "excluded (Theorem 1)": [(d, log2(impossible_from(CONSTANT, d))) for d in ds],
            "reached, A alone": [(d, log2(reached_alone(d))) for d in ds],
            "reached, d columns": [(d, log2(reached_together(d))) for d in ds],
            "1/N^2": [(d, log2(2 * d)) for d in ds],
        }
    }


REGISTRY.draw(
    Figure(
        "relu-threshold",
        "R1",
        f"Accuracy of ReLU MLPs with {CONSTANT} d^2 parameters for the recovery of block sums: 2^-N leaves the excluded line behind near N = 2^15.",
        "log2 N",
        "log2 of the bits of accuracy",
        _threshold_curves,
    )
)


def _error_curves() -> dict[str, dict[str, list[tuple[float, float]]]]:
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for N, M, d in LEMMA_31[1:]:
        rows = [row for row in curve() if row[:3] == (N, M, d)]
        panels[f"N = {N}, M = {M}, d = {d}"] = {
            "error": [(row[4], -log2(row[6])) for row in rows],
            "Theorem 2": [(row[4], -log2(row[7])) for row in rows],
            "2^-N": [(row[4], float(N)) for row in rows],
        }
    return panels


REGISTRY.draw(
    Figure(
        "relu-error",
        "R1",
        "Lemma 3.1 end to end with ReLU MLPs: bits of accuracy (of the worst entry) against the parameters of the larger network.",
        "parameters",
        "bits",
        _error_curves,
    )
)
