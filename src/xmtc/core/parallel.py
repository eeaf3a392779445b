"""Threads for compiled kernels that release the interpreter lock.

Work is cut into tasks whose bounds depend on the data alone, never on the number of threads, and no task reads what
another writes: so one thread and eight give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError
from xmtc.core.threads import cpu_quota, usable_cores

Task = TypeVar("Task")
Result = TypeVar("Result")


def n_threads() -> int:
    """Return the number of threads to use: XMTC_THREADS, else the cores that this process may use.

    These are the cores that it may run on, or as many whole ones as its container's quota leaves.
    """
    wanted = os.environ.get("XMTC_THREADS")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise ConfigError(f"XMTC_THREADS must be a whole number above 0; got {wanted!r}")
        return int(wanted)
    cores = usable_cores()
    return min(cores, cpu_quota() or cores)


def run(function: Callable[[Task], Result], tasks: Iterable[Task]) -> list[Result]:
    """Apply `function` to every task on all threads; results come in the order of the tasks."""
    tasks = list(tasks)
    threads = min(n_threads(), len(tasks))
    if threads <= 1:
        return [function(task) for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, tasks))


def blocks(n: int, size: int) -> list[tuple[int, int]]:
    """Cut 0 … n into consecutive (start, stop) blocks of `size`."""
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def read_only(array: NDArray) -> NDArray:
    """Return a plain, read-only view: numba compiles a kernel anew for each kind of array that it meets."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
