"""Balanced K-means for any K: capacity-limited assignment, largest margin first (docs/CONVENTIONS.md, "Clustering").

Input: rows and a number of clusters. Output: each row's cluster. Holds rows × K products and columns × K sums, so use
it for moderate K. Independent of settings.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from xmtc.core.parallel import run
from xmtc.features.clustering.two_means import (
    Floats,
    Ints,
    Rows,
    Rule,
    column_blocks,
    entries,
    entries_within,
    member_blocks,
    settle,
)


def assign_clusters(rows: Rows, n_columns: int, n_clusters: int, seed: int, rule: Rule) -> NDArray[np.int32]:
    """Return each row's cluster; the first centres are random rows, non-zero if there are enough of them."""
    n = len(rows.filled)
    filled = np.flatnonzero(rows.filled)
    candidates = filled if len(filled) >= n_clusters else np.arange(n)
    seeds = np.full(n, -1, dtype=np.int32)
    seeds[np.random.default_rng(seed).permutation(candidates)[:n_clusters]] = np.arange(n_clusters)
    sums = np.zeros((n_columns, n_clusters))
    dots = np.empty((n, n_clusters))

    def choose(turn: int, sides: Ints, chosen: Ints) -> float:
        run(lambda block: _dot(rows, *block, sums, dots), member_blocks(rows, np.arange(n)))
        return float(_fill(dots, sides, rule.spherical, chosen))

    def move(sides: Ints, chosen: Ints) -> None:
        run(lambda block: _move(rows, sides, chosen, sums, *block), column_blocks(n_columns))

    return settle(seeds, choose, move, rule).astype(np.int32, copy=False)


@njit(nogil=True, cache=True)
def _dot(rows: Rows, first: int, last: int, sums: Floats, dots: Floats) -> None:
    """Set `dots[i]` to the products of row i with every cluster's sum, for rows first … last − 1."""
    for i in range(first, last):
        values, columns = entries(rows, i)
        own = dots[i]
        own[:] = 0
        for j in range(len(values)):
            value, at = values[j], sums[columns[j]]
            for cluster in range(len(own)):
                own[cluster] += value * at[cluster]


@njit(nogil=True, cache=True)
def _fill(dots: Floats, sides: Ints, spherical: bool, chosen: Ints) -> float:
    """Choose for each row the nearest cluster with room, rows with the largest margin first.

    The margin is that of the nearest cluster over the next one. n mod K clusters take ⌈n/K⌉ rows, the others ⌊n/K⌋,
    so that none is empty. Ties go to the earlier row and the earlier cluster. Returns the rows' mean product with
    their centres.
    """
    n, n_clusters = len(dots), dots.shape[1]
    squares, sizes = np.zeros(n_clusters), np.zeros(n_clusters)
    for i in range(n):
        if sides[i] >= 0:
            squares[sides[i]] += dots[i, sides[i]]
            sizes[sides[i]] += 1
    scales, shifts = np.zeros(n_clusters), np.zeros(n_clusters)
    for cluster in range(n_clusters):
        if squares[cluster] > 0:
            scales[cluster] = 1 / (np.sqrt(squares[cluster]) if spherical else sizes[cluster])
            if not spherical:  # x·c − |c|²/2 orders centres as −|x − c|² does
                shifts[cluster] = squares[cluster] * scales[cluster] ** 2 / 2
    near = dots * scales - shifts
    margins = np.empty(n)
    for i in range(n):
        best = second = -np.inf
        for cluster in range(n_clusters):
            if near[i, cluster] > best:
                best, second = near[i, cluster], best
            elif near[i, cluster] > second:
                second = near[i, cluster]
        margins[i] = best - second
    taken = np.zeros(n_clusters, np.int64)
    least, larger = n // n_clusters, n % n_clusters  # `larger` clusters may take one row more than `least`
    likeness = 0.0
    for i in np.argsort(-margins, kind="mergesort"):
        nearest = -1
        for cluster in range(n_clusters):
            has_room = taken[cluster] < least or (taken[cluster] == least and larger > 0)
            if has_room and (nearest < 0 or near[i, cluster] > near[i, nearest]):
                nearest = cluster
        larger -= taken[nearest] == least
        taken[nearest] += 1
        chosen[i] = nearest
        likeness += dots[i, nearest] * scales[nearest]
    return likeness / n


@njit(nogil=True, cache=True)
def _move(rows: Rows, sides: Ints, chosen: Ints, sums: Floats, first: int, last: int) -> None:
    """Update columns first … last − 1 of the clusters' sums from `sides` to `chosen`."""
    for i in range(len(sides)):
        if sides[i] != chosen[i]:
            values, columns = entries_within(rows, i, first, last)
            for j in range(len(values)):
                if sides[i] >= 0:
                    sums[columns[j], sides[i]] -= values[j]
                sums[columns[j], chosen[i]] += values[j]
