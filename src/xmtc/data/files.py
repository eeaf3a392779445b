"""Find, read and write files, plain or gzipped; errors give file and line. Independent of layouts.

Only a line feed ends a line (a carriage return before it is dropped); U+2028, form feeds and similar characters are
text. At most one line, or one chunk of lines, is in memory at a time. Files are written atomically.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from xmtc.core.errors import ConfigError, DataError
from xmtc.core.whole_folder import recover, whole_folder

_BUFFER = 1 << 20
_LONGEST_LINE = 128 << 20  # bytes, unless XMTC_MAX_LINE_MB is set
_MOST_UNPACKED, _MOST_RATIO = (
    1 << 30,
    100,
)  # bytes that any file may unpack to, and the maximum ratio for larger ones
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SEPARATING = re.compile(r"\r\n|[\r\n\t]")


def suffix(path: Path) -> str:
    """Return the file extension that identifies the format, without .gz: "train.jsonl.gz" → ".jsonl"."""
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def find_file(folder: Path, *names: str) -> Path | None:
    """Return the first of these files that exists in the folder, plain or with .gz; raise if both exist."""
    for name in names:
        plain, packed = folder / name, folder / f"{name}.gz"
        if plain.is_file() and packed.is_file():
            raise DataError(f"{folder} holds both {plain.name} and {packed.name}; remove one of them")
        if plain.is_file() or packed.is_file():
            return plain if plain.is_file() else packed
    return None


class Lines:
    """Iterate once over the lines of a stream, as strings without line ends; `number` is the current line number."""

    def __init__(self, name: str, stream: IO[bytes] | io.RawIOBase | io.BufferedReader, *, close: bool = False) -> None:
        self.name = name
        self.number = 0
        self._stream = stream
        self._closing = stream if close else nullcontext()
        self._most = longest_line()

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
                        f"byte {error.start + 1} of the line (0x{byte:02x}) is not UTF-8; convert the file to UTF-8, "
                        "or, if it is a table, give --encoding"
                    ) from None
                yield line.removesuffix("\n").removesuffix("\r")

    def chunks(self, size: int = 1 << 22) -> Iterator[bytes]:
        """Iterate over the rest in chunks of whole lines that end in a line feed; `number` counts the lines before."""
        with self._closing:
            while True:
                before, lines, length = self.number, [], 0
                while length < size and (line := self._read_line()):
                    self.number += 1
                    length += len(line)
                    lines.append(line)
                if not lines:
                    return
                if before == 0:
                    lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
                if not lines[-1].endswith(b"\n"):
                    lines[-1] += b"\n"
                self.number, after = before, self.number
                yield b"".join(lines)
                self.number = after

    def first(self) -> str:
        """Return the first line, or "" for an empty file; iterating or `chunks` continues after it."""
        self.number = 1
        raw = self._read_line().removeprefix(_BYTE_ORDER_MARK)
        return raw.decode("utf-8", "replace").rstrip("\r\n")

    def mistake(self, reason: str, line: int | None = None) -> DataError:
        """Return an error with file, line and `reason`."""
        return DataError(f"{self.name}, line {self.number if line is None else line}: {reason}")

    def _read_line(self) -> bytes:
        most = self._most
        try:
            line = self._stream.readline(most + 1)
            if len(line) > most:
                raise self.mistake(
                    f"the line is longer than {most >> 20} MB; cut it, or set XMTC_MAX_LINE_MB to a larger number",
                    self.number + 1,
                )
            return line
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise self.mistake("the gzip file is cut short or damaged here; copy it again", self.number + 1) from None
        except OSError as error:
            raise DataError(f"cannot read {self.name}: {error.strerror or error}") from None


def open_lines(path: Path, encoding: str = "utf-8") -> Lines:
    """Open a file for reading by lines; unpack it if its name ends in .gz."""
    stream = open_binary(path)
    if encoding != "utf-8":
        return Lines(str(path), _Recoded(stream, encoding), close=True)
    return Lines(str(path), stream, close=True)


def open_binary(path: Path) -> IO[bytes] | io.BufferedReader:
    """Open a file for reading bytes; unpack it if its name ends in .gz."""
    try:
        if path.suffix == ".gz":
            return io.BufferedReader(_Unpacked(path), _BUFFER)
        return open(path, "rb", buffering=_BUFFER)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def read_limit(name: str, default: int) -> int:
    """Return a limit in bytes, from an environment variable in MB if it is set."""
    given = os.environ.get(name)
    if given is None:
        return default
    if not given.isdecimal() or not 0 < int(given) < 1 << 40:
        raise ConfigError(f"{name} must be a whole number of MB, such as 500; got {given!r}")
    return int(given) << 20


def longest_line() -> int:
    """Return the maximum number of bytes in a line or in a table cell."""
    return min(read_limit("XMTC_MAX_LINE_MB", _LONGEST_LINE), 2**31 - 2)


def check_unpacked(path: Path, size: int, packed: int) -> None:
    """Raise if a packed file expands more than text or numbers ever do, because it could fill memory or disk."""
    most = read_limit("XMTC_MAX_UNPACKED_MB", max(_MOST_UNPACKED, _MOST_RATIO * packed))
    if size > most:
        raise DataError(
            f"{path} unpacks to more than {most >> 20:,} MB, too many for its size; unpack it yourself if you trust "
            "it, or set XMTC_MAX_UNPACKED_MB to a larger number"
        )


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, up to the limit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = gzip.open(path)  # noqa: SIM115
        self._size, self._packed = 0, path.stat().st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read1(len(buffer))  # no more at once: lines before the damage in a file can be read
        buffer[: len(content)] = content
        self._size += len(content)
        check_unpacked(self._path, self._size, self._packed)
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Recoded(io.RawIOBase):
    """The lines of a stream in another encoding, converted to UTF-8."""

    def __init__(self, stream: IO[bytes] | io.BufferedReader, encoding: str) -> None:
        self._encoding = encoding
        self._text = io.TextIOWrapper(stream, encoding, newline="\n")

    def readline(self, size: int | None = -1) -> bytes:
        try:
            return self._text.readline(-1 if size is None else size).encode()
        except UnicodeError:
            raise OSError(None, f"it is not {self._encoding}; give its encoding with --encoding") from None

    def close(self) -> None:
        self._text.close()
        super().close()


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a text file, unpacked, without byte order mark; the last line ends in a line feed."""
    return b"".join(open_lines(path).chunks())


def new_folder(folder: str | Path) -> Path:
    """Create a folder for new data; raise if it is not empty, so that no data is overwritten."""
    folder = Path(folder)
    try:
        recover(folder.absolute())
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise DataError(f"{folder} is not empty; remove it or choose another folder")
    except OSError as error:
        raise DataError(f"cannot make the folder {folder}: {error.strerror}") from None
    return folder


@contextmanager
def fill_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces an empty one, made by `new_folder`, when everything is written."""
    try:
        with whole_folder(folder) as temporary:
            yield temporary
            temporary.chmod(folder.stat().st_mode)
    except OSError as error:
        raise DataError(f"cannot write {folder}: {error.strerror or error}") from None


@contextmanager
def open_whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file for writing; rename it to `path` when everything is written."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with open(partial, "wb") as file:
            yield file
        os.replace(partial, path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, given without line ends, as UTF-8."""
    with open_whole(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def one_line(text: str) -> str:
    """Replace line ends and tabs with spaces, for layouts that use these as separators."""
    return _SEPARATING.sub(" ", text)
