"""Engine: where tasks run. The calling process, other processes, or the machines of a cluster.

Long work is cut into tasks whose bounds depend on the data alone, so every engine gives the same bytes. A task is a
function of some module with one argument, both of which can be pickled. Tasks share a folder that every machine sees:
they read their input there and write their output there, to a temporary sibling that is renamed. So a task that runs
twice, because its machine died, does no harm, and a task whose output exists can be skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress

Task = TypeVar("Task")
Result = TypeVar("Result")
C_contra = TypeVar("C_contra", bound=Settings, contravariant=True)


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

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
        """Yield (place in `tasks`, result) of each task as it ends, in any order; raise what a task raises."""

    def check(self, folder: Path, memory: int = 0) -> None:
        """Raise unless every machine has this version of xmtc, sees `folder`, and has `memory` bytes for a task."""


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
