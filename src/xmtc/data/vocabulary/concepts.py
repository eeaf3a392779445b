"""Read and write labels files, which describe the labels. Independent of documents.

A labels file has one `{"label", "name"?, "alternatives"?, "description"?, "parents"?, "translations"?}` per line;
translations are names by language: `{"de": "Zucker"}`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xmtc.core.errors import DataError, nearest
from xmtc.core.labels import Concept
from xmtc.core.languages import language_tag
from xmtc.data.fields import Mistake, as_id, as_ids, json_objects, optional, require, write_json_objects
from xmtc.data.files import open_lines

LABELS = "labels.jsonl"


@dataclass(frozen=True)
class Described:
    """The concepts of a labels file or vocabulary, and counts of suspicious entries."""

    concepts: Sequence[Concept] = ()
    undescribed: int = 0  # parents that are referenced but not described
    circles: int = 0  # parents dropped because the hierarchy had a cycle
    codes: Sequence[Mapping[str, str]] = ()  # concept → a short code that documents may use, such as its notation
    retired: Collection[str] = ()  # concepts that should no longer be assigned

    def join(self, labels: Collection[str]) -> list[Concept]:
        """Return the concepts, with the ids that the documents use.

        If no label in the documents is the id (such as the URI) of a concept, the codes that match the most labels
        become the ids. Retired concepts are left out unless a document has them.
        """
        used = set(labels)
        ids = [concept.id for concept in self.concepts]
        code: Mapping[str, str] = {}
        if self.codes and used.isdisjoint(ids):
            code = max(self.codes, key=lambda code: len(used.intersection(code.values())))
            code = {} if used.isdisjoint(code.values()) else code
        joined = [_recode(concept, code) for concept in self.concepts] if code else list(self.concepts)
        retired = {code.get(id, id) for id in self.retired} - used
        return [concept for concept in joined if concept.id not in retired]

    def oddities(self) -> dict[str, int]:
        """Return what to warn about, with counts."""
        return {
            "parents that the labels file does not describe": self.undescribed,
            "concepts in a circle, without the parent that closed it": self.circles,
        }


NOTHING = Described()


def _recode(concept: Concept, code: Mapping[str, str]) -> Concept:
    parents = tuple(code.get(parent, parent) for parent in concept.parents)
    return replace(concept, id=code.get(concept.id, concept.id), parents=parents)


def read_concepts(path: Path, language: str | None = None) -> Described:
    """Read a labels file; raise if it describes a label twice, or if its hierarchy has a cycle.

    language: use translations into this language as names, where available; raise if there are none at all.
    """
    lines = open_lines(path)
    concepts: dict[str, Concept] = {}
    for fields in json_objects(lines, lines.mistake):
        require(("label",), fields, "key", lines.mistake)
        label = as_id(fields["label"], "label", lines.mistake)
        if label in concepts:
            raise lines.mistake(f"label {label!r} is described a second time; keep one of the two lines")
        concepts[label] = Concept(
            id=label,
            name=optional(fields, "name", str, "", lines.mistake),
            alternatives=tuple(
                as_ids(optional(fields, "alternatives", list, [], lines.mistake), "alternatives", lines.mistake)
            ),
            description=optional(fields, "description", str, "", lines.mistake),
            parents=tuple(as_ids(optional(fields, "parents", list, [], lines.mistake), "parents", lines.mistake)),
            translations=_translations(fields, lines.mistake),
        )
    circle = find_circle(concepts.values())
    if circle:
        raise DataError(f"{path}: the hierarchy runs in a circle: {' → '.join(circle)}; remove one of these parents")
    named = {parent for concept in concepts.values() for parent in concept.parents}
    found = list(concepts.values())
    return Described(
        found if language is None else _in_language(path, found, language), undescribed=len(named - concepts.keys())
    )


def _in_language(path: Path, concepts: list[Concept], language: str) -> list[Concept]:
    """Return the concepts with their names in a language; a concept without one keeps its usual name."""
    tags = sorted({tag for concept in concepts for tag, _ in concept.translations})
    if not tags:
        raise DataError(f"{path} has one name per label, without a language; leave the language out")
    tag = language_tag(language)
    if tag not in tags:
        raise DataError(f"{path} names nothing in {language!r}; it has {', '.join(tags[:30])}.{nearest(tag, tags)}")
    return [replace(concept, name=dict(concept.translations).get(tag, concept.name)) for concept in concepts]


def _translations(fields: Mapping[str, Any], mistake: Mistake) -> tuple[tuple[str, str], ...]:
    """Return (language, name) pairs sorted by language, with tags in lower case."""
    named = optional(fields, "translations", dict, {}, mistake)
    if not all(isinstance(name, str) for name in named.values()):
        raise mistake('\'translations\' must hold one name per language, such as {"de": "Zucker"}; correct the values')
    return tuple(sorted((language.lower(), name) for language, name in named.items() if language and name))


def read_annif_tsv(path: Path) -> Described:
    """Read Annif's vocabulary: `<uri><TAB>name` per line, with an optional notation in a third column."""
    lines = open_lines(path)
    concepts: dict[str, Concept] = {}
    notations: dict[str, str] = {}
    for line in lines:
        if not line.strip():
            continue
        uri, tab, rest = line.partition("\t")
        uri = uri.strip().removeprefix("<").removesuffix(">")
        if not tab or not uri:
            raise lines.mistake("a vocabulary has a URI, a tab and a name on each line: <uri><TAB>name")
        if uri in concepts:
            raise lines.mistake(f"{uri!r} is described a second time; keep one of the two lines")
        name, _, notation = rest.partition("\t")
        concepts[uri] = Concept(uri, name=name.strip())
        if notation.strip():
            notations[uri] = notation.strip()
    return Described(list(concepts.values()), codes=(notations,) if notations else ())


def write_concepts(path: Path, concepts: Iterable[Concept]) -> None:
    """Write a labels file; leave out empty fields."""
    write_json_objects(path, map(_fields, concepts))


def _fields(concept: Concept) -> dict[str, object]:
    fields = {
        "label": concept.id,
        "name": concept.name,
        "alternatives": concept.alternatives,
        "description": concept.description,
        "parents": concept.parents,
        "translations": dict(concept.translations),
    }
    return {key: value for key, value in fields.items() if value}


def find_circle(concepts: Iterable[Concept]) -> list[str]:
    """Return a cycle of labels, each a child of the next; return an empty list if there is no cycle."""
    parents = {concept.id: concept.parents for concept in concepts}
    children: dict[str, list[str]] = {}
    waiting = dict.fromkeys(parents, 0)  # number of described parents that are not placed yet
    for label in parents:
        for parent in parents[label]:
            if parent in parents:
                waiting[label] += 1
                children.setdefault(parent, []).append(label)
    ready = [label for label, count in waiting.items() if count == 0]
    while ready:
        label = ready.pop()
        del waiting[label]
        for child in children.get(label, ()):
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    if not waiting:
        return []
    # every waiting label has a waiting parent, so following parents must reach a label twice
    path = [next(iter(waiting))]
    seen = {path[0]: 0}
    while True:
        above = next(parent for parent in parents[path[-1]] if parent in waiting)
        if above in seen:
            return [*path[seen[above] :], above]
        seen[above] = len(path)
        path.append(above)
