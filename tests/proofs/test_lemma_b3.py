"""Lemma B.3: packing across heads and layers; the printed packing's certificate; mutants are caught."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs import REGISTRY, lemma_b3
from proofs.lemma_b3 import Bounds, carried_numbers, interpolate, largest_instance, pack
from tests.independent import head_exp, head_exp2
from tests.proofs.test_lemma_b1 import assert_close
from verify.arithmetic.ball import Ball, working_precision
from verify.arithmetic.exact import Exact2, ExactE
from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import RuleBroken
from verify.oracle.machine import Machine
from verify.oracle.oracle import Oracle
from verify.oracle.program import Program
from verify.oracle.run import run
from verify.transformer.attention import CAUSAL, NO_MASK, Head, Mask
from verify.transformer.model import Layer
from verify.transformer.token_map import PositionalMap, TokenMap


def one_by_one(heads: list[Head], rows: int, mask: Mask, M: int) -> Program:
    """One call for each head, on its own columns."""
    machine = Machine(M, 8)
    d = heads[0].W_Q.height
    kinds = (Kind.NUMBER,) * d
    X = machine.input("X", rows, kinds * len(heads))
    outputs = []
    for c, head in enumerate(heads):
        oracle = Oracle(
            PositionalMap(((0, rows, TokenMap.identity(kinds)),)),
            (Layer((head,), TokenMap.trace([Kind.VALUE] * d, lambda x: [w * 2 - 1 for w in x])),),
            mask,
        )
        outputs.append(machine.call(oracle, machine.columns(X, c * d, (c + 1) * d)))
    return machine.program(machine.join(*outputs))


def packed(program: Program, heads: int, layers: int, *, residual: bool = False) -> Program:
    machine = Machine(200, 40, residual=residual)
    return pack(program, machine, heads=heads, layers=layers, bounds=Bounds(Fraction(8), Fraction(64)))


@st.composite
def several(draw: st.DrawFn):
    rows, d = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    layers, heads = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    count = draw(st.integers(1, layers * heads + 2))
    entry = st.integers(-2, 2).map(Fraction)
    matrix = st.lists(st.lists(st.integers(-1, 1).map(Fraction), min_size=d, max_size=d), min_size=d, max_size=d)
    X = draw(st.lists(st.lists(entry, min_size=d * count, max_size=d * count), min_size=rows, max_size=rows))
    weights = [(draw(matrix), draw(matrix), draw(matrix)) for _ in range(count)]
    return rows, d, layers, heads, X, weights, draw(st.booleans())


def expected_rows(evaluate, d, X, weights, causal):
    sees = (lambda i, j: j <= i) if causal else (lambda i, j: True)
    parts = [evaluate([row[c * d : (c + 1) * d] for row in X], *W, sees=sees) for c, W in enumerate(weights)]
    with mpmath.workdps(60):
        return [[2 * x - 1 for part in parts for x in part[i]] for i in range(len(X))]


def program_of(rows, d, X, weights, causal) -> Program:
    heads = [Head(*(RationalMatrix.of(W) for W in triple)) for triple in weights]
    return one_by_one(heads, rows, CAUSAL if causal else NO_MASK, rows)


@pytest.mark.parametrize("residual", [False, True])
@settings(max_examples=40)
@given(several())
def test_packing_is_exact_against_fractions(residual, case):
    rows, d, layers, heads, X, weights, causal = case
    program = packed(program_of(rows, d, X, weights, causal), heads, layers, residual=residual)
    arithmetic = Exact2()
    output = run(program, arithmetic, {"X": [arithmetic.numbers(column) for column in zip(*X, strict=True)]})
    got = [[Fraction(int(x.p), int(x.q)) for x in row] for row in zip(*output, strict=True)]
    assert got == expected_rows(head_exp2, d, X, weights, causal)
    assert program.cost.calls == -(-len(weights) // (heads * layers))
    assert (program.cost.layers, program.cost.heads) == (layers, heads)


@settings(max_examples=12)
@given(several())
def test_packing_in_exact_exp_and_balls_against_mpmath(case):
    rows, d, layers, heads, X, weights, causal = case
    program = packed(program_of(rows, d, X, weights, causal), heads, layers)
    expected = expected_rows(lambda *a, sees: head_exp(*a, digits=60, sees=sees), d, X, weights, causal)
    arithmetic = ExactE(1)
    output = run(program, arithmetic, {"X": [arithmetic.numbers(column) for column in zip(*X, strict=True)]})
    with working_precision(400):
        ball = Ball("exp", 400)
        balls = run(program, ball, {"X": [ball.numbers(column) for column in zip(*X, strict=True)]})
    for c in range(len(output)):
        for i in range(rows):
            assert_close(arithmetic.enclose(output[c][i], 250), expected[i][c])
            assert_close(balls[c][i], expected[i][c])


@given(st.integers(-3, 12), st.integers(2, 14))
def test_interpolation_gives_indicators(x, n):
    points = list(range(-3, -3 + n))
    if x not in points:
        return
    token_map = TokenMap.trace([Kind.NUMBER], lambda w: interpolate(w[0], points))
    arithmetic = Exact2()
    values = [column[0] for column in token_map.apply(arithmetic, [arithmetic.numbers([Fraction(x)])])]
    assert values == [int(p == x) for p in points]


def test_rows_that_do_not_fit_are_refused():
    head = Head(*(RationalMatrix.identity(1) for _ in range(3)))
    program = one_by_one([head, head], 3, NO_MASK, 3)
    T = carried_numbers([[1], [1]], [[1], [1]])
    assert T == 2
    pack(program, Machine(3 + T + 1, 8), heads=1, layers=2, bounds=Bounds(Fraction(8), Fraction(8)))
    with pytest.raises(RuleBroken, match="input length"):
        pack(program, Machine(3 + T, 8), heads=1, layers=2, bounds=Bounds(Fraction(8), Fraction(8)))
    assert largest_instance(3 + T + 1, layers=2, width=1, output=1) == 3
    assert largest_instance(7, layers=1, width=1, output=1) == 7


# --- as printed -----------------------------------------------------------------------------------------------------------


def test_the_certificate_stands_on_its_own():
    """Layer 1's printed values, multiplied out with plain fractions: the second block never enters."""
    for M, d in ((1, 1), (2, 2)):
        certificate = lemma_b3.lost_block(M, d)
        assert certificate["layer 1 outputs"][0] == certificate["layer 1 outputs"][1]
        required = [[[Fraction(x) for x in row] for row in rows] for rows in certificate["required"]]
        assert required == [[[Fraction(v)] * d] * M for v in (0, 1)]


def test_correcting_the_printed_values_removes_the_failure(monkeypatch):
    """If W^V' kept the other block (which would need attention weights that do not mix: here M = 1), nothing would be lost."""
    original = lemma_b3.RationalMatrix.blocks

    def keep_everything(height, width, placed):
        if height == width == 2:
            return RationalMatrix.identity(2)
        return original(height, width, placed)

    monkeypatch.setattr(lemma_b3.RationalMatrix, "blocks", staticmethod(keep_everything))
    certificate = lemma_b3.lost_block(1, 1)
    assert certificate["layer 1 outputs"][0] != certificate["layer 1 outputs"][1]


@given(st.integers(1, 4), st.integers(1, 2), st.data())
def test_no_narrower_linear_pass_through(M, d, data):
    """Random narrow factors never multiply to the block-diagonal matrix that a pass-through needs."""
    k = M * d - 1
    if k == 0:
        return
    entry = st.integers(-4, 4)
    W = [[data.draw(entry) for _ in range(k)] for _ in range(M * d)]
    Psi = [[data.draw(entry) for _ in range(M * d)] for _ in range(k)]
    assert (fmpq_mat(W) * fmpq_mat(Psi)).rank() < lemma_b3.pass_through_columns(M, d)


# --- mutants -----------------------------------------------------------------------------------------------------------------


def caught() -> bool:
    return any(not check.run().as_expected for check in REGISTRY.find("B.3").checks)


def forget_the_role(monkeypatch):
    monkeypatch.setattr(lemma_b3, "interpolate", lambda x, points: [x.constant(int(p == 0)) for p in points])


def roles_shifted(monkeypatch):
    original = lemma_b3.interpolate
    monkeypatch.setattr(lemma_b3, "interpolate", lambda x, points: original(x, [p + 1 for p in points]))


def shift_not_subtracted(monkeypatch):
    monkeypatch.setattr(
        lemma_b3._Packing, "decode", lambda self, item, weight: weight.log() if item.kind is Kind.SCORE else weight
    )


def keys_of_synthetic_rows_kept(monkeypatch):
    monkeypatch.setattr(
        lemma_b3._Packing, "idle_weight", lambda self, item: Fraction(3) if item.kind is not Kind.SCORE else Fraction(1)
    )


def one_number_too_few(monkeypatch):
    original = lemma_b3.carried_numbers
    monkeypatch.setattr(lemma_b3, "carried_numbers", lambda w, o: max(0, original(w, o) - 1))


def answers_of_the_wrong_rows(monkeypatch):
    original = lemma_b3.Machine.rows

    def mutant(self, m, start, stop):
        return (
            original(self, m, start - 1, stop - 1) if stop == m.rows and start > 1 else original(self, m, start, stop)
        )

    monkeypatch.setattr(lemma_b3.Machine, "rows", mutant)


@pytest.mark.parametrize(
    "mutate",
    [
        forget_the_role,
        roles_shifted,
        shift_not_subtracted,
        keys_of_synthetic_rows_kept,
        one_number_too_few,
        answers_of_the_wrong_rows,
    ],
    ids=lambda f: f.__name__,
)
def test_mutant_is_caught(mutate, monkeypatch):
    mutate(monkeypatch)
    assert caught()


def test_without_a_mutant_everything_is_as_expected():
    assert not caught()
    assert all(check.run().as_expected for check in REGISTRY.find("R2").checks)
