"""Texts: many strings in one UTF-8 buffer.

A Python list of strings takes two bytes per character as soon as a text has one dash or quote outside Latin-1, and
fifty more bytes per string. Packed, a corpus takes the size of its file, and the tokenizer's kernels read it without
copying. Large collections that are built one string at a time are stored in an unnamed file and mapped into memory.
"""

from __future__ import annotations

import mmap
import sys
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import IO, Any, overload

import numpy as np
from numpy.typing import NDArray

from xmtc.core.cache import cache_folder
from xmtc.core.errors import DataError
from xmtc.core.stored_arrays import check_array, misfit

IN_MEMORY = 1 << 26  # maximum bytes of texts collected in memory; more go to a file
AT_ONCE = 1 << 24  # bytes of texts to read before `Texts.release`, when all are read in order


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """An immutable sequence of strings: text i is `buffer[offsets[i]:offsets[i + 1]]`, in UTF-8."""

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # (n + 1,)

    @classmethod
    def pack(cls, texts: Iterable[str]) -> Texts:
        """Pack any iterable of strings; packed texts are returned unchanged."""
        if isinstance(texts, Texts):
            return texts
        if isinstance(texts, str):
            raise DataError("give a list of strings; got one string: put it in a list")
        packed, offsets = bytearray(), array("q", [0])
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise DataError(f"give a list of strings; got {text!r} at place {i}")
            packed += to_utf8(text)
            offsets.append(len(packed))
        return cls(np.frombuffer(packed, dtype=np.uint8), np.frombuffer(offsets, dtype=np.int64))

    @classmethod
    def restore(cls, arrays: Mapping[str, NDArray[Any]], buffer: str, offsets: str, n: int | None = None) -> Texts:
        """Return n texts from two stored arrays, by name; raise unless they hold complete UTF-8 strings."""
        found = check_array(arrays, buffer, "uint8")
        bounds = check_array(arrays, offsets, "int64", length=None if n is None else n + 1, rises_to=len(found))
        try:
            bytes(found.data).decode()
        except UnicodeDecodeError as error:
            raise misfit(arrays, buffer, f"is not UTF-8 ({error.reason} at byte {error.start})") from None
        if ((found[bounds[:-1][bounds[:-1] < len(found)]] & 0xC0) == 0x80).any():
            raise misfit(arrays, offsets, "cuts characters in two")
        return cls(found, bounds)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        """Return whether a list, tuple or Texts has the same strings."""
        if isinstance(other, Texts):
            return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.buffer, other.buffer)
        if isinstance(other, (list, tuple)):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Texts: ...
    def __getitem__(self, index: int | slice) -> str | Texts:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"text {index} of {len(self)}")
        return self.buffer[self.offsets[index] : self.offsets[index + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        for start, stop in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True):
            yield self.buffer[start:stop].tobytes().decode("utf-8")

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of each non-empty text; equal texts have equal hashes on every machine."""
        view, mark = self.buffer.data, AT_ONCE
        hashed = array("Q")
        for start, stop in pairwise(self.offsets.tolist()):
            if stop > start:
                hashed.append(int.from_bytes(blake2b(view[start:stop], digest_size=8).digest(), "little"))
            if stop > mark:
                self.release()
                mark = stop + AT_ONCE
        return np.frombuffer(hashed, np.uint64)

    def release(self) -> None:
        """Release memory that only mirrors a file; the file is read again when a text is accessed."""
        source: Any = self.buffer
        while isinstance(source, (np.ndarray, memoryview)):
            source = source.base if isinstance(source, np.ndarray) else source.obj
        if isinstance(source, mmap.mmap) and sys.platform == "linux":
            source.madvise(mmap.MADV_DONTNEED)

    def take(self, rows: NDArray[np.integer]) -> Texts:
        """Return the texts of the given rows, in that order."""
        rows = np.arange(len(self))[np.asarray(rows, dtype=np.int64)]  # negative rows count from the end
        starts, stops = self.offsets[rows], self.offsets[rows + 1]
        offsets = np.concatenate([[0], np.cumsum(stops - starts)]).astype(np.int64)
        apart = np.ones(len(rows) + 1, dtype=np.bool_)  # adjacent texts are copied together
        apart[1:-1] = starts[1:] != stops[:-1]
        firsts, lasts = starts[apart[:-1]].tolist(), stops[apart[1:]].tolist()
        view = self.buffer.data
        taken = bytearray().join([view[first:last] for first, last in zip(firsts, lasts, strict=True)])
        return Texts(np.frombuffer(taken, dtype=np.uint8), offsets)


def to_utf8(text: str) -> bytes:
    """Encode a string; lone surrogates, which can come from JSON escapes, become U+FFFD."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


class TextsBuilder:
    """Collects strings one by one, for streaming readers."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._offsets = array("q", [0])  # eight bytes per string instead of forty in a list
        self._file: IO[bytes] | None = None  # the bytes before `_bytes`
        self._filed = 0  # its length

    def append(self, text: str) -> None:
        """Add one string."""
        self._bytes += to_utf8(text)
        self._offsets.append(self._filed + len(self._bytes))
        if len(self._bytes) >= IN_MEMORY:
            self._spill()

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def build(self) -> Texts:
        """Return the collected texts; the builder must not be used afterwards."""
        source: bytearray | mmap.mmap = self._bytes
        if self._file is not None:
            self._spill()
            source = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            self._file.close()  # the map keeps the contents
        return Texts(np.frombuffer(source, dtype=np.uint8), np.frombuffer(self._offsets, dtype=np.int64))

    def _spill(self) -> None:
        """Move the collected bytes to an unnamed file in the cache folder, which disappears with the process."""
        try:
            if self._file is None:
                cache_folder().mkdir(parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(dir=cache_folder())  # noqa: SIM115
            self._file.write(self._bytes)
            self._file.flush()
        except OSError as error:
            raise DataError(
                f"cannot store the texts in {cache_folder()}: {error.strerror or error}; set XMTC_CACHE to a folder "
                "with enough space"
            ) from None
        self._filed += len(self._bytes)
        self._bytes = bytearray()
