"""Clustering: from label vectors to a balanced tree or partition of labels.

Code with compiled kernels is loaded on first use; `MeansConfig` and `Weighting` need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names
from xmtc.features.clustering.config import MeansConfig, Weighting

if TYPE_CHECKING:
    from xmtc.features.clustering.trees import (
        ClusterConfig,
        Vectors,
        balanced_kmeans,
        label_tree,
        split_part,
        split_to_size,
    )

__all__ = [
    "ClusterConfig",
    "MeansConfig",
    "Vectors",
    "Weighting",
    "balanced_kmeans",
    "label_tree",
    "split_part",
    "split_to_size",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "ClusterConfig": "xmtc.features.clustering.trees",
        "Vectors": "xmtc.features.clustering.trees",
        "balanced_kmeans": "xmtc.features.clustering.trees",
        "label_tree": "xmtc.features.clustering.trees",
        "split_part": "xmtc.features.clustering.trees",
        "split_to_size": "xmtc.features.clustering.trees",
    },
)
