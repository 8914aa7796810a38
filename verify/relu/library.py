"""Networks for the paper's MLPs, built from stated parameters, each with the error that is proved for it.

The parts below work on nodes of a circuit, so that larger networks are put together from them; the networks at the end
read plain numbers. What a network costs is a formula in `verify.relu.size`, tested against the built network.

Sources: the sawtooth square is Yarotsky's [Error bounds for approximations with deep ReLU networks, 2017, Section 3.1]; the
reciprocal is Newton's iteration, its start and its constants are derived here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import arb

from verify.arithmetic.ball import dyadic, working_precision
from verify.arithmetic.formal import rational
from verify.relu.bound import best_corners
from verify.relu.circuit import Circuit, Node, Number
from verify.relu.network import Network
from verify.relu.target import BITS, Target

# --- parts: nodes in, nodes out -----------------------------------------------------------------------------------------


def square_of(circuit: Circuit, x: Node, m: int) -> Node:
    """`x^2` for x in [0, 1], too large by at most `4^-(m+1)`: the polygon through the squares of the multiples of 2^-m.

    With the sawtooth `g(x) = 2x` up to 1/2 and `2 - 2x` beyond, `x - sum_(k=1..m) g^k(x)/4^k` is that polygon: the k-th term
    lowers the chords of the polygon of step 2^(1-k) at their middles, where they are too high by 4^-k.
    """
    tooth, total = x, x
    for k in range(1, m + 1):
        # Both stay in [0, 1], so that one unit carries each.
        total = circuit.relu(total)
        tooth = 2 * circuit.relu(tooth) - 4 * circuit.relu(tooth - Fraction(1, 2))
        total = total - tooth / 4**k
    return total


def product_of(circuit: Circuit, x: Node, y: Node, m: int) -> Node:
    """`x y` for x, y in [0, 1], off by at most `4^-(m+1)`: `((x+y)/2)^2 - (|x-y|/2)^2`, whose errors have opposite signs."""
    half = circuit.relu((x + y) / 2)
    apart = circuit.relu((x - y) / 2) + circuit.relu((y - x) / 2)
    return square_of(circuit, half, m) - square_of(circuit, apart, m)


def polygon_of(circuit: Circuit, x: Node, corners: Sequence[tuple[Number, Number]]) -> Node:
    """The polygon through these corners (increasing x, at least two), for x between the first and the last: a unit a piece."""
    total, slope = Node((), Fraction(corners[0][1])), Fraction(0)
    for (a, b), (c, d) in pairwise(corners):
        steeper = Fraction(d - b) / Fraction(c - a)
        total += (steeper - slope) * circuit.relu(x - a)
        slope = steeper
    return total


@dataclass(frozen=True)
class NewtonPlan:
    """How `1/u` on [2^-`scale`, 1] is refined: the relative error after step k is at most `2^-precisions[k]`.

    One Newton step `y' = y(2 - uy)` turns the relative error e of y into e^2. Here `Y = y/2^(scale+1)` stands for y, and two products
    of error at most eta for the exact ones: `left = 1 - 2^scale (uY + eta_1)` for (2 - uy)/2, then `Y' = 2 (left Y + eta_2)`. So y' is off by
    `2^(scale+1) y eta_1 + 2^(scale+2) eta_2`, and with u y <= 2 and u <= 1 the new relative error is at most `e^2 + 2^(scale+3) eta`.
    """

    scale: int
    precisions: tuple[int, ...]
    teeth: tuple[int, ...]


def newton_plan(scale: int, bits: int) -> NewtonPlan:
    """The plan, of at least one step, that makes the error of `1/u` at most 2^-bits (2^-(bits+scale) relative is enough)."""
    wanted = [bits + scale]
    while len(wanted) < 2 or wanted[-1] > START_BITS:
        wanted.append((wanted[-1] + 2) // 2)
    wanted.reverse()
    # 2 p_(k-1) >= p_k + 1, and 2^(scale+3) 4^-(m+1) <= 2^-(p_k+1): each of the two terms is at most half of 2^-p_k.
    return NewtonPlan(scale, tuple(wanted), tuple((scale + 4 + p + 1) // 2 - 1 for p in wanted[1:]))


START_BITS = 4
"""The start of Newton's iteration has relative error 1/17 < 2^-4."""


def reciprocal_of(circuit: Circuit, u: Node, plan: NewtonPlan) -> Node:
    """`2^-(scale+1) / u` for u in [2^-scale, 1], with relative error at most `2^-precisions[-1]`; between 0 and 1.

    The start is the polygon through `(16/17)/u` at u = 2^-scale, ..., 1/2, 1: a chord over [a, 2a] is too high by a factor of at most
    9/8 (at 3a/2), so the factor 16/17 leaves `[16/17, 18/17]`.
    """
    scale = plan.scale
    shrink = Fraction(1, 2 ** (scale + 1))
    start = [(Fraction(1, 2**k), shrink * Fraction(16, 17) * 2**k) for k in range(scale, -1, -1)]
    y = polygon_of(circuit, u, start) if scale else Node((), shrink * Fraction(16, 17))
    for m in plan.teeth:
        y = circuit.relu(y)
        # (2 - u y)/2 on the scaled y; between 0 and 1 up to the error of the product, from which the relu protects the next one.
        left = circuit.relu(1 - 2**scale * product_of(circuit, u, y, m))
        y = 2 * product_of(circuit, left, y, m)
    return y


def quotients_of(circuit: Circuit, numerators: Sequence[Node], u: Node, plan: NewtonPlan, m: int) -> list[Node]:
    """`b/u` for each b in [-1, 1], then `1/u`, for u in [2^-scale, 1]: `2^(scale+1) (2 P((b+1)/2, Y) - Y)` with the scaled reciprocal Y.

    Off by at most `2^-bits + 2^(scale+2) 4^-(m+1)` (the reciprocal: `2^-bits`) for a plan of so many bits.
    """
    y = circuit.relu(reciprocal_of(circuit, u, plan))
    halves = [circuit.relu((b + 1) / 2) for b in numerators]
    back = 2 ** (plan.scale + 1)
    return [*(back * (2 * product_of(circuit, half, y, m) - y) for half in halves), back * y]


def exponential_of(circuit: Circuit, x: Node, plan: SquaringPlan) -> Node:
    """`e^-x` for x in [0, 2^scale]: `1 - z + z^2/2` at `z = x/2^squarings`, squared so many times; between 0 and 1."""
    z = x / (1 << plan.squarings)
    power = 1 - z + square_of(circuit, circuit.relu(z), plan.teeth) / 2
    for _ in range(plan.squarings):
        power = square_of(circuit, circuit.relu(power), plan.teeth)
    return power


@dataclass(frozen=True)
class SquaringPlan:
    """How `e^-x` on [0, 2^scale] is computed to 2^-bits.

    The Taylor polynomial is off by at most z^3/6, z <= 2^(scale-squarings); the square in it by eta/2. A squaring of numbers in [0, 1] doubles an
    error at most and adds eta. With s squarings that makes `2^(3 scale - 2s)/6 + (3/2) 2^s eta`.
    """

    scale: int
    squarings: int
    teeth: int


def squaring_plan(scale: int, bits: int) -> SquaringPlan:
    """At least one squaring, and each of the two terms at most `2^-(bits+1)`."""
    squarings = max(scale, -(-(3 * scale + bits - 1) // 2), 1)
    return SquaringPlan(scale, squarings, max(1, (squarings + bits + 3) // 2 - 1))


LOG_START = tuple(
    (Fraction(4 + i, 4), Fraction(round_log, 1024)) for i, round_log in enumerate((0, 228, 415, 573, 710))
)
"""Corners of a polygon within 2^-6 of log on [1, 2]: chords over 1/4 are off by at most (1/4)^2/8 = 2^-7, corners by less than 2^-10."""


def logarithm_of(circuit: Circuit, u: Node, bits: int) -> Node:
    """`log u` for u in [1, 2] to 2^-bits: Newton's iteration `y + u e^-y - 1` for `e^y = u`.

    An error d of y becomes `d + e^-d - 1 <= d^2` (|d| <= 1), plus twice the error of e^-y and twice that of the product `(u/2) e^-y`. Those
    are at most 2^-(p+3) each in a step that is to reach 2^-p.
    """
    y = polygon_of(circuit, u, LOG_START)
    for squaring, teeth in logarithm_plan(bits):
        y = circuit.relu(y)
        power = circuit.relu(exponential_of(circuit, y, squaring))
        y = y - 1 + 2 * product_of(circuit, u / 2, power, teeth)
    return y


LOG_START_BITS = 6
"""The start's error is at most 2^-6."""


def logarithm_plan(bits: int) -> list[tuple[SquaringPlan, int]]:
    """For each of at least one Newton step: how it computes e^-y, and the teeth of its product."""
    wanted = [bits]
    while len(wanted) < 2 or wanted[-1] > LOG_START_BITS:
        wanted.append((wanted[-1] + 2) // 2)
    return [(squaring_plan(0, p + 3), (p + 4) // 2 - 1) for p in reversed(wanted[:-1])]


def rounding_of(circuit: Circuit, x: Node, bits: int, gap: Fraction) -> Node:
    """The nearest multiple of 2^-bits to x in [0, 1], wherever x is at least gap/2 away from a tie.

    `x + (2^-bits - gap)/2` is read bit by bit from 1 down: `bit = clamp((rest - 1 + slack)/slack)` is 0 up to `1 - slack` and 1 from 1 on, and
    `2 (rest - bit)` goes on. At step k the slack is `2^k gap`, so in terms of x every step is uncertain on the same gap before a
    grid point: the ties, shifted. The gap must not exceed 2^-bits.
    """
    rest, total = circuit.relu(x + (Fraction(1, 2**bits) - gap) / 2), Node((), Fraction(0))
    for k in range(bits + 1):
        slack = gap * 2**k
        bit = circuit.relu((rest - 1 + slack) / slack) - circuit.relu((rest - 1) / slack)
        total = (total + bit / 2**k) if k == 0 else (circuit.relu(total) + bit / 2**k)
        rest = 2 * (circuit.relu(rest) - bit)
    return total


# --- networks -----------------------------------------------------------------------------------------------------------


def square(m: int) -> Network:
    """`x^2` on [0, 1]; its error is exactly `4^-(m+1)`."""
    circuit = Circuit([(0, 1)])
    return circuit.network([square_of(circuit, circuit.inputs[0], m)])


def product(m: int) -> Network:
    """`x y` on [0, 1] x [0, 1]; its error is exactly `4^-(m+1)`."""
    circuit = Circuit([(0, 1), (0, 1)])
    return circuit.network([product_of(circuit, circuit.inputs[0], circuit.inputs[1], m)])


def reciprocal(scale: int, bits: int) -> Network:
    """`1/u` on [2^-scale, 1], scale >= 1, with error at most `2^-bits`."""
    circuit = Circuit([(Fraction(1, 2**scale), 1)])
    return circuit.network([2 ** (scale + 1) * reciprocal_of(circuit, circuit.inputs[0], newton_plan(scale, bits))])


def inversion(scale: int, bits: int) -> Network:
    """`r/(1-r)` on [0, 1 - 2^-scale], scale >= 1, with error at most `2^-bits`: the printed recovery of A from A/(A+1), A < 2^scale."""
    circuit = Circuit([(0, 1 - Fraction(1, 2**scale))])
    u = circuit.relu(1 - circuit.inputs[0])
    return circuit.network([2 ** (scale + 1) * reciprocal_of(circuit, u, newton_plan(scale, bits)) - 1])


def quotient(columns: int, scale: int, bits: int, bound: Fraction | int = 1) -> Network:
    """`(b_1/u, ..., b_columns/u)` from `(b_1, ..., b_columns, u)`, |b| <= bound, u in [2^-scale, 1], with error at most `bound 2^-bits`."""
    circuit = Circuit([(-bound, bound)] * columns + [(Fraction(1, 2**scale), 1)])
    *numerators, u = circuit.inputs
    *found, _ = quotients_of(
        circuit, [b / bound for b in numerators], u, newton_plan(scale, bits + 1), quotient_teeth(scale, bits)
    )
    return circuit.network([node * bound for node in found])


def recovery(columns: int, scale: int, bits: int, bound: Fraction | int = 1) -> Network:
    """`(b_1/(1-r), ..., b_columns/(1-r), r/(1-r))` from `(b_1, ..., b_columns, r)`, |b| <= bound, r in [0, 1 - 2^-scale].

    The errors are at most `bound 2^-bits`, and `2^-bits` for the last: the layer MLP that recovers `(B, A)` in Lemma B.1.
    """
    circuit = Circuit([*([(-bound, bound)] * columns), (0, 1 - Fraction(1, 2**scale))])
    *numerators, r = circuit.inputs
    *found, reciprocal = quotients_of(
        circuit,
        [b / bound for b in numerators],
        circuit.relu(1 - r),
        newton_plan(scale, bits + 1),
        quotient_teeth(scale, bits),
    )
    return circuit.network([*(node * bound for node in found), reciprocal - 1])


def quotient_teeth(scale: int, bits: int) -> int:
    """The least m with `2^(scale+2) 4^-(m+1) <= 2^-(bits+1)`."""
    return (scale + bits + 4) // 2 - 1


def aggregation(parts: int, columns: int, scale: int, bits: int, bound: Fraction | int = 1) -> Network:
    """`(sum_t B_t) / (sum_t A_t)` from `(B_1, A_1, ..., B_parts, A_parts)`, where `sum_t A_t` is in [2^-scale, 1] and |sum_t B_t| <= bound.

    The error is at most `bound 2^-bits`. The printed Lemma B.1 leaves this step to "the aggregation".
    """
    circuit = Circuit([*([(-bound, bound)] * columns), (0, 1)] * parts)
    width = columns + 1
    *numerators, u = (sum(circuit.inputs[c::width], Node((), Fraction(0))) for c in range(width))
    *found, _ = quotients_of(
        circuit,
        [b / bound for b in numerators],
        circuit.relu(u),
        newton_plan(scale, bits + 1),
        quotient_teeth(scale, bits),
    )
    return circuit.network([node * bound for node in found])


def exponential(scale: int, bits: int) -> Network:
    """`e^x` on [-2^scale, 0] with error at most `2^-bits`."""
    circuit = Circuit([(-(Fraction(2) ** scale), 0)])
    return circuit.network([exponential_of(circuit, -circuit.inputs[0], squaring_plan(scale, bits))])


def logarithm(bits: int) -> Network:
    """`log u` on [1, 2] with error at most `2^-bits`, bits >= 2."""
    circuit = Circuit([(1, 2)])
    return circuit.network([logarithm_of(circuit, circuit.inputs[0], bits)])


def rounding(bits: int, gap: Fraction) -> Network:
    """Nearest multiple of 2^-bits on [0, 1], exact at distance gap/2 or more from every tie; gap at most 2^-bits."""
    if not 0 < gap <= Fraction(1, 2**bits):
        raise ValueError(f"the gap must be positive and at most 2^-{bits}")
    circuit = Circuit([(0, 1)])
    return circuit.network([rounding_of(circuit, circuit.inputs[0], bits, gap)])


def lookup(values: Sequence[Number]) -> Network:
    """A table: at x = 0, ..., n-1 the output is `values[x]`, exactly; n >= 2."""
    circuit = Circuit([(0, len(values) - 1)])
    return circuit.network([polygon_of(circuit, circuit.inputs[0], list(enumerate(values)))])


def interpolant(target: Target, low: Fraction, high: Fraction, pieces: int, *, bits: int = 64) -> Network:
    """The best polygon of so many pieces, up to its corners' rounding to multiples of 2^-bits: one hidden layer, a unit a piece.

    The corners lie where every piece has the same least error (`verify.relu.bound`), and on the graph shifted by that error.
    """
    circuit = Circuit([(low, high)])
    corners, shift = best_corners(target, low, high, pieces, bits)
    with working_precision(BITS):
        values = [_nearest(target.value(rational(x)) + shift, bits) for x in corners]
    return circuit.network([polygon_of(circuit, circuit.inputs[0], list(zip(corners, values, strict=True)))])


def _nearest(x: arb, bits: int) -> Fraction:
    """A multiple of 2^-bits near the middle of a ball (any one would do: the result is certified afterwards)."""
    return Fraction(round(dyadic(x.mid()) * 2**bits), 2**bits)
