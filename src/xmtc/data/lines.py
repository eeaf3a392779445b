"""Lines of a file or stream, plain or gzip, with the place of every mistake. Knows no layout.

A line ends at a line feed alone (a carriage return before it is dropped): U+2028, form feeds and the like are text. At
most one line, or one block of lines, is in memory at a time.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO

from xmtc.core.errors import DataError

_BUFFER = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Lines:
    """Iterates over the lines of a stream, once, as strings without their end; `number` is the line last given."""

    def __init__(self, name: str, stream: IO[bytes] | gzip.GzipFile, *, close: bool = False) -> None:
        self.name = name
        self.number = 0
        self._stream = stream
        self._closing = stream if close else nullcontext()

    def __iter__(self) -> Iterator[str]:
        with self._closing:
            while raw := self._read_line():
                self.number += 1
                if self.number == 1:
                    raw = raw.removeprefix(_BYTE_ORDER_MARK)
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    byte = raw[error.start]
                    raise self.mistake(
                        f"byte {error.start + 1} of the line (0x{byte:02x}) is not UTF-8; convert the file to UTF-8"
                    ) from None
                yield line.removesuffix("\n").removesuffix("\r")

    def blocks(self, size: int = 1 << 22) -> Iterator[bytes]:
        """Give the rest as blocks of whole lines, each ending in a line feed; `number` counts the lines before it."""
        with self._closing:
            while True:
                before, parts, length = self.number, [], 0
                while length < size and (line := self._read_line()):
                    self.number += 1
                    length += len(line)
                    parts.append(line)
                if not parts:
                    return
                if before == 0:
                    parts[0] = parts[0].removeprefix(_BYTE_ORDER_MARK)
                if not parts[-1].endswith(b"\n"):
                    parts[-1] += b"\n"
                self.number, after = before, self.number
                yield b"".join(parts)
                self.number = after

    def first(self) -> str:
        """Give the first line alone (empty if there is none); iterating or `blocks` goes on after it."""
        self.number = 1
        raw = self._read_line().removeprefix(_BYTE_ORDER_MARK)
        return raw.decode("utf-8", "replace").rstrip("\r\n")

    def mistake(self, reason: str, line: int | None = None) -> DataError:
        """Return the error that tells `reason` with file and line."""
        return DataError(f"{self.name}, line {self.number if line is None else line}: {reason}")

    def _read_line(self) -> bytes:
        try:
            return self._stream.readline()
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise self.mistake("the gzip file is cut short or damaged here; copy it again", self.number + 1) from None
        except OSError as error:
            raise DataError(f"cannot read {self.name}: {error.strerror or error}") from None


def open_lines(path: Path) -> Lines:
    """Open a file for reading by lines; a name that ends in .gz is unpacked on the way."""
    try:
        stream = gzip.open(path) if path.suffix == ".gz" else open(path, "rb", buffering=_BUFFER)  # noqa: SIM115
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    return Lines(str(path), stream, close=True)
