"""Held-out documents: the part of a training corpus that is never trained on.

A corpus, or a model with the corpus of its training, enters; documents that were not trained on leave. Knows no method:
`api` passes the function that trains a copy of a model.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress

DEV_FRACTION = 0.05  # of the training documents, unless a setting says otherwise
DEV_LIMIT = 4000  # documents held out at most


def hold_out(corpus: Corpus, fraction: float, seed: int, progress: Progress = SILENT) -> tuple[Corpus, Corpus]:
    """Split a training corpus into (train, dev) by a seed; dev has at most DEV_LIMIT documents.

    A corpus of one document is both.
    """
    n = len(corpus) - corpus.n_names
    if n == 1:
        return corpus, corpus
    kept, held = corpus.split(min(fraction, DEV_LIMIT / n), seed)
    progress.say(f"dev: {len(held):,} of the {n:,} training documents are held out")
    return kept, held


def find_unseen(
    model: Model,
    corpus: Corpus,
    train_again: Callable[[Model, Corpus, Progress], Model],
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
    labelled = corpus.take(np.flatnonzero(np.diff(corpus.Y.indptr)))  # training holds out some of these
    kept, held = hold_out(labelled, manifest.config.get("train", {}).get("dev_fraction", DEV_FRACTION), manifest.seed)
    part = f"{len(held):,} of the {len(corpus):,} training documents"
    if manifest.details.curve:  # a curve of dev scores: training had dev documents
        progress.say(f"dev: {part}, which training held out")
        return model, held, "held out of training"
    progress.say(f"dev: {part}; a copy of the model is trained without them, and ranks them")
    return train_again(model, kept, progress), held, "held out of training (ranked by a copy trained without them)"


def is_training_corpus(model: Model, corpus: Corpus) -> bool:
    """Say whether a corpus is what a model was trained on: as many documents, and of every label as many.

    Its fingerprint would not tell: it holds the names of labels too, and the same documents may come without them.
    """
    if len(corpus) != model.manifest.n_documents:
        return False
    aligned = corpus.align(model.labels)
    counts = np.bincount(aligned.Y.indices, minlength=len(aligned.labels))
    return np.array_equal(counts, aligned.labels.counts)
