"""Progress: how long work tells how far it is, without knowing who listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xmtc.core.tracker import Tracker


class Progress:
    """Hears of stages, steps and facts; this one stays silent. The command line draws bars."""

    trackers: Sequence[Tracker] = ()  # receive the figures of neural trainings, besides the run's log

    def stage(self, name: str) -> None:
        """A new stage of work begins."""

    def step(self, done: int, total: int) -> None:
        """`done` of `total` units of the stage are finished."""

    def note(self, text: str) -> None:
        """A few words that stand beside the stage's bar until the next ones."""

    def say(self, fact: str) -> None:
        """Something the user should know of this run, in one line."""


SILENT = Progress()
