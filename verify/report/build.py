"""Builds the reports folder: runs every check, writes the ledger and evidence, renders LaTeX and HTML from the ledger.

The files are the same byte for byte whenever the code, its dependencies and the platform-independent results are: no times,
no machine names. Every file is written whole or not at all. While files are being written the manifest vouches for none and
lists them all, old and new; so after a kill at any moment the next run completes the work and removes what is stale. With a
manifest that is as it was written and matches the code and every file, nothing is redone.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from verify import __version__
from verify.claims.claim import Registry
from verify.claims.progress import Progress
from verify.claims.runner import load, run_checks
from verify.errors import RequestError
from verify.report.examples import example_files
from verify.report.figures import render_figures
from verify.report.html import render_html
from verify.report.latex import render_latex
from verify.report.ledger import evidence_document, evidence_name, has_evidence, make_ledger
from verify.report.response import render_response

MANIFEST = "manifest.json"
UNFINISHED = "manifest/1 of unfinished work"
FOLDERS = ("appendix", "evidence", "examples", "html")
PART = ".part"
"""How the names of files end that are not complete yet; they start with a dot."""

_OWN_NAME = re.compile(rf"(?:(?:{'|'.join(FOLDERS)})/)?[A-Za-z0-9][A-Za-z0-9.-]*")

LIBRARIES = ("python-flint", "gmpy2", "mpmath", "sympy", "numpy", "jinja2", "matplotlib")
"""Libraries whose versions a report depends on."""


def build(package: str, out: Path, *, jobs: int | None = None) -> dict[str, Any]:
    """Brings the folder up to date; returns what was done and whether every verdict is the expected one."""
    registry = load(package)
    source = source_digest(package)
    _clear_parts(out)
    before = _read_manifest(out)
    if before is not None and before["source"] == source and _matches(out, before["files"]):
        return {"held": before["held"], "changed": [], "message": f"{out}: up to date ({len(before['files'])} files)"}
    _prepare(out)  # before the work: a folder that cannot be written is found out now
    files, held, count = render(package, registry, jobs=jobs)
    stale = [name for name in _listed(out) if name not in files]
    _write(out / MANIFEST, _json({"format": UNFINISHED, "files": sorted([*files, *stale])}))
    changed = [name for name, text in files.items() if _write(out / name, text)]
    for name in stale:
        _remove(out / name)
    manifest = {
        "format": "manifest/1",
        "version": __version__,
        "libraries": libraries(),
        "source": source,
        "held": held,
        "files": {name: _digest(_bytes(content)) for name, content in sorted(files.items())},
    }
    _write(out / MANIFEST, _json(manifest | {"digest": _digest(_json(manifest).encode("utf-8"))}))
    message = f"{out}: {count} checks, {len(files)} files, {len(changed)} changed; "
    message += "every verdict is as expected" if held else "NOT every verdict is as expected (see ledger.json)"
    return {"held": held, "changed": changed, "message": message}


def compare(package: str, out: Path, *, jobs: int | None = None) -> dict[str, Any]:
    """Regenerates everything in memory and compares it with a folder byte for byte; writes nothing.

    `differing` names files that are missing or different there, `extra` those that a report would not have.
    """
    registry = load(package)
    manifest = _read_manifest(out)
    if manifest is None:
        raise RequestError(f"no finished report in {str(out)!r}", where="--check", right="run verify report first")
    files, held, count = render(package, registry, jobs=jobs)
    differing = sorted(name for name, content in files.items() if not _same(out / name, _bytes(content)))
    extra = sorted(set(manifest["files"]) - set(files))
    if manifest["source"] != source_digest(package) or manifest["libraries"] != libraries():
        differing.append(MANIFEST)
    found = f"{len(differing)} files differ" if differing or extra else "the same byte for byte"
    return {
        "held": held and not differing and not extra,
        "differing": differing,
        "extra": extra,
        "message": "\n".join([f"{out}: {count} checks, {len(files)} files: {found}", *differing, *extra]),
    }


def _same(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def render(package: str, registry: Registry, *, jobs: int | None = None) -> tuple[dict[str, str | bytes], bool, int]:
    """Every file of the reports by name, whether all verdicts are as expected, and how many there are."""
    checks = [check for claim in registry.claims.values() for check in claim.checks]
    with Progress("checking", len(checks)) as progress:
        verdicts = run_checks(package, checks, jobs=jobs, done=lambda verdict: progress.step(verdict.claim))
    ledger = make_ledger(registry, verdicts)
    files: dict[str, str | bytes] = {"ledger.json": _json(ledger)}
    for verdict in verdicts:
        if has_evidence(verdict):
            files[evidence_name(verdict)] = _json(evidence_document(verdict))
    examples = example_files(registry)
    files |= {f"examples/{name}": text for name, text in examples.items()}
    written = json.loads(_json(ledger))
    drawings, pictures = render_figures(written)
    files |= drawings
    files |= render_latex(written)
    files |= render_html(written, examples, pictures)
    files |= render_response(written)
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


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_manifest(out: Path) -> dict[str, Any] | None:
    """The manifest of finished work, if it stands there exactly as it was written."""
    try:
        text = (out / MANIFEST).read_bytes()
        manifest = json.loads(text)
        if manifest["format"] != "manifest/1" or text != _json(manifest).encode("utf-8"):
            return None
        digest = manifest.pop("digest")
        return dict(manifest) if digest == _digest(_json(manifest).encode("utf-8")) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _listed(out: Path) -> list[str]:
    """The files that a manifest, finished or not, says were written here; only names that this module could have written."""
    try:
        names = list(json.loads((out / MANIFEST).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return [name for name in names if isinstance(name, str) and _OWN_NAME.fullmatch(name)]


def _matches(out: Path, files: dict[str, str]) -> bool:
    try:
        return all(_digest((out / name).read_bytes()) == digest for name, digest in files.items())
    except OSError:
        return False


def _clear_parts(out: Path) -> None:
    """Removes what killed runs left half-written."""
    for folder in (out, *(out / name for name in FOLDERS)):
        for left in folder.glob(f".*{PART}"):
            _remove(left)


def _prepare(out: Path) -> None:
    """Makes the folder and finds out whether it can be written."""
    try:
        for folder in (out, *(out / name for name in FOLDERS)):
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise _unwritable(out, error) from None


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8")


def _write(path: Path, text: str | bytes) -> bool:
    """Writes a file whole; False if it was already as it should be."""
    content = _bytes(text)
    try:
        if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
            return False
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise _unwritable(path, error) from None
    return True


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> RequestError:
    return RequestError(f"cannot write {str(path)!r}: {error.strerror}", where="--out", right="name another folder")
