"""MatchModel: find labels by their names in a text and rank them.

If fewer than k labels are found, the others follow with score 0, the most frequent ones.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.errors import DataError
from xmtc.core.explanation import Explanation
from xmtc.core.filling import fill_up, most_frequent
from xmtc.core.labels import LabelSet
from xmtc.core.model import DisplayedModel, Documents, check_k, pack_texts
from xmtc.core.parallel import blocks, run
from xmtc.core.propensity import Propensity
from xmtc.core.ranking import Ranking
from xmtc.core.search_space import Tunable
from xmtc.core.storage import FolderReader, Manifest, write_folder
from xmtc.core.stored_arrays import check_array
from xmtc.core.texts import Texts
from xmtc.core.updatable import UpdatableDetails
from xmtc.features.boosting import BoosterConfig, Trees
from xmtc.features.words import word_spans
from xmtc.methods.match.index import Index
from xmtc.methods.match.kernels import FIRST, FIRST_SHARE, GAP, N_TEXT, find_loose, find_names, find_pairs
from xmtc.methods.match.ranker import FEATURES, SIMILARITY, SIMILARITY_PLACE, Pairs, Usage, describe, score
from xmtc.methods.match.semantic import LabelVectors, SemanticConfig
from xmtc.methods.match.stems import Read
from xmtc.neural.encoder_config import EncoderConfig

NAME = "match"
PART = 256  # documents per task
_TREES = "trees.txt"


class NameConfig(Settings):
    """Settings of how names are found."""

    analyzer: str = Field(
        "stem:en", description="how words of names and texts are compared: words, stem:<language>, lemma:<language>"
    )
    gap: Annotated[int, Tunable(0, 10)] = Field(
        4, ge=-1, le=100, description="maximum other words between the words of a name; -1: only whole names are found"
    )


class LearnConfig(Settings):
    """Settings of the ranker's training."""

    documents: int = Field(20_000, ge=0, description="maximum number of training documents to learn from")
    least: int = Field(
        50, ge=2, description="minimum labelled documents to train the ranker; with fewer, a fixed rule ranks"
    )


class MatchConfig(Settings):
    """Settings of the match method."""

    names: NameConfig = Field(default_factory=NameConfig)
    semantic: SemanticConfig = Field(default_factory=SemanticConfig)
    encoder: EncoderConfig = Field(default_factory=EncoderConfig)
    learn: LearnConfig = Field(default_factory=LearnConfig)
    # fewer trees than in an ensemble: a text has many more candidates here
    booster: BoosterConfig = Field(default_factory=lambda: BoosterConfig(trees=100, rate=0.1))
    propensity: Propensity = Field(default_factory=Propensity)  # of the dataset, for PSP@k


class MatchDetails(UpdatableDetails):
    """Facts that a match model stores next to its settings and arrays."""

    features: None = None  # it ranks texts only
    analyzer: str  # used to match names; plain words if there was no stemmer
    n_counted: int = 0  # training documents in which names were counted


@dataclass(frozen=True, eq=False, repr=False)
class MatchModel(DisplayedModel):
    """A trained match model; see `xmtc.core.model.Model`."""

    manifest: Manifest[MatchDetails]
    config: MatchConfig
    labels: LabelSet
    index: Index
    weights: NDArray[np.float32]  # of each stem: its inverse document frequency
    usage: Usage
    text: str | None  # the trees, in LightGBM's text format; None: a fixed rule ranks
    vectors: LabelVectors | None

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each text, including concepts without training documents."""
        check_k(k)
        texts = pack_texts(documents)
        parts = [texts[start:stop] for start, stop in blocks(len(texts), PART)]
        found = self.find(parts, [self.index.stems(part) for part in parts])
        ranked = [self._rank(part, pairs, k) for part, pairs in zip(parts, found, strict=True)]
        empty = Ranking(np.zeros((0, k), np.int32), np.zeros((0, k), np.float32))
        return replace(Ranking.stack(ranked or [empty]), label_set=self.labels)

    def find(self, parts: list[Texts], read: list[Read]) -> list[Pairs]:
        """Return all labels found in texts, part by part, with their features; read: the stems of the texts."""
        offsets, parents = self._parents
        limit = self.config.names.gap

        def find(part: Read) -> Pairs:
            rows, entries, features = find_pairs(
                *part, self.index.trie, self.index.names, self.weights, offsets, parents, limit
            )
            wide = np.full((len(rows), len(FEATURES)), np.nan, dtype=np.float32)
            wide[:, :N_TEXT] = features
            return Pairs(rows, entries, wide)

        found = run(find, read)
        if self.vectors is None:
            return found
        return [self._add_nearest(part, pairs) for part, pairs in zip(parts, found, strict=True)]

    @cached_property
    def ranked_concepts(self) -> NDArray[np.int64]:
        """Return concepts that have a name and are not retired."""
        named = self.index.named(len(self.labels))
        named[: self.labels.n_labels] = False
        return np.flatnonzero(named)

    def forget(self, ids: Collection[str]) -> MatchModel:
        """Return a copy that ranks these labels as if they had no training documents."""
        counts = self.labels.counts.copy()
        counts[[self.labels.position[label] for label in ids if label in self.labels.position]] = 0
        return replace(self, labels=self.labels.with_counts(counts))

    def explain(self, text: str, label: str) -> Explanation:
        """Explain where the names of a label (id or name) occur in a text."""
        entry = self.labels.find(label)
        if entry >= self.labels.n_labels and entry not in self.ranked_concepts:
            raise DataError(f"label {label!r} has no training document and no name, so the model never suggests it")
        part = Texts.pack([text])
        (pairs,) = self.find([part], [self.index.stems(part)])
        describe(pairs, self.labels.counts, self.usage)
        own = pairs.entries == entry
        value = float(np.float32(score(pairs, self.trees)[own][0])) if own.any() else 0.0
        places = self._places(text, entry)
        spans = tuple((start, end, value / len(places)) for start, end in places)
        return Explanation(label=self.labels.ids[entry], score=value, spans=spans, method=NAME, text=text)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model folder atomically."""
        with write_folder(folder, overwrite=overwrite) as out:
            out.labels(self.labels)
            out.arrays("index", self.index.arrays())
            out.arrays("usage", {"found": self.usage.found, "right": self.usage.right, "weights": self.weights})
            if self.text is not None:
                out.text(_TREES, self.text)
            if self.vectors is not None:
                self.vectors.save(out)
            out.manifest(self.manifest)

    @classmethod
    def load(cls, reader: FolderReader) -> MatchModel:
        """Load a model from its folder; the index is memory-mapped."""
        manifest, config, labels = reader.open(MatchConfig, MatchDetails)
        usage = reader.arrays("usage")
        index = Index.from_arrays(reader.arrays("index"), manifest.details.analyzer, len(labels))
        found, right = (check_array(usage, name, "int64", length=len(labels)) for name in ("found", "right"))
        weights = check_array(usage, "weights", "float32", length=len(index.stems))
        vectors = (
            LabelVectors.load(reader, config.semantic, config.encoder, len(labels)) if config.semantic.nearest else None
        )
        counted = Usage(found, right, manifest.details.n_counted)
        model = cls(manifest, config, labels, index, weights, counted, reader.text(_TREES), vectors)
        _ = model.trees  # raise now if the text is not in LightGBM's format
        return model

    @cached_property
    def trees(self) -> Trees | None:
        """Return the trees, validated; None for a model that ranks by the rule."""
        return None if self.text is None else Trees.parse(self.text, FEATURES)

    @cached_property
    def _parents(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        return flat_parents(self.labels)

    @cached_property
    def _frequent(self) -> NDArray[np.int32]:
        return most_frequent(self.labels)

    def _rank(self, texts: Texts, pairs: Pairs, k: int) -> Ranking:
        describe(pairs, self.labels.counts, self.usage)
        scores = score(pairs, self.trees)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(pairs.rows, minlength=len(texts)))])
        matrix = sp.csr_matrix((scores, pairs.entries, indptr), shape=(len(texts), len(self.labels)))
        return fill_up(Ranking.from_csr(matrix, k), self._frequent)

    def _add_nearest(self, texts: Texts, pairs: Pairs) -> Pairs:
        """Return the pairs, plus pairs of the labels nearest by meaning, with similarities."""
        assert self.vectors is not None
        rows, entries, similarities = self.vectors.search(texts, pairs.rows, pairs.entries)
        features = np.zeros((len(rows), len(FEATURES)), dtype=np.float32)
        features[:, [FIRST, FIRST_SHARE, GAP]] = np.nan  # of labels that are not found by name
        width = len(self.labels)
        features[np.searchsorted(rows * width + entries, pairs.rows * width + pairs.entries)] = pairs.features
        features[:, SIMILARITY] = similarities
        order = np.lexsort((-np.nan_to_num(similarities, nan=-1.0), rows))
        place = np.arange(len(rows)) - np.searchsorted(rows, rows)
        features[order, SIMILARITY_PLACE] = place
        return Pairs(rows, entries, features)

    def _places(self, text: str, entry: int) -> list[tuple[int, int]]:
        """Return where names of a label occur in a text, in characters, without overlaps: exact, else loose."""
        stems, _ = self.index.stems([text])
        names = self.index.names
        starts, stops, found, _ = find_names(stems, self.index.trie)
        covered = np.zeros(len(stems), dtype=bool)
        for start, stop, name in zip(starts.tolist(), stops.tolist(), found.tolist(), strict=True):
            if entry in names.owners[names.owner_offsets[name] : names.owner_offsets[name + 1]]:
                covered[start:stop] = True
        if not covered.any() and self.config.names.gap >= 0:
            begins, gaps, loosely = find_loose(stems, names, found, self.config.names.gap)
            for start, gap, name in zip(begins.tolist(), gaps.tolist(), loosely.tolist(), strict=True):
                if entry in names.owners[names.owner_offsets[name] : names.owner_offsets[name + 1]]:
                    own = names.stems[names.offsets[name] : names.offsets[name + 1]]
                    window = slice(start, start + len(own) + gap)
                    covered[window] |= np.isin(stems[window], own)
        words = word_spans(text)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], covered.astype(np.int8), [0]])))
        return [
            (words[first][0], words[last - 1][1])
            for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
        ]


def flat_parents(labels: LabelSet) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the parents of all entries in one array, and the start of each entry's parents."""
    offsets = np.concatenate([[0], np.cumsum([len(above) for above in labels.parents])]).astype(np.int64)
    return offsets, np.array([parent for above in labels.parents for parent in above], dtype=np.int32)
