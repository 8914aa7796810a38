"""The site in `html/`: static pages, no scripts and no requests, made from the ledger alone.

`index.html` says what holds and draws the roadmap; every claim has a page with its answer first; `tables.html` has the numbers.
"""

from __future__ import annotations

import json
import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from verify.report.account import account_html
from verify.report.counterexample import matrices_html
from verify.report.figures import picture_name
from verify.report.graph import draw_graph
from verify.report.notation import to_html

GROUPS = (
    ("Lemmas and theorems", "lemma", ""),
    ("Points of the review", "review", "Proved says that the point is right."),
    ("Further findings", "finding", "Proved says that the finding is right."),
    ("Our own constructions", "construction", ""),
)
"""Headings of the list of claims, and what a verdict means there."""


def render_html(ledger: dict[str, Any], examples: dict[str, str], pictures: dict[str, str]) -> dict[str, str]:
    """The pages by file name; `pictures` holds the SVG of each figure by its name."""
    environment = Environment(
        loader=PackageLoader("verify.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
    )
    environment.filters.update(
        prose=lambda text: Markup(to_html(text)),
        page=page_name,
        picture=picture_name,
        account=account_html,
        matrices=matrices_html,
    )
    uses, used_by = _dependencies(ledger)
    runs = [
        {"file": name, "result": json.loads(text)} for name, text in examples.items() if '"simulation-result/1"' in text
    ]
    groups = [
        (heading, note, [claim for claim in ledger["claims"] if group_of(claim) == group])
        for heading, group, note in GROUPS
    ]
    pages = {
        "index.html": environment.get_template("index.html").render(
            ledger=ledger,
            counts=_counts(ledger),
            lines=summary_lines(ledger),
            groups=[group for group in groups if group[2]],
            runs=runs,
            graph=Markup(draw_graph(ledger, page_name)),
        ),
        "tables.html": environment.get_template("tables.html").render(ledger=ledger),
        "style.css": environment.get_template("style.css").render(),
    }
    for claim in ledger["claims"]:
        pages[page_name(claim["id"])] = environment.get_template("claim.html").render(
            claim=claim,
            uses=uses.get(claim["id"], []),
            used_by=used_by.get(claim["id"], []),
            tables=[table for table in ledger["tables"] if table["claim"] == claim["id"]],
            figures=[figure for figure in ledger["figures"] if figure["claim"] == claim["id"]],
        )
    pages |= {picture_name(figure): pictures[figure["name"]] for figure in ledger["figures"]}
    return {f"html/{name}": text for name, text in pages.items()}


def page_name(claim: str) -> str:
    """The page of a claim."""
    return f"claim-{re.sub(r'[^A-Za-z0-9.]+', '-', claim)}.html"


def group_of(claim: dict[str, Any]) -> str:
    """Which part of the list of claims a claim belongs to."""
    if claim["kind"] in ("comment", "finding"):
        return "review" if claim["id"].startswith("R") else "finding"
    return "lemma" if claim["kind"] == "lemma" else "construction"


def summary_lines(ledger: dict[str, Any]) -> list[dict[str, Any]]:
    """What holds and what does not, in a few lines, each with the claims that it is about."""
    by_group: dict[str, list[dict[str, Any]]] = {}
    for claim in ledger["claims"]:
        by_group.setdefault(group_of(claim), []).append(claim)

    def printed(claim: dict[str, Any], *statuses: str) -> bool:
        return "printed" in claim["constructions"] and claim["constructions"]["printed"]["status"] in statuses

    def repaired(claim: dict[str, Any]) -> bool:
        return any(name != "printed" and c["status"] == "proved" for name, c in claim["constructions"].items())

    def right(claim: dict[str, Any]) -> bool:
        return any(c["status"] == "proved" for c in claim["constructions"].values())

    lemmas = by_group.get("lemma", [])
    found = (
        (
            "Statements whose printed construction passes every check",
            [c for c in lemmas if printed(c, "proved")],
        ),
        (
            "Statements whose printed construction fails a check, with a construction beside it that passes all of its own",
            [c for c in lemmas if printed(c, "refuted") and repaired(c)],
        ),
        (
            "Statements whose printed construction fails a check, without such a construction",
            [c for c in lemmas if printed(c, "refuted") and not repaired(c)],
        ),
        ("Points of the review with a check that supports them", [c for c in by_group.get("review", []) if right(c)]),
        ("Further findings with a check that supports them", [c for c in by_group.get("finding", []) if right(c)]),
        ("Our own constructions", by_group.get("construction", [])),
        (
            "Undecided in some check",
            [c for c in ledger["claims"] if any(k["status"] == "undecided" for k in c["constructions"].values())],
        ),
        (
            "Resting on an assumption alone",
            [c for c in ledger["claims"] if any(k["status"] == "assumed" for k in c["constructions"].values())],
        ),
    )
    return [{"text": text, "claims": claims} for text, claims in found if claims]


def _counts(ledger: dict[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for claim in ledger["claims"]:
        for construction in claim["constructions"].values():
            for verdict in construction["verdicts"]:
                counts[verdict["status"]] = counts.get(verdict["status"], 0) + 1
    return counts


def _dependencies(ledger: dict[str, Any]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    uses: dict[str, list[str]] = {}
    used_by: dict[str, list[str]] = {}
    for claim, used in ledger["dependencies"]:
        uses.setdefault(claim, []).append(used)
        used_by.setdefault(used, []).append(claim)
    return uses, used_by
