"""Read documents to predict for, from a file or standard input, in batches with bounded memory. Ignores labels."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import IO, NamedTuple

import scipy.sparse as sp

from xmtc.core.errors import DataError
from xmtc.data.document import Document, parse_jsonl, read_jsonl
from xmtc.data.files import Lines, open_lines, suffix
from xmtc.data.svmlight import iter_rows, read_header
from xmtc.data.table_mapping import DEFAULT, TableMapping
from xmtc.data.tables import ENDINGS, read_table

_MOST_CHARACTERS = 1 << 25  # maximum characters of a batch, for any number of documents


class Batch(NamedTuple):
    """Some documents; the id defaults to the document's number, from 0."""

    ids: list[str]
    texts: list[str]


def iter_documents(
    source: str | Path | IO[bytes], batch: int = 1024, mapping: TableMapping | None = None
) -> Iterator[Batch]:
    """Stream the documents of a file, in order, at most `batch` at a time.

    .txt has one text per line; .jsonl has objects with `text` and optional `id`; tables (.csv, .tsv, .parquet, .xlsx,
    .sqlite) have the same as columns, or the columns that the mapping names; .gz is unpacked. "-" (standard input) or a
    binary stream is read as JSON objects if its first non-empty line begins with "{", else as one text per line.
    """
    ids: list[str] = []
    texts: list[str] = []
    characters = 0
    for number, document in enumerate(_read(source, mapping or DEFAULT)):
        ids.append(str(number) if document.id is None else document.id)
        texts.append(document.text)
        characters += len(document.text)
        if len(ids) >= batch or characters >= _MOST_CHARACTERS:
            yield Batch(ids, texts)
            ids, texts, characters = [], [], 0
    if ids:
        yield Batch(ids, texts)


def iter_features(path: str | Path, n_features: int, batch: int = 1024) -> Iterator[sp.csr_matrix]:
    """Stream the feature rows of an XML Repository file, old or new; labels are ignored.

    An old file begins with `N D L`, then `l,l f:v …`; a new one (tst_X_Xf.txt) with `N D`, then `f:v …`. The matrices
    have at most `batch` rows, and `n_features` columns, as the model requires.
    """
    lines = open_lines(Path(path))
    n, width, *n_labels = read_header(lines, "documents", "features", optional="labels")
    if width > n_features:
        raise lines.mistake(
            f"{width} features, but the model has {n_features}; prepare the rows like the training data"
        )
    for rows in iter_rows(lines, n, width, *n_labels):
        X = rows.matrix(n_features)
        for start in range(0, X.shape[0], batch):
            yield X[start : start + batch]


def _read(source: str | Path | IO[bytes], mapping: TableMapping) -> Iterator[Document]:
    if not isinstance(source, str | Path):
        return _parse_stream(Lines("the input", source), mapping)
    if str(source) == "-":
        return _parse_stream(Lines("standard input", sys.stdin.buffer), mapping)
    path = Path(source)
    ending = suffix(path)
    if ending == ".txt":
        return _parse_texts(open_lines(path))
    if ending == ".jsonl":
        return read_jsonl(path, labelled=False, mapping=mapping)
    if ending in ENDINGS:
        return read_table(path, labelled=False, mapping=mapping)
    if not path.exists():
        raise DataError(f"{path} does not exist. Check the path.")
    raise DataError(
        f"unknown format of {path}; use the ending .txt (one text per line), .jsonl, .csv, .tsv, .parquet, .xlsx or "
        ".sqlite"
    )


def _parse_stream(lines: Lines, mapping: TableMapping) -> Iterator[Document]:
    rest = iter(lines)
    n_blank = 0
    for line in rest:
        if line and not line.isspace():
            if line.lstrip().startswith("{"):
                return parse_jsonl(chain([line], rest), lines.mistake, labelled=False, mapping=mapping)
            return _parse_texts(chain(repeat("", n_blank), [line], rest))
        n_blank += 1
    return _parse_texts(repeat("", n_blank))


def _parse_texts(lines: Iterable[str]) -> Iterator[Document]:
    return (Document(None, line, []) for line in lines)
