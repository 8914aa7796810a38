"""Theorem C.2 (= Theorem 4.2), the converse: one call of a long head runs many short instances side by side.

**Statement.** K = N/M single-head instances of M tokens, each with its own matrices and with queries, keys and values
of 2-norm at most c, run in one call of a head that reads O(N) tokens, with embedding dimension O(d), besides O(N/M)
products of an M x d and a d x d matrix.

**As printed** (`printed`). Compute `X_t W_t^Q, X_t W_t^K, X_t W_t^V` outside: 3N/M products. Take distinct `u_t in
{0,-B}^r` with exactly r/2 zeros and `v_t = B 1 + u_t`, append `u_t` to the queries and `v_t` to the keys of instance t.
If S_t is the set of coordinates where u_t is -B, then

    <u_t, v_s> = -B^2 |S_t \\ S_s|,   so <u_t, v_t> = 0, and for s != t:   -(r/2) B^2 <= <u_t, v_s> <= -B^2.

*The error* (our derivation; it holds for every size, every N, M, d, r and B, and for any code whose own product exceeds
the others by at least G). Fix a row of instance t. Let A be the weight of its own tokens, R that of all others, T the
others' weighted sum of values, y the row of the instance's own output. The call returns `y' = (A y + T)/(A + R)` (the
identity `leak-formula`), so

    ||y' - y|| = ||T - R y|| / (A + R) <= 2c R/(A + R) = 2c x/(1+x),      x = R/A,

because ||v_j - y|| <= 2c for every value v_j (y is an average of values). Own scores are at least -c^2 and the others
at most c^2 - G, hence

    x <= (N - M) E(c^2 - G) / (M E(-c^2)) = (N/M - 1) E(2c^2 - G),     ||y' - y|| <= 2c (N/M - 1) E(2c^2 - G).

With G = B^2 this proves the printed bound `N c E(2c^2 - B^2)(1 + E(c^2))/M`, since 2(N/M - 1) <= (N/M)(1 + E(c^2)). It
is in the 2-norm, so it holds in the maximum norm too. Where all scores, values and code products sit at their limits
(`worst_tokens`), the error *equals* `2c x/(1+x)`.

*What fails.*

* **N5.** The printed lower bound `N E(-c^2-B^2)` on the weight of other instances is false: there are N-M other tokens,
  not N, and a pair of complementary sets reaches -(r/2) B^2. The true bound is `(N-M) E(-c^2 - (r/2) B^2)`. The error
  bound above needs no lower bound.
* **N18.** "Simulates" asks for a relative error in every row. Every weight is positive, so T is not 0 in general and R
  is never 0 (for N > M): no B makes the call exact, and a row whose true output is 0 while T is not is missed for every
  B (smallest: N = 2, M = 1, values 0 and 1; by cancellation: N = 4, M = 2, values 1 and -1 with equal weights).
* **N27.** The code takes r >= log2(N/M) columns on each side (binomial(r, r/2) <= 2^r sets), so embedding O(d) needs d
  = Omega(log(N/M)), which the assumption d = O(log N) does not give. (r <= 2 ceil(log2(N/M)) columns are enough,
  because binomial(2k, k) = prod_(i=1)^k (k+i)/i >= 2^k.)

**Repairs.**

* `quadratic`: query code `(2 G t, -G)`, key code `(s, s^2)`: the product is `G t^2 - G (t-s)^2`, and `G t^2` is common
  to the row and cancels. Two columns on each side for every N/M, so the embedding is O(d) for every d; the same error
  bound, and the leak does not grow with N/M.
* `inside`: the products in the input map, which may depend on the position: no arithmetic outside.
* `separate`: exact. No code; instance t has value columns `[v, 1]` of its own, the layer MLP divides, and row i reads
  the block of its own instance (rows and columns are picked outside, which is arranging). Embedding O(d N/M): exactness
  is paid for in width.

How large must B be? The target 2^-N takes `G = B^2` of about N ln 2 + 2c^2 + ln(2c(N/M-1)): B has about (1/2) log2 N
bits and the scores about log2(r N), in line with the paper's B <= poly(N). `smallest_gap` computes the least integer
B^2 exactly; one less misses the target on `worst_tokens`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from math import comb, isqrt
from random import Random
from typing import Any

from flint import arb, fmpq

from proofs.registry import REGISTRY
from verify.arithmetic.ball import deciding, working_precision
from verify.arithmetic.interface import Arithmetic, Column, Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.claims.functions import (
    Function,
    Kernel,
    Numbers,
    exact_entries,
    for_every_input,
    on_numbers,
    program_of,
    square_error_balls,
    square_errors,
    within,
    written,
)
from verify.claims.table import Table
from verify.claims.verdict import Outcome, Scope, Status
from verify.errors import PrecisionNeeded
from verify.oracle.machine import OUTSIDE_ARITHMETIC, Machine, Stored
from verify.oracle.oracle import Oracle
from verify.oracle.program import Outside, Program
from verify.transformer.attention import NO_MASK, Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire

C2 = REGISTRY.add(
    Claim(
        "C.2",
        "Many short instances in one long call",
        "N/M single-head instances of length M run in one call of a head of length O(N) with embedding dimension O(d), besides O(N/M) "
        "products of M x d by d x d matrices, within an error of 2^-N.",
        "Theorem 4.2 = Theorem C.2, Section 4 and Appendix C",
        aliases=("4.2",),
    )
)
N5 = REGISTRY.add(
    Claim(
        "N5",
        "Weight of other instances",
        "C.2: the lower bound N exp(-c^2-B^2) on the weight of other instances is false (N-M tokens, and a pair can reach -(r/2)B^2); the final "
        "error bound survives.",
        "Theorem C.2, proof",
        kind="finding",
    )
)
N18 = REGISTRY.add(
    Claim(
        "N18",
        "Absolute against relative error",
        "Simulation asks for a relative error in every row, C.2 bounds an absolute one: a row whose true output is 0 is missed by any leak at all.",
        "Theorem C.2 and the definition of simulation",
        kind="finding",
    )
)
N27 = REGISTRY.add(
    Claim(
        "N27",
        "Columns of the code",
        "C.2: the code takes at least log2(N/M) columns, so embedding O(d) needs d = Omega(log(N/M)); a quadratic code takes two for any N/M.",
        "Theorem C.2, proof",
        kind="finding",
    )
)


@dataclass(frozen=True)
class Instances:
    """K independent single-head instances of M tokens; instance t has `heads[t]` and the rows tM, ..., (t+1)M - 1 of X.

    `kinds` are those of a token's d columns. All heads have the same shape.
    """

    M: int
    heads: tuple[Head, ...]
    kinds: tuple[Kind, ...]

    @property
    def K(self) -> int:
        """How many instances."""
        return len(self.heads)

    @property
    def N(self) -> int:
        """All tokens."""
        return self.K * self.M

    @property
    def d(self) -> int:
        """Columns of a token."""
        return len(self.kinds)

    def direct(self, arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        """Every instance by itself, one below the other."""
        parts = [
            head.attend(arithmetic, [column[t * self.M : (t + 1) * self.M] for column in X], NO_MASK)
            for t, head in enumerate(self.heads)
        ]
        return [arithmetic.concatenate(columns) for columns in zip(*parts, strict=True)]


@dataclass(frozen=True)
class Code:
    """What is appended: `queries[t]` to the queries and `keys[t]` to the keys of instance t."""

    queries: tuple[tuple[Fraction, ...], ...]
    keys: tuple[tuple[Fraction, ...], ...]

    @property
    def columns(self) -> int:
        """Columns on each side, r."""
        return len(self.queries[0])

    def product(self, t: int, s: int) -> Fraction:
        """`<u_t, v_s>`."""
        return sum((a * b for a, b in zip(self.queries[t], self.keys[s], strict=True)), Fraction(0))

    def separation(self, t: int, s: int) -> Fraction:
        """By how much instance t's own product exceeds the one with instance s."""
        return self.product(t, t) - self.product(t, s)


# ======================================================================================================================
# Codes
# ======================================================================================================================


def fewest_columns(K: int) -> int:
    """The least even r with binomial(r, r/2) >= K."""
    r = 0
    while comb(r, r // 2) < K:
        r += 2
    return r


@part_of("C.2")
def printed_code(K: int, B: Fraction, r: int | None = None) -> Code:
    """The printed code for the first K sets of r/2 of r coordinates (in lexicographic order; r the fewest columns by
    default).
    """
    r = fewest_columns(K) if r is None else r
    return set_code(list(islice(combinations(range(r), r // 2), K)), r, B, B)


def set_code(sets: Sequence[Sequence[int]], r: int, left: Fraction, right: Fraction) -> Code:
    """`u_t` is -left on the set S_t and 0 elsewhere, `v_t` is 0 on S_t and right elsewhere (printed: left = right = B).

    Only the product left * right matters, so `left = 1, right = B^2` serves a B^2 that is not a square.
    """
    return Code(
        tuple(tuple(-left * int(p in S) for p in range(r)) for S in sets),
        tuple(tuple(right * int(p not in S) for p in range(r)) for S in sets),
    )


@part_of("C.2")
def quadratic_code(K: int, gap: Fraction) -> Code:
    """`u_t = (2 G t, -G)`, `v_s = (s, s^2)`: two columns for every K, separation `G (t-s)^2`."""
    return Code(tuple((2 * gap * t, -gap) for t in range(K)), tuple((Fraction(s), Fraction(s * s)) for s in range(K)))


# ======================================================================================================================
# Constructions
# ======================================================================================================================


@part_of("C.2")
def packed(instances: Instances, code: Code, *, inside: bool = False) -> Program:
    """One call of a head of length N: `[q | u]`, `[k | v]`, values as they are.

    The products X_t W_t are made outside, as printed (the theorem allows them, the machine names them as a waived
    rule), or in
    the input map (`inside`), which depends on the position.
    """
    M, m = instances.M, instances.heads[0].W_Q.width
    machine = Machine(instances.N, instances.d, waive=() if inside else (OUTSIDE_ARITHMETIC,))
    X = machine.input("X", instances.N, instances.kinds)
    tokens = X if inside else machine.stack(*_products(machine, X, instances))
    ranges = []
    for t in range(instances.K):
        products = projections(instances, t) if inside else TokenMap.identity(tokens.kinds)
        ranges.append((t * M, (t + 1) * M, _with_code(products, code, t, m)))
    input_map = PositionalMap(tuple(ranges))
    width, values, side = len(input_map.kinds), instances.heads[0].width, m + code.columns
    head = Head(
        RationalMatrix.blocks(width, side, [(0, 0, RationalMatrix.identity(side))]),
        RationalMatrix.blocks(width, side, [(side, 0, RationalMatrix.identity(side))]),
        RationalMatrix.blocks(width, values, [(2 * side, 0, RationalMatrix.identity(values))]),
    )
    oracle = Oracle(input_map, (Layer((head,), TokenMap.identity([Kind.VALUE] * values)),))
    return machine.program(machine.call(oracle, tokens, role="all instances"))


@part_of("C.2")
def separate(instances: Instances) -> Program:
    """The exact construction: instance t's values stand in columns of their own, beside a column that adds up its weights.

    Row i returns, for every instance s, the attention of query i over the keys of s; the rows and columns of its own
    instance are picked outside. No code, no arithmetic outside; embedding `2m + K (m'+1)`. The layer MLP makes `K m'`
    divisions, which is O(d^2) only for K = O(d): the machine is given the width of the embedding.
    """
    M, K, m, values = instances.M, instances.K, instances.heads[0].W_Q.width, instances.heads[0].width
    machine = Machine(instances.N, max(instances.d, K * values))
    X = machine.input("X", instances.N, instances.kinds)

    def place(t: int) -> TokenMap:
        products = projections(instances, t)

        def row(x: list[Wire]) -> list[Wire | int]:
            y = products(x)
            before, after = [0] * (t * (values + 1)), [0] * ((K - 1 - t) * (values + 1))
            return [*y[: 2 * m], *before, *y[2 * m :], 1, *after]

        return TokenMap.trace(instances.kinds, row)

    columns = K * (values + 1)
    width = 2 * m + columns
    head = Head(
        RationalMatrix.blocks(width, m, [(0, 0, RationalMatrix.identity(m))]),
        RationalMatrix.blocks(width, m, [(m, 0, RationalMatrix.identity(m))]),
        RationalMatrix.blocks(width, columns, [(2 * m, 0, RationalMatrix.identity(columns))]),
    )

    def divide(x: list[Wire]) -> Sequence[Wire]:
        blocks = [x[s * (values + 1) : (s + 1) * (values + 1)] for s in range(K)]
        return [average / block[values] for block in blocks for average in block[:values]]

    input_map = PositionalMap(tuple((t * M, (t + 1) * M, place(t)) for t in range(K)))
    oracle = Oracle(input_map, (Layer((head,), TokenMap.trace([Kind.VALUE] * columns, divide)),))
    answers = machine.call(oracle, X, role="all instances")
    own = [machine.columns(machine.rows(answers, t * M, (t + 1) * M), t * values, (t + 1) * values) for t in range(K)]
    return machine.program(machine.stack(*own))


def projections(instances: Instances, t: int) -> TokenMap:
    """`x -> (x W_t^Q, x W_t^K, x W_t^V)`: three products of an M x d and a d x m matrix, when applied to the M tokens
    of an instance.
    """
    head = instances.heads[t]
    return TokenMap.trace(
        instances.kinds,
        lambda x: [_row_times(x, column) for W in (head.W_Q, head.W_K, head.W_V) for column in W.columns],
    )


PRODUCTS = 3
"""Products of M x d and d x m matrices in `projections`."""


def _row_times(x: Sequence[Wire], column: Sequence[tuple[int, Fraction]]) -> Wire | int:
    total: Wire | int = 0
    for position, (i, factor) in enumerate(column):
        total = x[i] * factor if position == 0 else total + x[i] * factor
    return total


def _products(machine: Machine, X: Stored, instances: Instances) -> Iterator[Stored]:
    for t in range(instances.K):
        block = machine.rows(X, t * instances.M, (t + 1) * instances.M)
        yield machine.outside(projections(instances, t), block, detail="the products X_t W_t that the theorem allows")


def _with_code(products: TokenMap, code: Code, t: int, m: int) -> TokenMap:
    def row(x: list[Wire]) -> list[Wire | Fraction]:
        y = products(x)
        return [*y[:m], *code.queries[t], *y[m : 2 * m], *code.keys[t], *y[2 * m :]]

    return TokenMap.trace(products.inputs, row)


# --- costs: each formula is written here and nowhere else ------------------------------------------------------------------


def embedding(m: int, values: int, columns: int) -> int:
    """`[q | u | k | v | values]`."""
    return 2 * (m + columns) + values


def embedding_separate(m: int, values: int, K: int) -> int:
    """`[q | k | (values + 1) columns for each instance]`."""
    return 2 * m + K * (values + 1)


# ======================================================================================================================
# Error bounds
# ======================================================================================================================

Weight = Callable[[Fraction], Any]
"""The kernel E on rationals: into the rationals (exp2, integers only) or into balls (exp)."""


def power_of_two(s: Fraction) -> Fraction:
    """E for kernel exp2. Raises ValueError where s is not an integer."""
    if s.denominator != 1:
        raise ValueError(f"2^({s}) is not rational")
    return Fraction(2) ** s.numerator


def exponential(s: Fraction) -> arb:
    """E for kernel exp, as a ball at the working precision."""
    return arb(fmpq(s.numerator, s.denominator)).exp()


def _exact_ball(x: Fraction | int) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def relative_leak(K: int, c2: Fraction, gap: Fraction, E: Weight) -> Any:
    """`(N/M - 1) E(2c^2 - G)`, the bound on x = R/A; c2 is c^2."""
    return E(2 * c2 - gap) * (K - 1)


def square_bound(c2: Fraction, x: Any, number: Callable[[Fraction], Any] = Fraction) -> Any:
    """`(2c x/(1+x))^2`, the bound on the squared error of a row."""
    return number(4 * c2) * x * x / ((1 + x) * (1 + x))


def printed_square_bound(
    N: int, M: int, c2: Fraction, gap: Fraction, E: Weight, number: Callable[[Fraction], Any]
) -> Any:
    """The square of the printed bound `N c E(2c^2 - B^2)(1 + E(c^2))/M`, with gap = B^2."""
    factor = E(2 * c2 - gap) * (1 + E(c2)) * number(Fraction(N, M))
    return number(c2) * factor * factor


def norm_bound(instances: Instances, X: Numbers) -> Fraction:
    """c^2: the largest squared 2-norm of a query, key or value, by plain rational arithmetic."""
    largest = Fraction(0)
    for i, row in enumerate(zip(*X, strict=True)):
        head = instances.heads[i // instances.M]
        for W in (head.W_Q, head.W_K, head.W_V):
            vector = [sum((row[k] * f for k, f in column), Fraction(0)) for column in W.columns]
            largest = max(largest, sum((v * v for v in vector), Fraction(0)))
    return largest


# --- how large B must be -----------------------------------------------------------------------------------------------------


def distances(code: Callable[[int], Code], K: int) -> list[Counter[int]]:
    """For each instance t, how many instances s have which separation, for the code of gap 1."""
    unit = code(K)
    return [Counter(int(unit.separation(t, s)) for s in range(K) if s != t) for t in range(K)]


def least(holds: Callable[[int], bool]) -> int:
    """The least integer g >= 0 with holds(g), for a condition that stays true once it is."""
    high = 1
    while not holds(high):
        high *= 2
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def smallest_gap(table: Sequence[Counter[int]], c: Fraction, target: int, kernel: Kernel) -> int:
    """The least integer G = B^2 >= 0 for which every input of norm bound c has an absolute error of at most 2^-target.

    `max_t 2c x_t/(1+x_t) <= 2^-target` with `x_t = E(2c^2) sum_s E(-G distance(t, s))`: sufficient by the derivation in
    the
    module's description, necessary because `worst_tokens` attain it. Kernel exp2 needs an integer 2c^2.
    """
    rows = list({tuple(sorted(row.items())): row for row in table}.values())
    return least(lambda gap: all(_meets(row, c, target, gap, kernel) for row in rows))


def _meets(row: Counter[int], c: Fraction, target: int, gap: int, kernel: Kernel) -> bool:
    if not row or not c:
        return True
    epsilon = Fraction(1, 2**target)
    if kernel == "exp2":
        x = sum((n * power_of_two(2 * c * c - gap * away) for away, n in row.items()), Fraction(0))
        return x * (2 * c - epsilon) <= epsilon

    def question(bits: int) -> bool:
        with working_precision(bits):
            x = sum((n * exponential(2 * c * c - gap * away) for away, n in row.items()), arb(0))
            left, right = x * _exact_ball(2 * c - epsilon), _exact_ball(epsilon)
            if left <= right:
                return True
            if left > right:
                return False
            raise PrecisionNeeded("the error is not separated from the target")

    return bool(deciding(question, 2 * target + 64))


def enough_gap(N: int, M: int, c: Fraction) -> int:
    """`G = N + ceil(2c^2) + max(0, ceil(log2(2c N/M)))`: enough for an absolute error of 2^-N, for every size and both kernels.

    With y = G - 2c^2 >= N + max(0, log2(2c N/M)) >= 0 and E(-y) <= 2^-y, the bound `2c (N/M-1) E(2c^2-G)` is at most
    `2c (N/M) 2^-y <= 2^-N`. So B = sqrt(G) is at most a polynomial in N whenever c is.
    """
    factor, bits = 2 * c * Fraction(N, M), 0
    while 2**bits < factor:
        bits += 1
    return N - (-2 * c * c).__floor__() + bits


def sufficient_gap(K: int, c: Fraction, target: int, *, printed: bool) -> int:
    """The least integer G >= 0 at which the simple bound `2c (N/M-1) E(2c^2-G)`, or the printed one, is at most
    2^-target; kernel exp.
    """

    def holds(gap: int) -> bool:
        def question(bits: int) -> bool:
            with working_precision(bits):
                leak = exponential(2 * c * c - gap)
                bound = (
                    leak * _exact_ball(c * K) * (1 + exponential(c * c))
                    if printed
                    else leak * _exact_ball(2 * c * (K - 1))
                )
                limit = _exact_ball(Fraction(1, 2**target))
                if bound <= limit:
                    return True
                if bound > limit:
                    return False
                raise PrecisionNeeded("the bound is not separated from the target")

        return bool(deciding(question, 2 * target + 64))

    return least(holds)


# ======================================================================================================================
# Instances
# ======================================================================================================================

TOKEN_HEAD = Head(*(RationalMatrix.from_entries(3, 1, {(c, 0): 1}) for c in range(3)))
"""Reads query, key and value off a token (q, k, v)."""


def token_instances(K: int, M: int, kinds: tuple[Kind, ...] = (Kind.NUMBER,) * 3) -> Instances:
    """K instances whose tokens are (q, k, v) themselves."""
    return Instances(M, (TOKEN_HEAD,) * K, kinds)


def worst_tokens(K: int, M: int, t: int, c: Fraction) -> Numbers:
    """Tokens (q, k, v) at their limits for the rows of instance t: own scores -c^2 and values c, others' scores c^2 and
    values -c.
    """
    own = [i // M == t for i in range(K * M)]
    return [[c] * (K * M), [-c if mine else c for mine in own], [c if mine else -c for mine in own]]


def sampled(K: int, M: int, d: int, seed: int) -> tuple[Instances, Numbers]:
    """Instances with integer matrices of their own and small integer tokens; some heads and tokens are zero."""
    random = Random(f"C.2 {K} {M} {d} {seed}")

    def matrix() -> RationalMatrix:
        return RationalMatrix.of([[random.randint(-1, 1) for _ in range(d)] for _ in range(d)])

    heads = tuple(Head(matrix(), matrix(), matrix()) for _ in range(K))
    X = [[Fraction(random.randint(-1, 1)) for _ in range(K * M)] for _ in range(d)]
    return Instances(M, heads, (Kind.NUMBER,) * d), X


def against_direct(instances: Instances, program: Program, name: str) -> Function:
    """A program beside every instance by itself."""
    return Function(
        f"N = {instances.N}, M = {instances.M}, {name}",
        instances.N,
        instances.kinds,
        (Kind.VALUE,) * instances.heads[0].width,
        program_of(program),
        instances.direct,
        ((0, 1),) if Kind.SCORE in instances.kinds else (),
    )


# ======================================================================================================================
# Claims
# ======================================================================================================================

CODES: dict[str, Callable[[int, Fraction], Code]] = {
    "printed": lambda K, B: printed_code(K, B),
    "quadratic": lambda K, B: quadratic_code(K, B * B),
}
"""The codes by construction name, for K instances and a number B."""

SIZES = [(1, 1), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2), (5, 1), (7, 2)]
"""(K, M) at which runs are compared."""

UNIVERSAL_SIZES = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1)]
"""(K, M) at which identities are checked for every input."""

GENERAL = (Kind.SCORE, Kind.SCORE, Kind.VALUE)
"""Tokens in general position."""


def _leak_function(K: int, M: int, code: Code, *, inside: bool) -> Function:
    """The call beside `(A y + T)/(A + R)`, written out by column operations."""
    instances = token_instances(K, M, GENERAL)
    N = instances.N

    def formula(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        above = below = arithmetic.numbers([Fraction(0)] * N)
        for j in range(N):
            k_j, v_j = (arithmetic.concatenate([column[j : j + 1]] * N) for column in X[1:])
            products = arithmetic.numbers([code.product(i // M, j // M) for i in range(N)])
            weight = arithmetic.exp(arithmetic.add(arithmetic.multiply(X[0], k_j), products))
            above = arithmetic.add(above, arithmetic.multiply(weight, v_j))
            below = arithmetic.add(below, weight)
        return [arithmetic.divide(above, below)]

    program = packed(instances, code, inside=inside)
    return Function(f"N = {N}, M = {M}", N, GENERAL, (Kind.VALUE,), program_of(program), formula, ((0, 1),))


def _describe(sizes: Sequence[tuple[int, int]]) -> str:
    return "(N/M, M) in " + ", ".join(map(str, sizes))


def _register(name: str, code: Callable[[int, Fraction], Code]) -> None:
    @C2.check(
        name,
        "symbolic",
        name=f"leak-formula-{name}",
        predicate="output = sum_j E(<q_i,k_j> + <u_t,v_s>) v_j / sum_j E(<q_i,k_j> + <u_t,v_s>) as rational functions; own product above the others by B^2",
        implies="the call returns (A y + T)/(A + R), the starting point of the error bound, for every input of these sizes",
        assumes=("FLINT",),
    )
    def leak_formula() -> Outcome:
        for K in range(1, 20):
            for B in (Fraction(1), Fraction(3, 2), Fraction(7)):
                made = code(K, B)
                if any(made.separation(t, s) < B * B for t in range(K) for s in range(K) if s != t):
                    return _fault("the code", {"K": K}, "separation below B^2")
        functions = [
            _leak_function(K, M, code(K, B), inside=inside)
            for K, M in UNIVERSAL_SIZES
            for B in (Fraction(1), Fraction(2))
            for inside in (False, True)
        ]
        return for_every_input(functions, object_=f"the call with the {name} code", sizes=_describe(UNIVERSAL_SIZES))

    @C2.check(
        name,
        "exact",
        name=f"absolute-error-{name}",
        predicate="||output_i - direct_i|| <= 2c x/(1+x) <= 2c (N/M-1) E(2c^2-B^2) <= N c E(2c^2-B^2)(1+E(c^2))/M in every row; the first is met by worst_tokens",
        implies="the printed absolute error bound is proved for every size by the derivation in the module's description, in the 2-norm and in the maximum norm",
        assumes=("FLINT",),
    )
    def absolute_error() -> Outcome:
        return _absolute_errors(name, code)

    @C2.check(
        name,
        "ball",
        name=f"absolute-error-exp-{name}",
        predicate="||output_i - direct_i|| <= 2c (N/M-1) e^(2c^2-B^2) <= N c e^(2c^2-B^2)(1+e^(c^2))/M in every row, by enclosures",
        implies="the bounds hold with kernel exp on these inputs",
        assumes=("Arb",),
    )
    def absolute_error_exp() -> Outcome:
        return _absolute_error_balls(name, code)

    @C2.check(
        name,
        "exact",
        name=f"relative-error-{name}",
        predicate="||output_i - direct_i|| <= 2^-N ||direct_i|| in every row, for B^2 large enough",
        implies="the call simulates the instances in the paper's sense",
        assumes=("FLINT",),
        expects=Status.REFUTED,
    )
    def relative_error() -> Outcome:
        """The smallest N = KM with a row that no B up to 32 brings within the relative target."""
        for K, M in ((1, 1), (2, 1)):
            X = _zero_row(K, M)
            instances = token_instances(K, M)
            errors = [
                square_errors(against_direct(instances, packed(instances, code(K, Fraction(B))), name), X)[0]
                for B in (1, 2, 4, 8, 16, 32)
            ]
            if all(errors):
                return Outcome(
                    Status.REFUTED,
                    Scope.instance(),
                    f"the call with the {name} code",
                    f"N = {K * M}, M = {M}, tokens (q, k, v) = (0, 0, 0) and (0, 0, 1), B = 1, 2, 4, 8, 16, 32, kernel exp2",
                    "row 0 is 0 and the output is not: no B meets a relative target (finding N18)",
                    {"N": K * M, "M": M, "X": written(X), "squared error at B = 1": str(errors[0])},
                )
        return Outcome(Status.PROVED, Scope.instance(), "the call", "N <= 2", "every row within the target")

    @C2.check(
        name,
        "symbolic",
        name=f"exact-{name}",
        predicate="output = direct evaluation as rational functions",
        implies="the call is exact",
        assumes=("FLINT",),
        expects=Status.REFUTED,
    )
    def exact() -> Outcome:
        """One instance (nothing to separate) is exact; the smallest with two is not."""
        functions = []
        for K, M in ((1, 1), (1, 2), (2, 1)):
            instances = token_instances(K, M, GENERAL)
            functions.append(against_direct(instances, packed(instances, code(K, Fraction(1))), name))
        return for_every_input(functions, object_=f"the call with the {name} code", sizes="N <= 2")

    @C2.check(
        name,
        "integers",
        name=f"cost-{name}",
        predicate="one call of N rows, embedding 2(m+r)+m', 3 N/M products outside and nothing else (none with the products in the input map)",
        implies="the cost of the converse, counted by the machine",
    )
    def cost() -> Outcome:
        return _costs(name, code)

    @C2.check(
        name,
        "exact",
        name=f"smallest-gap-{name}",
        predicate="at the least integer B^2 that meets 2^-N, worst_tokens of every instance stay within 2^-N; at B^2 - 1 one of them does not",
        implies="the B^2 of the table is the smallest for these N, M and c",
        assumes=("FLINT",),
    )
    def smallest() -> Outcome:
        return _smallest_gaps(name)

    @C2.check(
        name,
        "ball",
        name=f"enough-{name}",
        predicate="B^2 = N + ceil(2c^2) + max(0, ceil(log2(2c N/M))) meets 2^-N, and the least B^2 is not above it",
        implies="B <= poly(N) suffices for the target for every size, as the paper says: about (1/2) log2 N bits when c is constant",
        assumes=("Arb",),
    )
    def enough() -> Outcome:
        return _enough_gaps(name)


def _zero_row(K: int, M: int) -> Numbers:
    """All queries and keys 0; values 0 in the first instance and 1 in the others."""
    N = K * M
    return [[Fraction(0)] * N, [Fraction(0)] * N, [Fraction(int(i >= M)) for i in range(N)]]


def _runs(
    name: str, code: Callable[[int, Fraction], Code]
) -> Iterator[tuple[Function, Numbers, Instances, Fraction, Fraction]]:
    """(program beside direct, X, instances, c^2, B^2): sampled instances, and limits c = 0, 1, 2."""
    for K, M in SIZES:
        for d, B in ((1, 1), (2, 2), (3, 4)):
            instances, X = sampled(K, M, d, B)
            program = packed(instances, code(K, Fraction(B)))
            yield against_direct(instances, program, name), X, instances, norm_bound(instances, X), Fraction(B * B)
        for c in (Fraction(0), Fraction(1), Fraction(2)):
            instances, X = token_instances(K, M), worst_tokens(K, M, K - 1, c)
            program = packed(instances, code(K, Fraction(3)))
            yield against_direct(instances, program, name), X, instances, c * c, Fraction(9)


def _absolute_errors(name: str, code: Callable[[int, Fraction], Code]) -> Outcome:
    """Kernel exp2, exactly; `worst_tokens` are compared for equality with the leak of their code."""
    rows = attained = 0
    for function, X, instances, c2, gap in _runs(name, code):
        x = relative_leak(instances.K, c2, gap, power_of_two)
        bound = square_bound(c2, x)
        simple = 4 * c2 * x * x
        printed = printed_square_bound(instances.N, instances.M, c2, gap, power_of_two, Fraction)
        if not bound <= simple <= printed:
            return _fault("the bounds", {"N": instances.N, "M": instances.M}, f"{bound} <= {simple} <= {printed} fails")
        for i, error in enumerate(square_errors(function, X)):
            rows += 1
            if error > bound:
                return _fault(function.name, {"row": i}, f"squared error {error} above {bound}", X)
    for K, M in SIZES:
        for t in range(K):
            for c in (Fraction(1), Fraction(2)):
                made, instances = code(K, Fraction(2)), token_instances(K, M)
                x = sum((power_of_two(2 * c * c - made.separation(t, s)) for s in range(K) if s != t), Fraction(0))
                function = against_direct(instances, packed(instances, made), name)
                errors = square_errors(function, worst_tokens(K, M, t, c))[t * M : (t + 1) * M]
                if set(errors) != {square_bound(c * c, x)}:
                    return _fault(function.name, {"t": t}, f"squared errors {errors}, not {square_bound(c * c, x)}")
                attained += int(x > 0)
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "the derivation in the module's description, confirmed by exact runs",
        f"{rows} rows of sampled and limiting inputs, {_describe(SIZES)}, kernel exp2",
        f"no row above the bound; {attained} limiting inputs have exactly the error 2c x/(1+x)",
        {"rows": rows, "attained": attained},
    )


def _absolute_error_balls(name: str, code: Callable[[int, Fraction], Code]) -> Outcome:
    rows = 0
    for function, X, instances, c2, gap in _runs(name, code):
        if instances.K == 1 or not c2:
            continue  # nothing leaks: exactly 0 on both sides
        bits = 256
        with working_precision(bits):
            x = relative_leak(instances.K, c2, gap, exponential)
            simple = _exact_ball(4 * c2) * x * x
            printed = printed_square_bound(instances.N, instances.M, c2, gap, exponential, _exact_ball)
            if not simple <= printed:
                return _fault("the bounds", {"N": instances.N, "M": instances.M}, "not in order")
            for i, error in enumerate(square_error_balls(function, X, bits)):
                rows += 1
                if not error <= simple:
                    return _fault(function.name, {"row": i}, f"squared error {error.str(10)} above {simple.str(10)}", X)
    return Outcome(
        Status.PROVED,
        Scope.instance(rows),
        f"the call with the {name} code, on balls",
        f"{rows} rows, {_describe(SIZES)}, kernel exp",
        "every row within both bounds",
        {"rows": rows},
    )


def _costs(name: str, code: Callable[[int, Fraction], Code]) -> Outcome:
    checked = 0
    for K in (1, 2, 3, 5, 6, 7, 16, 21):
        for M, d in ((1, 1), (2, 3), (4, 2)):
            instances, _ = sampled(K, M, d, 0)
            made = code(K, Fraction(1))
            for inside in (False, True):
                program = packed(instances, made, inside=inside)
                outside = sum(isinstance(step, Outside) for step in program.instructions)
                rules = {broken.rule for broken in program.broken_rules}
                found = (
                    program.cost.calls,
                    program.cost.rounds,
                    program.cost.longest_input,
                    program.cost.embedding,
                    outside * PRODUCTS,
                    rules <= (set() if inside else {OUTSIDE_ARITHMETIC}),
                )
                expected = (1, 1, K * M, embedding(d, d, made.columns), 0 if inside else 3 * K, True)
                checked += 1
                if found != expected:
                    return _fault(
                        f"the call with the {name} code", {"K": K, "M": M, "d": d}, f"{found}, not {expected}"
                    )
    return Outcome(
        Status.PROVED,
        Scope.sizes("N/M in 1, 2, 3, 5, 6, 7, 16, 21; (M, d) in (1, 1), (2, 3), (4, 2)"),
        f"the call with the {name} code",
        "sizes on a grid",
        f"one call; 3 N/M products outside, or none, at all {checked} sizes",
        {"sizes": checked},
    )


def unit_code(name: str) -> Callable[[int], Code]:
    """The code of gap 1 by construction name."""
    return lambda K: CODES[name](K, Fraction(1))


def gap_code(name: str, K: int, gap: int) -> Code:
    """The code of an integer gap B^2, square or not."""
    if name == "quadratic":
        return quadratic_code(K, Fraction(gap))
    r = fewest_columns(K)
    return set_code(list(islice(combinations(range(r), r // 2), K)), r, Fraction(1), Fraction(gap))


def _smallest_gaps(name: str) -> Outcome:
    checked = failing = 0
    for K, M in ((1, 2), (2, 1), (2, 4), (3, 1), (4, 2), (6, 1), (7, 1)):
        table, instances = distances(unit_code(name), K), token_instances(K, M)
        for c in (Fraction(0), Fraction(1), Fraction(2)):
            gap = smallest_gap(table, c, K * M, "exp2")
            limit = Fraction(1, 4 ** (K * M))
            for g in (gap, gap - 1):
                if g < 0:
                    continue
                function = against_direct(instances, packed(instances, gap_code(name, K, g)), name)
                misses = any(
                    error > limit for t in range(K) for error in square_errors(function, worst_tokens(K, M, t, c))
                )
                checked += 1
                failing += int(misses)
                if misses is not (g < gap):
                    return _fault(function.name, {"B^2": g}, f"misses the target: {misses}; smallest B^2 {gap}")
    return Outcome(
        Status.PROVED,
        Scope.sizes(
            "(N/M, M) in (1, 2), (2, 1), (2, 4), (3, 1), (4, 2), (6, 1), (7, 1); c = 0, 1, 2; every input of norm bound c"
        ),
        f"the call with the {name} code on limiting inputs",
        f"{checked} runs, kernel exp2",
        f"within 2^-N at the smallest B^2, and outside at B^2 - 1 in {failing} of {failing} cases",
        {"runs": checked, "failing one below": failing},
    )


def _enough_gaps(name: str) -> Outcome:
    """For every size by the inequality in `enough_gap`; confirmed against the least gaps of both kernels."""
    checked = 0
    for N, M in ((1, 1), (2, 1), (6, 3), (12, 1), (30, 5), (64, 8), (256, 64)):
        table = distances(unit_code(name), N // M)
        for c in (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(20)):
            enough = enough_gap(N, M, c)
            kernels: tuple[Kernel, ...] = ("exp2", "exp") if (2 * c * c).denominator == 1 else ("exp",)
            for kernel in kernels:
                least_gap = smallest_gap(table, c, N, kernel)
                checked += 1
                if least_gap > enough:
                    return _fault(f"the {name} code", {"N": N, "M": M}, f"least B^2 {least_gap} above {enough}")
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "the inequality in `enough_gap`, confirmed against the least B^2",
        "N up to 256, c = 0, 1/2, 1, 3, 20, kernels exp2 and exp",
        f"enough in all {checked} cases",
        {"checked": checked},
    )


def _fault(object_: str, size: dict[str, int], detail: str, X: Numbers | None = None) -> Outcome:
    text = ", ".join(f"{name} = {value}" for name, value in size.items())
    evidence: dict[str, Any] = {**size} if X is None else {**size, "X": written(X)}
    return Outcome(Status.REFUTED, Scope.instance(), object_, text, detail, evidence)


for _name, _code in CODES.items():
    _register(_name, _code)


# --- the exact construction ------------------------------------------------------------------------------------------------


def _separate_function(K: int, M: int) -> Function:
    instances = token_instances(K, M, GENERAL)
    return against_direct(instances, separate(instances), "separate columns")


@C2.check(
    "separate",
    "symbolic",
    predicate="output = direct evaluation of every instance, as rational functions of all weights and values",
    implies="with N/M (m'+1) value columns the call is exact, for every input of these sizes",
    assumes=("FLINT",),
    name="identity-separate",
)
def separate_identity() -> Outcome:
    """All weights, those between instances included, are indeterminates; the latter cancel."""
    return for_every_input(
        (_separate_function(K, M) for K, M in UNIVERSAL_SIZES),
        object_="the call with separate value columns",
        sizes=_describe(UNIVERSAL_SIZES),
    )


def _separate_cases() -> list[tuple[Function, Numbers]]:
    cases = []
    for K, M in SIZES:
        for d in (1, 3):
            instances, X = sampled(K, M, d, 5)
            cases.append((against_direct(instances, separate(instances), f"d = {d}"), X))
        instances = token_instances(K, M)
        for X in (_zero_row(K, M), worst_tokens(K, M, 0, Fraction(20))):
            cases.append((against_direct(instances, separate(instances), "limits"), X))
    return cases


@C2.check(
    "separate",
    "exact",
    predicate="output = direct evaluation, entry by entry",
    implies="exact on these instances under both kernels, rows of zeros included",
    assumes=("FLINT", "Lindemann"),
    name="instances-separate",
)
def separate_instances() -> Outcome:
    """Sampled instances, rows of zeros (N18) and scores of +-400."""
    return on_numbers(_separate_cases(), object_="the call with separate value columns")


@C2.check(
    "separate",
    "ball",
    predicate="the output lies within 2^-100 of the direct evaluation",
    implies="the run at working precision returns every instance's output",
    assumes=("Arb",),
    name="enclosures-separate",
)
def separate_enclosures() -> Outcome:
    """The same inputs, by balls."""
    return within(_separate_cases(), 100, object_="the call with separate value columns")


@C2.check(
    "separate",
    "integers",
    predicate="one call of N rows, no arithmetic outside, no rule broken, embedding 2m + (N/M)(m'+1)",
    implies="the price of exactness: embedding O(d N/M) instead of O(d)",
    name="cost-separate",
)
def separate_cost() -> Outcome:
    """Counted on a grid."""
    for K, M, d in ((K, M, d) for K in (1, 2, 3, 6, 9) for M in (1, 3) for d in (1, 2)):
        program = separate(sampled(K, M, d, 0)[0])
        cost = program.cost
        found = (cost.calls, cost.longest_input, cost.embedding, cost.operations, program.broken_rules)
        if found != (1, K * M, embedding_separate(d, d, K), ("division",), ()):
            return _fault("the call with separate value columns", {"K": K, "M": M, "d": d}, str(found))
    return Outcome(
        Status.PROVED,
        Scope.sizes("N/M in 1, 2, 3, 6, 9; M in 1, 3; d in 1, 2"),
        "the call with separate value columns (on a machine whose MLPs are as wide as the embedding)",
        "sizes on a grid",
        "one call, division the only operation beyond affine maps",
        {"sizes": 20},
    )


# --- findings --------------------------------------------------------------------------------------------------------------


def other_weight(instances: Instances, code: Code, t: int, c: Fraction) -> Fraction:
    """The weight R of other instances' tokens for row tM, read off a run: own keys 0 and values 0, others' keys -c and
    values 1, queries c.

    The output is R/(M + R), since the row's own tokens weigh E(0) = 1 each.
    """
    M, N = instances.M, instances.N
    own = [i // M == t for i in range(N)]
    X = [[c] * N, [Fraction(0) if mine else -c for mine in own], [Fraction(int(not mine)) for mine in own]]
    output = exact_entries(program_of(packed(instances, code)), X)[0][t * M]
    return M * output / (1 - output)


@dataclass(frozen=True)
class TooLight:
    """A place where other instances weigh less than a stated lower bound."""

    N: int
    M: int
    r: int
    sets: tuple[tuple[int, ...], ...]
    weight: Fraction
    bound: Fraction


def lightest(tokens: Callable[[int, int], int], columns: Callable[[int], Sequence[int]]) -> TooLight | None:
    """The first N, M, r and code for which the weight of others is below `tokens(N, M) E(-c^2-B^2)`, with c = B = 1,
    kernel exp2.
    """
    for N in range(2, 5):
        for M in (M for M in range(1, N) if N % M == 0):
            for r in columns(N // M):
                for sets in combinations(combinations(range(r), r // 2), N // M):
                    code = set_code(sets, r, Fraction(1), Fraction(1))
                    weight = other_weight(token_instances(N // M, M), code, 0, Fraction(1))
                    bound = tokens(N, M) * Fraction(1, 4)
                    if weight < bound:
                        return TooLight(N, M, r, sets, weight, bound)
    return None


def fewest_only(K: int) -> Sequence[int]:
    """Only the fewest columns."""
    return (fewest_columns(K),)


@N5.check(
    "printed",
    "exact",
    predicate="some input has less weight on other instances than N E(-c^2-B^2), and than (N-M) E(-c^2-B^2) once r >= 4",
    implies="the lower bound of the proof is false in both readings",
    assumes=("FLINT", "text of the paper"),
    name="lower-bound",
)
def lower_bound_is_false() -> Outcome:
    """As printed (N tokens), with N-M tokens and any r, and with N-M tokens and the fewest columns: the smallest of
    each.

    As printed it fails at every N > M: with all scores -c^2 and all products <= -B^2 the weight is at most (N-M)
    E(-c^2-B^2).
    """
    found = {
        "N tokens": lightest(lambda N, M: N, fewest_only),
        "N-M tokens, r = 4": lightest(lambda N, M: N - M, lambda K: (4,)),
        "N-M tokens, fewest columns": lightest(lambda N, M: N - M, fewest_only),
    }
    evidence = {
        reading: {
            "N": f.N,
            "M": f.M,
            "r": f.r,
            "sets": [list(S) for S in f.sets],
            "weight": str(f.weight),
            "bound": str(f.bound),
        }
        for reading, f in found.items()
        if f is not None
    }
    proved = len(evidence) == len(found)
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        Scope.instance(3),
        "the weight of other instances, read off runs of the printed construction",
        "c = B = 1, all scores with other instances -c^2, kernel exp2",
        "; ".join(
            f"{reading}: N = {e['N']}, M = {e['M']}, r = {e['r']}: {e['weight']} < {e['bound']}"
            for reading, e in evidence.items()
        ),
        evidence,
    )


@N5.check(
    "printed",
    "exact",
    predicate="the weight of other instances is at least (N-M) E(-c^2-(r/2)B^2) and at most (N-M) E(c^2-B^2), for every code",
    implies="the corrected bounds hold; the error bound uses the upper one only",
    assumes=("FLINT",),
    name="corrected",
)
def corrected_bounds() -> Outcome:
    """For every size: a product is -B^2 |S_t minus S_s| with 1 <= |S_t minus S_s| <= r/2 for distinct sets of r/2
    coordinates. Run for all codes with r <= 4.
    """
    runs = attained = 0
    for r in (2, 4):
        supports = list(combinations(range(r), r // 2))
        for K in range(2, len(supports) + 1):
            for sets in combinations(supports, K):
                code = set_code(sets, r, Fraction(1), Fraction(1))
                for c in (Fraction(0), Fraction(1)):
                    instances = token_instances(K, 2)
                    weight = other_weight(instances, code, 0, c)
                    low, high = (
                        (instances.N - 2) * power_of_two(-c * c - r // 2),
                        (instances.N - 2) * power_of_two(c * c - 1),
                    )
                    runs += 1
                    attained += int(weight == low)
                    if not low <= weight <= high:
                        return _fault(
                            "the weight of other instances", {"r": r, "K": K}, f"{weight} not in [{low}, {high}]"
                        )
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "the products of the code, confirmed by runs of the printed construction",
        f"{runs} runs: every code with r = 2 and r = 4, M = 2, kernel exp2",
        f"all within the corrected bounds, the lower one attained {attained} times",
        {"runs": runs, "attained": attained},
    )


def _cancelling() -> Numbers:
    """N = 4, M = 2: equal weights, values 1 and -1 in the first instance, 1 and 1 in the second."""
    zeros = [Fraction(0)] * 4
    return [zeros, zeros, [Fraction(v) for v in (1, -1, 1, 1)]]


@N18.check(
    "printed",
    "exact",
    predicate="the true row is 0, the output is (N-M) E(-B^2)/(M + (N-M) E(-B^2)) > 0 for every B tried",
    implies="no B meets a relative target: for every B the output is a quotient of positive sums",
    assumes=("FLINT",),
    name="zero-row",
)
def zero_row_is_missed() -> Outcome:
    """For every B: all weights are positive and the others' values are 1, so the output is positive. Run for B = 1,
    ..., 12, both codes.
    """
    for K, M, X in ((2, 1, _zero_row(2, 1)), (2, 2, _cancelling())):
        instances = token_instances(K, M)
        for name, code in CODES.items():
            for B in range(1, 13):
                function = against_direct(instances, packed(instances, code(K, Fraction(B))), name)
                x = Fraction(1, 2 ** (B * B))
                errors = square_errors(function, X)[:M]
                zero = {entry for column in exact_entries(instances.direct, X) for entry in column[:M]} == {Fraction(0)}
                if set(errors) != {(x / (1 + x)) ** 2} or not zero:
                    return _fault(function.name, {"B": B}, f"squared errors {errors}", X)
    return Outcome(
        Status.PROVED,
        Scope("every B and every code: all weights are positive; run for B = 1, ..., 12"),
        "rows 0 to M-1 of the call",
        "N = 2, M = 1, values 0 and 1 (the smallest); N = 4, M = 2, values 1, -1 and 1, 1, equal weights; kernel exp2",
        "true output 0, output 1/(2^(B^2) + 1): the relative error is infinite",
        {
            "smallest": {"N": 2, "M": 1, "X": written(_zero_row(2, 1))},
            "by cancellation": {"N": 4, "M": 2, "X": written(_cancelling())},
        },
    )


@N18.check(
    "separate",
    "exact",
    predicate="with separate value columns the same rows are exactly 0",
    implies="an exact construction is not missed by rows of zeros",
    assumes=("FLINT", "Lindemann"),
    name="zero-row-separate",
)
def zero_row_is_met() -> Outcome:
    """The instances of N18 in the exact construction."""
    cases = []
    for K, M, X in ((2, 1, _zero_row(2, 1)), (2, 2, _cancelling())):
        instances = token_instances(K, M)
        cases.append((against_direct(instances, separate(instances), "separate"), X))
    return on_numbers(cases, object_="the call with separate value columns")


@N27.check(
    "printed",
    "integers",
    predicate="log2 K <= r <= 2 ceil(log2 K) for the least even r with binomial(r, r/2) >= K, and the embedding exceeds 2 log2(N/M)",
    implies="r = Theta(log(N/M)), whatever d is: with d fixed the embedding is not O(d)",
    assumes=("text of the paper",),
    name="columns",
)
def code_columns() -> Outcome:
    """For every K, by the inequalities 2^(r/2) <= binomial(r, r/2) <= 2^r; checked for K up to 5000 and counted by the
    machine for d = 1.
    """
    for K in range(1, 5001):
        r = fewest_columns(K)
        log2 = (K - 1).bit_length()
        if not (2**r >= K and r <= 2 * log2 and comb(r, r // 2) >= K and (r == 0 or comb(r - 2, (r - 2) // 2) < K)):
            return _fault("the code", {"K": K, "r": r}, "r outside its bounds")
    grown = []
    for K in (2, 16, 128, 1024):
        instances = Instances(1, (Head(*(RationalMatrix.identity(1),) * 3),) * K, (Kind.NUMBER,))
        grown.append([K, packed(instances, printed_code(K, Fraction(1)), inside=True).cost.embedding])
    growing = all(b > 2 * (K - 1).bit_length() for K, b in grown)
    return Outcome(
        Status.PROVED if growing else Status.REFUTED,
        Scope.every_size(),
        "the fewest columns of the printed code, and the embedding at d = 1",
        "K = 1, ..., 5000; embedding counted at K = 2, 16, 128, 1024",
        "embedding at d = 1: " + ", ".join(f"{b} for N/M = {K}" for K, b in grown),
        {"embedding at d = 1": grown},
    )


@N27.check(
    "quadratic",
    "integers",
    predicate="the quadratic code has two columns and separation at least B^2 for every N/M; embedding 3d + 4",
    implies="the embedding is O(d) for every d",
    name="two-columns",
)
def quadratic_columns() -> Outcome:
    """For every K: the separation is G (t-s)^2. Counted for K up to 1024."""
    for K in (1, 2, 16, 128, 1024):
        code = quadratic_code(K, Fraction(1))
        instances = Instances(1, (Head(*(RationalMatrix.identity(1),) * 3),) * K, (Kind.NUMBER,))
        found = packed(instances, code, inside=True).cost.embedding
        apart = all(code.separation(t, s) == (t - s) ** 2 for t in range(0, K, 1 + K // 40) for s in range(K))
        if code.columns != 2 or found != 3 + 4 or not apart:
            return _fault("the quadratic code", {"K": K}, f"{code.columns} columns, embedding {found}")
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "the quadratic code",
        "K = 1, 2, 16, 128, 1024, d = 1",
        "two columns on each side, embedding 7 at d = 1, for every N/M",
        {"embedding": 7},
    )


# --- tables ------------------------------------------------------------------------------------------------------------------


def largest_score_bits(code: Code, c: Fraction, gap: int) -> int:
    """Bits of the integer part of the largest score: c^2 plus the largest |<u, v>| of the code of gap 1 times the
    gap.
    """
    K = len(code.queries)
    largest = max(abs(code.product(t, s)) for t in range(K) for s in range(K))
    size = c * c + largest * gap
    return (size.numerator // size.denominator).bit_length()


def _bit_rows() -> list[list[str]]:
    rows = []
    for N, M in ((16, 8), (64, 8), (256, 16), (1024, 32)):
        for c in (Fraction(1), Fraction(2)):
            K = N // M
            printed, quadratic = (smallest_gap(distances(unit_code(name), K), c, N, "exp") for name in CODES)
            B = isqrt(printed - 1) + 1 if printed else 0
            rows.append(
                [
                    str(N),
                    str(M),
                    str(c),
                    str(fewest_columns(K)),
                    str(sufficient_gap(K, c, N, printed=True)),
                    str(sufficient_gap(K, c, N, printed=False)),
                    str(printed),
                    str(quadratic),
                    str(B.bit_length()),
                    str(largest_score_bits(unit_code("printed")(K), c, printed)),
                ]
            )
    return rows


REGISTRY.tabulate(
    Table(
        "converse-bits",
        "C.2",
        "Least integer B^2 for an absolute error of 2^-N with kernel exp: by the printed bound, by ours, and exactly for both codes; bits of the least integer B "
        "and of the integer part of the largest score, printed code (sets in lexicographic order)",
        (
            "N",
            "M",
            "c",
            "r",
            "printed bound",
            "our bound",
            "printed code",
            "quadratic code",
            "bits of B",
            "bits of a score",
        ),
        _bit_rows,
    )
)
