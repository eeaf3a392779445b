from __future__ import annotations

import numpy as np
import pytest

from tests.features.clustering.vectors import centre, dense, planted, random_rows, same_groups
from xmtc.features.clustering import MeansConfig, balanced_kmeans, trees


def naive_kmeans(vectors, n_clusters: int, seed: int, means: MeansConfig) -> list[int]:
    rows = dense(vectors)
    n = len(rows)
    filled = np.flatnonzero((rows != 0).any(axis=1))
    candidates = filled if len(filled) >= n_clusters else np.arange(n)
    clusters = [[int(i)] for i in np.random.default_rng(seed).permutation(candidates)[:n_clusters]]
    sides: list[int] = []
    for _ in range(means.max_iterations):
        centres = np.stack([centre(rows[cluster], means.metric) for cluster in clusters])
        near = rows @ centres.T - (0.5 * (centres**2).sum(axis=1) if means.metric == "euclidean" else 0)
        best = np.sort(near, axis=1)
        old, sides = sides, [-1] * n
        clusters = [[] for _ in range(n_clusters)]
        for i in sorted(range(n), key=lambda i: (best[i, -2] - best[i, -1], i)):
            full = sum(len(cluster) > n // n_clusters for cluster in clusters)
            limit = n // n_clusters + (full < n % n_clusters)
            nearest = max(
                (c for c in range(n_clusters) if len(clusters[c]) < limit), key=lambda c, i=i: (near[i, c], -c)
            )
            clusters[nearest].append(i)
            sides[i] = nearest
        if sides == old:
            break
    return sides


@pytest.mark.parametrize("metric", ["spherical", "euclidean"])
@pytest.mark.parametrize("sparse", [True, False])
def test_k_means_agree_with_a_naive_implementation(metric, sparse):
    means = MeansConfig(metric=metric)
    for n, n_clusters in ((3, 3), (10, 3), (50, 7), (100, 6), (53, 11)):
        vectors = random_rows(n, seed=n, sparse=sparse)
        vectors = vectors[np.arange(n) % 10 > 0] if n > 3 else vectors  # equal zero rows may be told apart by rounding
        partition = balanced_kmeans(vectors, n_clusters, 1, means)
        assert partition.parents.tolist() == naive_kmeans(vectors, n_clusters, 1, means)


@pytest.mark.parametrize("limit", [trees._KWAY_LIMIT, 0])
def test_k_clusters_are_full_to_within_one(monkeypatch, limit):
    monkeypatch.setattr(trees, "_KWAY_LIMIT", limit)  # 0: in binary splits whatever the number
    for n in (1, 2, 5, 16, 33, 100):
        vectors = random_rows(n, seed=n)
        for n_clusters in {1, 2, 3, 4, 7, 8, 12, n - 1, n} & set(range(1, n + 1)):
            partition = balanced_kmeans(vectors, n_clusters, 0)
            sizes = np.bincount(partition.parents, minlength=n_clusters)
            assert partition.n_clusters == len(sizes) == n_clusters
            assert partition.parents.dtype == np.int32
            assert {*sizes} <= {n // n_clusters, -(-n // n_clusters)}


def test_planted_groups_are_recovered_by_k_means_of_any_number():
    vectors, groups = planted(depth=3, size=20, seed=0)
    kept = groups < 3
    recovered = [same_groups(balanced_kmeans(vectors[kept], 3, seed), groups[kept]) for seed in range(10)]
    assert sum(recovered) >= 8  # all but those whose first centres fall into one group
