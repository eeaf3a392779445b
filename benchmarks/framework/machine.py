"""The machine: what it is, how busy others keep it, how long a piece of work takes and how much memory.

Needs a POSIX system; only Linux says how busy others are.
"""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_GENERATED = (
    "benchmarks/results",
    "docs/results",
    "README.md",
)  # what a run writes makes the tree no other code


_command: list[str] = []  # of the benchmark that runs in this process


def note_command(module: str, arguments: Sequence[str]) -> None:
    """Remember the command line of a benchmark, without folders of this machine, for `facts`."""
    told = [f"python -m {module}"]
    words = iter(arguments)
    for word in words:
        if word in ("--data", "--work"):
            next(words, None)
        elif not word.startswith(("--data=", "--work=")):
            told.append(Path(word).name if word.startswith("/") else word)
    _command[:] = told


def facts(threads: int, seed: int, packages: Iterable[str] = ()) -> dict[str, Any]:
    """Return what must be known to repeat a run: command, code, hardware, versions, threads, seed. No time, no host."""
    return {
        "command": " ".join(_command) or None,
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--", ".", *(f":!{path}" for path in _GENERATED))),
        "cpu": _cpu(),
        "cores": cores(),
        "ram_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": versions(packages),
        "threads": threads,
        "seed": seed,
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those of the packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Clock:
    """Seconds that pass inside the `with`, and CPU seconds of this process, which others disturb less."""

    seconds: float
    cpu: float

    def __enter__(self) -> Clock:
        self._cpu = time.process_time()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.cpu = time.process_time() - self._cpu


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the 50th and the 99th percentile, p50 and p99."""
    import numpy as np  # here: not every environment that imports this module has it

    p50, p99 = np.percentile(values, [50, 99]).tolist()
    return {"p50": p50, "p99": p99}


def peak_rss_mb() -> float:
    """Return the most memory that this process has held so far, in 10⁶ bytes."""
    try:
        # not ru_maxrss, which a process inherits from the one that started it
        lines = Path("/proc/self/status").read_text().splitlines()
        kibibytes = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kibibytes = most // 1024 if sys.platform == "darwin" else most
    return kibibytes * 1024 / 1e6


def folder_mb(folder: str | Path) -> float:
    """Return the size of all files below a folder, in 10⁶ bytes."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6


class Watch:
    """Waits for a quiet machine, then notes how busy others keep it inside the `with`."""

    found: dict[str, float | None]

    def __init__(self, patience: float) -> None:
        self._patience = patience

    def __enter__(self) -> Watch:
        load = os.getloadavg()[0]
        waited = _wait_until_quiet(self._patience)
        self.found = {"load_before": round(load, 2), "waited_s": round(waited, 1), "others_cores": None}
        self._start, self._own, self._all = time.perf_counter(), _cpu_of_children(), _cpu_of_all()
        return self

    def __exit__(self, *error: object) -> None:
        total = _cpu_of_all()
        if total is not None and self._all is not None:
            others = total - self._all - (_cpu_of_children() - self._own)
            self.found["others_cores"] = round(max(0.0, others) / (time.perf_counter() - self._start), 2)


def _wait_until_quiet(patience: float, sample: float = 2) -> float:
    """Wait until all processes together use less than an eighth of the machine; return the seconds waited."""
    start = time.perf_counter()
    while time.perf_counter() - start + sample <= patience and (before := _cpu_of_all()) is not None:
        time.sleep(sample)
        if (_cpu_of_all() or 0) - before < sample * cores() / 8:
            break
    return time.perf_counter() - start


def _cpu_of_children() -> float:
    """CPU seconds of the processes that this one started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_of_all() -> float | None:
    """CPU seconds that the machine has spent on anything but waiting."""
    try:
        ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return None
    user, nice, system, _idle, _io, irq, soft_irq, steal = ticks[:8]
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _git(*arguments: str) -> str | None:
    """What git prints, None where there is no git or no repository."""
    try:
        # --no-optional-locks: status would otherwise write to the index
        command = ["git", "-C", str(ROOT), "--no-optional-locks", *arguments]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
