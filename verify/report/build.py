"""Builds the reports folder: runs every check, writes the ledger and evidence, renders LaTeX and HTML from the ledger.

The files are the same byte for byte whenever the code, its dependencies and the platform-independent results are: no times,
no machine names. Every file is written whole or not at all, the manifest last; so after a kill at any moment the next run
finds no valid manifest and completes the work. With a manifest that matches the code and every file, nothing is redone.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from verify import __version__
from verify.claims.claim import Registry
from verify.claims.runner import load, run_checks
from verify.commands.show import Progress
from verify.errors import RequestError
from verify.report.examples import example_files
from verify.report.html import render_html
from verify.report.latex import render_latex
from verify.report.ledger import evidence_document, evidence_name, make_ledger

MANIFEST = "manifest.json"

LIBRARIES = ("python-flint", "gmpy2", "mpmath", "sympy", "numpy", "jinja2", "matplotlib")
"""Libraries whose versions a report depends on."""


def build(package: str, out: Path, *, jobs: int | None = None) -> dict[str, Any]:
    """Brings the folder up to date; returns what was done and whether every verdict is the expected one."""
    registry = load(package)
    source = source_digest(package)
    before = _read_manifest(out)
    if before is not None and before["source"] == source and _matches(out, before["files"]):
        return {"held": before["held"], "changed": [], "message": f"{out}: up to date ({len(before['files'])} files)"}
    files, held, count = render(package, registry, jobs=jobs)
    _prepare(out)
    changed = [name for name, text in files.items() if _write(out / name, text)]
    stale = [name for name in (before or {"files": {}})["files"] if name not in files]
    for name in stale:
        (out / name).unlink(missing_ok=True)
    manifest = {
        "format": "manifest/1",
        "version": __version__,
        "libraries": libraries(),
        "source": source,
        "held": held,
        "files": {name: _digest(text) for name, text in sorted(files.items())},
    }
    _write(out / MANIFEST, _json(manifest))
    message = f"{out}: {count} checks, {len(files)} files, {len(changed)} changed; "
    message += "every verdict is as expected" if held else "NOT every verdict is as expected (see ledger.json)"
    return {"held": held, "changed": changed, "message": message}


def render(package: str, registry: Registry, *, jobs: int | None = None) -> tuple[dict[str, str], bool, int]:
    """Every file of the reports by name, whether all verdicts are as expected, and how many there are."""
    checks = [check for claim in registry.claims.values() for check in claim.checks]
    with Progress("checking", len(checks)) as progress:
        verdicts = run_checks(package, checks, jobs=jobs, done=lambda verdict: progress.step(verdict.claim))
    ledger = make_ledger(registry, verdicts)
    files = {"ledger.json": _json(ledger)}
    for verdict in verdicts:
        if verdict.outcome.evidence:
            files[evidence_name(verdict)] = _json(evidence_document(verdict))
    examples = example_files(registry)
    files |= {f"examples/{name}": text for name, text in examples.items()}
    files |= render_latex(json.loads(files["ledger.json"]))
    files |= render_html(json.loads(files["ledger.json"]), examples)
    return files, all(verdict.as_expected for verdict in verdicts), len(verdicts)


def source_digest(package: str) -> str:
    """SHA-256 of everything that can change a report: this package's and the proofs package's files, and library versions."""
    digest = hashlib.sha256()
    for name in ("verify", package):
        for path in _sources(name):
            digest.update(f"{path[0]}\0".encode() + path[1].read_bytes() + b"\0")
    digest.update(json.dumps(libraries(), sort_keys=True).encode())
    return digest.hexdigest()


def libraries() -> dict[str, str]:
    """Versions of the libraries that a report depends on."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def _sources(package: str) -> Iterator[tuple[str, Path]]:
    module = importlib.import_module(package)
    roots = [Path(root) for root in getattr(module, "__path__", [])] or [Path(str(module.__file__))]
    for root in roots:
        paths = sorted(root.rglob("*")) if root.is_dir() else [root]
        for path in paths:
            if path.is_file() and path.suffix in (".py", ".tex", ".html", ".css", ".js"):
                yield path.relative_to(root.parent).as_posix(), path


def _json(document: Any) -> str:
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _read_manifest(out: Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
        if (
            manifest["format"] == "manifest/1"
            and isinstance(manifest["files"], dict)
            and isinstance(manifest["held"], bool)
        ):
            return dict(manifest)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _matches(out: Path, files: dict[str, str]) -> bool:
    try:
        return all(_digest((out / name).read_text(encoding="utf-8")) == digest for name, digest in files.items())
    except (OSError, ValueError):
        return False


def _prepare(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        # While files of two runs may be mixed there must be no manifest that vouches for them.
        (out / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise RequestError(f"cannot write to {str(out)!r}: {error.strerror}", where="--out") from None


def _write(path: Path, text: str) -> bool:
    """Writes a file whole; False if it was already as it should be."""
    try:
        if path.is_file() and path.read_bytes() == text.encode("utf-8"):
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise RequestError(f"cannot write {str(path)!r}: {error.strerror}", where="--out") from None
    return True
