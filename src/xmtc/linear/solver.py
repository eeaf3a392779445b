"""One-vs-all squared-hinge classifiers for the children of one tree node, by dual coordinate descent.

For every label: min ½‖w − w₀‖² + C Σ max(0, 1 − y w·x)² (Hsieh et al. 2008; docs/CONVENTIONS.md, "Solver"), where w₀
is zero except for the bias (`offset`), and C may depend on the label's number of documents (`rare`). Up to `LANES`
siblings that share their rows are solved together (see lanes.py). Input: rows of a feature matrix whose last column is
the bias. Output: the weights that remain after pruning, sorted by feature. Independent of trees.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.search_space import Tunable
from xmtc.linear.chunks import Chunk, Precision
from xmtc.linear.lanes import WIDTHS, dual_step

Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]

_USUAL = 100  # number of documents at which a label's C is as set, for any `rare`


class SolverConfig(Settings):
    """How the classifiers are trained."""

    C: Annotated[float, Tunable(0.25, 8.0, log=True)] = Field(
        1.0, gt=0, description="weight of the loss relative to the regulariser"
    )
    rare: Annotated[float, Tunable(0.0, 0.6)] = Field(
        0.0,
        ge=0,
        le=1,
        description="how much C rises for labels and clusters with few documents and falls for those with many: "
        "C · (100 / documents)^rare; 0: the same for all",
    )
    tolerance: float = Field(0.1, gt=0, description="stop when the projected gradients of all labels are this close")
    passes: int = Field(10, ge=1, description="maximum passes over the rows")
    bias: float = Field(1.0, ge=0, description="value of the constant feature; 0 for none")
    offset: float = Field(
        0.0,
        description="score to which the regulariser pulls the bias: 0, as in liblinear; −1: a label is absent unless "
        "words support it",
    )
    prune: float = Field(0.1, ge=0, description="weights smaller than this are dropped")
    precision: Precision = Field("float16", description="of the weights that are kept: float16 or float32")


def solve_block(
    X: tuple[Longs, Ints, Floats],
    rows: Ints,
    positives_only: Flags,
    targets: tuple[Longs, Ints],
    first: int,
    n_lanes: int,
    config: SolverConfig,
    seed: int,
    scratch: Ints,
) -> Chunk:
    """Train the siblings first … first + n_lanes − 1 on `rows`; they are the children 0 … n_lanes − 1 of the result.

    X: CSR parts; the last feature is the bias if config.bias > 0; there are `len(scratch)` features in all.
    targets: CSR indptr and indices of the (all rows × siblings) matrix; a stored entry is a positive.
    positives_only[i]: row i is used as a positive, never as a negative (a row that the matcher did not retrieve).
    scratch: zeros, one per feature; returned as zeros.
    """
    return Chunk(
        *_solve(
            *X,
            rows,
            positives_only,
            *targets,
            first,
            n_lanes,
            next(width for width in WIDTHS if width >= n_lanes),
            np.float32(0.5 / config.C),
            config.rare,
            np.float32(config.tolerance),
            config.passes,
            np.float32(config.bias),
            np.float32(config.offset),
            np.float32(config.prune),
            np.uint64(seed),
            scratch,
        )
    )


@njit(nogil=True, cache=True)
def _solve(
    indptr: Longs,
    indices: Ints,
    values: Floats,
    rows: Ints,
    positives_only: Flags,
    target_ptr: Longs,
    targets: Ints,
    first: int,
    n_lanes: int,
    width: int,
    shift: np.float32,
    rare: float,
    tolerance: np.float32,
    passes: int,
    bias: np.float32,
    offset: np.float32,
    prune: np.float32,
    seed: np.uint64,
    scratch: Ints,
) -> tuple[Ints, Longs, NDArray[np.uint8], Floats]:
    n_features = len(scratch)
    if len(rows) == len(indptr) - 1:  # the root: all rows in order, no need to copy them
        row_ptr, row_features, row_values = indptr, indices, values
        features = np.arange(n_features).astype(np.int32)
    else:
        row_ptr, row_features, row_values, features = _gather(indptr, indices, values, rows, bias, scratch)
    lane_ptr, lanes, n_positives, n_negatives = _positives(rows, positives_only, target_ptr, targets, first, n_lanes)

    W = _zeros(len(features), width)
    active = np.zeros(width, dtype=np.float32)
    shifts = np.full(width, shift, dtype=np.float32)
    for lane in range(n_lanes):
        if rare > 0 and n_positives[lane] > 0:
            shifts[lane] = shift * (n_positives[lane] / _USUAL) ** rare
        if n_positives[lane] > 0 and n_negatives[lane] > 0:
            active[lane] = 1
            if bias > 0:
                W[len(features) - 1, lane] = offset / bias
        elif bias > 0:  # only one class: a constant score of +1 or −1
            W[len(features) - 1, lane] = (1 if n_positives[lane] > 0 else -1) / bias
    _descend(
        row_ptr, row_features, row_values, lane_ptr, lanes, positives_only, active, W, shifts, tolerance, passes, seed
    )
    return _prune(W, features, n_lanes, prune)


@njit(nogil=True, cache=True)
def _descend(
    row_ptr: Longs,
    row_features: Ints,
    row_values: Floats,
    lane_ptr: Longs,
    lanes: NDArray[np.uint8],
    positives_only: Flags,
    active: Floats,
    W: Floats,
    shifts: Floats,
    tolerance: np.float32,
    passes: int,
    seed: np.uint64,
) -> None:
    """Iterate over the rows in random order until the projected gradients of all lanes are within `tolerance`."""
    n = len(row_ptr) - 1
    width = len(active)
    alpha = _zeros(n, width)
    norms = np.empty(n, dtype=np.float32)
    for i in range(n):
        norm = np.float32(0)
        for p in range(row_ptr[i], row_ptr[i + 1]):
            norm += row_values[p] * row_values[p]
        norms[i] = norm
    order = np.arange(n)
    signs = np.zeros(width, dtype=np.float32)
    highest = np.empty(width, dtype=np.float32)
    lowest = np.empty(width, dtype=np.float32)
    state = seed * np.uint64(2) + np.uint64(1)
    for _ in range(passes):
        highest[:] = -np.inf
        lowest[:] = np.inf
        for q in range(n):
            # xorshift and Fisher–Yates: the same order on every machine and numba version
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            other = q + np.int64(state % np.uint64(n - q))
            i = order[other]
            order[other] = order[q]
            order[q] = i
            for lane in range(width):
                signs[lane] = 0 if positives_only[i] else -active[lane]
            for p in range(lane_ptr[i], lane_ptr[i + 1]):
                signs[lanes[p]] = active[lanes[p]]
            dual_step(
                row_features, row_values, row_ptr[i], row_ptr[i + 1], W, alpha, i, signs, shifts, norms[i],
                highest, lowest,
            )  # fmt: skip
        gap = np.float32(0)
        for lane in range(width):
            if active[lane] != 0:
                gap = max(gap, highest[lane] - lowest[lane])
        if gap <= tolerance:
            break


@njit(nogil=True, cache=True)
def _zeros(n: int, width: int) -> Floats:
    """Return zeros whose rows are aligned to cache lines: a vector across two lines costs twice as much."""
    flat = np.zeros(n * width + 16, dtype=np.float32)
    skip = -(flat.ctypes.data // 4) % 16
    return flat[skip : skip + n * width].reshape(n, width)


@njit(nogil=True, cache=True)
def _gather(
    indptr: Longs, indices: Ints, values: Floats, rows: Ints, bias: np.float32, scratch: Ints
) -> tuple[Longs, Ints, Floats, Ints]:
    """Copy some rows, with features renumbered to those that occur; the bias, if any, stays last."""
    n_values = 0
    for i in rows:
        n_values += indptr[i + 1] - indptr[i]
    found = np.empty(min(n_values + 1, len(scratch)), dtype=np.int32)
    n_found = 0
    for i in rows:
        for p in range(indptr[i], indptr[i + 1]):
            if scratch[indices[p]] == 0:
                scratch[indices[p]] = 1
                found[n_found] = indices[p]
                n_found += 1
    if len(rows) == 0 and bias > 0:
        found[0] = len(scratch) - 1
        n_found = 1
    features = found[:n_found]
    if n_found > len(scratch) // 64:  # scanning all features is faster than sorting many
        n_found = 0
        for feature in range(len(scratch)):
            if scratch[feature] != 0:
                features[n_found] = feature
                n_found += 1
    else:
        features = np.sort(features)
    for local in range(n_found):
        scratch[features[local]] = local
    row_ptr = np.zeros(len(rows) + 1, dtype=indptr.dtype)
    row_features = np.empty(n_values, dtype=np.int32)
    row_values = np.empty(n_values, dtype=np.float32)
    at = 0
    for r in range(len(rows)):
        for p in range(indptr[rows[r]], indptr[rows[r] + 1]):
            row_features[at] = scratch[indices[p]]
            row_values[at] = values[p]
            at += 1
        row_ptr[r + 1] = at
    for local in range(n_found):
        scratch[features[local]] = 0
    return row_ptr, row_features, row_values, features


@njit(nogil=True, cache=True)
def _positives(
    rows: Ints, positives_only: Flags, target_ptr: Longs, targets: Ints, first: int, n_lanes: int
) -> tuple[Longs, NDArray[np.uint8], Longs, Longs]:
    """Return the lanes for which each row is a positive, and the number of positives and negatives per lane."""
    lane_ptr = np.zeros(len(rows) + 1, dtype=np.int64)
    n_positives = np.zeros(n_lanes, dtype=np.int64)
    n_full = 0
    full_positives = np.zeros(n_lanes, dtype=np.int64)
    size = 0
    for i in rows:
        size += target_ptr[i + 1] - target_ptr[i]
    lanes = np.empty(size, dtype=np.uint8)
    at = 0
    for r in range(len(rows)):
        if not positives_only[r]:
            n_full += 1
        for p in range(target_ptr[rows[r]], target_ptr[rows[r] + 1]):
            lane = targets[p] - first
            if 0 <= lane < n_lanes:
                lanes[at] = lane
                at += 1
                n_positives[lane] += 1
                if not positives_only[r]:
                    full_positives[lane] += 1
        lane_ptr[r + 1] = at
    return lane_ptr, lanes[:at], n_positives, n_full - full_positives


@njit(nogil=True, cache=True)
def _prune(W: Floats, features: Ints, n_lanes: int, prune: np.float32) -> tuple[Ints, Longs, NDArray[np.uint8], Floats]:
    """Keep the weights with an absolute value of at least `prune`, and the features that have any."""
    n_entries = 0
    n_kept = 0
    for f in range(len(features)):
        before = n_entries
        for lane in range(n_lanes):
            if W[f, lane] != 0 and abs(W[f, lane]) >= prune:
                n_entries += 1
        if n_entries > before:
            n_kept += 1
    kept = np.empty(n_kept, dtype=np.int32)
    starts = np.zeros(n_kept + 1, dtype=np.int64)
    lanes = np.empty(n_entries, dtype=np.uint8)
    weights = np.empty(n_entries, dtype=np.float32)
    at = 0
    row = 0
    for f in range(len(features)):
        before = at
        for lane in range(n_lanes):
            if W[f, lane] != 0 and abs(W[f, lane]) >= prune:
                lanes[at] = lane
                weights[at] = W[f, lane]
                at += 1
        if at > before:
            kept[row] = features[f]
            row += 1
            starts[row] = at
    return kept, starts, lanes, weights
