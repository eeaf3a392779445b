"""Which columns of a table contain text, labels and id, and the file format. Opens no data files.

A model folder may store the mapping it was trained with, so that files of the same kind need no options later.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError, field_validator

from xmtc.core.config import Settings, build
from xmtc.core.errors import ModelError, nearest
from xmtc.core.storage import MANIFEST, add_file
from xmtc.data.fields import Mistake, as_text

FILE = "table.json"  # in a model folder
_TEXT, _LABELS, _ID = "text", "labels", "id"  # the default columns
_LONGEST_NAME = 60  # characters; a longer cell is text, not a column name

# common column names, in the order in which an error proposes them
_USUAL = {
    _TEXT: (
        ("title", "name", "headline", "subject", "question"),
        (
            "description",
            "abstract",
            "summary",
            "body",
            "content",
            "contents",
            "text",
            "full text",
            "document",
            "review",
        ),
    ),
    _LABELS: (
        ("labels", "label", "tags", "tag", "categories", "category", "topics", "topic", "subjects", "keywords"),
        ("classes", "class", "codes", "code", "genres", "genre", "descriptors", "concepts"),
    ),
    _ID: (("id", "uid", "sku", "key", "identifier"),),
}


class TableMapping(Settings):
    """The columns of a table and its file format.

    text: one or more columns, joined by line breaks in this order. id: by default the column `id`, if there is one.
    label_separator, delimiter and encoding: guessed from the file by default. table: the sheet of a workbook or the
    table of a database; by default the only one.
    """

    text: tuple[str, ...] = (_TEXT,)
    labels: str = _LABELS
    id: str | None = None
    label_separator: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    table: str | None = None

    @field_validator("text", mode="before")
    @classmethod
    def _one_is_enough(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("text", "labels", "id", "label_separator", "table")
    @classmethod
    def _not_empty(cls, value: Any) -> Any:
        if value is not None and (not value or "" in tuple(value)):
            raise ValueError("it is empty; leave it out, or give a name")
        return value

    @field_validator("delimiter")
    @classmethod
    def _one_character(cls, value: str | None) -> str | None:
        value = {"\\t": "\t", "tab": "\t"}.get(value or "", value)
        if value is not None and (len(value) != 1 or value in '"\r\n'):
            raise ValueError("a delimiter is one character, such as ';', or 'tab'")
        return value

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: str | None) -> str | None:
        try:
            if value is not None and not codecs.lookup(value)._is_text_encoding:
                raise LookupError
        except (LookupError, ValueError):
            raise ValueError("unknown encoding; use utf-8, utf-16, cp1252 or another that Python knows") from None
        return value


class StoredMapping(TableMapping):
    """The mapping of a model folder; if a file lacks its columns, the default columns are used."""


DEFAULT = TableMapping()


class Columns(NamedTuple):
    """The columns to read; `labels` and `id` are None if they are not read."""

    text: tuple[str, ...]
    labels: str | None
    id: str | None


def as_mapping(mapping: TableMapping | Mapping[str, Any] | None) -> TableMapping:
    """Return a mapping from settings, a dictionary or None; an invalid one raises a one-line error."""
    return mapping if isinstance(mapping, TableMapping) else build(TableMapping, mapping or {})


def find_columns(
    mapping: TableMapping,
    names: Collection[str],
    noun: str,
    labelled: bool,
    mistake: Mistake,
    rows: Iterable[Sequence[object]] = (),
) -> Columns:
    """Find the columns of a table, or the keys of an object; raise if one is missing, and propose others.

    rows: the first rows of the table; the error uses them to propose columns.
    """
    stored, exact = isinstance(mapping, StoredMapping), noun == "key"
    text = [_find(name, names, exact) for name in mapping.text]
    labels = _find(mapping.labels, names, exact) if labelled else None
    id = _find(mapping.id or _ID, names, exact)
    if noun == "key" and any(text):  # an object may lack some of several text keys
        text = [found or name for name, found in zip(mapping.text, text, strict=True)]
    if stored and None in text:
        text = [_find(_TEXT, names, exact)]
    if stored and labelled and labels is None:
        labels = _find(_LABELS, names, exact)
    wanted = [(_TEXT, name, found) for name, found in zip(mapping.text, text, strict=False)]
    if labelled:
        wanted.append((_LABELS, mapping.labels, labels))
    if mapping.id is not None and noun == "column" and not stored:
        wanted.append((_ID, mapping.id, id))
    for role, name, found in wanted:
        if found is None:
            raise mistake(_explain(role, name, list(names), noun, rows))
    return Columns(tuple(name for name in text if name is not None), labels, id)


def _find(name: str, names: Collection[str], exact: bool) -> str | None:
    """Return the column with this name, or, unless `exact`, the only one that differs just in case, spaces etc."""
    if name in names:
        return name
    same = [] if exact else [other for other in names if _folded(other) == _folded(name)]
    return same[0] if len(same) == 1 else None


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _explain(role: str, name: str, names: list[str], noun: str, rows: Iterable[Sequence[object]]) -> str:
    there = ", ".join(repr(other[:_LONGEST_NAME]) for other in names[:10]) or "none"
    missing = f"no {noun} {name!r} (there: {there})."
    if noun == "column" and _is_data(names):
        return f"{missing} The first row looks like data: add a row above it that names the columns, id,text,labels"
    if len(names) == 1 and noun == "column" and (found := re.search(r"[;|\t,^~]", names[0])):
        shown = "tab" if found[0] == "\t" else found[0]
        return f"{missing} If {shown!r} separates the columns, give --delimiter {shown!r}"
    near = nearest(name, names)
    proposed = ",".join(_propose(role, names, rows))
    if proposed:
        quoted = f'"{proposed}"' if " " in proposed else proposed
        return f"{missing}{near} Use --{role} {quoted}?"
    return f"{missing}{near} Name the {noun} that holds it with --{role}"


def _is_data(names: list[str]) -> bool:
    """Return whether a first row is data, not a header: it has a number, or a cell too long for a column name."""
    odd = [name for name in names if re.fullmatch(r"[\d.,\s]+", name) or len(name) > _LONGEST_NAME]
    sentences = [name for name in names if len(name.split()) > 4]
    return bool(odd or sentences)


def _propose(role: str, names: list[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return likely columns: by name, or else, for the text, the one with the longest cells."""
    folded = {_folded(name): name for name in names}
    proposed: list[str] = []
    for kind in _USUAL[role]:
        proposed += [folded[word] for word in kind if word in folded][: 1 if role != _TEXT else 2]
    if proposed or role != _TEXT:
        return proposed if role == _TEXT else proposed[:1]
    words = dict.fromkeys(names, 0)
    for row in rows:
        for name, cell in zip(names, row, strict=False):
            words[name] += len(cell.split()) if isinstance(cell, str) else 0
    longest = max(names, key=lambda name: words[name], default="")
    return [longest] if words.get(longest, 0) >= 2 else []


def join_texts(values: Sequence[object], mistake: Mistake) -> object:
    """Return the text of a document from its cells: a single cell unchanged, several joined by line breaks."""
    if len(values) == 1:
        return values[0]
    return "\n".join(filter(None, (as_text(value, mistake) for value in values)))


def store_mapping(folder: str | Path, mapping: TableMapping | None) -> None:
    """Store a mapping in a model folder for `stored_mapping`; None and the default mapping are not stored."""
    given = {} if mapping is None else mapping.model_dump(mode="json", exclude_unset=True)
    if given and (mapping is None or stored_mapping(folder) != StoredMapping(**given)):
        add_file(folder, FILE, json.dumps(given, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n")


def stored_mapping(folder: str | Path) -> StoredMapping | None:
    """Return the mapping stored in a model folder; None if there is none, or if it is not a model folder."""
    path = Path(folder) / FILE
    if not path.is_file() or not (path.parent / MANIFEST).is_file():
        return None
    try:
        return StoredMapping.model_validate_json(path.read_bytes())
    except ValidationError:
        raise ModelError(f"{path} is cut or altered; copy the model folder again") from None
