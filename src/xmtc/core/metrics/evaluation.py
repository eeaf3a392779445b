"""Metrics: how good is a ranking? One implementation for trainer, command line, rivals and benchmarks.

In come a ranking, the truth as a sparse (documents × label entries) matrix, and the label set with its training counts;
out comes a `Report`, in percent. `collect` gathers once what each document and label contributes (`Statistics`); every
score is then a function of the documents' weights: ones give the value, a resample's counts give a bootstrap value. No
(documents × labels) array is ever dense. Knows no models and no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.errors import ConfigError, DataError, nearest
from xmtc.core.labels import LabelSet
from xmtc.core.metrics import bootstrap
from xmtc.core.parallel import blocks
from xmtc.core.ranking import Ranking

TruthMode = Literal["all", "known"]
BINS = ("few", "medium", "many")
BIN_STARTS = (1, 21, 101)  # fewest training documents of a label in few, medium, many
_BIN_DEPTH = 5  # labels of a ranking that macro scores and coverage look at


class Propensity(Settings):
    """How likely a true label is to be noted, as a function of its training documents (Jain et al. 2016).

    Published values: 0.5, 0.4 for Wikipedia-500K and WikiLSHTC; 0.6, 2.6 for Amazon-670K and 3M; else the defaults.
    """

    A: float = Field(0.55, ge=0)
    B: float = Field(1.5, gt=0)


DEFAULT_PROPENSITY = Propensity()


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
    ks: Sequence[int] = (1, 3, 5),
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


@dataclass(frozen=True, eq=False)
class Statistics:
    """What each document and each label contributes to the scores of one ranking."""

    documents: NDArray[np.int64]  # (n,) rows of the truth that are evaluated
    names: tuple[str, ...]
    gains: sp.csr_matrix  # (document scores × n): a score is the total of its gains …
    bases: sp.csr_matrix  # (document scores × n): … over the total of its bases
    # (labels of the bins that occur in the truth, bin by bin × n): documents where the label is …
    right: sp.csr_matrix  # … ranked in the top 5 and true
    shown: sp.csr_matrix  # … ranked in the top 5
    true: sp.csr_matrix  # … true
    bounds: NDArray[np.int64]  # (bins + 1,): the labels of bin b are the rows bounds[b] to bounds[b + 1]
    labels_in_bin: dict[str, int]  # few, medium, many, unseen

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (names × resamples) percentages for (documents × resamples) weights."""
        of_documents = _divide(self.gains @ weights, self.bases @ weights)
        return 100 * np.concatenate([of_documents, self._bin_scores(weights)])

    def _bin_scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (4 · bins × resamples) averages over the labels that the weighted truth still holds."""
        width = weights.shape[1]
        totals = np.zeros((4, len(BINS), width))
        present = np.zeros((len(BINS), width))
        for bin_, first in enumerate(self.bounds[:-1]):
            for start, stop in blocks(self.bounds[bin_ + 1] - first, max(1, bootstrap.BUDGET // width)):
                rows = slice(first + start, first + stop)
                right, shown, true = (part[rows] @ weights for part in (self.right, self.shown, self.true))
                present[bin_] += (true > 0).sum(axis=0)
                # a label absent from a resample has right = 0, so it adds 0 to all four
                totals[0, bin_] += _divide(right, shown).sum(axis=0)
                totals[1, bin_] += _divide(right, true).sum(axis=0)
                totals[2, bin_] += _divide(2 * right, shown + true).sum(axis=0)  # harmonic mean of the two above
                totals[3, bin_] += (right > 0).sum(axis=0)
        return _divide(totals, present).swapaxes(0, 1).reshape(-1, width)  # bin by bin, as in names


def collect(
    ranking: Ranking,
    truth: sp.csr_matrix,
    labels: LabelSet,
    n_documents: int,
    *,
    mode: TruthMode = "all",
    propensity: Propensity = DEFAULT_PROPENSITY,
    ks: Sequence[int] = (1, 3, 5),
) -> Statistics:
    """Gather what `evaluate` scores, for `xmtc.core.metrics.bootstrap.compare`; the parameters are those of `evaluate`."""
    _check_choices(mode, ks)
    ranking = ranking.top(max(*ks, _BIN_DEPTH)).padded(max(*ks, _BIN_DEPTH))
    _check_match(ranking, truth, labels)
    weights = inverse_propensity(labels.counts, n_documents, propensity)
    truth, documents = _kept(truth, labels, mode)
    top = ranking.labels[documents]
    hits = _hits(top, truth)
    gains, bases = _document_parts(hits, np.where(hits, weights[top], 0.0), truth, weights, ks)
    names = [f"{name}@{k}" for k in ks for name in ("P", "R", "nDCG", "PSP", "PSnDCG", "PSnDCG-rows")]
    names += [f"{name}@5/{bin_}" for bin_ in BINS for name in ("macro-P", "macro-R", "macro-F", "coverage")]
    bin_parts = _bin_parts(top[:, :_BIN_DEPTH], hits[:, :_BIN_DEPTH], truth, labels.counts)
    return Statistics(documents, tuple(names), gains, bases, *bin_parts)


def inverse_propensity(
    counts: NDArray[np.integer], n_documents: int, propensity: Propensity = DEFAULT_PROPENSITY
) -> NDArray[np.float64]:
    """Return each label's weight 1 + C (n + B)^−A, with C = (ln N − 1)(B + 1)^A; n and N are of the training data.

    C is negative below N = 3, where weights would fall as labels get rarer; it is taken as 0 there.
    """
    if n_documents < 1:
        raise DataError(f"propensities need the number of training documents; got {n_documents}")
    scale = max(0.0, np.log(n_documents) - 1) * (propensity.B + 1) ** propensity.A
    return np.asarray(1 + scale * (np.asarray(counts) + propensity.B) ** -propensity.A)


def _check_choices(mode: str, ks: Sequence[int]) -> None:
    if mode not in ("all", "known"):
        raise ConfigError(f"truth must be 'all' or 'known'; got {mode!r}")
    if not ks or min(ks) < 1:
        raise ConfigError(f"ks must be numbers above 0; got {tuple(ks)}")


def _check_match(ranking: Ranking, truth: sp.csr_matrix, labels: LabelSet) -> None:
    if len(ranking) != truth.shape[0]:
        raise DataError(f"the ranking has {len(ranking)} documents, the truth {truth.shape[0]}; they must be the same")
    if truth.shape[1] != len(labels):
        raise DataError(f"the truth has {truth.shape[1]} columns for {len(labels)} labels; use Corpus.align")
    if ranking.labels.size and int(ranking.labels.max()) >= len(labels):
        raise DataError(f"the ranking names label {ranking.labels.max()}, but there are only {len(labels)}")
    ordered = np.sort(ranking.labels, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if twice.any():
        raise DataError(f"the ranking of document {np.argmax(twice)} names a label twice; keep its best place only")


def _kept(truth: sp.csr_matrix, labels: LabelSet, mode: TruthMode) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    """Return the truth to score against, sorted and without zeros, and the documents that its rows are."""
    kept = sp.csr_matrix(truth, dtype=np.float64, copy=True)
    if mode == "known":
        kept.data[labels.counts[kept.indices] == 0] = 0
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


def _hits(top: NDArray[np.int32], truth: sp.csr_matrix) -> NDArray[np.bool_]:
    """Return which places of `top` hold a true label."""
    n, n_entries = truth.shape
    true = np.repeat(np.arange(n), np.diff(truth.indptr)) * n_entries + truth.indices  # ascending
    ranked = np.arange(n)[:, None] * n_entries + top
    place = np.searchsorted(true, ranked)
    place[place == len(true)] = 0
    return (true[place] == ranked) & (top >= 0) if len(true) else np.zeros(top.shape, dtype=bool)


def _document_parts(
    hits: NDArray[np.bool_],
    earned: NDArray[np.float64],
    truth: sp.csr_matrix,
    weights: NDArray[np.float64],
    ks: Sequence[int],
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return gains and bases of P, R, nDCG, PSP and both PSnDCG at each k; `earned` is the hits' inverse propensity."""
    n, width = hits.shape
    sizes = np.diff(truth.indptr)
    discount = 1 / np.log2(np.arange(width) + 2)
    ideal = _best_weights(truth, weights, width)
    ideal_hits = np.arange(width) < sizes[:, None]
    hit, psp, ideal_psp = (np.cumsum(part, axis=1) for part in (hits, earned, ideal))
    discounted = (part * discount for part in (hits, earned, ideal, ideal_hits))
    dcg, psdcg, ideal_psdcg, ideal_dcg = (np.cumsum(part, axis=1) for part in discounted)
    one = np.ones(n)
    gains, bases = list[NDArray](), list[NDArray]()
    for i in (k - 1 for k in ks):
        by_row = ideal_dcg[:, i]
        gains += [hit[:, i], _divide(hit[:, i], sizes), _divide(dcg[:, i], by_row)]
        bases += [one * (i + 1), one, one]
        gains += [psp[:, i], psdcg[:, i], _divide(psdcg[:, i], by_row)]
        bases += [ideal_psp[:, i], ideal_psdcg[:, i], _divide(ideal_psdcg[:, i], by_row)]
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
    top: NDArray[np.int32], hits: NDArray[np.bool_], truth: sp.csr_matrix, counts: NDArray[np.int64]
) -> tuple[sp.csr_matrix, sp.csr_matrix, sp.csr_matrix, NDArray[np.int64], dict[str, int]]:
    """Return `Statistics`' right, shown, true, bounds and labels_in_bin."""
    bin_of = np.searchsorted(BIN_STARTS, counts, side="right")  # 0: unseen
    occurring = np.bincount(truth.indices, minlength=len(counts)) > 0
    found = np.bincount(bin_of[occurring], minlength=len(BINS) + 1)
    used = np.flatnonzero(occurring & (bin_of > 0))
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
        np.concatenate([[0], np.cumsum(found[1:])]),
        {**{name: int(found[i]) for i, name in enumerate(BINS, start=1)}, "unseen": int(found[0])},
    )


def _divide(above: NDArray[Any], below: NDArray[Any]) -> NDArray[np.float64]:
    """Return above / below, and 0 for 0/0."""
    result = np.zeros(np.broadcast_shapes(above.shape, below.shape))
    np.divide(above, below, out=result, where=below != 0)
    return result
