"""The shared state of a training's tasks: its folder, and how a list of tasks is run and resumed.

A task writes one stage of the folder. A stage that exists is finished, by this run or by the run that it resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from xmtc.core.engine import LARGE_TASK, Engine
from xmtc.core.progress import Progress
from xmtc.core.stages import is_finished
from xmtc.methods.linear.model import LinearConfig

T = TypeVar("T")


class Job(NamedTuple):
    """One task of a training, as sent to a worker: which part of which stage, and its settings."""

    folder: Path
    stage: str  # written by the task
    parts: list[int]  # read by the task: numbers of shards, blocks or subtrees
    config: LinearConfig
    seed: int = 0


@dataclass(frozen=True)
class Work:
    """A training that runs in tasks."""

    engine: Engine
    folder: Path
    config: LinearConfig
    progress: Progress

    def run(
        self,
        name: str,
        function: Callable[[Job], None],
        stages: Sequence[tuple[str, list[int]]],
        seed: int = 0,
        memory: int = 0,
    ) -> None:
        """Run the unfinished tasks of a step; stages: (stage, parts) of each task; memory: bytes that a task takes."""
        self.progress.stage(name)
        jobs = [
            Job(self.folder, stage, parts, self.config, seed)
            for stage, parts in stages
            if not is_finished(self.folder, stage)
        ]
        done = len(stages) - len(jobs)
        for _ in self.engine.run(function, jobs, memory=memory if memory > LARGE_TASK else 0):
            done += 1
            self.progress.step(done, len(stages))


def group(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Group the numbers of consecutive items into groups of size about `most`; a larger item forms its own group."""
    groups: list[list[int]] = []
    filled = most
    for item, size in enumerate(sizes):
        if filled + size > most:
            groups.append([])
            filled = 0
        groups[-1].append(item)
        filled += size
    return groups
