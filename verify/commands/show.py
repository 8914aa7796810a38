"""What people see on a terminal; progress and remarks go to standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from verify.claims.claim import Registry
from verify.claims.simulation import Request
from verify.claims.verdict import Status, Verdict

MOST_SLOTS = 256
"""The most layers, and the most heads, of an oracle (the paper's L' and H' are far below N)."""

STYLES = {Status.PROVED: "green", Status.REFUTED: "red", Status.UNDECIDED: "yellow", Status.ASSUMED: "blue"}


def _console() -> Console:
    # A pipe has no width: keep every cell on one line there.
    return Console(width=None if sys.stdout.isatty() else 200, highlight=False)


def show_claims(registry: Registry) -> None:
    """One block for each claim."""
    console = _console()
    for claim in registry.claims.values():
        also = f" (= {', '.join(claim.aliases)})" if claim.aliases else ""
        console.print(f"[bold]{escape(claim.id)}[/bold]{escape(also)}  {escape_words(claim.title)}", soft_wrap=True)
        console.print(f"    {claim.statement}", style="dim", soft_wrap=True, markup=False)
        for construction, expected in claim.expectations.items():
            console.print(f"    {construction}: expected {', '.join(expected)}", soft_wrap=True, markup=False)


def show_verdicts(verdicts: list[Verdict]) -> None:
    """One line for each verdict, then how many there are of each kind."""
    console = _console()
    for verdict in verdicts:
        status = verdict.outcome.status
        note = "" if verdict.as_expected else f" (expected {verdict.expected.value})"
        console.print(
            escape(f"{verdict.claim:6} {verdict.construction:12} {verdict.check:24} {verdict.arithmetic:9} ")
            + f"[{STYLES[status]}]{status.value}[/]{note}  {escape_words(verdict.outcome.scope.text)}: {escape_words(verdict.outcome.detail)}",
            soft_wrap=True,
        )
    counts = {status: sum(v.outcome.status is status for v in verdicts) for status in Status}
    unexpected = sum(not v.as_expected for v in verdicts)
    summary = ", ".join(f"{n} {status.value}" for status, n in counts.items() if n)
    console.print(f"{len(verdicts)} checks: {summary}; {unexpected} not as expected", soft_wrap=True)


def show_simulation(result: dict[str, Any], request: Request) -> None:
    """The costs and the verdict of one simulation."""
    console = _console()
    oracle, predicted = result["oracle"], result["predicted"] or {}
    changed = "; the model is changed: residual connections" if result["model"] == "residual" else ""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("instance", f"N = {request.instance.N}, d = {request.instance.d}, kernel {request.instance.kernel}")
    table.add_row("construction", f"{result['construction']}, {result['arithmetic']} arithmetic{changed}")
    table.add_row("oracle", f"length {oracle['length']}, layers {oracle['layers']}, heads {oracle['heads']}")
    for name in ("calls", "rounds", "longest_input", "embedding", "parameters"):
        if name in oracle:
            formula = f" (formula: {predicted[name]})" if name in predicted else ""
            table.add_row(name.replace("_", " "), f"{oracle[name]}{formula}")
    if "mlp_operations" in oracle:
        table.add_row("MLPs use", ", ".join(["affine maps", *oracle["mlp_operations"]]))
    for broken in result["broken_rules"]:
        table.add_row(
            "breaks",
            escape(f"{broken['rule']}: limit {broken['limit']}, needed {broken['needed']} ({broken['why']})"),
        )
    verdict = {True: "equal to the direct evaluation", False: "NOT equal to the direct evaluation"}
    table.add_row("output", verdict.get(result["equal"], "undecided: equality was not established"))
    if "why" in result:
        table.add_row("because", escape(result["why"]))
    if result["equal"] is not True and result["output"] is not None:
        table.add_row(
            "error", f"relative {result['relative_error']}, absolute {result['absolute_error']} (upper bounds)"
        )
    console.print(table)


def escape_words(text: str) -> str:
    """Text on one line, in which brackets are brackets and no markup."""
    return escape(" ".join(text.split()))


def json_text(document: Any) -> str:
    """JSON as the toolkit writes it: two spaces, ASCII, a newline at the end."""
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"
