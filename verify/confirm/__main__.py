"""`python -m verify.confirm FILE`: exit code 0 confirmed, 1 not confirmed, 2 no evidence file."""

from __future__ import annotations

import sys

from .document import Refused, read
from .statement import confirm


def main(arguments: list[str]) -> int:
    """Reads one file and prints one line for each statement that does not hold, and one for the whole."""
    if len(arguments) != 1:
        print("confirm: usage: python -m verify.confirm FILE", file=sys.stderr)
        return 2
    try:
        document = read(arguments[0])
        finding = confirm(document)
    except Refused as error:
        print(f"confirm: {error}", file=sys.stderr)
        return 2
    for line in finding.lines:
        print(line)
    return 0 if finding.confirmed else 1


sys.exit(main(sys.argv[1:]))
