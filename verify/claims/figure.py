"""Plots of exact or rigorously measured numbers that a lemma's module contributes to the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Points = Sequence[tuple[float, float]]
"""(x, y) pairs, for the eye: the exact numbers stand in a table."""

DECIMALS = 4
"""Points are rounded to so many decimals, so that they do not depend on a machine's last digit."""


@dataclass(frozen=True)
class Figure:
    """A plot by name: what it shows, its axes, and a function that computes its panels: titles, and in each a curve for each label."""

    name: str
    claim: str
    caption: str
    x: str
    y: str
    compute: Callable[[], Mapping[str, Mapping[str, Points]]]
    bars: bool = False
    """Bars instead of curves: each label has one point, whose second number is the bar's length."""

    def to_json(self) -> dict[str, Any]:
        """The computed plot as JSON data."""
        panels = {
            title: {
                label: [[round(x, DECIMALS) for x in point] for point in points] for label, points in curves.items()
            }
            for title, curves in self.compute().items()
        }
        return {
            "name": self.name,
            "claim": self.claim,
            "caption": self.caption,
            "x": self.x,
            "y": self.y,
            "bars": self.bars,
            "panels": panels,
        }
