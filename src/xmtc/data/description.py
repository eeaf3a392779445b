"""Compute statistics of a data set from its files. Prints nothing; `app/` shows them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataWarning, Notice
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.metrics import BINS, find_bins
from xmtc.core.texts import Texts
from xmtc.data.languages import guess_languages
from xmtc.data.likeness import count_near, sign
from xmtc.data.read import detect, read_corpus, splits
from xmtc.data.table_mapping import TableMapping
from xmtc.data.vocabulary import read_vocabulary


@dataclass(frozen=True)
class SplitFigures:
    """Statistics of one split; text fields are None without texts, comparisons with train are None for train."""

    documents: int
    labels: int  # that occur
    labels_per_document: float
    words_per_document: float | None  # words are separated by white space
    features: int | None  # columns of X
    empty_texts: int | None
    without_labels: int
    duplicate_ids: int
    duplicate_texts: int | None  # not counting the first of each
    unseen_labels: int | None  # that occur here, but not in train
    texts_in_train: int | None  # documents whose text is also a train document's
    near_train: int | None  # documents that are near-duplicates of a train document; in a sample, if there are many
    languages: dict[str, float] | None  # language → share of documents, guessed
    named_labels: int  # that occur, and have a name other than their id


@dataclass(frozen=True)
class Hierarchy:
    """Statistics of the hierarchy in the labels file."""

    concepts: int  # labels and the concepts above them
    roots: int  # concepts without parent
    depth: int  # number of levels: a child of a root is on level 2


@dataclass(frozen=True)
class Description:
    """All statistics of a data set; those of labels come from train, or from the first split if there is no train."""

    layout: str
    splits: dict[str, SplitFigures]  # for a file, the key is its name
    bins: dict[str, int]  # labels with few, medium and many documents
    zipf: list[tuple[int, int]]  # (rank, documents of the label of that rank), ranks spaced by ratio
    hierarchy: Hierarchy | None
    vocabulary: int  # concepts of the labels file or vocabulary
    covered: float  # share of the occurring labels that the vocabulary describes


@dataclass(frozen=True)
class VocabularyFigures:
    """Statistics of a labels file or vocabulary without documents."""

    concepts: int
    named: int  # with a name other than their id
    alternatives: int  # concepts with other names
    descriptions: int  # concepts with a description
    retired: int
    hierarchy: Hierarchy | None


def describe_vocabulary(path: str | Path, language: str | None = None) -> VocabularyFigures:
    """Read a labels file or a SKOS vocabulary, and return its statistics."""
    known = read_vocabulary(path, language)
    concepts = known.concepts
    return VocabularyFigures(
        concepts=len(concepts),
        named=sum(bool(concept.name) and concept.name != concept.id for concept in concepts),
        alternatives=sum(bool(concept.alternatives) for concept in concepts),
        descriptions=sum(bool(concept.description) for concept in concepts),
        retired=len(known.retired),
        hierarchy=_hierarchy(LabelSet.build((), concepts)),
    )


def describe(path: str | Path, mapping: TableMapping | Mapping[str, Any] | None = None) -> Description:
    """Read every split of a data set, one at a time, and return its statistics.

    They include the counts that `read_corpus` warns about, so this function does not warn.
    """
    figures: dict[str, SplitFigures] = {}
    label_sets: list[LabelSet] = []
    train_texts: TextFigures | None = None
    for split in splits(path) or [Path(path).name]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            warnings.simplefilter("ignore", Notice)
            corpus = read_corpus(path, split, mapping=mapping)
        texts = None if corpus.texts is None else _count_words(corpus.texts)
        figures[split] = _figures(corpus, texts, label_sets[0] if "train" in figures else None, train_texts)
        label_sets.append(corpus.labels)
        if split == "train":
            train_texts = texts
    labels = label_sets[0]
    counts = np.sort(labels.counts[labels.counts > 0])[::-1]
    used = labels.n_labels
    plain = [Concept(id, name=id) for id in labels.ids]
    described = [concept != bare for concept, bare in zip(labels.concepts(), plain, strict=True)]
    return Description(
        detect(path, mapping),
        figures,
        _bins(counts),
        zipf_points(counts),
        _hierarchy(labels),
        vocabulary=sum(described),
        covered=sum(described[:used]) / max(1, used),
    )


@dataclass(frozen=True)
class TextFigures:
    """Statistics of the texts of a split."""

    hashes: NDArray[np.int64]
    words: NDArray[np.int64]
    signatures: NDArray[np.uint64]


def _count_words(texts: Texts) -> TextFigures:
    found = np.empty((2, len(texts)), dtype=np.int64)
    for i, text in enumerate(texts):
        found[:, i] = hash(text), len(text.split())
    return TextFigures(found[0], found[1], sign(texts))


def _figures(
    corpus: Corpus, texts: TextFigures | None, train: LabelSet | None, train_texts: TextFigures | None
) -> SplitFigures:
    n = len(corpus)
    per_document = np.diff(corpus.Y.indptr)
    used = set(corpus.labels.ids[: corpus.labels.n_labels])
    return SplitFigures(
        documents=n,
        labels=len(used),
        labels_per_document=float(per_document.mean()),
        words_per_document=None if texts is None else float(texts.words.mean()),
        features=None if corpus.X is None else corpus.X.shape[1],
        empty_texts=None if texts is None else int((texts.words == 0).sum()),
        without_labels=int((per_document == 0).sum()),
        duplicate_ids=n - len(set(corpus.ids)),
        duplicate_texts=None if texts is None else n - len(np.unique(texts.hashes)),
        unseen_labels=None if train is None else len(used.difference(train.ids[: train.n_labels])),
        texts_in_train=(
            None if texts is None or train_texts is None else int(np.isin(texts.hashes, train_texts.hashes).sum())
        ),
        near_train=(
            None if texts is None or train_texts is None else count_near(texts.signatures, train_texts.signatures)
        ),
        languages=None if corpus.texts is None else guess_languages(corpus.texts),
        named_labels=sum(corpus.labels.names[i] != corpus.labels.ids[i] for i in range(corpus.labels.n_labels)),
    )


def _bins(counts: NDArray[np.int64]) -> dict[str, int]:
    found = np.bincount(find_bins(counts), minlength=len(BINS))
    return dict(zip(BINS, found.tolist(), strict=True))


def zipf_points(counts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return (rank, documents) of some labels, evenly spread on a log scale; `counts` must be sorted, highest first."""
    ranks = np.unique(np.geomspace(1, len(counts), num=32).round().astype(int))
    return [(int(rank), int(counts[rank - 1])) for rank in ranks]


def _hierarchy(labels: LabelSet) -> Hierarchy | None:
    if not any(labels.parents):
        return None
    level = np.zeros(len(labels), dtype=np.int64)  # 0: not known yet
    stack = list(range(len(labels)))
    while stack:
        entry = stack[-1]
        waiting = [parent for parent in labels.parents[entry] if level[parent] == 0]
        if waiting:
            stack += waiting
        else:
            stack.pop()
            level[entry] = 1 + max((level[parent] for parent in labels.parents[entry]), default=0)
    roots = sum(not parents for parents in labels.parents)
    return Hierarchy(concepts=len(labels), roots=roots, depth=int(level.max()))
