"""A construction of the main theorem that a user can run on an instance of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from verify.oracle.problem import Problem
from verify.oracle.program import Program


@dataclass(frozen=True)
class Construction:
    """`build(problem, minimise)` makes the program, `predict(problem, minimise)` its calls and rounds by formula.

    `minimise` is "calls" or "rounds". Both raise RequestError, with the smallest M that would do, when M is too small;
    `build` raises RuleBroken when a printed construction cannot be run even with its broken rules waived. `claim` is
    the claim that a broken rule refutes.
    """

    name: str
    claim: str
    description: str
    build: Callable[[Problem, str], Program]
    predict: Callable[[Problem, str], tuple[int, int]]
