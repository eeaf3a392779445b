"""Compute what a report shows about a model besides its scores.

The input is a model, a corpus and the model's ranking of it. The output is the labels with the best and worst scores,
the reliability of its scores as probabilities, and documents tagged correctly and incorrectly. All random choices are
seeded. Independent of HTML and plots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc import api
from xmtc.core.calibration import DEPTH, calibration_error
from xmtc.core.corpus import Corpus
from xmtc.core.explanation import Explanation
from xmtc.core.metrics import BINS, TruthMode, find_right, label_bins
from xmtc.core.model import Model
from xmtc.core.progress import Progress
from xmtc.core.rank_corpus import fill_known
from xmtc.core.ranking import Ranking

_PAIRS = 20  # minimum pairs per point of the reliability diagram
_TOP = 5  # labels per document that are shown and used to score labels
_LISTED = 10  # number of best labels, and of worst labels
_EXAMPLES = 5  # number of documents tagged correctly, and of those tagged incorrectly
_ENOUGH = (10, 5, 2, 1)  # minimum test documents of a listed label: the first number that gives a non-empty list


@dataclass(frozen=True, eq=False)
class Judged:
    """A model's ranking and the true labels, document by document."""

    model: Model
    corpus: Corpus  # over the model's labels
    truth: sp.csr_matrix  # (documents × label entries)
    ranking: Ranking
    hits: NDArray[np.bool_]  # (documents, ranks): whether a ranked label is true
    counted: NDArray[np.int64]  # rows that the scores count

    @property
    def answered(self) -> NDArray[np.int64]:
        """Return the rows that have a true label and at least one predicted label."""
        has_truth = np.diff(self.truth.indptr) > 0
        has_label = self.ranking.labels[:, 0] >= 0
        return np.intersect1d(self.counted, np.flatnonzero(has_truth & has_label))


@dataclass(frozen=True)
class Reliability:
    """How often labels are correct, compared with the model's probabilities."""

    points: tuple[tuple[float, float], ...]  # (mean probability, share of correct labels) in each tenth of the scale
    ece: float  # expected calibration error: mean difference of the two, over 15 groups of equal size
    by_bin: dict[str, float]  # the same for few, medium and many separately


@dataclass(frozen=True)
class LabelScore:
    """How well one label is predicted in the top 5, in percent."""

    label: str
    name: str
    trained: int  # training documents
    tested: int  # test documents with this label
    precision: float
    recall: float
    f: float


@dataclass(frozen=True)
class Given:
    """A label that a model predicted for a document."""

    label: str
    name: str
    score: float
    probability: float | None
    right: bool


@dataclass(frozen=True)
class Tagged:
    """A model's predictions for one document."""

    given: tuple[Given, ...]  # best first
    missed: tuple[str, ...]  # names of true labels that were not predicted
    explanation: Explanation | None  # of the first label; None without a text to explain


@dataclass(frozen=True)
class Example:
    """One document, and the predictions of each model for it."""

    id: str
    text: str | None
    tagged: dict[str, Tagged]  # by model


def rank_scored(model: Model, corpus: Corpus, deep: Ranking, progress: Progress) -> Ranking:
    """Return the ranking that is scored without a report too, given the one with 20 labels per document.

    The first labels of linear, knn and match models depend a little on how many are asked for, so these models rank
    once more; they are fast.
    """
    return api.rank_corpus(model, corpus, _TOP, progress) if api.is_cheap(model) else deep


def judge_scored(model: Model, corpus: Corpus, ranking: Ranking, mode: TruthMode, progress: Progress) -> Judged:
    """Compare the ranking of `rank_scored` with the truth, document by document, as the scores do."""
    filled = fill_known(model, corpus, ranking, _TOP, progress) if mode == "known" else ranking
    return judge(model, corpus, filled, mode)


def judge(model: Model, corpus: Corpus, ranking: Ranking, mode: TruthMode) -> Judged:
    """Compare a ranking with the truth; mode "known" leaves out labels that training never saw, as in the scores."""
    aligned = corpus.align(model.labels)
    truth = sp.csr_matrix(aligned.Y, copy=True)
    if mode == "known":
        truth.data[aligned.labels.counts[truth.indices] == 0] = 0
        truth.eliminate_zeros()
        ranking = ranking.known(model.labels.n_labels)
    counted = np.arange(len(corpus)) if mode == "all" else np.flatnonzero(np.diff(truth.indptr))
    return Judged(model, aligned, truth, ranking, find_right(ranking, truth), counted)


def score_labels(judged: Judged) -> tuple[list[LabelScore], list[LabelScore], int]:
    """Return the best labels, the worst, and how many test documents a label needed to be listed.

    Only labels that the model can predict are listed; labels that training never saw are left out.
    """
    labels, n = judged.corpus.labels, len(judged.corpus.labels)
    top, hits = judged.ranking.labels[judged.counted, :_TOP], judged.hits[judged.counted, :_TOP]
    right = np.bincount(top[hits], minlength=n)
    shown = np.bincount(top[top >= 0], minlength=n)
    true = np.bincount(judged.truth[judged.counted].indices, minlength=n)
    f = 2 * right / np.maximum(1, shown + true)
    knows = labels.counts > 0
    least = next((least for least in _ENOUGH if np.count_nonzero(knows & (true >= least)) >= 2 * _LISTED), 1)
    listed = np.flatnonzero(knows & (true >= least))
    order = listed[np.lexsort((listed, -true[listed], -f[listed]))]

    def score(entry: int) -> LabelScore:
        return LabelScore(
            label=labels.ids[entry],
            name=labels.names[entry],
            trained=int(labels.counts[entry]),
            tested=int(true[entry]),
            precision=100 * float(right[entry] / max(1, shown[entry])),
            recall=100 * float(right[entry] / true[entry]),
            f=100 * float(f[entry]),
        )

    worst_first = listed[np.lexsort((listed, -true[listed], f[listed]))]
    half = -(-len(listed) // 2)  # with few labels, no label is in both lists
    best = [score(entry) for entry in order[: min(_LISTED, half)]]
    worst = [score(entry) for entry in worst_first[: min(_LISTED, len(listed) - half)]]
    return best, worst, least


def measure_reliability(judged: Judged) -> dict[str, Reliability]:
    """Compare scores, and the probabilities of a calibrated model, with how often labels are correct.

    Uses the pairs of each counted document and its first 20 labels; scores outside 0 to 1 are clipped.
    """
    rows, ranking = judged.counted, judged.ranking.top(DEPTH)
    labels = ranking.labels[rows]
    given = labels >= 0
    right = judged.hits[rows, :DEPTH][given]
    bins = label_bins(judged.corpus.labels)[labels[given]]
    kinds = {"score": ranking.scores, "calibrated": ranking.probabilities}
    return {
        name: _reliability(np.clip(sure[rows][given], 0.0, 1.0), right, bins)
        for name, sure in kinds.items()
        if sure is not None and given.any()
    }


def _reliability(sure: NDArray[np.floating], right: NDArray[np.bool_], bins: NDArray[np.int64]) -> Reliability:
    inside = {name: bins == i for i, name in enumerate(BINS)}
    by_bin = {name: calibration_error(sure[pairs], right[pairs]) for name, pairs in inside.items() if pairs.any()}
    return Reliability(_points(sure, right), calibration_error(sure, right), by_bin)


def _points(sure: NDArray[np.floating], right: NDArray[np.bool_]) -> tuple[tuple[float, float], ...]:
    """Return (mean probability, share of correct labels) for each tenth of the scale with enough pairs."""
    tenth = np.minimum((10 * sure).astype(np.int64), 9)
    enough = min(_PAIRS, len(sure))
    tenths = [pairs for pairs in (np.flatnonzero(tenth == i) for i in range(10)) if len(pairs) >= enough]
    return tuple((float(sure[pairs].mean(dtype=np.float64)), float(right[pairs].mean())) for pairs in tenths)


def draw_examples(name: str, judged: Judged, right: bool, seed: int = 0) -> list[Example]:
    """Sample documents whose first label is correct, or is incorrect."""
    first_is_right = judged.hits[judged.answered, 0]
    rows = judged.answered[first_is_right == right]
    return [_example(row, {name: judged}) for row in _draw(rows, _EXAMPLES, seed)]


def draw_differences(judged: Mapping[str, Judged], seed: int = 0) -> list[Example]:
    """Sample documents on whose first label the models differ: some that the first model gets right, and some wrong."""
    first, *others = judged.values()
    rows = first.answered
    for other in others:
        rows = np.intersect1d(rows, other.answered)
    firsts = np.stack([one.hits[rows, 0] for one in judged.values()])  # (models, rows)
    differ = firsts.any(axis=0) & ~firsts.all(axis=0)
    won, lost = rows[differ & firsts[0]], rows[differ & ~firsts[0]]
    drawn = [*_draw(lost, _EXAMPLES, seed), *_draw(won, _EXAMPLES, seed)]
    return [_example(row, judged) for row in drawn]


def _draw(rows: NDArray[np.int64], n: int, seed: int) -> list[int]:
    chosen: list[int] = np.random.default_rng(seed).permutation(rows)[:n].tolist()
    return chosen


def _example(row: int, judged: Mapping[str, Judged]) -> Example:
    corpus = next(iter(judged.values())).corpus
    text = None if corpus.texts is None else corpus.texts[row]
    return Example(corpus.ids[row], text, {name: _tagged(one, row, text) for name, one in judged.items()})


def _tagged(judged: Judged, row: int, text: str | None) -> Tagged:
    labels, ranking = judged.corpus.labels, judged.ranking
    entries = [entry for entry in ranking.labels[row, :_TOP].tolist() if entry >= 0]
    given = tuple(
        Given(
            label=labels.ids[entry],
            name=labels.names[entry],
            score=float(ranking.scores[row, place]),
            probability=None if ranking.probabilities is None else float(ranking.probabilities[row, place]),
            right=bool(judged.hits[row, place]),
        )
        for place, entry in enumerate(entries)
    )
    missed = tuple(labels.names[entry] for entry in judged.truth[row].indices.tolist() if entry not in entries)
    explained = text is not None and given and api.n_features(judged.model) is None
    return Tagged(given, missed, judged.model.explain(text or "", given[0].label) if explained else None)
