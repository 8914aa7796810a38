"""The audit of one construction on one instance: what `verify audit` reports (`audit-result/1`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import gmpy2
from flint import arb, fmpq

from verify.arithmetic.ball import working_precision
from verify.arithmetic.decimals import nearest_decimal, upper_decimal
from verify.arithmetic.interface import Column
from verify.arithmetic.rounded import FORMATS, Format, Rounded
from verify.arithmetic.rounded import bits as bits_of
from verify.audit import baseline
from verify.audit.bound import forward_bound
from verify.audit.error import Bounds, measure, meets
from verify.audit.search import NotReached, Search, fewest_bits, floor_of
from verify.audit.steps import StepCondition, conditions
from verify.audit.truth import Truth
from verify.oracle.program import Program
from verify.oracle.run import run
from verify.transformer.instance import Kernel
from verify.transformer.model import Transformer

MOST_TARGET_BITS = 1 << 14
"""The most bits of a target."""

MOST_RUNS = 40
"""Rounded runs of one search; ranges that it leaves out are reported."""

SPARE = 16
"""Bits beyond the target at which a search makes its first run."""


@dataclass(frozen=True)
class Subject:
    """What is audited: a program beside the transformer that it simulates, on an input given by its columns."""

    kernel: Kernel
    transformer: Transformer
    columns: tuple[tuple[Fraction, ...], ...]
    program: Program
    block: int
    """Keys of one block of the log-sum-exp baseline: the oracle's M."""

    @property
    def truth(self) -> Truth:
        """The true output."""
        return Truth(self.kernel, self.transformer, self.columns)


@dataclass(frozen=True)
class Options:
    """How the oracle's operations are rounded. `format` None: search for the fewest bits."""

    format: Format | None
    target: Fraction
    accumulate: Format | None = None
    shifted: bool = False

    def arithmetic(self, kernel: Kernel, format: Format) -> Rounded:
        """The rounded arithmetic for these options."""
        return Rounded(kernel, format, accumulate=self._wider(format), shifted=self.shifted)

    def _wider(self, format: Format) -> Format | None:
        if self.accumulate is None or self.accumulate.precision <= format.precision:
            return None
        return self.accumulate


def rounded_run(subject: Subject, options: Options, format: Format) -> tuple[list[Column], tuple[str, ...]]:
    """The program's output in rounded arithmetic, and what went wrong on the way (overflow, NaN, ...)."""
    arithmetic = options.arithmetic(subject.kernel, format)
    out = run(subject.program, arithmetic, {"X": [arithmetic.numbers(column) for column in subject.columns]})
    return out, arithmetic.exceptions


def audit(subject: Subject, options: Options, *, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The `audit-result/1` document, without the keys that only the command knows (construction, oracle).

    Raises Undecided where an error stays open at the precision limit.
    """
    truth, found, why = subject.truth, None, None
    format = options.format
    if format is None:
        try:
            found = search(subject, options, truth, progress)
            format = bits_of(found.fewest)
        except NotReached:
            format = bits_of(_most_bits(options.target))
            why = f"no number of bits up to {format.precision} reaches the target"
    progress(f"measuring at {format.name}")
    output, exceptions = rounded_run(subject, options, format)
    measured = measure(output, truth, format.precision)
    reached = meets(output, truth, format.precision, options.target)
    progress("bounding the error")
    bound = forward_bound(
        subject.program, subject.kernel, subject.columns, format, options._wider(format), options.shifted
    )
    result: dict[str, Any] = {
        "format": "audit-result/1",
        "arithmetic": "rounded",
        "bits": format.precision,
        "dtype": format.name if format.name in FORMATS else None,
        "accumulate": None if options.accumulate is None else options.accumulate.name,
        "softmax": "shifted" if options.shifted else "plain",
        "output": [[decimal(x) for x in row] for row in zip(*output, strict=True)],
        "absolute_error": upper_decimal(measured.absolute.upper),
        "relative_error": upper_decimal(measured.relative.upper),
        "target": str(options.target),
        "reached": reached,
        "fewest_bits": None if found is None else found.fewest,
        "worst": {"row": measured.row, "column": measured.column},
        "exceptions": list(exceptions),
        "steps": [_step(step) for step in conditions(subject.program, subject.kernel, subject.columns)],
        "bound": {
            "relative_error": upper_decimal(bound.relative),
            "absolute_error": upper_decimal(bound.absolute),
            "loose_by_bits": _loose(bound.relative, measured.relative),
        },
        "baselines": _baselines(subject, options, truth, format),
    }
    if found is not None:
        result["search"] = {
            "runs": [{"bits": P, "reached": met} for P, met in found.runs.items()],
            "impossible_below": found.floor,
            "proved_from": found.ceiling,
            "always_from": found.always,
            "not_run": found.not_run,
        }
    if why is not None:
        result["why"] = why
    return result


def unbuilt(options: Options) -> dict[str, Any]:
    """The document for a construction that cannot run at all, not even with the rules waived that it breaks."""
    format = options.format
    return {
        "format": "audit-result/1",
        "arithmetic": "rounded",
        "bits": None if format is None else format.precision,
        "output": None,
        "absolute_error": "inf",
        "relative_error": "inf",
        "target": str(options.target),
        "reached": False,
        "fewest_bits": None,
        "worst": None,
        "steps": [],
    }


def search(
    subject: Subject, options: Options, truth: Truth, progress: Callable[[str], None] = lambda _: None
) -> Search:
    """The fewest bits of this subject. Raises NotReached."""
    limit = _most_bits(options.target)

    def met(P: int) -> bool:
        progress(f"running at {P} bits")
        output, _ = rounded_run(subject, options, bits_of(P))
        return meets(output, truth, P, options.target)

    progress("bounding the error")
    floor = floor_of(truth, options.target, limit)
    ceiling = ceiling_of(subject, options, limit)
    first = min(limit, options.target.denominator.bit_length() + SPARE)
    progress(f"running at {first} bits")
    output, _ = rounded_run(subject, options, bits_of(first))
    error = measure(output, truth, first).relative.upper
    start = first + _bits_between(error, options.target) if error.is_finite() and error > 0 else first
    return fewest_bits(
        met, start=max(floor, min(start, limit)), floor=floor, ceiling=ceiling, limit=limit, most_runs=MOST_RUNS
    )


def ceiling_of(subject: Subject, options: Options, limit: int) -> int | None:
    """A number of bits from which on a forward bound is at most the target; None where no bound up to `limit` is."""
    P = min(limit, options.target.denominator.bit_length() + SPARE)
    for _ in range(6):
        bound = forward_bound(
            subject.program, subject.kernel, subject.columns, bits_of(P), options._wider(bits_of(P)), options.shifted
        ).relative
        if bound.is_finite():
            missing = _bits_between(bound, options.target)
            if missing <= 0:
                return P
            P += missing
        else:
            P *= 2
        if P > limit:
            return None
    return None


def _most_bits(target: Fraction) -> int:
    return 4 * target.denominator.bit_length() + 1024


def _bits_between(error: arb, target: Fraction) -> int:
    """ceil(log2(error / target)), from above."""
    with working_precision(64):
        ratio = (error.upper() / arb(fmpq(target.numerator, target.denominator))).upper()
        mantissa, exponent = ratio.mid().man_exp()
        return int(exponent) + (int(mantissa) - 1).bit_length() if mantissa else 0


def _step(step: StepCondition) -> dict[str, str]:
    return {
        "step": step.step,
        "condition": nearest_decimal(step.condition, 3),
        "bits_lost": two_places(step.bits_lost),
        "call": step.role,
    }


def _loose(bound: arb, measured: Bounds) -> str | None:
    """log2 of bound over measured error; None where one of them is not a positive number."""
    if not bound.is_finite() or not measured.lower > 0 or not measured.upper.is_finite():
        return None
    with working_precision(64):
        return two_places(((bound / measured.lower).log() / arb.const_log2()).max(arb(0)))


def _baselines(subject: Subject, options: Options, truth: Truth, format: Format) -> dict[str, Any]:
    found = {}
    for name in ("direct", "log-sum-exp"):
        arithmetic = options.arithmetic(subject.kernel, format)
        if name == "direct":
            output = baseline.direct(arithmetic, subject.transformer, subject.columns)
        else:
            output = baseline.merged(arithmetic, subject.transformer, subject.columns, subject.block)
        measured = measure(output, truth, format.precision)
        found[name] = {
            "relative_error": upper_decimal(measured.relative.upper),
            "absolute_error": upper_decimal(measured.absolute.upper),
            "exceptions": list(arithmetic.exceptions),
        }
    return found


def two_places(bits: arb) -> str:
    """A number of bits to two decimal places, for people to read; "inf" when unbounded."""
    if not bits.is_finite():
        return "inf"
    with working_precision(64):
        hundredths = int((bits.mid() * 100 + arb(fmpq(1, 2))).floor().unique_fmpz() or 0)
    return f"{hundredths // 100}.{hundredths % 100:02}"


LONGEST = 2000
"""Digits after the point up to which a number is written in plain notation."""


def decimal(x: Any) -> str:
    """A rounded number as an exact finite decimal; "inf", "-inf" or "nan" where it is not finite."""
    if gmpy2.is_nan(x):
        return "nan"
    if gmpy2.is_infinite(x):
        return "inf" if x > 0 else "-inf"
    mantissa, exponent = (int(part) for part in x.as_mantissa_exp())
    if not mantissa:
        return "0"
    sign, mantissa = ("-" if mantissa < 0 else ""), abs(mantissa)
    if exponent >= 0:
        return (
            sign + str(gmpy2.mpz(mantissa) << exponent)
            if exponent <= LONGEST
            else sign + _scientific(mantissa, exponent)
        )
    if -exponent > LONGEST:
        return sign + _scientific(mantissa, exponent)
    digits = str(gmpy2.mpz(mantissa) * gmpy2.mpz(5) ** -exponent).rjust(1 - exponent, "0")
    return f"{sign}{digits[:exponent]}.{digits[exponent:]}"


def _scientific(mantissa: int, exponent: int) -> str:
    """`mantissa 2^exponent` exactly, as d.ddd...e+x."""
    if exponent >= 0:
        digits, power = str(gmpy2.mpz(mantissa) << exponent), 0
    else:
        digits, power = str(gmpy2.mpz(mantissa) * gmpy2.mpz(5) ** -exponent), exponent
    power += len(digits) - 1
    kept = digits.rstrip("0") or "0"
    return f"{kept[0]}.{kept[1:] or '0'}e{power}"
