"""Balanced clusters of labels: balanced k-means and label trees built from it.

Input: label vectors (sparse or dense, rows of length 1 or 0) and a seed. Output: a `Partition` or a `LabelTree`. The
same vectors and seed give the same bytes on any number of threads; other seeds give the other trees of an ensemble.
Independent of documents and of the source of the vectors.

Rounds of 2-means end when no label changes sides or after `max_iterations`; with `tolerance` also when the labels' mean
product with their centres rises by less. Rules and sources: docs/CONVENTIONS.md, "Clustering".
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.errors import ConfigError, DataError
from xmtc.core.partition import LabelTree, Partition
from xmtc.features.clustering.config import MeansConfig, Weighting
from xmtc.features.clustering.kway import assign_clusters
from xmtc.features.clustering.splits import Splits, cluster_bounds, plan_clusters, plan_halves, plan_tree
from xmtc.features.clustering.two_means import Rule, Share, make_splits, rows_of, run_splits

Vectors = sp.csr_matrix | NDArray

_KWAY_LIMIT = 2**25  # maximum numbers in each array of K-means with all centres at once: 256 MB


class ClusterConfig(MeansConfig):
    """How labels are clustered into a tree."""

    size: int = Field(
        64, ge=1, description="maximum labels per cluster; with fewer labels in total, there are no clusters"
    )
    branching: int = Field(512, ge=2, description="maximum children of a node above the clusters")
    weighting: Weighting = Field(
        "plain", description="weight of a document in label vectors: 1, or 1 / √(its labels) (sqrt)"
    )
    top: int | None = Field(None, ge=1, description="number of entries kept per label vector, the largest; none: all")


MEANS = MeansConfig()


def label_tree(vectors: Vectors, config: ClusterConfig, seed: int, share: Share | None = None) -> LabelTree:
    """Return a tree over L labels: K = ⌈L/size⌉ clusters, and above them as few levels as `branching` allows.

    Clusters have ⌊L/K⌋ or ⌈L/K⌉ labels, as many as `size` permits; halving all the way would leave them half empty
    if L/size is just above a power of two. So the binary splits divide labels in the ratio of the clusters on
    either side: in halves if K is a power of two. The levels above join neighbours of the same splits, as PECOS
    does, and nodes have about equally many children. With L ≤ `size` the tree is flat.

    share: runs the splits below the top one elsewhere, by `split_part`.
    """
    n_labels = _check(vectors).shape[0]
    if n_labels <= config.size:
        return LabelTree.flat(n_labels)
    splits, levels = plan_tree(n_labels, -(-n_labels // config.size), config.branching)
    return LabelTree((*levels, _split(vectors, splits, seed, config, share).parents))


def split_part(vectors: Vectors, order: NDArray[np.int32], splits: Splits, seed: int, means: MeansConfig) -> None:
    """Run some splits of `label_tree` by reordering `order`, the labels of the whole tree.

    None of the splits may be the parent of a split outside the list.
    """
    run_splits(rows_of(vectors), vectors.shape[1], order, splits, seed, _rule(means))


def split_to_size(vectors: Vectors, size: int, seed: int, means: MeansConfig = MEANS) -> Partition:
    """Halve clusters by 2-means while they have more than `size` labels.

    Left sides get ⌊n/2⌋. Clusters have at most `size` labels, and at least half that unless there are fewer in all.
    """
    if size < 1:
        raise ConfigError(f"a cluster's size must be at least 1; got {size}")
    return _split(_check(vectors), plan_halves(vectors.shape[0], size), seed, means)


def balanced_kmeans(vectors: Vectors, n_clusters: int, seed: int, means: MeansConfig = MEANS) -> Partition:
    """Return `n_clusters` clusters of ⌊n/K⌋ or ⌈n/K⌉ labels.

    If K is a power of two, they are made by recursive 2-means. Otherwise K-means assigns, in each round, labels to the
    nearest centre with room, largest margin first; if K centres at once would take too much memory, 2-means splits in
    the ratio of the clusters on either side.
    """
    n, n_columns = _check(vectors).shape
    if not 1 <= n_clusters <= n:
        raise ConfigError(f"{n} labels cannot make {n_clusters} clusters; ask for 1 to {n}")
    power_of_two = n_clusters & (n_clusters - 1) == 0
    if power_of_two or max(n, n_columns) * n_clusters > _KWAY_LIMIT:
        return _split(vectors, plan_clusters(n, n_clusters), seed, means)
    return Partition(assign_clusters(rows_of(vectors), n_columns, n_clusters, seed, _rule(means)), n_clusters)


def _split(vectors: Vectors, splits: Splits, seed: int, means: MeansConfig, share: Share | None = None) -> Partition:
    """Run splits of all labels; clusters are numbered from left to right."""
    n, n_columns = vectors.shape
    order = np.arange(n, dtype=np.int32)
    make_splits(rows_of(vectors), n_columns, order, splits, seed, _rule(means), share)
    sizes = np.diff(cluster_bounds(n, splits))
    parents = np.empty(n, dtype=np.int32)
    parents[order] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    return Partition(parents, len(sizes))


def _check(vectors: Vectors) -> Vectors:
    if vectors.ndim != 2 or vectors.shape[0] == 0:
        raise DataError(f"clustering needs one vector per label; got shape {vectors.shape}")
    values = vectors.data if sp.issparse(vectors) else vectors
    if not np.isfinite(values).all():
        raise DataError("label vectors hold NaN or infinity; replace them by numbers")
    return vectors


def _rule(means: MeansConfig) -> Rule:
    tolerance = -np.inf if means.tolerance is None else means.tolerance
    return Rule(means.max_iterations, tolerance, means.metric == "spherical")
