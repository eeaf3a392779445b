"""Runs the tests of `ray_cases.py` in one process of their own: one cluster for all, and Ray may end its process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")
ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(1150)
def test_on_a_small_cluster() -> None:
    run_cases("not slow", 560)


@pytest.mark.slow
@pytest.mark.timeout(3450)
def test_slow_cases_on_a_small_cluster() -> None:
    run_cases("slow", 1700)


def run_cases(which: str, seconds: float) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "tests/engines/ray_cases.py"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    for _ in range(2):
        done = subprocess.run(
            [*command, "-m", which],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if re.search(r"\d+ (passed|failed)", done.stdout):
            break  # else Ray ended its process, as it does if a busy machine lets its own processes wait too long
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "passed" in done.stdout
