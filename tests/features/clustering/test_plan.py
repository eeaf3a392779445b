from __future__ import annotations

import numpy as np

from xmtc.features.clustering import plan as cluster_plan


def test_cluster_numbers_of_the_papers():
    # docs/CONVENTIONS.md, "Clustering": LightXML's rule gives these numbers of clusters for a limit of 100
    for n_labels, n_clusters in ((3_956, 64), (13_330, 256), (30_938, 512), (501_070, 8_192), (670_091, 8_192)):
        plan = cluster_plan.plan_halves(n_labels, 100)
        assert len(cluster_plan.bounds(n_labels, plan)) - 1 == len(plan) + 1 == n_clusters


def test_plans_of_large_trees_even_out_their_levels():
    nodes, levels = cluster_plan.plan_tree(670_000, 20_938, 16)
    assert len(nodes) == 20_937
    sizes = np.diff(cluster_plan.bounds(670_000, nodes))
    assert {*sizes} == {31, 32}
    widest = [np.bincount(parents).max() for parents in levels]
    assert len(levels) == 4
    assert max(widest) <= 13  # 13⁴ is the first fourth power that reaches 20,938
