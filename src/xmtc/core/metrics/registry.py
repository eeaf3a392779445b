"""Registry: every metric and every bin of labels, as data.

A metric is one entry of `METRICS`: its name, its title, and a function that returns what each document or each label
contributes. Keys, scores, intervals, comparisons, tables and reports are generated from the entries, so a new metric
needs only a new entry here. docs/CONVENTIONS.md, "Metrics", has the formulas. Independent of rankings and models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from xmtc.core.labels import LabelSet

if TYPE_CHECKING:
    from xmtc.core.metrics.label_statistics import Counts

KS = (1, 3, 5)  # depths at which documents are scored
LABEL_DEPTH = 5  # labels per document that label metrics use
UNSEEN = "unseen"  # the bin of labels without training documents; only in truth mode "all"
UNSEEN_RECALL = f"R@{LABEL_DEPTH}/{UNSEEN}"  # share of all true pairs of a document and an unseen label that was found

_WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 10: "ten"}


@dataclass(frozen=True)
class Bin:
    """A range of labels with similar numbers of training documents."""

    name: str
    first: int  # minimum number of training documents of its labels
    last: int | None  # maximum; None: no limit

    @property
    def title(self) -> str:
        """Name and bounds, as tables show them."""
        if self.last == 0:
            return f"{self.name} (0)"
        return f"{self.name} (>{self.first - 1})" if self.last is None else f"{self.name} ({self.first}–{self.last})"

    @property
    def documents(self) -> str:
        """The bounds in words."""
        if self.last == 0:
            return "no training document"
        if self.last is None:
            return f"more than {self.first - 1} training documents"
        if self.first == 1:
            return f"{self.last} training documents or fewer"
        return f"{self.first} to {self.last} training documents"


BINS = {"few": Bin("few", 1, 20), "medium": Bin("medium", 21, 100), "many": Bin("many", 101, None)}
ALL_BINS = {**BINS, UNSEEN: Bin(UNSEEN, 0, 0)}


@dataclass(frozen=True, eq=False)
class Top:
    """The first k labels of every document next to the true labels; each array has one entry per document.

    A label's weight is its inverse propensity. A discount is 1 / log2(place + 1), with places from 1. "Ideal" is the
    value of the best ranking of the document's true labels.
    """

    k: int
    hits: NDArray[np.bool_]  # (documents, k): whether the label at this place is true
    sizes: NDArray[np.integer]  # number of true labels of the document
    right: NDArray[np.integer]  # number of true labels among the first k
    weight: NDArray[np.float64]  # total weight of these
    ideal_weight: NDArray[np.float64]
    dcg: NDArray[np.float64]  # total discount of the places with a true label
    ideal_dcg: NDArray[np.float64]
    weighted_dcg: NDArray[np.float64]  # the same, with each discount multiplied by the weight of the label
    ideal_weighted_dcg: NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """The fields common to all metrics."""

    name: str
    title: str  # its meaning, for people; {k}, {words} ("five") and {documents} (of a bin) are filled in
    listed: bool = field(default=True, kw_only=True)  # whether tables list it; `evaluate` always computes it

    def key(self, k: int, bin_: str | None = None) -> str:
        """Return the key of its value at depth k, for a label metric in a bin: "P@5", "macro-F@5/few"."""
        return f"{self.name}@{k}" if bin_ is None else f"{self.name}@{k}/{bin_}"


@dataclass(frozen=True, kw_only=True)
class DocumentMetric(Metric):
    """A document metric at depth k, with the key "name@k": the sum of gains divided by the sum of bases."""

    contribution: Callable[[Top], tuple[NDArray[Any], NDArray[Any] | int]]  # gains, and bases or one base for all
    compared: tuple[int, ...] = KS[-1:]  # depths that comparisons of models list
    title_at_1: str | None = None  # replaces `title` if that reads badly for one label

    def title_at(self, k: int) -> str:
        """Return its title at depth k."""
        title = self.title_at_1 if k == 1 and self.title_at_1 is not None else self.title
        return title.format(k=k, words=_WORDS.get(k, k))


@dataclass(frozen=True, kw_only=True)
class LabelMetric(Metric):
    """A label metric: the mean over the true labels of a bin. Its key is "name@5/bin"."""

    contribution: Callable[[Counts], NDArray[Any]]  # (labels × resamples), for labels that occur in the truth
    compared: bool = True  # whether comparisons of models list it

    def title_in(self, bin_: str) -> str:
        """Return its title in a bin."""
        return self.title.format(documents=ALL_BINS[bin_].documents)


AnyMetric = TypeVar("AnyMetric", DocumentMetric, LabelMetric)


def divide(above: NDArray[Any], below: NDArray[Any]) -> NDArray[np.float64]:
    """Return above / below, and 0 for 0/0."""
    result = np.zeros(np.broadcast_shapes(above.shape, below.shape))
    np.divide(above, below, out=result, where=below != 0)
    return result


METRICS: dict[str, DocumentMetric | LabelMetric] = {
    metric.name: metric
    for metric in (
        DocumentMetric(
            "P",
            "of the first {words} labels, those that are right",
            title_at_1="first labels that are right",
            contribution=lambda top: (top.right, top.k),
            compared=KS,
        ),
        DocumentMetric(
            "R",
            "of a document's true labels, those among the first {words}",
            contribution=lambda top: (divide(top.right, top.sizes), 1),
        ),
        DocumentMetric(
            "nDCG",
            "how near the top the right labels are",
            contribution=lambda top: (divide(top.dcg, top.ideal_dcg), 1),
        ),
        DocumentMetric(
            "PSP",
            "P@{k} with rare labels counting more",
            contribution=lambda top: (top.weight, top.ideal_weight),
            compared=KS,
        ),
        DocumentMetric(
            "PSnDCG",
            "nDCG@{k} with rare labels counting more",
            contribution=lambda top: (top.weighted_dcg, top.ideal_weighted_dcg),
        ),
        DocumentMetric(
            "PSnDCG-rows",
            "PSnDCG@{k} with each document's part divided by its ideal DCG",
            contribution=lambda top: (
                divide(top.weighted_dcg, top.ideal_dcg),
                divide(top.ideal_weighted_dcg, top.ideal_dcg),
            ),
            listed=False,
            compared=(),
        ),
        LabelMetric(
            "macro-P",
            "mean precision of labels with {documents}",
            contribution=lambda counts: divide(counts.right, counts.shown),
            compared=False,
        ),
        LabelMetric(
            "macro-R",
            "mean recall of labels with {documents}",
            contribution=lambda counts: divide(counts.right, counts.true),
            compared=False,
        ),
        LabelMetric(
            "macro-F",
            "mean F of labels with {documents}",
            # the harmonic mean of precision and recall
            contribution=lambda counts: divide(2 * counts.right, counts.shown + counts.true),
        ),
        LabelMetric(
            "coverage",
            "labels with {documents} that are found at least once",
            contribution=lambda counts: counts.right > 0,
        ),
    )
}


def metrics_of(kind: type[AnyMetric], *, listed: bool = False) -> tuple[AnyMetric, ...]:
    """Return the metrics of documents (`DocumentMetric`) or of labels (`LabelMetric`); listed: only those in tables."""
    found = (metric for metric in METRICS.values() if isinstance(metric, kind))
    return tuple(metric for metric in found if metric.listed or not listed)


def metric_keys(ks: Sequence[int] = KS, *, unseen: bool = True) -> tuple[str, ...]:
    """Return the key of every score of a report, in report order; unseen: include those of unseen labels."""
    bins = ALL_BINS if unseen else BINS
    by_document = (metric.key(k) for k in ks for metric in metrics_of(DocumentMetric))
    by_label = (metric.key(LABEL_DEPTH, bin_) for bin_ in bins for metric in metrics_of(LabelMetric))
    return (*by_document, *by_label, *((UNSEEN_RECALL,) if unseen else ()))


def compared_keys(*, unseen: bool = False) -> tuple[str, ...]:
    """Return the keys that comparisons of models list; metrics compared at the most depths come first.

    unseen: include those of labels without training documents, for models that can find such labels.
    """
    by_depths = sorted(metrics_of(DocumentMetric), key=lambda metric: -len(metric.compared))
    by_document = (metric.key(k) for metric in by_depths for k in metric.compared)
    bins = ALL_BINS if unseen else BINS
    by_label = (metric.key(LABEL_DEPTH, bin_) for metric in metrics_of(LabelMetric) if metric.compared for bin_ in bins)
    return (*by_document, *by_label, *((UNSEEN_RECALL,) if unseen else ()))


def title_of(key: str) -> str:
    """Return the meaning of a score, for people; raise KeyError for an unknown metric or bin."""
    if key == UNSEEN_RECALL:
        return f"of the true labels with no training document, those among the first {_WORDS[LABEL_DEPTH]}"
    name, _, where = key.rpartition("@")
    metric = METRICS[name]
    if isinstance(metric, DocumentMetric):
        return metric.title_at(int(where))
    return metric.title_in(where.partition("/")[2])


def find_bins(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the bin of each training count, as its index in BINS; −1 for labels without training documents."""
    return np.searchsorted([bin_.first for bin_ in BINS.values()], counts, side="right") - 1


def label_bins(labels: LabelSet) -> NDArray[np.int64]:
    """Return the bin of each entry, as its index in BINS; labels without training documents are in the first."""
    return np.maximum(find_bins(labels.counts), 0)
