"""The `trust/1` document: what became of each seeded fault, which checks are needed to reject them all, and what survives and why.

A record is kept beside the proofs and is taken up again: a fault's fate counts as long as its module, and every module that imports
it, read as they did. So a run that was killed, or that follows a change, only tries what is new.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verify.errors import RequestError
from verify.trust.hunt import Fate, Timed, importers, relevant, sources
from verify.trust.mutation import Mutant

FORMAT = "trust/1"
LARGEST = 64 * 2**20
"""Bytes of a record that are read."""


def digests(package: str) -> dict[str, str]:
    """For each module, SHA-256 of its text and of the texts of the modules that import it."""
    texts = sources(package)
    return {
        module: hashlib.sha256(
            "\0".join(texts[name] for name in sorted(importers(package, module))).encode()
        ).hexdigest()
        for module in texts
    }


def document(
    package: str,
    fates: Sequence[Fate],
    checks: Sequence[Timed],
    *,
    catalogue: int,
    sample: int | None,
    seed: int,
    equivalent: Mapping[str, str],
) -> dict[str, Any]:
    """The record of these fates. `equivalent` holds, by a fault's key, the proof that it makes no difference."""
    state = digests(package)
    modules = {fate.mutant.module for fate in fates}
    asked = {check.name for module in modules for check in relevant(package, checks, module)}
    only = Counter(fate.only for fate in fates)
    first = {fate.only: fate.mutant.key for fate in reversed(fates)}
    survivors = [fate.mutant for fate in fates if fate.survived]
    return {
        "format": FORMAT,
        "catalogue": catalogue,
        "sample": sample,
        "seed": seed,
        "tried": len(fates),
        "rejected": len(fates) - len(survivors),
        "equivalent": sum(mutant.key in equivalent for mutant in survivors),
        "unexplained": sum(mutant.key not in equivalent for mutant in survivors),
        "kinds": dict(sorted(Counter(fate.mutant.kind for fate in fates).items())),
        "survivors": [_place(mutant) | {"proof": equivalent.get(mutant.key)} for mutant in survivors],
        "needed": [{"check": name, "faults": only[name], "example": first[name]} for name in sorted(asked & set(only))],
        "redundant": sorted(asked - set(only)),
        "faults": [_place(fate.mutant) | {"by": list(fate.by), "sources": state[fate.mutant.module]} for fate in fates],
    }


def _place(mutant: Mutant) -> dict[str, Any]:
    return {"fault": mutant.key, "line": mutant.line, "kind": mutant.kind}


def known(package: str, path: Path, faults: Sequence[Mutant]) -> list[Fate]:
    """The fates that a record holds for these faults and that still count. Raises RequestError for a file that is no record."""
    if not path.exists():
        return []
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"larger than {LARGEST} bytes")
        read = json.loads(path.read_bytes())
        if read["format"] != FORMAT:
            raise ValueError(f"format {str(read['format'])[:40]!r}")
        fates = {str(entry["fault"]): (entry["sources"], tuple(map(str, entry["by"]))) for entry in read["faults"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RequestError(
            f"{str(path)!r} is no {FORMAT} record: {type(error).__name__}: {error}", where="--out", right="another file"
        ) from None
    state = digests(package)
    found = [(mutant, *fates.get(mutant.key, ("", ()))) for mutant in faults]
    return [Fate(mutant, by) for mutant, digest, by in found if digest == state[mutant.module]]


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Writes a record whole, or leaves the file as it was. Raises RequestError if it cannot."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(record, indent=1) + "\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise RequestError(
            f"cannot write {str(path)!r}: {error.strerror}", where="--out", right="name another file"
        ) from None
