"""Held-out documents: the part of a training corpus that is never trained on.

A corpus, or models with the corpus of their training, enter; documents that were not trained on leave. Knows no method:
`api` passes the functions that train a copy of a model and that say whether a copy is cheap. A corpus with groups is
held out by whole groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.labels import LabelSet
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.rank_corpus import rank_corpus
from xmtc.core.ranking import Ranking
from xmtc.core.storage import hash_groups
from xmtc.core.texts import Texts

DEV_FRACTION = 0.05  # of the training documents, unless a setting says otherwise
DEV_LIMIT = 4000  # documents held out at most
FOLDS = 3  # parts of a training corpus, each ranked by models that are trained on the others

TrainAgain = Callable[[Model, Corpus, Progress], Model]


def hold_out(corpus: Corpus, fraction: float, seed: int, progress: Progress = SILENT) -> tuple[Corpus, Corpus]:
    """Split a training corpus into (train, dev) by a seed; dev has at most DEV_LIMIT documents.

    With a fraction of 0 dev has none. Otherwise a corpus of one document is both.
    """
    if fraction == 0:
        return corpus, corpus.take([])
    if len(corpus) == 1:
        return corpus, corpus
    kept, held = corpus.split(min(fraction, DEV_LIMIT / len(corpus)), seed)
    progress.say(f"dev: {len(held):,} of the {len(corpus):,} training documents are held out")
    return kept, held


def find_unseen(
    model: Model,
    corpus: Corpus,
    train_again: TrainAgain,
    progress: Progress = SILENT,
) -> tuple[Model, Corpus, str]:
    """Return a model, documents of a corpus that it was not trained on, and in words which these are.

    They are all documents, unless the corpus is what the model was trained on: then they are the part that training
    held out, or, where it held out none, a part that a copy of the model, returned here, is trained without. A model
    that had other documents as dev is refused: it was trained on all of these, and a copy may take hours.
    """
    manifest = model.manifest
    if not is_training_corpus(model, corpus):
        return model, corpus, "given for it"
    if manifest.details.dev is not None:
        raise DataError(
            "the model was trained on all of these documents, and chosen by others, given as dev; give those, or any "
            "that it was not trained on"
        )
    kept, held = (corpus.take(rows) for rows in _hold_out_again(model, corpus))
    part = f"{len(held):,} of the {len(corpus):,} training documents"
    if _held_out_dev(model):
        progress.say(f"dev: {part}, which training held out")
        return model, held, "held out of training"
    progress.say(f"dev: {part}; a copy of the model is trained without them, and ranks them")
    return train_again(model, kept, progress), held, "held out of training (ranked by a copy trained without them)"


def _hold_out_again(model: Model, corpus: Corpus) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of a model's training corpus: those that it was trained on, and those that it held out, or would have."""
    manifest = model.manifest
    if _held_out_dev(model):  # find the same documents
        if manifest.groups is None:
            corpus = corpus.grouped(None)
        elif corpus.groups is None or hash_groups(corpus.groups) != manifest.groups:
            raise DataError("training held out documents by group; read the documents with the --group of training")
    labelled = np.flatnonzero(np.diff(corpus.Y.indptr))  # training holds out some of these
    fraction = _dev_fraction(model) or DEV_FRACTION
    numbered = replace(corpus.take(labelled), ids=Texts.pack(map(str, labelled.tolist())))
    kept, held = hold_out(numbered, fraction, manifest.seed)
    return np.array(list(map(int, kept.ids))), np.array(list(map(int, held.ids)))


def _held_out_dev(model: Model) -> bool:
    """Say whether training held out a part of its own documents to choose the epoch by."""
    details = model.manifest.details
    return bool(details.curve) and details.dev is None and _dev_fraction(model) > 0


def _dev_fraction(model: Model) -> float:
    return float(model.manifest.config.get("train", {}).get("dev_fraction", DEV_FRACTION))


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
        if own and _held_out_dev(model):
            usable = np.intersect1d(usable, _hold_out_again(model, corpus)[1])
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


def is_training_corpus(model: Model, corpus: Corpus) -> bool:
    """Say whether a corpus is what a model was trained on: as many documents, and of every label as many.

    Its fingerprint would not tell: it holds the names of labels too, and the same documents may come without them.
    """
    if len(corpus) != model.manifest.n_documents:
        return False
    aligned = corpus.align(model.labels)
    counts = np.bincount(aligned.Y.indices, minlength=len(aligned.labels))
    return np.array_equal(counts, aligned.labels.counts)
