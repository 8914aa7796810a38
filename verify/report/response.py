"""`response.md`: a point-by-point answer to the referee report, made from the ledger alone."""

from __future__ import annotations

import re
from typing import Any

POINTS = {"R1": "Major comment 1", "R2": "Major comment 2", "R3": "Major comment 3", "R4": "Major comment 4"} | {
    f"R{4 + k}": f"Minor comment {k}" for k in range(1, 6)
}
"""The review's comments by claim, in its order."""


def render_response(ledger: dict[str, Any]) -> dict[str, str]:
    """The file by name; no file where the ledger answers no comment."""
    claims = {claim["id"]: claim for claim in ledger["claims"] if claim["id"] in POINTS}
    if not claims:
        return {}
    lines = [
        "# Answer to the referee report",
        "",
        "Each point is answered by what was checked, with the reach of every verdict and the command that repeats it. *Proved* says that the",
        "point, or the repair named, is right; the evidence files stand beside this one.",
    ]
    for claim_id, place in POINTS.items():
        lines += ["", f"## {place}", ""]
        claim = claims.get(claim_id)
        if claim is None:
            lines.append(f"Not answered here: claim {claim_id} has no check in this ledger.")
            continue
        lines += [f"**{claim['title']}** ({claim_id}; {claim['source']}). {claim['statement']}", ""]
        for name, construction in claim["constructions"].items():
            for verdict in construction["verdicts"]:
                evidence = f" [evidence]({verdict['evidence_file']})" if "evidence_file" in verdict else ""
                lines.append(
                    f"- {name}, {verdict['arithmetic']}: **{verdict['status']}**, {verdict['scope']}. {_sentence(verdict['detail'])}"
                    f"{_assumes(verdict)}{evidence}"
                )
        lines += ["", f"      verify check {claim_id}"]
    further = [c for c in ledger["claims"] if re.fullmatch(r"N\d+", c["id"])]
    if further:
        lines += ["", "## Further findings", ""]
        for claim in further:
            words = ", ".join(f"{name} {c['status']}" for name, c in claim["constructions"].items())
            lines.append(
                f"- **{claim['id']}**, {claim['title']}: {claim['statement']} ({words}; `verify check {claim['id']}`)"
            )
    return {"response.md": "\n".join(lines) + "\n"}


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _assumes(verdict: dict[str, Any]) -> str:
    return f" Assumes: {', '.join(verdict['assumes'])}." if verdict["assumes"] else ""
