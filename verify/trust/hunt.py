"""Runs the checks on seeded faults: which check rejects which mutant, and which mutants survive.

Every mutant gets a process of its own, in which its module is the changed one from the first import on. Relevant are the checks defined
in the mutant's module or in a module that imports it, directly or not. They run until one does not come out as announced: first
those of the mutant's own module, then the others, each from the quickest to the slowest.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import io
import multiprocessing
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
from verify.trust.mutation import Mutant, mutants

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
    """What became of a mutant: rejected by a check, by the import, by not ending in time; or `by` is empty: it survived."""

    mutant: Mutant
    by: str

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
    texts = sources(package)
    reached = {module}
    while True:
        more = {name for name, text in texts.items() if any(f"from {m} import" in text for m in reached)} - reached
        if not more:
            return reached
        reached |= more


def relevant(package: str, checks: Sequence[Timed], module: str) -> list[Timed]:
    """The checks that a change of this module may concern, in the order in which they are tried."""
    inside = importers(package, module)
    near = [check for check in checks if check.module in inside]
    return sorted(near, key=lambda check: (check.module != module, check.seconds))


def catalogue(package: str, module: str | None = None) -> list[Mutant]:
    """All mutants of the package's modules (or of one), in the order of their names. Raises RequestError for a module that has none."""
    chosen = {
        name: text for name, text in sources(package).items() if module in (None, name.removeprefix(f"{package}."))
    }
    found = [mutant for name, text in chosen.items() for mutant in mutants(name, text)]
    if not found:
        raise RequestError(
            f"no constructions to change in {module or package!r}", right="a module of the proofs package"
        )
    return found


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
    context = multiprocessing.get_context("spawn")
    found: dict[int, Fate] = {}
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
            if pipe not in ready and time.monotonic() < until:
                continue
            try:
                by = str(pipe.recv()) if pipe in ready else f"no end within {limit:.0f} s"
            except EOFError:
                by = "the process ended abruptly"
            process.kill()
            process.join()
            del running[pipe]
            found[index] = Fate(faults[index], by)
            if done is not None:
                done(found[index])
    return [found[i] for i in range(len(faults))]


def _run(package: str, mutant: Mutant, checks: Sequence[Timed], answer: Connection) -> None:
    """In the mutant's process: sends the name of the first check that notices, or nothing."""
    sys.meta_path.insert(0, _Finder(mutant))
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        try:
            registry = load(package)
        except Exception as error:
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
                return
    answer.send("")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves the changed source for one module, nothing else."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        return importlib.util.spec_from_loader(name, self) if name == self.mutant.module else None

    def exec_module(self, module: Any) -> None:
        exec(compile(self.mutant.source, self.mutant.module, "exec"), module.__dict__)
