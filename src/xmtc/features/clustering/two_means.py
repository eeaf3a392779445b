"""Balanced 2-means over sparse or dense rows, on all threads.

Input: rows and splits. Output: members in the order of their clusters. Large nodes are split block by block, small ones
subtree by subtree; neither this nor the number of threads changes a byte. Independent of settings and trees.

A node's state is `sides` (0 left, 1 right, −1 neither yet) and `sums` (2 × columns): the sum of all members that have
a side, and of those on the right. A round has three steps: `_dot` multiplies members with the sums, `_halve` chooses
sides by score, `_move` updates the sums by those that changed sides. The left sum is the difference, so that after the
first rounds only the right sum changes and is read. No step visits all columns, which keeps small nodes of wide rows
cheap: a sum's squared length is the total of its own members' products with it. Sums are float64, added in the order of
members and never reassociated: steps in blocks (`_dot` by members, `_move` by columns) give the same bytes as whole
steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from xmtc.core.parallel import blocks, run
from xmtc.features.clustering.splits import Splits
from xmtc.features.select import nth_smallest

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

_WIDE_ENTRIES = 4_000_000  # nodes with more entries than this, and more than 1/64 of all, are split on their own
_BLOCK_ENTRIES = 200_000  # approximate entries of a block of members
_COLUMN_BLOCKS = 16


class Rows(NamedTuple):
    """The vectors, as rows of entries.

    Entry j of row i is `values[starts[i] + j]` at column `columns[column_starts[i] + j]`, columns ascending. A dense
    matrix is stored the same way, with one list of columns that all rows share.
    """

    values: NDArray[np.float32]
    starts: NDArray[np.int64]  # (rows + 1,)
    columns: NDArray[np.int32]
    column_starts: NDArray[np.int64]  # (rows + 1,)
    filled: NDArray[np.bool_]  # (rows,): not all zero


class Rule(NamedTuple):
    """When rounds end (always when no side changes), and how a cluster's centre is defined."""

    max_iterations: int
    tolerance: float  # minimum rise of the members' mean product with their centres to continue
    spherical: bool  # centres are normalised sums, else means


# reorders `order`, as `split_subtree` does for each of these lists of splits; no two lists have a member in common
Share = Callable[[Ints, list[Splits]], None]


def rows_of(vectors: sp.csr_matrix | NDArray) -> Rows:
    """Return the vectors as rows; copy only if the type or order differs."""
    if sp.issparse(vectors):
        matrix = sp.csr_matrix(vectors)
        if not matrix.has_sorted_indices:
            matrix = matrix.sorted_indices()
        starts = matrix.indptr.astype(np.int64, copy=False)
        columns = matrix.indices.astype(np.int32, copy=False)
        return Rows(matrix.data.astype(np.float32, copy=False), starts, columns, starts, np.diff(starts) > 0)
    dense = np.ascontiguousarray(vectors, dtype=np.float32)
    n, width = dense.shape
    starts = np.arange(n + 1, dtype=np.int64) * width
    shared = np.zeros(n + 1, dtype=np.int64)
    return Rows(dense.reshape(-1), starts, np.arange(width, dtype=np.int32), shared, (dense != 0).any(axis=1))


def make_splits(
    rows: Rows, n_columns: int, order: Ints, splits: Splits, seed: int, rule: Rule, share: Share | None = None
) -> None:
    """Reorder `order`, the rows to split, so that the left members of each split precede its cut.

    Two random members are a split's first centres. Each round scores member x by x·(c_right − c_left) and moves those
    with the smallest scores left, as many as the split specifies; a row of zeros scores 0, between the two. Members of
    a side keep their previous order, which also breaks ties.

    share: runs splits elsewhere; see `Share`. It gets the large splits first, one depth at a time, then the subtrees.
    """
    entries = int(np.diff(rows.starts)[order].sum())
    wide = max(_WIDE_ENTRIES, entries // 64) / max(1, entries) * len(order)
    large: list[list[Splits]] = []  # depth → splits on their own, so that the sides of each become separate tasks
    subtrees: list[Splits] = []
    stops: list[int] = []  # of the large splits above the next one
    i = 0
    while i < len(splits):
        start, _, stop = splits[i].tolist()
        while stops and stops[-1] <= start:
            stops.pop()
        if stop - start > wide or 2 * (stop - start) > len(order):
            if len(stops) == len(large):
                large.append([])
            large[len(stops)].append(splits[i : i + 1])
            stops.append(stop)
            i += 1
        else:
            # starts are ascending, so the subtree ends at the first split that starts after it
            end = int(np.searchsorted(splits[:, 0], stop))
            subtrees.append(splits[i:end])
            i = end
    for alone in large:
        if share is not None and len(alone) > 1:
            share(order, alone)
        else:
            for split in alone:
                run_splits(rows, n_columns, order, split, seed, rule)
    if share is not None:
        share(order, subtrees)
    else:
        run(lambda subtree: split_subtree(rows, order, subtree, seed, n_columns, rule), subtrees)


def run_splits(rows: Rows, n_columns: int, order: Ints, splits: Splits, seed: int, rule: Rule) -> None:
    """Run the splits of a subtree as `split_subtree` does; a single large split uses all threads."""
    if len(splits) == 1 and int(np.diff(rows.starts)[order[splits[0, 0] : splits[0, 2]]].sum()) > _WIDE_ENTRIES:
        _split_wide(rows, n_columns, order, splits[0].tolist(), seed, rule)
    else:
        split_subtree(rows, order, splits, seed, n_columns, rule)


def _split_wide(rows: Rows, n_columns: int, order: Ints, split: list[int], seed: int, rule: Rule) -> None:
    """Split one node on all threads, exactly as `split_subtree` does on one."""
    start, cut, stop = split
    members = order[start:stop]
    seeds = np.empty(len(members), dtype=np.int32)
    seed_pair(rows, members, seed, start, seeds)
    sums = np.zeros((2, n_columns))
    with_all, with_right = np.empty(len(members)), np.empty(len(members))
    own_blocks = member_blocks(rows, members)

    def dot(vector: Floats, dots: Floats) -> None:
        run(lambda block: _dot(rows, members[slice(*block)], vector, dots[slice(*block)]), own_blocks)

    def choose(turn: int, sides: Ints, chosen: Ints) -> float:
        if turn < 2:
            dot(sums[0], with_all)
        dot(sums[1], with_right)
        return float(_halve(with_all, with_right, sides, cut - start, rule.spherical, chosen))

    def move(sides: Ints, chosen: Ints) -> None:
        run(lambda block: _move(rows, members, sides, chosen, sums, *block), column_blocks(n_columns))

    _part(members, settle(seeds, choose, move, rule))


def settle(
    seeds: Ints, choose: Callable[[int, Ints, Ints], float], move: Callable[[Ints, Ints], None], rule: Rule
) -> Ints:
    """Run rounds until the end and return each member's cluster; `seeds` has those of the first centres, else −1.

    `choose(turn, sides, chosen)` writes the new clusters into `chosen` and returns the mean product of members with
    their centres; `move(sides, chosen)` updates the centres from one to the other.
    """
    chosen = seeds
    move(np.full_like(seeds, -1), chosen)
    before = -np.inf
    for turn in range(rule.max_iterations):
        sides, chosen = chosen, np.empty_like(seeds)
        likeness = choose(turn, sides, chosen)
        if likeness - before < rule.tolerance or np.array_equal(sides, chosen):
            break
        move(sides, chosen)
        before = likeness
    return chosen


def member_blocks(rows: Rows, members: Ints) -> list[tuple[int, int]]:
    """Split members into blocks with about equally many entries."""
    entries = int(np.diff(rows.starts)[members].sum())
    return blocks(len(members), max(1, _BLOCK_ENTRIES * len(members) // max(1, entries)))


def column_blocks(n_columns: int) -> list[tuple[int, int]]:
    """Split columns into blocks."""
    return blocks(n_columns, -(-n_columns // _COLUMN_BLOCKS))


@njit(nogil=True, cache=True)
def split_subtree(rows: Rows, order: Ints, splits: Splits, seed: int, n_columns: int, rule: Rule) -> None:
    """Run the splits of a subtree, parents first.

    Afterwards, `order[start:cut]` are the members of each split's left side and `order[cut:stop]` those of its right.
    """
    sums = np.zeros((2, n_columns), np.float64)
    for start, cut, stop in splits:
        members = order[start:stop]
        with_all, with_right = np.empty(len(members), np.float64), np.empty(len(members), np.float64)
        sides, chosen = np.full(len(members), -1, np.int32), np.empty(len(members), np.int32)
        seed_pair(rows, members, seed, start, chosen)
        _move(rows, members, sides, chosen, sums, 0, n_columns)
        before = -np.inf
        for turn in range(rule.max_iterations):
            for i in range(len(sides)):  # numba takes seconds to compile the checks of an assignment to a slice
                sides[i] = chosen[i]
            if turn < 2:  # first the seeds alone, then all: after that the sum of all is constant
                _dot(rows, members, sums[0], with_all)
            _dot(rows, members, sums[1], with_right)
            likeness = _halve(with_all, with_right, sides, cut - start, rule.spherical, chosen)
            if likeness - before < rule.tolerance or not _move(rows, members, sides, chosen, sums, 0, n_columns):
                break
            before = likeness
        for member in members:
            for column in entries(rows, member)[1]:
                sums[:, column] = 0
        _part(members, chosen)


@njit(nogil=True, cache=True)
def seed_pair(rows: Rows, members: Ints, seed: int, start: int, sides: Ints) -> None:
    """Put one random member on side 0, another on side 1, the rest on none; zero rows only if unavoidable.

    The choice depends only on the seed and on the node's position and size, so nodes may be split in any order.
    """
    candidates = np.flatnonzero(rows.filled[members])
    if len(candidates) < 2:
        candidates = np.arange(len(members))
    n = np.uint64(len(candidates))
    key = _mix(_mix(_mix(np.uint64(seed)) ^ np.uint64(start)) ^ np.uint64(len(members)))
    left = key % n
    right = (left + np.uint64(1) + _mix(key) % (n - np.uint64(1))) % n
    sides[:] = -1
    sides[candidates[left]] = 0
    sides[candidates[right]] = 1


@njit(nogil=True, cache=True)
def _mix(key: np.uint64) -> np.uint64:
    """Return the next number of the splitmix64 generator."""
    key += np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@njit(nogil=True, cache=True)
def _dot(rows: Rows, members: Ints, vector: Floats, dots: Floats) -> None:
    """Set `dots[i]` to the product of member i with a vector."""
    for i in range(len(members)):
        values, columns = entries(rows, members[i])
        product = 0.0
        for j in range(len(values)):
            product += values[j] * vector[columns[j]]
        dots[i] = product


@njit(nogil=True, cache=True)
def _halve(with_all: Floats, with_right: Floats, sides: Ints, n_left: int, spherical: bool, chosen: Ints) -> float:
    """Choose the `n_left` members with the smallest x·(c_right − c_left) for the left, the others for the right.

    Among members with equal scores, the earlier go left. `with_all` and `with_right` are the members' products with the
    two sums. Returns the mean product of members with the centre of their new side.
    """
    n = len(sides)
    with_left = with_all - with_right
    left_scale = _scale(with_left, sides, 0, spherical)
    right_scale = _scale(with_right, sides, 1, spherical)
    scores = with_right * right_scale - with_left * left_scale
    highest = nth_smallest(scores, n_left - 1)
    ties = n_left - np.sum(scores < highest)  # how many members with exactly this score go left
    likeness = 0.0
    for i in range(n):
        chosen[i] = scores[i] > highest or (scores[i] == highest and ties <= 0)
        ties -= scores[i] == highest
        likeness += with_right[i] * right_scale if chosen[i] == 1 else with_left[i] * left_scale
    return likeness / n


@njit(nogil=True, cache=True)
def _scale(products: Floats, sides: Ints, side: int, spherical: bool) -> float:
    """Return the factor from a side's sum to its centre; 0 for the sum of zero rows."""
    square = 0.0
    size = 0
    for i in range(len(sides)):
        if sides[i] == side:
            square += products[i]
            size += 1
    if square <= 0:
        return 0.0
    return 1 / np.sqrt(square) if spherical else 1 / size


@njit(nogil=True, cache=True)
def _move(rows: Rows, members: Ints, sides: Ints, chosen: Ints, sums: Floats, first: int, last: int) -> bool:
    """Update columns first … last − 1 of both sums from `sides` to `chosen`; return whether any member changed."""
    changed = False
    for i in range(len(members)):
        if sides[i] == chosen[i]:
            continue
        changed = True
        values, columns = entries_within(rows, members[i], first, last)
        if sides[i] < 0:
            for j in range(len(values)):
                sums[0, columns[j]] += values[j]
        if sides[i] == 1:
            for j in range(len(values)):
                sums[1, columns[j]] -= values[j]
        elif chosen[i] == 1:
            for j in range(len(values)):
                sums[1, columns[j]] += values[j]
    return changed


@njit(nogil=True, cache=True)
def entries(rows: Rows, row: int) -> tuple[Floats, Ints]:
    """Return the values and columns of a row."""
    start, length = rows.starts[row], rows.starts[row + 1] - rows.starts[row]
    shift = rows.column_starts[row]
    return rows.values[start : start + length], rows.columns[shift : shift + length]


@njit(nogil=True, cache=True)
def entries_within(rows: Rows, row: int, first: int, last: int) -> tuple[Floats, Ints]:
    """Return the values and columns of a row from column `first` to before `last`."""
    values, columns = entries(rows, row)
    if len(columns) and (columns[0] < first or columns[-1] >= last):
        inside = slice(np.searchsorted(columns, first), np.searchsorted(columns, last))
        return values[inside], columns[inside]
    return values, columns


@njit(nogil=True, cache=True)
def _part(members: Ints, sides: Ints) -> None:
    """Move the members of side 0 before those of side 1, in place; each side keeps its order."""
    right = members[sides == 1]
    left = members[sides == 0]
    for i in range(len(left)):
        members[i] = left[i]
    for i in range(len(right)):
        members[len(left) + i] = right[i]
