"""Killed with kill -9 at five random steps and gone on with, a run ends with the same weights, bit for bit."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.neural.resuming import CASES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every case was trained twice: whole, and with five kills."""
    folder = tmp_path_factory.mktemp("resume")
    kills = [random.randint(1, 6) for _ in range(5)]  # steps after each start; 33 make a run
    print("killed after", kills)
    command = [sys.executable, "-m", "tests.neural.resuming", str(folder), *map(str, kills)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("case", CASES)
def test_same_weights(folder: Path, case: str) -> None:
    assert json.loads((folder / f"{case}.json").read_text()) == [0, *[-signal.SIGKILL] * 5, 0]
    whole, resumed = (load_file(folder / f"{case}-{name}.safetensors") for name in ("whole", "resumed"))
    assert whole.keys() == resumed.keys()
    for name, value in whole.items():
        assert torch.equal(resumed[name], value), name
    steps = [json.loads(line) for line in (folder / f"{case}.partial" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in steps if "dev" not in line] == list(range(1, 34))
