"""The run's log: one JSON object a line, and TensorBoard where it is installed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


class RunLog:
    """Appends to a file; without one it keeps silent. Of an earlier run it keeps the lines up to step `upto`."""

    def __init__(self, path: Path | None, upto: int = 0) -> None:
        self._file: Any = None
        self._board: Any = None
        self._started = time.monotonic()
        if path is None:
            return
        kept = _lines(path, upto) if path.is_file() else []
        path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        self._file = path.open("a", encoding="utf-8")
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self._board = SummaryWriter(str(path.parent / "tensorboard"), purge_step=upto + 1)

    def write(self, *, step: int, **facts: Any) -> None:
        """Add one line with these facts and the seconds since the run began or was gone on with."""
        if self._file is not None:
            seconds = round(time.monotonic() - self._started, 3)
            self._file.write(json.dumps({"step": step, **facts, "seconds": seconds}) + "\n")
        if self._board is not None:
            for name, value in facts.items():
                self._board.add_scalar(name, value, step)

    def flush(self) -> None:
        """Put what was written on disk."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        if self._board is not None:
            self._board.close()


def _lines(path: Path, upto: int) -> list[str]:
    """The whole lines of steps up to `upto`: what came after the last checkpoint is done again."""
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= upto:
                kept.append(line)
        except (ValueError, KeyError, TypeError):  # cut by a kill
            continue
    return kept
