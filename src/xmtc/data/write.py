"""Write corpora in the native layout, each file whole or not at all; and what writers of other layouts share."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import IO, NamedTuple

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept
from xmtc.data.concepts import LABELS
from xmtc.data.rows import Row

_SEPARATING = re.compile(r"\r\n|[\r\n\t]")


def write_native(corpora: Iterable[tuple[str, Corpus]], folder: str | Path) -> None:
    """Write (split, corpus) pairs, one after the other, and one labels file of what is known of all their labels.

    The folder must be new or empty. A generator keeps one corpus in memory at a time.
    """
    folder = new_folder(folder)
    concepts: dict[str, Concept] = {}
    for split, corpus in corpora:
        if corpus.texts is None:
            raise DataError(f"the {split} split has features but no texts; the native layout holds texts")
        concepts.update(described(corpus))
        write_rows(folder / f"{split}.jsonl", document_rows(corpus))
    if concepts:
        write_concepts(folder / LABELS, concepts.values())


def described(corpus: Corpus) -> Iterator[tuple[str, Concept]]:
    """Give the labels and concepts of which more is known than their id."""
    for concept in corpus.labels.concepts():
        if concept != Concept(concept.id, name=concept.id):
            yield concept.id, concept


def new_folder(folder: str | Path) -> Path:
    """Make a folder for new data; one that holds anything is refused, so that no data is overwritten."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise DataError(f"{folder} is not empty; remove it or choose another folder")
    except OSError as error:
        raise DataError(f"cannot make the folder {folder}: {error.strerror}") from None
    return folder


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write documents, one a line; a row without id is written without one."""
    with open_whole(path) as file:
        for row in rows:
            fields: dict[str, object] = {} if row.id is None else {"id": row.id}
            write_object(file, {**fields, "text": row.text, "labels": row.labels})


def write_concepts(path: Path, concepts: Iterable[Concept]) -> None:
    """Write a labels file; what is empty is left out."""
    with open_whole(path) as file:
        for concept in concepts:
            fields = {
                "label": concept.id,
                "name": concept.name,
                "alternatives": concept.alternatives,
                "description": concept.description,
                "parents": concept.parents,
            }
            write_object(file, {key: value for key, value in fields.items() if value})


@contextmanager
def open_whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a sibling to write to, which takes the file's name only when all is written."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with open(partial, "wb") as file:
            yield file
        os.replace(partial, path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def document_rows(corpus: Corpus) -> Iterator[Row]:
    """Give the documents of a corpus one by one; texts are empty where there are features only."""
    for id, text, start, stop in zip(
        corpus.ids,
        corpus.texts or repeat("", len(corpus)),
        corpus.Y.indptr[:-1].tolist(),
        corpus.Y.indptr[1:].tolist(),
        strict=True,
    ):
        yield Row(id, text, corpus.labels.decode(corpus.Y.indices[start:stop]))


class Numbered(NamedTuple):
    """A label of a data set, for layouts that call labels by numbers."""

    number: int
    id: str
    name: str
    n_documents: int  # in the first split


def number_labels(corpora: Iterable[Corpus]) -> dict[str, Numbered]:
    """Number the labels that occur, those of the first split first, in their order."""
    numbered: dict[str, Numbered] = {}
    for position, corpus in enumerate(corpora):
        labels = corpus.labels
        for i in range(labels.n_labels):
            n_documents = 0 if position else int(labels.counts[i])
            numbered.setdefault(labels.ids[i], Numbered(len(numbered), labels.ids[i], labels.names[i], n_documents))
    return numbered


def check_labels(corpora: Mapping[str, Corpus], layout: str, pattern: str, why: str) -> None:
    """Refuse to write labels that are not of this pattern, which the layout could not tell apart when read again."""
    fits = re.compile(pattern).fullmatch
    for corpus in corpora.values():
        for label in corpus.labels.ids[: corpus.labels.n_labels]:
            if not fits(label):
                raise DataError(
                    f"label {label!r} does not fit: the {layout} layout {why}; choose another, such as native"
                )


def one_line(text: str) -> str:
    """Return a text with spaces for line ends and tabs, for layouts in which these separate."""
    return _SEPARATING.sub(" ", text)


def write_object(file: IO[bytes], fields: dict[str, object]) -> None:
    """Write one JSON object as one line."""
    file.write(json.dumps(fields, ensure_ascii=False).encode("utf-8") + b"\n")
