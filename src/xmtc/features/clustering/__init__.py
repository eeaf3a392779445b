"""Clustering: label vectors → a balanced tree or partition of labels."""

from xmtc.features.clustering.trees import (
    ClusterConfig,
    MeansConfig,
    Vectors,
    balanced_kmeans,
    label_tree,
    split_to_size,
)

__all__ = ["ClusterConfig", "MeansConfig", "Vectors", "balanced_kmeans", "label_tree", "split_to_size"]
