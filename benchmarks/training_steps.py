"""What the benchmarks of single training steps share: clocks of the steps, random documents, even clusters."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from benchmarks.framework import peak_rss_mb
from xmtc.core.partition import Partition
from xmtc.core.progress import Progress

if TYPE_CHECKING:  # the page needs no torch
    from xmtc.neural.encoder import TokenLayout
    from xmtc.neural.trainer import TrainingData

SEED = 0


def cut_evenly(n_labels: int, n_clusters: int) -> Partition:
    """Cut labels, in their order, into clusters of equal size."""
    return Partition((np.arange(n_labels) * n_clusters // n_labels).astype(np.int32), n_clusters)


def draw_documents(
    n_documents: int, longest: int, vocabulary: int, n_labels: int, layout: TokenLayout, shortest: int
) -> TrainingData:
    """Draw documents of random tokens, from `shortest` to `longest` of them, with five random labels each."""
    from xmtc.features.tokens import Tokens
    from xmtc.neural.batches import Inputs
    from xmtc.neural.trainer import TrainingData

    random = np.random.default_rng(SEED)
    lengths = random.integers(shortest, longest, n_documents, endpoint=True)
    ids = random.integers(min(1000, vocabulary // 2), vocabulary, int(lengths.sum())).astype(np.int32)
    tokens = Tokens(ids, np.concatenate([[0], np.cumsum(lengths)]))
    columns = random.integers(0, n_labels, 5 * n_documents)
    places = np.arange(0, 5 * n_documents + 1, 5)
    Y = sp.csr_matrix((np.ones(5 * n_documents, np.float32), columns, places), shape=(n_documents, n_labels))
    Y.sum_duplicates()
    return TrainingData(Inputs(tokens, layout), Y)


class Stamps(Progress):
    """Notes when each step ended, the CPU time spent until then, and the most memory held."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.cpu: list[float] = []
        self.peak_rss_mb = 0.0

    def step(self, done: int, total: int) -> None:
        """Note the time first: reading the memory takes some, but the same in every way."""
        self.times.append(time.perf_counter())
        self.cpu.append(time.process_time())
        self.peak_rss_mb = peak_rss_mb()

    @property
    def ms(self) -> float:
        """Milliseconds a step, the first not counted."""
        return 1000 * (self.times[-1] - self.times[0]) / (len(self.times) - 1)

    @property
    def cpu_ms(self) -> float:
        """The same of all threads' CPU time, which other processes disturb less."""
        return 1000 * (self.cpu[-1] - self.cpu[0]) / (len(self.cpu) - 1)
