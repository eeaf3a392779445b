"""Heads that several methods share: turn a text's vector into scores of labels.

Every loss is a (sum, count); the trainer divides them, over all processes.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xmtc.neural.batches import Batch

InitialBias = float | Literal["prior"]  # of the labels' initial logits; "prior": the log-odds of each label's frequency


class FlatHead(nn.Module):
    """One linear layer over all labels, trained with binary cross-entropy."""

    def __init__(self, width: int, n_labels: int, initial_bias: float) -> None:
        super().__init__()
        self.output = nn.Linear(width, n_labels)
        nn.init.constant_(self.output.bias, initial_bias)

    def loss(self, text: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return Σ over all (document, label) of BCE, and their number."""
        logits: Tensor = self.output(text)
        return bce_of_positives(logits, batch), torch.tensor(float(logits.numel()), device=logits.device)

    def rank(self, text: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best labels and σ of their logits."""
        return best_labels(self.output(text), k)

    def score(self, text: Tensor, label: int) -> Tensor:
        """Return the logits of one label: (B,)."""
        return text @ self.output.weight[label] + self.output.bias[label]


def bce_of_positives(logits: Tensor, batch: Batch) -> Tensor:
    """Return Σ over all (document, label) of BCE(z, y) = softplus(z) − y z: the (B, L) targets are never built."""
    logits = at_least_single(logits)
    return F.softplus(logits).sum() - logits[batch.document_of_positive(), batch.positives].sum()


def at_least_single(logits: Tensor) -> Tensor:
    """Return logits in single precision or better: sums over many labels need more than half precision."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def best_labels(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best labels of (B, L) logits, and σ of these logits."""
    scores, labels = logits.topk(min(k, logits.shape[1]), dim=1)
    return labels, scores.sigmoid()
