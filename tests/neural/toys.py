"""Networks, documents and runs small enough for naive loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from xmtc.core.partition import Partition
from xmtc.core.ranking import Ranking
from xmtc.features.tokens import Tokens
from xmtc.methods.lightxml.head import ClusterHead
from xmtc.neural.batches import Batch, Inputs
from xmtc.neural.candidates import Clusters
from xmtc.neural.encoder import TokenLayout
from xmtc.neural.heads import FlatHead
from xmtc.neural.trainer import Group, TrainConfig, TrainingData, fit

LAYOUT = TokenLayout(pad_id=0, pad_left=False, cls_last=False, segments=False, cls_segment=0, pad_segment=0)
N_LABELS = 12
SEED = 3


class Toy(nn.Module):
    """Mean of word vectors, dropout, head; `kind` is flat, cluster, or skips (parameters that few documents use)."""

    def __init__(self, kind: str = "flat", dropout: float = 0.0, width: int = 16, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.kind = kind
        self.words = nn.Embedding(N_LABELS + 10, width)
        self.dropout = nn.Dropout(dropout)
        self.head: FlatHead | ClusterHead
        if kind == "cluster":
            self.head = ClusterHead(width, Clusters(partition()), 8, 2, 0.0, False)
        else:
            self.head = FlatHead(width, N_LABELS, 0.0)
        if kind == "skips":
            self.rare = nn.Linear(width, width)

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.head.loss(self.dropout(self.text(batch)), batch)

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        return self.head.rank(self.text(batch), k)

    def text(self, batch: Batch) -> Tensor:
        mask = batch.mask.unsqueeze(2)
        text = (self.words(batch.ids) * mask).sum(1) / mask.sum(1)
        if self.kind == "skips":
            chosen = batch.rows % 5 == 0
            if chosen.any():
                text = text + torch.where(chosen.unsqueeze(1), self.rare(text), 0.0)
        return text

    def groups(self, rate: float = 0.02) -> list[Group]:
        table = [self.head.table.weight] if isinstance(self.head, ClusterHead) else []
        others = [p for p in self.parameters() if all(p is not q for q in table)]
        groups = [Group(others, rate, 0.01)]
        return [*groups, Group(table, rate, 0.01, row_sparse=True)] if table else groups


def partition() -> Partition:
    """Clusters of 5, 4 and 3 labels, and an empty one."""
    return Partition(np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 0], dtype=np.int32), 4)


def documents(n: int = 41, seed: int = 0) -> TrainingData:
    """Texts of 1 to 9 words in which word 10 + l stands for label l."""
    random = np.random.default_rng(seed)
    rows, labels = [], []
    for _ in range(n):
        own = np.sort(random.choice(N_LABELS, size=random.integers(1, 4), replace=False))
        labels.append(own)
        rows.append(random.permutation(np.concatenate([own + 10, random.integers(1, 10, random.integers(0, 7))])))
    offsets = np.cumsum([0, *map(len, rows)])
    indptr = np.cumsum([0, *map(len, labels)])
    Y = sp.csr_matrix((np.ones(indptr[-1], np.float32), np.concatenate(labels), indptr), shape=(n, N_LABELS))
    return TrainingData(Inputs(Tokens(np.concatenate(rows).astype(np.int32), offsets), LAYOUT), Y)


def precision(data: TrainingData) -> Any:
    """A score: P@1 in percent."""

    def score(ranking: Ranking) -> float:
        return 100 * float(np.mean([data.Y[i, label] for i, label in enumerate(ranking.labels[:, 0])]))

    return score


def run(network: Toy, partial: Path | None = None, **settings: Any) -> list[dict[str, Any]]:
    """Fit a toy on 41 documents, with dev, in batches of four: the last batch is one document."""
    also = {
        name: settings.pop(name) for name in ("progress", "on_epoch", "identity", "dev", "plateau") if name in settings
    }
    data, dev = documents(), documents(20, seed=1)
    return fit(
        network,
        network.groups(),
        data,
        TrainConfig(**{"epochs": 2, "batch_size": 4, **settings}),
        **{
            "dev": (dev.tokens, precision(dev)),
            "seed": SEED,
            "partial": partial,
            "skips_parameters": network.kind == "skips",
            **also,
        },
    )
