"""Parse sparse rows of text, `label,label feature:value …` or `column:value …`, into arrays. Independent of corpora.

Indices always start at zero. numpy parses chunks of whole lines at once. A chunk that is not in the plain form (or is
invalid) is parsed again by a strict parser, line by line, which finds the line to report.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.data.files import Lines


class SparseRows(NamedTuple):
    """Some rows: ragged labels (empty if rows have pairs only) and sparse values."""

    labels: NDArray[np.int32]
    n_labels: NDArray[np.int64]  # (rows,)
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    n_pairs: NDArray[np.int64]  # (rows,)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.n_pairs)

    def matrix(self, width: int) -> sp.csr_matrix:
        """Return the values as a (rows × width) matrix; repeated columns in a row are summed."""
        X = sp.csr_matrix((self.values, self.columns, offsets(self.n_pairs)), shape=(self.n_rows, width))
        X.sum_duplicates()
        return X


def read_header(lines: Lines, *fields: str, optional: str | None = None) -> list[int]:
    """Read a first line of whole numbers, one for each of `fields`, and possibly one more for `optional`."""
    words = lines.first().split()
    sizes = [len(fields)] if optional is None else [len(fields), len(fields) + 1]
    if len(words) not in sizes or not all(_is_index(word.encode()) and int(word) < 2**31 for word in words):
        expected = ", ".join(fields) + (f", optional {optional}" if optional else "")
        numbers, got = " or ".join(map(str, sizes)), " ".join(words)[:80]
        raise lines.mistake(f"expected a header of {numbers} whole numbers ({expected}), got {got!r}; add it")
    return [int(word) for word in words]


def iter_rows(lines: Lines, n: int, width: int, n_labels: int | None = None) -> Iterator[SparseRows]:
    """Parse the rest of a file, chunk by chunk; raise unless it has `n` rows, not counting blank lines at its end.

    With `n_labels`, rows begin with labels below this number, separated by commas (an unlabelled row begins with a
    space); without it, rows have `column:value` pairs only. Columns are below `width`; values are finite.
    """
    left = n
    for chunk in lines.chunks():
        rows = _parse_chunk(chunk, width, n_labels)
        if rows is None:
            rows = _parse_lines(lines, chunk, width, n_labels)
        surplus = np.flatnonzero(rows.n_labels[left:] + rows.n_pairs[left:])
        if len(surplus):
            line = lines.number + left + int(surplus[0]) + 1
            raise lines.mistake(f"more rows than the {n} of the header; correct the header or remove the rest", line)
        rows = rows._replace(n_labels=rows.n_labels[:left], n_pairs=rows.n_pairs[:left])
        left -= rows.n_rows
        yield rows
    if left:
        raise lines.mistake(f"the file ends after {n - left} rows, but its header says {n}; is it cut short?")


def read_rows(lines: Lines, n: int, width: int, n_labels: int | None = None) -> SparseRows:
    """Parse the rest of a file at once, as `iter_rows` does."""
    types = (np.int32, np.int64, np.int32, np.float32, np.int64)
    grown = [bytearray() for _ in types]  # grown in place, so that the data is never in memory twice
    for rows in iter_rows(lines, n, width, n_labels):
        arrays: tuple[NDArray, ...] = rows
        for buffer, values in zip(grown, arrays, strict=True):
            buffer += values.tobytes()
    return SparseRows(*(np.frombuffer(buffer, type_) for buffer, type_ in zip(grown, types, strict=True)))


def offsets(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the start of each ragged row, and the end of the last."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


# Kind of each byte: "word" is part of a number; "odd", such as a tab, is left to the strict parser.
_WORD, _LINE, _SPACE, _COMMA, _COLON, _ODD = range(6)
_KIND = np.full(256, _WORD, dtype=np.uint8)
_KIND[: ord(" ")] = _ODD
_KIND[list(b"\n ,:")] = _LINE, _SPACE, _COMMA, _COLON
_BLANK = bytes.maketrans(b"\n,:", b"   ")

# (word between?, separator before, separator after) → whether it is allowed
_PAIRS_ONLY = np.zeros((2, 6, 6), dtype=bool)
for _before, _after in [(_LINE, _COLON), (_SPACE, _COLON), (_COLON, _SPACE), (_COLON, _LINE)]:
    _PAIRS_ONLY[1, _before, _after] = True
for _before, _after in [(_LINE, _LINE), (_LINE, _SPACE)]:
    _PAIRS_ONLY[0, _before, _after] = True
_LABELLED = _PAIRS_ONLY.copy()
for _before in (_LINE, _COMMA):
    for _after in (_COMMA, _SPACE, _LINE):
        _LABELLED[1, _before, _after] = True


def _parse_chunk(chunk: bytes, width: int, n_labels: int | None) -> SparseRows | None:
    """Parse lines in the plain form, with one separator between two numbers; return None in case of doubt."""
    chunk = chunk.replace(b"\r\n", b"\n")
    while b" \n" in chunk:
        chunk = chunk.replace(b" \n", b"\n")
    kinds = _KIND[np.frombuffer(chunk, dtype=np.uint8)]
    places = np.flatnonzero(kinds)
    after = kinds[places]
    before = np.concatenate([[_LINE], after[:-1]])
    word = np.diff(places, prepend=-1) > 1
    allowed = _PAIRS_ONLY if n_labels is None else _LABELLED
    if not allowed[word.astype(np.intp), before, after].all():
        return None
    numbers = _parse_numbers(chunk.translate(_BLANK))
    if numbers is None or len(numbers) != np.count_nonzero(word):
        return None
    row = np.cumsum(before == _LINE)[word] - 1
    is_column, is_value = after[word] == _COLON, before[word] == _COLON
    is_label = ~(is_column | is_value)
    labels, columns = numbers[is_label], numbers[is_column]
    with np.errstate(over="ignore"):
        values = numbers[is_value].astype(np.float32)
    if not (_are_indices(labels, n_labels or 0) and _are_indices(columns, width) and np.isfinite(values).all()):
        return None
    n_rows = int(np.count_nonzero(after == _LINE))
    return SparseRows(
        labels.astype(np.int32),
        np.bincount(row[is_label], minlength=n_rows),
        columns.astype(np.int32),
        values,
        np.bincount(row[is_column], minlength=n_rows),
    )


def _parse_numbers(text: bytes) -> NDArray[np.float64] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy warns about text that it cannot parse completely
        try:
            return np.fromstring(text, sep=" ") if text.strip() else np.empty(0)
        except (DeprecationWarning, ValueError):
            return None


def _are_indices(numbers: NDArray[np.float64], below: int) -> bool:
    return bool(((numbers >= 0) & (numbers < below) & (numbers == np.floor(numbers))).all())


def _parse_lines(lines: Lines, chunk: bytes, width: int, n_labels: int | None) -> SparseRows:
    """Parse line by line, with any spacing; raise at the first invalid line."""
    labels: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    label_ends, pair_ends = [0], [0]
    for i, line in enumerate(chunk[:-1].split(b"\n")):
        number = lines.number + i + 1
        words = line.split()
        if n_labels is not None and words and b":" not in words[0]:
            for label in words.pop(0).split(b","):
                labels.append(_as_index(lines, number, label, n_labels, "label"))
        for word in words:
            column, colon, value = word.partition(b":")
            if not colon:
                raise lines.mistake(f"expected index:value, got {_shown(word)}; write indices from 0", number)
            columns.append(_as_index(lines, number, column, width, "index"))
            values.append(_as_value(lines, number, value))
        label_ends.append(len(labels))
        pair_ends.append(len(columns))
    return SparseRows(
        np.asarray(labels, dtype=np.int32),
        np.diff(label_ends),
        np.asarray(columns, dtype=np.int32),
        np.asarray(values, dtype=np.float32),
        np.diff(pair_ends),
    )


def _as_index(lines: Lines, number: int, word: bytes, below: int, noun: str) -> int:
    if not _is_index(word):
        raise lines.mistake(f"{noun} {_shown(word)} is not a whole number; write each {noun} as 0, 1, 2, …", number)
    if int(word) >= below:
        raise lines.mistake(
            f"{noun} {int(word)} is out of range: the header allows 0 … {below - 1}; correct the header or the {noun}",
            number,
        )
    return int(word)


def _as_value(lines: Lines, number: int, word: bytes) -> float:
    try:
        value = float(word)
    except ValueError:
        raise lines.mistake(f"value {_shown(word)} is not a number; write index:value", number) from None
    if not abs(value) <= float(np.finfo(np.float32).max):
        raise lines.mistake(f"value {_shown(word)} is NaN, infinite or too large; replace it by a number", number)
    return value


def _is_index(word: bytes) -> bool:
    return word.isdigit() and len(word) < 19


def _shown(word: bytes) -> str:
    return repr(word[:40].decode("utf-8", "replace"))
