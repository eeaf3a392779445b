"""Data sets by name: folders found on this machine or built for the run; and where large files are kept."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.framework.machine import ROOT
from xmtc.core.cache import cache_folder
from xmtc.core.errors import DataError
from xmtc.data import build_pydocs

SETS = ("eurlex57k", "tate", "pydocs", "cooking")  # in the order of the tables
BUILT = "pydocs"


@contextmanager
def locate(name: str, data: str | None = None) -> Iterator[Path]:
    """Give the folder of a set in `data` (default: $XMTC_DATA, else ../shared/data beside the repository).

    pydocs is built anew from the packages installed here, and removed afterwards.
    """
    if name == BUILT:
        with tempfile.TemporaryDirectory() as folder:
            build_pydocs(Path(folder, name))
            yield Path(folder, name)
        return
    home = Path(data or os.environ.get("XMTC_DATA") or ROOT.parent / "shared" / "data")
    if not (home / name).is_dir():
        raise DataError(f"no data set {name!r} in {home}; name its folder with --data or XMTC_DATA")
    yield (home / name).absolute()


def work_folder(given: str | None, room: str = "benchmarks") -> Path:
    """Return where models and checkpoints are kept: the given folder, else a room of the cache."""
    return Path(given).absolute() if given else cache_folder().absolute() / room


def about(folder: Path) -> dict[str, Any]:
    """Return what the maker of a set says of it: of pydocs, its sha256 and the package versions."""
    path = folder / "about.json"
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def order(name: str) -> tuple[int, str]:
    """Return what to sort sets by: the well-known ones first, in the order of the tables."""
    return (SETS.index(name) if name in SETS else len(SETS), name)
