"""Stages of a long run: the arrays that a stage ends with lie in the run's folder, so that it is not done twice.

Knows neither what the arrays are nor whose run it is: whoever resumes has checked that before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def finish_stage(
    run: Path | None, stage: str, compute: Callable[[], Mapping[str, NDArray[Any]]]
) -> dict[str, NDArray[Any]]:
    """Return what a stage computes; from the run's folder, mapped into memory, where it was finished before.

    Without a folder nothing is kept. A stage that is killed while it is written has not finished.
    """
    folder = None if run is None else run / stage
    if folder is not None and folder.is_dir():
        found = {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in sorted(folder.glob("*.npy"))}
        return {name: np.asarray(array) for name, array in found.items()}
    arrays = dict(compute())
    if folder is None:
        return arrays
    partial = folder.with_name(f".{folder.name}.writing-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name, array in arrays.items():
        np.save(partial / f"{name}.npy", array, allow_pickle=False)
    with suppress(OSError):  # another process of the same run was faster
        partial.rename(folder)
    shutil.rmtree(partial, ignore_errors=True)
    return arrays
