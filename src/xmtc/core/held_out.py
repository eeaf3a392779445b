"""Held-out documents: the part of a training corpus that is never trained on.

Input: a corpus, or a model with its training corpus. Output: documents that were not trained on. Independent of
methods: `api` passes the function that trains a copy of a model. A corpus with groups is held out by whole groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import hash_groups
from xmtc.core.texts import Texts

DEV_FRACTION = 0.05  # of the training documents, unless set otherwise
DEV_LIMIT = 4000  # maximum number of held-out documents

TrainAgain = Callable[[Model, Corpus, Progress], Model]


def hold_out(corpus: Corpus, fraction: float, seed: int, progress: Progress = SILENT) -> tuple[Corpus, Corpus]:
    """Split a training corpus into (train, dev) by a seed; dev has at most DEV_LIMIT documents.

    With a fraction of 0, dev is empty. Otherwise, a corpus of one document is used as both.
    """
    if fraction == 0:
        return corpus, corpus.take([])
    n = len(corpus) - corpus.n_names
    if n == 1:
        return corpus, corpus
    kept, held = corpus.split(min(fraction, DEV_LIMIT / n), seed)
    progress.say(f"dev: {len(held):,} of the {n:,} training documents are held out")
    return kept, held


def find_unseen(
    model: Model,
    corpus: Corpus,
    train_again: TrainAgain,
    progress: Progress = SILENT,
) -> tuple[Model, Corpus, str]:
    """Return a model, documents of a corpus that it was not trained on, and a description of these documents.

    If the corpus is not the model's training corpus, these are all documents. If it is, they are the part that training
    held out; if training held out none, a copy of the model is trained without a part, and the copy and that part are
    returned. Raises if the model was trained with separate dev documents: it was then trained on all documents of the
    corpus, and training a copy may take hours.
    """
    manifest = model.manifest
    if not is_training_corpus(model, corpus):
        return model, corpus, "given for it"
    if manifest.details.dev is not None:
        raise DataError(
            "the model was trained on all of these documents; give the dev documents of its training, or others that "
            "it was not trained on"
        )
    kept, held = (corpus.take(rows) for rows in hold_out_again(model, corpus))
    part = f"{len(held):,} of the {len(corpus):,} training documents"
    if held_out_dev(model):
        progress.say(f"dev: {part}, which training held out")
        return model, held, "held out of training"
    progress.say(f"dev: {part}; a copy of the model is trained without them, and ranks them")
    return train_again(model, kept, progress), held, "held out of training (ranked by a copy trained without them)"


def hold_out_again(model: Model, corpus: Corpus) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that a model's training used, and the rows that it held out or would have held out."""
    manifest = model.manifest
    if held_out_dev(model):  # recover the same documents
        if manifest.groups is None:
            corpus = corpus.grouped(None)
        elif corpus.groups is None or hash_groups(corpus.groups) != manifest.groups:
            raise DataError("training held out documents by group; read these with the same --group")
    labelled = np.flatnonzero(np.diff(corpus.Y.indptr))  # training holds out some of these
    fraction = _dev_fraction(model) or DEV_FRACTION
    numbered = replace(corpus.take(labelled), ids=Texts.pack(map(str, labelled.tolist())))
    kept, held = hold_out(numbered, fraction, manifest.seed)
    return np.array(list(map(int, kept.ids))), np.array(list(map(int, held.ids)))


def held_out_dev(model: Model) -> bool:
    """Return whether training held out a part of its own documents to choose the epoch."""
    details = model.manifest.details
    return bool(details.curve) and details.dev is None and _dev_fraction(model) > 0


def _dev_fraction(model: Model) -> float:
    return float(model.manifest.config.get("train", {}).get("dev_fraction", DEV_FRACTION))


def is_training_corpus(model: Model, corpus: Corpus) -> bool:
    """Return whether a corpus is a model's training corpus: same number of documents, and the same number per label.

    The fingerprint is no help here: it includes label names, and the same documents may come without names.
    """
    if len(corpus) != model.manifest.n_documents:
        return False
    aligned = corpus.align(model.labels)
    counts = np.bincount(aligned.Y.indices, minlength=len(aligned.labels))
    return np.array_equal(counts, aligned.labels.counts)
