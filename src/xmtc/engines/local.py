"""The engine of the calling process: one task after another, each on all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Held(Generic[Value]):
    """A shared value that is sent with every task: on one machine a copy is cheap."""

    value: Value

    def get(self) -> Value:
        """Return the value."""
        return self.value


class LocalEngine:
    """Runs tasks in the calling process."""

    name = "local"
    n_workers = 1
    outline = "this process"

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, memory: int = 0, queue: bool = True
    ) -> Iterator[tuple[int, Result]]:
        """Yield each task's place and result, in order."""
        for place, task in enumerate(tasks):
            yield place, function(task)

    def share(self, value: Value) -> Held[Value]:
        """Return a handle of a value."""
        return Held(value)

    def check(self, folder: Path | None, memory: int = 0) -> None:
        """Accept any folder: the process itself has made it."""
