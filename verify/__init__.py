"""Exact-arithmetic verification of oracle constructions for transformers."""

__version__ = "0.1.0"
