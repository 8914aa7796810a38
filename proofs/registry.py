"""The registry of this package's claims and constructions, filled by its modules in the paper's order."""

from __future__ import annotations

from verify.claims.claim import Registry

REGISTRY = Registry()
