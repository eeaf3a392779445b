from __future__ import annotations

import numpy as np
import pytest

from tests.features.clustering.vectors import balanced_two_means, centre, dense, random_rows
from xmtc.features.clustering import MeansConfig
from xmtc.features.clustering.two_means import rows_of, seed_pair


def naive_two_means(vectors, members, seed, means: MeansConfig) -> tuple[list[int], list[int]]:
    members = sorted(members)
    first = np.empty(len(members), dtype=np.int32)
    seed_pair(rows_of(vectors), np.array(members, dtype=np.int32), seed, 0, first)
    rows = dense(vectors)
    left, right = [members[i] for i in np.flatnonzero(first == 0)], [members[i] for i in np.flatnonzero(first == 1)]
    before = -np.inf
    for _ in range(means.max_iterations):
        c_left, c_right = centre(rows[left], means.metric), centre(rows[right], means.metric)
        ranked = sorted(members, key=lambda i: (rows[i] @ (c_right - c_left), i))
        old = left
        left, right = sorted(ranked[: len(members) // 2]), sorted(ranked[len(members) // 2 :])
        mean = (sum(rows[i] @ c_left for i in left) + sum(rows[i] @ c_right for i in right)) / len(members)
        if left == old or (means.tolerance is not None and mean - before < means.tolerance):
            break
        before = mean
    return left, right


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("metric", ["spherical", "euclidean"])
@pytest.mark.parametrize("rule", [{}, {"tolerance": 0.003}, {"max_iterations": 1}, {"max_iterations": 3}])
def test_two_means_agree_with_a_naive_implementation(sparse, metric, rule):
    means = MeansConfig(metric=metric, **rule)
    for n in (2, 3, 7, 40, 201):
        vectors = random_rows(n, seed=n, sparse=sparse)
        for seed in range(3):
            left, right = balanced_two_means(vectors, np.arange(n), seed, means)
            assert (left.tolist(), right.tolist()) == naive_two_means(vectors, range(n), seed, means)


def test_two_means_split_only_the_members_given_in_any_order():
    vectors = random_rows(100, seed=1)
    members = np.random.default_rng(0).permutation(100)[:33]
    left, right = balanced_two_means(vectors, members, 5)
    assert (left.tolist(), right.tolist()) == naive_two_means(vectors, members.tolist(), 5, MeansConfig())
    assert len(left) == 16
    assert sorted([*left, *right]) == sorted(members)


def test_tolerance_stops_before_the_sides_settle():
    vectors = random_rows(400, seed=3)
    settled = balanced_two_means(vectors, np.arange(400), 0)[0]
    assert not np.array_equal(balanced_two_means(vectors, np.arange(400), 0, MeansConfig(tolerance=0.1))[0], settled)


def test_seeds_are_two_distinct_members_with_entries_and_any_of_them():
    vectors = random_rows(31, seed=0)
    rows = rows_of(vectors)
    members = np.arange(31, dtype=np.int32)
    sides = np.empty(31, dtype=np.int32)
    chosen = set()
    for seed in range(400):
        seed_pair(rows, members, seed, 0, sides)
        assert sorted(sides[sides >= 0]) == [0, 1]
        chosen |= {(int(side), int(i)) for i, side in enumerate(sides) if side >= 0}
    assert chosen == {(side, i) for side in (0, 1) for i in range(31) if i % 10}  # every tenth row is zero
