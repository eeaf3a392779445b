"""Evaluation: from a ranking and the truth to a `Report`, in percent. Knows no models and no files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import scipy.sparse as sp

from xmtc.core.errors import nearest
from xmtc.core.labels import LabelSet
from xmtc.core.metrics import bootstrap
from xmtc.core.metrics.registry import KS
from xmtc.core.metrics.statistics import TruthMode, collect
from xmtc.core.propensity import DEFAULT_PROPENSITY, Propensity
from xmtc.core.ranking import Ranking


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
