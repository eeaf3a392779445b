"""Lessons: documents that an ensemble learns from, ranked by models that were not trained on them.

Models and a corpus enter; rankings leave. Knows no method: `api` passes the functions that train a copy of a model and
that say whether a copy is cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.held_out import TrainAgain, held_out_dev, hold_out_again, is_training_corpus
from xmtc.core.labels import LabelSet
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.rank_corpus import rank_corpus
from xmtc.core.ranking import Ranking

FOLDS = 3  # parts of a training corpus, each ranked by models that are trained on the others


@dataclass(frozen=True)
class Lesson:
    """Documents, and what models that were not trained on them make of them: one model in each member's place."""

    rows: NDArray[np.int64]  # of the corpus
    rankings: list[Ranking]  # of these rows, by each model
    labels: list[LabelSet]  # of each model


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

    Models that were trained on other documents rank them as they are. For those that were trained on this corpus:

    - a model that held out a part of it ranks that part, and no more can be learnt from;
    - a cheap model is replaced by copies trained without what they rank: by folds, or without that part;
    - any other model is refused.
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
        parts = [labelled[rows] for rows in corpus.take(labelled).fold(FOLDS, seed)]
    for i, part in enumerate(parts):
        rankers = list(models)
        if any(again):
            progress.say(f"fold {i + 1} of {len(parts)}: copies of members are trained without {len(part):,} documents")
            others = corpus.take(np.setdiff1d(np.arange(len(corpus)), part))
            rankers = [
                train_again(model, others, progress) if cheap else model
                for model, cheap in zip(models, again, strict=True)
            ]
        room = max(1, limit * len(part) // len(usable))
        rows = np.sort(np.random.default_rng(seed).permutation(part)[:room])
        ranked = corpus.take(rows)
        rankings = [rank_corpus(ranker, ranked, depth, progress) for ranker in rankers]
        yield Lesson(rows, rankings, [ranker.labels for ranker in rankers])
