"""The documents of an ablation: a seeded part of a data set, the same for every arm and seed of a study."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.ablations.study import Documents
from xmtc import api
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.data import splits

_SEED = 20210  # of the choice of documents; never the seed of a run


def read_training(folder: Path, documents: Documents) -> tuple[Corpus, Corpus]:
    """Return (train, dev); dev has no document of train, and its own split if the set has one."""
    corpus = api.read_corpus(folder, "train")
    has_dev = "dev" in splits(folder)
    wanted = documents.train + (0 if has_dev else documents.dev)
    if wanted > len(corpus):
        raise DataError(f"the study needs {wanted:,} training documents, and {folder.name} has {len(corpus):,}")
    order = np.random.default_rng(_SEED).permutation(len(corpus))[:wanted]
    train = corpus.take(np.sort(order[: documents.train])).compact()
    if has_dev:
        return train, _some(api.read_corpus(folder, "dev"), documents.dev)
    return train, corpus.take(np.sort(order[documents.train :]))


def read_test(folder: Path, documents: Documents) -> Corpus:
    """Return the test documents."""
    return _some(api.read_corpus(folder, "test"), documents.test)


def _some(corpus: Corpus, n: int) -> Corpus:
    """At most n documents, in their order."""
    return corpus.take(np.sort(np.random.default_rng(_SEED).permutation(len(corpus))[:n]))
