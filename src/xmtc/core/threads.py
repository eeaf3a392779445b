"""Threads of other libraries: limit their number, and prevent waiting threads from spinning. Standard library only.

`settle` runs when `xmtc` is imported, before numpy, torch or LightGBM read these variables. A waiting thread that spins
takes a core from other processes: beside one busy process on two cores, two torch threads complete a third of the
training steps that one thread completes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from xmtc.core.errors import ConfigError

# waiting threads sleep: the OpenMP rule, and the equivalents of GNU's and Intel's libraries
QUIET = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def settle(environment: MutableMapping[str, str], quota: int | None) -> None:
    """Set the variables that libraries read on load, unless the user has; XMTC_THREADS overrides their own numbers.

    quota: cores left by a container's limit, which most libraries ignore; None: no limit.
    """
    if not environment.keys() & QUIET.keys():  # a single variable shows that the user has decided
        environment.update(QUIET)
    wanted = environment.get("XMTC_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        environment.update(dict.fromkeys(_COUNTS, wanted))
    elif not wanted and quota is not None:
        for name in _COUNTS:
            environment.setdefault(name, str(n_threads()))


def n_threads() -> int:
    """Return the number of threads to use: XMTC_THREADS, else the cores that this process may use.

    These are the cores it may run on, or the whole cores of its container's quota if that is less.
    """
    wanted = os.environ.get("XMTC_THREADS")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise ConfigError(f"XMTC_THREADS must be a whole number above 0; got {wanted!r}")
        return int(wanted)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, cpu_quota() or cores)


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread inside the block, in code that calls `n_threads` and in torch, if that is loaded."""
    torch, before = sys.modules.get("torch"), os.environ.get("XMTC_THREADS")
    used = None if torch is None else torch.get_num_threads()
    os.environ["XMTC_THREADS"] = "1"
    try:
        if torch is not None:
            torch.set_num_threads(1)
        yield
    finally:
        if before is None:
            del os.environ["XMTC_THREADS"]
        else:
            os.environ["XMTC_THREADS"] = before
        if torch is not None:
            torch.set_num_threads(used)


@cache
def cpu_quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int | None:
    """Return the whole cores, at least one, that the process's cgroup and its ancestors may use; None: no limit.

    own: lists the groups of the process; inside a container they may be invisible, and the root's limit counts.
    """
    shares = [share for folder in _groups(root, own) if (share := _share(folder)) is not None]
    return max(1, int(min(shares))) if shares else None


def _groups(root: Path, own: Path) -> Iterator[Path]:
    """Yield the folders of the process's cgroup, of versions 2 and 1, and of its ancestors."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in ["0::/", ":cpu:/", *lines]:
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if names == "" or "cpu" in names.split(","):
            top = root / names
            group = Path(path.lstrip("/"))
            yield from (top / folder for folder in (group, *group.parents))


def _share(folder: Path) -> float | None:
    """Return the cores that a group may use; None if it has no limit or does not exist."""
    try:
        if (folder / "cpu.max").is_file():
            quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        else:
            quota, period = (
                (folder / f"cpu.cfs_{name}_us").read_text(encoding="utf-8").strip() for name in ("quota", "period")
            )
        return int(quota) / int(period) if int(quota) > 0 and int(period) > 0 else None
    except (OSError, ValueError):  # "max" is not a number
        return None
