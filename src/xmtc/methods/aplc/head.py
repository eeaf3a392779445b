"""Adaptive Probabilistic Label Clusters (Ye et al., ICML 2020): a wide head for frequent labels, narrow tails for rare.

Input: hidden vectors and a partition of the labels whose cluster 0 is the head; this module does not know that the
partition is based on label frequency. Output: losses and rankings. Everything is computed from logits. With the logit
a of a tail's cluster and the logit z of one of its labels:

    log p = −softplus(−a) − softplus(−z)                       p = σ(a) σ(z)
    log(1 − p) = softplus(z − softplus(a)) − softplus(z)       no exponential overflows, no probability becomes 0 or 1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xmtc.core.partition import Partition, cluster_targets
from xmtc.neural.batches import Batch
from xmtc.neural.heads import at_least_single
from xmtc.neural.label_start import log_odds

_CHUNK = 65_536  # labels whose logits are in memory at once during ranking


def tail_widths(width: int, q: float, n_tails: int) -> list[int]:
    """Return ⌊d / qⁱ⌋ for the tails i = 1, 2, …."""
    return [int(width // q**i) for i in range(1, n_tails + 1)]


def count_parameters(width: int, sizes: Sequence[int], q: float, bare: bool) -> int:
    """Return the parameter count of Eq. 6, widths rounded down; two more per tail width, for its norm, unless bare."""
    n_head, *tails = sizes
    widths = tail_widths(width, q, len(tails))
    inside = sum(narrow * (width + size) for narrow, size in zip(widths, tails, strict=True))
    return width * (n_head + len(tails)) + inside + (0 if bare else 2 * sum(widths))


class Tail(nn.Module):
    """A cluster of rare labels: projects hidden vectors to a smaller width, then scores the labels."""

    def __init__(self, width: int, narrow: int, n_labels: int, bare: bool) -> None:
        super().__init__()
        self.squeeze = nn.Linear(width, narrow, bias=False)
        self.shape = nn.Identity() if bare else nn.Sequential(nn.LayerNorm(narrow), nn.ReLU())
        self.labels = nn.Linear(narrow, n_labels, bias=False)

    def narrow(self, hidden: Tensor) -> Tensor:
        """Project (B, d) to (B, ⌊d / qⁱ⌋)."""
        narrow: Tensor = self.shape(self.squeeze(hidden))
        return narrow


class AplcHead(nn.Module):
    """The head's labels and the tails' clusters share one layer; each tail has two layers of its own.

    The probability of a head label is σ(z); of a tail label, σ(a of its cluster) · σ(z) (Eq. 2). `pooled` selects the
    loss of Eq. 5 instead of the loss in the authors' code. `initial_bias` is a constant added to the logits of all
    labels. With `prior`, each label and each cluster has its own constant, which `set_prior` computes from counts.
    These constants are not weights: training does not change them.
    """

    band_of: Tensor  # (L,) cluster of each label, 0 for the head
    place: Tensor  # (L,) its position there
    order: Tensor  # (L,) labels by cluster, then position
    prior: Tensor | None  # (L + K,) added to the logits of the labels, in that order, and of the tails' clusters

    def __init__(
        self,
        width: int,
        bands: Partition,
        q: float = 2.0,
        bare: bool = False,
        pooled: bool = False,
        initial_bias: float = 0.0,
        prior: bool = False,
    ) -> None:
        super().__init__()
        self.sizes: list[int] = np.diff(bands.starts).tolist()
        self.pooled = pooled
        self.initial_bias = initial_bias
        n_tails = len(self.sizes) - 1
        self.head = nn.Linear(width, self.sizes[0] + n_tails, bias=False)  # the last n_tails outputs are the clusters
        self.tails: Sequence[Tail] = nn.ModuleList(  # type: ignore[assignment]
            Tail(width, narrow, size, bare)
            for narrow, size in zip(tail_widths(width, q, n_tails), self.sizes[1:], strict=True)
        )
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02)
        place = np.empty(len(bands), dtype=np.int64)
        place[bands.order] = np.arange(len(bands)) - np.repeat(bands.starts[:-1], self.sizes)
        self.register_buffer("band_of", torch.from_numpy(bands.parents.astype(np.int64)))
        self.register_buffer("place", torch.from_numpy(place), persistent=False)
        self.register_buffer("order", torch.from_numpy(bands.order.astype(np.int64)), persistent=False)
        self.register_buffer("prior", torch.zeros(len(bands) + n_tails) if prior else None)

    def set_prior(self, Y: sp.csr_matrix) -> None:
        """Set the constants so that every probability starts at its label's share of the training documents.

        A tail's cluster starts at the share of documents with a label in it. Its labels start at their share of these
        documents.
        """
        assert self.prior is not None
        bands = Partition(self.band_of.cpu().numpy().astype(np.int32), len(self.sizes))
        active = np.bincount(cluster_targets(Y, bands).indices, minlength=len(self.sizes))  # (1 + K,) documents
        active[0] = Y.shape[0]  # the head has no cluster: its labels are counted over all documents
        counts = np.bincount(Y.indices, minlength=len(bands))
        labels = log_odds(counts, active[bands.parents])[bands.order]
        self.prior.copy_(torch.cat([labels, log_odds(active[1:], Y.shape[0])]))

    def loss(self, hidden: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return (sum, count) of the cross-entropy over the head's labels and the labels of tails that hold positives.

        In the authors' code, a tail without positives of a document adds −log(1 − σ(a)) for its cluster, as one term.
        The sum of each document is divided by the number of its terms, and documents are averaged. Pooled (Eq. 5),
        there is no such term, and the terms of all documents are averaged together.

        A tail is computed only for the documents that have positives in it.
        """
        document, band, place = batch.document_of_positive(), self.band_of[batch.positives], self.place[batch.positives]
        output = self.head(hidden)
        logits, clusters = self._labels(output[:, : self.sizes[0]], 0), self._clusters(output[:, self.sizes[0] :])
        own, start = band == 0, self.sizes[0]
        losses = F.softplus(logits).sum(1)  # (B,)
        losses = losses.index_add(0, document[own], -logits[document[own], place[own]])
        n_terms = torch.full_like(losses, self.sizes[0])
        for i, tail in enumerate(self.tails):
            own = band == i + 1
            active = torch.zeros_like(losses, dtype=torch.bool).index_fill(0, document[own], True)
            n_terms = n_terms + active * self.sizes[i + 1]
            if not self.pooled:
                losses = losses + F.softplus(clusters[:, i]).masked_fill(active, 0)
                n_terms = n_terms + ~active
            rows = active.nonzero().squeeze(1)  # (n,)
            if len(rows):
                row_of = active.cumsum(0)[document[own]] - 1  # row of each positive among the n
                logits = self._labels(tail.labels(tail.narrow(hidden[rows])), start)  # (n, l_i)
                losses = losses.index_add(0, rows, _product_loss(clusters[rows, i], logits, row_of, place[own]))
            start += self.sizes[i + 1]
        if self.pooled:
            return losses.sum(), n_terms.sum().detach()
        return (losses / n_terms).sum(), torch.tensor(float(len(batch)), device=hidden.device)

    def rank(self, hidden: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best of all labels and their probabilities, computed in chunks of labels.

        A tail is skipped for documents whose k-th score so far is above σ(a). No label of the tail can exceed σ(a), so
        the ranking is still that of all labels.
        """
        k = min(k, len(self.order))
        n_head = self.sizes[0]
        best = _Best(hidden, k)
        for logits, labels in self._chunks(hidden, self.head.weight[:n_head], 0, k):
            best.add(torch.arange(len(hidden), device=hidden.device), labels, F.logsigmoid(logits))
        clusters = F.logsigmoid(self._clusters(F.linear(hidden, self.head.weight[n_head:])))  # (B, K)
        start = n_head
        for i, tail in enumerate(self.tails):
            rows = (clusters[:, i] >= best.scores[:, -1]).nonzero().squeeze(1)
            if len(rows):
                for logits, labels in self._chunks(tail.narrow(hidden[rows]), tail.labels.weight, start, k):
                    best.add(rows, labels, F.logsigmoid(logits) + clusters[rows, i].unsqueeze(1))
            start += self.sizes[i + 1]
        return best.labels, best.scores.exp()

    def score(self, hidden: Tensor, label: int) -> Tensor:
        """Return log p of one label: (B,)."""
        band, place = int(self.band_of[label]), int(self.place[label])
        start = sum(self.sizes[:band]) + place
        if band == 0:
            return F.logsigmoid(self._labels(hidden @ self.head.weight[place, None].T, start)).squeeze(1)
        tail = self.tails[band - 1]
        cluster = self._clusters(hidden @ self.head.weight[self.sizes[0] :].T)[:, band - 1]
        logits = self._labels(tail.narrow(hidden) @ tail.labels.weight[place, None].T, start)
        return F.logsigmoid(cluster) + F.logsigmoid(logits).squeeze(1)

    def _labels(self, logits: Tensor, start: int) -> Tensor:
        """Return the logits plus constants of consecutive labels in the order, from `start` on."""
        constants = self.initial_bias if self.prior is None else self.prior[start : start + logits.shape[1]]
        return at_least_single(logits) + constants

    def _clusters(self, logits: Tensor) -> Tensor:
        """Return the logits of all tails' clusters plus their constants."""
        return at_least_single(logits) + (0 if self.prior is None else self.prior[len(self.order) :])

    def _chunks(self, vectors: Tensor, weight: Tensor, start: int, k: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield (logits, labels) of the k best in each chunk of a cluster whose labels begin at `start` of the order.

        Within a cluster, sorting by z is sorting by p.
        """
        for first in range(0, len(weight), _CHUNK):
            part = weight[first : first + _CHUNK]
            logits, places = self._labels(F.linear(vectors, part), start + first).topk(min(k, len(part)), dim=1)
            yield logits, self.order[start + first + places]


class _Best:
    """The k best labels of each document so far; scores are logarithms of probabilities."""

    def __init__(self, hidden: Tensor, k: int) -> None:
        self.scores = hidden.new_full((len(hidden), k), -torch.inf)
        self.labels = torch.full((len(hidden), k), -1, device=hidden.device)

    def add(self, rows: Tensor, labels: Tensor, scores: Tensor) -> None:
        """Merge labels into the best labels of some documents."""
        both = torch.cat([self.scores[rows], scores], dim=1)
        names = torch.cat([self.labels[rows], labels], dim=1)
        self.scores[rows], kept = both.topk(self.scores.shape[1], dim=1)
        self.labels[rows] = names.gather(1, kept)


def _product_loss(cluster: Tensor, logits: Tensor, row: Tensor, place: Tensor) -> Tensor:
    """Return the cross-entropy of σ(cluster) σ(logits), summed over labels: (n,); (row, place) are the positives.

    Every label is first counted as absent, then the positives are corrected, so no (n, l) targets are built.
    """
    reach = F.softplus(cluster)  # (n,)
    absent = (F.softplus(logits) - F.softplus(logits - reach.unsqueeze(1))).sum(1)  # Σ −log(1 − p)
    z = logits[row, place]
    # −log p + log(1 − p), where softplus(−z) − softplus(z) = −z
    return absent.index_add(0, row, F.softplus(-cluster[row]) - z + F.softplus(z - reach[row]))
