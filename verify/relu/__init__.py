"""Explicit ReLU networks with exact rational weights: built, counted, run, and their errors certified.

`network` is the object, `circuit` compiles layered networks from formulas, `library` builds the networks of the paper's
MLPs, `pieces` follows a network exactly as the piecewise-linear function that it is, `target` knows the functions to be
approximated, `error` certifies how well a network does, `bound` says what no network can do.
"""
