"""`verify trust`: seeded faults in the constructions, and which check rejects each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from verify.claims.progress import Progress
from verify.claims.runner import load
from verify.commands.show import json_text
from verify.trust.hunt import Fate, catalogue, hunt, timed
from verify.trust.hunt import sample as chosen
from verify.trust.record import document, known, write

ALL_REJECTED, SOME_SURVIVE = 0, 1


@click.command("trust")
@click.option("--module", help="Only faults in this module of the proofs package, such as lemma_b1.")
@click.option("--sample", type=click.IntRange(1), help="Only so many faults, chosen by --seed (default: all).")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes.")
@click.option(
    "--limit", type=click.IntRange(1), default=120, show_default=True, help="Seconds for the checks on one fault."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep the record in this file after every fault, and take up what it holds.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.pass_obj
def seed_faults(
    package: str,
    module: str | None,
    sample: int | None,
    seed: int,
    jobs: int,
    limit: int,
    out: Path | None,
    as_json: bool,
) -> int:
    """Changes one operator, comparison, constant, sign or extreme of a construction at a time and runs the checks.

    A fault that no check notices is a survivor: either the change makes no difference, and the package says why, or a check is
    missing. Exit code 0 when every fault was rejected or is proved to make no difference, 1 when some survive unexplained.
    """
    all_faults = catalogue(package, module)
    faults = all_faults if sample is None else chosen(all_faults, sample, seed)
    kept = [] if out is None else known(package, out, faults)
    fates = {fate.mutant.key: fate for fate in kept}
    checks = timed(package)
    equivalent = load(package).equivalent

    def record() -> dict[str, Any]:
        tried = [fates[fault.key] for fault in faults if fault.key in fates]
        return document(
            package, tried, checks, catalogue=len(all_faults), sample=sample, seed=seed, equivalent=equivalent
        )

    with Progress("faults", len(faults)) as progress:
        for fate in kept:
            progress.step(fate.mutant.module)

        def done(fate: Fate) -> None:
            fates[fate.mutant.key] = fate
            progress.step(fate.mutant.module)
            if out is not None:
                write(out, record())

        hunt(package, [fault for fault in faults if fault.key not in fates], checks, jobs=jobs, limit=limit, done=done)
    found = record()
    if out is not None:
        write(out, found)
    if as_json:
        sys.stdout.write(json_text(found))
    else:
        for survivor in found["survivors"]:
            click.echo(f"survives: {survivor['fault']} (line {survivor['line']}): {survivor['proof'] or 'unexplained'}")
        click.echo(
            f"{found['tried']} of {found['catalogue']} faults tried: {found['rejected']} rejected, "
            f"{found['equivalent']} make no difference (proved), {found['unexplained']} survive unexplained; "
            f"{len(found['needed'])} checks are the only ones to reject some fault, {len(found['redundant'])} are not"
        )
    return SOME_SURVIVE if found["unexplained"] else ALL_REJECTED
