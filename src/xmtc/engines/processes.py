"""The process engine: runs tasks in one process per core of this machine, each with one thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, TypeVar

from xmtc.core.errors import ConfigError
from xmtc.core.memory import memory_limit
from xmtc.core.threads import n_threads
from xmtc.engines.local import Held
from xmtc.engines.workers import use_threads

Task = TypeVar("Task")
Result = TypeVar("Result")
Value = TypeVar("Value")

_STARTS = 3  # pools started for one list of tasks: a worker that dies (out of memory, for example) ends its pool


class ProcessEngine:
    """Runs tasks in processes on this machine, which start with the first task."""

    name = "processes"

    def __init__(self) -> None:
        self.n_workers = n_threads()
        self._pool: ProcessPoolExecutor | None = None

    @property
    def outline(self) -> str:
        """Return the number of processes as text."""
        return f"{self.n_workers} process{'es' if self.n_workers > 1 else ''}"

    def __enter__(self) -> ProcessEngine:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop()

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, memory: int = 0, queue: bool = True
    ) -> Iterator[tuple[int, Result]]:
        """Yield each task's index and result as it ends; rerun tasks of a process that died."""
        n_fit = max(1, memory_limit() // memory) if memory else self.n_workers
        at_once = min(n_fit, self.n_workers) * (2 if queue and not memory else 1)
        source = enumerate(tasks)
        begun: dict[int, Task] = {}
        for _ in range(_STARTS):
            try:
                for place, result in self._run(function, chain(list(begun.items()), source), begun, at_once):
                    del begun[place]
                    yield place, result
                return
            except BrokenProcessPool:
                self._stop()
        raise ConfigError(
            f"worker processes died {_STARTS} times, probably for lack of memory; set XMTC_THREADS below "
            f"{self.n_workers}, for fewer processes"
        )

    def share(self, value: Value) -> Held[Value]:
        """Return a handle to a value; it is pickled for every task, one at a time."""
        return Held(value)

    def check(self, folder: Path | None, memory: int = 0) -> None:
        """Accept any folder, because the processes run on this machine."""

    def _run(
        self,
        function: Callable[[Task], Result],
        waiting: Iterator[tuple[int, Task]],
        begun: dict[int, Task],
        at_once: int,
    ) -> Iterator[tuple[int, Result]]:
        """Run tasks; record in `begun` which of them were submitted."""
        if self._pool is None:
            # spawn, not fork: forking a process with threads may hang, and torch does not support it
            self._pool = ProcessPoolExecutor(self.n_workers, get_context("spawn"), _prepare)
        running: dict[Future[Result], int] = {}
        try:
            while True:
                for place, task in islice(waiting, at_once - len(running)):
                    begun[place] = task
                    running[self._pool.submit(function, task)] = place
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            for future in running:
                future.cancel()

    def _stop(self) -> None:
        """Kill the processes at once; incomplete files have temporary names."""
        pool: Any = self._pool
        self._pool = None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)


def _prepare() -> None:
    """Set up a worker: use one thread, ignore Ctrl-C (the parent handles it), and exit when the parent does."""
    use_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
