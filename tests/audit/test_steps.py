"""Condition numbers of the steps, against their formulas in plain fractions."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from tests.audit.examples import subject
from verify.arithmetic.ball import working_precision
from verify.audit.steps import conditions
from verify.transformer.attention import Mask

X = [[Fraction(n)] for n in (1, -2, 0, 3, 1, 2)]
ONE = [[Fraction(1)]]


def close(found: arb, wanted: Fraction) -> bool:
    with working_precision(128):
        return bool(abs(found - arb(wanted.numerator) / wanted.denominator) < arb(10) ** -20)


def test_the_printed_inversion_has_condition_a_plus_one() -> None:
    """Blocks of three keys: the largest sum of weights of a block, plus one."""
    case = subject("exp2", X, (ONE, ONE, ONE), 3, "printed")
    found = {step.step: step for step in conditions(case.program, "exp2", case.columns)}
    sums = [sum(Fraction(2) ** int(q[0] * k[0]) for k in X[t : t + 3]) for q in X for t in (0, 3)]
    # The synthetic row's own query is the zero token, which sees three equal weights.
    assert close(found["ratio inversion"].condition, max([*sums, Fraction(3)]) + 1)
    with working_precision(128):
        assert close(found["attention weights"].condition / arb.const_log2(), Fraction(9 + 1))


def test_a_quotient_has_condition_two_and_a_shift_what_it_cancels() -> None:
    case = subject("exp2", X, (ONE, ONE, ONE), 4, "repaired")
    found = {step.step: step for step in conditions(case.program, "exp2", case.columns)}
    assert close(found["recovery of the sums"].condition, Fraction(2))
    # out = (B + cA)/A - c with c = 8 (entries are below 4, so values below 8): condition 2 |out + 8| / |out|, the largest over the rows.
    worst = Fraction(0)
    for q in X:
        weights = [Fraction(2) ** int(q[0] * k[0]) for k in X]
        out = sum((w * k[0] for w, k in zip(weights, X, strict=True)), Fraction(0)) / sum(weights)
        worst = max(worst, 2 * abs(out + 8) / abs(out))
    assert close(found["last quotient"].condition, worst)


def test_the_prefix_difference_has_the_condition_of_its_cancellation() -> None:
    """Theorem D.1 as a plain prefix difference: at least (T + P)/(T - P) for some row."""
    tokens = [[Fraction(n)] for n in (6, 1, 1, 1)]
    mask = Mask(causal=True, window=1)
    case = subject("exp2", tokens, (ONE, ONE, ONE), 9, "prefix-difference", mask)
    found = {step.step: step for step in conditions(case.program, "exp2", case.columns)}
    # Row 1 sees itself (weight 2) and not the first token (weight 2^6).
    lost = max(step.condition for name, step in found.items() if "MLP" in name or "difference" in name)
    assert lost > (2**6 + 2**6 + 2) / 2


def test_what_a_map_passes_on_is_no_step() -> None:
    case = subject("exp2", X, (ONE, ONE, ONE), 6, "repaired")
    assert {step.step for step in conditions(case.program, "exp2", case.columns)} == {
        "attention weights",
        "attention average",
    }
