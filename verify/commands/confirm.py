"""`verify confirm`: recomputes the statements of an evidence file with the small independent checker."""

from __future__ import annotations

import sys

import click

from verify.commands.show import json_text
from verify.confirm import Refused, confirm, read
from verify.errors import RequestError

CONFIRMED, NOT_CONFIRMED = 0, 1


@click.command("confirm")
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def confirm_file(file: str, as_json: bool) -> int:
    """Re-checks an evidence FILE from the file alone.

    The checker (verify/confirm, standard library only) shares nothing with the engine that wrote the file. Exit code 0 when every
    statement in the file holds, 1 when one does not, stays open, or there is none; 2 when it is no intact evidence file.
    """
    try:
        document = read(file)
        finding = confirm(document)
    except Refused as error:
        raise RequestError(str(error)) from None
    if as_json:
        place = {name: document[name] for name in ("claim", "construction", "check", "status", "scope")}
        result = {"format": "confirmation/1", "confirmed": finding.confirmed, "statements": finding.statements, **place}
        sys.stdout.write(json_text(result | {"lines": list(finding.lines)}))
    else:
        for line in finding.lines:
            click.echo(line)
    return CONFIRMED if finding.confirmed else NOT_CONFIRMED
