"""Carrying numbers through an attention layer that has no residual connection (repairs of R2, R4 and N6).

**Query-side transport.** Row i of an attention layer outputs an average of values that are the same for all rows; only
the
weights depend on the row, and only through its query. So a vector `x_i` of r numbers must travel in the query. Give the
rows of the call r+1 roles: role c < r has the one-hot key `e_c` and the one-hot value `e_c`, the base role has key 0
and
its own value column. Row i then sees weight `E(x_i[c])` on each row of role c and `E(0) = 1` on each base row:

    output_i[c] = n_c E(x_i[c]) / Z_i,   output_i[base] = n_0 / Z_i,   so   E(x_i[c]) = (output_i[c] / n_c) /
    (output_i[base] / n_0).

The unknown normaliser `Z_i` cancels in the quotient: exact for every `x_i`, whatever the row's own role. The layer MLP
needs division
and, to get `x_i[c]` itself, a logarithm. A number that is not a score (a sum of weights, say) travels as `log(x + c)`,
`c` a bound that makes it positive, and comes out as `E(...) - c`, without a logarithm in the layer MLP.

**Fused transport.** The same rows appended to real tokens with scores of their own: the normaliser changes, nothing
else
does. If moreover a carried number shares its value column with the real tokens' values, the attention itself *adds* it
to
their sum; this is how `proofs.aggregation` merges blocks.

Under a causal mask the r+1 synthetic rows come first, so that every row after them sees them all.

Smallest M: r+1 for plain transport, r+2 with at least one real token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from proofs.aggregation import require
from proofs.registry import REGISTRY
from verify.arithmetic.interface import Arithmetic, Column, Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.claims.functions import Function, for_every_input, on_numbers, program_of, within
from verify.claims.verdict import Outcome, Scope, Status
from verify.errors import RequestError
from verify.oracle.machine import Machine
from verify.oracle.oracle import Oracle
from verify.oracle.program import Program
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire

T1 = REGISTRY.add(
    Claim(
        "T.1",
        "Query-side transport",
        "One call of a single-head single-layer oracle of length M, without residual connections, returns r numbers of each "
        "of its M tokens unchanged, for every r < M.",
        "Ours; repairs R2 and N6",
        kind="construction",
    )
)
T2 = REGISTRY.add(
    Claim(
        "T.2",
        "Fused transport",
        "One head returns, for each of its M rows, the sums B = sum_j a_ij v_j and A = sum_j a_ij over n tokens and r numbers of "
        "the row unchanged, whenever n + r + 1 <= M.",
        "Ours; repairs R2, R4 and N6",
        kind="construction",
    )
)


@dataclass(frozen=True)
class Rows:
    """The roles of the rows of a call: `real` tokens first, then one row for each of r carried numbers, then base
    rows.
    """

    real: int
    carried: int
    base: int

    @property
    def total(self) -> int:
        """Rows of the call."""
        return self.real + self.carried + self.base

    def roles(self) -> list[tuple[int, int, int | None, bool]]:
        """The ranges of positions with their role: (start, stop, carried number or None, whether base)."""
        at = self.real
        ranges: list[tuple[int, int, int | None, bool]] = [(0, at, None, False)] if self.real else []
        for c in range(self.carried):
            ranges.append((at + c, at + c + 1, c, False))
        if self.base:
            ranges.append((at + self.carried, self.total, None, True))
        return ranges


def carried_kind(as_scores: bool) -> Kind:
    """The kind of carried numbers."""
    return Kind.SCORE if as_scores else Kind.VALUE


def one_hot(position: int | None, width: int) -> list[int]:
    """The unit vector, or zero."""
    return [int(c == position) for c in range(width)]


@part_of("T.1")
def plain_transport(
    r: int, M: int, *, as_scores: bool, mlp: Callable[[list[Wire]], Sequence[Wire]] | None = None
) -> Oracle:
    """One call that carries r numbers for each of M tokens through an attention layer unchanged.

    With `as_scores` the numbers are scores and come back as scores (the MLP takes a logarithm); otherwise they are
    positive values, travel as logarithms and come back as values. Raises RequestError when M < r+1.
    `mlp`, if given, replaces the layer MLP, which reads `out_1, ..., out_r, out_base`.
    """
    require(M, r + 1, "query-side transport")
    rows = Rows(0, r, M - r)
    kind = carried_kind(as_scores)

    def tokens(position: int | None, base: bool) -> TokenMap:
        return TokenMap.trace(
            [kind] * r,
            lambda x: [*(x if as_scores else [wire.log() for wire in x]), *one_hot(position, r), int(base)],
        )

    identity = RationalMatrix.identity(r)
    head = Head(
        RationalMatrix.blocks(2 * r + 1, r, [(0, 0, identity)]),
        RationalMatrix.blocks(2 * r + 1, r, [(r, 0, identity)]),
        RationalMatrix.blocks(2 * r + 1, r + 1, [(r, 0, RationalMatrix.identity(r + 1))]),
    )

    def recover(out: Sequence[Wire]) -> list[Wire]:
        weights = unnormalised(out[:r], out[r], rows.base)
        return [w.log() for w in weights] if as_scores else weights

    return Oracle(
        PositionalMap(tuple((start, stop, tokens(c, base)) for start, stop, c, base in rows.roles())),
        (Layer((head,), TokenMap.trace([Kind.VALUE] * (r + 1), mlp or recover)),),
    )


@part_of("T.2")
def fused_transport(head: Head, kinds: Sequence[Kind], n: int, r: int, M: int, *, as_scores: bool) -> Oracle:
    """One call that sums over the first n rows' key tokens and carries r numbers for each of its M rows.

    Input row: `[key token (d) | query token (d) | carried numbers (r)]`, `kinds` those of a token. Rows after the first
    n
    hold no key; their key tokens are not read. Output row: `[B (m) | A | carried numbers (r)]`. Embedding: `[query (d)
    |
    carried scores (r) | key (d) | one-hot role (r) | real | base]`. Raises RequestError when n + r + 1 > M or n < 1.

    Row i gives the n real rows the weights a_ij, the row of role c the weight E(x_i[c]) and the M-n-r base rows the
    weight
    E(0) = 1 each; all value columns are disjoint, so the output is `(B, A, E(x_i), M-n-r) / Z_i`, and `unnormalised`
    cancels Z_i.
    """
    require(n, 1, "fused transport with a real token (rows of tokens)")
    require(M, n + r + 1, "fused transport")
    rows, d, m = Rows(n, r, M - n - r), head.W_Q.height, head.W_V.width
    at_key, at_role, at_real, at_base = d + r, 2 * d + r, 2 * d + 2 * r, 2 * d + 2 * r + 1

    def tokens(number: int | None, base: bool) -> TokenMap:
        def place(x: list[Wire]) -> list[Wire | int]:
            key, query, carried = x[:d], x[d : 2 * d], x[2 * d :]
            real = number is None and not base
            return [
                *query,
                *(carried if as_scores else [wire.log() for wire in carried]),
                *(key if real else [0] * d),
                *one_hot(number, r),
                int(real),
                int(base),
            ]

        return TokenMap.trace([*kinds, *kinds, *[carried_kind(as_scores)] * r], place)

    def recover(out: Sequence[Wire]) -> list[Wire]:
        sums, weights, base = out[: m + 1], out[m + 1 : m + 1 + r], out[m + 1 + r]
        found = unnormalised([*sums, *weights], base, rows.base)
        return [*found[: m + 1], *(w.log() if as_scores else w for w in found[m + 1 :])]

    carry, width = RationalMatrix.identity(r), at_base + 1
    both = Head(
        RationalMatrix.blocks(width, head.W_Q.width + r, [(0, 0, head.W_Q), (d, head.W_Q.width, carry)]),
        RationalMatrix.blocks(width, head.W_K.width + r, [(at_key, 0, head.W_K), (at_role, head.W_K.width, carry)]),
        RationalMatrix.blocks(
            width,
            m + r + 2,
            [
                (at_key, 0, head.W_V),
                (at_real, m, RationalMatrix.identity(1)),
                (at_role, m + 1, carry),
                (at_base, m + 1 + r, RationalMatrix.identity(1)),
            ],
        ),
    )
    return Oracle(
        PositionalMap(tuple((start, stop, tokens(number, base)) for start, stop, number, base in rows.roles())),
        (Layer((both,), TokenMap.trace([Kind.VALUE] * (m + r + 2), recover)),),
    )


def unnormalised(averages: Sequence[Wire], base: Wire, base_rows: int) -> list[Wire]:
    """The sums of weights behind normalised averages, from the average of n base rows of weight 1: `n average /
    base`.
    """
    return [average / base * base_rows for average in averages]


# ======================================================================================================================
# Claims
# ======================================================================================================================

PLAIN_SIZES = [(r, M) for M in range(2, 7) for r in range(1, M)]
"""Every r that fits M."""

FUSED_SIZES = [(1, 1, 3), (1, 1, 4), (2, 1, 4), (1, 2, 4), (2, 2, 6), (3, 1, 5), (1, 3, 5), (2, 0, 3), (3, 2, 8)]
"""(n, r, M) of fused calls; r = 0 is the fused call of B.1."""

PLACES = (Fraction(1), Fraction(1, 3), Fraction(5), Fraction(1, 1024), Fraction(7, 2), Fraction(900), Fraction(2))
"""Positive values that are carried: powers of two and others, tiny and large."""

SCORES = tuple(Fraction(x) for x in (0, -3, 4, 120, -120, 1, 1))
"""Scores that are carried: zero, equal ones, huge and tiny ones."""


def program_for(oracle: Oracle, width: int, kinds: Sequence[Kind]) -> Program:
    """The program of a single call on X, for a large transformer of the given width."""
    machine = Machine(oracle.rows, width)
    return machine.program(machine.call(oracle, machine.input("X", oracle.rows, tuple(kinds)), role="transport"))


def plain_function(r: int, M: int, *, as_scores: bool) -> Function:
    """The call beside the identity."""
    kinds = (carried_kind(as_scores),) * r
    program = program_for(plain_transport(r, M, as_scores=as_scores), r, kinds)
    kind = "scores" if as_scores else "values"
    return Function(f"r = {r}, M = {M}, {kind}", M, kinds, kinds, program_of(program), lambda _, X: X)


TOKEN = Head(*(RationalMatrix.from_entries(3, 1, {(c, 0): 1}) for c in range(3)))
"""The head that reads query, key and value off a token (q, k, v)."""


def fused_function(n: int, r: int, M: int, *, as_scores: bool) -> Function:
    """The call on tokens (q, k, v) beside the sums and the carried numbers, by column operations."""
    token = (Kind.SCORE, Kind.SCORE, Kind.VALUE)
    carried = (carried_kind(as_scores),) * r
    program = program_for(
        fused_transport(TOKEN, token, n, r, M, as_scores=as_scores), 3 + r, [*token, *token, *carried]
    )

    def reference(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        B, A = block_sums(arithmetic, X[3], X[1], X[2], n)
        return [B, A, *X[6:]]

    kind = "scores" if as_scores else "values"
    return Function(
        f"n = {n}, r = {r}, M = {M}, {kind}",
        M,
        (*token, *token, *carried),
        (Kind.VALUE, Kind.VALUE, *carried),
        program_of(program),
        reference,
        ((3, 1),),
    )


def block_sums(arithmetic: Arithmetic, q: Column, k: Column, v: Column, n: int) -> tuple[Column, Column]:
    """`sum_j E(q_i k_j) v_j` and `sum_j E(q_i k_j)` over the first n tokens, for every row i, by column operations
    alone.
    """
    rows = len(q)
    B = A = arithmetic.numbers([Fraction(0)] * rows)
    for j in range(n):
        k_j, v_j = (arithmetic.concatenate([column[j : j + 1]] * rows) for column in (k, v))
        weight = arithmetic.exp(arithmetic.multiply(q, k_j))
        B, A = arithmetic.add(B, arithmetic.multiply(weight, v_j)), arithmetic.add(A, weight)
    return B, A


def _rotated(numbers: Sequence[Fraction], by: int, count: int) -> list[Fraction]:
    return [numbers[(by + i) % len(numbers)] for i in range(count)]


def plain_cases() -> list[tuple[Function, list[list[Fraction]]]]:
    """Every size with both kinds, on values and scores that include the edges."""
    cases = []
    for r, M in PLAIN_SIZES:
        for as_scores in (False, True):
            source = SCORES if as_scores else PLACES
            cases.append((plain_function(r, M, as_scores=as_scores), [_rotated(source, 2 * c, M) for c in range(r)]))
    return cases


def fused_cases() -> list[tuple[Function, list[list[Fraction]]]]:
    """Every size with both kinds, on tokens with equal, huge and negative scores and zero values."""
    cases = []
    for n, r, M in FUSED_SIZES:
        for as_scores in (False, True):
            tokens = [_rotated([Fraction(x) for x in (0, 1, -2, 3, 40, -40, 0)], c, M) for c in range(6)]
            source = SCORES if as_scores else PLACES
            carried = [_rotated(source, c + 1, M) for c in range(r)]
            cases.append((fused_function(n, r, M, as_scores=as_scores), [*tokens, *carried]))
    return cases


@T1.check(
    "plain",
    "symbolic",
    name="identity",
    predicate="output = input as rational functions (values) and as scores, for every r < M",
    implies="nothing is lost on the way through a layer without residual connection, for every input of these sizes",
    assumes=("FLINT",),
)
def plain_identity() -> Outcome:
    """Both kinds, every r that fits. (The argument in the module's description does not depend on the size.)"""
    functions = [plain_function(r, M, as_scores=s) for r, M in PLAIN_SIZES for s in (False, True)]
    return for_every_input(functions, object_="the call run on tokens in general position", sizes="1 <= r < M <= 6")


@T1.check(
    "plain",
    "exact",
    name="instances",
    predicate="output = input, entry by entry",
    implies="transport is exact on these inputs, in the log domain of both kernels",
    assumes=("FLINT", "Lindemann"),
)
def plain_instances() -> Outcome:
    """Both kinds and kernels."""
    return on_numbers(plain_cases(), object_="the call run on numbers")


@T1.check(
    "plain",
    "ball",
    name="enclosures",
    predicate="the output lies within 2^-100 of the input",
    implies="the run at working precision returns the input",
    assumes=("Arb",),
)
def plain_enclosures() -> Outcome:
    """Kernel exp, by balls."""
    return within(plain_cases(), 100, object_="the call run on balls")


@T1.check(
    "plain",
    "integers",
    name="limits",
    predicate="one call, embedding 2r+1, longest input M when r < M; a RequestError that names r+1 when r >= M",
    implies="the smallest M for r numbers is r+1, and the construction says so",
)
def plain_limits() -> Outcome:
    """All r and M up to 9."""
    checked = 0
    for M in range(1, 10):
        for r in range(1, 10):
            checked += 1
            try:
                program = program_for(plain_transport(r, M, as_scores=True), r, [Kind.SCORE] * r)
                cost = program.cost
                found: tuple[object, ...] = (cost.calls, cost.embedding, cost.longest_input, program.broken_rules)
                expected: tuple[object, ...] = (1, 2 * r + 1, M, ())
                fits = r < M
            except RequestError as error:
                found, expected, fits = (error.right,), (f"the smallest that would do is {r + 1}",), r >= M
            if found != expected or not fits:
                return _fault("plain transport", {"r": r, "M": M}, found, expected)
    return _counted("plain transport", "r, M = 1, ..., 9", checked)


def then_attention(M: int) -> Function:
    """Two layers without residual connection: the first carries (q, k), the second attends with them, values E(q_j).

    Beside the attention by column operations. What the first layer returns are scores again, so that they can be multiplied.
    """
    carrying = plain_transport(2, M, as_scores=True)

    def recover(out: Sequence[Wire]) -> list[Wire]:
        weights = unnormalised(out[:2], out[2], M - 2)
        return [weights[0].log(), weights[1].log(), weights[0]]

    layers = (
        Layer(carrying.layers[0].heads, TokenMap.trace([Kind.VALUE] * 3, recover)),
        Layer((TOKEN,), TokenMap.identity([Kind.VALUE])),
    )
    kinds = (Kind.SCORE, Kind.SCORE)
    program = program_for(Oracle(carrying.input_map, layers), 2, kinds)

    def reference(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        B, A = block_sums(arithmetic, X[0], X[1], arithmetic.exp(X[0]), M)
        return [arithmetic.divide(B, A)]

    return Function(f"M = {M}", M, kinds, (Kind.VALUE,), program_of(program), reference, ((0, 1),))


@T1.check(
    "plain",
    "symbolic",
    name="next-layer",
    predicate="attention in a second layer, with queries and keys carried through the first, = attention as rational functions",
    implies="carried scores serve as queries and keys of a later layer, for every input of these sizes",
    assumes=("FLINT",),
)
def carried_scores_attend() -> Outcome:
    """M = 3, 4, 5."""
    functions = [then_attention(M) for M in (3, 4, 5)]
    return for_every_input(functions, object_="a two-layer call without residual connections", sizes="M = 3, 4, 5")


@T1.check(
    "plain",
    "exact",
    name="next-layer-instances",
    predicate="attention in a second layer, with queries and keys carried through the first, = attention, entry by entry",
    implies="exact on these inputs under both kernels",
    assumes=("FLINT", "Lindemann"),
)
def carried_scores_attend_on_numbers() -> Outcome:
    """Equal, negative and large scores."""
    scores = [Fraction(x) for x in (2, -3, 0, 0, 11, -7)]
    cases = [(then_attention(M), [_rotated(scores, c, M) for c in (0, 4)]) for M in (3, 5, 6)]
    return on_numbers(cases, object_="a two-layer call without residual connections")


@T2.check(
    "fused",
    "symbolic",
    name="identity",
    predicate="output = (B, A, carried numbers) as rational functions and scores",
    implies="one head does both, for every input of these sizes",
    assumes=("FLINT",),
)
def fused_identity() -> Outcome:
    """Both kinds of carried numbers."""
    functions = [fused_function(n, r, M, as_scores=s) for n, r, M in FUSED_SIZES for s in (False, True)]
    return for_every_input(
        functions,
        object_="the call run on tokens in general position",
        sizes=f"(n, r, M) in {', '.join(map(str, FUSED_SIZES))}",
    )


@T2.check(
    "fused",
    "exact",
    name="instances",
    predicate="output = (B, A, carried numbers), entry by entry",
    implies="fused transport is exact on these inputs, in the log domain of both kernels",
    assumes=("FLINT", "Lindemann"),
)
def fused_instances() -> Outcome:
    """Both kinds and kernels."""
    return on_numbers(fused_cases(), object_="the call run on numbers")


@T2.check(
    "fused",
    "ball",
    name="enclosures",
    predicate="the output lies within 2^-100 of (B, A, carried numbers)",
    implies="the run at working precision returns the sums and the carried numbers",
    assumes=("Arb",),
)
def fused_enclosures() -> Outcome:
    """Kernel exp, by balls."""
    return within(fused_cases(), 100, object_="the call run on balls")


@T2.check(
    "fused",
    "integers",
    name="limits",
    predicate="one call, embedding 2d+2r+2, longest input M when n+r+1 <= M; a RequestError that names n+r+1 otherwise",
    implies="the smallest M for n tokens and r numbers is n+r+1",
)
def fused_limits() -> Outcome:
    """All n, r and M up to 6 for tokens of three columns."""
    checked, token = 0, (Kind.SCORE, Kind.SCORE, Kind.VALUE)
    for n, r, M in ((n, r, M) for n in range(1, 7) for r in range(7) for M in range(1, 7)):
        checked += 1
        try:
            oracle = fused_transport(TOKEN, token, n, r, M, as_scores=False)
            program = program_for(oracle, 3 + r, [*token, *token, *[Kind.VALUE] * r])
            cost = program.cost
            found: tuple[object, ...] = (cost.calls, cost.embedding, cost.longest_input, program.broken_rules)
            expected: tuple[object, ...] = (1, 2 * 3 + 2 * r + 2, M, ())
            fits = n + r + 1 <= M
        except RequestError as error:
            found, expected = (error.right,), (f"the smallest that would do is {n + r + 1}",)
            fits = n + r + 1 > M
        if found != expected or not fits:
            return _fault("fused transport", {"n": n, "r": r, "M": M}, found, expected)
    return _counted("fused transport", "n, M = 1, ..., 6 and r = 0, ..., 6", checked)


def _fault(object_: str, size: dict[str, int], found: object, expected: object) -> Outcome:
    text = ", ".join(f"{name} = {value}" for name, value in size.items())
    return Outcome(
        Status.REFUTED, Scope.instance(), object_, text, f"{found} instead of {expected}", {**size, "found": str(found)}
    )


def _counted(object_: str, sizes: str, checked: int) -> Outcome:
    return Outcome(
        Status.PROVED, Scope.sizes(sizes), object_, sizes, f"as stated at all {checked} sizes", {"checked": checked}
    )
