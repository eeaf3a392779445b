"""Word vectors that replace an encoder, for networks that read words and have their own layers.

Input: rows of word numbers. Output: one context-free vector per word. Callers can use it as an encoder without layers,
with a tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from xmtc.features.words import PAD, Words
from xmtc.neural.encoder import Encoded, Encoder, Tokenizer
from xmtc.neural.word_layout import WORD_LAYOUT


class WordEncoder(Encoder):
    """A table of word vectors; a step updates few of its rows."""

    def __init__(self, n_words: int, width: int) -> None:
        nn.Module.__init__(self)  # there is no network inside
        self.words = nn.Embedding(n_words, width, padding_idx=PAD, sparse=True)
        self.layout = WORD_LAYOUT
        self.width, self.n_layers, self.n_heads = width, 0, 0

    def forward(self, ids: Tensor, mask: Tensor, lower: Tensor | None = None) -> Encoded:
        """Return the vectors of padded word numbers (B, T); the first word takes the position of [CLS].

        There are no layers, so no states are stored: `lower` is None.
        """
        return Encoded((self.words(ids),), mask, torch.zeros(len(ids), dtype=torch.long, device=ids.device))

    def embed_words(self) -> nn.Embedding:
        """Return the table."""
        return self.words


class WordTokenizer(Tokenizer):
    """A vocabulary of words, with the interface of an encoder's tokenizer."""

    def __init__(self, words: Words) -> None:
        super().__init__(words, words.max_words)

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into word numbers."""
        found: list[list[int]] = self.inner(texts)
        return found

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) of each word in the text, in characters."""
        found: list[tuple[int, int]] = self.inner.offsets(text)
        return found

    def fingerprint(self) -> str:
        """Return a string that changes whenever the numbers could change."""
        return str(self.inner.fingerprint())
