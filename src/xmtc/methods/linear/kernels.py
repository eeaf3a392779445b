"""Compile the kernels of linear models before the first training, in two processes that share the work."""

from __future__ import annotations

import subprocess
import sys
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp

from xmtc.features.clustering import ClusterConfig, label_tree
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import TfidfConfig, fit_tfidf
from xmtc.linear.beam import SearchConfig, join_rankings, search
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, train_tree

Part = Literal["texts", "trees"]


def compile_kernels() -> bool:
    """Compile all kernels of linear models in two processes; return whether both succeeded."""
    start = "from xmtc.methods.linear.kernels import compile_part; compile_part({!r})"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", start.format(part)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # a failure here recurs, visibly, in the training itself
        )
        for part in get_args(Part)
    ]
    try:
        codes = [process.wait() for process in running]
        return not any(codes)
    finally:
        for process in running:
            process.kill()  # no effect on a process that has ended


def compile_part(part: Part) -> None:
    """Compile some of the kernels by running them on a few rows; both parts take about the same time."""
    random = np.random.default_rng(0)
    labels = _random(400, 200, 0.02, random)  # enough for clusters of several levels
    if part == "texts":
        texts = [f"Word{i % 7} Ünïcode{i % 5} text {i % 3}" for i in range(400)]
        tfidf, rows = fit_tfidf(texts, TfidfConfig())
        tfidf.transform(texts)
        pifa(rows, labels, ClusterConfig().weighting, ClusterConfig().top)
        return
    rows, vectors = (_random(n, 50, 0.1, random) for n in (400, 200))
    clusters = label_tree(vectors, ClusterConfig(), 0)
    tree = train_tree(rows, labels, clusters, TreeConfig(), SolverConfig(), SearchConfig(), 0)
    join_rankings([search(tree, rows, SearchConfig(), 5)] * 2, 5)


def _random(n_rows: int, n_columns: int, density: float, random: np.random.Generator) -> sp.csr_matrix:
    shape = (n_rows, n_columns)
    dense = random.random(shape, dtype=np.float32) * (random.random(shape) < density)
    matrix = sp.csr_matrix(dense.astype(np.float32))
    matrix.indptr = matrix.indptr.astype(np.int64)  # the type that data readers, TF-IDF and PIFA produce
    return matrix
