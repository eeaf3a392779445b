"""Labels: the only module that knows label names. All lower layers use integers.

A `LabelSet` lists first the labels that have training documents (and therefore parameters), then concepts that occur
only in a vocabulary, a hierarchy or the true labels: they have names and parents. Only models that read label texts
rank them.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.display import SHOWN, Displayed, Grid, shorten
from xmtc.core.errors import DataError, nearest

_NAMED = 3  # number of labels that name a cluster


@dataclass(frozen=True)
class Concept:
    """The description of one label in a labels file; `parents` are label ids."""

    id: str
    name: str = ""
    alternatives: tuple[str, ...] = ()
    description: str = ""
    parents: tuple[str, ...] = ()
    translations: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # (language, name), if several exist


@dataclass(frozen=True, eq=False, repr=False)
class LabelSet(Displayed):
    """All labels and concepts of a corpus or model; entry i of every field describes the same one."""

    ids: tuple[str, ...]
    names: tuple[str, ...]  # the id if the name is unknown
    alternatives: tuple[tuple[str, ...], ...]
    descriptions: tuple[str, ...]  # "" if there is none
    parents: tuple[tuple[int, ...], ...]  # entries of this set; zero or more parents each
    counts: NDArray[np.int64]  # training documents per entry; 0 for concepts
    n_labels: int  # the first n_labels entries have parameters
    # language → entry → name, for vocabularies in several languages; `names` holds one name per entry
    translations: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    @classmethod
    def build(cls, trained: Iterable[str], concepts: Iterable[Concept] = ()) -> LabelSet:
        """Make a set from the labels of the training documents, in sorted order, and the concepts of a labels file.

        Concepts without training documents follow the trained labels, in the given order. Parents that no concept
        describes come last, with their id as name.
        """
        known = {concept.id: concept for concept in concepts}
        ids = sorted(set(trained))
        return cls._assemble(ids, len(ids), known, ())

    @classmethod
    def _assemble(cls, first: list[str], n_labels: int, known: dict[str, Concept], counts: Iterable[int]) -> LabelSet:
        entries = dict.fromkeys(first)
        entries |= dict.fromkeys(known)
        entries |= dict.fromkeys(parent for concept in known.values() for parent in concept.parents)
        described = (known.get(label) or Concept(label) for label in entries)
        return cls.restore(zip(described, chain(counts, repeat(0)), strict=False), n_labels)

    @classmethod
    def restore(cls, described: Iterable[tuple[Concept, int]], n_labels: int) -> LabelSet:
        """Rebuild the set from its `concepts()` and training counts, in the same order.

        Discards the concepts and deduplicates names that equal the id and parent tuples that siblings share, so that a
        million labels need less memory than their weights.
        """
        ids, names, descriptions = list[str](), list[str](), list[str]()
        alternatives: list[tuple[str, ...]] = []
        shared: dict[tuple[str, ...], int] = {}  # parents → their number
        parents, counts = array("q"), array("q")
        translations: dict[str, dict[int, str]] = {}
        for concept, count in described:
            for language, name in concept.translations:
                translations.setdefault(language, {})[len(ids)] = name
            ids.append(concept.id)
            names.append(concept.id if concept.name in ("", concept.id) else concept.name)
            alternatives.append(concept.alternatives)
            descriptions.append(concept.description)
            parents.append(shared.setdefault(concept.parents, len(shared)))
            counts.append(count)
        named = set(chain.from_iterable(shared))
        position: dict[str, int] = {}  # only for parents
        for i, label in enumerate(ids):
            if label in named:
                position[label] = i
        entries = [tuple([position[parent] for parent in above]) for above in shared]
        return cls(
            ids=tuple(ids),
            names=tuple(names),
            alternatives=tuple(alternatives),
            descriptions=tuple(descriptions),
            parents=tuple([entries[number] for number in parents]),
            counts=np.array(counts, dtype=np.int64),
            n_labels=n_labels,
            translations=translations,
        )

    def __len__(self) -> int:
        return len(self.ids)

    def display_line(self) -> str:
        """Return the number of labels and of additional concepts."""
        named = sum(name != label for name, label in zip(self.names, self.ids, strict=True))
        concepts = f" and {len(self) - self.n_labels:,} concepts" if len(self) > self.n_labels else ""
        return f"{self.n_labels:,} labels{concepts}, {named:,} with names"

    def display_grids(self) -> list[Grid]:
        """Return the labels with the most training documents."""
        frequent = np.argsort(-self.counts, kind="stable")[:SHOWN].tolist()
        rows = [(shorten(self.ids[i]), shorten(self.names[i]), f"{self.counts[i]:,}") for i in frequent]
        return [Grid("label", ("name", "documents"), rows)]

    @cached_property
    def position(self) -> dict[str, int]:
        """Map from label id to entry."""
        return {label: i for i, label in enumerate(self.ids)}

    def concepts(self) -> list[Concept]:
        """Return every entry as a labels file would describe it."""
        ids = self.ids
        in_others: list[list[tuple[str, str]]] = [[] for _ in ids] if self.translations else []
        for language, named in self.translations.items():
            for entry, name in named.items():
                in_others[entry].append((language, name))
        rows = zip(ids, self.names, self.alternatives, self.descriptions, self.parents, strict=True)
        found = [
            Concept(label, name, others, text, tuple([ids[parent] for parent in parents]))
            for label, name, others, text, parents in rows
        ]
        if not in_others:
            return found
        return [
            replace(concept, translations=tuple(sorted(names))) for concept, names in zip(found, in_others, strict=True)
        ]

    def lines(self) -> Iterator[str]:
        """Yield each entry and its count as a line of JSON, as a model folder stores them."""
        # built by hand: the lines of a million labels take a third of the time of `json.dumps`
        quote = json.encoder.encode_basestring
        quoted = [quote(label) for label in self.ids]
        parents_of: dict[tuple[int, ...], str] = {(): ""}
        in_others: dict[int, dict[str, str]] = {}
        for language, named in sorted(self.translations.items()):
            for entry, name in named.items():
                in_others.setdefault(entry, {})[language] = name
        rows = zip(self.names, self.alternatives, self.descriptions, self.parents, self.counts.tolist(), strict=True)
        for entry, (name, others, text, parents, count) in enumerate(rows):
            if parents not in parents_of:
                parents_of[parents] = f'"parents": [{", ".join([quoted[parent] for parent in parents])}], '
            line = f'"name": {quote(name)}, ' if name else ""
            if others:
                line += f'"alternatives": [{", ".join(map(quote, others))}], '
            if text:
                line += f'"description": {quote(text)}, '
            line += parents_of[parents]
            if entry in in_others:
                line += f'"translations": {json.dumps(in_others[entry], ensure_ascii=False)}, '
            yield f'{{{line}"label": {quoted[entry]}, "count": {count}}}\n'

    def name_in(self, language: str | None, entry: int) -> str:
        """Return the name of an entry in a language, such as "de" or "de-AT"; the default name if there is none."""
        tag = (language or "").strip().lower().replace("_", "-")
        while tag:
            found = self.translations.get(tag, {}).get(entry)
            if found:
                return found
            tag = tag.rpartition("-")[0]
        return self.names[entry]

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Languages that have names, the language of `names` first; empty if only `names` exist."""
        if not self.translations:
            return ()
        same = {tag: sum(self.names[i] == name for i, name in of.items()) for tag, of in self.translations.items()}
        usual = min(same, key=lambda tag: (-same[tag], tag))
        return (usual, *sorted(same.keys() - {usual}))

    def digest_text(self) -> str:
        """Return the content of `concepts()` as one string, for a fingerprint.

        It is the concatenated `repr` of each concept, followed by the names in other languages.
        """
        # built by hand, because creating and printing that many objects takes five times as long
        ids = self.ids
        rows = zip(ids, self.names, self.alternatives, self.descriptions, self.parents, strict=True)
        described = "".join(
            [
                f"Concept(id={label!r}, name={name!r}, alternatives={others!r}, description={text!r}, "
                f"parents={tuple([ids[parent] for parent in parents])!r})"
                for label, name, others, text, parents in rows
            ]
        )
        in_others = [(language, sorted(named.items())) for language, named in sorted(self.translations.items())]
        return f"{described}{in_others}" if in_others else described

    def encode(self, lists: Iterable[Iterable[str]]) -> sp.csr_matrix:
        """Turn lists of label ids into a (documents × entries) matrix of ones; repeated labels count once."""
        position = self.position
        indptr, indices = [0], []
        for document in lists:
            try:
                indices += sorted({position[label] for label in document})
            except KeyError as error:
                label = str(error.args[0])
                raise DataError(f"label {label!r} is not in this label set.{nearest(label, self.ids)}") from None
            indptr.append(len(indices))
        return sp.csr_matrix(
            (np.ones(len(indices), dtype=np.float32), np.asarray(indices, np.int32), np.asarray(indptr, np.int64)),
            shape=(len(indptr) - 1, len(self)),
        )

    def decode(self, entries: Iterable[int]) -> list[str]:
        """Turn entries into label ids; skip padding (−1)."""
        return [self.ids[entry] for entry in entries if entry >= 0]

    def find_trained(self, label: str) -> int:
        """Return the entry of a label, by id or name; raise if it has no training documents: no model returns it."""
        entry = self.find(label)
        if entry >= self.n_labels:
            raise DataError(f"label {label!r} has no training document, so the model never suggests it")
        return entry

    def find(self, label: str) -> int:
        """Return the entry with this id, name or alternative name, tried in that order; else suggest the nearest."""
        if label in self.position:
            return self.position[label]
        if not isinstance(label, str):
            raise DataError(f"a label must be a string, its id or its name; got {label!r}")
        named = [i for i, name in enumerate(self.names) if name == label]
        named = named or [i for i, others in enumerate(self.alternatives) if label in others]
        if len(named) > 1:
            ids = ", ".join(self.ids[i] for i in named[:5])
            raise DataError(f"{len(named)} labels are called {label!r}; give the id of one: {ids}")
        if named:
            return named[0]
        hint = nearest(label, (*self.names, *self.ids))
        raise DataError(
            f"unknown label {label!r}.{hint or f' {len(self):,} labels are known, such as {self.names[0]!r}.'}"
        )

    def extend(self, ids: Iterable[str], concepts: Iterable[Concept] = ()) -> LabelSet:
        """Return this set, extended by those of `ids` that it lacks, as concepts without parameters."""
        new = [label for label in dict.fromkeys(ids) if label not in self.position]
        if not new:
            return self
        described = {concept.id: concept for concept in concepts}
        known = {concept.id: concept for concept in self.concepts()}
        known.update({label: described.get(label, Concept(label)) for label in new})
        for label in new:  # grows by described ancestors, so that they keep their names
            for parent in known[label].parents:
                if parent not in known and parent in described:
                    known[parent] = described[parent]
                    new.append(parent)
        return self._assemble(list(self.ids), self.n_labels, known, self.counts.tolist())

    def described(self, concepts: Iterable[Concept]) -> LabelSet:
        """Return this set with the descriptions of a labels file: known entries are updated, new ones appended.

        A concept without name, alternatives, description and parents does not change a known entry.
        """
        known = {concept.id: concept for concept in self.concepts()}
        told = [concept for concept in concepts if concept.id not in known or concept != Concept(concept.id)]
        known.update({concept.id: concept for concept in told})
        return self._assemble(list(self.ids), self.n_labels, known, self.counts.tolist())

    def reorder(self, order: NDArray[np.integer], n_labels: int) -> LabelSet:
        """Return the same entries in another order; the first `n_labels` have parameters."""
        concepts = self.concepts()
        described = zip((concepts[i] for i in order), self.counts[order].tolist(), strict=True)
        return self.restore(described, n_labels)

    def with_counts(self, counts: Sequence[int] | NDArray[np.integer]) -> LabelSet:
        """Return the same set with other training counts."""
        return replace(self, counts=np.asarray(counts, dtype=np.int64))


def name_cluster(labels: LabelSet, members: NDArray[np.integer]) -> str:
    """Return the names of a cluster's most frequent labels, plus the cluster's size if it has more labels."""
    frequent = members[np.argsort(-labels.counts[members], kind="stable")][:_NAMED]
    name = " · ".join(labels.names[label] for label in frequent)
    return name if len(members) <= len(frequent) else f"{name} … ({len(members)} labels)"
