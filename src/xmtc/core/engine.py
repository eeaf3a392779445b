"""Engine: where tasks run. The calling process, other processes, or the machines of a cluster.

Long work is cut into tasks whose bounds depend on the data alone, so every engine gives the same bytes. A task is a
function of some module with one argument, both of which can be pickled. Tasks share a folder that every machine sees:
they read their input there and write their output there, to a temporary sibling that is renamed. So a task that runs
twice, because its machine died, does no harm, and a task whose output exists can be skipped.

What many tasks read and no file holds, such as a corpus, is shared: sent once, not with every task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress

Task = TypeVar("Task")
Result = TypeVar("Result")
Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)
C_contra = TypeVar("C_contra", bound=Settings, contravariant=True)


class Shared(Protocol[Value_co]):
    """A value that tasks of an engine read; it can be pickled, and is small."""

    def get(self) -> Value_co:
        """Return the value, in any process of the engine; a task must not change it."""
        ...


class Engine(Protocol):
    """Runs tasks; `xmtc.engines.open_engine` gives one."""

    @property
    def name(self) -> str:
        """The name that the command line calls it by."""

    @property
    def n_workers(self) -> int:
        """How many tasks run at once."""

    @property
    def outline(self) -> str:
        """Where tasks run, in a few words for the user."""

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, memory: int = 0, queue: bool = True
    ) -> Iterator[tuple[int, Result]]:
        """Yield (place in `tasks`, result) of each task as it ends, in any order; raise what a task raises.

        memory: bytes that a task takes; no more tasks run at once than fit, one at least. queue: some tasks wait for
        free workers, so that no worker waits for a task; without it a task is taken from `tasks` when a worker is free.
        """
        ...

    def share(self, value: Value) -> Shared[Value]:
        """Return a handle by which tasks get a value."""
        ...

    def check(self, folder: Path | None, memory: int = 0) -> None:
        """Raise unless every machine has this version of xmtc, sees `folder`, and has `memory` bytes for a task."""


@runtime_checkable
class GroupEngine(Protocol):
    """Ability of an engine: processes that run at once and exchange tensors, as torchrun starts them."""

    def run_group(
        self, function: Callable[[Task, Progress], None], task: Task, n_processes: int | None, progress: Progress
    ) -> None:
        """Run function(task, progress) in several processes at once, and end with the last of them.

        Each finds the others by torchrun's variables: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. The
        progress of rank 0 is passed on. If a process or its node dies, all are started again: the function resumes by
        itself from what it has stored. n_processes: None is one per GPU, or one per node where there are no GPUs.
        """
        ...


@runtime_checkable
class Distributed(Protocol[C_contra]):
    """Ability of a method: training on an engine, in tasks."""

    def fits_memory(self, corpus: Corpus, config: C_contra) -> bool:
        """Say whether `train` has the memory for a corpus; else `train_on` trains from files."""
        ...

    def train_on(
        self,
        engine: Engine,
        corpus: Corpus,
        config: C_contra,
        *,
        folder: Path,
        seed: int = 0,
        progress: Progress = SILENT,
    ) -> Model:
        """Train the model that `train` gives, byte for byte; a task whose output is in `folder` is skipped."""
        ...
