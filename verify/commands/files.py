"""Files that commands write: refused before the work where they could not be written, and never half-written."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from verify.errors import RequestError


def require_writable(out: Path, instance: Path) -> None:
    """Refuses, before the work, a file that could not be written or that is the instance itself."""
    target = out.resolve()
    if not target.parent.is_dir():
        raise RequestError(f"no directory {str(target.parent)!r}", where="--out", right="create it first")
    if target.is_dir():
        raise RequestError(f"{str(target)!r} is a directory", where="--out", right="name a file")
    if target == instance.resolve():
        raise RequestError("this is the instance itself", where="--out", right="name another file")


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that a reader, or a kill at any moment, finds the old content or the new, never a part."""
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.resolve().parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise RequestError(f"cannot write {str(path)!r}: {error.strerror}", where="--out") from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
