"""Train the classifiers of a tree's nodes in tasks: each solves some blocks of a level and reads only their rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core import parallel
from xmtc.core.partition import LabelTree
from xmtc.core.stages import finish_stage, read_stage
from xmtc.linear.chunks import Chunk, LinearTree
from xmtc.linear.lanes import LANES
from xmtc.linear.solver import solve_block
from xmtc.linear.tree import Biased, Block, Rows, Targets, train_tree
from xmtc.methods.linear.tasks.rows import read_rows, without_bias
from xmtc.methods.linear.tasks.work import Job, Work, group

_TASKS = 64  # approximate number per level: enough to distribute, few enough for low overhead
_PROCESS = 200 << 20  # bytes used by Python, numba and the kernels


def train_nodes(work: Work, biased: Biased, Y: sp.csr_matrix, tree: LabelTree, name: str, seed: int) -> LinearTree:
    """Return the result of `train_tree` for the matrix on disk; the blocks of each level are solved in tasks."""
    config = work.config
    n_levels = len(tree.parents)

    def share(blocks: list[Block], rows_of: list[Rows], targets: Targets, level_seed: int) -> list[Chunk]:
        depth = level_seed - seed
        stage = f"{name}/level-{depth}"
        finish_stage(work.folder, f"{stage}/plan", lambda: _describe(blocks, rows_of, targets))
        sizes = [len(rows_of[parent][0]) for parent, _, _ in blocks]
        tasks = group(sizes, -(-sum(sizes) // _TASKS))
        step = f"training level {depth + 1} of {n_levels}"
        stages = [(f"{stage}/blocks/{parts[0]}", parts) for parts in tasks]
        work.run(step, solve_task, stages, level_seed, memory=task_memory(max(sizes), biased[3]))
        return [chunk for parts in tasks for chunk in _read_chunks(work.folder, f"{stage}/blocks/{parts[0]}")]

    if config.tree.negatives == "tfn":  # only the other kinds of negatives read X itself
        X = sp.csr_matrix((Y.shape[0], biased[3] - (config.solver.bias != 0)))
    else:
        X = without_bias(biased, config.solver.bias)
    return train_tree(X, Y, tree, config.tree, config.solver, config.search, seed, work.progress, biased, share)


def task_memory(n_documents: int, n_features: int) -> int:
    """Return the bytes that a task takes for a node's documents: weights and dual variables of LANES children."""
    return _PROCESS + 4 * LANES * (n_documents + n_features)


def solve_task(job: Job) -> None:
    """Solve some blocks of a level."""
    plan = read_stage(job.folder, f"{job.stage.rpartition('/blocks/')[0]}/plan", "r+")
    indptr, indices, data, width = read_rows(job.folder)

    def solve(number: int) -> Chunk:
        parent, first, end = plan["blocks"][number].tolist()
        mine = slice(*plan["row_starts"][parent : parent + 2].tolist())
        return solve_block(
            (indptr, indices, data),
            plan["rows"][mine],
            plan["positives_only"][mine],
            (plan["target_starts"], plan["targets"]),
            first,
            end - first,
            job.config.solver,
            job.seed + first,
            np.zeros(width, dtype=np.int32),
        )

    solved = parallel.run(solve, job.parts)
    arrays = {name: np.concatenate(parts) for name, parts in zip(Chunk._fields, zip(*solved, strict=True), strict=True)}
    sizes = np.array([(len(chunk.features), len(chunk.weights)) for chunk in solved])
    finish_stage(job.folder, job.stage, lambda: {**arrays, "sizes": sizes})


def _describe(blocks: list[Block], rows_of: list[Rows], targets: Targets) -> dict[str, NDArray]:
    """Return everything that the tasks of a level read, except the matrix."""
    return {
        "blocks": np.array(blocks, dtype=np.int64),
        "rows": np.concatenate([rows for rows, _ in rows_of]),
        "positives_only": np.concatenate([flags for _, flags in rows_of]),
        "row_starts": np.cumsum([0, *(len(rows) for rows, _ in rows_of)]),
        "target_starts": targets[0],
        "targets": targets[1],
    }


def _read_chunks(folder: Path, stage: str) -> list[Chunk]:
    """Return the chunks of a task's blocks, memory-mapped."""
    found = read_stage(folder, stage, "r+")
    rows, entries = (np.cumsum([0, *column]) for column in found["sizes"].T.tolist())
    return [
        Chunk(
            found["features"][rows[i] : rows[i + 1]],
            found["starts"][rows[i] + i : rows[i + 1] + i + 1],
            found["children"][entries[i] : entries[i + 1]],
            found["weights"][entries[i] : entries[i + 1]],
        )
        for i in range(len(rows) - 1)
    ]
