"""A measured error never exceeds the forward bound, in any format; a run that rounds more than it says does."""

from __future__ import annotations

from fractions import Fraction

import gmpy2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audit.examples import subject, subjects
from verify.arithmetic.ball import working_precision
from verify.arithmetic.rounded import FORMATS, Format, Rounded, bits
from verify.audit.audit import Options, Subject, rounded_run
from verify.audit.bound import forward_bound
from verify.audit.error import measure

formats = st.sampled_from([bits(9), bits(24), bits(61), bits(150), *FORMATS.values()])


def excess(case: Subject, options: Options, format: Format) -> bool:
    """Whether the measured error is above the bound."""
    output, _ = rounded_run(case, options, format)
    measured = measure(output, case.truth, format.precision)
    wide = options.arithmetic(case.kernel, format).accumulate
    bound = forward_bound(case.program, case.kernel, case.columns, format, wide, options.shifted)
    with working_precision(64):
        return bool(measured.absolute.lower > bound.absolute) or bool(measured.relative.lower > bound.relative)


@settings(max_examples=60)
@given(subjects("exp"), formats, st.booleans(), st.sampled_from([None, 40]))
def test_exp_errors_stay_below_the_bound(case: Subject, format: Format, shifted: bool, wide: int | None) -> None:
    options = Options(format, Fraction(1), None if wide is None else bits(wide), shifted)
    assert not excess(case, options, format)


@settings(max_examples=40)
@given(subjects("exp2"), formats, st.booleans())
def test_exp2_errors_stay_below_the_bound(case: Subject, format: Format, shifted: bool) -> None:
    assert not excess(case, Options(format, Fraction(1), None, shifted), format)


X = [[Fraction(n, 7), Fraction(3 - n, 5)] for n in range(6)]
W = ([[Fraction(1, 3), Fraction(1)], [Fraction(2), Fraction(1, 7)]],) * 3


@pytest.mark.parametrize("construction", ["printed", "repaired", "chained", "per-query", "residual"])
def test_the_bound_is_finite_and_not_absurd(construction: str) -> None:
    """At 60 bits it is within 2^12 of what is measured."""
    case, format = subject("exp", X, W, 6 if construction != "printed" else 3, construction), bits(60)
    options = Options(format, Fraction(1))
    output, exceptions = rounded_run(case, options, format)
    measured = measure(output, case.truth, 60)
    bound = forward_bound(case.program, case.kernel, case.columns, format)
    assert exceptions == ()
    with working_precision(64):
        assert measured.relative.upper <= bound.relative <= measured.relative.lower * 2**12


@pytest.mark.parametrize("construction", ["printed", "repaired", "per-query"])
def test_weights_of_fewer_bits_than_stated_are_noticed(construction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights rounded to 40 bits in a run that claims 60."""
    case = subject("exp", X, W, 6 if construction != "printed" else 3, construction)
    honest = Rounded.weights

    def sloppy(self: Rounded, scores: object) -> object:
        context = gmpy2.context(precision=40)
        return [(seen, [context.plus(w) for w in row]) for seen, row in honest(self, scores)]

    monkeypatch.setattr(Rounded, "weights", sloppy)
    assert excess(case, Options(bits(60), Fraction(1)), bits(60))


@pytest.mark.parametrize("operation", ["divide", "log", "add"])
def test_truncated_operations_of_fewer_bits_are_noticed(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = subject("exp", X, W, 4, "repaired")
    honest = getattr(Rounded, operation)

    def sloppy(self: Rounded, *columns: object) -> object:
        context = gmpy2.context(precision=45, round=gmpy2.RoundToZero)
        return [context.plus(x) for x in honest(self, *columns)]

    monkeypatch.setattr(Rounded, operation, sloppy)
    assert excess(case, Options(bits(60), Fraction(1)), bits(60))


def test_overflow_makes_the_bound_infinite() -> None:
    big = [[Fraction(9), Fraction(0)], [Fraction(0), Fraction(1)]]
    case = subject("exp", big, ([[Fraction(2), Fraction(0)], [Fraction(0), Fraction(0)]],) * 3, 6, "repaired")
    bound = forward_bound(case.program, "exp", case.columns, FORMATS["float16"])
    assert not bound.relative.is_finite()
    output, exceptions = rounded_run(case, Options(FORMATS["float16"], Fraction(1)), FORMATS["float16"])
    assert "overflow" in exceptions and not measure(output, case.truth, 11).finite
