"""Search labels by name: names that begin with a query first, then names that contain it, each by frequency.

All names are stored case-folded and sorted in one buffer, so that 670,000 of them take only their file's size in memory
and a search takes a few milliseconds. Concepts above the labels are found too, because they can steer suggestions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import DataError, nearest
from xmtc.core.labels import LabelSet

_SEEN = 2000  # maximum names containing the query that are examined; a common word is in far more


class LabelSearch:
    """A search index of the names in a label set."""

    def __init__(self, labels: LabelSet) -> None:
        self._labels = labels
        self._position = labels.position  # computed now, not in the first search
        folded = [_fold(name) for name in labels.names]
        order = sorted(range(len(labels)), key=folded.__getitem__)
        self._order = np.array(order, dtype=np.int64)  # line → entry
        lines = [folded[entry] for entry in order]
        self._lines = b"\n" + b"\n".join(lines) + b"\n"
        self._starts = np.cumsum([1, *(len(line) + 1 for line in lines[:-1])]) if lines else np.zeros(0, np.int64)

    def find(self, query: str, limit: int) -> list[int]:
        """Return the entries of the best labels for a query; the most frequent labels for an empty one."""
        word = _fold(query)
        found = [self._position[query]] if query in self._position else []
        found += [entry for entry in self._beginning(word, limit + 1) if entry not in found]
        if len(found) < limit:
            known = set(found)
            found += [entry for entry in self._holding(word) if entry not in known]
        return found[:limit]

    def entry(self, label: str) -> int:
        """Return the entry with this id or name; raise if it is unknown or ambiguous."""
        if label in self._position:
            return self._position[label]
        word = _fold(label)
        start, stop = self._bisect(word, whole=True), self._bisect(word, whole=True, after=True)
        named = self._order[start:stop].tolist()
        exact = [entry for entry in named if self._labels.names[entry] == label] or named
        if len(exact) == 1:
            return int(exact[0])
        shown = label[:200]
        if exact:
            ids = ", ".join(self._labels.ids[entry] for entry in exact[:5])
            raise DataError(f"{len(exact)} labels are called {shown!r}; give the id of one: {ids}")
        close = self._order[max(0, start - 50) : start + 50].tolist()  # alphabetical neighbours
        raise DataError(f"unknown label {shown!r}.{nearest(shown, [self._labels.names[entry] for entry in close])}")

    def _beginning(self, word: bytes, limit: int) -> list[int]:
        """Return entries whose name begins with a word, the most frequent first."""
        return self._frequent(self._order[self._bisect(word) : self._bisect(word, after=True)], limit)

    def _holding(self, word: bytes) -> list[int]:
        """Return entries whose name contains a word, the most frequent first; only some if there are very many."""
        lines: list[int] = []
        at = self._lines.find(word) if word else -1
        while at >= 0 and len(lines) < _SEEN:
            line = int(np.searchsorted(self._starts, at, side="right")) - 1
            lines.append(line)
            next_line = int(self._starts[line + 1]) if line + 1 < len(self._starts) else len(self._lines)
            at = self._lines.find(word, next_line)
        return self._frequent(self._order[lines], len(lines))

    def _frequent(self, entries: NDArray[np.int64], limit: int) -> list[int]:
        """Return the entries with the most training documents; ties are in entry order."""
        key = entries - self._labels.counts[entries] * len(self._labels)
        if len(entries) > 4 * limit:  # sorting 670,000 for the first ten would take most of the time
            best = np.argpartition(key, limit)[:limit]
            entries, key = entries[best], key[best]
        return [int(entry) for entry in entries[np.argsort(key)][:limit]]

    def _bisect(self, word: bytes, *, whole: bool = False, after: bool = False) -> int:
        """Return the first line at or after a word; `after`: past lines that begin with it (or equal it: `whole`)."""
        low, high = 0, len(self._starts)
        while low < high:
            middle = (low + high) // 2
            start = int(self._starts[middle])
            stop = self._lines.index(b"\n", start)
            line = self._lines[start:stop] if whole else self._lines[start : min(stop, start + len(word))]
            if line < word or (after and line == word):
                low = middle + 1
            else:
                high = middle
        return low


def _fold(name: str) -> bytes:
    """Return a name in its form for comparison: case-folded, single spaces, no line ends."""
    return " ".join(name.casefold().split()).encode("utf-8", "replace")
