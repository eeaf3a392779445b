"""Label vectors of every kind, with the encoder that some of them need, as it was pretrained.

A corpus's texts, features and labels enter, one vector a label leaves; see `features/label_index.py` for the kinds.
"""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp

from xmtc.core.labels import LabelSet
from xmtc.core.progress import SILENT, Progress
from xmtc.core.texts import Texts
from xmtc.features.clustering import Vectors
from xmtc.features.label_index import IndexConfig, VectorKind, text_vectors
from xmtc.features.label_vectors import pifa
from xmtc.features.words import load_wordllama
from xmtc.neural.embed import embed_by_words, embed_texts
from xmtc.neural.encoder import EncoderConfig, load_encoder

_LABEL_TOKENS = 64  # of a label's text that the encoder reads


@dataclass(frozen=True, eq=False)
class LabelEncoding:
    """What label vectors are made of."""

    labels: LabelSet
    texts: Texts  # of the training documents
    X: sp.csr_matrix  # their TF-IDF
    Y: sp.csr_matrix  # (documents × labels)
    index: IndexConfig
    encoder: EncoderConfig  # the matcher's
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
        of_labels = min(_LABEL_TOKENS, self.encoder.max_length)
        changed = {
            "name": index.encoder or self.encoder.name,
            "max_length": self.encoder.max_length if kind == "pifa-neural" else of_labels,
        }
        encoder, tokenizer = load_encoder(self.encoder.model_copy(update=changed))
        if kind == "pifa-neural":
            documents = sp.csr_matrix(embed_texts(self.texts, encoder, tokenizer, progress))
            return pifa(documents, self.Y, index.weighting, index.top)
        if kind == "words":
            progress.say("wordllama is not installed: label texts are read by the encoder's word embeddings")
            return text_vectors(self.labels, self.Y, embed_by_words(encoder, tokenizer), progress)
        return text_vectors(
            self.labels, self.Y, lambda texts: embed_texts(Texts.pack(texts), encoder, tokenizer, progress), progress
        )
