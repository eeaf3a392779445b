"""The local engine: runs tasks one after another in the calling process, each on all threads."""

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
    """A shared value that is sent with every task, because a copy is cheap on one machine."""

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
        """Yield each task's index and result, in order."""
        for place, task in enumerate(tasks):
            yield place, function(task)

    def share(self, value: Value) -> Held[Value]:
        """Return a handle to a value."""
        return Held(value)

    def check(self, folder: Path | None, memory: int = 0) -> None:
        """Accept any folder, because this process created it."""
