"""Padding: choose which documents are batched together, and put their tokens into one array. Needs no torch.

The order depends only on (seed, epoch). So a resumed run gets the same batches, and every rank takes its share of the
same global batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xmtc.neural.tokenizer import TokenLayout

_POOL = 64  # batches whose documents are sorted by length together
_READ = 256  # maximum documents in a batch that is only read


def pad_documents(
    documents: Sequence[NDArray[np.integer]], layout: TokenLayout, seen: Sequence[NDArray[np.bool_]] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Return ids and mask, one row per window of the documents, and the first row of each document and the end.

    Without windows, a document is one row. seen: which tokens of each document the mask shows; None: all.
    """
    size = layout.window
    n_windows = [1 if size is None else -(-len(tokens) // size) for tokens in documents]
    width = max((len(tokens) if size is None else min(size, len(tokens)) for tokens in documents), default=1)
    starts = np.cumsum([0, *n_windows])
    ids = np.full((starts[-1], width), layout.pad_id, dtype=np.int64)
    mask = np.zeros((starts[-1], width), dtype=bool)
    for i, tokens in enumerate(documents):
        for window in range(n_windows[i]):
            own = slice(None) if size is None else slice(window * size, (window + 1) * size)
            length = len(tokens[own])
            place = slice(width - length, width) if layout.pad_left else slice(0, length)
            ids[starts[i] + window, place] = tokens[own]
            mask[starts[i] + window, place] = True if seen is None else seen[i][own]
    return ids, mask, starts


def order_batches(lengths: NDArray[np.integer], batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Split documents into batches of similar length, for training.

    Documents are drawn at random into pools of 64 batches and sorted by length within a pool, then the batches are
    shuffled. Lengths in a batch differ little, and no batch recurs.
    """
    n = len(lengths)
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(n)
    pool = batch_size * _POOL
    batches = []
    for start in range(0, n, pool):
        members = order[start : start + pool]
        members = members[np.argsort(lengths[members], kind="stable")]
        batches += [members[i : i + batch_size] for i in range(0, len(members), batch_size)]
    return [batches[i] for i in random.permutation(len(batches))]


def order_reading(lengths: NDArray[np.integer], n_tokens: int, most: int = _READ) -> list[NDArray[np.int64]]:
    """Split documents into batches for reading without training, longest first.

    A batch has at most `n_tokens` tokens, including padding, and `most` documents, but always at least one.
    """
    order, batches, start = np.argsort(-lengths, kind="stable"), [], 0
    while start < len(order):
        size = max(1, min(most, n_tokens // max(1, int(lengths[order[start]]))))
        batches.append(order[start : start + size])
        start += size
    return batches
