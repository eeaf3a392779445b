"""Tokens: texts tokenized once, stored on disk, mapped into memory by every epoch and every run.

Independent of encoders: the tokenizer is passed as a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xmtc.core.cache import cached, key_of
from xmtc.core.progress import SILENT, Progress
from xmtc.core.texts import Texts

Tokenize = Callable[[Sequence[str]], list[list[int]]]
_BATCH = 1000  # texts per call


@dataclass(frozen=True, eq=False)
class Tokens:
    """Token ids of many documents: document i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    states: NDArray[np.float16] | None = None  # (tokens, d) after an encoder's frozen layers, if they are stored

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, document: int) -> NDArray[np.int32]:
        return self.ids[self.offsets[document] : self.offsets[document + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each document."""
        return np.diff(self.offsets)

    def places(self, documents: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the positions of the tokens of some documents, one document after another."""
        return np.concatenate([np.arange(self.offsets[row], self.offsets[row + 1]) for row in documents])


def tokenize(texts: Sequence[str], tokenizer: Tokenize, progress: Progress = SILENT) -> Tokens:
    """Tokenize texts in memory."""
    ids: list[NDArray[np.int32]] = []
    lengths = [0]
    for start in range(0, len(texts), _BATCH):
        rows = tokenizer(list(texts[start : start + _BATCH]))
        lengths += [len(row) for row in rows]
        ids.append(np.fromiter((token for row in rows for token in row), dtype=np.int32))
        progress.step(min(start + _BATCH, len(texts)), len(texts))
    return Tokens(np.concatenate(ids) if ids else np.empty(0, np.int32), np.cumsum(lengths, dtype=np.int64))


def tokenize_once(texts: Texts, tokenizer: Tokenize, fingerprint: str, progress: Progress = SILENT) -> Tokens:
    """Tokenize texts, or map the result of an earlier run; `fingerprint` identifies the tokenizer and its settings."""

    def compute() -> dict[str, NDArray]:
        progress.stage("tokenizing")
        tokens = tokenize(texts, tokenizer, progress)
        return {"ids": tokens.ids, "offsets": tokens.offsets}

    key = key_of([fingerprint, texts.buffer, texts.offsets])
    found = cached("tokens", key, ("ids", "offsets"), compute)
    return Tokens(found["ids"], found["offsets"])
