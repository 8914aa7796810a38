"""Evidence documents made by hand, and the digest that belongs to them, written once more."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

REPORTS = Path(__file__).parents[2] / "reports" / "evidence"


def with_digest(document: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in document.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return {**rest, "digest": hashlib.sha256(text.encode("ascii")).hexdigest()}


def evidence(*statements: Any, **members: Any) -> dict[str, Any]:
    """An intact document with these statements."""
    document: dict[str, Any] = {
        "format": "evidence/1",
        "claim": "A.1",
        "check": "identity",
        "construction": "printed",
        "arithmetic": "exact",
        "status": "proved",
        "expected": "proved",
        "scope": "this instance",
        "object": "o",
        "input": "i",
        "predicate": "p",
        "implies": "q",
        "detail": "d",
        "command": "verify check A.1",
        "assumes": [],
        "uses": [],
        "evidence": {"N": 3},
        "statements": list(statements),
    }
    return with_digest(document | members)


def holds(*relation: Any) -> dict[str, Any]:
    return {"kind": "relation", "means": "m", "relation": list(relation)}


def written(folder: Path, document: Any, name: str = "e.json") -> str:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return str(path)
