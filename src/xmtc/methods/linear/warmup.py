"""Compile the kernels of linear models by using them on a few rows, in two parts that take about as long.

`xmtc warmup` and a first training run each part in a process of its own: numba compiles one kernel at a time.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from xmtc.features.clustering import ClusterConfig, label_tree
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import TfidfConfig, fit_tfidf
from xmtc.linear.beam import SearchConfig, search
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, train_tree


def compile_part(part: Literal["texts", "trees"]) -> None:
    """Compile some of the kernels by using them on a few rows; the two parts take about as long."""
    random = np.random.default_rng(0)

    def draw(n_rows: int, n_columns: int, density: float) -> sp.csr_matrix:
        drawn: Any = sp.random(n_rows, n_columns, density, "csr", np.float32, random)
        matrix: sp.csr_matrix = sp.csr_matrix(drawn)
        matrix.indptr = matrix.indptr.astype(np.int64)  # as readers of data, TF-IDF and PIFA make them
        return matrix

    labels = draw(400, 200, 0.02)  # enough for clusters of several levels
    if part == "texts":
        texts = [f"Word{i % 7} Ünïcode{i % 5} text {i % 3}" for i in range(400)]
        tfidf, rows = fit_tfidf(texts, TfidfConfig())
        tfidf.transform(texts)
        pifa(rows, labels, ClusterConfig().weighting, ClusterConfig().top)
        return

    rows = draw(400, 50, 0.1)
    clusters = label_tree(draw(200, 50, 0.1), ClusterConfig(), 0)
    tree = train_tree(rows, labels, clusters, TreeConfig(), SolverConfig(), SearchConfig(), 0)
    search(tree, rows, SearchConfig(), 5)
