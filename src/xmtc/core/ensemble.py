"""Ensembles: combine several rankings of the same documents into one.

Input: the members' rankings over one label set. Output: one ranking. Independent of the models that ranked.

With the members' weights a_m divided by their sum (equal if none are given), and r_m the position, from 0, of a label
in member m's list, a label's score is

    mean         Σ a_m · score_m
    rank         Σ a_m · (M − r_m)              M the width of the widest ranking
    sigmoid      Σ a_m · σ(score_m)
    softmax      Σ a_m · softmax_m              over the labels of the member's list
    round-robin  max over m of M − r_m − t_m/T  t_m the turn, from 0, of member m among T: heaviest first, else as given

where a member that does not list the label adds 0. Members of weight 0 are left out. Avoid "mean" with negative scores,
such as margins: a label that a member does not list would then beat one that it lists low. Use "rank" or "sigmoid".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from xmtc.core.errors import ConfigError, DataError, nearest
from xmtc.core.parallel import blocks
from xmtc.core.ranking import Ranking

Rule = Literal["mean", "rank", "sigmoid", "softmax", "round-robin"]
AnyRule = Rule | Literal["learned", "cascade"]  # these two need more than rankings; see `xmtc.methods.ensemble`
LEARNED: Literal["learned"] = "learned"
CASCADE: Literal["cascade"] = "cascade"
RULES: tuple[AnyRule, ...] = (*get_args(Rule), LEARNED, CASCADE)
BY_LIST: frozenset[Rule] = frozenset({"rank", "softmax", "round-robin"})  # a label's points depend on the whole list
_ROWS = 512  # documents combined at a time; bounds the memory


def combine(
    rankings: Sequence[Ranking], k: int, rule: Rule = "mean", weights: Sequence[float] | None = None
) -> Ranking:
    """Return the k best labels of each document by all rankings together; the module docstring has the formulas.

    All rankings must be over the same label set, and row i of each must be the same document. Pass rankings wider than
    k if possible: a label below the end of a member's list gets nothing from that member.
    """
    shares = _check(rankings, k, rule, weights)
    in_turn = np.argsort(-shares, kind="stable")  # only relevant to round-robin: sums do not depend on the order
    members = [(rankings[m], float(shares[m])) for m in in_turn if shares[m] > 0]
    longest = max(ranking.k for ranking, _ in members)
    parts = []
    for first, stop in blocks(len(rankings[0]), _ROWS) or [(0, 0)]:
        all_labels, all_points = [], []
        for turn, (ranking, share) in enumerate(members):
            labels, scores = ranking.labels[first:stop], ranking.scores[first:stop].astype(np.float64)
            if rule == "round-robin":
                points = longest - np.arange(ranking.k) - np.full(scores.shape, turn / len(members))
            else:
                points = share * _points(rule, labels, scores, longest)
            all_labels.append(labels)
            all_points.append(points)
        # sum the points of each label at its first position in the row; its other positions become holes
        labels, points = np.concatenate(all_labels, axis=1), np.concatenate(all_points, axis=1)
        order = np.argsort(labels, axis=1, kind="stable")
        labels = np.take_along_axis(labels, order, 1)
        is_first = np.ones(labels.shape, dtype=bool)
        is_first[:, 1:] = labels[:, 1:] != labels[:, :-1]
        united = np.zeros(labels.shape)
        if labels.size:
            unite = np.maximum if rule == "round-robin" else np.add
            united[is_first] = unite.reduceat(np.take_along_axis(points, order, 1).ravel(), np.flatnonzero(is_first))
        parts.append(Ranking.best(np.where(is_first, labels, -1), united, k))
    return Ranking.stack(parts)


def _check(rankings: Sequence[Ranking], k: int, rule: str, weights: Sequence[float] | None) -> NDArray[np.float64]:
    """Raise if the rankings cannot be combined; return the members' weights, divided by their sum."""
    if rule not in get_args(Rule):
        raise ConfigError(f"unknown rule {rule!r}; known: {', '.join(RULES)}.{nearest(rule, RULES)}")
    if k < 1:
        raise ConfigError(f"k must be above 0; got {k}")
    if not rankings:
        raise ConfigError("an ensemble needs one ranking or more; got none")
    n, sizes = len(rankings), [len(ranking) for ranking in rankings]
    if len(set(sizes)) > 1:
        raise DataError(f"all members must rank the same documents; got {', '.join(map(str, sizes))} documents")
    if weights is None:
        return np.full(n, 1 / n)
    given = np.asarray(weights, dtype=np.float64)
    if len(given) != n:
        raise ConfigError(f"{n} members need {n} weights; got {len(given)}")
    if not np.isfinite(given).all() or (given < 0).any() or given.sum() <= 0:
        raise ConfigError(f"weights must be 0 or more, and not all 0; got {', '.join(map(str, weights))}")
    return np.asarray(given / given.sum())


def _points(rule: Rule, labels: NDArray[np.int32], scores: NDArray[np.float64], longest: int) -> NDArray[np.float64]:
    """Return one member's points for each label of its lists; the values at padding are not used."""
    if rule == "rank":
        return longest - np.broadcast_to(np.arange(scores.shape[1], dtype=np.float64), scores.shape)
    if rule == "sigmoid":
        return np.asarray(expit(scores))
    if rule == "softmax":
        listed = np.where(labels < 0, -np.inf, scores)
        top = listed.max(axis=1, keepdims=True, initial=-np.inf)
        powers = np.exp(listed - np.where(np.isfinite(top), top, 0.0))  # the largest becomes 1, to avoid overflow
        total = powers.sum(axis=1, keepdims=True)
        return np.asarray(powers / np.where(total > 0, total, 1.0))
    return scores
