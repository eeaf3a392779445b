"""Waiting threads: they spin only inside may_spin, and only while no other process needs the cores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xmtc.core import spinning

pytest.importorskip("torch", reason="its OpenMP library is the one that is prepared")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
LINUX = pytest.mark.skipif(
    sys.platform != "linux" or not 2 <= CORES <= 16, reason="needs Linux, and between two and 16 cores"
)
# threads of a process: a look at how many there are, in blocks and beside a process that keeps all cores busy
THREADS = """
import os, subprocess, sys, time
from pathlib import Path
import xmtc
from xmtc.core import spinning

def count():
    return len(os.listdir("/proc/self/task"))

def waits(wanted):
    until = time.monotonic() + 20
    while not wanted() and time.monotonic() < until:
        time.sleep(0.05)
    return wanted()

idle = len(os.sched_getaffinity(0)) + 1
if "busy" in sys.argv:
    spinning._used = lambda cores: len(cores) * time.monotonic()  # as if others used all cores
else:
    spinning._used = lambda cores: time.process_time()  # as if nobody else used any
before = count()
spinning.prepare()
spinning.prepare()  # once is enough
print(count() - before == idle)
with spinning.may_spin(), spinning.may_spin():
    if "busy" in sys.argv:
        time.sleep(1.5)
    print(count() > before + idle if "busy" in sys.argv else waits(lambda: count() < before + idle))
print(waits(lambda: count() == before + idle), os.environ["GOMP_SPINCOUNT"], "torch" in sys.modules)
"""


def output_of(code: str, *arguments: str, **environment: str) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if name not in spinning.QUIET}
    kept = {**kept, "XMTC_THREADS": str(CORES), **environment}
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, env=kept, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


@LINUX
@pytest.mark.parametrize("load", ["free", "busy"])
def test_idle_threads_stay_unless_the_cores_are_free(load: str) -> None:
    assert output_of(THREADS, load) == ["True", "True", "True", "0", "False"]


@LINUX
def test_without_idle_threads_waiting_threads_spin() -> None:
    """Between parallel parts, a thread that spins uses processor time, and one that sleeps does not."""
    code = """
import time
import xmtc
from xmtc.core import spinning
spinning._used = lambda cores: time.process_time()
spinning.prepare()
import torch
torch.set_num_threads(2)
x = torch.randn(512, 512)

def spent():
    used, until = time.process_time(), time.monotonic() + 1
    started = time.monotonic()
    while time.monotonic() < until:
        (x + 1).sum()
        time.sleep(0.002)
    return (time.process_time() - used) / (time.monotonic() - started)

asleep = spent()
with spinning.may_spin():
    time.sleep(1.2)
    spins = spent()
print(asleep, spins, spent())
"""
    asleep, spins, after = map(float, output_of(code))
    assert spins > 2 * max(asleep, after)


@LINUX
def test_nothing_changes_if_the_user_has_decided() -> None:
    code = "import xmtc; from xmtc.core import spinning; spinning.prepare(); print(spinning._idle)"
    assert output_of(code, OMP_WAIT_POLICY="ACTIVE") == ["None"]
    assert output_of(code) != ["None"]


def test_seconds_used_on_some_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    statistics = tmp_path / "stat"
    statistics.write_text(
        "cpu  9 9 9 9 9 9 9 0 0 0\n"
        "cpu0 1 2 3 1000 1000 4 5 0 0 0\n"
        f"cpu1 {ticks} 0 0 1000 1000 0 0 0 0 0\n"
        "cpu10 7 7 7 7 7 7 7 0 0 0\nintr 5\n"
    )
    monkeypatch.setattr(spinning, "_STATISTICS", statistics)
    assert spinning._used({0}) == pytest.approx(15 / ticks)
    assert spinning._used({1}) == 1
    assert spinning._used({0, 1}) == pytest.approx(1 + 15 / ticks)
    monkeypatch.setattr(spinning, "_STATISTICS", tmp_path / "absent")
    assert spinning._used({0}) == 0
