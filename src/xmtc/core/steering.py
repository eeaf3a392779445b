"""Steering: restrict rankings to some subtrees of labels, exclude others, and drop labels below a limit.

Input: a model and the user's restrictions. Output: a `Ranking`, best first. Labels are excluded before the best k are
taken, so a document gets k labels whenever the model ranks that many. Independent of methods: if a ranking does not
hold enough labels, the model is asked for a deeper one.
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

_FIRST = 100  # labels ranked before any is excluded; models that join rankings join as many anyway
_DEEPER = 4  # factor of the next depth, for documents that still lack labels
_BUDGET = 1 << 22  # maximum labels of one deeper ranking, over all of its documents

_below: WeakKeyDictionary[LabelSet, sp.csr_matrix] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Steering:
    """A user's restrictions on a model's rankings, checked once for any number of documents."""

    allowed: NDArray[np.bool_] | None  # (entries,): labels that may be returned; None: all that the model ranks
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
        """Check the restrictions; `suggest` explains the parameters."""
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

    - `include`, `exclude`: ids or names of labels, each with all labels below it in the hierarchy; a label that is both
      is excluded.
    - `threshold`: minimum probability; the model must be calibrated. `min_score`: minimum score.

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
    """Drop labels below a probability or a score; the others keep their order, and padding fills the rows."""
    for name, limit in (("threshold", threshold), ("min_score", min_score)):
        check_limit(name, limit)
    if threshold is None and min_score is None:
        return ranking
    kept = ranking.labels >= 0
    if threshold is not None:
        if ranking.probabilities is None:
            raise ModelError(UNCALIBRATED)
        kept &= ranking.probabilities.astype(np.float64) >= threshold  # float64, so that the limit is not rounded
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

    Entries without training documents are left out, except `concepts`: those that the model can rank.
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
                raise DataError(
                    f"label {name!r} and its descendants have no training documents, so no model suggests them"
                )
            allowed |= found
    for name in _names("exclude", exclude):
        allowed = allowed & ~_subtree(labels, labels.find(name))
    if not allowed.any():
        raise ConfigError("no label is left to suggest: all included labels are excluded, too")
    return allowed


def rank_among(model: Model, documents: Documents, k: int, allowed: NDArray[np.bool_]) -> Ranking:
    """Return the k best of the allowed labels, in the order of the document's full ranking.

    Documents that lack labels after the first ranking are ranked deeper and deeper, until the model has no more. A row
    depends only on its own document.
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
    """Return the first k allowed labels of each row, and whether a deeper ranking may hold more for a row."""
    kept = (ranking.labels >= 0) & allowed[ranking.labels]
    enough = min(k, int(allowed.sum()))
    lacking = (kept.sum(axis=1) < enough) & (ranking.labels[:, -1] >= 0)
    return ranking.keep(kept).top(k), lacking


def _take(documents: Documents, rows: NDArray[np.integer]) -> Documents:
    if sp.issparse(documents):
        return documents[rows]
    return [documents[row] for row in rows.tolist()]


def _subtree(labels: LabelSet, entry: int) -> NDArray[np.bool_]:
    """Return which entries are this entry or below it."""
    children = _children(labels)
    seen = np.zeros(len(labels), dtype=bool)
    level = np.array([entry])
    while len(level):  # each entry is visited once, so cyclic hierarchies terminate too
        seen[level] = True
        reached = np.unique(children[level].indices)
        level = reached[~seen[reached]]
    return seen


def _children(labels: LabelSet) -> sp.csr_matrix:
    """Return the (entries × entries) matrix of the entries below each; cached as long as the label set lives."""
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
