"""Write output files atomically. Independent of commands and reports."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from xmtc.core.errors import DataError


@contextmanager
def open_whole(path: str, what: str = "", *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file that is renamed to `path` when complete; error messages show `what` before the path.

    Symbolic links are kept. Pipes and devices are written directly, never replaced.
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise DataError(f"cannot write {what}to {path}: it is a folder; name a file")
    if is_special(target):
        with target.open("wb") if binary else target.open("w", encoding="utf-8", newline="\n") as special:
            yield special
        return
    partial = target.with_name(f".{target.name}.writing-{os.getpid()}")
    try:
        file: IO[Any] = (
            partial.open("wb") if binary else partial.open("w", encoding="utf-8", newline="\n", errors="replace")
        )
    except OSError as error:
        raise DataError(f"cannot write {what}to {path}: {error.strerror}") from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def is_special(path: Path) -> bool:
    """Return whether a path is a pipe or a device."""
    return path.exists() and not stat.S_ISREG(path.stat().st_mode)
