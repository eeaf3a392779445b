"""Experts of ME-XML: which layers they read, the document expert, the shortlist of labels, losses and cost.

Input: names such as A-1, D-12 or D-last with an encoder's depth; output: layers, and the size of their experts. Input:
logits of several experts; output: losses, one per document. The expert that attends to words is in label_attention.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xmtc.core.errors import ConfigError
from xmtc.core.partition import Partition
from xmtc.neural.batches import Batch
from xmtc.neural.candidates import Clusters
from xmtc.neural.dropout import Dropout
from xmtc.neural.encoder import Encoded
from xmtc.neural.heads import at_least_single
from xmtc.neural.plan import HeadSize
from xmtc.neural.pooling import Kind, Pool, pool_text

_NAME = re.compile(r"([AD])-((?:\d+|first|middle|last)(?:\+(?:\d+|first|middle|last))*)")
_LEAST = 1e-6  # minimum distance of probabilities from 0 and 1, because their divergence is unbounded
_MOST = math.log((1 - _LEAST) / _LEAST)  # the same limit for logits


def check_expert(name: str) -> tuple[str, list[str]]:
    """Return an expert's kind, A (attention) or D (document), and its layers as written; raise for other names."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(
            f"experts: {name!r} is not an expert; write A- (attention to words) or D- (document) and a layer: its "
            "number, first, middle or last"
        )
    kind, layers = match[1], match[2].split("+")
    if kind == "A" and len(layers) > 1:
        each = " and ".join(f"A-{layer}" for layer in layers)
        raise ConfigError(f"experts: {name!r}: attention reads one layer; name an expert for each, {each}")
    return kind, layers


def locate_expert(name: str, n_layers: int) -> tuple[str, tuple[int, ...]]:
    """Return an expert's kind and its layers in an encoder with `n_layers` layers; 0 is the embeddings."""
    kind, written = check_expert(name)
    named = {"first": 1, "middle": (n_layers + 1) // 2, "last": n_layers}
    layers = tuple(named[layer] if layer in named else int(layer) for layer in written)
    for layer in layers:
        if layer > n_layers:
            raise ConfigError(
                f"experts: {name!r} reads layer {layer}, but the encoder has {n_layers}; its last is {kind}-last"
            )
    return kind, layers


def size_experts(
    experts: Sequence[tuple[str, tuple[int, ...]]],
    width: int,
    n_labels: int,
    n_words: int,
    hidden: int,
    pool: Pool,
    shortlist: tuple[Partition, int] | None,
) -> HeadSize:
    """Return the size of located experts before they are built; shortlist: clusters, and how many are chosen."""
    read = [len(pool.at(layers)) for kind, layers in experts if kind == "D"]
    n_attention = len(experts) - len(read)
    dense = sum((width * n + 1) * width + (width + 1) * n_labels for n in read)
    dense += n_attention * ((width + 2) * hidden + n_labels)
    held = 3 * n_labels * len(experts) + 3 * n_attention * n_words * hidden
    table = n_attention * n_labels * width  # all queries
    if shortlist is None:
        return HeadSize(dense + table, 0, held, "use fewer experts, or score a shortlist (head.shortlist)")
    partition, n_chosen = shortlist
    candidates = min(n_chosen, partition.n_clusters) * int(np.diff(partition.starts).max())
    dense += (pool.width + 1) * partition.n_clusters
    held += 3 * partition.n_clusters + n_attention * 2 * candidates * width  # their queries and the gradients of these
    return HeadSize(dense, table, held, "use fewer experts, or a smaller shortlist (head.shortlist, cluster.size)")


class DocumentExpert(nn.Module):
    """[CLS] of a layer, or of several layers concatenated, through a perceptron to all labels (ME-XML, Eq. 1).

    parts: (kind, layer) of the states that it reads. Means over the words work better if the encoder was trained for
    them (MiniLM).
    """

    def __init__(
        self, width: int, n_labels: int, parts: Sequence[tuple[Kind, int]], dropout: float, initial_bias: float
    ) -> None:
        super().__init__()
        self.parts = tuple(parts)
        self.hidden = nn.Linear(width * len(self.parts), width)
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(width, n_labels)
        nn.init.constant_(self.output.bias, initial_bias)

    def forward(self, encoded: Encoded, labels: Tensor | None = None) -> Tensor:
        """Return (B, L) logits; with candidates `labels` (B, C), return theirs: (B, C)."""
        text = pool_text(encoded, self.parts)
        logits: Tensor = self.output(self.dropout(self.hidden(text).tanh()))
        return logits if labels is None else logits.gather(1, labels)


class Shortlist(nn.Module):
    """Clusters of labels and their scorer on the last layer: experts score only the labels of the best clusters."""

    def __init__(self, pool: Pool, partition: Partition, n_chosen: int, dropout: float, initial_bias: float) -> None:
        super().__init__()
        self.clusters = Clusters(partition)
        self.n_chosen = min(n_chosen, partition.n_clusters)
        self.pool = pool
        self.dropout = Dropout(dropout)
        self.generator = nn.Linear(pool.width, partition.n_clusters)
        nn.init.constant_(self.generator.bias, initial_bias)

    def forward(self, encoded: Encoded) -> Tensor:
        """Return the labels of the best clusters, padded with −1: (B, C)."""
        return self.clusters.labels_of(self.clusters.choose(self._score(encoded), self.n_chosen))[0]

    def loss(self, encoded: Encoded, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the scorer's cross-entropy (B, K), and candidates (B, C) that include all positives."""
        logits, truth = self._score(encoded), self.clusters.truth(batch)
        labels, _ = self.clusters.labels_of(self.clusters.choose(logits.detach(), self.n_chosen, truth))
        return F.binary_cross_entropy_with_logits(logits, truth.to(logits.dtype), reduction="none"), labels

    def positives(self, labels: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the rows and columns at which candidates are labels of their documents."""
        rows, columns = self.clusters.targets(labels, batch).nonzero(as_tuple=True)
        return rows, columns

    def _score(self, encoded: Encoded) -> Tensor:
        logits: Tensor = self.generator(self.dropout(pool_text(encoded, self.pool.parts)))  # (B, K)
        return logits


def cross_entropy(logits: Sequence[Tensor], rows: Tensor, columns: Tensor, labels: Tensor | None = None) -> Tensor:
    """Return Σ over labels of binary cross-entropy, averaged over experts (ME-XML, the individual loss): (B,).

    logits: of each expert, (B, L), or (B, C) of the candidates `labels`, where −1 costs nothing. The positives are at
    rows, columns. BCE(z, y) = softplus(z) − y z, so targets as large as the logits are never built.
    """
    losses = []
    for z in map(at_least_single, logits):
        costs = F.softplus(z) if labels is None else F.softplus(z).masked_fill(labels < 0, 0)
        losses.append(costs.sum(1).index_add(0, rows, -z[rows, columns]))
    return torch.stack(losses).mean(0)


def divergence(one: Tensor, two: Tensor) -> Tensor:
    """Return the mean of KL(p‖q) and KL(q‖p), Bernoulli p = σ(one), q = σ(two), elementwise (ME-XML, Eq. 7–8).

    In logits, p log(p/q) + (1−p) log((1−p)/(1−q)) is p (z_p − z_q) + log(1−p) − log(1−q). In the sum of both orders the
    logarithms cancel and leave (p − q)(z_p − z_q).
    """
    one, two = one.clamp(-_MOST, _MOST), two.clamp(-_MOST, _MOST)
    return (one.sigmoid() - two.sigmoid()) * (one - two) / 2


def diversity_loss(logits: Sequence[Tensor], counts: Tensor) -> Tensor:
    """Return −λ KL of each positive, averaged over all ordered pairs of experts (ME-XML, Eq. 6 and 9): (P,).

    logits: of each expert (P,), for the positives only, because λ is 0 elsewhere. counts: (P,) n_i, the training
    documents of their labels. λ = (1 − max(p, q)) / n_i, without a gradient: experts should differ on rare labels that
    neither of them finds.
    """
    total = torch.zeros_like(counts)
    pairs = list(combinations([z.to(counts.dtype) for z in logits], 2))
    for one, two in pairs:
        surest = torch.maximum(one, two).detach().clamp(-_MOST, _MOST).sigmoid()
        total = total - (1 - surest) / counts * divergence(one, two)
    return total / len(pairs)
