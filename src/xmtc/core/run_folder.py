"""Where a run puts its model and its checkpoints, checked before any work is done."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.storage import MANIFEST, check_target

# of the processes that torchrun or accelerate launch starts, the first writes the model, and all others write nothing
WRITES = os.environ.get("WORLD_SIZE", "1") == "1" or os.environ.get("RANK", "0") == "0"


def check_out(out: str | Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Refuse, before any work, to train to a folder that holds a model, an interrupted run, or cannot be written."""
    if not str(out):
        raise ConfigError("the folder for the model has no name; give one")
    if resume and overwrite:
        raise ConfigError("resume goes on with what is there and overwrite starts anew; choose one")
    if not (resume and Path(out).exists()):
        check_target(out, overwrite=overwrite)
    partial = partial_folder(out)
    if not partial.exists() or (resume and (Path(out) / MANIFEST).is_file()):
        return  # of a finished run, at most the rest of a removal that was killed is there
    # of a run killed at its very beginning, in its first stage or before
    unwritten = all(path.is_dir() or path.match(".run-*.json") for path in partial.rglob("*"))
    if not (any(partial.rglob("run.json")) or unwritten):
        raise ModelError(f"{partial} is in the way of the checkpoints and holds none; move it or choose another folder")
    if not (resume or overwrite):
        raise ModelError(f"{partial} holds an interrupted run; go on with --resume or start anew with --overwrite")


def partial_folder(out: str | Path) -> Path:
    """Return where an interrupted run's checkpoints lie: beside the model, never inside."""
    folder = Path(out).absolute()
    return folder.with_name(f"{folder.name}.partial")


def drop_unbegun(partial: Path) -> None:
    """Remove the folder of a run that stopped before it had anything to keep."""
    if all(path.name == "run.json" or path.is_dir() for path in partial.rglob("*")):
        shutil.rmtree(partial, ignore_errors=True)
