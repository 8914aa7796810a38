"""Lemma A.3: a lookup table. Row i outputs `rho(x_tau)`, where `tau = tau(x_i, i)` is an indexing function.

**Statement** (the paper takes it from Sanford, Hsu and Telgarsky 2024, Lemma D.1). For all `tau: R^d x [N] -> [N]` and
token-wise `rho` there is a single-layer single-head transformer whose row i outputs `rho(x_tau(x_i, i))`.

*What fails* (N12). A softmax gives every row a positive weight. With scores s_ij, row i outputs

    sum_j p_j rho(x_j),   p_j = E(s_ij) / sum_l E(s_il) > 0,

so with rho(x_tau) = 0 and one other rho(x_j) = 1 the output is at least p_j > 0 instead of 0, for every finite choice
of scores: the average is never exactly the looked-up value, and "lookup" needs a bound. (Smallest: N = 2, values 0 and
1.)

Three ways to make the lemma precise (rho acts on every token in the input map, before the average; x_j below stands for
rho(x_j)):

1. **Exact, where it can be.** A row's own vector (`tau(x_i, i) = i`) comes back exactly by query-side transport, M >=
   r+1 (`own_row`, claim T.1). A tau that depends on positions only is a rearrangement of rows between two calls, where
   the model allows it (`gathered`).
2. **Sharpened head**, score gap g: every wrong row scores at least g less than the right one. Let `x = sum_(j != tau)
   E(s_ij - s_i,tau)`, so that x <= (N-1) E(-g). The wrong rows together have the weight `x/(1+x)`, hence in every
   column

       |output - rho(x_tau)| <= spread x/(1+x) <= spread (N-1) E(-g) / (1 + (N-1) E(-g)) <= spread (N-1) E(-g)

   with spread = max_j |rho(x_j) - rho(x_tau)|; the middle step is monotonicity of x/(1+x). For every N and every tau.
   One-hot scores (`sharpened`: g on the right row, 0 elsewhere) attain the middle term when all wrong values are equal,
   so the simple bound is met up to the factor 1 + (N-1) E(-g). One-hot keys take N columns; quadratic scores `-g (p -
   tau)^2` (`pointed`) take two, for any N, and the pointer may be data. They leak `x = sum_(p != tau) E(-g (p-tau)^2)
   <= 2 E(-g) / (1 - E(-3g))`, independent of N (since k^2 >= 1 + 3(k-1) for k >= 1).
3. **Exact on a grid.** If all rho(x_j) are multiples of h and spread <= S = k h, rounding to the grid recovers
   rho(x_tau) whenever the error is below h/2: `S x/(1+x) < h/2`, that is, `x (2k - 1) < 1`. With x = (N-1) E(-g): the
   least sufficient gap is the least g >= 0 with

       E(g) > (N-1)(2k-1)      (`smallest_gap`)

   and at any smaller gap the instance "all wrong values rho(x_tau) + S" has an error of at least h/2 upwards and rounds
   to another point.

N12 is about the average as the looked-up value. We make no claim about maps that decode several averages together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from proofs.registry import REGISTRY
from proofs.transport import one_hot, plain_transport
from verify.arithmetic.ball import deciding, working_precision
from verify.arithmetic.interface import Arithmetic, Column, Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.claims.functions import (
    Function,
    Kernel,
    Numbers,
    for_every_input,
    on_numbers,
    program_of,
    square_error_balls,
    square_errors,
    written,
)
from verify.claims.table import Table
from verify.claims.verdict import Outcome, Scope, Status
from verify.errors import PrecisionNeeded, RuleBroken
from verify.oracle.machine import ROW_GATHER, Machine
from verify.oracle.oracle import Oracle
from verify.oracle.program import Program
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire

A3 = REGISTRY.add(
    Claim(
        "A.3",
        "Lookup table",
        "For every indexing function tau and token-wise map rho there is a single-layer single-head transformer whose row i outputs "
        "rho(x_tau(x_i, i)).",
        "Lemma A.3, Appendix A (Sanford, Hsu, Telgarsky 2024, Lemma D.1)",
    )
)
N12 = REGISTRY.add(
    Claim(
        "N12",
        "A softmax lookup is not exact",
        "Lemma A.3 is not exact for a softmax: every weight is positive. With a score gap g the error is at most (N-1) E(-g) times the "
        "spread of the values; on a grid, rounding recovers the value exactly.",
        "Lemma A.3, Appendix A",
        kind="finding",
    )
)

# ======================================================================================================================
# 1. Exact, where it can be
# ======================================================================================================================


@part_of("A.3")
def own_row(r: int, M: int) -> Program:
    """`tau(x_i, i) = i`: every row gets its own r values back, by query-side transport. Raises RequestError when M <
    r+1."""
    machine = Machine(M, r)
    X = machine.input("X", M, (Kind.VALUE,) * r)
    return machine.program(machine.call(plain_transport(r, M, as_scores=False), X, role="lookup"))


@part_of("A.3")
def gathered(tau: Sequence[int], r: int, M: int, *, declared: bool = True) -> Program:
    """`tau(i)` a function of the position: the rows are rearranged outside, then pass through calls of M rows (N =
    len(tau)).

    Any number N of rows and any M with r + 1 <= M. The last call is padded with rows that are dropped again. Raises
    RuleBroken
    on a machine whose row gather is not declared, RequestError when M < r+1.
    """
    machine = Machine(M, r, declared_gather=declared)
    X = machine.input("X", len(tau), (Kind.VALUE,) * r)
    padded = [*tau, *[tau[0]] * (-len(tau) % M)]
    looked_up = machine.gather(X, padded)
    oracle = plain_transport(r, M, as_scores=False)
    answers = [
        machine.call(oracle, machine.rows(looked_up, at, at + M), role="lookup") for at in range(0, len(padded), M)
    ]
    return machine.program(machine.rows(machine.stack(*answers), 0, len(tau)))


# ======================================================================================================================
# 2. Sharpened head
# ======================================================================================================================


@part_of("A.3")
def sharpened(tau: Sequence[int], width: int, gap: int, then: Callable[[list[Wire]], Sequence[Wire]]) -> Oracle:
    """One-hot scores: position j has the key e_j, position i the query g e_tau(i). Tokens are `width` values; embedding
    N + N + width.

    `then` is the layer MLP, after the average.
    """
    N = len(tau)
    kinds = [Kind.VALUE] * width

    def place(i: int) -> TokenMap:
        query = [gap * bit for bit in one_hot(tau[i], N)]
        return TokenMap.trace(kinds, lambda x: [*query, *one_hot(i, N), *x])

    embedding, identity = 2 * N + width, RationalMatrix.identity(N)
    head = Head(
        RationalMatrix.blocks(embedding, N, [(0, 0, identity)]),
        RationalMatrix.blocks(embedding, N, [(N, 0, identity)]),
        RationalMatrix.blocks(embedding, width, [(2 * N, 0, RationalMatrix.identity(width))]),
    )
    return Oracle(
        PositionalMap(tuple((i, i + 1, place(i)) for i in range(N))), (Layer((head,), TokenMap.trace(kinds, then)),)
    )


@part_of("A.3")
def pointed(N: int, width: int, gap: int, then: Callable[[list[Wire]], Sequence[Wire]]) -> Oracle:
    """Quadratic scores: a token is `(t, values)` with its pointer t = tau(x) in {0, ..., N-1} as data.

    The query `(2 g t, -g)` and the key `(p, p^2)` of position p give the score `2 g t p - g p^2 = g t^2 - g (p-t)^2`,
    where `g t^2` is the
    same for the whole row and cancels. Embedding 4 + width.
    """
    kinds = [Kind.NUMBER] + [Kind.VALUE] * width

    def place(p: int) -> TokenMap:
        return TokenMap.trace(kinds, lambda x: [x[0] * (2 * gap), -gap, p, p * p, *x[1:]])

    embedding, pair = 4 + width, RationalMatrix.identity(2)
    head = Head(
        RationalMatrix.blocks(embedding, 2, [(0, 0, pair)]),
        RationalMatrix.blocks(embedding, 2, [(2, 0, pair)]),
        RationalMatrix.blocks(embedding, width, [(4, 0, RationalMatrix.identity(width))]),
    )
    mlp = TokenMap.trace([Kind.VALUE] * width, then)
    return Oracle(PositionalMap(tuple((p, p + 1, place(p)) for p in range(N))), (Layer((head,), mlp),))


def wrong_weight(N: int, gap: int) -> Fraction:
    """`x = (N-1) E(-g)` for kernel exp2: an upper bound on the wrong rows' weight relative to the right row's."""
    return (N - 1) * Fraction(2) ** -gap


def wrong_weight_quadratic(N: int, tau: int, gap: int) -> Fraction:
    """`x = sum_(p != tau) E(-g (p-tau)^2)` for kernel exp2, exactly."""
    return sum((Fraction(2) ** (-gap * (p - tau) ** 2) for p in range(N) if p != tau), Fraction(0))


def error_bound(spread: Fraction, x: Fraction) -> Fraction:
    """`spread x/(1+x)`: the largest error of a lookup whose wrong rows weigh x together (the right one weighs 1)."""
    return spread * x / (1 + x)


# ======================================================================================================================
# 3. Exact on a grid
# ======================================================================================================================


def smallest_gap(N: int, k: int, kernel: Kernel) -> int:
    """The least integer g >= 0 with `E(g) > (N-1)(2k-1)`: the smallest gap at which rounding to a grid of step h
    recovers every lookup
    among N values within k h of the right one (k >= 1), with one-hot scores.

    Kernel exp2 in integers. Kernel exp by enclosures; they always decide, because e^g is irrational for g >= 1.
    """
    needed = (N - 1) * (2 * k - 1)
    if kernel == "exp2":
        return needed.bit_length() if needed else 0
    if needed < 1:
        return 0
    return int(deciding(lambda bits: _least_above(needed, bits), 64))


def _least_above(needed: int, bits: int) -> int:
    with working_precision(bits):
        above = (arb(needed).log().floor() + 1).unique_fmpz()
        if needed == 1:
            return 1
        if above is None:
            raise PrecisionNeeded("log of the needed weight is too close to an integer")
        return int(above)


def smallest_gap_quadratic(N: int, k: int) -> int:
    """The least g >= 0 with `x (2k-1) < 1` for the largest x over all pointers, quadratic scores, kernel exp2."""
    gap = 0
    while max(wrong_weight_quadratic(N, t, gap) for t in range(N)) * (2 * k - 1) >= 1:
        gap += 1
    return gap


def sufficient_gap_quadratic(k: int) -> int:
    """The least g >= 1 with `2 E(-g) (2k-1) < 1 - E(-3g)`, kernel exp2: enough for every N, by the closed bound on
    x."""
    gap = 1
    while 2 * Fraction(2) ** -gap * (2 * k - 1) >= 1 - Fraction(2) ** (-3 * gap):
        gap += 1
    return gap


def rounded(bits: int) -> Callable[[list[Wire]], Sequence[Wire]]:
    """The layer MLP that rounds to multiples of h = 2^-bits."""
    return lambda x: [wire.round(bits) for wire in x]


def identity(x: list[Wire]) -> Sequence[Wire]:
    """No layer MLP."""
    return x


# ======================================================================================================================
# Claims
# ======================================================================================================================


def lookup(name: str, oracle: Oracle, width: int, tau: Sequence[int], *, pointer: bool = False) -> Function:
    """An oracle beside the rows `x_tau(i)`, taken apart and put together without attention."""
    N = len(tau)
    machine = Machine(N, max(width + 1, N))
    kinds = ((Kind.NUMBER,) if pointer else ()) + (Kind.VALUE,) * width
    program = machine.program(machine.call(oracle, machine.input("X", N, kinds), role="lookup"))
    return Function(name, N, kinds, (Kind.VALUE,) * width, program_of(program), rows_of(tau, int(pointer)))


def rows_of(tau: Sequence[int], skip: int) -> Callable[[Arithmetic, list[Column]], list[Column]]:
    return lambda arithmetic, X: [arithmetic.concatenate([column[j : j + 1] for j in tau]) for column in X[skip:]]


EXACT_SIZES = [(1, 2, 2), (1, 3, 5), (2, 3, 3), (2, 4, 7), (3, 5, 4)]
"""(r, M, N) of exact lookups by transport (where N = M) and by gather."""


def _table(N: int) -> list[int]:
    """A tau that is neither injective nor monotone once N >= 3."""
    return [(i * i + 2 * N - 1) % N for i in range(N)]


def _own(r: int, M: int) -> Function:
    kinds = (Kind.VALUE,) * r
    return Function(f"r = {r}, M = {M}", M, kinds, kinds, program_of(own_row(r, M)), lambda _, X: X)


def _gathered(r: int, M: int, N: int) -> Function:
    kinds, tau = (Kind.VALUE,) * r, _table(N)
    program = gathered(tau, r, M)
    return Function(f"r = {r}, M = {M}, N = {N}", N, kinds, kinds, program_of(program), rows_of(tau, 0))


def _positive(N: int, width: int) -> Numbers:
    return [[Fraction(1 + (3 * i + 5 * c) % 7, 1 + (i + c) % 3) for i in range(N)] for c in range(width)]


def _register_exact(name: str, build: Callable[[int, int, int], Function]) -> None:
    def functions() -> list[Function]:
        return [build(r, M, N) for r, M, N in EXACT_SIZES]

    @A3.check(
        name,
        "symbolic",
        predicate="row i of the output = x_tau(i), as rational functions of all values",
        implies="this lookup is exact for every input of these sizes",
        assumes=("FLINT",),
        name=f"identity-{name}",
    )
    def identity_() -> Outcome:
        sizes = "; ".join(f.name for f in functions())
        return for_every_input(functions(), object_=f"lookup by {name}, run on indeterminate values", sizes=sizes)

    @A3.check(
        name,
        "exact",
        predicate="row i of the output = x_tau(i), entry by entry",
        implies="this lookup is exact on these inputs under both kernels",
        assumes=("FLINT", "Lindemann"),
        name=f"instances-{name}",
    )
    def instances() -> Outcome:
        cases = [(f, _positive(f.rows, len(f.kinds))) for f in functions()]
        return on_numbers(cases, object_=f"lookup by {name}, run on positive rationals")


_register_exact("transport", lambda r, M, N: _own(r, M))
_register_exact("gather", lambda r, M, N: _gathered(r, M, N))


@A3.check(
    "gather",
    "integers",
    predicate="the machine refuses the row gather where it is not declared, and ceil(N/M) calls of M rows do it where it is",
    implies="a tau of positions alone costs a declared rearrangement and ceil(N/M) calls in one round",
    name="cost-gather",
)
def gather_costs() -> Outcome:
    """Refusal and counts."""
    for r, M, N in EXACT_SIZES:
        program = gathered(_table(N), r, M)
        found = (program.cost.calls, program.cost.rounds, program.cost.longest_input, program.broken_rules)
        try:
            gathered(_table(N), r, M, declared=False)
            refused = ""
        except RuleBroken as error:
            refused = error.rule
        if found != (-(-N // M), 1, M, ()) or refused != ROW_GATHER:
            return Outcome(
                Status.REFUTED,
                Scope.instance(),
                "lookup by gather",
                f"r = {r}, M = {M}, N = {N}",
                f"calls, rounds, longest input and broken rules {found}; refused: {refused or 'no'}",
                {"r": r, "M": M, "N": N},
            )
    return Outcome(
        Status.PROVED,
        Scope.sizes(f"(r, M, N) in {', '.join(map(str, EXACT_SIZES))}"),
        "lookup by gather",
        "N divisible by M or not",
        "ceil(N/M) calls in one round; refused without a declaration",
        {"sizes": len(EXACT_SIZES)},
    )


# --- the sharpened head --------------------------------------------------------------------------------------------------

GAPS = (0, 1, 2, 5, 17, 64, 300)
"""Score gaps of the checked instances."""

LOOKUP_SIZES = ((2, 1), (3, 1), (3, 2), (5, 1), (8, 2))
"""(N, width) of the checked instances."""


def _lookups(N: int, width: int, gap: int) -> Sequence[tuple[Function, Numbers, list[Fraction], str]]:
    """Instances with, for each row, the bound on the relative weight of wrong rows: one-hot and quadratic, ordinary and
    worst case."""
    tau = _table(N)
    ordinary = [[Fraction((7 * i + 3 * c) % 11 - 5, 1 + c) for i in range(N)] for c in range(width)]
    worst = [[Fraction(int(i != tau[0])) for i in range(N)] for _ in range(width)]
    pointers = [Fraction(t) for t in tau]
    one = [wrong_weight(N, gap)] * N
    two = [wrong_weight_quadratic(N, t, gap) for t in tau]
    found = []
    for label, values in (("ordinary", ordinary), ("worst", worst)):
        name = f"N = {N}, width {width}, gap {gap}, {label} values"
        flat = lookup(f"one-hot scores, {name}", sharpened(tau, width, gap, identity), width, tau)
        square = lookup(f"quadratic scores, {name}", pointed(N, width, gap, identity), width, tau, pointer=True)
        found.append((flat, values, one, label))
        found.append((square, [pointers, *values], two, label))
    return found


def _spread(values: Numbers, j: int) -> Fraction:
    """The square of the 2-norm of the spreads max_l |v_l - v_j| of the columns."""
    return sum((max(abs(v - column[j]) for v in column) ** 2 for column in values), Fraction(0))


@A3.check(
    "sharpened",
    "exact",
    predicate="||output_i - x_tau(i)|| <= ||spread|| x/(1+x) in every row, exactly; equality where all wrong values are equal",
    implies="the error bound (N-1) E(-g) spread holds and is met up to the factor 1 + (N-1) E(-g); the argument holds for every size",
    assumes=("FLINT",),
    name="error-bound",
)
def sharpened_bound() -> Outcome:
    """For every size: the derivation in the module's description. Confirmed by exact runs with kernel exp2, attained in
    the worst case."""
    runs, attained = 0, 0
    for N, width in LOOKUP_SIZES:
        tau = _table(N)
        for gap in GAPS:
            for function, numbers, weights, label in _lookups(N, width, gap):
                values = numbers[len(numbers) - width :]
                for i, error in enumerate(square_errors(function, numbers)):
                    bound = error_bound(Fraction(1), weights[i]) ** 2 * _spread(values, tau[i])
                    if error > bound or (label == "worst" and tau[i] == tau[0] and error != bound):
                        return _outside(function, numbers, i, error, bound)
                    attained += int(error == bound and error > 0)
                    runs += 1
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        "the derivation in the module's description, confirmed by exact runs",
        f"{runs} rows, (N, width) in {LOOKUP_SIZES}, gaps {GAPS}, one-hot and quadratic scores, kernel exp2",
        f"no row above the bound, {attained} rows exactly on it",
        {"rows": runs, "attained": attained, "gaps": list(GAPS)},
    )


def _outside(function: Function, numbers: Numbers, row: int, error: Any, bound: Any) -> Outcome:
    return Outcome(
        Status.REFUTED,
        Scope.instance(),
        "the sharpened head",
        function.name,
        f"row {row}: squared error {error}, squared bound {bound}",
        {"row": row, "X": written(numbers), "error": str(error), "bound": str(bound)},
    )


@A3.check(
    "sharpened",
    "ball",
    predicate="||output_i - x_tau(i)|| <= (N-1) e^-g ||spread|| in every row, by enclosures",
    implies="the simple bound holds with kernel exp on these inputs",
    assumes=("Arb",),
    name="error-bound-exp",
)
def sharpened_bound_exp() -> Outcome:
    """Kernel exp, with the strict simple bound (rows whose spread is 0 are met exactly up to the radius and left
    out)."""
    rows = 0
    for N, width in LOOKUP_SIZES:
        tau = _table(N)
        for gap in GAPS:
            for function, numbers, _, _ in _lookups(N, width, gap):
                values = numbers[len(numbers) - width :]
                bits = 4 * gap + 128
                with working_precision(bits):
                    for i, error in enumerate(square_error_balls(function, numbers, bits)):
                        spread = _spread(values, tau[i])
                        if not spread:
                            continue
                        simple = arb(N - 1) * arb(-gap).exp()
                        bound = simple * simple * arb(fmpq(spread.numerator, spread.denominator))
                        if not error <= bound:
                            return _outside(function, numbers, i, error, bound)
                        rows += 1
    return Outcome(
        Status.PROVED,
        Scope.instance(rows),
        "the sharpened head on balls",
        f"{rows} rows, (N, width) in {LOOKUP_SIZES}, gaps {GAPS}, kernel exp",
        "every row within the bound",
        {"rows": rows},
    )


@A3.check(
    "sharpened",
    "exact",
    predicate="output = x_tau(i) exactly",
    implies="as an exact statement the lemma fails for a softmax head (N12)",
    assumes=("FLINT", "Lindemann"),
    expects=Status.REFUTED,
    name="exact",
)
def sharpened_is_exact() -> Outcome:
    """The smallest N, then the smallest gap, at which the head is not exact."""
    for N in (1, 2):
        for gap in (0, 1, 8):
            tau = [0] * N
            function = lookup(f"N = {N}, gap {gap}", sharpened(tau, 1, gap, identity), 1, tau)
            outcome = on_numbers([(function, [[Fraction(i) for i in range(N)]])], object_="the sharpened head")
            if outcome.status is Status.REFUTED:
                return outcome
    return Outcome(Status.PROVED, Scope.sizes("N <= 2"), "the sharpened head", "N <= 2", "exact")


@N12.check(
    "sharpened",
    "symbolic",
    predicate="with values 0 at tau and 1 elsewhere, the output is (sum of the other weights)/(sum of all weights), for all weights",
    implies="for every score matrix, hence for every gap, the leak is strictly positive as soon as N >= 2",
    assumes=("FLINT",),
    name="positive-leak",
)
def leak_is_positive() -> Outcome:
    """The leak as a rational function of indeterminate weights: a quotient of sums of weights, which are positive.

    Positivity holds for every N >= 2; the identity is run at N = 2, ..., 5 for a head whose scores are indeterminate.
    """
    functions = []
    for N in range(2, 6):
        kinds = (Kind.SCORE, Kind.SCORE)
        head = Head(
            RationalMatrix.from_entries(3, 1, {(0, 0): 1}),
            RationalMatrix.from_entries(3, 1, {(1, 0): 1}),
            RationalMatrix.from_entries(3, 1, {(2, 0): 1}),
        )

        def token(value: int) -> TokenMap:
            return TokenMap.trace([Kind.SCORE, Kind.SCORE], lambda x: [*x, value])

        oracle = Oracle(
            PositionalMap(((0, 1, token(0)), (1, N, token(1)))), (Layer((head,), TokenMap.identity([Kind.VALUE])),)
        )
        machine = Machine(N, 3)
        program = machine.program(machine.call(oracle, machine.input("X", N, kinds), role="lookup"))
        functions.append(Function(f"N = {N}", N, kinds, (Kind.VALUE,), program_of(program), _leak, ((0, 1),)))
    outcome = for_every_input(functions, object_="a head with indeterminate scores", sizes="N = 2, ..., 5")
    if outcome.status is not Status.PROVED:
        return outcome
    return Outcome(
        Status.PROVED,
        Scope.every_size(),
        outcome.object,
        "row i looks up token 1 of value 0; all other values are 1; every score an indeterminate (run at N = 2, ..., 5)",
        "the error is a quotient of sums of positive weights: > 0 for every gap; smallest: N = 2, error E(-g)/(1 + E(-g))",
        {"smallest": {"N": 2, "values": ["0", "1"], "error": "E(-g)/(1+E(-g))"}, "sizes": [2, 3, 4, 5]},
    )


def _leak(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
    """`sum_(j > 0) E(q_i k_j) / sum_j E(q_i k_j)` by column operations."""
    N = len(X[0])
    weights = [
        arithmetic.exp(arithmetic.multiply(X[0], arithmetic.concatenate([X[1][j : j + 1]] * N))) for j in range(N)
    ]
    others = weights[1]
    for weight in weights[2:]:
        others = arithmetic.add(others, weight)
    return [arithmetic.divide(others, arithmetic.add(weights[0], others))]


@N12.check(
    "sharpened",
    "exact",
    predicate="at N = 2 with values 0 and 1 the error is E(-g)/(1 + E(-g)), for every gap tried",
    implies="no finite gap removes the leak at the smallest size",
    assumes=("FLINT",),
    name="smallest",
)
def smallest_leak() -> Outcome:
    """The formula for the smallest instance, exactly, over the gaps 0, ..., 64 and 1000."""
    for gap in (*range(65), 1000):
        tau = [0, 0]
        function = lookup(f"N = 2, gap {gap}", sharpened(tau, 1, gap, identity), 1, tau)
        numbers = [[Fraction(0), Fraction(1)]]
        x = Fraction(2) ** -gap
        if set(square_errors(function, numbers)) != {(x / (1 + x)) ** 2}:
            return _outside(function, numbers, 0, square_errors(function, numbers)[0], (x / (1 + x)) ** 2)
    return Outcome(
        Status.PROVED,
        Scope.instance(66),
        "the sharpened head at N = 2",
        "values 0 and 1, gaps 0, ..., 64 and 1000, kernel exp2",
        "the error is exactly 1/(2^g + 1)",
        {"gap 1": "1/3", "gap 64": str(Fraction(1, 2**64 + 1))},
    )


# --- rounding ------------------------------------------------------------------------------------------------------------

GRID_CASES = [(N, k, bits) for N in (1, 2, 3, 5, 9) for k in (1, 2, 7, 64) for bits in (0, 3)]
"""(N, spread over step, grid bits) of the checked lookups."""


def worst_values(N: int, k: int, bits: int, sign: int) -> Numbers:
    """Value 0 at position 0 and `sign k h` elsewhere, h = 2^-bits."""
    return [[sign * k * Fraction(2) ** -bits * int(j > 0) for j in range(N)]]


def recovers(N: int, k: int, bits: int, gap: int, kernel: Kernel, numbers: Numbers) -> bool:
    """Whether the rounded head with this gap returns value 0 of the column in every row, decided exactly."""
    tau = [0] * N
    function = lookup(f"N = {N}, gap {gap}", sharpened(tau, 1, gap, rounded(bits)), 1, tau)
    return on_numbers([(function, numbers)], object_="the rounded head", kernels=(kernel,)).status is Status.PROVED


@A3.check(
    "rounded",
    "exact",
    predicate="at the smallest gap g with E(g) > (N-1)(2k-1) rounding recovers the value exactly, upwards and downwards; at g-1 the worst case fails",
    implies="on a grid of step h the lookup is exact, and the gap computed is the smallest for these N and spread k h",
    assumes=("FLINT", "Lindemann", "Arb"),
    name="smallest-gap",
)
def rounded_at_the_smallest_gap() -> Outcome:
    """Both kernels; the instance at g-1 is `worst_values` with sign +1. At N = 1 the gap is 0 and nothing can fail."""
    failing: list[dict[str, int | str]] = []
    kernels: tuple[Kernel, Kernel] = ("exp2", "exp")
    for N, k, bits in GRID_CASES:
        for kernel in kernels:
            gap = smallest_gap(N, k, kernel)
            good = all(recovers(N, k, bits, gap, kernel, worst_values(N, k, bits, sign)) for sign in (1, -1))
            mixed = [[Fraction((-1) ** j * (j % (k + 1))) * Fraction(2) ** -bits for j in range(N)]]
            good = good and recovers(N, k, bits, gap, kernel, mixed)
            smallest = gap == 0 or not recovers(N, k, bits, gap - 1, kernel, worst_values(N, k, bits, 1))
            if not good or not smallest:
                return Outcome(
                    Status.REFUTED,
                    Scope.instance(),
                    "the rounded head",
                    f"N = {N}, spread {k} h, h = 2^-{bits}, kernel {kernel}",
                    f"gap {gap}: " + ("not smallest" if good else "does not recover the value"),
                    {"N": N, "k": k, "bits": bits, "gap": gap, "kernel": kernel},
                )
            if gap:
                failing.append({"N": N, "k": k, "kernel": kernel, "gap": gap - 1})
    return Outcome(
        Status.PROVED,
        Scope.sizes(
            "N in 1, 2, 3, 5, 9; spread h, 2h, 7h, 64h; h = 1 and 1/8; every input on the grid within the spread"
        ),
        "the rounded head: recovery from the bound of the description, failure one gap below by an instance",
        f"{len(GRID_CASES)} sizes, kernels exp2 and exp",
        f"recovers at the smallest gap everywhere; fails one below in all {len(failing)} cases where the gap is positive",
        {"sizes": len(GRID_CASES), "failing one below": failing[:8]},
    )


@A3.check(
    "rounded",
    "exact",
    predicate="with quadratic scores and the least g with x(2k-1) < 1, rounding recovers every pointer's value; at g-1 an instance fails",
    implies="two key columns look up any of N positions exactly on a grid, with the pointer as data",
    assumes=("FLINT",),
    name="smallest-gap-quadratic",
)
def rounded_quadratic() -> Outcome:
    """Kernel exp2, every pointer; the worst pointer is the one with the largest x."""
    checked = 0
    for N in (2, 3, 6, 12):
        for k in (1, 5, 64):
            gap = smallest_gap_quadratic(N, k)
            for t in range(N):
                values = [Fraction(k * int(j != t)) for j in range(N)]
                tau = [t] * N
                worst = max(wrong_weight_quadratic(N, s, gap - 1) for s in range(N)) if gap else None
                for g, sign in ((gap, 1), (gap, -1), (gap - 1, 1)):
                    if g < 0 or (g < gap and wrong_weight_quadratic(N, t, g) != worst):
                        continue
                    function = lookup(f"N = {N}, gap {g}", pointed(N, 1, g, rounded(0)), 1, tau, pointer=True)
                    numbers = [[Fraction(t)] * N, [sign * v for v in values]]
                    found = on_numbers([(function, numbers)], object_="", kernels=("exp2",)).status is Status.PROVED
                    checked += 1
                    if found is not (g == gap):
                        return _outside(function, numbers, 0, f"recovered: {found}", f"smallest gap {gap}")
    return Outcome(
        Status.PROVED,
        Scope.sizes(
            "N in 2, 3, 6, 12; spread h, 5h, 64h; h = 1; every pointer and every input on the grid within the spread"
        ),
        "the rounded head with quadratic scores",
        "worst cases upwards and downwards, kernel exp2",
        f"as stated in all {checked} runs",
        {"runs": checked},
    )


def _gap_rows() -> list[list[str]]:
    """The quadratic column is exact for every N >= 32: one gap is needed at N = 32 and suffices for all N."""
    rows = []
    for N in (2, 16, 256, 4096):
        for k in (1, 16, 1024):
            quadratic = smallest_gap_quadratic(min(N, 32), k)
            if N > 32 and quadratic != sufficient_gap_quadratic(k):
                raise ValueError(f"the quadratic gap for N = {N}, k = {k} is not settled at N = 32")
            rows.append(
                [str(N), str(k), str(smallest_gap(N, k, "exp2")), str(smallest_gap(N, k, "exp")), str(quadratic)]
            )
    return rows


REGISTRY.tabulate(
    Table(
        "lookup-gaps",
        "A.3",
        "Smallest integer score gaps at which rounding to a grid of step h makes the softmax lookup exact, for values within k h of each other",
        ("N", "k", "one-hot, exp2", "one-hot, exp", "quadratic, exp2"),
        _gap_rows,
    )
)
