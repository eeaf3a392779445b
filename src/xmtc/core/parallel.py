"""Threads for compiled kernels that release the interpreter lock.

Work is cut into tasks whose bounds depend on the data alone, never on the number of threads, and no task reads what
another writes: so one thread and eight give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from xmtc.core.threads import n_threads as n_threads

Task = TypeVar("Task")
Result = TypeVar("Result")


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
