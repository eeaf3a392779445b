"""Compute label vectors and label clusters in tasks: vectors by blocks of labels, clusters by subtrees.

One task adds up a label's documents in order, so the sums are byte-identical to those computed in memory. The process
that runs the tasks makes the first split of a tree, on all its threads.
"""

from __future__ import annotations

from itertools import count

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core import parallel
from xmtc.core.partition import LabelTree
from xmtc.core.stages import finish_stage, read_stage
from xmtc.features.clustering import label_tree, split_part
from xmtc.features.label_vectors import aggregate, plan_labels
from xmtc.methods.linear.tasks.rows import read_rows
from xmtc.methods.linear.tasks.work import Job, Work, group

_TASK = 50_000_000  # approximate number of entries that a task adds up: seconds of work
_LABELS, _VECTORS = "labels", "vectors"
_PLAN = ("starts", "documents", "weights", "bounds", "work")


def write_vectors(work: Work, Y: sp.csr_matrix) -> sp.csr_matrix:
    """Write the vectors of all labels, as `pifa` computes them, and memory-map them."""
    indptr, _, _, width = read_rows(work.folder)
    weighting = work.config.cluster.weighting
    plan = finish_stage(
        work.folder, _LABELS, lambda: dict(zip(_PLAN, plan_labels(Y, np.diff(indptr), weighting), strict=True))
    )
    tasks = group(plan["work"].tolist(), _TASK)
    work.run("label vectors", vectors_task, [(f"vectors-of/{parts[0]}", parts) for parts in tasks])

    def join() -> dict[str, NDArray]:
        found = [read_stage(work.folder, f"vectors-of/{parts[0]}") for parts in tasks]
        sizes, columns, values = (
            np.concatenate([part[name] for part in found]) for name in ("sizes", "columns", "values")
        )
        return {"indptr": np.concatenate([[0], np.cumsum(sizes)]), "indices": columns, "data": values}

    finish_stage(work.folder, _VECTORS, join)
    return _vectors(Job(work.folder, "", [], work.config), Y.shape[1], width)


def vectors_task(job: Job) -> None:
    """Write the vectors of some blocks of labels."""
    plan = read_stage(job.folder, _LABELS, "r+")
    indptr, indices, data, width = read_rows(job.folder)
    biased = job.config.solver.bias != 0
    n_features = width - biased
    keep = job.config.cluster.top or n_features
    bounds = plan["bounds"]

    def add(block: int) -> tuple[NDArray, NDArray, NDArray]:
        own = plan["starts"][bounds[block] : bounds[block + 1] + 1]
        found: tuple[NDArray, NDArray, NDArray] = aggregate(
            own, plan["documents"], plan["weights"], indptr, indptr[1:] - biased, indices, data, n_features, keep
        )
        return found

    sizes, columns, values = (np.concatenate(arrays) for arrays in zip(*parallel.run(add, job.parts), strict=True))
    finish_stage(job.folder, job.stage, lambda: {"sizes": sizes, "columns": columns, "values": values})


def cluster(work: Work, vectors: sp.csr_matrix, name: str, seed: int) -> LabelTree:
    """Return `label_tree` of the vectors; all splits but the first run in tasks."""
    waves = count()  # the large splits of one depth, then those of the next depth, and last all subtrees below

    def share(order: NDArray[np.integer], subtrees: list[NDArray[np.int64]]) -> None:
        wave = f"{name}/splits-{next(waves)}"
        bounds = np.cumsum([0, *map(len, subtrees)])
        plan = {"order": order.astype(np.int32), "splits": np.concatenate([*subtrees, np.empty((0, 3), np.int64)])}
        finish_stage(work.folder, f"{wave}/plan", lambda: {**plan, "bounds": bounds})
        stages = [(f"{wave}/{i}", [i]) for i in range(len(subtrees))]
        work.run("clustering labels", cluster_task, stages, seed)
        for i, splits in enumerate(subtrees):
            order[int(splits[0, 0]) : int(splits[0, 2])] = read_stage(work.folder, f"{wave}/{i}")["order"]

    work.progress.stage("clustering labels")
    return label_tree(vectors, work.config.cluster, seed, share)


def cluster_task(job: Job) -> None:
    """Run the splits of one subtree of the labels, or one large split."""
    plan = read_stage(job.folder, f"{job.stage.rpartition('/')[0]}/plan", "r+")
    (subtree,) = job.parts
    splits = plan["splits"][slice(*plan["bounds"][subtree : subtree + 2].tolist())]
    order = np.array(plan["order"])
    _, _, _, width = read_rows(job.folder)
    split_part(_vectors(job, len(order), width), order, np.array(splits), job.seed, job.config.cluster)
    first, last = int(splits[0, 0]), int(splits[0, 2])
    finish_stage(job.folder, job.stage, lambda: {"order": order[first:last]})


def _vectors(job: Job, n_labels: int, width: int) -> sp.csr_matrix:
    """Memory-map the label vectors."""
    found = read_stage(job.folder, _VECTORS, "r+")
    shape = (n_labels, width - (job.config.solver.bias != 0))
    vectors = sp.csr_matrix(shape)
    vectors.indptr, vectors.indices, vectors.data = (found[name] for name in ("indptr", "indices", "data"))
    vectors.has_sorted_indices = True
    return vectors
