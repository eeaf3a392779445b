"""Compiled loops of match: stems of texts → names found → labels with features.

Input: the arrays of an index and the stems of documents. Output: pairs of a document and a label, with features of the
label in the text. The kernels know no threads, no strings and no settings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

_PRIME = np.uint64(0x9E3779B97F4A7C15)
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_HALF = np.uint64(32)

# Features of a label found in a text; the columns of `find_pairs`. Positions are word numbers, from 0.
TEXT_FEATURES = (
    "outside",  # number of times a name is found outside a longer name
    "nested",  # number of times it is found inside a longer name, as "aid" in "food aid"
    "first",  # first position
    "first_share",  # first position, as a share of the text
    "last_share",  # last position, as a share of the text
    "spread",  # distance from first to last, as a share of the text
    "preferred",  # 1 if the preferred name is found, 0 if only alternatives are
    "strings",  # number of different names of the label found
    "ambiguity",  # number of labels that share the name; the smallest over its names
    "words",  # number of words in the longest name found
    "weight",  # sum of the stems' inverse document frequencies; the largest over its names
    "gap",  # words between those of the name; 0 if it is found as it is
    "parents",  # number of the label's parents found
    "siblings",  # number of labels found with the same parent
    "children",  # number of the label's children found
    "length",  # log of the number of words in the text
    "found",  # number of labels found in the text
    "of_most",  # times found, divided by that of the label found most often
)
(
    OUTSIDE, NESTED, FIRST, FIRST_SHARE, LAST_SHARE, SPREAD, PREFERRED, STRINGS, AMBIGUITY, WORDS, WEIGHT, GAP,
    PARENTS, SIBLINGS, CHILDREN, LENGTH, FOUND, OF_MOST,
) = range(len(TEXT_FEATURES))  # fmt: skip
N_TEXT = len(TEXT_FEATURES)


class Trie(NamedTuple):
    """Names by their stems: node 0 is the root; a hash table maps a node and a stem to the next node."""

    keys: NDArray[np.uint64]  # (slots,): node · 2³² + stem, linear probing; all ones if a slot is empty
    nodes: NDArray[np.int32]  # (slots,): the next node of the key
    name_of: NDArray[np.int32]  # (nodes,): the name that ends there, −1 if none


class Names(NamedTuple):
    """Names and their owners; the stems of name p are stems[offsets[p]:offsets[p + 1]], its owners likewise."""

    offsets: NDArray[np.int64]
    stems: NDArray[np.int32]
    owner_offsets: NDArray[np.int64]
    owners: NDArray[np.int32]  # entries of the label set
    preferred: NDArray[np.bool_]  # whether the name is the owner's preferred one
    loose_offsets: NDArray[np.int64]  # (stems + 1,)
    loose: NDArray[np.int32]  # names of several words by their rarest stem


@njit(cache=True, nogil=True)
def build_trie(offsets: NDArray[np.int64], stems: NDArray[np.int32]) -> Trie:
    """Build a trie of distinct names."""
    n_slots = 16
    while n_slots < 2 * len(stems):
        n_slots *= 2
    keys = np.full(n_slots, EMPTY, dtype=np.uint64)
    nodes = np.zeros(n_slots, dtype=np.int32)
    name_of = np.full(len(stems) + 1, -1, dtype=np.int32)
    n_nodes = 1
    for name in range(len(offsets) - 1):
        node = 0
        for i in range(offsets[name], offsets[name + 1]):
            key = _key(node, stems[i])
            slot = _find_slot(keys, key)
            if keys[slot] == EMPTY:
                keys[slot] = key
                nodes[slot] = n_nodes
                n_nodes += 1
            node = nodes[slot]
        name_of[node] = name
    return Trie(keys, nodes, name_of[:n_nodes].copy())


@njit(cache=True, nogil=True)
def find_names(
    stems: NDArray[np.int32], trie: Trie
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """Return the names found in one text: first word, word after the last, name, whether inside a longer name."""
    room = max(16, len(stems))
    starts, stops, found = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    nested = np.empty(room, np.bool_)
    n, reach = 0, 0
    for start in range(len(stems)):
        node, longest, before = 0, 0, n
        for at in range(start, len(stems)):
            if stems[at] < 0:
                break
            slot = _find_slot(trie.keys, _key(node, stems[at]))
            if trie.keys[slot] == EMPTY:
                break
            node = trie.nodes[slot]
            name = trie.name_of[node]
            if name >= 0:
                if n == len(found):
                    starts, stops, found = _longer(starts), _longer(stops), _longer(found)
                    nested = np.concatenate((nested, np.empty(len(nested), np.bool_)))
                starts[n], stops[n], found[n] = start, at + 1, name
                n += 1
                longest = at + 1
        for i in range(before, n):
            nested[i] = stops[i] < longest or stops[i] <= reach
        reach = max(reach, longest)
    return starts[:n], stops[:n], found[:n], nested[:n]


@njit(cache=True, nogil=True)
def find_loose(
    stems: NDArray[np.int32], names: Names, exact: NDArray[np.int32], limit: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return names whose words are near each other in a text, in any order: first word, words between, name.

    exact: names found as they are, which are excluded. limit: maximum number of words between.
    """
    room = 16
    starts, gaps, found = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    n = 0
    is_exact = set(exact)
    order = np.argsort(stems, kind="mergesort")  # words by stem, then by position
    ordered = stems[order]
    first = np.searchsorted(ordered, 0)
    while first < len(ordered):
        stem = ordered[first]
        last = np.searchsorted(ordered, stem, side="right")
        for i in range(names.loose_offsets[stem], names.loose_offsets[stem + 1]):
            name = names.loose[i]
            if name in is_exact:
                continue
            own = names.stems[names.offsets[name] : names.offsets[name + 1]]
            best, begin = limit + 1, 0
            for j in range(first, last):
                low, high = order[j], order[j]
                for other in own:
                    if other == stem:
                        continue
                    place = _nearest(ordered, order, other, order[j])
                    if place < 0:
                        low, high = 0, len(stems) + limit + len(own)  # a word is missing
                        break
                    low, high = min(low, place), max(high, place)
                gap = max(0, high - low + 1 - len(own))
                if gap < best:
                    best, begin = gap, low
                if low == 0 and high > len(stems):
                    break
            if best <= limit:
                if n == len(found):
                    starts, gaps, found = _longer(starts), _longer(gaps), _longer(found)
                starts[n], gaps[n], found[n] = begin, best, name
                n += 1
        first = last
    return starts[:n], gaps[:n], found[:n]


@njit(cache=True, nogil=True)
def find_pairs(
    stems: NDArray[np.int32],
    ends: NDArray[np.int64],
    trie: Trie,
    names: Names,
    weights: NDArray[np.float32],
    parent_offsets: NDArray[np.int64],
    parents: NDArray[np.int32],
    limit: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return (documents, entries, features) of all labels whose names are found in some documents.

    stems, ends: words of the documents, as in `Stems`. weights: of each stem. limit: of `find_loose`; below 0, it is
    not used. Pairs are sorted by document, then by entry.
    """
    n_entries = len(parent_offsets) - 1
    slot_of = np.zeros(n_entries, np.int64)  # position of an entry among the pairs, if `seen` is the document
    seen = np.full(n_entries, -1, np.int64)
    under = np.zeros(n_entries, np.int32)  # number of found labels below a parent, if `counted` is the document
    counted = np.full(n_entries, -1, np.int64)
    room, n = 1024, 0
    rows, entries = np.empty(room, np.int64), np.empty(room, np.int32)
    features = np.empty((room, N_TEXT), np.float32)
    for document in range(len(ends) - 1):
        words = stems[ends[document] : ends[document + 1]]
        length = len(words)
        first_pair = n
        starts, _, found, nested = find_names(words, trie)
        loose_starts, gaps, loosely = (starts[:0], starts[:0], starts[:0])
        if limit >= 0:
            loose_starts, gaps, loosely = find_loose(words, names, found, limit)
        previous = set(found[:0])  # names already found in this document
        for i in range(len(found) + len(loosely)):
            exact = i < len(found)
            name = found[i] if exact else loosely[i - len(found)]
            start = starts[i] if exact else loose_starts[i - len(found)]
            gap = 0 if exact else gaps[i - len(found)]
            size = names.offsets[name + 1] - names.offsets[name]
            weight = 0.0
            for j in range(names.offsets[name], names.offsets[name + 1]):
                weight += weights[names.stems[j]]
            shared = names.owner_offsets[name + 1] - names.owner_offsets[name]
            is_new = name not in previous
            previous.add(name)
            for j in range(names.owner_offsets[name], names.owner_offsets[name + 1]):
                entry = names.owners[j]
                if seen[entry] != document:
                    if n == room:
                        room *= 2
                        rows, entries, features = _more(rows, entries, features)
                    seen[entry], slot_of[entry] = document, n
                    rows[n], entries[n] = document, entry
                    features[n] = 0
                    features[n, FIRST], features[n, LAST_SHARE] = start, start
                    features[n, AMBIGUITY], features[n, GAP] = shared, gap
                    n += 1
                at = slot_of[entry]
                if exact:
                    features[at, NESTED if nested[i] else OUTSIDE] += 1
                features[at, FIRST] = min(features[at, FIRST], start)
                features[at, LAST_SHARE] = max(features[at, LAST_SHARE], start)
                features[at, PREFERRED] = max(features[at, PREFERRED], np.float32(names.preferred[j]))
                features[at, STRINGS] += is_new
                features[at, AMBIGUITY] = min(features[at, AMBIGUITY], shared)
                features[at, WORDS] = max(features[at, WORDS], size)
                features[at, WEIGHT] = max(features[at, WEIGHT], np.float32(weight))
                features[at, GAP] = min(features[at, GAP], gap)
        most = np.float32(1)
        for at in range(first_pair, n):
            most = max(most, features[at, OUTSIDE] + features[at, NESTED])
            entry = entries[at]
            for j in range(parent_offsets[entry], parent_offsets[entry + 1]):
                parent = parents[j]
                if counted[parent] != document:
                    counted[parent], under[parent] = document, 0
                under[parent] += 1
                if seen[parent] == document:
                    features[at, PARENTS] += 1
                    features[slot_of[parent], CHILDREN] += 1
        for at in range(first_pair, n):
            entry = entries[at]
            for j in range(parent_offsets[entry], parent_offsets[entry + 1]):
                features[at, SIBLINGS] += under[parents[j]] - 1
            features[at, SPREAD] = (features[at, LAST_SHARE] - features[at, FIRST]) / length
            features[at, LAST_SHARE] /= length
            features[at, FIRST_SHARE] = features[at, FIRST] / length
            features[at, LENGTH] = np.log1p(length)
            features[at, FOUND] = n - first_pair
            features[at, OF_MOST] = (features[at, OUTSIDE] + features[at, NESTED]) / most
        by_entry = first_pair + np.argsort(entries[first_pair:n])
        entries[first_pair:n] = entries[by_entry]
        features[first_pair:n] = features[by_entry]
    return rows[:n].copy(), entries[:n].copy(), features[:n].copy()


@njit(cache=True, nogil=True)
def _nearest(ordered: NDArray[np.int32], order: NDArray[np.int64], stem: int, place: int) -> int:
    """Return the position of a stem that is nearest to a given position; −1 if the text does not contain it."""
    first = np.searchsorted(ordered, stem)
    if first == len(ordered) or ordered[first] != stem:
        return -1
    best = order[first]
    for i in range(first + 1, len(ordered)):
        if ordered[i] != stem or order[i] - place >= abs(best - place):
            break
        if abs(order[i] - place) < abs(best - place):
            best = order[i]
    return int(best)


@njit(cache=True, nogil=True)
def _key(node: int, stem: int) -> np.uint64:
    return np.uint64(node) << _HALF | np.uint64(stem)


@njit(cache=True, nogil=True)
def _find_slot(keys: NDArray[np.uint64], key: np.uint64) -> int:
    """Return the slot that holds a key, or the empty slot for it."""
    mask = np.uint64(len(keys) - 1)
    mixed = key * _PRIME
    at = (mixed ^ (mixed >> _HALF)) & mask
    while keys[at] != key and keys[at] != EMPTY:
        at = (at + np.uint64(1)) & mask
    return np.int64(at)  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def _longer(array: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a copy with twice the capacity."""
    return np.concatenate((array, np.empty(len(array), np.int32)))


@njit(cache=True, nogil=True)
def _more(
    rows: NDArray[np.int64], entries: NDArray[np.int32], features: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return copies with twice the capacity."""
    return (
        np.concatenate((rows, np.empty(len(rows), np.int64))),
        np.concatenate((entries, np.empty(len(entries), np.int32))),
        np.concatenate((features, np.empty(features.shape, np.float32))),
    )
