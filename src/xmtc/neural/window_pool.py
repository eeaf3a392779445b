"""Texts read in several windows: their batches, and one vector per text from the vectors of its windows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from xmtc.neural.batches import Batch
from xmtc.neural.windows import Joining


@dataclass(frozen=True, eq=False)
class WindowedBatch(Batch):
    """Documents in windows: those of document i are the rows window_starts[i] to window_starts[i + 1] of `ids`."""

    window_starts: Tensor  # (B + 1,)


class WindowPool(nn.Module):
    """Combines the vectors of a text's windows into one: by mean, elementwise maximum, or attention.

    Attention weights the windows of a text by a softmax over a·v; a is learned and starts at 0, which gives the mean.
    """

    def __init__(self, width: int, joining: Joining) -> None:
        super().__init__()
        self.joining = joining
        self.attention = nn.Parameter(torch.zeros(width)) if joining == "attention" else None

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        """Pool (windows of all texts, width) to (B, width); the result for a text depends only on its own windows."""
        assert isinstance(batch, WindowedBatch)  # built by an encoder's layout with windows
        counts = batch.window_starts.diff()
        places = torch.arange(int(counts.max()), device=vectors.device)
        real = places < counts.unsqueeze(1)  # (B, largest number of windows)
        spread = vectors.new_zeros(*real.shape, vectors.shape[1])
        spread[real] = vectors  # row by row: texts in order, and their windows
        if self.joining == "max":
            return spread.masked_fill(~real.unsqueeze(2), -torch.inf).amax(1)
        if self.attention is None:
            return spread.sum(1) / counts.unsqueeze(1)
        scores = (spread @ self.attention.to(spread.dtype)).masked_fill(~real, -torch.inf)
        return (scores.softmax(1).unsqueeze(2) * spread).sum(1)
