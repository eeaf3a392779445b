"""What all drivers share: matrices in, rankings out. Needs numpy and scipy, which every rival's environment has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

Job = dict[str, Any]


def matrix(job: Job, name: str) -> sp.csr_matrix:
    """Read X.train, Y.train or X.test as float32."""
    return sp.csr_matrix(sp.load_npz(Path(job["data"], f"{name}.npz")), dtype=np.float32)


def write_top(job: Job, rows: list[list[tuple[int, float]]]) -> None:
    """Store each document's (label, score) pairs, best first; short rows are padded with label −1."""
    k = job["k"]
    ids = np.full((len(rows), k), -1, dtype=np.int32)
    scores = np.full((len(rows), k), -np.inf, dtype=np.float32)
    for i, row in enumerate(rows):
        for place, (label, score) in enumerate(row[:k]):
            ids[i, place], scores[i, place] = label, score
    np.savez(job["top"], ids=ids, scores=scores)
