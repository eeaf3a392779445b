"""XML Repository, text layout: trn.json, tst.json and lbl.json, one object a line, usually packed as .gz.

A document has `uid`, `title`, `content` and `target_ind`, the lines of lbl.json (from 0) that are its labels; a label
has `uid`, its id, and `title`, its name. A document's text is its title and its content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept
from xmtc.data.concepts import Described
from xmtc.data.gather import gather
from xmtc.data.layouts.layout import Files, Layout, find_together
from xmtc.data.layouts.repository import PREFIXES
from xmtc.data.lines import open_lines
from xmtc.data.rows import Row, as_id, json_objects, kind, make_row, optional, require
from xmtc.data.write import document_rows, number_labels, open_whole, write_object

_NEEDED = {split: ((f"{prefix}.json",), ("lbl.json",)) for split, prefix in PREFIXES.items()}


def read(files: Files, known: Described) -> Corpus:
    """Read the labels, then the documents that point at them."""
    documents, labels = files
    concepts = list(_concepts(labels))
    return gather(_rows(documents, concepts), str(documents), known=known, concepts=concepts)


def _concepts(path: Path) -> Iterator[Concept]:
    lines = open_lines(path)
    seen = set()
    for fields in json_objects(lines, lines.mistake):
        require(("uid",), fields, "key", lines.mistake)
        label = as_id(fields["uid"], "uid", lines.mistake)
        if label in seen:
            raise lines.mistake(f"label {label!r} is described a second time; give each label its own uid")
        seen.add(label)
        yield Concept(label, name=optional(fields, "title", str, "", lines.mistake))


def _rows(path: Path, concepts: list[Concept]) -> Iterator[Row]:
    lines = open_lines(path)
    for fields in json_objects(lines, lines.mistake):
        require(("title", "target_ind"), fields, "key", lines.mistake)
        targets = optional(fields, "target_ind", list, [], lines.mistake)
        for target in targets:
            if type(target) is not int:
                raise lines.mistake(f"'target_ind' must hold whole numbers, got {kind(target)}; mend the value")
            if not 0 <= target < len(concepts):
                raise lines.mistake(
                    f"target_ind {target} is out of range: lbl.json has labels 0 … {len(concepts) - 1}; mend the value"
                )
        title = optional(fields, "title", str, "", lines.mistake)
        content = optional(fields, "content", str, "", lines.mistake)
        text = "\n".join(part for part in (title, content) if part)
        yield make_row(fields.get("uid"), text, [concepts[target].id for target in targets], lines.mistake)


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write the labels, then the documents that point at them; a text goes whole into the title."""
    labels = number_labels(corpora.values())
    with open_whole(folder / "lbl.json") as file:
        for label in labels.values():
            write_object(file, {"uid": label.id, "title": label.name})
    for split, corpus in corpora.items():
        with open_whole(folder / f"{PREFIXES[split]}.json") as file:
            for row in document_rows(corpus):
                targets = [labels[label].number for label in row.labels]
                write_object(file, {"uid": row.id, "title": row.text, "content": "", "target_ind": targets})


LAYOUT = Layout(
    "xml-repository-texts",
    partial(find_together, needed=_NEEDED),
    read,
    write,
    frozenset({"texts", "line breaks", "carriage returns", "document ids", "label names"}),
    needed=_NEEDED,
)
