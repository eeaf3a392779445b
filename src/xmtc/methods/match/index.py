"""The index: all names of a vocabulary in one trie, by the stems of their words.

Input: a label set. Output: arrays that find every name in a text, and the labels with that name. If two labels share a
name, both are found. Indexing hundreds of thousands of names takes seconds. This module knows no documents and no
scores.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import DataError
from xmtc.core.labels import LabelSet
from xmtc.core.parallel import read_only
from xmtc.core.stored_arrays import check_array, misfit
from xmtc.core.texts import Texts
from xmtc.features.analysis import analyzer as open_analyzer
from xmtc.features.label_vectors import own_name
from xmtc.features.words import split_words
from xmtc.methods.match.kernels import EMPTY, Names, Trie, build_trie
from xmtc.methods.match.stems import Stems

_LONGEST = 16  # words per name; longer names are truncated
_QUALIFIER = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")  # "bass (fish)" is also found as "bass"
_INVERTED = re.compile(r"([^,]+),\s*([^,]+)")  # "aid, food" is also found as "food aid"


@dataclass(frozen=True, eq=False)
class Index:
    """Names by stems: the arrays that find them, and the labels that they belong to."""

    stems: Stems
    trie: Trie
    names: Names

    @classmethod
    def build(cls, labels: LabelSet, analyzer: str, retired: Collection[str] = ()) -> Index:
        """Index the names and alternatives of all labels that have any, except retired labels."""
        strings = [(entry, split_words(name)[:_LONGEST], own) for entry, name, own in _strings(labels, set(retired))]
        number_of, stem_of = dict[str, int](), _stem_all((words for _, words, _ in strings), analyzer)
        phrases: dict[tuple[int, ...], int] = {}
        owners: list[dict[int, bool]] = []  # per phrase: entry → whether it is the preferred name
        for entry, words, preferred in strings:
            if not words:
                continue
            phrase = tuple([number_of.setdefault(stem_of[word], len(number_of)) for word in words])
            place = phrases.setdefault(phrase, len(phrases))
            if place == len(owners):
                owners.append({})
            owners[place][entry] = owners[place].get(entry, False) or preferred
        if not phrases:
            raise DataError(
                "no label has a name to match by: give a labels.jsonl with names, or use a method that learns from "
                "documents, such as linear"
            )
        lengths = [len(phrase) for phrase in phrases]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        stems = np.array([number for phrase in phrases for number in phrase], dtype=np.int32)
        owner_offsets = np.concatenate([[0], np.cumsum([len(own) for own in owners])]).astype(np.int64)
        loose_offsets, loose = _by_rarest(offsets, stems, len(number_of))
        return cls(
            Stems(Texts.pack(number_of), analyzer),
            Trie(*(read_only(array) for array in build_trie(offsets, stems))),
            _names(
                offsets,
                stems,
                owner_offsets,
                np.array([entry for own in owners for entry in own], dtype=np.int32),
                np.array([preferred for own in owners for preferred in own.values()], dtype=np.bool_),
                loose_offsets,
                loose,
            ),
        )

    @property
    def n_names(self) -> int:
        """Return the number of different names, by their stems."""
        return len(self.names.offsets) - 1

    def named(self, n_entries: int) -> NDArray[np.bool_]:
        """Return which entries have a name in the index."""
        found = np.zeros(n_entries, dtype=bool)
        found[self.names.owners] = True
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays, for storage."""
        vocabulary = self.stems.vocabulary
        return {
            "stem_bytes": vocabulary.buffer,
            "stem_ends": vocabulary.offsets,
            **{f"trie_{name}": array for name, array in self.trie._asdict().items()},
            **{f"names_{name}": array for name, array in self.names._asdict().items()},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], analyzer: str, n_entries: int) -> Index:
        """Rebuild an index from the output of `arrays`; raise if a value that kernels use as index is out of range."""
        stems = Texts.restore(arrays, "stem_bytes", "stem_ends")
        parts = check_array(arrays, "names_stems", "int32", within=(0, len(stems) - 1))
        offsets = check_array(arrays, "names_offsets", "int64", rises_to=len(parts))
        last = len(offsets) - 2  # the last name
        owners = check_array(arrays, "names_owners", "int32", within=(0, n_entries - 1))
        loose = check_array(arrays, "names_loose", "int32", within=(0, last))
        names = _names(
            offsets,
            parts,
            check_array(arrays, "names_owner_offsets", "int64", length=len(offsets), rises_to=len(owners)),
            owners,
            check_array(arrays, "names_preferred", "bool", length=len(owners)),
            check_array(arrays, "names_loose_offsets", "int64", length=len(stems) + 1, rises_to=len(loose)),
            loose,
        )
        keys = check_array(arrays, "trie_keys", "uint64")
        if len(keys) & (len(keys) - 1) or not (keys == EMPTY).any():  # otherwise a search would not end
            raise misfit(arrays, "trie_keys", "must have a power of two slots, some of them empty")
        ends = check_array(arrays, "trie_name_of", "int32", within=(-1, last))
        nodes = check_array(arrays, "trie_nodes", "int32", length=len(keys), within=(0, len(ends) - 1))
        return cls(Stems(stems, analyzer), Trie(*map(read_only, (keys, nodes, ends))), names)


def _stem_all(names: Iterable[list[str]], spec: str) -> dict[str, str]:
    """Return the stem of each word of all names; each word is stemmed once."""
    words = list(dict.fromkeys(word for name in names for word in name))
    return dict(zip(words, open_analyzer(spec).terms(words), strict=True))


def _names(*arrays: NDArray[Any]) -> Names:
    return Names(*map(read_only, arrays))


def _strings(labels: LabelSet, gone: set[str]) -> Iterator[tuple[int, str, bool]]:
    """Yield (entry, string, whether it is the preferred name) of all labels."""
    for entry, (id, others) in enumerate(zip(labels.ids, labels.alternatives, strict=True)):
        if id in gone:
            continue
        for string, preferred in ((own_name(labels, entry), True), *((other, False) for other in others)):
            yield entry, string, preferred
            bare = _QUALIFIER.sub("", string)
            if bare != string:
                yield entry, bare, False
            turned = _INVERTED.fullmatch(bare)
            if turned is not None:
                yield entry, f"{turned[2]} {turned[1]}", False


def _by_rarest(
    offsets: NDArray[np.int64], stems: NDArray[np.int32], n_stems: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Group names of several words by their rarest stem: a text without it cannot contain all the name's words."""
    frequency = np.bincount(stems, minlength=n_stems)
    lengths = np.diff(offsets)
    # the rarest stem of each name, the first of equals: stable sort by (name, frequency)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((np.arange(len(stems)), frequency[stems], owner))
    rarest = stems[order][offsets[:-1]]
    several = np.flatnonzero(lengths > 1).astype(np.int32)
    by_stem = several[np.argsort(rarest[several], kind="stable")]
    counts = np.bincount(rarest[several], minlength=n_stems)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), by_stem
