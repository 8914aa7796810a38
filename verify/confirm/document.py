"""Reading an `evidence/1` file: within stated limits, without trusting a byte of it, and without evaluating anything.

An evidence file is a JSON object. Its members `claim`, `check`, `construction`, `arithmetic`, `status`, `expected`, `scope`,
`object`, `input`, `predicate`, `implies`, `detail`, `command` are strings; `assumes`, `uses` lists of strings; `evidence` is an
object for people and tools; `statements` is the list of statements that can be recomputed (see `statement`); `digest` is the
SHA-256, in hexadecimal, of the same document without `digest`, written by Python's
`json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)`.
"""

from __future__ import annotations

import hashlib
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 24
MOST_DEPTH = 24
MOST_DIGITS = 20_000
STATUSES = ("proved", "refuted", "undecided", "assumed")

STRINGS = (
    "format",
    "claim",
    "check",
    "construction",
    "arithmetic",
    "status",
    "expected",
    "scope",
    "object",
    "input",
    "predicate",
    "implies",
    "detail",
    "command",
    "digest",
)
MEMBERS = (*STRINGS, "assumes", "uses", "evidence", "statements")

_RATIONAL = re.compile(r"-?[0-9]+(/[0-9]+)?")


class Refused(Exception):
    """The file is not evidence that can be checked; one line says what is wrong and what would be right."""


def read(path: str) -> dict[str, Any]:
    """The document in a file. Raises Refused: unreadable, too large, no JSON, other members, or a digest that does not fit."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise Refused(
            f"{path!r} cannot be read: {getattr(error, 'strerror', None) or error}; name an evidence file"
        ) from None
    if len(content) > MOST_BYTES:
        raise Refused(f"{path!r} is larger than {MOST_BYTES} bytes; evidence files are smaller")
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        raise Refused(f"{path!r}: byte {error.start} is not ASCII; evidence files are JSON in ASCII") from None
    _require_shallow(text, path)
    try:
        document = json.loads(
            text, object_pairs_hook=_members, parse_float=_no_float, parse_constant=_no_float, parse_int=_integer
        )
    except Refused as error:
        raise Refused(f"{path!r}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path!r} is not JSON ({error}); it may be cut off") from None
    _require_form(document, path)
    return dict(document)


def digest(document: dict[str, Any]) -> str:
    """The digest that belongs to a document."""
    rest = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def rational(value: Any) -> Fraction:
    """An integer, or a string "p" or "p/q", as a rational. Raises Refused for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if not isinstance(value, str) or len(value) > 2 * MOST_DIGITS or not _RATIONAL.fullmatch(value):
        raise Refused(f'{_short(value)} is not a number; right are integers and strings "p/q"')
    numerator, _, denominator = value.partition("/")
    if max(len(numerator), len(denominator)) > MOST_DIGITS:
        raise Refused(f"a number has more than {MOST_DIGITS} digits")
    bottom = int(denominator or "1")
    if bottom == 0:
        raise Refused(f"{_short(value)} has the denominator 0")
    return Fraction(int(numerator), bottom)


def _require_form(document: Any, path: str) -> None:
    if not isinstance(document, dict) or document.get("format") != "evidence/1":
        raise Refused(f'{path!r} is not evidence; right is an object with "format": "evidence/1"')
    if set(document) != set(MEMBERS):
        odd = sorted(set(document) ^ set(MEMBERS))
        raise Refused(f"{path!r}: member {odd[0]!r} is missing or unknown")
    for name in STRINGS:
        if not isinstance(document[name], str):
            raise Refused(f"{path!r}: {name} is not a string")
    for name in ("assumes", "uses"):
        if not isinstance(document[name], list) or not all(isinstance(x, str) for x in document[name]):
            raise Refused(f"{path!r}: {name} is not a list of strings")
    if not isinstance(document["evidence"], dict) or not isinstance(document["statements"], list):
        raise Refused(f"{path!r}: evidence is not an object, or statements is not a list")
    for name in ("status", "expected"):
        if document[name] not in STATUSES:
            raise Refused(f"{path!r}: {name} is {_short(document[name])}; right is one of {', '.join(STATUSES)}")
    if digest(document) != document["digest"]:
        raise Refused(f"{path!r} was changed after it was written: its digest does not fit")


def _require_shallow(text: str, path: str) -> None:
    """Refuses deep nesting before any parser sees it."""
    depth, inside, escaped = 0, False, False
    for sign in text:
        if inside:
            inside, escaped = escaped or sign != '"', not escaped and sign == "\\"
        elif sign == '"':
            inside = True
        elif sign in "[{":
            depth += 1
            if depth > MOST_DEPTH:
                raise Refused(f"{path!r} is nested more than {MOST_DEPTH} deep")
        elif sign in "]}":
            depth -= 1


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused("an object has the same member twice")
    return found


def _no_float(written: str) -> Any:
    raise Refused(f'{written[:40]} is not exact; right are integers and strings "p/q"')


def _integer(written: str) -> int:
    if len(written) > MOST_DIGITS // 8:
        raise Refused("an integer is too long; write long numbers as strings")
    return int(written)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
