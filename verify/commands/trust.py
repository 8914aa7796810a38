"""`verify trust`: seeded faults in the constructions, and which check rejects each."""

from __future__ import annotations

import sys
from collections import Counter
from random import Random
from typing import Any

import click

from verify.claims.progress import Progress
from verify.commands.show import json_text
from verify.trust.hunt import Fate, catalogue, hunt, timed

ALL_REJECTED, SOME_SURVIVE = 0, 1


@click.command("trust")
@click.option("--module", help="Only faults in this module of the proofs package, such as lemma_b1.")
@click.option("--sample", type=click.IntRange(1), help="Only so many faults, chosen by --seed (default: all).")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes.")
@click.option(
    "--limit", type=click.IntRange(1), default=120, show_default=True, help="Seconds for the checks on one fault."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.pass_obj
def seed_faults(
    package: str, module: str | None, sample: int | None, seed: int, jobs: int, limit: int, as_json: bool
) -> int:
    """Changes one operator, comparison, constant, sign or extreme of a construction at a time and runs the checks.

    A fault that no check notices is a survivor: either the change makes no difference, or a check is missing. Exit code 0 when
    every fault was rejected, 1 when some survive.
    """
    faults = catalogue(package, module)
    total = len(faults)
    if sample is not None and sample < total:
        faults = [faults[i] for i in sorted(Random(seed).sample(range(total), sample))]
    with Progress("faults", len(faults)) as progress:
        fates = hunt(
            package, faults, timed(package), jobs=jobs, limit=limit, done=lambda fate: progress.step(fate.mutant.module)
        )
    survivors = [fate for fate in fates if fate.survived]
    if as_json:
        sys.stdout.write(json_text(_document(fates, total, seed)))
    else:
        for fate in survivors:
            click.echo(f"survives: {fate.mutant.name}")
        click.echo(
            f"{len(fates)} of {total} faults tried: {len(fates) - len(survivors)} rejected, {len(survivors)} survive"
        )
    return SOME_SURVIVE if survivors else ALL_REJECTED


def _document(fates: list[Fate], total: int, seed: int) -> dict[str, Any]:
    return {
        "format": "trust/1",
        "catalogue": total,
        "tried": len(fates),
        "seed": seed,
        "rejected": sum(not fate.survived for fate in fates),
        "kinds": dict(sorted(Counter(fate.mutant.kind for fate in fates).items())),
        "rejected_by": dict(sorted(Counter(fate.by for fate in fates if fate.by).items())),
        "survivors": [
            {
                "module": fate.mutant.module,
                "line": fate.mutant.line,
                "function": fate.mutant.function,
                "before": fate.mutant.before,
                "after": fate.mutant.after,
            }
            for fate in fates
            if fate.survived
        ],
    }
