"""LightXML's head over clusters: a generator recalls candidates, a discriminator ranks them.

Every loss is a (sum, count); the trainer divides them, over all processes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xmtc.neural.batches import Batch
from xmtc.neural.candidates import Clusters


class ClusterHead(nn.Module):
    """LightXML's two parts: a generator scores clusters to recall candidates, a discriminator ranks their labels.

    The discriminator is a bottleneck and a table of label vectors (Eq. 4 without its sigmoid, as in the authors' code;
    `sigmoid` adds it).
    """

    def __init__(
        self,
        width: int,
        clusters: Clusters,
        bottleneck: int,
        shortlist: int,
        initial_bias: float,
        sigmoid: bool,
        edge: bool = False,
    ) -> None:
        super().__init__()
        self.clusters = clusters
        self.shortlist = min(shortlist, clusters.n_clusters)  # clusters whose labels are candidates
        self.sigmoid = sigmoid
        self.edge = edge  # fill short rows of candidates with their last label, as the authors' code does
        self.generator = nn.Linear(width, clusters.n_clusters)
        nn.init.constant_(self.generator.bias, initial_bias)
        self.bottleneck = nn.Linear(width, bottleneck)
        self.table = nn.Embedding(clusters.n_labels, bottleneck, sparse=True)
        nn.init.xavier_uniform_(self.table.weight)

    def loss(self, text: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return Σ over documents of (mean BCE over candidates + mean BCE over clusters), and the number of documents.

        Candidates are the labels of the generator's best clusters, by its scores in this step, and of the clusters that
        hold positives. No gradient passes through this choice.
        """
        cluster_logits = self.generator(text)  # (B, K)
        truth = self.clusters.truth(batch)  # (B, K) zeros and ones
        recall = F.binary_cross_entropy_with_logits(cluster_logits, truth, reduction="none").mean(1)
        chosen = self.clusters.choose(cluster_logits.detach(), self.shortlist, truth)
        return self._ranking_loss(text, batch, chosen) + recall.sum(), _count(batch)

    def recall_loss(self, text: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the generator's part of the loss."""
        logits = self.generator(text)
        losses = F.binary_cross_entropy_with_logits(logits, self.clusters.truth(batch), reduction="none")
        return losses.mean(1).sum(), _count(batch)

    def ranking_loss(self, text: Tensor, batch: Batch, cluster_logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the discriminator's part of the loss, on candidates chosen by the given scores."""
        chosen = self.clusters.choose(cluster_logits, self.shortlist, self.clusters.truth(batch))
        return self._ranking_loss(text, batch, chosen), _count(batch)

    def rank(self, text: Tensor, k: int, cluster_logits: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the k best labels of the shortlisted clusters by σ(label) · σ(cluster)."""
        if cluster_logits is None:
            cluster_logits = self.generator(text)
        chosen = self.clusters.choose(cluster_logits, self.shortlist)
        labels, cluster_of = self.clusters.labels_of(chosen)  # (B, C), padded with −1
        scores = self._logits(text, labels).sigmoid() * cluster_logits.gather(1, cluster_of).sigmoid()
        scores = scores.masked_fill(labels < 0, -torch.inf)
        best, places = scores.topk(min(k, scores.shape[1]), dim=1)
        return labels.gather(1, places), best

    def label_logit(self, text: Tensor, label: int) -> Tensor:
        """Return the logit of one label, ignoring its cluster: (B,)."""
        return self._logits(text, torch.full((len(text), 1), label, device=text.device)).squeeze(1)

    def _ranking_loss(self, text: Tensor, batch: Batch, chosen: Tensor) -> Tensor:
        labels, _ = self.clusters.labels_of(chosen)  # (B, C)
        losses = F.binary_cross_entropy_with_logits(
            self._logits(text, labels), self.clusters.targets(labels, batch), reduction="none"
        )
        weights = (labels >= 0).to(losses.dtype)
        if self.edge:
            weights = _repeat_last(weights)
        return ((losses * weights).sum(1) / weights.sum(1).clamp(min=1)).sum()

    def _logits(self, text: Tensor, labels: Tensor) -> Tensor:
        hidden = self.bottleneck(text)  # (B, b)
        if self.sigmoid:
            hidden = hidden.sigmoid()
        # padding reads a row that is a candidate anyway, so that the row-sparse optimizer updates no other rows
        labels = torch.where(labels < 0, labels.amax(1, keepdim=True).clamp(min=0), labels)
        return torch.bmm(self.table(labels), hidden.unsqueeze(2)).squeeze(2)  # (B, C)


def _repeat_last(real: Tensor) -> Tensor:
    """Return weights of the candidates (B, C); the last one of each row also counts for the row's padding."""
    n = real.sum(1)
    last = real.shape[1] - 1 - real.flip(1).argmax(1)
    return real.scatter_add(1, last.unsqueeze(1), (n.max() - n).unsqueeze(1))


def _count(batch: Batch) -> Tensor:
    return torch.tensor(float(len(batch)), device=batch.ids.device)
