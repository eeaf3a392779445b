"""Compiled kernels: whether they are in the cache, and two processes that compile them before a first training.

numba compiles a kernel when it is first called and keeps it in $XMTC_CACHE/kernels, or in NUMBA_CACHE_DIR if the user
set it. A process compiles one kernel at a time, so two processes share the kernels of linear models. Knows no command.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, get_args

from xmtc.app.cli.progress import PlainProgress
from xmtc.core.progress import SILENT, Progress

Part = Literal["texts", "trees"]
# a file that ranking leaves, and one that training a linear model leaves
_RANKING, _TRAINING = "beam._search-*.nbi", "label_vectors._aggregate-*.nbi"
NOTICE = "compiling kernels, the first time only; this takes up to a minute"


def kernel_folder() -> Path:
    """Return the folder that holds compiled kernels."""
    return Path(os.environ["NUMBA_CACHE_DIR"])


def is_compiled(*, training: bool) -> bool:
    """Return whether the kernels of ranking, or of training a linear model, were compiled before."""
    wanted = (_RANKING, _TRAINING) if training else (_RANKING,)
    return all(any(kernel_folder().glob(f"*/{name}")) for name in wanted)


def announce_kernels(progress: Progress, *, training: bool = False) -> None:
    """Say that kernels are about to be compiled, if that is so; before a training, compile them.

    Call this when the method is imported: methods that use no kernels have not loaded numba then.
    """
    if "numba" in sys.modules and not is_compiled(training=training):
        if progress is SILENT:  # where a bar would disturb the results, a line before them does not
            progress = PlainProgress()
        progress.say(NOTICE)
        if training:
            progress.stage("compiling kernels")
            compile_kernels()


def compile_kernels() -> bool:
    """Compile all kernels of linear models in two processes; return whether both succeeded."""
    start = "from xmtc.app.cli.kernels import compile_part; compile_part({!r})"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", start.format(part)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # what fails here is compiled, and fails again, in the training itself
        )
        for part in get_args(Part)
    ]
    try:
        codes = [process.wait() for process in running]
        return not any(codes)
    finally:
        for process in running:
            process.kill()  # does nothing to one that has ended


def compile_part(part: Part) -> None:
    """Compile some of the kernels by using them on a few rows; the two parts take about as long."""
    import numpy as np
    import scipy.sparse as sp

    from xmtc.features.clustering import ClusterConfig

    random = np.random.default_rng(0)

    def draw(n_rows: int, n_columns: int, density: float) -> sp.csr_matrix:
        drawn: Any = sp.random(n_rows, n_columns, density, "csr", np.float32, random)
        matrix: sp.csr_matrix = sp.csr_matrix(drawn)
        matrix.indptr = matrix.indptr.astype(np.int64)  # as readers of data, TF-IDF and PIFA make them
        return matrix

    labels = draw(400, 200, 0.02)  # enough for clusters of several levels
    if part == "texts":
        from xmtc.features.label_vectors import pifa
        from xmtc.features.tfidf import TfidfConfig, fit_tfidf

        texts = [f"Word{i % 7} Ünïcode{i % 5} text {i % 3}" for i in range(400)]
        tfidf, rows = fit_tfidf(texts, TfidfConfig())
        tfidf.transform(texts)
        pifa(rows, labels, ClusterConfig().weighting, ClusterConfig().top)
        return
    from xmtc.features.clustering import label_tree
    from xmtc.linear.beam import SearchConfig, search
    from xmtc.linear.solver import SolverConfig
    from xmtc.linear.tree import TreeConfig, train_tree

    rows = draw(400, 50, 0.1)
    clusters = label_tree(draw(200, 50, 0.1), ClusterConfig(), 0)
    tree = train_tree(rows, labels, clusters, TreeConfig(), SolverConfig(), SearchConfig(), 0)
    search(tree, rows, SearchConfig(), 5)
