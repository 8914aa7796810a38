"""The constructions of Yu and Alman, arXiv 2506.12220: one module a lemma, in the paper's order.

Importing the package registers every claim in `REGISTRY`.
"""

from proofs import (
    lemma_a1,
    lemma_a2,
    lemma_a3,
    lemma_b1,
    lemma_b3,
    precision,
    relu_networks,
    section_1_2,
    section_2_1,
    synthetic_weight,
    theorem_b4,
    theorem_b5,
    theorem_c1,
    theorem_c1_findings,
    theorem_c2,
    theorem_d1,
    transport,
)
from proofs.registry import REGISTRY

__all__ = [
    "REGISTRY",
    "lemma_a1",
    "lemma_a2",
    "lemma_a3",
    "lemma_b1",
    "lemma_b3",
    "precision",
    "relu_networks",
    "section_1_2",
    "section_2_1",
    "synthetic_weight",
    "theorem_b4",
    "theorem_b5",
    "theorem_c1",
    "theorem_c1_findings",
    "theorem_c2",
    "theorem_d1",
    "transport",
]
