"""The small independent checker: it recomputes what an evidence file states, from the file alone.

It uses the standard library only and nothing else of this package, so that a mistake of the engine cannot hide in it: its own
reader (`document`), its own rational enclosures of exp, log and square roots (`enclosure`), its own attention (`evaluation`), and
its own comparison of numbers (`statement`). The folder runs by itself: `python -m verify.confirm FILE`, or copied elsewhere.
"""

from __future__ import annotations

from .document import Refused, read
from .statement import Finding, confirm

__all__ = ["Finding", "Refused", "confirm", "read"]
