"""Section 2.1 and Definition 2.2: two typographical faults of the model's own definition, each with what it would compute.

**N16.** The multi-head definition prints `W^V` where the keys' `W^K` belongs (as our copy of the text has it). Read literally, keys are `X W^V`.

**N17.** Section 2.1 puts the layer MLP psi inside the attention layer f, and Definition 2.2 applies it to f's output again. Read literally,
psi is applied twice.

Both are labelled typographical, for the authors to confirm; the checks show that the literal reading defines another function, so that the
intended one must be stated.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from proofs.registry import REGISTRY
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim
from verify.claims.compare import exact_rows
from verify.claims.verdict import Outcome, Scope, Status
from verify.oracle.oracle import Oracle
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap

N16 = REGISTRY.add(
    Claim(
        "N16",
        "Keys with W^V",
        "The multi-head definition prints W^V where the keys' W^K belongs; read literally it defines another function.",
        "Section 2.1 (typographical)",
        kind="finding",
    )
)
N17 = REGISTRY.add(
    Claim(
        "N17",
        "The layer MLP applied twice",
        "Section 2.1 puts psi inside the attention layer and Definition 2.2 applies it again; read literally it is applied twice.",
        "Section 2.1 and Definition 2.2 (typographical)",
        kind="finding",
    )
)


def _head_rows(W_Q: int, W_K: int, W_V: int, X: tuple[int, ...]) -> list[list[str]]:
    """The output of a head with 1 x 1 matrices on tokens of one column, kernel exp2."""
    head = Head(*(RationalMatrix.of([[w]]) for w in (W_Q, W_K, W_V)))
    oracle = Oracle(
        PositionalMap(((0, len(X), TokenMap.identity([Kind.NUMBER])),)),
        (Layer((head,), TokenMap.identity([Kind.VALUE])),),
    )
    return exact_rows(oracle, [[Fraction(x) for x in X]])


@N16.check(
    "printed",
    "exact",
    predicate="a head with keys X W^V and the head with keys X W^K have different outputs",
    implies="the literal reading of the multi-head definition is not Definition 2.1 applied to slices",
    assumes=("text of the paper",),
)
def keys_with_values_matrix() -> Outcome:
    """Searched in order of N, then of the entries 0 and 1, d = 1."""
    for N in (1, 2):
        for W_Q, W_K, W_V, *X in product((0, 1), repeat=3 + N):
            literal, intended = _head_rows(W_Q, W_V, W_V, tuple(X)), _head_rows(W_Q, W_K, W_V, tuple(X))
            if literal != intended:
                return Outcome(
                    Status.PROVED,
                    Scope.instance(),
                    "a head with 1 x 1 matrices under both readings, kernel exp2",
                    f"N = {N}, d = 1 (the smallest), W_Q = {W_Q}, W_K = {W_K}, W_V = {W_V}, X = {X}",
                    f"literal {literal} against intended {intended}",
                    {"N": N, "W_Q": W_Q, "W_K": W_K, "W_V": W_V, "X": X, "literal": literal, "intended": intended},
                )
    return Outcome(Status.REFUTED, Scope.sizes("N <= 2, entries 0 and 1"), "both readings", "", "no difference found")


@N17.check(
    "printed",
    "exact",
    predicate="psi applied twice differs from psi applied once",
    implies="the literal reading of Definition 2.2 is another function unless psi is idempotent",
    assumes=("text of the paper",),
)
def mlp_applied_twice() -> Outcome:
    """psi(x) = x + 1 on one token (N = 1, d = 1)."""
    kinds = [Kind.VALUE]
    once = TokenMap.trace(kinds, lambda x: [x[0] + 1])
    twice = TokenMap.trace(kinds, lambda x: once(once(x)))
    head = Head(*(RationalMatrix.identity(1) for _ in range(3)))
    rows = [
        exact_rows(
            Oracle(PositionalMap(((0, 1, TokenMap.identity([Kind.NUMBER])),)), (Layer((head,), mlp),)), [[Fraction(0)]]
        )
        for mlp in (once, twice)
    ]
    return Outcome(
        Status.PROVED if rows[0] != rows[1] else Status.REFUTED,
        Scope.instance(),
        "one layer with psi(x) = x + 1 under both readings",
        "N = 1, d = 1 (the smallest), X = [0]",
        f"once {rows[0]}, twice {rows[1]}",
        {"once": rows[0], "twice": rows[1]},
    )
