"""Make label vectors of every kind, with a pretrained encoder for those that need it.

Input: a corpus's texts, features and labels. Output: one vector per label; see `methods/xbert/index.py` for the kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from xmtc.core.errors import ConfigError, DataError
from xmtc.core.labels import LabelSet
from xmtc.core.progress import SILENT, Progress
from xmtc.core.texts import Texts
from xmtc.data import read_label_vectors
from xmtc.features.clustering import Vectors
from xmtc.features.label_vectors import pifa
from xmtc.features.words import load_wordllama
from xmtc.methods.xbert.index import IndexConfig, VectorKind, text_vectors
from xmtc.neural.embed import embed_by_words, embed_texts
from xmtc.neural.encoder import Encoder, PooledEncoderConfig, Tokenizer, load_encoder

_LABEL_TOKENS = 64  # tokens of a label's text that the encoder reads


def check_encoders(kinds: Iterable[VectorKind], index: IndexConfig, matcher: PooledEncoderConfig) -> None:
    """Raise if encoders or a file of label vectors cannot be read, before any other work."""
    for kind in kinds:
        if kind == "file" and not Path(index.file or "").is_file():
            raise ConfigError(f"cluster.file: no such file: {index.file!r}")
        if kind in ("text", "pifa-neural") or (kind == "words" and load_wordllama() is None):
            _load(kind, index, matcher)


def _load(kind: VectorKind, index: IndexConfig, matcher: PooledEncoderConfig) -> tuple[Encoder, Tokenizer]:
    """Return the encoder for label vectors of this kind."""
    of_labels = min(_LABEL_TOKENS, matcher.max_length)
    changed = {
        "name": index.encoder or matcher.name,
        "max_length": matcher.max_length if kind == "pifa-neural" else of_labels,
        "windows": 1,
    }
    try:
        return load_encoder(matcher.model_copy(update=changed))
    except ConfigError as error:
        raise (ConfigError(f"cluster.encoder: {error}") if index.encoder else error) from None


@dataclass(frozen=True, eq=False)
class LabelEncoding:
    """The inputs of label vectors."""

    labels: LabelSet
    texts: Texts  # of the training documents
    X: sp.csr_matrix  # their TF-IDF
    Y: sp.csr_matrix  # (documents × labels)
    index: IndexConfig
    encoder: PooledEncoderConfig  # the matcher's
    progress: Progress = SILENT

    def vectors(self, kind: VectorKind) -> Vectors:
        """Return one row per label."""
        index, progress = self.index, self.progress
        progress.stage("label vectors")
        if kind == "pifa":
            return pifa(self.X, self.Y, index.weighting, index.top)
        if kind == "file":
            return file_vectors(self.labels, Path(index.file or ""), index.metric == "spherical", progress)
        wordllama = load_wordllama() if kind == "words" else None
        if wordllama is not None:
            return text_vectors(self.labels, self.Y, wordllama, progress)
        encoder, tokenizer = _load(kind, index, self.encoder)
        if kind == "pifa-neural":
            documents = sp.csr_matrix(embed_texts(self.texts, encoder, tokenizer, progress))
            return pifa(documents, self.Y, index.weighting, index.top)
        if kind == "words":
            progress.say("wordllama is not installed: label texts are read by the encoder's word embeddings")
            return text_vectors(self.labels, self.Y, embed_by_words(encoder, tokenizer), progress)
        return text_vectors(
            self.labels, self.Y, lambda texts: embed_texts(Texts.pack(texts), encoder, tokenizer, progress), progress
        )


def file_vectors(labels: LabelSet, path: Path, unit: bool, progress: Progress = SILENT) -> Vectors:
    """Return the (labels × d) rows of a file of label vectors, matched by label ids.

    unit: normalize rows to length 1, for spherical k-means. A label missing from the file gets zero, which may be put
    in any cluster; raises DataError if more than half are missing.
    """
    ids, rows = read_label_vectors(path)
    row_of = {label: i for i, label in enumerate(ids)}
    places = np.array([row_of.get(label, -1) for label in labels.ids[: labels.n_labels]], dtype=np.int64)
    found = places >= 0
    n_missing = int((~found).sum())
    if 2 * n_missing > labels.n_labels:
        raise DataError(
            f"{path} has no row for {n_missing:,} of {labels.n_labels:,} labels, such as "
            f"{labels.ids[int(np.argmin(found))]!r}; its labels look like {ids[0]!r}; check the file"
        )
    if n_missing:
        progress.say(f"{n_missing:,} of {labels.n_labels:,} labels have no row in {path.name}: they go to any cluster")
    scale = found.astype(np.float32)
    chosen = rows[np.maximum(places, 0)]
    if unit:
        squares = chosen.multiply(chosen).sum(axis=1) if sp.issparse(chosen) else np.square(chosen).sum(axis=1)
        lengths = np.sqrt(np.asarray(squares, dtype=np.float64)).ravel()
        scale = (scale / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    if not sp.issparse(chosen):
        return np.asarray(chosen * scale[:, None], dtype=np.float32)
    scaled: sp.csr_matrix = (sp.diags(scale) @ chosen).tocsr()
    scaled.eliminate_zeros()
    return scaled
