"""Dev documents: what a neural method chooses its best epoch by."""

from __future__ import annotations

import numpy as np

from xmtc.core import metrics
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, nearest
from xmtc.core.labels import LabelSet
from xmtc.core.ranking import Ranking
from xmtc.neural.trainer import Score


def scorer(
    dev: Corpus,
    labels: LabelSet,
    n_documents: int,
    metric: str,
    propensity: metrics.Propensity = metrics.DEFAULT_PROPENSITY,
) -> Score:
    """Return a function from a ranking of dev to one metric, in percent; an unknown metric is refused at once."""
    aligned = dev.align(labels)

    def evaluate(ranking: Ranking) -> dict[str, float]:
        return metrics.evaluate(ranking, aligned.Y, aligned.labels, n_documents, propensity=propensity).metrics

    blank = np.full((len(dev), 1), -1, dtype=np.int32)
    known = evaluate(Ranking(blank, np.full(blank.shape, -np.inf, dtype=np.float32)))
    if metric not in known:
        raise ConfigError(f"train.metric: no metric {metric!r}.{nearest(metric, known)}")
    return lambda ranking: evaluate(ranking)[metric]
