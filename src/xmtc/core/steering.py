"""Steering: restrict rankings to some subtrees of labels, exclude others, and drop labels below a limit.

In come a model and what the user asks for; out comes a `Ranking`, best first. Labels are excluded before the best k are
taken, so a document gets k labels wherever the model ranks that many. Knows no method: it asks the model for a deeper
ranking where one does not hold enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.abilities import count_ranked, find_concepts
from xmtc.core.calibration import UNCALIBRATED, calibration_of
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.labels import LabelSet
from xmtc.core.model import Documents, Model, check_k
from xmtc.core.parallel import blocks
from xmtc.core.ranking import Ranking

_FIRST = 100  # labels ranked before any is left out; models that join rankings join as many anyway
_DEEPER = 4  # times as many are ranked next, for documents that still lack some
_BUDGET = 1 << 22  # labels of one deeper ranking, over all of its documents

_below: WeakKeyDictionary[LabelSet, sp.csr_matrix] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Steering:
    """What a user asks of a model's rankings, checked once for any number of documents."""

    allowed: NDArray[np.bool_] | None  # (entries,): labels that may be given; None: all that the model ranks
    threshold: float | None
    min_score: float | None

    @classmethod
    def check(
        cls,
        model: Model,
        threshold: float | None = None,
        min_score: float | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> Steering:
        """Check what is asked for; `suggest` explains the parameters."""
        check_limit("threshold", threshold)
        check_limit("min_score", min_score)
        if threshold is not None:
            if not 0 <= threshold <= 1:
                raise ConfigError(f"threshold is a probability, from 0 to 1; got {threshold:g}")
            if calibration_of(model) is None:
                raise ModelError(UNCALIBRATED)
        allowed = select(model.labels, include, exclude, find_concepts(model)) if include or exclude else None
        return cls(allowed, threshold, min_score)

    def rank(self, model: Model, documents: Documents, k: int) -> Ranking:
        """Return at most k labels of each document."""
        check_k(k)
        k = min(k, count_ranked(model))
        if self.allowed is None:
            return drop_below(model.rank(documents, k), self.threshold, self.min_score)
        return drop_below(rank_among(model, documents, k, self.allowed), self.threshold, self.min_score)


def suggest(
    model: Model,
    documents: Documents,
    k: int = 5,
    *,
    threshold: float | None = None,
    min_score: float | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Ranking:
    """Return at most k labels of each document: the best of those included and not excluded, above both limits.

    - `include`, `exclude`: ids or names of labels, each with all labels below it in the hierarchy; what is both is
      excluded.
    - `threshold`: least probability; the model must be calibrated. `min_score`: least score.

    Limits apply to the k best labels. Rows are padded with −1.

    >>> import xmtc
    >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
    >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
    >>> corpus = xmtc.Corpus.from_lists(texts, tags)
    >>> xmtc.suggest(xmtc.train(corpus), ["a fish quota"], k=2, exclude=["fishery"]).named()
    [[('sugar', ...)]]
    """
    return Steering.check(model, threshold, min_score, include, exclude).rank(model, documents, k)


def drop_below(ranking: Ranking, threshold: float | None = None, min_score: float | None = None) -> Ranking:
    """Drop labels below a probability or a score; what stays keeps its order, and padding fills the rows."""
    for name, limit in (("threshold", threshold), ("min_score", min_score)):
        check_limit(name, limit)
    if threshold is None and min_score is None:
        return ranking
    kept = ranking.labels >= 0
    if threshold is not None:
        if ranking.probabilities is None:
            raise ModelError(UNCALIBRATED)
        kept &= ranking.probabilities.astype(np.float64) >= threshold  # so that the limit is not rounded
    if min_score is not None:
        kept &= ranking.scores.astype(np.float64) >= min_score
    return ranking.keep(kept)


def select(
    labels: LabelSet,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    concepts: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """Return which entries are included (all, if none is named) and not excluded.

    Entries without training documents are left out, but for `concepts`: those of them that the model can rank.
    """
    ranked = np.arange(len(labels)) < labels.n_labels
    if concepts is not None:
        ranked[concepts] = True
    allowed = ranked
    if include:
        allowed = np.zeros(len(labels), dtype=bool)
        for name in _names("include", include):
            found = _subtree(labels, labels.find(name)) & ranked
            if not found.any():
                raise DataError(f"label {name!r} has no training document, nor has one below it: no model gives it")
            allowed |= found
    for name in _names("exclude", exclude):
        allowed = allowed & ~_subtree(labels, labels.find(name))
    if not allowed.any():
        raise ConfigError("no label is left to give: all that are included are excluded too")
    return allowed


def rank_among(model: Model, documents: Documents, k: int, allowed: NDArray[np.bool_]) -> Ranking:
    """Return the k best of the allowed labels, as the whole ranking of a document would list them.

    Documents that lack some after a first ranking are ranked deeper and deeper, until the model has no more. A row
    depends on its own document alone.
    """
    n_labels = count_ranked(model)
    width = min(n_labels, max(k, _FIRST))
    whole = model.rank(documents, width)
    found, lacking = _allowed_of(whole, allowed, k)
    rows = np.flatnonzero(lacking)
    while len(rows) and width < n_labels:
        width = min(n_labels, _DEEPER * width)
        still = []
        for start, stop in blocks(len(rows), max(1, _BUDGET // width)):
            part = rows[start:stop]
            deeper, lacking = _allowed_of(model.rank(_take(documents, part), width), allowed, k)
            found = found.put(part, deeper)
            still.append(part[lacking])
        rows = np.concatenate(still)
    return found


def check_limit(name: str, value: object) -> None:
    """Raise unless a limit is None or a finite number."""
    if value is not None and (not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value)):
        raise ConfigError(f"{name} must be a number; got {value!r}")


def _allowed_of(ranking: Ranking, allowed: NDArray[np.bool_], k: int) -> tuple[Ranking, NDArray[np.bool_]]:
    """The first k allowed labels of each row, and whether a row lacks some that a deeper ranking may hold."""
    kept = (ranking.labels >= 0) & allowed[ranking.labels]
    enough = min(k, int(allowed.sum()))
    lacking = (kept.sum(axis=1) < enough) & (ranking.labels[:, -1] >= 0)
    return ranking.keep(kept).top(k), lacking


def _take(documents: Documents, rows: NDArray[np.integer]) -> Documents:
    if sp.issparse(documents):
        return documents[rows]
    return [documents[row] for row in rows.tolist()]


def _subtree(labels: LabelSet, entry: int) -> NDArray[np.bool_]:
    """Which entries are this entry or below it."""
    children = _children(labels)
    seen = np.zeros(len(labels), dtype=bool)
    level = np.array([entry])
    while len(level):  # entries seen are not walked again, so a hierarchy with a circle ends too
        seen[level] = True
        reached = np.unique(children[level].indices)
        level = reached[~seen[reached]]
    return seen


def _children(labels: LabelSet) -> sp.csr_matrix:
    """(entries × entries): the entries below each, kept as long as the label set is."""
    if labels not in _below:
        counts = [len(parents) for parents in labels.parents]
        children = np.repeat(np.arange(len(labels)), counts)
        parents = np.array([parent for entry in labels.parents for parent in entry], dtype=np.int64)
        shape = (len(labels), len(labels))
        _below[labels] = sp.csr_matrix((np.ones(len(children), dtype=np.int8), (parents, children)), shape=shape)
    return _below[labels]


def _names(option: str, names: Sequence[str]) -> Sequence[str]:
    if isinstance(names, str):
        raise ConfigError(f"{option} takes a list of labels; got the string {names!r}")
    return names
