"""Ensembles against naive loops over dictionaries, and a rank average worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xmtc.core.ensemble import combine
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.ranking import Ranking

RULES = ["mean", "rank", "sigmoid", "softmax", "round-robin"]


def ranking(*rows, width=None):
    """Rows of {label: score}."""
    width = max(max(map(len, rows)), 1) if width is None else width
    labels, scores = np.full((len(rows), width), -1), np.full((len(rows), width), -np.inf)
    for i, row in enumerate(rows):
        labels[i, : len(row)], scores[i, : len(row)] = list(row), list(row.values())
    return Ranking.best(labels, scores, width)


def random_members(seed, n=30, n_labels=12, widths=(4, 7, 1), rounded=True):
    rng = np.random.default_rng(seed)
    members = []
    for width in widths:
        rows = []
        for _ in range(n):
            chosen = rng.choice(n_labels, size=rng.integers(0, width + 1), replace=False)
            scores = rng.normal(size=len(chosen))
            rows.append(dict(zip(chosen.tolist(), np.round(scores) if rounded else scores, strict=True)))
        members.append(ranking(*rows, width=width))
    return members


def naive(members, k, rule, weights=None):
    weights = [1.0] * len(members) if weights is None else list(weights)
    weights = [weight / sum(weights) for weight in weights]
    kept = [m for m, weight in enumerate(weights) if weight]
    longest = max(members[m].k for m in kept)
    turns = {m: turn for turn, m in enumerate(sorted(kept, key=lambda m: -weights[m]))}
    rows = []
    for i in range(len(members[0])):
        total = {}
        for m in kept:
            listed = [(int(a), float(s)) for a, s in zip(members[m].labels[i], members[m].scores[i], strict=True)]
            listed = [(label, score) for label, score in listed if label >= 0]
            powers = sum(math.exp(score) for _, score in listed)
            for r, (label, score) in enumerate(listed):
                points = {
                    "mean": score,
                    "rank": longest - r,
                    "sigmoid": 1 / (1 + math.exp(-score)),
                    "softmax": math.exp(score) / powers,
                    "round-robin": longest - r - turns[m] / len(kept),
                }[rule]
                if rule == "round-robin":
                    total[label] = max(total.get(label, -math.inf), points)
                else:
                    total[label] = total.get(label, 0.0) + weights[m] * points
        rows.append(sorted(((np.float32(s), label) for label, s in total.items()), key=lambda p: (-p[0], p[1]))[:k])
    return rows


@pytest.mark.parametrize("weights", [None, [1, 2, 5], [2, 0, 2]])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("k", [1, 5, 20])
def test_equals_naive_loops(k, rule, weights):
    for seed, rounded in [(0, True), (1, False)]:  # rounded scores tie often
        members = random_members(seed, rounded=rounded)
        found = combine(members, k, rule, weights)
        assert found.labels.shape == found.scores.shape == (30, k)
        assert (found.labels.dtype, found.scores.dtype) == (np.int32, np.float32)
        for i, expected in enumerate(naive(members, k, rule, weights)):
            n = len(expected)
            assert (found.labels[i, n:] == -1).all()
            assert np.isneginf(found.scores[i, n:]).all()
            assert found.scores[i, :n] == pytest.approx([score for score, _ in expected], abs=1e-6)
            order = [(-float(s), int(a)) for s, a in zip(found.scores[i, :n], found.labels[i, :n], strict=True)]
            assert order == sorted(order)
            kept = dict(zip(found.labels[i, :n].tolist(), found.scores[i, :n].tolist(), strict=True))
            if k == 20:  # nothing is cut, so ties in the last place do not matter
                assert kept == pytest.approx({label: float(score) for score, label in expected}, abs=1e-6)


def test_rank_average_by_hand():
    # M = 3: label 7 earns 3 + 2, label 2 earns 2 + 0, label 9 earns 1 + 3, label 4 earns 0 + 1
    one = ranking({7: 0.9, 2: 0.8, 9: 0.1})
    two = ranking({9: 12.0, 7: 11.0, 4: -3.0})
    found = combine([one, two], 5, "rank")
    assert found.labels.tolist() == [[7, 9, 2, 4, -1]]
    assert found.scores[0, :4].tolist() == [2.5, 2.0, 1.0, 0.5]
    weighted = combine([one, two], 2, "rank", weights=[1, 3])
    assert weighted.labels.tolist() == [[9, 7]]
    assert weighted.scores.tolist() == [[(1 + 3 * 3) / 4, (3 + 3 * 2) / 4]]


def test_rank_average_uses_the_widest_ranking_whatever_the_batch():
    one, two = ranking({1: 3.0, 2: 2.0}, {1: 2.0}, width=4), ranking({2: 1.0}, {3: 1.0})
    together = combine([one, two], 3, "rank")
    alone = combine([Ranking(r.labels[1:], r.scores[1:]) for r in (one, two)], 3, "rank")
    assert together.scores[1].tolist() == alone.scores[0].tolist() == [2.0, 2.0, -np.inf]
    assert together.labels[1].tolist() == [1, 3, -1]


def test_round_robin_takes_turns():
    one, two = ranking({1: 9.0, 2: 8.0, 3: 7.0}), ranking({2: 0.3, 4: 0.2, 5: 0.1})
    assert combine([one, two], 5, "round-robin").labels.tolist() == [[1, 2, 4, 3, 5]]
    assert combine([one, two], 5, "round-robin", weights=[1, 2]).labels.tolist() == [[2, 1, 4, 5, 3]]


def test_mean_counts_an_absent_label_as_zero():
    found = combine([ranking({1: 0.8, 2: 0.6}), ranking({2: 0.6, 3: -1.0})], 3)
    assert found.labels.tolist() == [[2, 1, 3]]
    assert found.scores[0] == pytest.approx([0.6, 0.4, -0.5])


def test_one_member_keeps_its_ranking():
    for member in random_members(4, widths=(6,)):
        found = combine([member], 6)
        assert (found.labels == member.labels).all()
        assert (found.scores == member.scores).all()


def test_member_of_weight_zero_is_left_out():
    found = combine([ranking({1: 0.5}), ranking({2: 0.9, 3: 0.8, 4: 0.7})], 4, "rank", weights=[1, 0])
    assert found.labels.tolist() == [[1, -1, -1, -1]]
    assert found.scores[0, 0] == 1  # and does not set M


def test_large_scores_do_not_overflow():
    members = [ranking({1: 2000.0, 2: -2000.0}), ranking({}, width=2)]
    with np.errstate(all="raise", under="ignore"):
        for rule in RULES:
            assert combine(members, 2, rule).labels.tolist() == [[1, 2]]


def test_many_documents_cross_block_borders():
    members = random_members(5, n=1300, widths=(4, 3))
    found = combine(members, 3, "rank")
    for i in (0, 511, 512, 1299):
        alone = combine([Ranking(m.labels[i : i + 1], m.scores[i : i + 1]) for m in members], 3, "rank")
        assert (found.labels[i] == alone.labels[0]).all()
    nothing = combine([Ranking(m.labels[:0], m.scores[:0]) for m in members], 3)
    assert nothing.labels.shape == (0, 3)


@pytest.mark.parametrize(
    ("error", "words", "options"),
    [
        (ConfigError, "Did you mean 'sigmoid'", {"rule": "sigmod"}),
        (ConfigError, "k must be above 0", {"k": 0}),
        (ConfigError, "2 members need 2 weights; got 3", {"weights": [1, 2, 3]}),
        (ConfigError, "not all 0", {"weights": [0, 0]}),
        (ConfigError, "0 or more", {"weights": [2, -1]}),
        (ConfigError, "0 or more", {"weights": [1, math.nan]}),
        (ConfigError, "got none", {"rankings": []}),
        (DataError, "same documents; got 1, 2", {"rankings": [ranking({1: 1.0}), ranking({1: 1.0}, {2: 1.0})]}),
    ],
)
def test_mistakes_are_one_line(error, words, options):
    given = {"rankings": [ranking({1: 1.0}), ranking({2: 1.0})], "k": 3, **options}
    with pytest.raises(error, match=words) as caught:
        combine(**given)
    assert "\n" not in str(caught.value)
