"""Tracker: what receives the figures of a training. A `Progress` carries those of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Tracker(Protocol):
    """Receives the figures of a training; `xmtc.tracking` has those of well-known services."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record the figures of a step, such as the loss, or of an epoch's end, such as the dev score."""

    def close(self) -> None:
        """End the run."""
