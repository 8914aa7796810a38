"""Lemma A.2: one single-head layer outputs the sum of all tokens, in every row.

**Statement.** There is a single-layer single-head transformer that outputs the sum of all tokens of its input.

**As printed** (`printed`). Constant queries and keys, so that all weights are 1/N, and values `N x_i` (the proof prints
`k_i` where `v_i` belongs: with keys `N x_i` the weights would not be constant). Row i of the output is `sum_j (1/N) N
x_j`: correct for every N and d.

* **R8.** The statement speaks of a 1 x d output; a transformer's output is N x d, and every row of it is the sum.
* **N15.** Constant queries that are not zero come from the constant column of Lemma A.1: one column more than the
  tokens have. The lemma does not need it: zero queries and keys are constant too, and take `W^Q = W^K = 0`
  (`token_sum`, embedding d).

`token_sum` multiplies by N in the layer MLP instead of in the values, so that a further map can follow in the same MLP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from proofs.registry import REGISTRY
from verify.arithmetic.interface import Arithmetic, Column, Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.claims.functions import Function, Numbers, for_every_input, on_numbers, program_of, within
from verify.claims.verdict import Outcome, Scope, Status
from verify.oracle.machine import Machine
from verify.oracle.oracle import Oracle
from verify.oracle.program import Program
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire

A2 = REGISTRY.add(
    Claim(
        "A.2",
        "Sum of all tokens",
        "One single-layer single-head transformer outputs, in every row, the sum of all tokens of its input.",
        "Lemma A.2, Appendix A",
    )
)
R8 = REGISTRY.add(
    Claim(
        "R8",
        "Output shape of Lemma A.2",
        "Lemma A.2 states a 1 x d output; the transformer's output is N x d, and every row of it is the sum.",
        "Review, minor comment 4",
        kind="comment",
    )
)


@part_of("A.2")
def printed(rows: int, width: int) -> Oracle:
    """The oracle as printed: queries and keys 1 from an appended constant column, values `N x_i`. Embedding width +
    1."""
    kinds = [Kind.VALUE] * width
    constant = RationalMatrix.from_entries(width + 1, 1, {(width, 0): 1})
    values = RationalMatrix.from_entries(width + 1, width, {(c, c): rows for c in range(width)})
    return Oracle(
        PositionalMap(((0, rows, TokenMap.trace(kinds, lambda x: [*x, 1])),)),
        (Layer((Head(constant, constant, values),), TokenMap.identity(kinds)),),
    )


@part_of("A.2")
def token_sum(rows: int, width: int, then: Callable[[list[Wire]], Sequence[Wire]] = lambda total: total) -> Oracle:
    """The oracle whose every output row is `then(sum of its input rows)`.

    All scores are 0, so every weight is 1/rows; the layer MLP multiplies by the number of rows, which is known. No
    constant column is needed, because the constant queries may be zero.
    """
    kinds = [Kind.VALUE] * width
    nothing = RationalMatrix.zero(width, 1)
    head = Head(nothing, nothing, RationalMatrix.identity(width))
    mlp = TokenMap.trace(kinds, lambda mean: then([x * rows for x in mean]))
    return Oracle(PositionalMap(((0, rows, TokenMap.identity(kinds)),)), (Layer((head,), mlp),))


# ======================================================================================================================
# Claims
# ======================================================================================================================

SIZES = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (4, 2), (5, 1), (5, 3), (8, 2)]
"""(N, d) at which the sum is checked."""

CONSTRUCTIONS: dict[str, Callable[[int, int], Oracle]] = {"printed": printed, "zero-constants": token_sum}
"""The oracle as printed, and with zero as the constant."""


def program_for(oracle: Oracle, width: int) -> Program:
    """One call on an input X of N values in each of `width` columns, on a machine whose oracles read N tokens."""
    machine = Machine(oracle.rows, width)
    X = machine.input("X", oracle.rows, (Kind.VALUE,) * width)
    return machine.program(machine.call(oracle, X, role="sum"))


def sum_function(build: Callable[[int, int], Oracle], N: int, d: int) -> Function:
    """A construction beside the sum of the tokens, repeated in every row."""
    kinds = (Kind.VALUE,) * d

    def total(arithmetic: Arithmetic, X: list[Column]) -> list[Column]:
        out = []
        for column in X:
            entry = column[0:1]
            for i in range(1, N):
                entry = arithmetic.add(entry, column[i : i + 1])
            out.append(arithmetic.concatenate([entry] * N))
        return out

    return Function(f"N = {N}, d = {d}", N, kinds, kinds, program_of(program_for(build(N, d), d)), total)


def _numbers(N: int, d: int) -> Numbers:
    """Rational tokens: zeros, opposite ones (so that some sums vanish), tiny and huge ones."""
    entries = [Fraction(x) for x in (3, -3, 0, 10**12, -(10**12))] + [
        Fraction(1, 10**9),
        Fraction(2, 7),
        Fraction(-2, 7),
    ]
    return [[entries[(i + 2 * c) % len(entries)] for i in range(N)] for c in range(d)]


def _register(name: str, columns: int) -> None:
    def build(N: int, d: int) -> Oracle:
        return CONSTRUCTIONS[name](N, d)

    def cases() -> list[tuple[Function, Numbers]]:
        return [(sum_function(build, N, d), _numbers(N, d)) for N, d in SIZES]

    @A2.check(
        name,
        "symbolic",
        name=f"identity-{name}",
        predicate="every output row = the sum of all tokens, as rational functions of their entries",
        implies="the layer outputs the sum for every input of these sizes",
        assumes=("FLINT",),
    )
    def identity() -> Outcome:
        return for_every_input(
            (sum_function(build, N, d) for N, d in SIZES),
            object_="the call run on indeterminate tokens",
            sizes=f"(N, d) in {', '.join(map(str, SIZES))}",
        )

    @A2.check(
        name,
        "exact",
        name=f"instances-{name}",
        predicate="every output row = the sum of all tokens, entry by entry",
        implies="exact on these inputs under both kernels",
        assumes=("FLINT", "Lindemann"),
    )
    def instances() -> Outcome:
        return on_numbers(cases(), object_="the call run on numbers")

    @A2.check(
        name,
        "ball",
        name=f"enclosures-{name}",
        predicate="every output row lies within 2^-100 of the sum",
        implies="the run at working precision returns the sum",
        assumes=("Arb",),
    )
    def enclosures() -> Outcome:
        return within(cases(), 100, object_="the call run on balls")

    @A2.check(
        name,
        "integers",
        name=f"cost-{name}",
        predicate=f"one call, longest input N, embedding d + {columns}, no rule broken",
        implies="the cost of the sum at these sizes",
    )
    def cost() -> Outcome:
        return _embedding(build, columns, name)


for _name in CONSTRUCTIONS:
    _register(_name, int(_name == "printed"))


def _embedding(build: Callable[[int, int], Oracle], columns: int, name: str) -> Outcome:
    for N, d in SIZES:
        program = program_for(build(N, d), d)
        found = (program.cost.calls, program.cost.longest_input, program.cost.embedding, program.broken_rules)
        if found != (1, N, d + columns, ()):
            return Outcome(
                Status.REFUTED,
                Scope.instance(),
                f"the call, {name}",
                f"N = {N}, d = {d}",
                f"calls, longest input, embedding and broken rules {found}",
                {"N": N, "d": d, "embedding": program.cost.embedding},
            )
    return Outcome(
        Status.PROVED,
        Scope.sizes(f"(N, d) in {', '.join(map(str, SIZES))}"),
        f"the call, {name}",
        "sizes on a grid",
        f"embedding d + {columns}, one call of N rows at all {len(SIZES)} sizes",
        {"sizes": len(SIZES), "extra columns": columns},
    )


@R8.check(
    "printed",
    "symbolic",
    predicate="the output has N rows of d entries, and every row is the sum",
    implies="the statement should say that every row of an N x d output is the sum; 1 x d is right only for N = 1",
    assumes=("FLINT", "text of the paper"),
    name="shape",
)
def output_shape() -> Outcome:
    """The shape is the program's, at every size; that all rows are the sum is the identity of A.2."""
    for N, d in SIZES:
        program = program_for(CONSTRUCTIONS["printed"](N, d), d)
        if (program.rows, len(program.kinds)) != (N, d):
            return Outcome(
                Status.REFUTED,
                Scope.instance(),
                "the output of the printed call",
                f"N = {N}, d = {d}",
                f"{program.rows} x {len(program.kinds)}",
                {"N": N, "d": d},
            )
    outcome = for_every_input(
        (sum_function(CONSTRUCTIONS["printed"], N, d) for N, d in SIZES),
        object_="the output of the printed call",
        sizes=f"(N, d) in {', '.join(map(str, SIZES))}",
    )
    detail = "N x d, every row the sum; smallest where 1 x d is wrong: N = 2, d = 1"
    proved = outcome.status is Status.PROVED
    return Outcome(
        outcome.status,
        outcome.scope,
        outcome.object,
        outcome.input,
        detail if proved else outcome.detail,
        outcome.evidence,
    )
