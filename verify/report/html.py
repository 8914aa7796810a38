"""The HTML page: one static file, no scripts and no requests, made from the ledger alone."""

from __future__ import annotations

import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from verify.report.ledger import verdict_word


def render_html(ledger: dict[str, Any], examples: dict[str, str]) -> dict[str, str]:
    """The pages by file name."""
    environment = Environment(
        loader=PackageLoader("verify.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
    )
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
        ("Statements of the paper", [c for c in ledger["claims"] if c["kind"] == "lemma"]),
        ("Findings and comments", [c for c in ledger["claims"] if c["kind"] in ("finding", "comment")]),
        ("Constructions of our own", [c for c in ledger["claims"] if c["kind"] == "construction"]),
    ]
    page = environment.get_template("index.html").render(
        ledger=ledger, counts=counts, runs=runs, uses=used_by, groups=groups, word=verdict_word
    )
    return {"index.html": page}
