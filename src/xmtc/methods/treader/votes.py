"""Votes: direct evidence from a text's scope for its labels, and the output layer that adds them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from xmtc.methods.treader.inputs import TaughtBatch
from xmtc.neural.batches import Batch
from xmtc.neural.heads import FlatHead, bce_of_positives, best_labels

_LEAST = 1e-9  # minimum vote, for the logarithm: a tiny similarity to the power of p may be 0

# documents and labels, and the terms added to their logits
Votes: TypeAlias = tuple[Tensor, Tensor, Tensor]

Vote = Literal["none", "weight", "log"]


class VotingHead(FlatHead):
    """One linear layer over all labels; votes, if any, are added to its logits."""

    def voted_loss(self, text: Tensor, batch: Batch, votes: Votes | None) -> Tensor:
        """Return Σ over all (document, label) of BCE."""
        return bce_of_positives(self._logits(text, votes), batch)

    def voted_rank(self, text: Tensor, k: int, votes: Votes | None) -> tuple[Tensor, Tensor]:
        """Return the k best labels and σ of their logits."""
        return best_labels(self._logits(text, votes), k)

    def voted_score(self, text: Tensor, label: int, votes: Votes | None) -> Tensor:
        """Return the logits of one label: (B,)."""
        logits = self.score(text, label)
        if votes is None:
            return logits
        documents, labels, values = votes
        return logits.index_add(0, documents[labels == label], values[labels == label])

    def _logits(self, text: Tensor, votes: Votes | None) -> Tensor:
        """Return the logits: (B, L)."""
        logits: Tensor = self.output(text)
        return logits if votes is None else logits.index_put(votes[:2], votes[2].to(logits.dtype), accumulate=True)


class VoteHead(nn.Module):
    """The vote of a text's scope: adds 10 (a x + b) to the logit of each of its labels.

    x is the label's weight in the scope or, with `log`, the logarithm of its vote: the odds of a label are a power of
    the neighbours' share, and near neighbours count many times more than far ones. a and b are learned, from 0, with
    their own rate; the factor 10 lets them move as far as logits do.
    """

    def __init__(self, n_labels: int, log: bool) -> None:
        super().__init__()
        self.n_labels, self.log = n_labels, log
        self.line = nn.Parameter(torch.zeros(2))  # a, b

    def forward(self, batch: TaughtBatch) -> Votes:
        """Return the votes of all scopes of the batch, except for concepts without a logit."""
        ranked = batch.scope < self.n_labels
        rows = torch.arange(len(batch), device=batch.scope.device)
        documents = torch.repeat_interleave(rows, batch.scope_starts.diff())[ranked]
        x = batch.scope_votes[ranked].clamp(min=_LEAST).log() if self.log else batch.scope_weights[ranked]
        return documents, batch.scope[ranked], 10 * (self.line[0] * x + self.line[1])
