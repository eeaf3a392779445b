"""Labels file: what is known of each label → Concepts. Knows no documents.

A labels file has one `{"label", "name"?, "alternatives"?, "description"?, "parents"?}` a line.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from xmtc.core.errors import DataError
from xmtc.core.labels import Concept
from xmtc.data.lines import open_lines
from xmtc.data.rows import as_id, as_ids, json_objects, optional, require


class Described(NamedTuple):
    """The concepts of a labels file, and how many parents it names without describing them."""

    concepts: list[Concept]
    undescribed: int


def read_concepts(path: Path) -> Described:
    """Read a labels file; a label described twice and a hierarchy that runs in a circle are refused."""
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
        )
    circle = find_circle(concepts.values())
    if circle:
        raise DataError(f"{path}: the hierarchy runs in a circle: {' → '.join(circle)}; remove one of these parents")
    named = {parent for concept in concepts.values() for parent in concept.parents}
    return Described(list(concepts.values()), len(named - concepts.keys()))


def find_circle(concepts: Iterable[Concept]) -> list[str]:
    """Return labels of which each is a child of the next, from one back to itself; empty if there is no circle."""
    parents = {concept.id: concept.parents for concept in concepts}
    children: dict[str, list[str]] = {}
    waiting = dict.fromkeys(parents, 0)  # described parents not yet placed above
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
    # what waits still has a parent that waits, so climbing must meet a label again
    path = [next(iter(waiting))]
    seen = {path[0]: 0}
    while True:
        above = next(parent for parent in parents[path[-1]] if parent in waiting)
        if above in seen:
            return [*path[seen[above] :], above]
        seen[above] = len(path)
        path.append(above)
