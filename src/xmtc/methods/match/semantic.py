"""Find labels by meaning: those whose texts are nearest to a document's, by a frozen encoder.

Vectors of label texts are computed once, stored on disk and memory-mapped. A document is read in windows of words; the
similarity of a label is that of the nearest window. torch is imported only if an encoder is used.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.labels import LabelSet
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import FolderReader, FolderWriter
from xmtc.core.stored_arrays import check_array, misfit
from xmtc.core.texts import Texts
from xmtc.features.label_vectors import named_texts
from xmtc.features.neighbours import NeighbourStore
from xmtc.neural.encoder_config import EncoderConfig

if TYPE_CHECKING:
    from xmtc.neural.embed import FrozenEncoder

_PREFIX = "label_vectors"


class SemanticConfig(Settings):
    """Settings of candidates by meaning."""

    nearest: int = Field(
        0,
        ge=0,
        le=10_000,
        description="number of nearest labels by encoder.name that are candidates; 0: no encoder is used",
    )
    windows: int = Field(4, ge=1, le=10_000, description="maximum parts read of a long text, evenly spread")
    window: int = Field(100, ge=1, le=1_000_000, description="words per part")


@dataclass(frozen=True, eq=False)
class LabelVectors:
    """Vectors of labels, and the encoder that makes vectors of texts."""

    encoder: FrozenEncoder
    store: NeighbourStore
    entries: NDArray[np.int32]  # label of each vector, ascending
    config: SemanticConfig

    @classmethod
    def build(
        cls,
        labels: LabelSet,
        config: SemanticConfig,
        encoder: EncoderConfig,
        progress: Progress = SILENT,
    ) -> LabelVectors:
        """Read the texts of all labels that have names."""
        from xmtc.neural.embed import FrozenEncoder

        frozen = FrozenEncoder.pretrained(encoder)
        entries, texts = named_texts(labels)
        vectors = frozen.once(Texts.pack(texts), progress)
        return cls(frozen, NeighbourStore.build(vectors), entries.astype(np.int32), config)

    def renew(self, labels: LabelSet, gone: Collection[str]) -> LabelVectors:
        """Return the vectors of other labels, without those whose ids are in `gone`."""
        entries, texts = named_texts(labels, gone)
        vectors = self.encoder(Texts.pack(texts))
        return replace(self, store=NeighbourStore.build(vectors), entries=entries.astype(np.int32))

    def search(
        self, texts: Texts, rows: NDArray[np.int64], entries: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """Return the nearest labels of texts, and those of the given pairs, as (texts, entries, similarities).

        rows, entries: pairs of a text and an entry. Pairs are sorted by both, in the input and in the result.
        """
        windows, owner = _split(texts, self.config)
        queries = self.encoder(windows)
        near = self.store.search(queries, self.config.nearest)
        given = near.rows >= 0
        width = int(self.entries[-1]) + 2 if len(self.entries) else 2
        width = max(width, int(entries.max(initial=0)) + 1)
        keys = (owner[:, None] * width + self.entries[np.maximum(near.rows, 0)])[given]
        pairs = np.unique(np.concatenate([rows * width + entries, keys]))
        found_rows, found = np.divmod(pairs, width)
        place = np.searchsorted(self.entries, found).clip(max=max(0, len(self.entries) - 1))
        place = np.where(self.entries[place] == found, place, -1) if len(self.entries) else np.full(len(found), -1)
        starts = np.searchsorted(found_rows, np.arange(len(texts) + 1))
        similarities = np.full(len(pairs), -1, dtype=np.float32)
        of_text = starts[owner + 1] - starts[owner]
        wanted = np.full((len(owner), int(of_text.max(initial=1))), -1, dtype=np.int32)
        for window, text in enumerate(owner.tolist()):
            wanted[window, : of_text[window]] = place[starts[text] : starts[text + 1]]
        compared = self.store.compare(queries, wanted)
        for window, text in enumerate(owner.tolist()):
            part = slice(starts[text], starts[text + 1])
            similarities[part] = np.maximum(similarities[part], compared[window, : of_text[window]])
        similarities[place < 0] = np.nan
        return found_rows, found.astype(np.int32), similarities

    def save(self, out: FolderWriter) -> None:
        """Write the vectors and the encoder."""
        out.arrays(_PREFIX, {"entries": self.entries})
        out.arrays(f"{_PREFIX}_store", self.store.arrays())
        self.encoder.save(out, "texts")

    @classmethod
    def load(cls, reader: FolderReader, config: SemanticConfig, encoder: EncoderConfig, n_entries: int) -> LabelVectors:
        """Load what `save` wrote; the vectors are memory-mapped. n_entries: labels and concepts of the model."""
        from xmtc.neural.embed import FrozenEncoder

        read = FrozenEncoder.restore(reader, "texts", encoder)
        store = NeighbourStore.from_arrays(reader.arrays(f"{_PREFIX}_store"), read.encoder.width)
        within = (0, n_entries - 1)
        arrays = reader.arrays(_PREFIX)
        entries = check_array(arrays, "entries", "int32", length=len(store), within=within)
        if (entries[1:] <= entries[:-1]).any():
            raise misfit(arrays, "entries", "must rise")
        return cls(read, store, entries, config)


def _split(texts: Texts, config: SemanticConfig) -> tuple[Texts, NDArray[np.int64]]:
    """Return the windows of all texts, and the text of each; a text without words is one empty window."""
    windows, owner = list[str](), list[int]()
    for row, text in enumerate(texts):
        words = text.split()
        n = max(1, -(-len(words) // config.window))
        chosen = np.unique(np.linspace(0, n - 1, min(n, config.windows)).round().astype(int)).tolist()
        windows += [" ".join(words[i * config.window : (i + 1) * config.window]) for i in chosen]
        owner += [row] * len(chosen)
    return Texts.pack(windows), np.array(owner, dtype=np.int64)
