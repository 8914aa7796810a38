"""Claims and their checks: a lemma's module registers what it states, and how each construction of it is examined."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import update_wrapper, wraps
from typing import Generic, ParamSpec, TypeVar

from verify.claims.construction import Construction
from verify.claims.figure import Figure
from verify.claims.table import Table
from verify.claims.verdict import ASSUMPTIONS, Outcome, Scope, Status, Verdict
from verify.errors import RequestError

P = ParamSpec("P")
R = TypeVar("R")

_used: ContextVar[set[str] | None] = ContextVar("_used", default=None)


def part_of(claim: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Marks a construction as belonging to a claim: every check that runs it is recorded as depending on that claim."""

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            seen = _used.get()
            if seen is not None:
                seen.add(claim)
            return function(*args, **kwargs)

        return recorded

    return mark


@contextmanager
def recording() -> Iterator[set[str]]:
    """Collects the claims whose constructions run inside the block."""
    seen: set[str] = set()
    token = _used.set(seen)
    try:
        yield seen
    finally:
        _used.reset(token)


class remembered(Generic[P, R]):
    """Decorator: keeps a function's results by their arguments, together with the claims whose constructions ran for them.

    A plain cache would hide those claims from every check that finds the result ready, so that what a check is recorded to use would
    depend on what had run before it in the same process.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        self._known: dict[Hashable, tuple[R, frozenset[str]]] = {}
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The result, computed at most once; its claims count as used every time."""
        key = (args, tuple(sorted(kwargs.items())))
        if key not in self._known:
            with recording() as used:
                result = self._function(*args, **kwargs)
            self._known[key] = (result, frozenset(used))
        result, claims = self._known[key]
        seen = _used.get()
        if seen is not None:
            seen |= claims
        return result

    def cache_clear(self) -> None:
        """Forgets all results."""
        self._known.clear()


@dataclass(frozen=True)
class Check:
    """One examination of one construction of a claim in one arithmetic."""

    claim: str
    name: str
    construction: str
    arithmetic: str
    expects: Status
    predicate: str
    implies: str
    assumes: tuple[str, ...]
    examine: Callable[[], Outcome]

    def run(self) -> Verdict:
        """Runs the check and records which other claims' constructions it used.

        A check that breaks down is undecided, whatever was expected of it: neither a proof nor a refutation came out.
        """
        with recording() as used:
            try:
                outcome = self.examine()
                if not isinstance(outcome, Outcome):
                    raise TypeError(f"the check returned {type(outcome).__name__}, not an Outcome")
                json.dumps(
                    [dict(outcome.evidence), *map(dict, outcome.statements)], allow_nan=False
                )  # evidence that cannot be written is none
            except Exception as error:
                outcome = Outcome(
                    Status.UNDECIDED,
                    Scope("none: the check broke down"),
                    "the check itself",
                    "none",
                    f"{type(error).__name__}: {error}",
                )
        return Verdict(
            self.claim,
            self.name,
            self.construction,
            self.arithmetic,
            self.expects,
            outcome,
            self.predicate,
            self.implies,
            self.assumes,
            tuple(sorted(used - {self.claim})),
        )


@dataclass
class Claim:
    """A numbered statement of the paper, or a finding about it, with its checks.

    `statement` is the statement in one or two sentences, `source` where it stands in the paper (or in the review),
    `aliases` other numbers of the same statement, `printed` what holds or fails as printed, in a sentence.
    """

    id: str
    title: str
    statement: str
    source: str
    aliases: tuple[str, ...] = ()
    kind: str = "lemma"
    """lemma, finding, comment or construction."""
    checks: list[Check] = field(default_factory=list)

    def check(
        self,
        construction: str,
        arithmetic: str,
        *,
        predicate: str,
        implies: str,
        expects: Status = Status.PROVED,
        assumes: Sequence[str] = (),
        name: str = "",
    ) -> Callable[[Callable[[], Outcome]], Callable[[], Outcome]]:
        """Registers a function without arguments as a check of a construction.

        `arithmetic` is where it is decided: exact, symbolic, ball, or integers for pure counting. Raises ValueError for
        an assumption that is not on the list, and for a name that another check of the same construction has.
        """
        unknown = set(assumes) - set(ASSUMPTIONS)
        if unknown:
            raise ValueError(f"assumptions not on the list: {sorted(unknown)}")

        def register(examine: Callable[[], Outcome]) -> Callable[[], Outcome]:
            place = (construction, arithmetic, name or examine.__name__)
            if any((check.construction, check.arithmetic, check.name) == place for check in self.checks):
                raise ValueError(f"claim {self.id} has two checks {place}")
            self.checks.append(
                Check(
                    self.id,
                    name or examine.__name__,
                    construction,
                    arithmetic,
                    expects,
                    predicate,
                    implies,
                    tuple(assumes),
                    examine,
                )
            )
            return examine

        return register

    @property
    def module(self) -> str:
        """The file in which the claim's checks stand, from the package's root on; "" without checks."""
        return f"{self.checks[0].examine.__module__.replace('.', '/')}.py" if self.checks else ""

    @property
    def account(self) -> str:
        """What that file says of statement, construction and proof: its docstring."""
        if not self.checks:
            return ""
        return inspect.cleandoc(sys.modules[self.checks[0].examine.__module__].__doc__ or "")

    @property
    def expectations(self) -> dict[str, list[str]]:
        """For each construction, the verdicts expected of its checks, without repetition."""
        found: dict[str, list[str]] = {}
        for check in self.checks:
            verdicts = found.setdefault(check.construction, [])
            if check.expects.value not in verdicts:
                verdicts.append(check.expects.value)
        return found


class Registry:
    """The claims of a proofs package."""

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self.constructions: dict[str, Construction] = {}
        """The constructions that `verify simulate` offers, by name."""
        self.tables: dict[str, Table] = {}
        self.figures: dict[str, Figure] = {}
        self.equivalent: dict[str, str] = {}
        """Changes of a construction that make no difference, by the key that `verify trust` gives them, and the proof that they do not."""

    def add(self, claim: Claim) -> Claim:
        """Registers a claim. Raises ValueError when its id or an alias is taken."""
        taken = {name for known in self.claims.values() for name in (known.id, *known.aliases)}
        if taken & {claim.id, *claim.aliases}:
            raise ValueError(f"claim {claim.id} is registered twice")
        self.claims[claim.id] = claim
        return claim

    def sort(self) -> None:
        """Puts lemmas first, by number, then comments and findings by number, then our own constructions."""
        kinds = {"lemma": 0, "comment": 1, "finding": 1}

        def place(claim: Claim) -> tuple[int, str, tuple[int, ...], str]:
            letters = claim.id.rstrip("0123456789.")
            numbers = tuple(int(part) for part in re.findall(r"\d+", claim.id))
            return (kinds.get(claim.kind, 2), "A" if letters == "R" else letters, numbers, claim.id)

        self.claims = dict(sorted(self.claims.items(), key=lambda item: place(item[1])))

    def tabulate(self, table: Table) -> None:
        """Adds a table to the report. Raises ValueError when its name is taken."""
        if table.name in self.tables:
            raise ValueError(f"table {table.name} is registered twice")
        self.tables[table.name] = table

    def draw(self, figure: Figure) -> None:
        """Adds a plot to the report. Raises ValueError when its name is taken."""
        if figure.name in self.figures:
            raise ValueError(f"figure {figure.name} is registered twice")
        self.figures[figure.name] = figure

    def offer(self, construction: Construction) -> None:
        """Makes a construction available to `verify simulate`."""
        self.constructions[construction.name] = construction

    def find(self, name: str) -> Claim:
        """The claim with this id or alias, upper or lower case. Raises RequestError with what is known."""
        for claim in self.claims.values():
            if name.upper() in (claim.id.upper(), *(alias.upper() for alias in claim.aliases)):
                return claim
        raise RequestError(f"unknown claim {name[:40]!r}", right=f"known: {', '.join(self.claims)}")
