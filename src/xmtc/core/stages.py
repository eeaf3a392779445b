"""Stages of a long run: the arrays that a stage ends with are stored in the run's folder, so that it is not done twice.

Knows neither what the arrays are nor whose run it is: callers check that before they resume.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

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
    if run is not None and is_finished(run, stage):
        return read_stage(run, stage)
    arrays = dict(compute())
    if run is not None:
        with write_stage(run, stage) as partial:
            for name, array in arrays.items():
                np.save(partial / f"{name}.npy", array, allow_pickle=False)
    return arrays


def is_finished(run: Path, stage: str) -> bool:
    """Say whether a stage was finished."""
    return (run / stage).is_dir()


def read_stage(run: Path, stage: str, mode: Literal["r", "r+"] = "r") -> dict[str, NDArray[Any]]:
    """Return the arrays of a finished stage, mapped into memory.

    mode: "r+" gives arrays that could be written to; numba compiles a kernel anew for those that cannot.
    """
    folder = run / stage
    return {name: _load(folder / f"{name}.npy", mode) for name in _read_names(folder / _NAMES)}


@contextmanager
def write_stage(run: Path, stage: str) -> Iterator[Path]:
    """Give a folder to write arrays to as .npy files; it takes the stage's name when all are written."""
    target = run / stage
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.writing-", dir=target.parent))
    try:
        yield partial
        (partial / _NAMES).write_text(
            json.dumps(sorted(path.stem for path in partial.glob("*.npy"))), encoding="utf-8", newline="\n"
        )
        with suppress(OSError):  # another process of the same run was faster
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _read_names(path: Path) -> list[str]:
    try:
        return list(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise _altered(path) from None


def _load(path: Path, mode: Literal["r", "r+"]) -> NDArray[Any]:
    try:
        return np.asarray(np.load(path, mmap_mode=mode, allow_pickle=False))
    except (OSError, ValueError, EOFError):
        raise _altered(path) from None


def _altered(path: Path) -> ModelError:
    return ModelError(f"{path} is missing, cut or altered; remove {path.parent} to have this stage done again")
