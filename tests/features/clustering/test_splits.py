from __future__ import annotations

import numpy as np

from xmtc.features.clustering.splits import cluster_bounds, plan_halves, plan_tree


def test_cluster_numbers_of_the_papers():
    # halving to at most 100 labels gives these numbers of clusters: docs/CONVENTIONS.md, "Clustering"
    for n_labels, n_clusters in ((3_956, 64), (13_330, 256), (30_938, 512), (501_070, 8_192), (670_091, 8_192)):
        splits = plan_halves(n_labels, 100)
        assert len(cluster_bounds(n_labels, splits)) - 1 == len(splits) + 1 == n_clusters


def test_large_trees_even_out_their_levels():
    splits, levels = plan_tree(670_000, 20_938, 16)
    assert len(splits) == 20_937
    sizes = np.diff(cluster_bounds(670_000, splits))
    assert {*sizes} == {31, 32}
    widest = [np.bincount(parents).max() for parents in levels]
    assert len(levels) == 4
    assert max(widest) <= 13  # 13⁴ is the first fourth power that reaches 20,938
