"""Engine: where tasks run: in the calling process, in other processes, or on the machines of a cluster.

Long work is split into tasks whose bounds depend only on the data, so every engine gives the same bytes. A task is a
module-level function and one argument, both picklable. Tasks share a folder that every machine can access: they read
their input there and write their output there, to a temporary sibling that is then renamed. So a task can safely run
twice, for example after its machine died, and a task whose output exists can be skipped.

Values that many tasks read but that are in no file, such as a corpus, are shared: sent once, not with every task.
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

LARGE_TASK = 1 << 30  # bytes: a task that needs more is run with its `memory`; every core has room for a smaller one


class Shared(Protocol[Value_co]):
    """A handle to a value that tasks of an engine read; small and picklable."""

    def get(self) -> Value_co:
        """Return the value, in any process of the engine; tasks must not modify it."""
        ...


class Engine(Protocol):
    """Runs tasks; `xmtc.engines.open_engine` returns one."""

    @property
    def name(self) -> str:
        """The name on the command line."""

    @property
    def n_workers(self) -> int:
        """Number of tasks that run at once."""

    @property
    def outline(self) -> str:
        """Short description, for the user, of where tasks run."""

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, memory: int = 0, queue: bool = True
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index in `tasks`, result) of each task as it finishes, in any order; raise what a task raises.

        memory: bytes that a task needs; only as many tasks run at once as fit, but at least one. queue: queue some
        tasks in advance, so that no worker waits for one; otherwise a task is taken from `tasks` only when a worker is
        free.
        """
        ...

    def share(self, value: Value) -> Shared[Value]:
        """Return a handle by which tasks can read a value."""
        ...

    def check(self, folder: Path | None, memory: int = 0) -> None:
        """Raise unless every machine has this version of xmtc, can access `folder`, and has `memory` bytes for a task.

        Up to LARGE_TASK bytes, it must have them for each core.
        """


@runtime_checkable
class GroupEngine(Protocol):
    """Engine ability: run processes at once that exchange tensors, as torchrun starts them."""

    def run_group(
        self, function: Callable[[Task, Progress], None], task: Task, n_processes: int | None, progress: Progress
    ) -> None:
        """Run function(task, progress) in several processes at once; return when the last one has finished.

        The processes find each other by torchrun's variables: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
        The progress of rank 0 is forwarded. If a process or its node dies, all are restarted, and the function resumes
        from what it has stored. n_processes: None means one per GPU, or one per node without GPUs.
        """
        ...


@runtime_checkable
class Distributed(Protocol[C_contra]):
    """Method ability: train on an engine, in tasks."""

    def fits_memory(self, corpus: Corpus, config: C_contra) -> bool:
        """Return whether `train` has enough memory for a corpus; if not, `train_on` trains from files."""
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
        """Train the same model as `train`, byte for byte; skip tasks whose output is in `folder`."""
        ...
