"""Running a program: calls of one round may run together, and it makes no difference."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.arithmetic.exact import Exact2
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.oracle.machine import Machine
from verify.oracle.oracle import Oracle
from verify.oracle.run import run
from verify.transformer.attention import CAUSAL, NO_MASK, Head, Mask
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap

NUMBER, VALUE = Kind.NUMBER, Kind.VALUE


def oracle(mask: Mask, *, shared: bool, residual: bool = False) -> Oracle:
    """Two heads on tokens of two numbers; the first row gets (x + y, 0), the others (x + y, y) or, not shared, (x - y, y)."""
    one = RationalMatrix.identity(1)
    first = TokenMap.trace([NUMBER] * 2, lambda x: [x[0] + x[1], 0])
    others = TokenMap.trace([NUMBER] * 2, lambda x: [x[0] + x[1] if shared else x[0] - x[1], x[1]])
    head = Head(one, one, one)
    mlp = TokenMap.trace([VALUE] * 2 + [NUMBER] * 2 * residual, lambda x: [(x[0] * x[1]).round(0), x[1].round(0)])
    return Oracle(PositionalMap(((0, 1, first), (1, 3, others))), (Layer((head, head), mlp, residual),), mask)


def by_hand(mask: Mask, shared: bool, tokens: list[list[Fraction]]) -> list[list[Fraction]]:
    """The same oracle in plain fractions."""
    rows = [[x + y if shared or i == 0 else x - y, y if i else Fraction(0)] for i, (x, y) in enumerate(tokens)]
    out = []
    for i in range(3):
        seen = range(i + 1) if mask.causal else range(3)
        mean = []
        for c in range(2):
            weights = {j: Fraction(2) ** int(rows[i][c] * rows[j][c]) for j in seen}
            mean.append(sum(w * rows[j][c] for j, w in weights.items()) / sum(weights.values()))

        def near(x: Fraction) -> Fraction:
            return Fraction((x + Fraction(1, 2)).__floor__())

        out.append([near(mean[0] * mean[1]), near(mean[1])])
    return out


@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=2, max_size=2), min_size=3, max_size=15),
    st.sampled_from([0, 1, 3, 7, 256]),
    st.booleans(),
    st.booleans(),
)
def test_calls_run_together_answer_as_they_do_alone(rows, batch_rows, causal, shared):
    """Two rounds: groups of three tokens, then groups made of answers; against plain fractions."""
    count = len(rows) // 3
    tokens = [[Fraction(x) for x in row] for row in rows[: 3 * count]]
    mask = CAUSAL if causal else NO_MASK
    ask = oracle(mask, shared=shared)
    machine = Machine(3, 2)
    X = machine.input("X", 3 * count, [NUMBER] * 2)
    first = [machine.call(ask, machine.rows(X, 3 * i, 3 * i + 3)) for i in range(count)]
    second = [machine.call(ask, answer) for answer in first]
    program = machine.program(machine.stack(*second))

    arithmetic = Exact2()
    arithmetic.batch_rows = batch_rows
    seen = []
    columns = [arithmetic.numbers(list(column)) for column in zip(*tokens, strict=True)]
    out = run(program, arithmetic, {"X": columns}, watch=lambda call, given, answer: seen.append((given, answer)))

    expected = [by_hand(mask, shared, tokens[3 * i : 3 * i + 3]) for i in range(count)]
    twice = [row for group in expected for row in by_hand(mask, shared, group)]
    assert [[Fraction(int(x.p), int(x.q)) for x in row] for row in zip(*out, strict=True)] == twice
    assert len(seen) == 2 * count
    for given_columns, answer in seen:
        assert answer == ask.run(arithmetic, given_columns)


def test_a_positional_map_refuses_another_number_of_columns():
    with pytest.raises(TypeError, match="takes 2 columns, not 1"):
        oracle(NO_MASK, shared=True).run(Exact2(), [Exact2().numbers([Fraction(1)] * 3)])


def test_what_nobody_reads_is_not_run():
    machine = Machine(3, 2)
    X = machine.input("X", 3, [NUMBER] * 2)
    machine.input("absent", 3, [NUMBER] * 2)
    kept = machine.rows(X, 0, 1)
    arithmetic = Exact2()
    out = run(machine.program(kept), arithmetic, {"X": [arithmetic.numbers([Fraction(i)] * 3) for i in (1, 2)]})
    assert [list(column) for column in out] == [[1], [2]]
