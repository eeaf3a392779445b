"""Stages of a long run: the result arrays of a stage are stored in the run's folder, so that it is not repeated.

Independent of the arrays' meaning and of the run: callers check both before they resume.
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

_NAMES = "arrays.json"  # the names of a stage's arrays


def finish_stage(
    run: Path | None, stage: str, compute: Callable[[], Mapping[str, NDArray[Any]]]
) -> dict[str, NDArray[Any]]:
    """Return the result of a stage; if it was finished before, map it into memory from the run's folder.

    Without a folder, nothing is stored. A stage that is killed while being written counts as unfinished.
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
    """Return whether a stage was finished."""
    return (run / stage).is_dir()


def read_stage(run: Path, stage: str, mode: Literal["r", "r+"] = "r") -> dict[str, NDArray[Any]]:
    """Return the arrays of a finished stage, mapped into memory.

    mode: "r+" returns writable arrays; numba recompiles kernels for read-only ones.
    """
    folder = run / stage
    return {name: _load(folder / f"{name}.npy", mode) for name in _read_names(folder / _NAMES)}


@contextmanager
def write_stage(run: Path, stage: str) -> Iterator[Path]:
    """Yield a folder to write arrays to as .npy files; rename it to the stage's name when all are written."""
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
    return ModelError(f"{path} is missing, cut or altered; remove {path.parent} to run this stage again")
