"""Boosted trees: parse LightGBM's text format into arrays, and evaluate them on feature rows.

The text comes from a model folder: every number is checked before it is used, so that an invalid text raises an error
and cannot cause reads outside the arrays. Ranking needs LightGBM neither installed nor loaded. Independent of labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from xmtc.core.errors import ModelError
from xmtc.core.parallel import blocks, run

_ROWS = 4096  # feature rows scored per task
_LARGEST = 1 << 26  # maximum characters of a text
_DEFAULT_LEFT, _NAN = 2, 8  # bits of decision_type: where NaN goes, and whether training saw any


class Paths(NamedTuple):
    """The arrays that lead a row to a leaf."""

    first_node: NDArray[np.int64]  # (trees + 1,)
    first_leaf: NDArray[np.int64]  # (trees + 1,)
    feature: NDArray[np.int32]  # (nodes,)
    threshold: NDArray[np.float64]  # (nodes,): a row goes left if its feature is at most this
    nan_left: NDArray[np.bool_]  # (nodes,): whether NaN goes left
    children: NDArray[np.int32]  # (nodes, 2): right, left


@dataclass(frozen=True, eq=False)
class Trees:
    """Binary trees, one after the other; child c ≥ 0 is a node of the same tree, c < 0 is its leaf −1 − c."""

    n_features: int
    paths: Paths
    inside: NDArray[np.float64]  # (nodes,): the tree's value for all rows that reach the node
    gain: NDArray[np.float64]  # (nodes,): how much the split lowered the loss in training
    leaf: NDArray[np.float64]  # (leaves,)

    @classmethod
    def parse(cls, text: str, names: list[str]) -> Trees:
        """Parse LightGBM's text of a booster over features with these names."""
        try:
            return _parse(text, names)
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            raise ModelError(f"the boosted trees of this model are not LightGBM's ({error}); train it again") from None

    def gains(self) -> NDArray[np.float64]:
        """Return how much the splits by each feature lowered the loss in training, in total."""
        return np.bincount(self.paths.feature, self.gain, self.n_features).astype(np.float64)

    def score(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the sum of the leaves that each row reaches: log-odds."""
        parts = [features[start:stop] for start, stop in blocks(len(features), _ROWS)]

        def score(part: NDArray[np.float32]) -> NDArray[np.float64]:
            return np.asarray(_score(part, self.paths, self.leaf))

        return np.concatenate([np.zeros(0), *run(score, parts)])

    def share_out(self, row: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return each feature's contribution to a row's score (Saabas 2014): the value's changes on the row's paths.

        They sum to the score minus the sum of the trees' root values.
        """
        return np.asarray(_share_out(row, self.n_features, self.paths, self.leaf, self.inside))


def _parse(text: str, names: list[str]) -> Trees:
    if len(text) > _LARGEST:
        raise ValueError(f"{len(text)} characters")
    head, *bodies = text.partition("\nend of trees")[0].split("\nTree=")
    if "\nend of trees" not in text or not head.startswith("tree\n"):
        raise ValueError("it is cut")
    facts = _fields(head)
    for key, value in (("num_class", "1"), ("num_tree_per_iteration", "1"), ("feature_names", " ".join(names))):
        if facts[key] != value:
            raise ValueError(f"{key} is {facts[key][:60]!r}")
    parts: dict[str, list[NDArray]] = {
        key: [] for key in ("feature", "threshold", "nan", "left", "right", "inside", "gain", "leaf")
    }
    for body in bodies:
        _parse_tree(_fields(body), len(names), parts)
    nodes, leaves = ([0, *np.cumsum([len(part) for part in parts[key]])] for key in ("feature", "leaf"))
    joined = {key: np.concatenate([np.zeros(0), *arrays]) for key, arrays in parts.items()}
    paths = Paths(
        np.array(nodes, dtype=np.int64),
        np.array(leaves, dtype=np.int64),
        joined["feature"].astype(np.int32),
        joined["threshold"],
        joined["nan"].astype(bool),
        np.ascontiguousarray(np.stack([joined["right"], joined["left"]], axis=1).astype(np.int32)),
    )
    return Trees(len(names), paths, joined["inside"], joined["gain"], joined["leaf"])


def _parse_tree(facts: dict[str, str], n_features: int, parts: dict[str, list[NDArray]]) -> None:
    """Check one tree and append its arrays to the parts."""
    n_leaves = int(facts["num_leaves"])
    if n_leaves < 1 or facts["num_cat"] != "0" or facts.get("is_linear", "0") != "0":
        raise ValueError("a tree of another family")

    def numbers(key: str, n: int) -> NDArray[np.float64]:
        found = np.array(facts[key].split() if n else [], dtype=np.float64)
        # a threshold may be infinite: it then separates NaN from all numbers
        if len(found) != n or np.isnan(found).any() or (key != "threshold" and np.isinf(found).any()):
            raise ValueError(f"{key} has {len(found)} numbers instead of {n}, or one that is not a number")
        return found

    n = n_leaves - 1
    feature, left, right = (numbers(key, n) for key in ("split_feature", "left_child", "right_child"))
    decision = numbers("decision_type", n).astype(np.int64)
    if ((feature < 0) | (feature >= n_features)).any() or (decision & ~(_DEFAULT_LEFT | _NAN)).any():
        raise ValueError("a split of another family")
    # LightGBM numbers a node's children higher than the node, so every walk ends
    children = np.sort(np.concatenate([left, right]))
    if not np.array_equal(children, [*range(-n_leaves, 0), *range(1, n)]) and n:
        raise ValueError("nodes and leaves do not make a tree")
    if n and (((left >= 0) & (left <= np.arange(n))) | ((right >= 0) & (right <= np.arange(n)))).any():
        raise ValueError("nodes and leaves do not make a tree")
    parts["feature"].append(feature)
    threshold = numbers("threshold", n)
    parts["threshold"].append(threshold)
    # LightGBM treats NaN as 0 if it saw none in training
    parts["nan"].append(np.where(decision & _NAN, decision & _DEFAULT_LEFT, threshold >= 0))
    parts["left"].append(left)
    parts["right"].append(right)
    parts["inside"].append(numbers("internal_value", n))
    parts["gain"].append(numbers("split_gain", n))
    parts["leaf"].append(numbers("leaf_value", n_leaves))


def _fields(text: str) -> dict[str, str]:
    """Return the key=value lines of a part of the text."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


@njit(cache=True, nogil=True)
def _step(value: np.float32, at: int, paths: Paths) -> int:
    """Return the child of a node for this value; without branches, which processors would mispredict."""
    left = (np.float64(value) <= paths.threshold[at]) | (np.isnan(value) & paths.nan_left[at])
    return paths.children[at, np.int64(left)]  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _score(rows: NDArray[np.float32], paths: Paths, leaf: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = np.zeros(len(rows))
    for tree in range(len(paths.first_node) - 1):
        start, first_leaf = paths.first_node[tree], paths.first_leaf[tree]
        root = 0 if paths.first_node[tree + 1] > start else -1
        for i in range(len(rows)):
            node = root
            while node >= 0:
                at = start + node
                node = _step(rows[i, paths.feature[at]], at, paths)
            scores[i] += leaf[first_leaf - 1 - node]
    return scores


@njit(cache=True, nogil=True)
def _share_out(
    row: NDArray[np.float32], n_features: int, paths: Paths, leaf: NDArray[np.float64], inside: NDArray[np.float64]
) -> NDArray[np.float64]:
    shares = np.zeros(n_features)
    for tree in range(len(paths.first_node) - 1):
        start = paths.first_node[tree]
        node = 0 if paths.first_node[tree + 1] > start else -1
        while node >= 0:
            at = start + node
            node = _step(row[paths.feature[at]], at, paths)
            below = inside[start + node] if node >= 0 else leaf[paths.first_leaf[tree] - 1 - node]
            shares[paths.feature[at]] += below - inside[at]
    return shares
