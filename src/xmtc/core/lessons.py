"""Lessons: training data for an ensemble, that is, documents ranked by models that were not trained on them.

Input: models and a corpus. Output: rankings. Independent of methods: `api` passes the functions that train a copy of a
model and that return whether a copy is cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xmtc.core.abilities import Forgetful
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.held_out import TrainAgain, held_out_dev, hold_out_again, is_training_corpus
from xmtc.core.labels import LabelSet
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.rank_corpus import rank_corpus
from xmtc.core.ranking import Ranking

HIDING = 5  # parts of the labels, each hidden for a part of the documents, if a model ranks unseen labels
FOLDS = 3  # parts of a training corpus; each is ranked by models trained on the others


@dataclass(frozen=True)
class Lesson:
    """Documents and their rankings by models that were not trained on them, one model per member."""

    rows: NDArray[np.int64]  # rows of the corpus
    rankings: list[Ranking]  # of these rows, one per model
    labels: list[LabelSet]  # one set per model
    hidden: tuple[str, ...] = ()  # ids of labels that the models ranked as if no training document had them


def find_lessons(
    models: Sequence[Model],
    corpus: Corpus,
    train_again: TrainAgain,
    is_cheap: Callable[[Model], bool],
    depth: int,
    limit: int,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Iterator[Lesson]:
    """Rank at most `limit` documents of a corpus, `depth` labels deep, by models that were not trained on them.

    Models that were trained on other documents rank them as they are. For models that were trained on this corpus:

    - a model that held out a part of it ranks that part; the lessons are then limited to that part;
    - a cheap model is replaced by copies trained without what they rank: without that part, by folds or, if a fold has
      `limit` documents or more, without one fold;
    - any other model raises an error.

    If a model can rank labels without documents, each document is ranked with a part of the labels hidden: models that
    can rank unseen labels rank the hidden ones as unseen, and no other model returns them. So the ensemble learns how
    reliable scores of unseen labels are, and does not prefer labels that all models list.
    """
    trained = [is_training_corpus(model, corpus) for model in models]
    labelled = np.flatnonzero(np.diff(corpus.Y.indptr))
    if len(labelled) == 0:
        raise DataError("none of the documents has a label; an ensemble learns from labelled documents")
    usable = labelled
    for model, own in zip(models, trained, strict=True):
        if own and held_out_dev(model):
            usable = np.intersect1d(usable, hold_out_again(model, corpus)[1])
        elif own and not is_cheap(model):
            raise DataError(
                f"a member of method {model.manifest.method!r} was trained on all of these documents, and training it "
                "again takes too long; give documents that it was not trained on"
            )
    if len(usable) == 0:
        raise DataError(
            "the members held out different documents; train them with one seed and one train.dev_fraction, or give "
            "documents that none was trained on"
        )
    again = [own and is_cheap(model) for model, own in zip(models, trained, strict=True)]
    parts = [usable]
    if any(again) and len(usable) == len(labelled):
        n_parts = max(FOLDS, len(labelled) // limit)
        parts = [labelled[rows] for rows in corpus.take(labelled).fold(n_parts, seed)]
        if len(labelled) >= FOLDS * limit:  # one part has enough documents, and its copies see most of the corpus
            parts = parts[:1]
    for i, part in enumerate(parts):
        rankers = list(models)
        if any(again):
            progress.say(f"fold {i + 1} of {len(parts)}: copies of members are trained without {len(part):,} documents")
            others = corpus.take(np.setdiff1d(np.arange(len(corpus)), part))
            rankers = [
                train_again(model, others, progress) if cheap else model
                for model, cheap in zip(models, again, strict=True)
            ]
        room = max(1, limit * len(part) // sum(map(len, parts)))
        rows = np.sort(np.random.default_rng(seed).permutation(part)[:room])
        if not any(_forget(ranker, ()) for ranker in rankers):
            ranked = corpus.take(rows)
            rankings = [rank_corpus(ranker, ranked, depth, progress) for ranker in rankers]
            yield Lesson(rows, rankings, [ranker.labels for ranker in rankers])
            continue
        for shown, hidden in _hide(rows, rankers, seed):
            yield _rank_without(rankers, corpus, shown, hidden, depth, progress)


def _hide(
    rows: NDArray[np.int64], rankers: Sequence[Model], seed: int
) -> Iterator[tuple[NDArray[np.int64], tuple[str, ...]]]:
    """Yield parts of the rows, each with the ids of the labels to hide for it; every label is hidden once."""
    trained = sorted({label for ranker in rankers for label in ranker.labels.ids[: ranker.labels.n_labels]})
    draw = np.random.default_rng(seed).permutation
    of_rows, of_labels = (np.array_split(draw(n), HIDING) for n in (len(rows), len(trained)))
    for own, hidden in zip(of_rows, of_labels, strict=True):
        if len(own):
            yield rows[np.sort(own)], tuple([trained[i] for i in np.sort(hidden).tolist()])


def _rank_without(
    rankers: Sequence[Model],
    corpus: Corpus,
    rows: NDArray[np.int64],
    hidden: tuple[str, ...],
    depth: int,
    progress: Progress,
) -> Lesson:
    """Rank rows by models that have not seen some labels, or that act as if they had not."""
    ranked, rankings, labels = corpus.take(rows), [], []
    for ranker in rankers:
        entries = [ranker.labels.position[label] for label in hidden if label in ranker.labels.position]
        counts = ranker.labels.counts.copy()
        counts[entries] = 0
        copy = _forget(ranker, hidden)
        if copy is not None:
            found = rank_corpus(copy, ranked, depth, progress)
        else:  # most hidden labels are not listed at all: 50 % more labels are enough to fill their places
            wide = rank_corpus(ranker, ranked, depth + depth // 2, progress)
            found = wide.keep((wide.labels >= 0) & ~np.isin(wide.labels, entries)).top(depth)
        rankings.append(found)
        labels.append(ranker.labels.with_counts(counts))
    return Lesson(rows, rankings, labels, hidden)


def _forget(model: Model, ids: Sequence[str]) -> Model | None:
    return model.forget(ids) if isinstance(model, Forgetful) else None
