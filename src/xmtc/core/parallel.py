"""Threads for compiled kernels that release the interpreter lock.

Work is split into tasks whose bounds depend only on the data, never on the number of threads, and no task reads what
another writes. So any number of threads gives the same bytes.
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
    """Apply `function` to every task on all threads; return the results in the order of the tasks."""
    tasks = list(tasks)
    threads = min(n_threads(), len(tasks))
    if threads <= 1:
        return [function(task) for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, tasks))


def blocks(n: int, size: int) -> list[tuple[int, int]]:
    """Split 0 … n into consecutive (start, stop) blocks of `size`."""
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def read_only(array: NDArray) -> NDArray:
    """Return a plain, read-only view: numba recompiles a kernel for each new kind of array."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
