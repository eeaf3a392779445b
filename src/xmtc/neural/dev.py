"""Dev documents: what a neural method chooses its best epoch by."""

from __future__ import annotations

import scipy.sparse as sp

from xmtc.core import metrics
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, nearest
from xmtc.core.labels import LabelSet
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.neural.trainer import Score

_MOST = 4000  # documents held out at most


def hold_out(corpus: Corpus, fraction: float, seed: int, progress: Progress = SILENT) -> tuple[Corpus, Corpus]:
    """Return (train, dev): a seeded part of train is held out, never trained on; of one document, it is both."""
    if len(corpus) == 1:
        return corpus, corpus
    kept, held = corpus.split(min(fraction, _MOST / len(corpus)), seed)
    progress.say(f"dev: {len(held):,} of the {len(corpus):,} training documents are held out")
    return kept, held


def scorer(dev: Corpus, labels: LabelSet, n_documents: int, metric: str) -> Score:
    """Return a function from a ranking of dev to one metric, in percent."""
    aligned = dev.align(labels)
    truth: sp.csr_matrix = aligned.Y

    def score(ranking: Ranking) -> float:
        report = metrics.evaluate(ranking, truth, aligned.labels, n_documents)
        if metric not in report.metrics:
            raise ConfigError(f"train.metric: no metric {metric!r}.{nearest(metric, report.metrics)}")
        return report[metric]

    return score
