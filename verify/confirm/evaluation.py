"""Attention by its definition (Definitions 2.1 to 2.5 of the paper), on rationals, with enclosures where exp is needed.

An instance is an object with `kernel` ("exp2": the weight of a score s is 2^s; "exp": e^s), `mask` ("none", "causal",
`{"window": r}`, `{"window": r, "sinks": s}`), `X` (the rows of the input) and `layers`: each a list of heads, a head an object
with `WQ`, `WK`, `WV`. Head h reads the h-th slice of the columns; the heads' outputs stand side by side; each layer reads the one
before. There are no MLPs and no residual connections.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .document import Refused, rational
from .enclosure import LARGEST_EXPONENT, Enclosure

MOST_STEPS = 5_000_000
"""Products of entries that an evaluation may take."""

Rows = list[list[Enclosure]]


def evaluate(instance: Any, bits: int) -> Rows:
    """The rows of the output. Raises Refused where the instance is not one, ArithmeticError where `bits` are too few."""
    _members(instance, ("kernel", "mask", "X", "layers"))
    kernel = instance["kernel"]
    if kernel not in ("exp", "exp2"):
        raise Refused("kernel is neither exp nor exp2")
    current = matrix(instance["X"], bits)
    layers = instance["layers"]
    if not isinstance(layers, list) or not 1 <= len(layers) <= 16:
        raise Refused("layers is not a list of 1 to 16 layers")
    for heads in layers:
        if not isinstance(heads, list) or not heads or len(current[0]) % len(heads):
            raise Refused("the number of heads does not divide the number of columns")
        slice_width = len(current[0]) // len(heads)
        outputs = [
            _attend(
                head, [row[h * slice_width : (h + 1) * slice_width] for row in current], kernel, instance["mask"], bits
            )
            for h, head in enumerate(heads)
        ]
        current = [[entry for output in outputs for entry in output[i]] for i in range(len(current))]
    return current


def matrix(value: Any, bits: int) -> Rows:
    """Rows of rationals, all of one length."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) and row for row in value):
        raise Refused("a matrix is not a list of rows")
    if len({len(row) for row in value}) != 1:
        raise Refused("the rows of a matrix have different lengths")
    return [[Enclosure.of(rational(x), bits) for x in row] for row in value]


def _attend(head: Any, X: Rows, kernel: str, mask: Any, bits: int) -> Rows:
    _members(head, ("WQ", "WK", "WV"))
    Q, K, V = (_product(X, matrix(head[name], bits)) for name in ("WQ", "WK", "WV"))
    if len(Q[0]) != len(K[0]):
        raise Refused("WQ and WK have different widths")
    if len(X) ** 2 * (len(Q[0]) + len(V[0])) > MOST_STEPS:
        raise Refused("the instance is too large to recompute")
    result = []
    for i, q in enumerate(Q):
        weights = {j: _weight(_dot(q, K[j], bits), kernel) for j in _visible(i, len(X), mask)}
        total = _sum(list(weights.values()), bits)
        inverse = total.inverse()
        result.append([_sum([w * V[j][c] for j, w in weights.items()], bits) * inverse for c in range(len(V[0]))])
    return result


def _visible(i: int, n: int, mask: Any) -> list[int]:
    """The columns that row i sees; rows and columns count from 0."""
    if mask == "none":
        return list(range(n))
    if mask == "causal":
        return list(range(i + 1))
    if isinstance(mask, dict) and set(mask) in ({"window"}, {"window", "sinks"}):
        r, s = mask["window"], mask.get("sinks", 0)
        if all(isinstance(x, int) and not isinstance(x, bool) for x in (r, s)) and r >= 1 and s >= 0:
            return [j for j in range(i + 1) if j > i - r or j < s]
    raise Refused('mask is none of "none", "causal", {"window": r}, {"window": r, "sinks": s}')


def _weight(score: Enclosure, kernel: str) -> Enclosure:
    if kernel == "exp":
        return score.exp()
    if not score.exact or score.low.denominator != 1 or abs(score.low) > LARGEST_EXPONENT:
        raise Refused("kernel exp2 needs integer scores of moderate size")
    return Enclosure.of(Fraction(2) ** int(score.low), score.bits)


def _product(X: Rows, W: Rows) -> Rows:
    if len(X[0]) != len(W):
        raise Refused("a weight matrix does not fit its tokens")
    if len(X) * len(W) * len(W[0]) > MOST_STEPS:
        raise Refused("the instance is too large to recompute")
    return [[_dot(row, [w[c] for w in W], row[0].bits) for c in range(len(W[0]))] for row in X]


def _dot(a: list[Enclosure], b: list[Enclosure], bits: int) -> Enclosure:
    return _sum([x * y for x, y in zip(a, b, strict=True)], bits)


def _sum(terms: list[Enclosure], bits: int) -> Enclosure:
    total = Enclosure.of(Fraction(0), bits)
    for term in terms:
        total = total + term
    return total


def _members(value: Any, names: tuple[str, ...]) -> None:
    if not isinstance(value, dict) or set(value) != set(names):
        raise Refused(f"an object does not have exactly the members {', '.join(names)}")
