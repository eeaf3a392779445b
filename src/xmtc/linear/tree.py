"""Train a tree of linear classifiers, level by level.

Input: features X, labels Y and a `LabelTree`. Output: a `LinearTree`, plain arrays in breadth-first order that
beam.py searches and storage maps into memory. Independent of texts and label names.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.parallel import run
from xmtc.core.partition import LabelTree, Partition
from xmtc.core.progress import SILENT, Progress
from xmtc.linear.beam import SearchConfig, search
from xmtc.linear.chunks import Chunk, LinearTree, TreeShape, make_chunk
from xmtc.linear.lanes import LANES
from xmtc.linear.solver import SolverConfig, solve_block

Negatives = Literal["tfn", "man", "both"]
Biased = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]  # CSR parts, number of columns

Block = tuple[int, int, int]  # a parent, its first slot in the block, and the slot after its last
Rows = tuple[NDArray[np.int32], NDArray[np.bool_]]  # documents of a parent; which of them are used as positives only
Targets = tuple[NDArray[np.int64], NDArray[np.int32]]  # indptr and indices of the (documents × slots) matrix
# (blocks, the rows of each parent, targets, seed of the level) → the `solve_block` result of each block; the seed of a
# block is the level's seed plus its first slot
Share = Callable[[list[Block], list[Rows], Targets, int], list[Chunk]]

_SHARED = 17  # from this many children on, the root has at least two blocks, for two threads


class TreeConfig(Settings):
    """Which trees are trained, and on which documents."""

    trees: int = Field(3, ge=1, le=1_000, description="trees whose scores are averaged; they differ by seed")
    negatives: Negatives = Field(
        "tfn",
        description="documents that a node is trained on: tfn, those with a label below it (teacher forcing); man, "
        "those that the levels above retrieve for it, with missed positives added; both, the union",
    )


@dataclass(frozen=True, eq=False)
class Level:
    """One level to train: its nodes are numbered by slot, siblings side by side.

    targets: (documents × slots), a stored entry marks a positive; starts: the children of parent p are the slots
    starts[p] … starts[p + 1] − 1.
    """

    targets: sp.csr_matrix
    starts: NDArray[np.int64]


def train_tree(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    tree: LabelTree,
    config: TreeConfig,
    solver: SolverConfig,
    search_config: SearchConfig,
    seed: int = 0,
    progress: Progress = SILENT,
    biased: Biased | None = None,
    share: Share | None = None,
) -> LinearTree:
    """Train one-vs-all classifiers at every node of `tree` on its documents.

    biased: the result of `add_bias` for X, if several trees share it; X itself is then read only for the negatives
    "man" and "both". share: solves the blocks of a level elsewhere; see `Share`.
    """
    levels, leaf_labels = arrange(Y, tree)
    if biased is None:
        biased = add_bias(X, solver.bias)
    chunks: list[Chunk] = []
    inner_starts = [np.ones(1, dtype=np.int64)]
    above: sp.csr_matrix | None = None  # documents × slots of the level above
    shape = TreeShape(depth=len(levels), n_features=X.shape[1], bias=solver.bias)
    for depth, level in enumerate(levels):
        retrieved = None
        if above is not None and config.negatives != "tfn":
            so_far = shape.model_copy(update={"depth": depth})
            trunk = LinearTree.join(chunks, inner_starts, np.arange(above.shape[1]), so_far)
            best = search(trunk, X, search_config, search_config.beam)
            retrieved = indicate(best.labels, above.shape[1])
        progress.stage(f"training level {depth + 1} of {len(levels)}")
        chunks += train_level(biased, level, above, retrieved, config.negatives, solver, seed + depth, progress, share)
        inner_starts.append(inner_starts[-1][-1] + level.starts[1:])
        above = level.targets
    return LinearTree.join(chunks, inner_starts, leaf_labels, shape)


def arrange(Y: sp.csr_matrix, tree: LabelTree) -> tuple[list[Level], NDArray[np.int32]]:
    """Number the nodes of every level so that siblings are adjacent, and give each level its targets.

    Returns the levels from the root down, and the label of each slot of the last.
    """
    orders = []
    slots = np.zeros(1, dtype=np.int64)  # of the level above; initially the root alone
    starts = []
    for parents in tree.parents:
        partition = Partition(slots[parents].astype(np.int32), len(slots))
        orders.append(partition.order)
        starts.append(partition.starts)
        slots = np.empty(len(parents), dtype=np.int64)
        slots[partition.order] = np.arange(len(parents))
    targets = Y[:, orders[-1]].tocsr()
    levels = []
    for i in reversed(range(len(starts))):
        targets.sort_indices()
        levels.append(Level(targets, starts[i]))
        if i > 0:  # a document belongs to a node if it belongs to any of its children
            parent_of_slot = np.repeat(np.arange(len(starts[i]) - 1), np.diff(starts[i]))
            up = sp.csr_matrix(
                (np.ones(len(parent_of_slot), np.float32), (np.arange(len(parent_of_slot)), parent_of_slot)),
                shape=(len(parent_of_slot), len(starts[i]) - 1),
            )
            targets = (targets @ up).tocsr()
    return levels[::-1], orders[-1].astype(np.int32)


def train_level(
    biased: Biased,
    level: Level,
    above: sp.csr_matrix | None,
    retrieved: sp.csr_matrix | None,
    negatives: Negatives,
    config: SolverConfig,
    seed: int,
    progress: Progress = SILENT,
    share: Share | None = None,
) -> list[Chunk]:
    """Train the classifiers of one level; return one chunk per parent.

    biased: CSR parts of the features with the bias as last column, and the number of columns. above: which documents
    belong to which parent; None if the root is the only parent. retrieved: which documents the matcher assigned to
    which parent.
    """
    members = None if above is None else above.tocsc()
    found = None if retrieved is None else retrieved.tocsc()
    blocks: list[Block] = []
    rows_of: list[Rows] = []
    for parent, (start, stop) in enumerate(pairwise(level.starts.tolist())):
        rows = np.arange(level.targets.shape[0], dtype=np.int32) if members is None else _column(members, parent)
        positives_only = np.zeros(len(rows), dtype=np.bool_)
        if found is not None:
            matched = _column(found, parent)
            rows = np.union1d(rows, matched).astype(np.int32)
            positives_only = ~np.isin(rows, matched) & (negatives == "man")
        rows_of.append((rows, positives_only))
        n_blocks = -(-(stop - start) // LANES)
        if above is None and stop - start >= _SHARED:
            n_blocks = max(2, n_blocks)  # the root is a single parent: two threads share its children
        bounds = np.linspace(start, stop, n_blocks + 1).astype(int).tolist()
        blocks += [(parent, first, end) for first, end in pairwise(bounds)]
    targets = (level.targets.indptr.astype(np.int64), level.targets.indices.astype(np.int32))
    scratch = threading.local()
    done = 0
    total = sum(len(rows_of[parent][0]) for parent, _, _ in blocks)
    lock = threading.Lock()

    def solve(block: Block) -> Chunk:
        nonlocal done
        if not hasattr(scratch, "features"):
            scratch.features = np.zeros(biased[3], dtype=np.int32)
        parent, first, end = block
        rows, positives_only = rows_of[parent]
        chunk = solve_block(
            biased[:3], rows, positives_only, targets, first, end - first, config, seed + first, scratch.features
        )
        with lock:
            done += len(rows)
            progress.step(done, total)
        return chunk

    # the largest first, so that no thread works alone on one at the end
    by_size = sorted(blocks, key=lambda block: -len(rows_of[block[0]][0]))
    weights = run(solve, by_size) if share is None else share(by_size, rows_of, targets, seed)
    solved = dict(zip(by_size, weights, strict=True))
    blocks_of: list[list[tuple[int, Chunk]]] = [[] for _ in rows_of]
    for parent, first, end in blocks:
        blocks_of[parent].append((first - int(level.starts[parent]), solved[parent, first, end]))
    sizes = np.diff(level.starts).tolist()
    return run(lambda parent: make_chunk(blocks_of[parent], sizes[parent], config.precision), range(len(sizes)))


def _column(matrix: sp.csc_matrix, column: int) -> NDArray[np.int32]:
    """Return the rows with a stored entry in one column, ascending."""
    return np.sort(matrix.indices[matrix.indptr[column] : matrix.indptr[column + 1]]).astype(np.int32)


def indicate(labels: NDArray[np.int32], width: int) -> sp.csr_matrix:
    """Return the (documents × width) matrix of ones at the labels of a ranking."""
    rows, places = np.nonzero(labels >= 0)
    return sp.csr_matrix((np.ones(len(rows), np.float32), (rows, labels[rows, places])), shape=(len(labels), width))


def add_bias(X: sp.csr_matrix, bias: float) -> Biased:
    """Return the CSR parts of X with a constant last column, and the number of columns."""
    n, n_features = X.shape
    indptr, indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    values = X.data.astype(np.float32, copy=False)
    if bias == 0:
        return indptr, indices, values, n_features
    indices, values = np.insert(indices, indptr[1:], n_features), np.insert(values, indptr[1:], bias)
    return indptr + np.arange(n + 1), indices, values, n_features + 1
