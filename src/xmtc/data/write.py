"""Write corpora in the native layout, each file whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept
from xmtc.data.native import LABELS
from xmtc.data.rows import Row


def write_native(corpora: Iterable[tuple[str, Corpus]], folder: str | Path) -> None:
    """Write (split, corpus) pairs, one after the other, and one labels file of what is known of all their labels.

    The folder must be new or empty. A generator keeps one corpus in memory at a time.
    """
    folder = new_folder(folder)
    concepts: dict[str, Concept] = {}
    for split, corpus in corpora:
        if corpus.texts is None:
            raise DataError(f"the {split} split has features but no texts; the native layout holds texts")
        for concept in corpus.labels.concepts():
            if concept != Concept(concept.id, name=concept.id):  # the id alone says nothing
                concepts[concept.id] = concept
        write_rows(folder / f"{split}.jsonl", _rows(corpus))
    if concepts:
        write_concepts(folder / LABELS, concepts.values())


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
            file.write(_line({**fields, "text": row.text, "labels": row.labels}))


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
            file.write(_line({key: value for key, value in fields.items() if value}))


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


def _rows(corpus: Corpus) -> Iterator[Row]:
    for id, text, start, stop in zip(
        corpus.ids, corpus.texts or (), corpus.Y.indptr[:-1], corpus.Y.indptr[1:], strict=True
    ):
        yield Row(id, text, corpus.labels.decode(corpus.Y.indices[start:stop]))


def _line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode("utf-8") + b"\n"
