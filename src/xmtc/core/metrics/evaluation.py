"""Evaluation: from a ranking and the true labels to a `Report`, in percent. Independent of models and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import scipy.sparse as sp

from xmtc.core.display import Displayed, Grid
from xmtc.core.errors import nearest
from xmtc.core.labels import LabelSet
from xmtc.core.metrics import bootstrap
from xmtc.core.metrics.registry import (
    ALL_BINS,
    BINS,
    KS,
    LABEL_DEPTH,
    UNSEEN,
    UNSEEN_RECALL,
    Bin,
    DocumentMetric,
    LabelMetric,
    metrics_of,
)
from xmtc.core.metrics.statistics import TruthMode, collect
from xmtc.core.propensity import DEFAULT_PROPENSITY, Propensity
from xmtc.core.ranking import Ranking

_FIRST = ("P@1", "P@5", "nDCG@5", "PSP@5")  # scores of the short form


@dataclass(frozen=True, repr=False)
class Report(Displayed, Mapping[str, float]):
    """The scores of one ranking; `report["P@1"]` is a percentage."""

    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]]  # 95 %; empty if none were requested
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

    def display_line(self) -> str:
        """Return the first scores, and what they were measured on."""
        first = [f"{key} {self.metrics[key]:.2f}" for key in _FIRST if key in self.metrics]
        name = f"{self.model} on {self.data}: " if self.model and self.data else ""
        return f"{name}{', '.join(first)} (percent; {self.n:,} documents, {self.n_labels:,} labels, truth {self.truth})"

    def bins(self) -> dict[str, Bin]:
        """Return the bins of labels to show: the bin of unseen labels only if the ranking found some of them."""
        return ALL_BINS if self.metrics.get(UNSEEN_RECALL, 0) > 0 else BINS

    def display_grids(self) -> list[Grid]:
        """Return all listed scores with their intervals: by depth of the ranking, and by label frequency."""
        bins = self.bins()
        by_document = [(metric.name, [metric.key(k) for k in KS]) for metric in metrics_of(DocumentMetric, listed=True)]
        by_label = [
            (metric.key(LABEL_DEPTH), [metric.key(LABEL_DEPTH, bin_) for bin_ in bins])
            for metric in metrics_of(LabelMetric, listed=True)
        ]
        labels = ("labels", *(f"{self.labels_in_bin[bin_]:,}" for bin_ in bins))
        if UNSEEN in bins:
            empty = [""] * len(BINS)
            by_label.append((f"R@{LABEL_DEPTH}", [*empty, UNSEEN_RECALL]))
        return [
            Grid("by document", tuple(f"@{k}" for k in KS), self._rows(by_document)),
            Grid("by label", tuple(bin_.title for bin_ in bins.values()), [*self._rows(by_label), labels]),
        ]

    def _rows(self, keys: list[tuple[str, list[str]]]) -> list[tuple[str, ...]]:
        """Return one row per metric; scores that were not computed are empty."""
        return [(name, *map(self.cell, row)) for name, row in keys if any(key in self.metrics for key in row)]

    def cell(self, key: str) -> str:
        """Return a score with its interval as text; empty if the score was not computed."""
        if key not in self.metrics:
            return ""
        low, high = self.intervals.get(key, (None, None))
        return f"{self.metrics[key]:.2f}" + ("" if low is None else f" [{low:.1f}, {high:.1f}]")

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
    """Score a ranking against the true labels.

    After `test = corpus.align(model.labels)`, pass `test.Y`, `test.labels` and `model.manifest.n_documents`: the counts
    and the number of documents are those of training. Mode "all" keeps true labels that are unseen in training, and
    documents without labels, which score 0; "known" drops both. A bin without true labels, in the corpus or in a
    resample of it, scores 0; use `labels_in_bin` to tell an empty bin from one with bad results.
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
