"""Runs the checks on seeded faults: which check rejects which mutant, and which mutants survive.

Every mutant gets a process of its own, in which its module is the changed one from the first import on. Relevant are the checks defined
in the mutant's module or in a module that imports it, directly or not. They run until two do not come out as announced: first those
of the mutant's own module, then the others, each from the quickest to the slowest. Two are enough to know that the mutant would still be
rejected without any one check; a mutant with a single one names what is lost when that check is deleted.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.util
import io
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from verify.claims.runner import load
from verify.errors import RequestError
from verify.trust.mutation import Mutant, mutants, uses

ENOUGH = 2
"""Checks that reject a mutant, after which no more are asked."""

Place = tuple[str, int]
"""A check: its claim, and its number among the claim's checks."""


@dataclass(frozen=True)
class Timed:
    """A check of the unchanged package: where it stands, its module, and how long it took."""

    place: Place
    name: str
    module: str
    seconds: float


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: the first two that rejected it (checks, the import, the limit of time); `by` is empty if it survived."""

    mutant: Mutant
    by: tuple[str, ...]

    @property
    def only(self) -> str:
        """The one check that rejects the mutant, when all others were run and do not; or nothing."""
        return self.by[0] if len(self.by) == 1 else ""

    @property
    def survived(self) -> bool:
        """Whether every relevant check came out as announced."""
        return not self.by


def timed(package: str) -> list[Timed]:
    """All checks of the unchanged package, run once in this order, the quickest first. Raises ValueError if one is not as announced."""
    found = []
    for claim in load(package).claims.values():
        for number, check in enumerate(claim.checks):
            start = time.perf_counter()
            if not check.run().as_expected:
                raise ValueError(f"{claim.id}, {check.name} is not as announced without any fault")
            seconds = time.perf_counter() - start
            name = f"{claim.id} {check.construction} {check.name} ({check.arithmetic})"
            found.append(Timed((claim.id, number), name, check.examine.__module__, seconds))
    return sorted(found, key=lambda check: check.seconds)


def sources(package: str) -> dict[str, str]:
    """The text of each module of a proofs package by its full name, in the order of the names."""
    load(package)
    folder = Path(str(importlib.import_module(package).__file__)).parent
    files = sorted(file for file in folder.glob("*.py") if file.stem != "__init__")
    return {f"{package}.{file.stem}": file.read_text(encoding="utf-8") for file in files}


def importers(package: str, module: str) -> set[str]:
    """The module and all modules of the package that import it, directly or not."""
    used = {name: {other for other, _ in uses(text, package)} for name, text in sources(package).items()}
    reached = {module}
    while more := {name for name, others in used.items() if others & reached} - reached:
        reached |= more
    return reached


def relevant(package: str, checks: Sequence[Timed], module: str) -> list[Timed]:
    """The checks that a change of this module may concern, in the order in which they are tried."""
    inside = importers(package, module)
    near = [check for check in checks if check.module in inside]
    return sorted(near, key=lambda check: (check.module != module, check.seconds))


def catalogue(package: str, module: str | None = None) -> list[Mutant]:
    """All mutants of the package's modules (or of one), in the order of their names. Raises RequestError for a module that has none."""
    texts = sources(package)
    used = {pair for name, text in texts.items() for pair in uses(text, package) if pair[0] != name}
    found = [
        mutant
        for name, text in texts.items()
        if module in (None, name.removeprefix(f"{package}."))
        for mutant in mutants(name, text, frozenset(what for where, what in used if where == name))
    ]
    if not found:
        raise RequestError(
            f"no constructions to change in {module or package!r}", right="a module of the proofs package"
        )
    return found


def sample(faults: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    """So many mutants, chosen by a hash of their keys: a change elsewhere in the sources leaves the others as they are."""

    def place(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()

    chosen = set(map(id, sorted(faults, key=place)[:size]))
    return [mutant for mutant in faults if id(mutant) in chosen]


def hunt(
    package: str,
    faults: Sequence[Mutant],
    checks: Sequence[Timed],
    *,
    jobs: int = 2,
    limit: float = 120,
    done: Callable[[Fate], None] | None = None,
) -> list[Fate]:
    """The fate of each mutant, in order; a process that takes more than `limit` seconds counts as noticed."""
    spawning = os.name == "nt"
    context = multiprocessing.get_context("spawn") if spawning else multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["verify.commands"])  # what no mutant changes is imported once
    found: dict[int, Fate] = {}
    noticed: dict[int, list[str]] = {}
    running: dict[Connection, tuple[int, BaseProcess, float]] = {}
    waiting = list(enumerate(faults))[::-1]
    reach: dict[str, list[Timed]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            index, mutant = waiting.pop()
            if mutant.module not in reach:
                reach[mutant.module] = relevant(package, checks, mutant.module)
            ours, theirs = context.Pipe(duplex=False)
            process: BaseProcess = context.Process(
                target=_run, args=(package, mutant, reach[mutant.module], theirs), daemon=True
            )
            process.start()
            theirs.close()
            running[ours] = (index, process, time.monotonic() + limit)
        ready = wait(list(running), timeout=1)
        for pipe, (index, process, until) in list(running.items()):
            if pipe not in ready and time.monotonic() < until:  # nothing to read yet
                continue
            by = noticed.setdefault(index, [])
            try:
                message = str(pipe.recv()) if pipe in ready else f"no end within {limit:.0f} s"
            except EOFError:
                message = "the process ended abruptly"
            by += [message] if message else []
            if message and len(by) < ENOUGH and pipe in ready and not message.startswith("the process"):
                continue
            process.kill()
            process.join()
            del running[pipe]
            found[index] = Fate(faults[index], tuple(by))
            if done is not None:
                done(found[index])
    return [found[i] for i in range(len(faults))]


def _run(package: str, mutant: Mutant, checks: Sequence[Timed], answer: Connection) -> None:
    """In the mutant's process: sends the name of each check that notices, as far as these are asked for, and nothing at the end."""
    sys.meta_path.insert(0, _Finder(mutant))
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        try:
            registry = load(package)
        except Exception as error:
            for _ in range(ENOUGH):  # no check runs without the import
                answer.send(f"import: {type(error).__name__}")
            return
        for check in checks:
            claim, number = check.place
            try:
                noticed = not registry.claims[claim].checks[number].run().as_expected
            except BaseException:
                noticed = True
            if noticed:
                answer.send(check.name)
    answer.send("")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves the changed source for one module, nothing else."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        return importlib.util.spec_from_loader(name, self) if name == self.mutant.module else None

    def exec_module(self, module: Any) -> None:
        exec(compile(self.mutant.source, self.mutant.module, "exec"), module.__dict__)
