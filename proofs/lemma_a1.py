"""Lemma A.1: a position-dependent input map and one matrix write a block of ones.

**Statement.** For a <= N and b <= d there are `phi: R^d -> R^(d+1)` (which may depend on the position) and `U`, (d+1) x
d, such that `phi(X) U` is 1 on rows <= a and columns <= b and 0 elsewhere, for every N x d matrix X.

**As printed** (`printed`). `phi(x_i) = (x_i, 1)` for i <= a and `(x_i, 0)` otherwise; `U` is zero except for its last
row `(1_b, 0)`. Row i of `phi(X) U` is the last entry of `phi(x_i)` times that last row: 1_b if i <= a, 0 otherwise,
whatever X is. Correct at every size.

**Columns** (N15). The appended column is needed, and one is enough:

* without it, `X U` with d columns is 0 at X = 0, so no U writes a one (smallest: N = d = a = b = 1);
* more generally, let `phi(X)` have k columns and let both X and the block (a, b >= 1) be linear in it, `phi(X) (R | U)
  = (X | block)`. The matrix on the right has rank d+1 for suitable X as soon as N >= d+1, so k >= d+1.

So every lemma that uses A.1 works with d+1 columns, one more than the tokens have. Lemma A.2 need not use it (see
there).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from flint import fmpq, fmpq_mat

from proofs.lemma_a2 import printed as sum_with_constant_one
from proofs.lemma_a2 import token_sum
from proofs.lemma_b1 import N15
from proofs.registry import REGISTRY
from verify.arithmetic.interface import Arithmetic, Column, Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.claims.functions import Function, for_every_input, on_numbers, within
from verify.claims.verdict import Outcome, Scope, Status
from verify.transformer.token_map import PositionalMap, TokenMap

A1 = REGISTRY.add(
    Claim(
        "A.1",
        "A block of ones",
        "There are a position-dependent map phi: R^d -> R^(d+1) and a (d+1) x d matrix U such that phi(X) U is 1 on rows <= a "
        "and columns <= b and 0 elsewhere.",
        "Lemma A.1, Appendix A",
    )
)


@part_of("A.1")
def phi(N: int, d: int, a: int) -> PositionalMap:
    """The printed input map: `(x_i, 1)` on the first a positions, `(x_i, 0)` on the others."""
    kinds = [Kind.VALUE] * d

    def append(constant: int) -> TokenMap:
        return TokenMap.trace(kinds, lambda x: [*x, constant])

    return PositionalMap(((0, a, append(1)), (a, N, append(0))))


@part_of("A.1")
def U(d: int, b: int) -> RationalMatrix:
    """The printed matrix, (d+1) x d: its last row is `(1_b, 0)`, everything else is 0."""
    return RationalMatrix.from_entries(d + 1, d, {(d, c): 1 for c in range(b)})


def times(arithmetic: Arithmetic, columns: list[Column], W: RationalMatrix) -> list[Column]:
    """The columns of X W, by column operations."""
    zero = arithmetic.numbers([Fraction(0)] * len(columns[0]))
    out = []
    for c in range(W.width):
        total = zero
        for column, row in zip(columns, W.rows, strict=True):
            total = arithmetic.add(total, arithmetic.scale(column, row[c]))
        out.append(total)
    return out


def printed(N: int, d: int, a: int, b: int) -> Function:
    """`phi(X) U` beside the block of ones."""

    def evaluate(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        return times(arithmetic, phi(N, d, a).apply(arithmetic, X), U(d, b))

    def block(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        return [arithmetic.numbers([Fraction(int(i < a and c < b)) for i in range(N)]) for c in range(d)]

    kinds = (Kind.VALUE,) * d
    return Function(f"N = {N}, d = {d}, a = {a}, b = {b}", N, kinds, kinds, evaluate, block)


# ======================================================================================================================
# Claims
# ======================================================================================================================


def sizes() -> Iterator[tuple[int, int, int, int]]:
    """All (N, d, a, b) with N <= 4 and d <= 3, empty and full blocks included."""
    return ((N, d, a, b) for N in range(1, 5) for d in range(1, 4) for a in range(N + 1) for b in range(d + 1))


def _cases() -> list[tuple[Function, list[list[Fraction]]]]:
    entries = [Fraction(x) for x in (0, -1, 7, 0, 3)] + [Fraction(1, 3), Fraction(10**9), Fraction(-5, 7)]
    return [
        (printed(N, d, a, b), [[entries[(3 * i + c + N) % len(entries)] for i in range(N)] for c in range(d)])
        for N, d, a, b in sizes()
    ]


@A1.check(
    "printed",
    "symbolic",
    predicate="phi(X) U is the block of ones, as rational functions of the entries of X",
    implies="the printed map and matrix do what they should for every input of these sizes",
    assumes=("FLINT",),
    name="identity",
)
def printed_identity() -> Outcome:
    """Every a and b. (The argument in the module's description holds for every size.)"""
    return for_every_input(
        (printed(*size) for size in sizes()),
        object_="the printed phi and U on indeterminate tokens",
        sizes="N <= 4, d <= 3, all a <= N and b <= d",
    )


@A1.check(
    "printed",
    "exact",
    predicate="phi(X) U is the block of ones, entry by entry",
    implies="exact on these inputs",
    assumes=("FLINT",),
    name="instances",
)
def printed_instances() -> Outcome:
    """Rational tokens, zero rows among them."""
    return on_numbers(_cases(), object_="the printed phi and U on numbers")


@A1.check(
    "printed",
    "ball",
    predicate="phi(X) U lies within 2^-100 of the block of ones",
    implies="the run at working precision writes the block",
    assumes=("Arb",),
    name="enclosures",
)
def printed_enclosures() -> Outcome:
    """The same inputs, by balls."""
    return within(_cases(), 100, object_="the printed phi and U on balls")


@N15.check(
    "printed",
    "exact",
    predicate="rank (X | block) = d + 1 for some N x d matrix X: no k <= d columns carry both, and phi has d + 1",
    implies="Lemma A.1 takes exactly one column more than the tokens have; without it X = 0 is a counterexample",
    assumes=("FLINT",),
    name="block-of-ones",
)
def one_more_column() -> Outcome:
    """X = the first d rows of the identity below a zero row, so that row 1 of (X | block) is (0 | 1_b, 0): rank d +
    1."""
    checked = 0
    for d in range(1, 7):
        N = d + 1
        for a in range(1, N + 1):
            for b in range(1, d + 1):
                X = [[int(i == c + 1) for c in range(d)] for i in range(N)]
                both = [[*row, *(int(i < a and c < b) for c in range(d))] for i, row in enumerate(X)]
                rank = fmpq_mat(N, 2 * d, [fmpq(x) for row in both for x in row]).rank()
                columns = len(phi(N, d, a).kinds)
                checked += 1
                if rank != d + 1 or columns != d + 1:
                    return Outcome(
                        Status.REFUTED,
                        Scope.instance(),
                        "the matrix (X | block)",
                        f"N = {N}, d = {d}, a = {a}, b = {b}",
                        f"rank {rank}, columns of phi {columns}",
                        {"N": N, "d": d, "a": a, "b": b, "rank": rank, "columns": columns},
                    )
    return Outcome(
        Status.PROVED,
        Scope.sizes("d = 1, ..., 6, N = d + 1, all a and b"),
        "the matrix (X | block) and the columns of the printed phi",
        "X = 0 in row 1, unit vectors below",
        f"d + 1 columns are needed and used at all {checked} sizes; smallest: N = d = a = b = 1, where X = 0 gives X U = 0",
        {
            "checked": checked,
            "smallest": {"N": 1, "d": 1, "a": 1, "b": 1, "X": [["0"]], "wanted": [["1"]], "X U": [["0"]]},
        },
    )


@N15.check(
    "printed",
    "integers",
    predicate="Lemma A.2 with the constant 1 has embedding d + 1; with the constant 0 it has embedding d",
    implies="Lemma A.2 as printed takes the column of Lemma A.1, but does not need it",
    name="token-sum",
)
def the_sum_needs_no_column() -> Outcome:
    """Both oracles compute the sum (claim A.2); a nonzero constant query cannot come from d columns, because X = 0
    gives 0."""
    found = [(sum_with_constant_one(2, d).embedding - d, token_sum(2, d).embedding - d) for d in range(1, 9)]
    proved = set(found) == {(1, 0)}
    return Outcome(
        Status.PROVED if proved else Status.REFUTED,
        Scope.sizes("d = 1, ..., 8"),
        "the embedding dimension of both oracles of Lemma A.2",
        "sizes on a grid",
        "one more column with the constant 1, none with the constant 0" if proved else f"columns beyond d: {found}",
        {"columns beyond d": [list(pair) for pair in found]},
    )
