"""Waiting OpenMP threads: they spin while the cores are free, and sleep while another process needs them.

A thread that spins continues sooner than one that sleeps: training on two quiet cores is a sixth faster. Beside a busy
process it takes a core from those that work. GNU's library, which torch uses on Linux, decides when it is loaded, but
its threads never spin while it manages more threads than there are cores. So `prepare` loads it with spinning allowed
and adds idle threads, which prevent it; `may_spin` removes these while the cores are free. Results do not change.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from xmtc.core.threads import QUIET, n_threads

_SPINS = "300000"  # the library's own default: about 3 ms
_MOST = 16  # cores: as many idle threads are added
_SECONDS = 0.5  # between two looks at the cores
_SLACK = 0.2  # of a core, which others may use all the same
_STATISTICS = Path("/proc/stat")


class _Idle:
    """More idle threads than cores, in a team of GNU's OpenMP library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.done: threading.Event | None = None  # None: there is no team
        self.thread = threading.Thread()

    def start(self) -> None:
        """Add the threads, unless they exist."""
        if self.done is None:
            self.done, ready = threading.Event(), threading.Event()
            self.thread = threading.Thread(target=self._hold, args=(ready, self.done), daemon=True)
            self.thread.start()
            ready.wait()

    def stop(self) -> None:
        """Remove the threads."""
        if self.done is not None:
            self.done.set()
            self.thread.join()
            self.done = None

    def _hold(self, ready: threading.Event, done: threading.Event) -> None:
        # each thread of the team calls free(NULL), which does nothing; the team exists as long as this thread
        nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)
        self.library.GOMP_parallel(nothing, None, len(os.sched_getaffinity(0)) + 1, 0)
        ready.set()
        done.wait()


_idle: _Idle | None = None  # None: not prepared, so that nothing changes
_lock = threading.Lock()
_spinners = 0  # blocks of may_spin that run now


def prepare() -> None:
    """Load torch's OpenMP library so that `may_spin` works; call it before torch is imported.

    Nothing happens if the user has set how threads wait, on other systems than Linux, and on large machines.
    """
    global _idle
    with _lock:
        if _idle is not None or any(os.environ.get(name) != value for name, value in QUIET.items()):
            return
        if sys.platform != "linux" or len(os.sched_getaffinity(0)) > _MOST:
            return
        found = find_spec("torch")
        path = Path(found.origin if found is not None and found.origin else "torch").with_name("lib") / "libgomp.so.1"
        if not path.is_file():
            return
        os.environ["GOMP_SPINCOUNT"] = _SPINS  # the library reads it now, and never again
        try:
            _idle = _Idle(ctypes.CDLL(str(path)))
        except OSError:  # torch will say so
            return
        finally:
            os.environ["GOMP_SPINCOUNT"] = QUIET["GOMP_SPINCOUNT"]
        _idle.start()


@contextmanager
def may_spin() -> Iterator[None]:
    """Let waiting threads spin inside the block whenever no other process needs the cores."""
    global _spinners
    with _lock:
        first = _spinners == 0
        _spinners += 1
    ended = threading.Event()
    watcher = None
    if first and _idle is not None and n_threads() > 1:
        watcher = threading.Thread(target=_watch, args=(_idle, ended), daemon=True)
        watcher.start()
    try:
        yield
    finally:
        ended.set()
        if watcher is not None:
            watcher.join()
        with _lock:
            _spinners -= 1


def _watch(idle: _Idle, ended: threading.Event) -> None:
    """Remove the idle threads while the cores are free, until the block ends."""
    before = _look()
    while not ended.wait(_SECONDS):
        now = _look()
        others = (now[1] - before[1]) / max(now[0] - before[0], 1e-9)
        if others > len(os.sched_getaffinity(0)) - n_threads() + _SLACK:
            idle.start()
        else:
            idle.stop()
        before = now
    idle.start()


def _look() -> tuple[float, float]:
    """Return the time, and the seconds that other processes have used on this process's cores since the start."""
    own = os.times()
    return time.monotonic(), _used(os.sched_getaffinity(0)) - own.user - own.system


def _used(cores: set[int]) -> float:
    """Return the seconds that all processes have used on these cores; 0 if the system does not tell."""
    try:
        rows = [line.split() for line in _STATISTICS.read_text(encoding="ascii").splitlines()]
    except OSError:
        return 0.0
    busy = 0
    for name, *counts in rows:
        if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in cores:
            user, nice, system, _, _, irq, softirq = map(int, counts[:7])  # the others: idle, waiting for a disk
            busy += user + nice + system + irq + softirq
    return busy / os.sysconf("SC_CLK_TCK")
