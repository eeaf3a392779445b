"""A matrix four times as large as the memory that a process may take: trained from files, with the same bytes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.methods.linear.test_tasks import same

ROOT = Path(__file__).parents[3]
LIMIT = 320  # megabytes that the process may take for itself: Python, numba and kernels need half of it
WORDS = 2000  # of a document, all different: 8 bytes each in the matrix


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit a process's own memory")
def test_a_matrix_four_times_the_limit_gives_the_same_bytes(tmp_path: Path) -> None:
    data = tmp_path / "train.jsonl"
    write_documents(data, n=4 * (LIMIT << 20) // (8 * WORDS))
    limited = train(data, tmp_path / "limited", LIMIT)
    assert limited["matrix_mb"] >= 4 * LIMIT
    whole = train(data, tmp_path / "whole", 0)
    assert whole["matrix_mb"] is None  # in memory, without the files of tasks
    assert same(tmp_path / "limited", tmp_path / "whole")


def write_documents(path: Path, n: int) -> None:
    """Write n documents of few labels: a large matrix, and a quick training."""
    draw = random.Random(1)
    words = [f"w{i:05d}" for i in range(20_000)]
    texts = [" ".join(draw.sample(words, WORDS)) for _ in range(1000)]
    with path.open("w") as file:
        for i in range(n):
            labels = [f"l{i % 1000 % 32}", f"m{i % 1000 % 20}"]
            file.write(json.dumps({"id": str(i), "text": texts[i % 1000], "labels": labels}) + "\n")


def train(data: Path, out: Path, limit: int) -> dict[str, int | None]:
    """Train in a process of its own, whose own memory is limited; 0 is no limit."""
    command = [sys.executable, "-m", "tests.methods.linear.limited", str(data), str(out), str(limit)]
    environment = {**os.environ, "XMTC_THREADS": "1"}  # each thread reserves memory that it never touches
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, int | None] = json.loads(done.stdout)
    return found
