"""The ledger: every claim with its verdicts, as JSON; the one source from which every other report is made."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from verify.claims.claim import Claim, Registry
from verify.claims.verdict import ASSUMPTIONS, Status, Verdict

ORDER = (Status.REFUTED, Status.UNDECIDED, Status.ASSUMED, Status.PROVED)
"""Worst first."""


def summary(verdicts: Sequence[Verdict]) -> str:
    """A construction's verdict: the worst of its checks' verdicts."""
    found = {verdict.outcome.status for verdict in verdicts}
    return next((status.value for status in ORDER if status in found), Status.UNDECIDED.value)


def make_ledger(registry: Registry, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The `ledger/1` document: claims in the paper's order, each construction with its verdicts, and recorded dependencies."""
    claims = []
    for claim in registry.claims.values():
        own = [verdict for verdict in verdicts if verdict.claim == claim.id]
        constructions = {
            name: {
                "status": summary([v for v in own if v.construction == name]),
                "expected": expected,
                "verdicts": [_entry(v) for v in own if v.construction == name],
            }
            for name, expected in claim.expectations.items()
        }
        claims.append(_claim(claim) | {"constructions": constructions})
    assumed = sorted({name for verdict in verdicts for name in verdict.assumes})
    return {
        "format": "ledger/1",
        "claims": claims,
        "dependencies": sorted({(v.claim, used) for v in verdicts for used in v.uses}),
        "assumptions": {name: ASSUMPTIONS[name] for name in assumed},
        "tables": [table.to_json() for table in registry.tables.values()],
        "figures": [figure.to_json() for figure in registry.figures.values()],
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "id": claim.id,
        "aliases": list(claim.aliases),
        "kind": claim.kind,
        "title": claim.title,
        "statement": claim.statement,
        "source": claim.source,
        "module": claim.module,
        "account": claim.account,
    }


def _entry(verdict: Verdict) -> dict[str, Any]:
    entry = verdict.to_json()
    if has_evidence(verdict):
        entry["evidence_file"] = evidence_name(verdict)
        entry["statements"] = len(verdict.outcome.statements)
    return entry


def evidence_name(verdict: Verdict) -> str:
    """The file, under the reports folder, that holds a verdict's evidence."""
    plain = re.sub(
        r"[^A-Za-z0-9.]+", "-", f"{verdict.claim}-{verdict.construction}-{verdict.check}-{verdict.arithmetic}"
    )
    return f"evidence/{plain}.json"


def has_evidence(verdict: Verdict) -> bool:
    """Whether a verdict has a file of its own."""
    return bool(verdict.outcome.evidence or verdict.outcome.statements)


def evidence_document(verdict: Verdict) -> dict[str, Any]:
    """The `evidence/1` document of one verdict, as `verify confirm` reads it (verify/confirm/document.py describes it)."""
    document = {
        "format": "evidence/1",
        **verdict.to_json(),
        "statements": [dict(s) for s in verdict.outcome.statements],
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return document | {"digest": hashlib.sha256(text.encode("ascii")).hexdigest()}
