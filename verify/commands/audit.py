"""`verify audit`: the rigorous error of a rounded run, or the fewest bits that reach a target."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from verify.arithmetic.rounded import FORMATS, MOST_BITS, Format
from verify.arithmetic.rounded import bits as bits_of
from verify.audit.audit import MOST_TARGET_BITS, Options, Subject, audit, unbuilt
from verify.claims.construction import Construction
from verify.claims.runner import load
from verify.claims.simulation import Request
from verify.commands.files import require_writable, write_atomically
from verify.commands.show import MOST_SLOTS, escape_words, json_text
from verify.errors import RequestError, RuleBroken
from verify.transformer.instance import read_instance

REACHED, MISSED = 0, 1


@click.command("audit")
@click.argument("instance", type=click.Path(path_type=Path))
@click.option(
    "--oracle-length", "-M", type=click.IntRange(1), required=True, help="M, the most tokens an oracle reads."
)
@click.option("--oracle-layers", type=click.IntRange(1, MOST_SLOTS), default=1, show_default=True, help="L'.")
@click.option("--oracle-heads", type=click.IntRange(1, MOST_SLOTS), default=1, show_default=True, help="H'.")
@click.option("--bits", type=click.IntRange(2, MOST_BITS), help="Significant bits, with unlimited exponent.")
@click.option("--dtype", help=f"A machine format instead: {', '.join(FORMATS)}.")
@click.option(
    "--target-bits",
    type=click.IntRange(1, MOST_TARGET_BITS),
    help="The target 2^-T, relative, for each row (default: T = N).",
)
@click.option(
    "--accumulate", help="Products and sums of dot products in this wider format (a name, or a number of bits)."
)
@click.option(
    "--softmax",
    type=click.Choice(["plain", "shifted"]),
    default="plain",
    show_default=True,
    help="shifted: subtract the row's largest score first.",
)
@click.option("--construction", default="repaired", show_default=True)
@click.option("--minimise", type=click.Choice(["calls", "rounds"]), default="calls", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Write the JSON result to this file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.pass_obj
def audit_instance(
    package: str,
    instance: Path,
    oracle_length: int,
    oracle_layers: int,
    oracle_heads: int,
    bits: int | None,
    dtype: str | None,
    target_bits: int | None,
    accumulate: str | None,
    softmax: str,
    construction: str,
    minimise: str,
    out: Path | None,
    as_json: bool,
) -> int:
    """Rounds every operation inside the oracles and bounds the error of the output, rigorously.

    Without --bits and --dtype: the fewest bits whose run reaches the target, relative for each row in the 2-norm. Exit code 0
    when the target is reached, 1 when it is missed.
    """
    if bits is not None and dtype is not None:
        raise RequestError("two formats at once", where="--bits, --dtype", right="give one of them")
    format = _named(dtype, "--dtype") if dtype is not None else bits_of(bits) if bits is not None else None
    wide = _wider(accumulate, format)
    known = load(package).constructions
    if construction not in known:
        raise RequestError(
            f"unknown construction {construction[:40]!r}", where="--construction", right=f"one of {', '.join(known)}"
        )
    if out is not None:
        require_writable(out, instance)
    request = Request(read_instance(instance), oracle_length, oracle_layers, oracle_heads, "rounded", minimise)
    target = target_bits if target_bits is not None else request.instance.N
    if target > MOST_TARGET_BITS:
        raise RequestError(
            f"the target 2^-{target} is out of reach", where="--target-bits", right=f"at most {MOST_TARGET_BITS}"
        )
    options = Options(format, Fraction(1, 1 << target), wide, softmax == "shifted")
    result = _audited(request, known[construction], options)
    if out is not None:
        write_atomically(out, json_text(result))
    if as_json:
        sys.stdout.write(json_text(result))
    else:
        _show(result, request)
    return REACHED if result["reached"] else MISSED


def _named(name: str, where: str) -> Format:
    if name not in FORMATS:
        raise RequestError(f"unknown format {name[:40]!r}", where=where, right=f"one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _wider(accumulate: str | None, format: Format | None) -> Format | None:
    """The accumulation format: a name or a number of bits, not below the format's own."""
    if accumulate is None:
        return None
    if accumulate.isascii() and accumulate.isdigit() and len(accumulate) < 9 and 2 <= int(accumulate) <= MOST_BITS:
        wide = bits_of(int(accumulate))
    elif accumulate in FORMATS:
        wide = FORMATS[accumulate]
    else:
        raise RequestError(
            f"unknown format {accumulate[:40]!r}",
            where="--accumulate",
            right=f"one of {', '.join(FORMATS)}, or a number of bits from 2 to {MOST_BITS}",
        )
    if format is not None and wide.precision < format.precision:
        raise RequestError(
            f"{wide.name} has fewer bits than {format.name}", where="--accumulate", right="a format at least as precise"
        )
    return wide


def _audited(request: Request, construction: Construction, options: Options) -> dict[str, Any]:
    problem, instance = request.problem(), request.instance
    heading = {"construction": construction.name}
    oracle: dict[str, Any] = {
        "length": request.oracle_length,
        "layers": request.oracle_layers,
        "heads": request.oracle_heads,
    }
    try:
        program = construction.build(problem, request.minimise)
    except RuleBroken as error:
        broken = {"rule": error.rule, "limit": error.limit, "needed": error.needed, "claim": construction.claim}
        return unbuilt(options) | heading | {"oracle": oracle, "broken_rules": [broken | {"why": error.detail}]}
    subject = Subject(instance.kernel, instance.transformer, instance.columns, program, request.oracle_length)
    with _status() as say:
        result = audit(subject, options, progress=say)
    cost = program.cost
    return (
        result
        | heading
        | {
            "oracle": oracle | {"longest_input": cost.longest_input, "calls": cost.calls, "rounds": cost.rounds},
            "broken_rules": [
                {"rule": b.rule, "limit": b.limit, "needed": b.needed, "claim": construction.claim, "why": b.detail}
                for b in program.broken_rules
            ],
        }
    )


@contextmanager
def _status() -> Iterator[Any]:
    """A line on the terminal that says what is being done; nothing where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with Console(stderr=True).status("auditing") as status:
        yield lambda text: status.update(text)


def _show(result: dict[str, Any], request: Request) -> None:
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    table = Table(show_header=False, box=None, pad_edge=False)
    instance = request.instance
    table.add_row("instance", f"N = {instance.N}, d = {instance.d}, kernel {instance.kernel}")
    table.add_row("construction", result["construction"])
    for broken in result["broken_rules"]:
        table.add_row("breaks", escape_words(f"{broken['rule']}: {broken['why']}"))
    if result["output"] is None:
        table.add_row("output", "none: the construction cannot run")
        console.print(table)
        return
    name = result["dtype"] or f"{result['bits']} bits, unlimited exponent"
    wide = f", sums in {result['accumulate']}" if result["accumulate"] else ""
    table.add_row("format", f"{name}{wide}, softmax {result['softmax']}")
    if result["exceptions"]:
        table.add_row("happened", ", ".join(result["exceptions"]))
    worst = result["worst"]
    table.add_row(
        "relative error", f"at most {result['relative_error']} (row {worst['row']}, column {worst['column']})"
    )
    table.add_row("absolute error", f"at most {result['absolute_error']}")
    bound = result["bound"]
    loose = f", {bound['loose_by_bits']} bits above what was measured" if bound["loose_by_bits"] else ""
    table.add_row("forward bound", f"relative error at most {bound['relative_error']}{loose}")
    for baseline, found in result["baselines"].items():
        table.add_row(f"{baseline} instead", f"relative error at most {found['relative_error']}")
    table.add_row("target", f"{_power(result['target'])}: {'reached' if result['reached'] else 'MISSED'}")
    if result["fewest_bits"] is not None:
        search = result["search"]
        always = search["always_from"]
        table.add_row(
            "fewest bits",
            f"{result['fewest_bits']} (impossible below {search['impossible_below']}"
            + (f"; every number of bits from {always} on reaches it" if always is not None else "")
            + (f"; not run: {search['not_run']}" if search["not_run"] else "")
            + ")",
        )
    if "why" in result:
        table.add_row("because", escape_words(result["why"]))
    console.print(table)
    steps = Table("step", "condition number", "bits lost", "in call", box=None, pad_edge=False)
    for step in result["steps"]:
        steps.add_row(step["step"], step["condition"], step["bits_lost"], escape_words(step["call"]))
    console.print(steps)


def _power(target: str) -> str:
    value = Fraction(target)
    return f"2^-{value.denominator.bit_length() - 1}" if value.numerator == 1 else target
