"""One document as stored in a file, and JSON lines of documents. Independent of corpora."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from xmtc.data.fields import Mistake, as_id, as_ids, json_objects, kind, write_json_objects
from xmtc.data.files import open_lines
from xmtc.data.table_mapping import DEFAULT, Columns, TableMapping, find_columns, join_texts


class Document(NamedTuple):
    """A document; `labels` is empty if they were not requested."""

    id: str | None
    text: str
    labels: list[str]


def make_document(id: object, text: object, labels: object, mistake: Mistake) -> Document:
    """Check the values of one document."""
    if not isinstance(text, str):
        raise mistake(f"'text' must be a string, got {kind(text)}; write \"\" for an empty text")
    if not isinstance(labels, list):
        advice = "write [] for none" if not isinstance(labels, str) else "write a list, or give --label-separator"
        raise mistake(f"'labels' must be a list of strings, got {kind(labels)}; {advice}")
    return Document(None if id is None else as_id(id, "id", mistake), text, as_ids(labels, "labels", mistake))


def parse_jsonl(
    lines: Iterable[str], mistake: Mistake, labelled: bool = True, mapping: TableMapping = DEFAULT
) -> Iterator[Document]:
    """Parse `{"id"?, "text", "labels"}` lines, or lines with the mapping's keys; ignore other keys and blank lines.

    With `labelled=False`, for prediction, `labels` may be missing and is ignored. If the text has several keys, an
    object may lack some of them, but not all.
    """
    columns: Columns | None = None
    for fields in json_objects(lines, mistake):
        if columns is None or not _has(columns, fields):
            columns = find_columns(mapping, fields, "key", labelled, mistake)
        text = join_texts([fields.get(name) for name in columns.text], mistake)
        labels = [] if columns.labels is None else fields[columns.labels]
        if isinstance(labels, str) and mapping.label_separator is not None:
            labels = [label.strip() for label in labels.split(mapping.label_separator) if label.strip()]
        yield make_document(fields.get(columns.id or mapping.id or "id"), text, labels, mistake)


def _has(columns: Columns, fields: Mapping[str, object]) -> bool:
    """Return whether an object has the required keys."""
    return any(name in fields for name in columns.text) and (columns.labels is None or columns.labels in fields)


def read_jsonl(path: Path, labelled: bool = True, mapping: TableMapping = DEFAULT) -> Iterator[Document]:
    """Stream the documents of a .jsonl file, as `parse_jsonl` does."""
    lines = open_lines(path, mapping.encoding or "utf-8")
    return parse_jsonl(lines, lines.mistake, labelled, mapping)


def write_jsonl(path: Path, documents: Iterable[Document]) -> None:
    """Write one document per line; leave out `id` if a document has none."""
    write_json_objects(path, map(_fields, documents))


def _fields(document: Document) -> dict[str, object]:
    fields: dict[str, object] = {} if document.id is None else {"id": document.id}
    return {**fields, "text": document.text, "labels": document.labels}
