"""Rounded arithmetic against rounding written out in plain fractions, and against numpy in the machine formats."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import gmpy2
import mpmath
import numpy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from verify.arithmetic.interface import Visible
from verify.arithmetic.matrix import RationalMatrix
from verify.arithmetic.rounded import FORMATS, MOST_BITS, Format, Rounded, bits
from verify.errors import UnsupportedOperation

F16 = FORMATS["float16"]


def nearest(x: Fraction, format: Format) -> Fraction | None:
    """x rounded to nearest, ties to even, by the definition of the format; None for an overflow."""
    if not x:
        return x
    size, exponent = abs(x), 0
    while size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while size < Fraction(2) ** exponent:
        exponent -= 1
    if format.least is not None:
        exponent = max(exponent, format.least)
    unit = Fraction(2) ** (exponent - format.precision + 1)
    whole = size / unit
    low = whole.__floor__()
    rest = whole - low
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2):
        low += 1
    rounded = low * unit
    if format.greatest is not None and rounded >= Fraction(2) ** (format.greatest + 1):
        return None
    return rounded if x > 0 else -rounded


def plain(x: object) -> Fraction | None:
    """A rounded number as a fraction, None for an infinity."""
    if gmpy2.is_infinite(x):
        return None
    p, q = x.as_integer_ratio()  # type: ignore[attr-defined]
    return Fraction(int(p), int(q))


formats = st.one_of(st.sampled_from(list(FORMATS.values())), st.integers(2, 80).map(bits))
rationals = st.builds(
    lambda p, q, e: Fraction(p, q) * Fraction(2) ** e,
    st.integers(-(10**9), 10**9),
    st.integers(1, 10**6),
    st.integers(-40, 40),
)


@given(formats, st.lists(rationals, min_size=1, max_size=5))
def test_reading_rounds_once_to_nearest(format: Format, entries: list[Fraction]) -> None:
    arithmetic = Rounded("exp", format)
    assert [plain(x) for x in arithmetic.numbers(entries)] == [nearest(x, format) for x in entries]


@given(formats, rationals, rationals)
def test_every_operation_rounds_the_exact_result(format: Format, x: Fraction, y: Fraction) -> None:
    arithmetic = Rounded("exp2", format)
    a, b = arithmetic.numbers([x]), arithmetic.numbers([y])
    x, y = plain(a[0]), plain(b[0])  # type: ignore[assignment]
    assume(x is not None and y is not None)
    assert plain(arithmetic.add(a, b)[0]) == nearest(x + y, format)
    assert plain(arithmetic.subtract(a, b)[0]) == nearest(x - y, format)
    assert plain(arithmetic.multiply(a, b)[0]) == nearest(x * y, format)
    if y:
        assert plain(arithmetic.divide(a, b)[0]) == nearest(x / y, format)
        assert plain(arithmetic.scale(a, y)[0]) == nearest(x * y, format)


@given(st.sampled_from(["float16", "float32", "float64"]), st.floats(width=16), st.floats(width=16))
def test_the_machine_formats_are_those_of_numpy(name: str, x: float, y: float) -> None:
    """Subnormal numbers, infinities and NaN included."""
    arithmetic, kind = Rounded("exp", FORMATS[name]), getattr(numpy, name)
    a, b = [gmpy2.mpfr(x)], [gmpy2.mpfr(y)]
    with numpy.errstate(all="ignore"):
        pairs = [
            (arithmetic.add(a, b)[0], kind(x) + kind(y)),
            (arithmetic.subtract(a, b)[0], kind(x) - kind(y)),
            (arithmetic.multiply(a, b)[0], kind(x) * kind(y)),
            (arithmetic.divide(a, b)[0], kind(x) / kind(y)),
        ]
    for ours, theirs in pairs:
        assert (gmpy2.is_nan(ours) and numpy.isnan(theirs)) or float(ours) == float(theirs)


@pytest.mark.parametrize("name", FORMATS)
def test_limits_of_the_machine_formats(name: str) -> None:
    format = FORMATS[name]
    arithmetic = Rounded("exp", format)
    assert format.largest is not None
    largest = arithmetic.numbers([format.largest])
    assert plain(largest[0]) == format.largest and arithmetic.exceptions == ()
    assert plain(arithmetic.add(largest, largest)[0]) is None
    assert arithmetic.exceptions == ("overflow",)
    smallest = arithmetic.numbers([2 * format.tiny])
    assert plain(smallest[0]) == 2 * format.tiny
    assert not arithmetic.multiply(smallest, smallest)[0]
    infinite = arithmetic.divide(largest, arithmetic.numbers([Fraction(0)]))
    assert gmpy2.is_nan(arithmetic.subtract(infinite, infinite)[0])
    assert arithmetic.exceptions == ("overflow", "invalid operation (NaN)", "division by zero", "underflow")
    with pytest.raises(UnsupportedOperation, match="no place on the real line"):
        arithmetic.enclose(infinite[0], 53)
    if name in ("float16", "float32", "float64"):
        info = numpy.finfo(name)
        assert float(info.max) == float(format.largest) and float(info.smallest_subnormal) == float(2 * format.tiny)


def test_without_limits_nothing_overflows() -> None:
    arithmetic = Rounded("exp", bits(11))
    (huge,) = arithmetic.exp(arithmetic.numbers([Fraction(10**6)]))
    (tiny,) = arithmetic.exp(arithmetic.numbers([Fraction(-(10**6))]))
    assert gmpy2.is_finite(huge) and tiny > 0 and arithmetic.exceptions == ()
    assert arithmetic.enclose(huge, 10).rad() == 0


@pytest.mark.parametrize("precision", [-1, 0, 1, MOST_BITS + 1])
def test_a_format_has_at_least_two_bits(precision: int) -> None:
    with pytest.raises(ValueError, match="between 2 and"):
        bits(precision)


@given(st.sampled_from(["exp", "exp2"]), st.integers(2, 120), st.fractions(-30, 30, max_denominator=1000))
def test_exp_and_log_are_rounded_correctly(kernel: str, precision: int, x: Fraction) -> None:
    """Against mpmath at 60 more digits, rounded by the definition."""
    arithmetic = Rounded(kernel, bits(precision))  # type: ignore[arg-type]
    (read,) = arithmetic.numbers([x])
    exact = plain(read)
    assert exact is not None
    with mpmath.workprec(precision + 200):
        point = mpmath.mpf(exact.numerator) / exact.denominator
        for ours, theirs in (
            (arithmetic.exp([read])[0], mpmath.exp(point) if kernel == "exp" else mpmath.power(2, point)),
            *(
                [(arithmetic.log([read])[0], mpmath.log(point) if kernel == "exp" else mpmath.log(point, 2))]
                if exact > 0
                else []
            ),
        ):
            sign, mantissa, exponent, _ = theirs._mpf_
            value = Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (-1 if sign else 1)
            assert plain(ours) == nearest(value, bits(precision))


def by_hand(
    rows: Sequence[Sequence[Fraction]], W: Sequence[Sequence[Sequence[Fraction]]], format: Format, wide: Format
) -> list[list[Fraction]]:
    """Attention with kernel exp2 and scores that are integers, every operation rounded as the module says."""

    def near(x: Fraction, to: Format = format) -> Fraction:
        y = nearest(x, to)
        assert y is not None
        return y

    def dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
        total = Fraction(0)
        for x, y in zip(a, b, strict=True):
            total = near(total + near(x * y, wide), wide)
        return near(total)

    X = [[near(x) for x in row] for row in rows]
    Q, K, V = ([[dot(row, [near(w) for w in column]) for column in zip(*M, strict=True)] for row in X] for M in W)
    out = []
    for q in Q:
        weights = [near(Fraction(2) ** int(dot(q, k))) for k in K]
        total = Fraction(0)
        for w in weights:
            total = near(total + w, wide)
        out.append([near(dot(weights, [v[c] for v in V]) / near(total)) for c in range(len(V[0]))])
    return out


small = st.integers(-2, 2).map(Fraction)
values = st.fractions(-3, 3, max_denominator=7)


@given(
    st.lists(st.lists(small, min_size=2, max_size=2), min_size=1, max_size=5),
    st.lists(st.lists(values, min_size=2, max_size=2), min_size=2, max_size=2),
    st.integers(6, 40),
    st.integers(0, 20),
)
def test_attention_rounds_in_the_stated_order(
    rows: list[list[Fraction]], W_V: list[list[Fraction]], precision: int, more: int
) -> None:
    """With two precisions, against fractions; a missed rounding or another order changes some example."""
    W_Q = [[Fraction(1), Fraction(-1)], [Fraction(2), Fraction(1)]]
    W_K = [[Fraction(1), Fraction(0)], [Fraction(1), Fraction(1)]]
    format, wide = bits(precision), bits(precision + more)
    arithmetic = Rounded("exp2", format, accumulate=wide)
    columns = [arithmetic.numbers(list(column)) for column in zip(*rows, strict=True)]
    Q, K, V = (arithmetic.project(columns, RationalMatrix.of(W)) for W in (W_Q, W_K, W_V))
    seen = Visible([range(len(rows))] * len(rows))
    out = arithmetic.normalise(arithmetic.weights(arithmetic.scores(Q, K, seen)), V)
    assert [[plain(x) for x in row] for row in zip(*out, strict=True)] == by_hand(rows, [W_Q, W_K, W_V], format, wide)


def test_a_wrong_rounding_direction_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncation that calls itself rounding to nearest."""
    honest = Format.context

    def truncating(self: Format) -> object:
        context = honest(self)
        context.round = gmpy2.RoundToZero
        return context

    monkeypatch.setattr(Format, "context", truncating)
    arithmetic = Rounded("exp", bits(8))
    third = arithmetic.divide(arithmetic.numbers([Fraction(2)]), arithmetic.numbers([Fraction(3)]))
    assert plain(third[0]) != nearest(Fraction(2, 3), bits(8))


def test_the_largest_score_is_subtracted_where_asked() -> None:
    """float16 cannot hold e^12; the shifted softmax of equal scores 12 is exactly uniform."""
    one = RationalMatrix.identity(1)
    for shifted in (False, True):
        arithmetic = Rounded("exp", F16, shifted=shifted)
        X = [arithmetic.numbers([Fraction(7, 2)] * 2)]
        Q = arithmetic.project(X, one)
        out = arithmetic.normalise(arithmetic.weights(arithmetic.scores(Q, Q, Visible([range(2)] * 2))), Q)
        if shifted:
            assert [float(x) for x in out[0]] == [3.5, 3.5] and arithmetic.exceptions == ()
        else:
            assert gmpy2.is_nan(out[0][0]) and "overflow" in arithmetic.exceptions


def test_sums_are_never_accumulated_in_less() -> None:
    with pytest.raises(ValueError, match="at least as precise"):
        Rounded("exp", bits(20), accumulate=F16)


@given(formats, rationals, st.integers(-3, 12))
def test_rounding_to_a_grid_is_exact_and_then_rounded(format: Format, x: Fraction, bits_: int) -> None:
    arithmetic = Rounded("exp", format)
    read = arithmetic.numbers([x])
    exact = plain(read[0])
    assume(exact is not None)
    assert exact is not None
    unit = Fraction(2) ** bits_
    whole = (exact * unit + Fraction(1, 2)).__floor__()
    assert plain(arithmetic.round_to_grid(read, bits_)[0]) == nearest(whole / unit, format)


@given(formats, st.lists(rationals, min_size=1, max_size=5))
def test_relu_rounds_nothing(format: Format, entries: list[Fraction]) -> None:
    arithmetic = Rounded("exp", format)
    read = arithmetic.numbers(entries)
    for x, y in zip(read, arithmetic.relu(read), strict=True):
        value = plain(x)
        assert plain(y) == (value if value is None and x > 0 else max(value or Fraction(0), Fraction(0)))
