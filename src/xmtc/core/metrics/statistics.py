"""Statistics: what each document and label contributes to the scores of a ranking, collected once.

Input: a ranking, the truth as a sparse (documents × label entries) matrix, and training counts. Every score is then a
function of the documents' weights: ones give the value, a resample's counts give a bootstrap value. The trainer, the
command line, baselines and benchmarks all use this implementation. No (documents × labels) array is ever dense.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError, DataError, nearest
from xmtc.core.labels import LabelSet
from xmtc.core.metrics.registry import KS, LABEL_DEPTH, DocumentMetric, Top, divide, metric_keys, metrics_of
from xmtc.core.propensity import DEFAULT_PROPENSITY, Propensity, inverse_propensity
from xmtc.core.ranking import Ranking

if TYPE_CHECKING:
    from xmtc.core.metrics.label_statistics import LabelStatistics

TruthMode = Literal["all", "known"]


@dataclass(frozen=True, eq=False)
class Statistics:
    """What each document and each label contributes to the scores of one ranking."""

    documents: NDArray[np.int64]  # (n,) rows of the truth that are evaluated
    names: tuple[
        str, ...
    ]  # keys of the scores: those of documents, then those of labels, bin by bin; unseen labels last
    gains: sp.csr_matrix  # (document scores × n): a score is the sum of its gains …
    bases: sp.csr_matrix  # (document scores × n): … divided by the sum of its bases
    by_label: LabelStatistics | None  # None: only documents are scored

    @property
    def labels_in_bin(self) -> dict[str, int]:
        """True labels per bin, including the bin unseen in training; empty if only documents are scored."""
        return {} if self.by_label is None else self.by_label.in_bin

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (names × resamples) percentages for (documents × resamples) weights."""
        parts = [divide(self.gains @ weights, self.bases @ weights)]
        if self.by_label is not None:
            parts.append(self.by_label.scores(weights))
        return 100 * np.concatenate(parts)


def collect(
    ranking: Ranking,
    truth: sp.csr_matrix,
    labels: LabelSet,
    n_documents: int,
    *,
    mode: TruthMode = "all",
    propensity: Propensity = DEFAULT_PROPENSITY,
    ks: Sequence[int] = KS,
) -> Statistics:
    """Collect what `evaluate` scores, for `xmtc.core.metrics.compare`; the parameters are those of `evaluate`."""
    if mode not in ("all", "known"):
        raise ConfigError(f"truth must be 'all' or 'known'; got {mode!r}")
    if not ks or min(ks) < 1:
        raise ConfigError(f"ks must be numbers above 0; got {tuple(ks)}")
    _check_match(ranking.top(max(*ks, LABEL_DEPTH)), truth, len(labels.counts))
    if mode == "known":
        ranking = ranking.known(labels.n_labels)  # suggested concepts do not count as answers here
    weights = inverse_propensity(labels.counts, n_documents, propensity)
    kept, documents = _kept(truth, labels.counts, mode)
    return _gather(ranking, kept, documents, labels.counts, weights, ks, unseen=mode == "all")


def dev_scorer(
    truth: sp.csr_matrix,
    counts: NDArray[np.integer],
    n_documents: int,
    metric: str,
    propensity: Propensity = DEFAULT_PROPENSITY,
) -> Callable[[Ranking], float]:
    """Return a function from a ranking of dev to one metric, in percent; raise at once if the metric is unknown.

    truth: (documents × columns). counts: the training documents of each column, which may be a label or a cluster;
    pass ones if there are no such counts.
    """
    if metric not in metric_keys():
        raise ConfigError(f"train.metric: no metric {metric!r}.{nearest(metric, metric_keys())}")
    truth, documents = _kept(truth, counts, "all")  # raises if the truth has no documents
    weights = inverse_propensity(counts, n_documents, propensity)
    of_labels = "/" in metric  # most metrics are not, and need no bins

    def score(ranking: Ranking) -> float:
        gathered = _gather(ranking, truth, documents, counts, weights, KS, of_labels)
        return float(gathered.scores(np.ones((len(documents), 1)))[gathered.names.index(metric), 0])

    return score


def find_right(ranking: Ranking, truth: sp.csr_matrix) -> NDArray[np.bool_]:
    """Return which places of a ranking hold a true label; False for padding.

    truth: (documents × label entries); every stored entry is a true label.
    """
    n, n_entries = truth.shape
    true = np.repeat(np.arange(n), np.diff(truth.indptr)) * n_entries + truth.indices  # a number for each true pair
    if not len(true):
        return np.zeros(ranking.labels.shape, dtype=bool)
    if not truth.has_sorted_indices:
        true.sort()
    ranked = np.arange(n)[:, None] * n_entries + ranking.labels
    place = np.searchsorted(true, ranked)
    place[place == len(true)] = 0
    right: NDArray[np.bool_] = (true[place] == ranked) & (ranking.labels >= 0)
    return right


def _gather(
    ranking: Ranking,
    truth: sp.csr_matrix,
    documents: NDArray[np.int64],
    counts: NDArray[np.integer],
    weights: NDArray[np.float64],
    ks: Sequence[int],
    of_labels: bool = True,
    unseen: bool = True,
) -> Statistics:
    """Collect the statistics of `documents` of a ranking, whose truth is `truth`; without bins if not `of_labels`.

    unseen: whether labels without training documents get their own bin.
    """
    width = max(*ks, LABEL_DEPTH)
    ranking = ranking.padded(width)
    ranking = Ranking(ranking.labels[documents, :width], ranking.scores[documents, :width])
    hits = find_right(ranking, truth)
    gains, bases = _document_parts(ranking, hits, truth, weights, ks)
    if not of_labels:
        return Statistics(documents, metric_keys(ks)[: gains.shape[0]], gains, bases, None)
    from xmtc.core.metrics.label_statistics import gather_labels

    by_label = gather_labels(ranking.labels[:, :LABEL_DEPTH], hits[:, :LABEL_DEPTH], truth, counts, unseen=unseen)
    return Statistics(documents, metric_keys(ks, unseen=unseen), gains, bases, by_label)


def _check_match(ranking: Ranking, truth: sp.csr_matrix, n_entries: int) -> None:
    if len(ranking) != truth.shape[0]:
        raise DataError(f"the ranking has {len(ranking)} documents, the truth {truth.shape[0]}; they must be the same")
    if truth.shape[1] != n_entries:
        raise DataError(f"the truth has {truth.shape[1]} columns for {n_entries} labels; use Corpus.align")
    if ranking.labels.size and int(ranking.labels.max()) >= n_entries:
        raise DataError(f"the ranking names label {ranking.labels.max()}, but there are only {n_entries}")
    ordered = np.sort(ranking.labels, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if twice.any():
        raise DataError(f"the ranking of document {np.argmax(twice)} names a label twice; keep its best place only")


def _kept(
    truth: sp.csr_matrix, counts: NDArray[np.integer], mode: TruthMode
) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    """Return the truth to score against, sorted and without zeros, and the documents of its rows."""
    kept = sp.csr_matrix(truth, dtype=np.float64, copy=True)
    if mode == "known":
        kept.data[counts[kept.indices] == 0] = 0
    kept.eliminate_zeros()
    kept.sum_duplicates()
    documents = np.arange(kept.shape[0])
    if mode == "known":
        documents = np.flatnonzero(np.diff(kept.indptr))
        kept = kept[documents]
    if not len(documents):
        why = "none has a label with training documents; use truth 'all'" if mode == "known" else "the corpus is empty"
        raise DataError(f"no document to evaluate: {why}")
    return kept, documents


def _document_parts(
    ranking: Ranking,
    hits: NDArray[np.bool_],
    truth: sp.csr_matrix,
    weights: NDArray[np.float64],
    ks: Sequence[int],
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return gains and bases of the document metrics at each k."""
    n, width = hits.shape
    sizes = np.diff(truth.indptr)
    discount = 1 / np.log2(np.arange(width) + 2)
    weight = np.where(hits, weights[ranking.labels], 0.0)
    ideal_weight = _best_weights(truth, weights, width)
    ideal_hits = np.arange(width) < sizes[:, None]
    discounted = (hits * discount, ideal_hits * discount, weight * discount, ideal_weight * discount)
    totals = [np.cumsum(part, axis=1) for part in (hits, weight, ideal_weight, *discounted)]  # in the order of Top
    gains, bases = list[NDArray](), list[NDArray]()
    for k in ks:
        top = Top(k, hits[:, :k], sizes, *(total[:, k - 1] for total in totals))
        for metric in metrics_of(DocumentMetric):
            gain, base = metric.contribution(top)
            gains.append(gain)
            bases.append(np.broadcast_to(np.asarray(base, dtype=np.float64), n))
    return sp.csr_matrix(np.stack(gains), dtype=np.float64), sp.csr_matrix(np.stack(bases))


def _best_weights(truth: sp.csr_matrix, weights: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the largest weights among each document's labels, descending; 0 if it has fewer than `width`."""
    sizes = np.diff(truth.indptr)
    rows = np.repeat(np.arange(truth.shape[0]), sizes)
    order = np.lexsort((-weights[truth.indices], rows))
    place = np.arange(len(rows)) - np.repeat(truth.indptr[:-1], sizes)
    kept = place < width
    best = np.zeros((truth.shape[0], width))
    best[rows[kept], place[kept]] = weights[truth.indices[order]][kept]
    return best
