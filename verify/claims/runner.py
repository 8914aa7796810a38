"""Runs checks, several at a time, in separate processes (Arb's precision is one setting for a whole process)."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from verify.claims.claim import Check, Registry
from verify.claims.verdict import Verdict
from verify.errors import RequestError, VerifyError


def load(package: str) -> Registry:
    """The registry of a proofs package. Raises RequestError when there is no such package or no REGISTRY in it."""
    if not all(part.isidentifier() for part in package.split(".")):
        raise RequestError(
            f"{package[:60]!r} is not the name of a package", where="--proofs", right="name an importable package"
        )
    try:
        module = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{package}.".startswith(f"{error.name}."):
            raise _broken(package, error) from error
        raise RequestError(
            f"no package {package[:60]!r}", where="--proofs", right="name an importable package with a REGISTRY"
        ) from None
    except (Exception, SystemExit) as error:
        raise _broken(package, error) from error
    registry = getattr(module, "REGISTRY", None)
    if not isinstance(registry, Registry):
        raise RequestError(f"package {package[:60]!r} has no REGISTRY", where="--proofs")
    registry.sort()
    return registry


def _broken(package: str, error: BaseException) -> RequestError:
    """What to say of a package whose own code fails when it is imported: the error, and its innermost line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = (
        f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames and not isinstance(error, SyntaxError) else ""
    )
    return RequestError(f"importing {package[:60]!r} fails: {type(error).__name__}: {error}{place}", where="--proofs")


def _run_one(package: str, claim: str, index: int) -> Verdict:
    return load(package).claims[claim].checks[index].run()


def _end_on_interrupt() -> None:
    """Ctrl-C reaches every process of the terminal: those that run checks end at once and without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_checks(
    package: str, checks: Sequence[Check], *, jobs: int | None = None, done: Callable[[Verdict], None] | None = None
) -> list[Verdict]:
    """The verdicts of these checks, in their order. `done` is told of each as it comes in; `jobs=1` stays in this process."""
    registry = load(package)
    workers = min(jobs or os.cpu_count() or 1, len(checks))
    if workers <= 1:
        verdicts = []
        for check in checks:
            verdicts.append(check.run())
            if done is not None:
                done(verdicts[-1])
        return verdicts
    places = [(check.claim, registry.claims[check.claim].checks.index(check)) for check in checks]
    found: dict[int, Verdict] = {}
    context = multiprocessing.get_context("spawn" if os.name == "nt" else "forkserver")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_end_on_interrupt) as pool:
        futures = {pool.submit(_run_one, package, *place): i for i, place in enumerate(places)}
        try:
            for future in as_completed(futures):
                verdict = found[futures[future]] = future.result()
                if done is not None:
                    done(verdict)
        except BrokenProcessPool:
            raise VerifyError("a process that ran checks ended abruptly (out of memory?); --jobs 1 uses less") from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [found[i] for i in range(len(checks))]
