"""XML Repository, text layout: trn.json, tst.json and lbl.json, one object per line, usually packed as .gz.

A document has `uid`, `title`, `content` and `target_ind`, its labels as line numbers of lbl.json (from 0); a label has
`uid`, its id, and `title`, its name. A document's text is its title and content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept
from xmtc.data.document import Document, make_document
from xmtc.data.fields import as_id, json_objects, kind, optional, require, write_json_objects
from xmtc.data.files import open_lines
from xmtc.data.gather import gather
from xmtc.data.layout import SHORT_NAMES, Files, layout_of_files
from xmtc.data.vocabulary import Described
from xmtc.data.write import documents_of, number_labels

_LABELS = "lbl.json"
_NEEDED = {split: ((f"{short}.json",), (_LABELS,)) for split, short in SHORT_NAMES.items()}


def read(files: Files, known: Described) -> Corpus:
    """Read the labels, then the documents that refer to them."""
    documents, labels = files
    concepts = list(_concepts(labels))
    return gather(_documents(documents, concepts), str(documents), known=known, concepts=concepts)


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


def _documents(path: Path, concepts: list[Concept]) -> Iterator[Document]:
    lines = open_lines(path)
    for fields in json_objects(lines, lines.mistake):
        require(("title", "target_ind"), fields, "key", lines.mistake)
        targets = optional(fields, "target_ind", list, [], lines.mistake)
        for target in targets:
            if type(target) is not int:
                raise lines.mistake(f"'target_ind' must hold whole numbers, got {kind(target)}; correct it")
            if not 0 <= target < len(concepts):
                raise lines.mistake(
                    f"target_ind {target} is out of range: lbl.json has labels 0 … {len(concepts) - 1}; correct it"
                )
        title = optional(fields, "title", str, "", lines.mistake)
        content = optional(fields, "content", str, "", lines.mistake)
        text = "\n".join(filter(None, (title, content)))
        yield make_document(fields.get("uid"), text, [concepts[target].id for target in targets], lines.mistake)


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write the labels, then the documents that refer to them; the title contains the whole text."""
    labels = number_labels(corpora.values())
    write_json_objects(folder / _LABELS, ({"uid": label.id, "title": label.name} for label in labels.values()))
    for split, corpus in corpora.items():
        documents = (
            {"uid": id, "title": text, "content": "", "target_ind": [labels[label].number for label in own]}
            for id, text, own in documents_of(corpus)
        )
        write_json_objects(folder / f"{SHORT_NAMES[split]}.json", documents)


_HOLDS = frozenset({"texts", "line breaks", "carriage returns", "document ids", "label names"})
LAYOUTS = (layout_of_files("xml-repository-texts", _NEEDED, read, write, _HOLDS),)
