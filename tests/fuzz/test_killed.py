"""Neural runs killed at many moments, in every stage, and resumed: the same bytes as a run that was not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.models import settings_of

MOMENTS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)


def train(name: str, folder: Path, stop: int) -> bool:
    """Train in a child; say whether it came to its end."""
    environment = {**os.environ, "XMTC_CACHE": str(folder / "cache"), "XMTC_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.fuzz.killed", name, str(folder), str(stop)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, -9), ended.stderr[-2000:]
    return ended.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "name", ["lightxml", "lightxml-large", "aplc", "mexml", "xbert-words", "xbert", "treader-encoder"]
)
def test_killed_and_resumed_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    settings_of(name, tmp_path)  # builds the encoder
    assert train(name, tmp_path, 0)
    whole = tmp_path / "whole"
    (tmp_path / "model").rename(whole)
    kills = 0
    for stop in MOMENTS:  # each run goes on where the one before was killed
        if train(name, tmp_path, stop):
            break
        kills += 1
    else:
        assert train(name, tmp_path, 0)
    assert kills > 2
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    found = sorted(path.relative_to(tmp_path / "model") for path in (tmp_path / "model").rglob("*") if path.is_file())
    assert found == files
    assert [path for path in files if (whole / path).read_bytes() != (tmp_path / "model" / path).read_bytes()] == []
    assert not (tmp_path / "model.partial").exists()
    shutil.rmtree(whole)
