"""Plan an update: train the nodes that new labels join and, within a budget, nodes whose documents changed.

Input: trees, document counts of labels, and what changed. Output: a `Plan` per tree. This module trains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xmtc.core.partition import LabelTree
from xmtc.linear.chunks import LinearTree
from xmtc.linear.lanes import LANES
from xmtc.methods.linear.update.nodes import as_label_tree

Node = tuple[int, int]  # level, and position in it


@dataclass(frozen=True, eq=False)
class Plan:
    """A tree with the joining labels in their clusters, and the children to train."""

    tree: LabelTree
    joining: NDArray[np.int32]  # the cluster of each label that joins one
    fit: dict[Node, NDArray[np.int64]]  # node → the children to train, by their positions among siblings


def plan_updates(
    trees: Sequence[LinearTree],
    counts: NDArray[np.int64],
    n_documents: int,
    changed: NDArray[np.int64],
    joining: NDArray[np.int32],
    budget: float,
    least: int,
    spent: int,
) -> tuple[list[Plan], int, int]:
    """Return a plan per tree, the number of nodes to refit for their documents, and the number postponed.

    counts: documents of each label, first those of the trees, then those that join clusters. changed: documents that
    each label of the trees gained or lost. joining: (trees × joining labels) clusters; classifiers of the joining
    labels and of the clusters on their paths are always trained. budget: the allowed share of the work of training all
    nodes. In documents × blocks, `least` is always allowed, and `spent` is already used. Nodes are taken in the order
    of how many of their documents changed, relative to all; nodes that do not fit in the budget are skipped.
    """
    padded = np.concatenate([changed, np.zeros(len(counts) - len(changed), dtype=np.int64)])
    plans: list[Plan] = []
    wanted: list[tuple[float, int, Node]] = []
    sizes: list[dict[Node, tuple[int, int]]] = []
    total = 0
    for i, tree in enumerate(trees):
        parents = as_label_tree(tree).parents
        grown = LabelTree((*parents[:-1], np.concatenate([parents[-1], joining[i]])))
        plans.append(Plan(grown, joining[i], _paths(grown, joining[i])))
        sizes.append(_sizes(grown, counts, n_documents))
        total += sum(_work(*size) for size in sizes[i].values())
        spent += sum(_work(sizes[i][node][0], len(places)) for node, places in plans[i].fit.items())
        for node, gained, n in zip(sizes[i], _below(grown, padded), _below(grown, counts), strict=True):
            if gained:
                wanted.append((-gained / max(n, gained), i, node))
    n_refitted = 0
    for _, i, node in sorted(wanted):
        n_rows, n_children = sizes[i][node]
        cost = _work(n_rows, n_children) - _work(n_rows, len(plans[i].fit.get(node, ())))
        if budget >= 1 or spent + cost <= max(budget * total, least):
            plans[i].fit[node] = np.arange(n_children)
            spent += cost
            n_refitted += 1
    return plans, n_refitted, len(wanted) - n_refitted


def work_of(tree: LabelTree, counts: NDArray[np.int64], n_documents: int) -> int:
    """Return the work of training all nodes, in documents × blocks of classifiers."""
    return sum(_work(*size) for size in _sizes(tree, counts, n_documents).values())


def _work(n_documents: int, n_children: int) -> int:
    return n_documents * -(-n_children // LANES)


def _sizes(tree: LabelTree, counts: NDArray[np.int64], n_documents: int) -> dict[Node, tuple[int, int]]:
    """Return the documents and children of each node, from the root down.

    A document with two labels below a node counts twice: an exact count would take as long as training some nodes.
    """
    nodes = [(depth, node) for depth in range(tree.depth) for node in range(tree.level(depth).n_clusters)]
    children = np.concatenate([np.diff(tree.level(depth).starts) for depth in range(tree.depth)]).tolist()
    rows = [n_documents, *(min(n, n_documents) for n in _below(tree, counts)[1:])]
    return dict(zip(nodes, zip(rows, children, strict=True), strict=True))


def _paths(tree: LabelTree, joining: NDArray[np.int32]) -> dict[Node, NDArray[np.int64]]:
    """Return the classifiers of the joining labels, which are last in their clusters, and those on their paths."""
    fit: dict[Node, NDArray[np.int64]] = {}
    touched, n_joining = np.unique(joining, return_counts=True)
    sizes = np.diff(tree.level(tree.depth - 1).starts)
    for cluster, n in zip(touched.tolist(), n_joining.tolist(), strict=True):
        fit[tree.depth - 1, cluster] = np.arange(int(sizes[cluster]) - n, int(sizes[cluster]))
    for depth in range(tree.depth - 2, -1, -1):
        parents, starts = tree.parents[depth][touched], tree.level(depth).starts
        for parent in np.unique(parents).tolist():
            fit[depth, parent] = touched[parents == parent] - starts[parent]
        touched = np.unique(parents)
    return fit


def _below(tree: LabelTree, values: NDArray[np.integer]) -> list[int]:
    """Return the sum of the labels' values below each inner node, from the root down."""
    sums: list[list[int]] = []
    for depth in range(tree.depth - 1, -1, -1):
        level = tree.level(depth)
        values = np.bincount(level.parents, weights=values, minlength=level.n_clusters).astype(np.int64)
        sums.append(values.tolist())
    return [value for level_sums in reversed(sums) for value in level_sums]
