"""Where a run writes its model and checkpoints; checked before any work is done."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.storage import MANIFEST, check_target

# with torchrun or accelerate launch, only the first process writes the model; the others write nothing
WRITES = os.environ.get("WORLD_SIZE", "1") == "1" or os.environ.get("RANK", "0") == "0"


def check_out(out: str | Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Raise, before any work, if the folder holds a model or an interrupted run, or cannot be written."""
    if not str(out):
        raise ConfigError("the folder for the model has no name; give one")
    if resume and overwrite:
        raise ConfigError("resume continues the run and overwrite replaces it; choose one")
    if not (resume and Path(out).exists()):
        check_target(out, overwrite=overwrite)
    partial = partial_folder(out)
    if not partial.exists() or (resume and (Path(out) / MANIFEST).is_file()):
        return  # the run is finished: at most the remains of a killed removal exist
    # true for a run that was killed in or before its first stage
    unwritten = all(path.is_dir() or path.match(".run-*.json") for path in partial.rglob("*"))
    if not (any(partial.rglob("run.json")) or unwritten):
        raise ModelError(f"{partial} is not a folder of checkpoints; move it or choose another folder")
    if not (resume or overwrite):
        raise ModelError(
            f"{partial} contains an interrupted run; resume it with --resume or start again with --overwrite"
        )


def partial_folder(out: str | Path) -> Path:
    """Return the folder of an interrupted run's checkpoints: next to the model, never inside."""
    folder = Path(out).absolute()
    return folder.with_name(f"{folder.name}.partial")


def drop_unbegun(partial: Path) -> None:
    """Remove the folder of a run that stopped before it stored anything."""
    if all(path.name == "run.json" or path.is_dir() for path in partial.rglob("*")):
        shutil.rmtree(partial, ignore_errors=True)
