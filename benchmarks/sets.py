"""Data sets by name: folders in the native layout, found on this machine or built for the run."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.machine import ROOT
from xmtc.core.errors import DataError
from xmtc.data import build_pydocs

SETS = ("eurlex57k", "tate", "pydocs", "cooking")  # in the order of the tables
BUILT = "pydocs"


def data_folder(given: str | None) -> Path:
    """Return where data sets lie: the given folder, else $XMTC_DATA, else ../shared/data beside the repository."""
    return Path(given or os.environ.get("XMTC_DATA") or ROOT.parent / "shared" / "data")


@contextmanager
def locate(name: str, data: Path) -> Iterator[Path]:
    """Give the folder of a set; pydocs is built anew from the packages installed here, and removed afterwards."""
    if name == BUILT:
        with tempfile.TemporaryDirectory() as folder:
            build_pydocs(Path(folder, name))
            yield Path(folder, name)
        return
    if not (data / name).is_dir():
        raise DataError(f"no data set {name!r} in {data}; name its folder with --data or XMTC_DATA")
    yield data / name


def about(folder: Path) -> dict[str, Any]:
    """Return what the maker of a set says of it: of pydocs, its sha256 and the package versions."""
    path = folder / "about.json"
    return dict(json.loads(path.read_text())) if path.is_file() else {}
