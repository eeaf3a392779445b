"""Stages of a long run: the arrays that a stage ends with lie in the run's folder, so that it is not done twice.

Knows neither what the arrays are nor whose run it is: whoever resumes has checked that before.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import ModelError

_NAMES = "arrays.json"  # which arrays a stage has


def finish_stage(
    run: Path | None, stage: str, compute: Callable[[], Mapping[str, NDArray[Any]]]
) -> dict[str, NDArray[Any]]:
    """Return what a stage computes; from the run's folder, mapped into memory, where it was finished before.

    Without a folder nothing is kept. A stage that is killed while it is written has not finished.
    """
    folder = None if run is None else run / stage
    if folder is not None and folder.is_dir():
        return {name: _load(folder / f"{name}.npy") for name in _read_names(folder / _NAMES)}
    arrays = dict(compute())
    if folder is None:
        return arrays
    partial = folder.with_name(f".{folder.name}.writing-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name, array in arrays.items():
        np.save(partial / f"{name}.npy", array, allow_pickle=False)
    (partial / _NAMES).write_text(json.dumps(sorted(arrays)))
    with suppress(OSError):  # another process of the same run was faster
        partial.rename(folder)
    shutil.rmtree(partial, ignore_errors=True)
    return arrays


def _read_names(path: Path) -> list[str]:
    try:
        return list(json.loads(path.read_text()))
    except (OSError, ValueError):
        raise _altered(path) from None


def _load(path: Path) -> NDArray[Any]:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError):
        raise _altered(path) from None


def _altered(path: Path) -> ModelError:
    return ModelError(f"{path} is missing, cut or altered; remove {path.parent} to have this stage done again")
