"""Tracker: receives the metrics of a training run. A `Progress` carries the trackers of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Tracker(Protocol):
    """Receives the metrics of a training run; `xmtc.tracking` has trackers for well-known services."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record the metrics of a step, such as the loss, or of the end of an epoch, such as the dev score."""

    def close(self) -> None:
        """End the run."""
