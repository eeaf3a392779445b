"""Batches: documents of like length together, padded to the longest among them.

The order is a function of (seed, epoch) alone: so a resumed run sees the batches it would have seen, and every rank
cuts its share from the same global batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from xmtc.features.tokens import Tokens
from xmtc.neural.encoder import TokenLayout

_POOL = 64  # batches whose documents are sorted by length together


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents ready for a network; positives of document i are `positives[starts[i]:starts[i + 1]]`."""

    ids: Tensor  # (B, T); of a WindowedBatch, one row per window
    mask: Tensor  # the same shape, bool
    rows: Tensor  # (B,) numbers of the documents
    positives: Tensor  # labels of all documents, one after another
    starts: Tensor  # (B + 1,)

    def __len__(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device) -> Self:
        """Return the batch on a device."""
        return type(self)(*(value.to(device, non_blocking=True) for value in vars(self).values()))

    def dense_targets(self, n_labels: int) -> Tensor:
        """(B, n_labels) of zeros and ones; for small label sets only."""
        targets = torch.zeros(len(self), n_labels, device=self.ids.device)
        targets[self.document_of_positive(), self.positives] = 1
        return targets

    def document_of_positive(self) -> Tensor:
        """Place in the batch of the document that each positive belongs to."""
        n_positives = self.starts.diff()
        return torch.repeat_interleave(torch.arange(len(n_positives), device=n_positives.device), n_positives)


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a network is fed of many documents: their tokens, padded as its encoder wants them.

    A method whose network reads more than tokens derives from this and collates a batch of its own.
    """

    tokens: Tokens
    layout: TokenLayout

    def collate(self, rows: Sequence[int] | NDArray[np.integer], Y: sp.csr_matrix | None = None) -> Batch:
        """Pad the documents of `rows` and gather their labels, if there are any to learn from."""
        rows = np.asarray(rows, dtype=np.int64)
        size = self.layout.window
        documents = [self.tokens[int(row)] for row in rows]
        windows = documents
        if size is not None:
            windows = [tokens[start : start + size] for tokens in documents for start in range(0, len(tokens), size)]
        width = max((len(window) for window in windows), default=1)
        ids = np.full((len(windows), width), self.layout.pad_id, dtype=np.int64)
        mask = np.zeros((len(windows), width), dtype=bool)
        for i, window in enumerate(windows):
            span = slice(width - len(window), width) if self.layout.pad_left else slice(0, len(window))
            ids[i, span] = window
            mask[i, span] = True
        labels = [np.empty(0, np.int64)] * len(rows)
        if Y is not None:
            labels = [Y.indices[Y.indptr[row] : Y.indptr[row + 1]].astype(np.int64) for row in rows]
        starts = np.cumsum([0, *(len(found) for found in labels)])
        positives = np.concatenate([*labels, np.empty(0, np.int64)])
        parts = [torch.from_numpy(part) for part in (ids, mask, rows, positives, starts)]
        if size is None:
            return Batch(*parts)
        from xmtc.neural.window_pool import WindowedBatch

        window_starts = np.cumsum([0, *(-(-len(tokens) // size) for tokens in documents)])
        return WindowedBatch(*[*parts, torch.from_numpy(window_starts)])


def order_batches(
    lengths: NDArray[np.integer], batch_size: int, seed: int, epoch: int, shuffle: bool = True
) -> list[NDArray[np.int64]]:
    """Cut documents into batches of like length.

    Shuffled, documents are drawn at random into pools of 64 batches, sorted by length inside a pool, and the batches
    shuffled again: lengths differ little in a batch, and no batch recurs. Not shuffled, all are sorted by length, the
    longest first, so that running out of memory shows at once.
    """
    n = len(lengths)
    if not shuffle:
        order = np.argsort(-lengths, kind="stable")
        return [order[start : start + batch_size] for start in range(0, n, batch_size)]
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(n)
    pool = batch_size * _POOL
    batches = []
    for start in range(0, n, pool):
        members = order[start : start + pool]
        members = members[np.argsort(lengths[members], kind="stable")]
        batches += [members[i : i + batch_size] for i in range(0, len(members), batch_size)]
    return [batches[i] for i in random.permutation(len(batches))]
