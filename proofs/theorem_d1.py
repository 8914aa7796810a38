"""Theorem D.1 (= 5.1): sliding windows (constant r) and attention sinks (constant s) in `O(N/M)` calls of causal oracles.

**Statement.** A transformer whose mask is a window of r, or a window of r with s sinks, for constants r and s, is simulated by
`O((N/M) HL/(H'L'))` calls to oracles with a causal mask. This module has the single-head single-layer case.

**As printed** (`printed`). `sum over the window = sum_{j <= i} - sum_{j <= i-r}`, both as prefix sums inside a chunk of M tokens: chunks of M-r
queries, one call for each of four sums (two weights, two ratios), and arithmetic outside. Only the first chunk is written out; run at every
chunk offset it gives the right output, once the extra row of claim B.6 and the outside arithmetic are waived. Sinks "with the same technique":
`sum_{j <= s} = sum_{j <= i} - sum_{s < j <= i}`, but for a query beyond the first chunk `sum_{j <= i}` runs over more than M tokens (N3).

**Repaired** (`attach`; legal in the paper's own model, with a declared row gather). The first E = min(N, r+s) queries see everything before them: a causal mask,
Theorem B.5 on E tokens. The others see exactly r + s different keys. Three ways:

* `token-wise` (N20): the tokens `x_i, x_(i-1), ..., x_(i-r+1)` and the s sinks stand side by side; the *input map* computes the window's sums with
  `O((r+s) d^2)` products and r+s exponentials; attention only passes the m+1 sums on. `ceil((N-E)/(M-m-1))` calls. Shows how much the paper's assumption on MLPs carries.
* `blocks`, without cancellation and without exp in an MLP: blocks of r queries; a forward call on the block's own keys, a reverse call on the block before
  (`proofs.causal`), and for sinks a call whose keys are the sinks, where the queries' own rows have key 0 and value 0. Only sums of positive terms.
  2 calls a block, 3 with sinks, so `O(N/r)`.
* `prefix-difference`, the printed idea made legal at every chunk offset: the prefix sums up to i-r are carried into the call that computes those up to i, whose MLP subtracts.
  `O(N/M)` calls, no exp in an MLP, but the difference cancels (N7).

`repaired` takes the variant with the fewest calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from proofs import theorem_b5
from proofs.aggregation import ceiling, require
from proofs.causal import CausalCalls, Shape
from proofs.registry import REGISTRY
from proofs.transport import one_hot
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.claims.claim import Claim, part_of
from verify.oracle.machine import Machine, Stored
from verify.oracle.oracle import Oracle
from verify.oracle.problem import Problem
from verify.oracle.program import Program
from verify.transformer.attention import CAUSAL, Head
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import PositionalMap, TokenMap, Wire

D1 = REGISTRY.add(
    Claim(
        "D.1",
        "Sliding windows and attention sinks",
        "A transformer with a sliding window of constant size r, with or without a constant number s of sinks, is simulated by "
        "O((N/M) HL/(H'L')) calls to oracles with a causal mask.",
        "Theorem 5.1 = Theorem D.1, Section 5 and Appendix D",
        aliases=("5.1",),
    )
)

VARIANTS = ("token-wise", "blocks", "prefix-difference")


def window_of(problem: Problem) -> tuple[int, int]:
    """r and s, no larger than N."""
    mask = problem.transformer.mask
    assert mask.window is not None
    return min(mask.window, problem.N), min(mask.sinks, problem.N)


def first_queries(problem: Problem) -> int:
    """E: the queries that see everything before them."""
    r, s = window_of(problem)
    return min(problem.N, r + s)


def head_part(problem: Problem) -> Problem:
    """The first E tokens under a causal mask."""
    transformer = Transformer(problem.transformer.layers, CAUSAL)
    return replace(problem, N=first_queries(problem), transformer=transformer)


# --- cost formulas ---------------------------------------------------------------------------------------------------------


def rows_per_call(problem: Problem, variant: str) -> int:
    """Queries that one pass of a variant serves: the tail takes ceil((N-E)/this) passes."""
    r, s = window_of(problem)
    carried = problem.head.width + 1
    if variant == "token-wise":
        return problem.M - carried
    return r if variant == "blocks" else problem.M - carried - max(1 + r, s)


def smallest_length(problem: Problem, variant: str, *, carried_only: bool = False) -> int:
    """The least M that would do (`carried_only`: see `theorem_b5.best`)."""
    r, s = window_of(problem)
    carried = problem.head.width + 1
    if problem.transformer.mask.window is None or problem.N <= first_queries(problem):
        own = 0
    elif variant == "token-wise":
        own = carried + 1
    elif variant == "blocks":
        own = carried + r + s
    else:
        own = carried + max(1 + r, s) + 1
    return max(own, theorem_b5.least_length(head_part(problem), carried_only=carried_only))


def tail_rounds(problem: Problem, variant: str) -> list[int]:
    """Calls of the tail, round by round."""
    _, s = window_of(problem)
    rest = problem.N - first_queries(problem)
    if not rest:
        return []
    passes = ceiling(rest, rows_per_call(problem, variant))
    if variant == "token-wise":
        return [passes]
    if variant == "blocks":
        return [passes] * (3 if s else 2)
    finish = passes if s else ceiling(rest, problem.M - problem.head.width - 1)
    return [passes, passes, finish]


def calls_by_round(problem: Problem, variant: str, minimise: str, *, carried_only: bool = False) -> list[int]:
    """Calls of the whole construction, round by round: the first queries beside the tail."""
    first = head_part(problem)
    counts = list(theorem_b5.calls_by_round(first, theorem_b5.best(first, minimise, carried_only=carried_only)))
    tail = tail_rounds(problem, variant)
    counts += [0] * (len(tail) - len(counts))
    for now, n in enumerate(tail):
        counts[now] += n
    return counts


def best(problem: Problem, minimise: str, *, carried_only: bool = False) -> str:
    """The variant with the fewest calls, or rounds. Raises RequestError with the smallest M that would do."""
    smallest = {v: smallest_length(problem, v, carried_only=carried_only) for v in VARIANTS}
    fitting = [v for v in VARIANTS if problem.M >= smallest[v]]
    if not fitting:
        require(problem.M, min(smallest.values()), "repaired")

    def cost(variant: str) -> tuple[int, int]:
        counts = calls_by_round(problem, variant, minimise, carried_only=carried_only)
        return (len(counts), sum(counts)) if minimise == "rounds" else (sum(counts), len(counts))

    return min(fitting, key=cost)


# --- the repaired constructions --------------------------------------------------------------------------------------------------


@part_of("D.1")
def repaired(problem: Problem, variant: str, minimise: str = "calls") -> Program:
    """The program for a problem with L = H = 1 and a window mask."""
    machine = theorem_b5.causal_machine(problem)
    machine.mlp_cost += window_cost(problem)
    X = machine.input("X", problem.N, problem.kinds)
    return machine.program(attach(machine, X, problem, variant, minimise))


def window_cost(problem: Problem) -> int:
    """What the token-wise variant asks of an input map beyond the machine's O(d^2): a factor r + s, constant in the theorem."""
    r, s = window_of(problem)
    return 16 * (r + s) * (problem.d + 2) ** 2


@part_of("D.1")
def attach(
    machine: Machine, X: Stored, problem: Problem, variant: str, minimise: str = "calls", *, carried_only: bool = False
) -> Stored:
    """A variant on a matrix that the machine already holds. Raises RequestError when M is too small."""
    require(problem.M, smallest_length(problem, variant, carried_only=carried_only), variant)
    E, N = first_queries(problem), problem.N
    first = head_part(problem)
    aggregation = theorem_b5.best(first, minimise, carried_only=carried_only)
    answers = [theorem_b5.attach(machine, machine.rows(X, 0, E), first, aggregation)]
    if N > E:
        tail = {"token-wise": _token_wise, "blocks": _blocks, "prefix-difference": _prefix_difference}[variant]
        answers += tail(machine, X, problem)
    return machine.stack(*answers)


def _token_wise(machine: Machine, X: Stored, problem: Problem) -> list[Stored]:
    r, s = window_of(problem)
    E, N, rows = first_queries(problem), problem.N, rows_per_call(problem, "token-wise")
    calls = CausalCalls(machine, X, problem)
    extra = problem.head.width + 1
    answers, known = [], {}
    for start in range(E, N, rows):
        count = min(rows, N - start)
        if count not in known:
            known[count] = window_oracle(problem, count, r + s)
        padding = [start] * extra
        windows = [calls.take(X, padding + list(range(start - back, start - back + count))) for back in range(r)]
        sinks = [calls.take(X, [j] * (extra + count)) for j in range(s)]
        answer = machine.call(known[count], machine.join(*windows, *sinks), role="window")
        answers.append(machine.rows(answer, extra, answer.rows))
    return answers


def window_oracle(problem: Problem, rows: int, keys: int) -> Oracle:
    """The input map attends: rows `[query token | key tokens]`, the query being the first key; it passes on `B + cA` and `A`."""
    head, d, m, bound = problem.head, problem.d, problem.head.width, problem.value_bound

    def sums(x: list[Wire]) -> list[Wire]:
        tokens = [x[t * d : (t + 1) * d] for t in range(keys)]
        query = _project(tokens[0], head.W_Q)
        weights = [_dot(query, _project(token, head.W_K)).exp() for token in tokens]
        values = [_project(token, head.W_V) for token in tokens]
        B = [_total([w * (v[c] + bound) for w, v in zip(weights, values, strict=True)]) for c in range(m)]
        return [*B, _total(weights)]

    kinds = problem.kinds * keys
    return _passing_on(problem, rows, kinds, sums)


def finish_oracle(problem: Problem, rows: int) -> Oracle:
    """Passes on sums `(B + cA, A)` that earlier calls found, and divides."""
    return _passing_on(problem, rows, (Kind.VALUE,) * (problem.head.width + 1), lambda x: x)


def _passing_on(problem: Problem, rows: int, kinds: Sequence[Kind], sums: Callable[[list[Wire]], list[Wire]]) -> Oracle:
    """m+1 rows of transport, then `rows` rows whose sums the input map knows; the layer MLP divides and goes on with the large MLP."""
    m, bound = problem.head.width, problem.value_bound
    carried = m + 1

    def own(x: list[Wire]) -> list[Wire | int]:
        return [*(total.log() for total in sums(x)), *[0] * carried]

    def role(c: int) -> TokenMap:
        return TokenMap.trace(kinds, lambda x: [*[0] * carried, *one_hot(c, carried)])

    ranges = [(at, at + 1, role(c)) for at, c in enumerate([m, *range(m)])]
    ranges.append((carried, carried + rows, TokenMap.trace(kinds, own)))
    identity = RationalMatrix.identity(carried)
    W_Q = RationalMatrix.blocks(2 * carried, carried, [(0, 0, identity)])
    W_K = W_V = RationalMatrix.blocks(2 * carried, carried, [(carried, 0, identity)])

    def divide(out: list[Wire]) -> Sequence[Wire]:
        return problem.mlp([out[c] / out[m] - bound for c in range(m)])

    mlp = TokenMap.trace([Kind.VALUE] * carried, divide)
    return Oracle(PositionalMap(tuple(ranges)), (Layer((Head(W_Q, W_K, W_V),), mlp),), CAUSAL)


def _blocks(machine: Machine, X: Stored, problem: Problem) -> list[Stored]:
    r, s = window_of(problem)
    E, N = first_queries(problem), problem.N
    calls = CausalCalls(machine, X, problem)
    answers = []
    for start in range(E, N, r):
        count = min(r, N - start)
        own = calls.forward(start, start, count, [], base=1, last=False)
        last = not s
        both = calls.reverse(start - r, start, r, count, [own], base=0 if last else 1, last=last)
        answers.append(both if last else _with_sinks(calls, start, count, s, both))
    return answers


def _with_sinks(calls: CausalCalls, start: int, count: int, s: int, sums: Stored) -> Stored:
    """The last call for `count` queries: the sinks are its only keys; the queries' own rows have key 0 and value 0."""
    shape = Shape(0, 1, (True,) * s + (False,) * count, True)
    keys = [*range(s), *[0] * count]
    queries = [*[start] * s, *range(start, start + count)]
    carried = calls.take(sums, [*[0] * s, *range(count)])
    answer = calls.call(shape, keys, queries, [carried], role="sinks")
    return calls.machine.rows(answer, s, answer.rows)


def _prefix_difference(machine: Machine, X: Stored, problem: Problem) -> list[Stored]:
    r, s = window_of(problem)
    E, N, rows = first_queries(problem), problem.N, rows_per_call(problem, "prefix-difference")
    calls = CausalCalls(machine, X, problem)
    sums = []
    for start in range(E, N, rows):
        count = min(rows, N - start)
        before = calls.forward(start - r, start, count, [], base=1, last=False)
        shape = Shape(1, 1, (True,) * (r + count), False, subtract=True)
        queries = [*[start] * r, *range(start, start + count)]
        carried = calls.take(before, [*[0] * r, *range(count)])
        both = calls.call(shape, range(start - r, start + count), queries, [carried], role="difference")
        both = machine.rows(both, r, both.rows)
        sums.append(_with_sinks(calls, start, count, s, both) if s else both)
    if s:
        return sums
    total, answers = machine.stack(*sums), []
    extra, most = problem.head.width + 1, problem.M - problem.head.width - 1
    for at in range(0, N - E, most):
        count = min(most, N - E - at)
        given = calls.take(total, [at] * extra + list(range(at, at + count)))
        answer = machine.call(finish_oracle(problem, count), given, role="finish")
        answers.append(machine.rows(answer, extra, answer.rows))
    return answers


def _project(x: Sequence[Wire], W: RationalMatrix) -> list[Wire]:
    """x W for one token, zero entries skipped."""
    out = []
    for column in W.columns:
        terms = [x[i] * factor for i, factor in column]
        out.append(_total(terms) if terms else x[0].constant(0))
    return out


def _dot(q: Sequence[Wire], k: Sequence[Wire]) -> Wire:
    return _total([a * b for a, b in zip(q, k, strict=True)])


def _total(wires: Sequence[Wire]) -> Wire:
    total = wires[0]
    for wire in wires[1:]:
        total = total + wire
    return total
