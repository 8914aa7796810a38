"""The machine enforces every rule, counts what it is told to count, and lets no number out."""

from __future__ import annotations

from fractions import Fraction

import pytest

from verify.arithmetic.exact import Exact2
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import RuleBroken
from verify.oracle.machine import (
    INPUT_LENGTH,
    OUTSIDE_ARITHMETIC,
    PADDING,
    RESIDUAL,
    ROW_GATHER,
    TOKEN_MAP_COST,
    Machine,
)
from verify.oracle.oracle import Oracle
from verify.oracle.run import run
from verify.transformer.attention import Head
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap

NUMBER, SCORE, VALUE = Kind.NUMBER, Kind.SCORE, Kind.VALUE


def plain(rows: int, d: int = 1, *, residual: bool = False, steps: int = 0) -> Oracle:
    """One head with identity matrices; an MLP of `steps` additions."""
    identity = RationalMatrix.identity(d)
    kinds = [NUMBER] * d

    def mlp(x):
        y = x[0]
        for _ in range(steps):
            y = y + x[0]
        return [y, *x[1:d]]

    layer = Layer((Head(identity, identity, identity),), TokenMap.trace([VALUE] * d + kinds * residual, mlp), residual)
    return Oracle(PositionalMap(((0, rows, TokenMap.identity(kinds)),)), (layer,))


def rule(call) -> tuple[str, int, int]:
    with pytest.raises(RuleBroken) as caught:
        call()
    return caught.value.rule, caught.value.limit, caught.value.needed


def test_inputs_longer_than_m_are_refused():
    machine = Machine(3, 1)
    machine.call(plain(3), machine.input("X", 3, [NUMBER]))
    assert rule(lambda: machine.call(plain(4), machine.input("Y", 4, [NUMBER]))) == (INPUT_LENGTH, 3, 4)


def test_padding_beyond_the_limit_is_refused():
    """d = 1: at most 4 (1+2)^2 = 36 constants in one input."""
    machine = Machine(40, 1)
    machine.call(plain(36), machine.constants([[0]] * 36))
    assert rule(lambda: machine.call(plain(37), machine.constants([[0]] * 37))) == (PADDING, 36, 37)
    mixed = machine.stack(machine.input("X", 3, [NUMBER]), machine.constants([[1]] * 37))
    assert rule(lambda: machine.call(plain(40), mixed)) == (PADDING, 36, 37)


def test_costly_token_maps_are_refused():
    """d = 1: at most 16 (1+2)^2 = 144 operations, besides the large transformer's own."""
    machine = Machine(3, 1)
    X = machine.input("X", 3, [NUMBER])
    machine.call(plain(3, steps=144), X)
    assert rule(lambda: machine.call(plain(3, steps=145), X)) == (TOKEN_MAP_COST, 144, 145)
    Machine(3, 1, mlp_cost=1).call(plain(3, steps=145), Machine(3, 1).input("X", 3, [NUMBER]))


def test_gather_outside_arithmetic_and_residual_are_refused_unless_declared_or_waived():
    machine = Machine(3, 1)
    X = machine.input("X", 3, [NUMBER])
    assert rule(lambda: machine.gather(X, [2, 0])) == (ROW_GATHER, 0, 2)
    assert Machine(3, 1, declared_gather=True).gather(X, [2, 0]).rows == 2
    double = TokenMap.trace([NUMBER], lambda x: [x[0] * 2])
    assert rule(lambda: machine.outside(double, X, detail="here"))[0] == OUTSIDE_ARITHMETIC
    assert rule(lambda: machine.call(plain(3, residual=True), X))[0] == RESIDUAL
    Machine(3, 1, residual=True).call(plain(3, residual=True), X)


def test_a_waived_rule_is_reported_once_with_the_largest_need():
    machine = Machine(2, 1, waive=(INPUT_LENGTH,))
    for rows in (3, 5, 4):
        out = machine.call(plain(rows), machine.input(f"X{rows}", rows, [NUMBER]))
    broken = machine.program(out).broken_rules
    assert [(b.rule, b.limit, b.needed) for b in broken] == [(INPUT_LENGTH, 2, 5)]


def test_counts_of_a_program_made_by_hand():
    """Two calls side by side, one on top of both (a diamond): 3 calls, 2 rounds; a call that nothing uses still counts."""
    machine = Machine(4, 2)
    X = machine.input("X", 4, [NUMBER, NUMBER])
    one, two = (machine.call(plain(4, 1), machine.columns(X, c, c + 1)) for c in (0, 1))
    both = machine.join(one, two)
    kinds = [VALUE] * 2
    identity = RationalMatrix.identity(2)
    nothing = RationalMatrix.zero(2, 1)
    top = Oracle(
        PositionalMap(((0, 4, TokenMap.identity(kinds)),)),
        (Layer((Head(nothing, nothing, identity),), TokenMap.trace(kinds, lambda x: [x[0] / x[1], x[1].log()])),),
    )
    cost = machine.program(machine.call(top, both, role="top")).cost
    assert (cost.calls, cost.rounds, cost.longest_input, cost.layers, cost.heads) == (3, 2, 4, 1, 1)
    assert cost.embedding == 2
    assert cost.parameters == 3 * 2 * 2 + 1
    assert cost.token_map_cost == 2
    assert cost.operations == ("division", "log")


def test_scores_and_values_do_not_mix():
    machine = Machine(3, 1)
    value = machine.call(plain(3), machine.input("X", 3, [NUMBER]))
    with pytest.raises(TypeError):
        machine.call(plain(3), value)
    score = machine.input("S", 3, [SCORE])
    with pytest.raises(TypeError):
        machine.stack(score, value)
    identity = RationalMatrix.identity(1)
    averaging = Oracle(
        PositionalMap(((0, 3, TokenMap.identity([SCORE])),)),
        (Layer((Head(identity, identity, identity),), TokenMap.identity([VALUE])),),
    )
    with pytest.raises(TypeError, match="score is averaged"):
        machine.call(averaging, score)


def test_no_number_can_be_reached_through_what_the_machine_hands_out():
    machine = Machine(3, 1)
    stored = machine.call(plain(3), machine.input("X", 3, [NUMBER]))
    assert set(vars(stored)) == {"slot", "rows", "kinds", "round", "padded"}


def test_arrangements_move_rows_and_columns_and_nothing_else():
    machine = Machine(9, 2, declared_gather=True)
    X = machine.input("X", 4, [NUMBER, NUMBER])
    built = machine.join(
        machine.stack(machine.rows(X, 2, 4), machine.constants([[7, 8]])), machine.gather(X, [3, 0, 0])
    )
    program = machine.program(machine.columns(built, 1, 3))
    arithmetic = Exact2()
    X_columns = [arithmetic.numbers([Fraction(x) for x in column]) for column in ((1, 2, 3, 4), (10, 20, 30, 40))]
    output = run(program, arithmetic, {"X": X_columns})
    assert [[int(x.p) for x in column] for column in output] == [[30, 40, 8], [4, 1, 1]]
    with pytest.raises(ValueError, match="must be 4 x 2"):
        run(program, arithmetic, {"X": X_columns[:1]})
    for wrong in (lambda: machine.rows(X, 1, 5), lambda: machine.columns(X, 2, 2), lambda: machine.gather(X, [4])):
        with pytest.raises(ValueError):
            wrong()
