"""Nearest neighbours: rank the labels of the training documents most similar to a text, weighted by similarity.

Only TF-IDF's vocabulary is learned; an encoder is used as pretrained. See docs/methods/knn.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from xmtc.core.abilities import TakesLabels
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept
from xmtc.core.method import Method
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import FolderReader, Manifest
from xmtc.core.texts import Texts
from xmtc.core.updatable import Updatable, UpdatableDetails
from xmtc.features.tfidf import fit_tfidf
from xmtc.methods.knn.model import NAME, KnnConfig, KnnModel
from xmtc.methods.knn.pool import LabelKeys, Pool, Reader, Vectors


class KnnMethod(Method[KnnConfig], Updatable[KnnModel], TakesLabels[KnnModel]):
    """Train, load and update knn models."""

    name = NAME
    Config = KnnConfig
    cheap = True

    def train(
        self,
        corpus: Corpus,
        config: KnnConfig,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        progress: Progress = SILENT,
        partial: Path | None = None,
    ) -> KnnModel:
        """Store the labelled documents of a corpus, by their texts, or by their features if it has no texts."""
        rows = corpus.labelled_rows()
        reader, vectors = _read(corpus, config, progress)
        Y = corpus.Y[:, : corpus.labels.n_labels].tocsr()
        ids = corpus.ids
        if len(rows) < len(corpus):  # documents without labels do not vote
            vectors, Y, ids = vectors.take(rows), Y[rows], ids.take(rows)
        pool = Pool.build(vectors, config.neighbours.share, config.neighbours.approximate, progress)
        manifest = Manifest.describe(NAME, config, corpus, seed, UpdatableDetails(features=reader.n_features))
        keys = None
        if config.neighbours.labels:
            if corpus.texts is None:
                raise DataError("neighbours.labels reads label texts, and the corpus has only features; leave it out")
            keys = LabelKeys.build(corpus.labels, reader, config.neighbours.share)
        return KnnModel(manifest, config, corpus.labels, ids, Y, pool, reader, keys)

    def load(self, reader: FolderReader) -> KnnModel:
        """Load a model from its folder; needs neither training data nor hub nor cache."""
        return KnnModel.load(reader)

    def uses_dev(self, config: KnnConfig) -> bool:
        """Return False: this method does not use dev documents."""
        return False

    def update(
        self,
        model: KnnModel,
        corpus: Corpus | None,
        *,
        base: Corpus | None = None,
        retire: Iterable[str] = (),
        budget: float = 0.05,
        progress: Progress = SILENT,
    ) -> KnnModel:
        """Return a model with more documents and labels, and without the labels to retire; see `xmtc.update`.

        Adding documents needs no training, so `budget` has no effect.
        """
        from xmtc.methods.knn.update import update_model

        return update_model(model, corpus, base, retire, progress)

    def add_labels(self, model: KnnModel, concepts: Sequence[Concept], *, progress: Progress = SILENT) -> KnnModel:
        """Return a model in which the texts of these concepts also vote; see `xmtc.update`."""
        from xmtc.methods.knn.update import add_labels

        return add_labels(model, concepts)


def _read(corpus: Corpus, config: KnnConfig, progress: Progress) -> tuple[Reader, Vectors]:
    """Return the reader of documents, and the vectors of the training documents."""
    kind = config.neighbours.vectors
    if corpus.texts is None:
        assert corpus.X is not None  # a corpus has texts or features
        if kind != "tfidf":
            raise DataError(f"neighbours.vectors={kind} reads texts, and the corpus has only features; leave it out")
        return Reader(None, None, corpus.X.shape[1]), Vectors(corpus.X.astype(np.float32), None)
    tfidf, sparse, encoder, dense = None, None, None, None
    if kind != "encoder":
        tfidf, sparse = fit_tfidf(corpus.texts, config.tfidf, progress)
    if kind != "tfidf":
        from xmtc.neural.embed import FrozenEncoder

        encoder = FrozenEncoder.pretrained(config.encoder)
        dense = encoder.once(Texts.pack(corpus.texts), progress)
    return Reader(tfidf, encoder, None), Vectors(sparse, dense)
