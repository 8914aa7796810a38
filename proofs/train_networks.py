"""Trains the small networks that claim R1 certifies and writes them to `trained_networks.json` beside this module.

    python -m proofs.train_networks

The stored file is what is certified; training again on another machine comes close to it, not equal (floating point).
"""

from __future__ import annotations

import json
from pathlib import Path

from proofs.relu_networks import RANGES
from verify.relu.training import train

WIDTHS = ((4,), (8,), (16,), (4, 4), (8, 8))
"""Hidden layers of the networks."""

SEED = 2506

TARGET, RANGE = RANGES[0][0], RANGES[0][1:]
"""r/(1-r), for A from 0 to 15."""


def main() -> None:
    """Trains and writes."""
    networks = [{"widths": list(widths), "layers": train(TARGET, *RANGE, widths, SEED).to_json()} for widths in WIDTHS]
    document = {"target": TARGET.formula, "range": [str(x) for x in RANGE], "seed": SEED, "networks": networks}
    Path(__file__).with_name("trained_networks.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
