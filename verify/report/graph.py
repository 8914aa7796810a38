"""The proof roadmap as a picture: one box for each statement, an arrow for each recorded dependency, in layers from left to right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markupsafe import escape

WIDTH, HEIGHT, ACROSS, DOWN = 92, 30, 150, 48
"""Points: a box, and the distance of boxes from each other."""


def draw_graph(ledger: dict[str, Any], page_of: Callable[[str], str]) -> str:
    """The graph of lemmas and our own constructions as SVG, each box a link to its page; "" if there is no dependency.

    Findings and comments are left out: they are about statements, and nothing rests on them.
    """
    claims = {claim["id"]: claim for claim in ledger["claims"] if claim["kind"] in ("lemma", "construction")}
    edges = [(a, b) for a, b in ledger["dependencies"] if a in claims and b in claims]
    if not edges:
        return ""
    layers = _layers(claims, edges)
    places: dict[str, tuple[int, int]] = {}
    for level, names in enumerate(layers):
        for row, name in enumerate(names):
            places[name] = (10 + level * ACROSS, 10 + row * DOWN)
    width = 20 + (len(layers) - 1) * ACROSS + WIDTH
    height = 20 + (max(map(len, layers)) - 1) * DOWN + HEIGHT
    parts = [
        f'<svg class="graph" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="group" aria-label="Dependencies of the statements">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8"/></marker></defs>',
    ]
    for later, earlier in edges:
        (x, y), (to_x, to_y) = places[earlier], places[later]
        x, y, to_y = x + WIDTH, y + HEIGHT // 2, to_y + HEIGHT // 2
        middle = (x + to_x) // 2
        parts.append(f'<path marker-end="url(#tip)" d="M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}"/>')
    for name, (x, y) in places.items():
        claim = claims[name]
        word = colour(claim)
        parts.append(
            f'<a class="{word}" href="{escape(page_of(name))}"><title>{escape(name)}: {escape(claim["title"])} ({word})</title>'
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>'
            f'<text x="{x + WIDTH // 2}" y="{y + HEIGHT // 2 + 5}" text-anchor="middle">{escape(name)}</text></a>'
        )
    return "\n".join([*parts, "</svg>"])


def colour(claim: dict[str, Any]) -> str:
    """proved, refuted (printed fails and a repair is proved), mixed (fails without one), assumed or none."""
    statuses = {name: construction["status"] for name, construction in claim["constructions"].items()}
    if not statuses:
        return "none"
    if set(statuses.values()) == {"proved"}:
        return "proved"
    if "assumed" in statuses.values():
        return "assumed"
    if statuses.get("printed") == "refuted" and "proved" in statuses.values():
        return "refuted"
    return "mixed"


def _layers(claims: dict[str, Any], edges: list[tuple[str, str]]) -> list[list[str]]:
    """A statement stands one layer after the last of those that it rests on; those without a dependency are left out."""
    connected = {name for edge in edges for name in edge}
    level: dict[str, int] = {}

    def place(name: str, above: frozenset[str]) -> int:
        if name not in level:
            below = [used for later, used in edges if later == name and used not in above]
            level[name] = 1 + max((place(used, above | {name}) for used in below), default=-1)
        return level[name]

    for name in claims:
        if name in connected:
            place(name, frozenset())
    layers: list[list[str]] = [[] for _ in range(max(level.values()) + 1)]
    for name in claims:
        if name in connected:
            layers[level[name]].append(name)
    return layers
