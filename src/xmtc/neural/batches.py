"""Build batches of documents of similar length, as tensors padded to the longest document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from xmtc.features.tokens import Tokens
from xmtc.neural.padding import order_batches as order_batches  # re-exported: the order of the batches built here
from xmtc.neural.padding import pad_documents
from xmtc.neural.tokenizer import TokenLayout


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents ready for a network; positives of document i are `positives[starts[i]:starts[i + 1]]`."""

    ids: Tensor  # (B, T); of a WindowedBatch, one row per window
    mask: Tensor  # the same shape, bool
    rows: Tensor  # (B,) row numbers of the documents
    positives: Tensor  # labels of all documents, concatenated
    starts: Tensor  # (B + 1,)
    lower: Tensor | None = field(default=None, kw_only=True)  # (B, T, d) states after the frozen layers, if stored

    def __len__(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device) -> Self:
        """Return the batch on a device."""
        moved = dict(vars(self))
        for name, value in moved.items():
            if value is not None:
                moved[name] = value.to(device, non_blocking=True)
        return type(self)(**moved)

    def dense_targets(self, n_labels: int) -> Tensor:
        """Return zeros and ones (B, n_labels); for small label sets only."""
        targets = torch.zeros(len(self), n_labels, device=self.ids.device)
        targets[self.document_of_positive(), self.positives] = 1
        return targets

    def document_of_positive(self) -> Tensor:
        """Return the position in the batch of each positive's document."""
        n_positives = self.starts.diff()
        return torch.repeat_interleave(torch.arange(len(n_positives), device=n_positives.device), n_positives)


@dataclass(frozen=True, eq=False)
class Inputs:
    """The input of a network for many documents: their tokens, padded as its encoder expects.

    A method whose network reads more than tokens subclasses this and overrides `collate`.
    """

    tokens: Tokens
    layout: TokenLayout

    def collate(self, rows: Sequence[int] | NDArray[np.integer], Y: sp.csr_matrix | None = None) -> Batch:
        """Pad the documents of `rows` and collect their labels, if given for training."""
        rows = np.asarray(rows, dtype=np.int64)
        ids, mask, window_starts = pad_documents([self.tokens[int(row)] for row in rows], self.layout)
        labels = [np.empty(0, np.int64)] * len(rows)
        if Y is not None:
            labels = [Y.indices[Y.indptr[row] : Y.indptr[row + 1]].astype(np.int64) for row in rows]
        starts = np.cumsum([0, *(len(found) for found in labels)])
        positives = np.concatenate([*labels, np.empty(0, np.int64)])
        parts = [torch.from_numpy(part) for part in (ids, mask, rows, positives, starts)]
        lower = None if self.tokens.states is None else self._pad_states(self.tokens.states, rows, mask)
        if self.layout.window is None:
            return Batch(*parts, lower=lower)
        from xmtc.neural.window_pool import WindowedBatch

        return WindowedBatch(*[*parts, torch.from_numpy(window_starts)], lower=lower)

    def _pad_states(self, states: NDArray[np.float16], rows: NDArray[np.integer], mask: NDArray[np.bool_]) -> Tensor:
        """Return the stored states of the documents at the real tokens of the mask: (rows of the mask, T, d)."""
        padded = np.zeros((*mask.shape, states.shape[1]), dtype=np.float32)
        padded[mask] = states[self.tokens.places(rows)]
        return torch.from_numpy(padded)
