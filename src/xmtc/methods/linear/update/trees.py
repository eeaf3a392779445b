"""Update linear trees: train classifiers for new labels, refit nodes whose documents changed, keep the rest.

Input: trees, and the features and labels of documents, with new labels in the last columns. Output: trees of the same
depth. A few new labels join the clusters that a tree's own search finds for their label vectors (PIFA), and the
classifiers on their paths are retrained. Many new labels are clustered among themselves; their branch is trained once
and grafted to the root of every tree. This module knows no texts and no label names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError
from xmtc.core.parallel import run
from xmtc.core.partition import LabelTree
from xmtc.core.progress import SILENT, Progress
from xmtc.features.clustering import ClusterConfig, label_tree
from xmtc.features.label_vectors import pifa
from xmtc.linear.beam import SearchConfig, search
from xmtc.linear.chunks import Chunk, LinearTree
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import Level, TreeConfig, add_bias, arrange, train_level, train_tree
from xmtc.methods.linear.update.nodes import as_label_tree, graft, put_together, renew, take_apart
from xmtc.methods.linear.update.plan import Node, Plan, plan_updates, work_of

Rows = NDArray[np.int64]

_OTHERS = 8192  # minimum number of documents without a new label that a branch's root is trained on


@dataclass(frozen=True, eq=False)
class News:
    """The training data of an update."""

    features: Callable[[Rows], sp.csr_matrix]  # of some documents, in ascending order
    Y: sp.csr_matrix  # (documents × labels): the labels of the trees, then new ones; each document has at least one
    changed: NDArray[np.int64]  # documents that each label of the trees gained or lost
    whole: bool  # whether all documents of known labels are included, so that their classifiers may be retrained

    @property
    def n_known(self) -> int:
        """Return the number of labels in the trees."""
        return len(self.changed)

    @cached_property
    def of_new(self) -> sp.csr_matrix:
        """Return the matrix (documents × new labels)."""
        return self.Y[:, self.n_known :].tocsr()


@dataclass(frozen=True)
class Training:
    """Settings of the trees."""

    cluster: ClusterConfig
    solver: SolverConfig
    search: SearchConfig
    seed: int


class Outcome(NamedTuple):
    """The updated trees, and counts of the work done, summed over all trees."""

    trees: tuple[LinearTree, ...]
    n_clusters: int  # created by new labels in each tree; 0 if they joined existing ones
    n_refitted: int
    n_waiting: int  # nodes whose documents also changed, skipped because the budget was used up
    n_nodes: int


def update_trees(
    trees: Sequence[LinearTree],
    news: News,
    training: Training,
    budget: float,
    least: int = 0,
    progress: Progress = SILENT,
) -> Outcome:
    """Update the trees of one model.

    budget: the allowed share of a full training's work, counted in documents × blocks of classifiers. least: the work
    allowed even if that share is smaller. New labels are always trained; the rest of the budget goes to the nodes whose
    documents changed most.
    """
    n_new = news.Y.shape[1] - news.n_known
    branch: LinearTree | None = None
    joining = np.zeros((len(trees), 0), dtype=np.int32)
    if n_new and (n_new >= training.cluster.size // 2 or trees[0].shape.depth == 1 or not news.whole):
        branch = _grow_branch(trees[0].shape.depth, news, training, progress)
    elif n_new:
        progress.stage("placing new labels")
        joining = _find_clusters(trees, news, training)
    updated, n_refitted, n_waiting = list(trees), 0, 0
    if joining.shape[1] or news.changed.any():
        counts = np.bincount(news.Y.indices, minlength=news.Y.shape[1])
        spent = 0
        if branch is not None:
            spent = work_of(as_label_tree(branch), counts[news.n_known :], len(_sample(news.of_new, training.seed)))
        counts = counts[: news.n_known + joining.shape[1]]
        plans, n_refitted, n_waiting = plan_updates(
            trees, counts, news.Y.shape[0], news.changed, joining, budget, least, spent
        )
        updated = _carry_out(trees, plans, news, training, progress)
    if branch is not None:
        updated = run(partial(graft, branch=branch), updated)
    return Outcome(
        trees=tuple(updated),
        n_clusters=0 if branch is None or branch.shape.depth == 1 else len(take_apart(branch)[-1].chunks),
        n_refitted=n_refitted,
        n_waiting=n_waiting,
        n_nodes=sum(len(tree.child_starts) - 1 for tree in trees),
    )


def _grow_branch(depth: int, news: News, training: Training, progress: Progress) -> LinearTree:
    """Return a tree of only the new labels, as deep as the other trees."""
    sample = _sample(news.of_new, training.seed)
    Y, X = news.of_new[sample], news.features(sample)
    own = LabelTree.flat(Y.shape[1])
    if depth > 1:
        progress.stage("clustering labels")
        rows = np.flatnonzero(np.diff(Y.indptr))
        vectors = pifa(X[rows], Y[rows], training.cluster.weighting, training.cluster.top)
        own = label_tree(vectors, training.cluster, training.seed)
    if own.depth > depth:
        raise ConfigError(f"{Y.shape[1]:,} new labels are too many for a tree of {depth} levels; train a new model")
    # if their tree is shallower, single nodes pass the root's score on
    levels = (np.zeros(1, dtype=np.int32),) * (depth - own.depth) + own.parents
    branch = train_tree(
        X, Y, LabelTree(levels), TreeConfig(negatives="tfn"), training.solver, training.search, training.seed, progress
    )
    return replace(branch, leaf_labels=branch.leaf_labels + np.int32(news.n_known))


def _sample(Y: sp.csr_matrix, seed: int) -> Rows:
    """Return the documents with a new label, and half as many others: enough for the root to separate them."""
    with_new = np.diff(Y.indptr) > 0
    others = np.flatnonzero(~with_new)
    n_others = min(len(others), max(_OTHERS, int(with_new.sum()) // 2))
    with_new[np.random.default_rng(seed).permutation(others)[:n_others]] = True
    return np.flatnonzero(with_new)


def _find_clusters(trees: Sequence[LinearTree], news: News, training: Training) -> NDArray[np.int32]:
    """Return the cluster that each tree finds for a label's vector, as for a text: (trees × new labels)."""
    Y = news.of_new
    rows = np.flatnonzero(np.diff(Y.indptr))
    vectors = pifa(news.features(rows), Y[rows], training.cluster.weighting, training.cluster.top)
    found = []
    for tree in trees:
        levels = take_apart(tree)
        trunk = put_together(levels[:-1], np.arange(len(levels[-1].chunks)), tree)
        found.append(search(trunk, vectors, training.search, 1).labels[:, 0])
    return np.stack(found)


class _Task(NamedTuple):
    """Some nodes of one level of one tree, to be trained together."""

    tree: int
    depth: int
    nodes: list[int]
    level: Level  # contains only these nodes' children
    above: sp.csr_matrix | None  # (documents × nodes); None for the root


def _carry_out(
    trees: Sequence[LinearTree], plans: Sequence[Plan], news: News, training: Training, progress: Progress
) -> list[LinearTree]:
    tasks = [task for i, plan in enumerate(plans) if plan.fit for task in _tasks(i, plan, news.Y)]
    if not tasks:
        return list(trees)
    used = np.zeros(news.Y.shape[0], dtype=bool)
    for task in tasks:
        used |= True if task.above is None else np.diff(task.above.indptr) > 0
    rows = np.flatnonzero(used)  # the other rows need no features
    biased = add_bias(news.features(rows), training.solver.bias)
    fitted: list[dict[Node, tuple[NDArray[np.int64], Chunk]]] = [{} for _ in trees]
    for task in tasks:
        progress.stage(f"refitting tree {task.tree + 1} of {len(trees)}")
        level = Level(task.level.targets[rows], task.level.starts)
        above = None if task.above is None else task.above[rows]
        seed = training.seed + task.tree + task.depth  # as in training
        chunks = train_level(biased, level, above, None, "tfn", training.solver, seed, progress)
        for node, chunk in zip(task.nodes, chunks, strict=True):
            fitted[task.tree][task.depth, node] = plans[task.tree].fit[task.depth, node], chunk
    pairs = zip(trees, plans, fitted, strict=True)
    return [renew(tree, plan.joining, done) if done else tree for tree, plan, done in pairs]


def _tasks(i: int, plan: Plan, Y: sp.csr_matrix) -> list[_Task]:
    """Return one task for each level that has something to train."""
    tasks = []
    levels, _ = arrange(Y[:, : plan.tree.n_labels].tocsr(), plan.tree)
    for depth, level in enumerate(levels):
        nodes = sorted(node for at, node in plan.fit if at == depth)
        if not nodes:
            continue
        places = [plan.fit[depth, node] for node in nodes]
        slots = np.concatenate([level.starts[node] + own for node, own in zip(nodes, places, strict=True)])
        targets = level.targets[:, slots].tocsr()
        targets.sort_indices()
        above = levels[depth - 1].targets[:, nodes].tocsr() if depth else None
        tasks.append(_Task(i, depth, nodes, Level(targets, np.cumsum([0, *map(len, places)])), above))
    return tasks
