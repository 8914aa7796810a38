"""What no ReLU network can do: least numbers of affine pieces, and from them least numbers of units.

**Pieces.** A function that is affine on n intervals and within eps of a strictly convex or concave f must give each interval a
least error of at most eps (`Target.least_error`); that error grows with the interval, so the greedy division from the left needs
the fewest, continuous or not. And as few suffice for a continuous function: on every piece the best affine function passes
at distance eps from the graph, on the same side, at both ends. In a coordinate in which the least error depends on the
length of an interval alone the greedy division has equal steps:

    x^2       x            eps = h^2/8          n = ceil((b - a) / sqrt(8 eps))
    1/u       1/sqrt(u)    eps = h^2/2          n = ceil((1/sqrt(a) - 1/sqrt(b)) / sqrt(2 eps))
    r/(1-r)   1/sqrt(1-r)  eps = h^2/2          with r = A/(A+1): n = ceil((sqrt(A_1 + 1) - sqrt(A_0 + 1)) / sqrt(2 eps))
    log x     log x        eps by bisection

(for `e^x` the greedy division is followed step by step). A product `x y` has squares on its diagonals: along `x = y = t` it is t^2.

**Units.** On a line, a layer of w units multiplies the number of pieces by at most w + 1: on a piece where the layer's arguments are
affine every unit adds at most one corner. So n <= (w_1 + 1) ... (w_D + 1) <= (1 + U/D)^D <= 2^U for U units in D layers. A unit that
matters has a nonzero weight of its own, so the nonzero parameters P bound it as well: n <= 2^P, whatever the depth.

**Tables.** Two networks that agree in architecture and parameters agree everywhere. A table of n entries of b bits has 2^(n b) contents; parameters
of `bits` bits in P positions have 2^(P bits) settings, so P bits >= n b. If the positions are free, each of the P nonzero parameters also
names its place: at most P + 1 units or the output as target, at most P + 2 sources (units, the input, the bias).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil

from flint import arb, fmpq

from verify.arithmetic.ball import dyadic, working_precision
from verify.arithmetic.formal import rational
from verify.relu.target import BITS, Exponential, Inversion, Logarithm, Reciprocal, Square, Target


def least_pieces(target: Target, low: Fraction, high: Fraction, error: Fraction) -> int:
    """The least number of affine pieces of any function within `error` of the target on [low, high].

    Computed with enclosures; where they cannot decide (an exact tie beyond `BITS` bits) the smaller number is returned, so that the
    result is a lower bound in any case. Raises ValueError if error <= 0 or low >= high.
    """
    if error <= 0 or low >= high:
        raise ValueError("pieces are counted for a positive error on a proper interval")
    with working_precision(BITS):
        if isinstance(target, Exponential):
            return _greedy(target, rational(low), rational(high), rational(error))
        to, _, step = _coordinate(target, error)
        length = abs(to(arb(rational(high))) - to(arb(rational(low))))
        return max(1, ceil(dyadic((length / step).lower())))


def _coordinate(target: Target, error: Fraction) -> tuple[Callable[[arb], arb], Callable[[arb], arb], arb]:
    """The coordinate of the module's table, its inverse, and the step whose least error is `error`."""
    eps = arb(rational(error))
    match target:
        case Square():
            return (lambda x: x), (lambda t: t), (8 * eps).sqrt()
        case Reciprocal():
            return (lambda u: 1 / u.sqrt()), (lambda t: 1 / t**2), (2 * eps).sqrt()
        case Inversion():
            return (lambda r: 1 / (1 - r).sqrt()), (lambda t: 1 - 1 / t**2), (2 * eps).sqrt()
        case Logarithm():
            step = _root(lambda h: target.least_error(arb(1), h.exp()) - eps, arb(0), arb(2) + 4 * eps)
            return (lambda x: x.log()), (lambda t: t.exp()), step
        case _:
            raise TypeError(f"no coordinate for {target.name}")


def _root(increasing: Callable[[arb], arb], low: arb, high: arb) -> arb:
    """An enclosure of the zero of an increasing function between low and high, about `BITS`/2 bits wide or better."""
    for _ in range(BITS // 2):
        middle = ((low + high) / 2).mid()
        value = increasing(middle)
        if value > 0:
            high = middle
        elif value < 0:
            low = middle
        else:
            break
    return low.union(high)


def _greedy(target: Target, low: fmpq, high: fmpq, error: fmpq) -> int:
    """Longest pieces from the left; each one's end is rounded up, so that the count is never too large."""
    at, end, count, eps = arb(low), arb(high), 0, arb(error)
    while True:
        count += 1
        if not target.least_error(at, end) > eps:
            return count
        start = at
        at = _root(lambda b, start=start: target.least_error(start, b) - eps, at, end).upper()  # type: ignore[misc]


def best_corners(target: Target, low: Fraction, high: Fraction, pieces: int, bits: int) -> tuple[list[Fraction], arb]:
    """Where the best function of so many affine pieces has its corners (rounded to 2^-bits), and by how much it lies above the graph there.

    All pieces have the same least error. Negative for a concave target.
    """
    with working_precision(BITS):
        a, b = arb(rational(low)), arb(rational(high))
        if isinstance(target, Exponential):
            inner, error = _even_exponential(target, low, high, pieces)
        else:
            to, back, _ = _coordinate(target, Fraction(1))
            ends = to(a), to(b)
            inner = [back(ends[0] + (ends[1] - ends[0]) * k / pieces) for k in range(1, pieces)]
            error = target.least_error(a, inner[0] if inner else b)
        corners = [low, *(_rounded(x, bits) for x in inner), high]
        return corners, error if isinstance(target, Logarithm) else -error


def _even_exponential(target: Target, low: Fraction, high: Fraction, pieces: int) -> tuple[list[arb], arb]:
    """Corners by the greedy division at the error for which it ends at `high`, found by bisection on that error."""
    start, end = arb(rational(low)), arb(rational(high))
    small, large = arb(0), target.least_error(start, end)
    corners: list[arb] = []
    for _ in range(60):
        error = ((small + large) / 2).mid()
        found = _division(target, start, end, error, pieces)
        if len(found) < pieces:
            large, corners = error, found
        else:
            small = error
    return corners, large


def _division(target: Target, start: arb, end: arb, error: arb, limit: int) -> list[arb]:
    """The first `limit` inner corners, or fewer if the end comes first, of the greedy division."""
    found: list[arb] = []
    at = start
    while len(found) < limit and target.least_error(at, end) > error:
        at = _root(lambda b, at=at: target.least_error(at, b) - error, at, end).mid()  # type: ignore[misc]
        found.append(at)
    return found


def _rounded(x: arb, bits: int) -> Fraction:
    return Fraction(round(dyadic(x.mid()) * 2**bits), 2**bits)


def most_pieces(widths: tuple[int, ...]) -> int:
    """The most affine pieces on a line of a network with these hidden layers."""
    product = 1
    for width in widths:
        product *= width + 1
    return product


def least_units(pieces: int, depth: int) -> int:
    """The fewest units in `depth` hidden layers that may have so many pieces on a line."""
    if pieces <= 1:
        return 0
    low, high = 0, pieces - 1
    while low < high:
        middle = (low + high) // 2
        each, more = divmod(middle, depth)
        enough = most_pieces((each + 1,) * more + (each,) * (depth - more)) >= pieces
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def least_units_any_depth(pieces: int) -> int:
    """The fewest units, in any number of layers, that may have so many pieces on a line: log2, rounded up."""
    return (pieces - 1).bit_length()


def reachable_bits(scale: int, parameters: int) -> Fraction:
    """No network of so many nonzero parameters computes r/(1-r) on [0, 1 - 2^-scale] to less than 2^-(this many bits), scale >= 1.

    `2^P >= (2^(scale/2) - 1) / sqrt(2 eps)`, solved for `-log2 eps`; rounded up.
    """
    with working_precision(BITS):
        root = arb(2) ** arb(fmpq(scale, 2)) - 1
        bits = 2 * parameters + 1 - 2 * root.log() / arb.const_log2()
        return dyadic(bits.upper())


def least_table_parameters(entries: int, entry_bits: int, weight_bits: int, *, fixed: bool = True) -> int:
    """The fewest parameters of so many bits with which one architecture can hold every table of that many entries.

    With `fixed=False` the network may be another one for each table (see the module): `P (bits + log2((P+1)(P+2))) >= n b`.
    """
    contents = entries * entry_bits
    if fixed:
        return -(-contents // weight_bits)
    low, high = 0, contents
    while low < high:
        middle = (low + high) // 2
        settings = (2**weight_bits * (middle + 1) * (middle + 2)) ** middle
        low, high = (low, middle) if settings >= 2**contents else (middle + 1, high)
    return low


def permutation_bits(N: int) -> int:
    """Bits that single out one of the N! permutations, rounded down: what a table for a random reordering must hold at least."""
    product = 1
    for n in range(2, N + 1):
        product *= n
    return product.bit_length() - 1
