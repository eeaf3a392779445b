"""Label vectors of every kind, with the encoder that some of them need, as it was pretrained.

A corpus's texts, features and labels enter, one vector a label leaves; see `methods/xbert/index.py` for the kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import scipy.sparse as sp

from xmtc.core.errors import ConfigError
from xmtc.core.labels import LabelSet
from xmtc.core.progress import SILENT, Progress
from xmtc.core.texts import Texts
from xmtc.features.clustering import Vectors
from xmtc.features.label_vectors import pifa
from xmtc.features.words import load_wordllama
from xmtc.methods.xbert.index import IndexConfig, VectorKind, text_vectors
from xmtc.neural.embed import embed_by_words, embed_texts
from xmtc.neural.encoder import Encoder, Tokenizer, WindowedEncoderConfig, load_encoder

_LABEL_TOKENS = 64  # of a label's text that the encoder reads


def check_encoders(kinds: Iterable[VectorKind], index: IndexConfig, matcher: WindowedEncoderConfig) -> None:
    """Refuse encoders of label vectors that cannot be loaded, before anything else is done."""
    for kind in kinds:
        if kind in ("text", "pifa-neural") or (kind == "words" and load_wordllama() is None):
            _load(kind, index, matcher)


def _load(kind: VectorKind, index: IndexConfig, matcher: WindowedEncoderConfig) -> tuple[Encoder, Tokenizer]:
    """The encoder that label vectors of a kind are made with."""
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
    """What label vectors are made of."""

    labels: LabelSet
    texts: Texts  # of the training documents
    X: sp.csr_matrix  # their TF-IDF
    Y: sp.csr_matrix  # (documents × labels)
    index: IndexConfig
    encoder: WindowedEncoderConfig  # the matcher's
    progress: Progress = SILENT

    def vectors(self, kind: VectorKind) -> Vectors:
        """Return one row for each label."""
        index, progress = self.index, self.progress
        progress.stage("label vectors")
        if kind == "pifa":
            return pifa(self.X, self.Y, index.weighting, index.top)
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
