"""Tasks that worker processes run; they are imported there by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from xmtc.core.engine import Shared
from xmtc.core.errors import DataError


def square(number: int) -> int:
    return number * number


def threads(_: int) -> tuple[int, str | None, str | None]:
    return os.getpid(), os.environ.get("XMTC_THREADS"), os.environ.get("OMP_NUM_THREADS")


def die_once(task: tuple[Path, int]) -> int:
    """Kill the worker the first time that number 2 is run."""
    folder, number = task
    if number == 2 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(number: int) -> None:
    raise DataError(f"document {number} is wrong; mend it")


def look(shared: Shared[dict[str, list[int]]]) -> int:
    return len(shared.get()["a"])


def run_alone(folder: Path) -> bool:
    """Say whether no other task of this folder ran meanwhile."""
    mine = folder / f"{os.getpid()}-{time.monotonic_ns()}"
    mine.touch()
    time.sleep(0.2)
    alone = list(folder.iterdir()) == [mine]
    mine.unlink()
    return alone


def sleep(folder: Path) -> None:
    (folder / f"pid-{os.getpid()}").touch()
    time.sleep(60)
