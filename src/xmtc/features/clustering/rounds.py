"""Rounds of balanced k-means on all threads: wide nodes cut into blocks, narrow ones a subtree a task.

Enter rows and a plan of splits; leave members in the order of their clusters. Neither the number of threads nor what
counts as wide changes a byte. Knows no settings and no trees.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xmtc.core.parallel import blocks, run
from xmtc.features.clustering import kernels
from xmtc.features.clustering.kernels import Floats, Ints, Rows, Rule
from xmtc.features.clustering.plan import Nodes

_WIDE_ENTRIES = 4_000_000  # nodes with more entries than this, and than a 64th of all, are cut into blocks
_BLOCK_ENTRIES = 200_000  # entries of a block of members, about
_COLUMN_BLOCKS = 16


def split(rows: Rows, n_columns: int, order: Ints, nodes: Nodes, seed: int, rule: Rule) -> None:
    """Carry out a plan: reorder `order`, the rows to split, so that each node's left members precede its cut.

    Members of a side keep the order in which they came, and ties go by it.
    """
    entries = int(np.diff(rows.starts)[order].sum())
    wide = max(_WIDE_ENTRIES, entries // 64) / max(1, entries) * len(order)
    subtrees = []
    i = 0
    while i < len(nodes):
        start, cut, stop = nodes[i].tolist()
        if stop - start > wide:
            _split_wide(rows, n_columns, order, (start, cut, stop), seed, rule)
            i += 1
        elif 2 * (stop - start) > len(order):  # alone, so that its two sides are tasks of their own
            kernels.split_nodes(rows, order, nodes[i : i + 1], seed, n_columns, rule)
            i += 1
        else:
            # starts never fall along a plan, so the subtree ends where a node starts behind it
            end = int(np.searchsorted(nodes[:, 0], stop))
            subtrees.append(nodes[i:end])
            i = end
    run(lambda subtree: kernels.split_nodes(rows, order, subtree, seed, n_columns, rule), subtrees)


def _split_wide(rows: Rows, n_columns: int, order: Ints, node: tuple[int, int, int], seed: int, rule: Rule) -> None:
    """Split one node on all threads, exactly as `kernels.split_nodes` does on one."""
    start, cut, stop = node
    members = order[start:stop]
    seeds = np.empty(len(members), dtype=np.int32)
    kernels.seed_pair(rows, members, seed, start, seeds)
    sums = np.zeros((2, n_columns))
    with_all, with_right = np.empty(len(members)), np.empty(len(members))
    cuts = member_blocks(rows, members)

    def dot(vector: Floats, out: Floats) -> None:
        run(lambda block: kernels.dot(rows, members[slice(*block)], vector, out[slice(*block)]), cuts)

    def choose(turn: int, sides: Ints, chosen: Ints) -> float:
        if turn < 2:
            dot(sums[0], with_all)
        dot(sums[1], with_right)
        return float(kernels.halve(with_all, with_right, sides, cut - start, rule.spherical, chosen))

    def move(sides: Ints, chosen: Ints) -> None:
        run(lambda block: kernels.move(rows, members, sides, chosen, sums, *block), column_blocks(n_columns))

    kernels.part(members, settle(seeds, choose, move, rule))


def settle(
    seeds: Ints, choose: Callable[[int, Ints, Ints], float], move: Callable[[Ints, Ints], None], rule: Rule
) -> Ints:
    """Run rounds to the end and return each member's cluster; `seeds` has those of the first centres, else −1.

    `choose(turn, sides, chosen)` writes the new clusters into `chosen` and returns the mean product of members with
    their centres; `move(sides, chosen)` brings the centres from one to the other.
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
    """Cut members into blocks of about equally many entries."""
    entries = int(np.diff(rows.starts)[members].sum())
    return blocks(len(members), max(1, _BLOCK_ENTRIES * len(members) // max(1, entries)))


def column_blocks(n_columns: int) -> list[tuple[int, int]]:
    """Cut columns into blocks."""
    return blocks(n_columns, -(-n_columns // _COLUMN_BLOCKS))
