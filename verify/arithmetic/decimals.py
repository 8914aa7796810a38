"""Printing balls as decimals without losing rigour: every rounding goes outwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb

from verify.arithmetic.ball import working_precision
from verify.errors import PrecisionNeeded, Undecided

LIMIT = 1 << 20
"""Bits at which asking for more digits gives up."""


def decimal_ball(enclose: Callable[[int], arb], digits: int, *, best_effort: bool = False) -> dict[str, str]:
    """`{"ball": midpoint, "radius": power of ten}` with the number within `radius` of `midpoint`.

    `enclose(bits)` gives a ball around the number at that working precision. The midpoint has about `digits`
    significant digits; with `best_effort`, as many as the first ball allows. Raises Undecided at `LIMIT` bits.
    """
    bits = 64 + 4 * digits
    while bits <= LIMIT:
        with working_precision(bits):
            try:
                ball = enclose(bits)
            except PrecisionNeeded:
                bits *= 2
                continue
            if ball.is_zero():
                return {"ball": "0", "radius": "0"}
            if ball.is_finite():
                mid, rad, exponent = (int(part) for part in ball.mid_rad_10exp(digits + 2))
                if best_effort or rad < 10**2 or len(str(abs(mid))) - len(str(rad)) >= digits:
                    return _printed(mid, rad, exponent)
        bits *= 2
    raise Undecided(f"{digits} digits need more than {LIMIT} bits")


def _printed(mid: int, rad: int, exponent: int) -> dict[str, str]:
    """`(mid +/- rad) 10^exponent`, the midpoint cut to the digits that the radius supports, the radius a power of ten."""
    cut = len(str(rad)) if rad else 0  # 10^cut > rad
    # Dropping the last `cut` digits moves the midpoint by at most 10^cut / 2, so 2 * 10^cut covers both; 10^(cut+1) is a power.
    unit = 10**cut
    kept = (mid + unit // 2) // unit
    return {"ball": _decimal(kept, exponent + cut), "radius": f"1e{exponent + cut + 1}" if rad else "0"}


def _decimal(mantissa: int, exponent: int) -> str:
    """`mantissa * 10^exponent` in plain notation where that is short, otherwise in scientific notation."""
    sign, digits = ("-" if mantissa < 0 else ""), str(abs(mantissa))
    if mantissa == 0:
        return "0"
    if exponent >= 0 and exponent < 40:
        return f"{sign}{digits}{'0' * exponent}"
    if -len(digits) - 40 < exponent < 0:
        padded = digits.rjust(1 - exponent, "0")
        return f"{sign}{padded[:exponent]}.{padded[exponent:]}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}e{exponent + len(digits) - 1}"


def upper_decimal(ball: arb, digits: int = 6) -> str:
    """A decimal of `digits` significant digits that is at least every number in a ball of nonnegative numbers; "inf" when unbounded."""
    if not ball.is_finite():
        return "inf"
    top = ball.abs_upper()
    if top.is_zero():
        return "0"
    parts: Any = top.mid_rad_10exp(digits)
    mid, rad, exponent = (int(part) for part in parts)
    above = mid + rad + 1
    cut = max(0, len(str(above)) - digits)
    return _decimal(-(-above // 10**cut), exponent + cut)


def nearest_decimal(ball: arb, digits: int = 3) -> str:
    """The midpoint of a ball to `digits` significant digits, for people to read (no bound); "inf" when unbounded."""
    if not ball.is_finite():
        return "inf"
    parts: Any = arb(ball.mid()).mid_rad_10exp(digits + 3)
    mid, _, exponent = (int(part) for part in parts)
    cut = len(str(abs(mid))) - digits
    if cut > 0:
        mid, exponent = (mid + 10**cut // 2) // 10**cut, exponent + cut
    return _decimal(mid, exponent)
