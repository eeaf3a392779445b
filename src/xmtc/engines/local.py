"""The engine of the calling process: one task after another, each on all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class LocalEngine:
    """Runs tasks in the calling process."""

    name = "local"
    n_workers = 1
    outline = "this process"

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
        """Yield each task's place and result, in order."""
        for place, task in enumerate(tasks):
            yield place, function(task)

    def check(self, folder: Path, memory: int = 0) -> None:
        """Accept any folder: the process itself has made it."""
