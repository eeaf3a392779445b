"""Choose candidates: the labels that a training step or a prediction scores, from clusters of labels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from xmtc.core.partition import Partition
from xmtc.neural.batches import Batch


class Clusters(nn.Module):
    """A partition of the labels, as tensors; moves with the network and is saved with it."""

    members: Tensor  # (K, size of the largest cluster), padded with −1
    cluster_of: Tensor  # (L,)

    def __init__(self, partition: Partition) -> None:
        super().__init__()
        sizes = np.diff(partition.starts)
        members = np.full((partition.n_clusters, max(1, sizes.max())), -1, dtype=np.int64)
        for cluster in range(partition.n_clusters):
            members[cluster, : sizes[cluster]] = partition.members(cluster)
        self.register_buffer("members", torch.from_numpy(members))
        self.register_buffer("cluster_of", torch.from_numpy(partition.parents.astype(np.int64)))

    @property
    def n_clusters(self) -> int:
        """Return K."""
        return len(self.members)

    @property
    def n_labels(self) -> int:
        """Return L."""
        return len(self.cluster_of)

    def truth(self, batch: Batch) -> Tensor:
        """Return 1 where a cluster holds any of a document's labels: (B, K)."""
        truth = torch.zeros(len(batch), self.n_clusters, device=batch.ids.device)
        truth[batch.document_of_positive(), self.cluster_of[batch.positives]] = 1
        return truth

    def choose(self, logits: Tensor, n: int, truth: Tensor | None = None) -> Tensor:
        """Return n clusters per document, by score; with `truth`, clusters that hold positives come first.

        A document with more than n such clusters gets all of them, so no positive is lost; other rows are padded with
        −1. The choice for a document does not depend on the rest of the batch.
        """
        if truth is None:
            return logits.topk(min(n, self.n_clusters), dim=1).indices
        n_each = truth.sum(1, keepdim=True).clamp(min=n)  # (B, 1)
        width = min(int(n_each.max()), self.n_clusters)
        chosen = logits.masked_fill(truth > 0, torch.inf).topk(width, dim=1).indices
        return chosen.masked_fill(torch.arange(width, device=chosen.device) >= n_each, -1)

    def labels_of(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Return all labels of the chosen clusters (B, C), distinct, padded with −1, and the cluster of each."""
        labels = self.members[chosen].masked_fill((chosen < 0).unsqueeze(2), -1).flatten(1)
        cluster_of = chosen.unsqueeze(2).expand(-1, -1, self.members.shape[1]).flatten(1)
        return labels, cluster_of

    def targets(self, labels: Tensor, batch: Batch) -> Tensor:
        """Return 1 where a candidate is one of its document's labels: (B, C)."""
        targets = torch.zeros(labels.shape, device=labels.device)
        width = int(batch.starts.diff().max()) if len(batch) else 0
        if width == 0:
            return targets
        positives = torch.full((len(batch), width), -2, device=labels.device)  # −2 matches neither label nor padding
        places = torch.arange(len(batch.positives), device=labels.device) - batch.starts[batch.document_of_positive()]
        positives[batch.document_of_positive(), places] = batch.positives
        for column in positives.unbind(1):
            targets += labels == column.unsqueeze(1)
        return targets
