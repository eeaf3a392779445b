"""One document as a file holds it, and JSON lines of documents. Knows no corpora."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from xmtc.data.fields import Mistake, as_id, as_ids, json_objects, kind, require, write_json_objects
from xmtc.data.files import open_lines


class Document(NamedTuple):
    """A document; `labels` is empty where they were not asked for."""

    id: str | None
    text: str
    labels: list[str]


def make_document(id: object, text: object, labels: object, mistake: Mistake) -> Document:
    """Check the values of one document."""
    if not isinstance(text, str):
        raise mistake(f"'text' must be a string, got {kind(text)}; write \"\" for an empty text")
    if not isinstance(labels, list):
        raise mistake(f"'labels' must be a list of strings, got {kind(labels)}; write [] for none")
    return Document(None if id is None else as_id(id, "id", mistake), text, as_ids(labels, "labels", mistake))


def parse_jsonl(lines: Iterable[str], mistake: Mistake, labelled: bool = True) -> Iterator[Document]:
    """Parse `{"id"?, "text", "labels"}` lines; ignore other keys and blank lines.

    With `labelled=False`, for prediction, `labels` may be missing and is not looked at.
    """
    for fields in json_objects(lines, mistake):
        require(("text", "labels") if labelled else ("text",), fields, "key", mistake)
        yield make_document(fields.get("id"), fields["text"], fields["labels"] if labelled else [], mistake)


def read_jsonl(path: Path, labelled: bool = True) -> Iterator[Document]:
    """Stream the documents of a .jsonl file, as `parse_jsonl` does."""
    lines = open_lines(path)
    return parse_jsonl(lines, lines.mistake, labelled)


def write_jsonl(path: Path, documents: Iterable[Document]) -> None:
    """Write one document per line; a document without id is written without one."""
    write_json_objects(path, map(_fields, documents))


def _fields(document: Document) -> dict[str, object]:
    fields: dict[str, object] = {} if document.id is None else {"id": document.id}
    return {**fields, "text": document.text, "labels": document.labels}
