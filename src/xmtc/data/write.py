"""Helpers for writing layouts: turn a Corpus into documents and lines; check and number labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept
from xmtc.data.document import Document
from xmtc.data.files import one_line
from xmtc.data.vocabulary import LABELS, write_concepts


def write_splits(
    corpora: Iterable[tuple[str, Corpus]],
    folder: Path,
    ending: str,
    write: Callable[[Path, Iterable[Document]], None],
) -> None:
    """Write each split with `write` to a file `train<ending>` …, and one labels file that describes all labels."""
    concepts: dict[str, Concept] = {}
    for split, corpus in corpora:
        concepts.update(_described(corpus))
        write(folder / f"{split}{ending}", documents_of(corpus))
    if concepts:
        write_concepts(folder / LABELS, concepts.values())


def _described(corpus: Corpus) -> Iterator[tuple[str, Concept]]:
    """Yield the labels and concepts that have more than an id."""
    for concept in corpus.labels.concepts():
        if concept != Concept(concept.id, name=concept.id):
            yield concept.id, concept


def documents_of(corpus: Corpus) -> Iterator[Document]:
    """Iterate over the documents of a corpus; texts are empty if it has only features."""
    for id, text, start, stop in zip(
        corpus.ids,
        corpus.texts or repeat("", len(corpus)),
        corpus.Y.indptr[:-1].tolist(),
        corpus.Y.indptr[1:].tolist(),
        strict=True,
    ):
        yield Document(id, text, corpus.labels.decode(corpus.Y.indices[start:stop]))


def text_lines(corpus: Corpus) -> Iterator[str]:
    """Iterate over the texts of a corpus, each on one line."""
    return map(one_line, corpus.texts or ())


class Numbered(NamedTuple):
    """A label of a data set, for layouts with numbered labels."""

    number: int
    id: str
    name: str
    n_documents: int  # in the first split


def number_labels(corpora: Iterable[Corpus]) -> dict[str, Numbered]:
    """Number the labels that occur, in their order, starting with those of the first split."""
    numbered: dict[str, Numbered] = {}
    for position, corpus in enumerate(corpora):
        labels = corpus.labels
        for i in range(labels.n_labels):
            n_documents = 0 if position else int(labels.counts[i])
            numbered.setdefault(labels.ids[i], Numbered(len(numbered), labels.ids[i], labels.names[i], n_documents))
    return numbered


def check_labels(corpora: Mapping[str, Corpus], layout: str, pattern: str, why: str) -> None:
    """Raise if a label does not match the pattern, because the layout could not be read back correctly."""
    fits = re.compile(pattern).fullmatch
    for corpus in corpora.values():
        for label in corpus.labels.ids[: corpus.labels.n_labels]:
            if not fits(label):
                raise DataError(
                    f"label {label!r} does not fit: the {layout} layout {why}; choose another, such as native"
                )
