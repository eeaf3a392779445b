"""Metrics: how good is a ranking? One implementation for trainer, command line, rivals and benchmarks.

In come a ranking, the truth as a sparse (documents × label entries) matrix, and the label set with its training counts;
out comes a `Report`, in percent. `collect` gathers once what each document and label contributes (`Statistics`); every
score is then a function of the documents' weights: ones give the value, a resample's counts give a bootstrap value. No
(documents × labels) array is ever dense. Knows no models and no files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError, DataError, nearest
from xmtc.core.labels import LabelSet
from xmtc.core.metrics import bootstrap
from xmtc.core.metrics.registry import (
    BINS,
    KS,
    LABEL_DEPTH,
    UNSEEN,
    Counts,
    LabelMetric,
    Top,
    divide,
    document_metrics,
    find_bins,
    label_metrics,
    metric_keys,
)
from xmtc.core.parallel import blocks
from xmtc.core.propensity import DEFAULT_PROPENSITY, Propensity, inverse_propensity
from xmtc.core.ranking import Ranking

TruthMode = Literal["all", "known"]


@dataclass(frozen=True)
class Report(Mapping[str, float]):
    """The scores of one ranking; `report["P@1"]` is a percentage."""

    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]]  # 95 %; empty if none were asked for
    n: int  # documents evaluated
    n_labels: int  # labels that could be ranked
    labels_in_bin: dict[str, int]  # few, medium, many, unseen: labels that occur in the truth
    propensity: dict[str, float]  # A, B, N
    truth: TruthMode
    model: str = ""
    data: str = ""

    def __getitem__(self, key: str) -> float:
        if key not in self.metrics:
            raise KeyError(f"no metric {key!r}.{nearest(str(key), self.metrics)}")
        return self.metrics[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def to_json(self) -> dict[str, Any]:
        """Return the report as one object of plain numbers, lists and mappings."""
        return {**asdict(self), "intervals": {key: list(interval) for key, interval in self.intervals.items()}}


def evaluate(
    ranking: Ranking,
    truth: sp.csr_matrix,
    labels: LabelSet,
    n_documents: int,
    *,
    mode: TruthMode = "all",
    propensity: Propensity = DEFAULT_PROPENSITY,
    ks: Sequence[int] = KS,
    intervals: bool = False,
    model: str = "",
    data: str = "",
) -> Report:
    """Score a ranking against the truth.

    After `test = corpus.align(model.labels)`, pass `test.Y`, `test.labels` and `model.manifest.n_documents`: the counts
    and the number of documents are those of training. Mode "all" keeps labels unseen in training in the truth, and
    documents without labels, which score 0; "known" drops both. A bin without a label in the truth, or in a resample of
    it, scores 0; `labels_in_bin` tells it from a bin that failed.
    """
    statistics = collect(ranking, truth, labels, n_documents, mode=mode, propensity=propensity, ks=ks)
    return Report(
        metrics=bootstrap.point(statistics),
        intervals=bootstrap.intervals(statistics) if intervals else {},
        n=len(statistics.documents),
        n_labels=labels.n_labels,
        labels_in_bin=statistics.labels_in_bin,
        propensity={"A": propensity.A, "B": propensity.B, "N": n_documents},
        truth=mode,
        model=model,
        data=data,
    )


def dev_scorer(
    truth: sp.csr_matrix,
    counts: NDArray[np.integer],
    n_documents: int,
    metric: str,
    propensity: Propensity = DEFAULT_PROPENSITY,
) -> Callable[[Ranking], float]:
    """Return a function from a ranking of dev to one metric, in percent; refuse an unknown metric at once.

    truth: (documents × columns). counts: the training documents of each column, which may be a label or a cluster;
    pass ones where no such count exists.
    """
    if metric not in metric_keys():
        raise ConfigError(f"train.metric: no metric {metric!r}.{nearest(metric, metric_keys())}")
    truth, _ = _kept(truth, counts, "all")  # once; refuses a truth without documents

    def score(ranking: Ranking) -> float:
        return bootstrap.point(_collect(ranking, truth, counts, n_documents, "all", propensity, KS))[metric]

    return score


@dataclass(frozen=True, eq=False)
class Statistics:
    """What each document and each label contributes to the scores of one ranking."""

    documents: NDArray[np.int64]  # (n,) rows of the truth that are evaluated
    names: tuple[str, ...]  # keys of the scores: those of documents, then those of labels, bin by bin
    gains: sp.csr_matrix  # (document scores × n): a score is the total of its gains …
    bases: sp.csr_matrix  # (document scores × n): … over the total of its bases
    by_label: tuple[LabelMetric, ...]  # what is computed from …
    # … (labels of the bins that occur in the truth, bin by bin × n): documents where the label is …
    right: sp.csr_matrix  # … ranked in the top 5 and true
    shown: sp.csr_matrix  # … ranked in the top 5
    true: sp.csr_matrix  # … true
    bounds: NDArray[np.int64]  # (bins + 1,): the labels of bin b are the rows bounds[b] to bounds[b + 1]
    labels_in_bin: dict[str, int]  # few, medium, many, unseen

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (names × resamples) percentages for (documents × resamples) weights."""
        of_documents = divide(self.gains @ weights, self.bases @ weights)
        return 100 * np.concatenate([of_documents, self._bin_scores(weights)])

    def _bin_scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (bins · label metrics × resamples) averages over the labels that the weighted truth still holds."""
        width = weights.shape[1]
        totals = np.zeros((len(BINS), len(self.by_label), width))
        n_present = np.zeros((len(BINS), 1, width))
        for bin_, first in enumerate(self.bounds[:-1]):
            for start, stop in blocks(self.bounds[bin_ + 1] - first, max(1, bootstrap.BUDGET // width)):
                rows = slice(first + start, first + stop)
                counts = Counts(*(part[rows] @ weights for part in (self.right, self.shown, self.true)))
                present = counts.true > 0
                n_present[bin_] += present.sum(axis=0)
                for i, metric in enumerate(self.by_label):
                    totals[bin_, i] += (metric.contribution(counts) * present).sum(axis=0)
        return divide(totals, n_present).reshape(-1, width)


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
    """Gather what `evaluate` scores, for `xmtc.core.metrics.compare`; the parameters are those of `evaluate`."""
    return _collect(ranking, truth, labels.counts, n_documents, mode, propensity, ks)


def find_right(ranking: Ranking, truth: sp.csr_matrix) -> NDArray[np.bool_]:
    """Return which places of a ranking hold a true label; padding does not.

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


def _collect(
    ranking: Ranking,
    truth: sp.csr_matrix,
    counts: NDArray[np.integer],
    n_documents: int,
    mode: TruthMode,
    propensity: Propensity,
    ks: Sequence[int],
) -> Statistics:
    _check_choices(mode, ks)
    width = max(*ks, LABEL_DEPTH)
    ranking = ranking.top(width).padded(width)
    _check_match(ranking, truth, len(counts))
    weights = inverse_propensity(counts, n_documents, propensity)
    truth, documents = _kept(truth, counts, mode)
    ranking = Ranking(ranking.labels[documents], ranking.scores[documents])
    hits = find_right(ranking, truth)
    gains, bases = _document_parts(ranking, hits, truth, weights, ks)
    bin_parts = _bin_parts(ranking.labels[:, :LABEL_DEPTH], hits[:, :LABEL_DEPTH], truth, counts)
    return Statistics(documents, metric_keys(ks), gains, bases, label_metrics(), *bin_parts)


def _check_choices(mode: str, ks: Sequence[int]) -> None:
    if mode not in ("all", "known"):
        raise ConfigError(f"truth must be 'all' or 'known'; got {mode!r}")
    if not ks or min(ks) < 1:
        raise ConfigError(f"ks must be numbers above 0; got {tuple(ks)}")


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
    """Return the truth to score against, sorted and without zeros, and the documents that its rows are."""
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
    """Return gains and bases of the metrics of documents at each k."""
    n, width = hits.shape
    sizes = np.diff(truth.indptr)
    discount = 1 / np.log2(np.arange(width) + 2)
    weight = np.where(hits, weights[ranking.labels], 0.0)
    ideal_weight = _best_weights(truth, weights, width)
    ideal_hits = np.arange(width) < sizes[:, None]
    places = {
        "right": hits,
        "weight": weight,
        "ideal_weight": ideal_weight,
        "dcg": hits * discount,
        "ideal_dcg": ideal_hits * discount,
        "weighted_dcg": weight * discount,
        "ideal_weighted_dcg": ideal_weight * discount,
    }
    totals = {name: np.cumsum(part, axis=1) for name, part in places.items()}
    gains, bases = list[NDArray](), list[NDArray]()
    for k in ks:
        top = Top(k, hits[:, :k], sizes, **{name: total[:, k - 1] for name, total in totals.items()})
        for metric in document_metrics():
            gain, base = metric.contribution(top)
            gains.append(gain)
            bases.append(np.broadcast_to(np.asarray(base, dtype=np.float64), n))
    return sp.csr_matrix(np.stack(gains), dtype=np.float64), sp.csr_matrix(np.stack(bases))


def _best_weights(truth: sp.csr_matrix, weights: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the largest weights among each document's labels, descending; 0 where it has fewer than `width`."""
    sizes = np.diff(truth.indptr)
    rows = np.repeat(np.arange(truth.shape[0]), sizes)
    order = np.lexsort((-weights[truth.indices], rows))
    place = np.arange(len(rows)) - np.repeat(truth.indptr[:-1], sizes)
    kept = place < width
    best = np.zeros((truth.shape[0], width))
    best[rows[kept], place[kept]] = weights[truth.indices[order]][kept]
    return best


def _bin_parts(
    top: NDArray[np.int32], hits: NDArray[np.bool_], truth: sp.csr_matrix, counts: NDArray[np.integer]
) -> tuple[sp.csr_matrix, sp.csr_matrix, sp.csr_matrix, NDArray[np.int64], dict[str, int]]:
    """Return `Statistics`' right, shown, true, bounds and labels_in_bin."""
    bin_of = find_bins(counts)
    occurring = np.bincount(truth.indices, minlength=len(counts)) > 0
    unseen, *found = np.bincount(bin_of[occurring] + 1, minlength=len(BINS) + 1).tolist()
    used = np.flatnonzero(occurring & (bin_of >= 0))
    used = used[np.argsort(bin_of[used], kind="stable")]
    row_of = np.full(len(counts), -1)
    row_of[used] = np.arange(len(used))
    n = truth.shape[0]

    def count(documents: NDArray[np.integer], entries: NDArray[np.integer]) -> sp.csr_matrix:
        rows = row_of[entries]
        kept = rows >= 0
        ones = np.ones(np.count_nonzero(kept))
        return sp.csr_matrix((ones, (rows[kept], documents[kept])), shape=(len(used), n))

    return (
        count(np.nonzero(hits)[0], top[hits]),
        count(np.nonzero(top >= 0)[0], top[top >= 0]),
        count(np.repeat(np.arange(n), np.diff(truth.indptr)), truth.indices),
        np.concatenate([[0], np.cumsum(found)]),
        {**dict(zip(BINS, found, strict=True)), UNSEEN: unseen},
    )
