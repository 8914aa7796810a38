"""The HTML page: one static file, no scripts and no requests, made from the ledger alone."""

from __future__ import annotations

import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from verify.report.notation import to_html

GROUPS = (
    ("Lemmas and theorems", "lemma", ""),
    ("Points of the review", "review", "Proved says that the point is right."),
    ("Further findings", "finding", "Proved says that the finding is right."),
    ("Our own constructions", "construction", ""),
)
"""Headings of the list of claims, and what a verdict means there."""


def render_html(ledger: dict[str, Any], examples: dict[str, str], pictures: dict[str, str]) -> dict[str, str]:
    """The pages by file name; `pictures` holds the SVG of each figure."""
    environment = Environment(
        loader=PackageLoader("verify.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
    )
    environment.filters["svg"] = Markup
    environment.filters["prose"] = lambda text: Markup(to_html(text))
    counts: dict[str, int] = {}
    for claim in ledger["claims"]:
        for construction in claim["constructions"].values():
            for verdict in construction["verdicts"]:
                counts[verdict["status"]] = counts.get(verdict["status"], 0) + 1
    runs = [
        {"file": name, "result": json.loads(text)} for name, text in examples.items() if '"simulation-result/1"' in text
    ]
    used_by: dict[str, list[str]] = {}
    for claim_id, used in ledger["dependencies"]:
        used_by.setdefault(claim_id, []).append(used)
    groups = [
        (heading, note, [claim for claim in ledger["claims"] if group_of(claim) == group])
        for heading, group, note in GROUPS
    ]
    page = environment.get_template("index.html").render(
        ledger=ledger,
        counts=counts,
        groups=[group for group in groups if group[2]],
        runs=runs,
        uses=used_by,
        pictures=pictures,
    )
    return {"index.html": page}


def group_of(claim: dict[str, Any]) -> str:
    """Which part of the list of claims a claim belongs to."""
    if claim["kind"] in ("comment", "finding"):
        return "review" if claim["id"].startswith("R") else "finding"
    return "lemma" if claim["kind"] == "lemma" else "construction"
