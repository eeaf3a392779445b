"""The run's log: one JSON object a line, and TensorBoard where it is installed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


class RunLog:
    """Appends to a file; without one it keeps silent."""

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else path.open("a", encoding="utf-8")
        self._board: Any = None
        self._started = time.monotonic()
        if path is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                return
            self._board = SummaryWriter(str(path.parent / "tensorboard"))

    def write(self, **facts: Any) -> None:
        """Add one line with these facts and the seconds since the run began."""
        if self._file is not None:
            seconds = round(time.monotonic() - self._started, 3)
            self._file.write(json.dumps({**facts, "seconds": seconds}) + "\n")
            self._file.flush()
        if self._board is not None:
            for name, value in facts.items():
                if name not in ("step", "epoch"):
                    self._board.add_scalar(name, value, facts.get("step", facts.get("epoch", 0)))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        if self._board is not None:
            self._board.close()
