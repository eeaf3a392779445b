"""Transform the scores of retrieved clusters for combination with label scores, and measure retrieval quality.

Input: rankings of clusters and the truth. Output: rankings and percentages. This module knows no matcher.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.special import log_expit

from xmtc.core import metrics
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.partition import Partition
from xmtc.core.ranking import Ranking

Transform = Literal["l1-hinge", "l2-hinge", "l3-hinge", "sigmoid"]


def transform_scores(raw: Ranking, transform: Transform, logarithm: bool = False) -> Ranking:
    """Transform raw scores s: exp(−max(0, 1 − s)^p) or σ(s), or the logarithm of these."""
    scores = raw.scores.astype(np.float64)
    if transform == "sigmoid":
        logs = log_expit(scores)
    else:
        logs = -(np.maximum(0, 1 - scores) ** int(transform[1]))
    return Ranking(np.ascontiguousarray(raw.labels), (logs if logarithm else np.exp(logs)).astype(np.float32))


def take_logarithm(scores: Ranking) -> Ranking:
    """Return a ranking with the logarithms of its scores; 0 counts as the smallest normal float32."""
    return Ranking(scores.labels, np.log(np.maximum(scores.scores, np.finfo(np.float32).tiny)))


def score_clusters(clusters: Ranking, targets: sp.csr_matrix) -> dict[str, float]:
    """Return the metrics of a ranking of clusters; `targets` (documents × clusters) marks those with a true label."""
    n_clusters = targets.shape[1]
    names = LabelSet.restore(((Concept(str(cluster)), 1) for cluster in range(n_clusters)), n_clusters)
    return metrics.evaluate(clusters, targets, names, targets.shape[0]).metrics


def recall_in_clusters(clusters: Ranking, partition: Partition, truth: sp.csr_matrix) -> float:
    """Return the percentage of a document's true labels that are in its retrieved clusters, averaged over documents.

    truth: (documents × label entries); entries beyond the partition are labels without a cluster, which count as
    missed. A document without labels scores 0.
    """
    sizes = np.diff(truth.indptr)
    rows = np.repeat(np.arange(truth.shape[0]), sizes)
    cluster_of = np.full(truth.shape[1], -2, dtype=np.int32)  # −2: neither a cluster nor padding
    cluster_of[: len(partition)] = partition.parents
    hits = np.zeros(len(rows), dtype=bool)
    for column in clusters.labels.T:  # few columns: a beam is narrow
        hits |= column[rows] == cluster_of[truth.indices]
    found = np.bincount(rows, weights=hits, minlength=truth.shape[0])
    return float(100 * np.mean(found / np.maximum(sizes, 1))) if truth.shape[0] else 0.0
