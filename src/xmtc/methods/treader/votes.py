"""Votes: what a text's scope says of its labels outright, and the output layer that counts them."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor, nn

from xmtc.methods.treader.inputs import TaughtBatch
from xmtc.neural.batches import Batch
from xmtc.neural.heads import FlatHead, bce_of_positives, best_labels

# documents and labels, and what is added to their logits
Votes: TypeAlias = tuple[Tensor, Tensor, Tensor]


class VotingHead(FlatHead):
    """One linear layer over all labels, to whose logits votes are added where there are any."""

    def voted_loss(self, text: Tensor, batch: Batch, votes: Votes | None) -> Tensor:
        """Σ over all (document, label) of BCE."""
        return bce_of_positives(self._logits(text, votes), batch)

    def voted_rank(self, text: Tensor, k: int, votes: Votes | None) -> tuple[Tensor, Tensor]:
        """The k best labels and σ of their logits."""
        return best_labels(self._logits(text, votes), k)

    def voted_score(self, text: Tensor, label: int, votes: Votes | None) -> Tensor:
        """(B,) one label's logits."""
        logits = self.score(text, label)
        if votes is None:
            return logits
        documents, labels, values = votes
        return logits.index_add(0, documents[labels == label], values[labels == label])

    def _logits(self, text: Tensor, votes: Votes | None) -> Tensor:
        """(B, L)."""
        logits: Tensor = self.output(text)
        return logits if votes is None else logits.index_put(votes[:2], votes[2].to(logits.dtype), accumulate=True)


class VoteHead(nn.Module):
    """What a text's scope says of its labels outright: each gets 10 (a w + b) on its logit, w being its weight there.

    a and b are learnt, from 0; the factor lets them move as far as logits do at the rate of a network's weights.
    """

    def __init__(self, n_labels: int) -> None:
        super().__init__()
        self.n_labels = n_labels
        self.line = nn.Parameter(torch.zeros(2))  # a, b

    def forward(self, batch: TaughtBatch) -> Votes:
        """Return the votes of all scopes of the batch, whose concepts without a logit have none."""
        ranked = batch.scope < self.n_labels
        rows = torch.arange(len(batch), device=batch.scope.device)
        documents = torch.repeat_interleave(rows, batch.scope_starts.diff())[ranked]
        return documents, batch.scope[ranked], 10 * (self.line[0] * batch.scope_weights[ranked] + self.line[1])
