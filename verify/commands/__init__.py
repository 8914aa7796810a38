"""The `verify` command: `list`, `check`, `simulate`, `audit`, `report`, `confirm`, `trust` (see the README for the formats)."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec

import click

from verify import __version__
from verify.claims.claim import Check, Claim, Registry
from verify.claims.progress import Progress
from verify.claims.runner import load, run_checks
from verify.claims.simulation import Request, held, simulate
from verify.claims.verdict import Status, Verdict
from verify.commands.audit import audit_instance
from verify.commands.confirm import confirm_file
from verify.commands.files import require_writable, write_atomically
from verify.commands.show import MOST_SLOTS, json_text, show_claims, show_simulation, show_verdicts
from verify.commands.trust import seed_faults
from verify.errors import RequestError, Undecided, VerifyError
from verify.transformer.instance import read_instance

P = ParamSpec("P")

HELD, NOT_HELD, WRONG_REQUEST, INTERRUPTED = 0, 1, 2, 130

MOST_CHARACTERS = 1000
"""Of a complaint; a longer one is cut in the middle."""


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="verify")
@click.option("--proofs", "package", default="proofs", show_default=True, help="The package whose lemmas are checked.")
@click.pass_context
def commands(context: click.Context, package: str) -> None:
    """Exact verification of oracle constructions for transformers.

    Exit codes: 0 all held, 1 something checked did not hold, 2 the request or the input was wrong.
    """
    context.obj = package


def _json_option(function: Callable[P, Any]) -> Callable[P, Any]:
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")(function)


@commands.command("list")
@_json_option
@click.pass_obj
def list_claims(package: str, as_json: bool) -> int:
    """The claims: id, statement, constructions and what is expected of each."""
    registry = load(package)
    if as_json:
        _write_json({"format": "claim-list/1", "claims": [_claim_json(claim) for claim in registry.claims.values()]})
    else:
        show_claims(registry)
    return HELD


@commands.command("check")
@click.argument("claims", nargs=-1)
@click.option("--construction", help="Only this construction; the exit code then says whether it holds.")
@click.option("--arithmetic", help="Only checks in this arithmetic.")
@click.option("--jobs", type=click.IntRange(1), help="Processes (default: one for each processor).")
@_json_option
@click.pass_obj
def check_claims(
    package: str,
    claims: tuple[str, ...],
    construction: str | None,
    arithmetic: str | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Checks claims by number (all by default).

    Without --construction, exit code 0 means that every verdict is the expected one (a printed construction that is known
    to fail does fail, and every repair is proved). With --construction NAME it means that NAME itself holds.
    """
    checks = select(load(package), claims, construction, arithmetic)
    with Progress("checking", len(checks)) as progress:
        verdicts = run_checks(package, checks, jobs=jobs, done=lambda verdict: progress.step(verdict.claim))
    all_held = all(_held(verdict, asked=construction is not None) for verdict in verdicts)
    if as_json:
        _write_json({"format": "check-result/1", "held": all_held, "verdicts": [v.to_json() for v in verdicts]})
    else:
        show_verdicts(verdicts)
    return HELD if all_held else NOT_HELD


def _held(verdict: Verdict, *, asked: bool) -> bool:
    """Whether a verdict counts as held: as expected; and, for a construction asked for by name, not refuted or open."""
    fine = (Status.PROVED, Status.ASSUMED)
    return verdict.as_expected and (not asked or verdict.outcome.status in fine)


def select(registry: Registry, claims: Sequence[str], construction: str | None, arithmetic: str | None) -> list[Check]:
    """The checks asked for. Raises RequestError where nothing matches."""
    chosen = [registry.find(name) for name in claims] or list(registry.claims.values())
    checks = [check for claim in dict.fromkeys(c.id for c in chosen) for check in registry.claims[claim].checks]
    for option, wanted in (("construction", construction), ("arithmetic", arithmetic)):
        if wanted is not None:
            known = sorted({getattr(check, option) for check in checks})
            checks = [check for check in checks if getattr(check, option) == wanted]
            if not checks:
                raise RequestError(
                    f"nothing to check for {wanted[:40]!r}",
                    where=f"--{option}",
                    right=f"one of {', '.join(known) or 'none'}",
                )
    if not checks:
        raise RequestError("these claims have no checks yet", right="see verify list")
    return checks


@commands.command("simulate")
@click.argument("instance", type=click.Path(path_type=Path))
@click.option(
    "--oracle-length", "-M", type=click.IntRange(1), required=True, help="M, the most tokens an oracle reads."
)
@click.option(
    "--oracle-layers", type=click.IntRange(1, MOST_SLOTS), default=1, show_default=True, help="L', layers of an oracle."
)
@click.option(
    "--oracle-heads", type=click.IntRange(1, MOST_SLOTS), default=1, show_default=True, help="H', heads of a layer."
)
@click.option("--construction", default="repaired", show_default=True)
@click.option("--arithmetic", default="exact", show_default=True, help="exact or ball.")
@click.option("--minimise", type=click.Choice(["calls", "rounds"]), default="calls", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Write the JSON result to this file.")
@_json_option
@click.pass_obj
def simulate_instance(
    package: str,
    instance: Path,
    oracle_length: int,
    oracle_layers: int,
    oracle_heads: int,
    construction: str,
    arithmetic: str,
    minimise: str,
    out: Path | None,
    as_json: bool,
) -> int:
    """Runs a construction on your own INSTANCE (a JSON file) beside the direct evaluation."""
    known = load(package).constructions
    if construction not in known:
        raise RequestError(
            f"unknown construction {construction[:40]!r}", where="--construction", right=f"one of {', '.join(known)}"
        )
    if out is not None:
        require_writable(out, instance)
    request = Request(read_instance(instance), oracle_length, oracle_layers, oracle_heads, arithmetic, minimise)
    result = simulate(request, known[construction])
    if out is not None:
        write_atomically(out, json_text(result))
    if as_json:
        _write_json(result)
    else:
        show_simulation(result, request)
    return HELD if held(result) else NOT_HELD


commands.add_command(audit_instance)
commands.add_command(confirm_file)
commands.add_command(seed_faults)


@commands.command("report")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("reports"),
    show_default=True,
    help="The folder.",
)
@click.option("--jobs", type=click.IntRange(1), help="Processes (default: one for each processor).")
@click.option("--check", "only_check", is_flag=True, help="Write nothing: regenerate and compare byte for byte.")
@_json_option
@click.pass_obj
def write_report(package: str, out: Path, jobs: int | None, only_check: bool, as_json: bool) -> int:
    """Regenerates the reports: ledger, LaTeX fragments, HTML site, evidence. Nothing is redone when nothing changed.

    With --check the folder is compared with what would be written; exit code 1 when a byte differs.
    """
    from verify.report.build import build, compare  # the plotting and template libraries are needed here only

    summary = compare(package, out, jobs=jobs) if only_check else build(package, out, jobs=jobs)
    if as_json:
        _write_json(summary)
    else:
        click.echo(summary["message"])
    return HELD if summary["held"] else NOT_HELD


# -------------------------------------------------------------------------------------------------------------------------


def _claim_json(claim: Claim) -> dict[str, Any]:
    return {
        "id": claim.id,
        "aliases": list(claim.aliases),
        "kind": claim.kind,
        "title": claim.title,
        "statement": claim.statement,
        "source": claim.source,
        "constructions": claim.expectations,
    }


def _write_json(document: Any) -> None:
    sys.stdout.write(json_text(document))


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: runs a command and exits with its code; every deliberate error is one line on standard error."""
    if sys.stdout is None:  # closed by the caller: what would be printed goes nowhere
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without a sign still shows the rest
    try:
        code = commands.main(
            list(arguments) if arguments is not None else None, prog_name="verify", standalone_mode=False
        )
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.exceptions.Abort:
        code = INTERRUPTED
    except click.ClickException as error:
        code = _complain(error.format_message())
    except Undecided as error:
        _complain(str(error))
        code = NOT_HELD
    except VerifyError as error:
        code = _complain(str(error))
    except MemoryError:
        code = _complain("not enough memory for this request; a smaller instance or another arithmetic would do")
    except BrokenPipeError:
        code = NOT_HELD  # nobody read the answer, so it does not say that anything held
        _discard_output()
    except OSError as error:
        code = _complain(f"standard output: {error.strerror}")
        _discard_output()
    sys.exit(code or HELD)


def _discard_output() -> None:
    """Keeps the interpreter from trying again, at its end, to write what could not be written."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> int:
    line = "".join(c if c.isprintable() else " " for c in " ".join(message.split()))
    if len(line) > MOST_CHARACTERS:  # an option or a name repeated in full
        line = f"{line[: MOST_CHARACTERS // 2]} ... {line[-MOST_CHARACTERS // 2 :]}"
    print(f"verify: {line}", file=sys.stderr)
    return WRONG_REQUEST
