"""The worked examples of the report: small instances as files, simulated exactly as a user would.

They exercise the commands on real files, and their results stand in the report beside the universal claims.
"""

from __future__ import annotations

import json

from verify.claims.claim import Registry
from verify.claims.simulation import Request, simulate
from verify.transformer.instance import parse_instance

EXP2 = {
    "format": "attention-instance/1",
    "kernel": "exp2",
    "mask": "none",
    "X": [[1, 0], [0, 1], [2, -1], [-1, 1], [1, 1], [0, -2], [3, 0], [-1, -1], [2, 2], [0, 0], [1, -3], [-2, 1]],
    "layers": [{"heads": [{"WQ": [[1, 0], [1, 1]], "WK": [[1, -1], [0, 1]], "WV": [[1, 2], [0, -1]]}]}],
}
EXP = {
    "format": "attention-instance/1",
    "kernel": "exp",
    "mask": "none",
    "X": [["1/2", -3], [0, "0.25"], ["-1/3", 1], [2, "1/7"], ["0.1", "-0.2"], [1, 1], ["3/2", 0]],
    "layers": [{"heads": [{"WQ": [[1, 0], [0, 1]], "WK": [[1, 0], [0, 1]], "WV": [[1, 0], [0, 1]]}]}],
}

RUNS = (
    ("exp2", "repaired", "calls"),
    ("exp2", "repaired", "rounds"),
    ("exp2", "printed", "calls"),
    ("exp2", "residual", "calls"),
    ("exp", "repaired", "calls"),
)
"""(instance, construction, what is minimised), each with M = 6."""


def example_files(registry: Registry) -> dict[str, str]:
    """The instances and the results of simulating them, by file name; empty for a package without constructions."""
    files = {f"{name}.json": json.dumps(document, indent=1) + "\n" for name, document in (("exp2", EXP2), ("exp", EXP))}
    for kernel, construction, minimise in RUNS:
        if construction not in registry.constructions:
            return {}
        instance = parse_instance(files[f"{kernel}.json"], f"{kernel}.json")
        result = simulate(Request(instance, 6, minimise=minimise), registry.constructions[construction])
        files[f"{kernel}-{construction}-{minimise}.json"] = json.dumps(result, indent=1) + "\n"
    return files
