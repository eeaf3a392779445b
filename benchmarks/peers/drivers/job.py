"""What all drivers share: matrices and texts in, rankings out. Needs numpy and scipy, which every environment has."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.machine import versions
from benchmarks.process import Found

Job = dict[str, Any]


def matrix(job: Job, name: str) -> sp.csr_matrix:
    """Read X.train, Y.train or X.test as float32."""
    return sp.csr_matrix(sp.load_npz(Path(job["data"], f"{name}.npz")), dtype=np.float32)


def texts(job: Job, split: str) -> list[str]:
    """Read the texts of the rows of X.train or X.test."""
    found: list[str] = json.loads(Path(job["data"], f"texts.{split}.json").read_text(encoding="utf-8"))
    return found


def write_top(job: Job, rows: Sequence[Sequence[int]]) -> None:
    """Store each document's labels, best first; short rows are padded with −1."""
    ids = np.full((len(rows), job["k"]), -1, dtype=np.int32)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    np.save(job["top"], ids)


def environment(*packages: str) -> Found:
    """Return the versions of Python, numpy, scipy and the rival's packages."""
    return {"python": platform.python_version(), "packages": versions([*packages, "numpy", "scipy"])}
