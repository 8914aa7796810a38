"""Tables of exact numbers that a lemma's module contributes to the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table by name: what it shows, its column headers, and a function that computes its rows as strings."""

    name: str
    claim: str
    caption: str
    headers: tuple[str, ...]
    compute: Callable[[], Sequence[Sequence[str]]]

    def to_json(self) -> dict[str, Any]:
        """The computed table as JSON data."""
        rows = [list(row) for row in self.compute()]
        if any(len(row) != len(self.headers) for row in rows):
            raise ValueError(f"table {self.name}: a row does not have {len(self.headers)} cells")
        return {
            "name": self.name,
            "claim": self.claim,
            "caption": self.caption,
            "headers": list(self.headers),
            "rows": rows,
        }
