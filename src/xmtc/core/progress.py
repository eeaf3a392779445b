"""Progress: UI-independent progress callbacks for long work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xmtc.core.tracker import Tracker


class Progress:
    """Receives stages, steps and messages; this base class ignores them. The command line draws bars."""

    trackers: Sequence[Tracker] = ()  # receive the metrics of neural training, in addition to the run's log

    def stage(self, name: str) -> None:
        """Begin a new stage of work."""

    def step(self, done: int, total: int) -> None:
        """Report that `done` of `total` units of the stage are finished."""

    def note(self, text: str) -> None:
        """Show a few words next to the stage's bar until the next note."""

    def say(self, fact: str) -> None:
        """Report something the user should know about this run, in one line."""


SILENT = Progress()


def describe_duration(seconds: float) -> str:
    """Return a rough duration as readable text: "40 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"
