"""Scores of rankings by xmtc's own metrics, for xmtc and rivals alike, and paired differences between two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core import metrics
from xmtc.core.corpus import Corpus
from xmtc.core.labels import LabelSet
from xmtc.core.metrics import bootstrap
from xmtc.core.model import Model
from xmtc.core.ranking import Ranking

COMPARED = (
    *("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5"),
    *(f"macro-F@5/{bin_}" for bin_ in metrics.BINS),
)


@dataclass(frozen=True)
class Truth:
    """What the rankings of some documents are scored against."""

    Y: sp.csr_matrix  # (documents × labels)
    labels: LabelSet  # those of training first
    n_documents: int  # training documents, for the propensities
    propensity: metrics.Propensity = metrics.DEFAULT_PROPENSITY

    @classmethod
    def of_model(cls, model: Model, corpus: Corpus) -> Truth:
        """The truth of a corpus over a model's labels."""
        propensity = metrics.Propensity(**model.manifest.config.get("propensity", {}))
        return cls.of_corpus(corpus, model.labels, model.manifest.n_documents, propensity)

    @classmethod
    def of_corpus(cls, corpus: Corpus, labels: LabelSet, n_documents: int, propensity: metrics.Propensity) -> Truth:
        """The truth of a corpus over the labels of training."""
        aligned = corpus.align(labels)
        return cls(aligned.Y, aligned.labels, n_documents, propensity)

    def collect(self, ranking: Ranking | NDArray[np.int32]) -> metrics.Statistics:
        """Gather what scores by the known truth need of a ranking; its labels are enough."""
        if not isinstance(ranking, Ranking):
            ranking = Ranking(ranking, np.zeros(ranking.shape, dtype=np.float32))  # metrics look at the order alone
        return metrics.collect(ranking, self.Y, self.labels, self.n_documents, mode="known", propensity=self.propensity)

    def report(self, ranking: Ranking, mode: metrics.TruthMode, *, intervals: bool = True) -> dict[str, Any]:
        """Score a ranking."""
        return metrics.evaluate(
            ranking,
            self.Y,
            self.labels,
            self.n_documents,
            mode=mode,
            propensity=self.propensity,
            intervals=intervals,
        ).to_json()

    def reports(self, ranking: Ranking) -> dict[str, Any]:
        """Score a ranking by both truths, with intervals."""
        return {mode: self.report(ranking, mode) for mode in ("known", "all")}


def scores(found: metrics.Statistics) -> dict[str, float]:
    """Return all scores of what was gathered."""
    return bootstrap.point(found)


def differences(one: metrics.Statistics, other: metrics.Statistics) -> dict[str, Any]:
    """Return one's scores minus the other's, with the 95 % intervals of a paired bootstrap over documents."""
    found = bootstrap.compare({"other": other, "one": one}).differences["one"]
    return {
        key: {
            "difference": found[key].difference,
            "interval": [found[key].low, found[key].high],
            "decided": found[key].decided,
        }
        for key in COMPARED
    }
