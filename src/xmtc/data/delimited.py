"""Read CSV and TSV files into rows; detect delimiter and encoding unless they are given. Independent of documents.

CSV fields may be quoted, and then may contain line breaks. TSV has no quoting: one line is one row. A first line
`sep=;`, as Excel writes it, sets the delimiter of a CSV file.
"""

from __future__ import annotations

import codecs
import csv
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from xmtc.core.errors import DataError
from xmtc.data.fields import Mistake
from xmtc.data.files import longest_line, open_binary, open_lines
from xmtc.data.table import Row, Table, refuse
from xmtc.data.table_mapping import TableMapping

_DELIMITERS = (",", ";", "\t", "|")  # candidates when the delimiter is guessed
_SAMPLE = 200  # lines used to guess the delimiter
_CHUNK = 1 << 20
_SEP = re.compile(r"sep=(.)\s*", re.IGNORECASE)
# bytes that Windows-1252 does not define
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_TWO_BYTES = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_IN_WORD = re.compile(rb"[A-Za-z][\x80-\xff]|[\x80-\xff][A-Za-z]")


def open_delimited(path: Path, mapping: TableMapping, *, quoted: bool) -> Table:
    """Open a CSV (quoted) or TSV file; a TSV file with a delimiter set in the mapping is read like CSV."""
    encoding = mapping.encoding or guess_encoding(path)
    delimiter = mapping.delimiter
    quoted = quoted or delimiter not in (None, "\t")
    if delimiter is None:
        delimiter = _guess_delimiter(list(islice(open_lines(path, encoding), _SAMPLE)), mapping) if quoted else "\t"
    rows = iter_fields(path, quoted, delimiter, encoding)
    names, mistake = next(rows, ([], partial(refuse, str(path), None)))
    guessed = {}
    if mapping.encoding is None and encoding != "utf-8":
        guessed["--encoding"] = f"read as {encoding}"
    if mapping.delimiter is None and quoted and delimiter != ",":
        guessed["--delimiter"] = f"columns separated by {'tabs' if delimiter == chr(9) else repr(delimiter)}"
    read = partial(_read_rows, path, quoted, delimiter, encoding, names)
    return Table(names, mistake, read, guessed)


def _read_rows(
    path: Path, quoted: bool, delimiter: str, encoding: str, names: list[str], columns: Sequence[str]
) -> Iterator[Row]:
    places = [names.index(column) for column in columns]
    for row, mistake in islice(iter_fields(path, quoted, delimiter, encoding), 1, None):
        yield Row([row[place] for place in places], mistake)


def iter_fields(
    path: Path, quoted: bool, delimiter: str = ",", encoding: str = "utf-8"
) -> Iterator[tuple[list[str], Mistake]]:
    """Stream the header, then the rows of a CSV (quoted) or TSV file, with line numbers; all have the same length."""
    csv.field_size_limit(longest_line())  # the module's default limit of 128 KiB would reject long texts
    lines = open_lines(path, encoding)
    rows: Iterator[list[str]]
    if quoted:
        rows = csv.reader((f"{line}\n" for line in lines), strict=True, delimiter=delimiter)
    else:
        rows = (line.split(delimiter) for line in lines)
    header: list[str] = []
    while True:
        first = lines.number + 1  # a quoted field may contain line breaks: errors report the line where its row begins
        mistake = partial(lines.mistake, line=first)
        try:
            row = next(rows, None)
        except csv.Error as error:
            advice = ", or set XMTC_MAX_LINE_MB to a larger number" if "limit" in str(error) else ""
            raise mistake(f"malformed CSV ({error}); check the quotes of this row{advice}") from None
        if row is None:
            return
        if not row or (row == [""] and len(header) != 1):
            continue  # skip blank lines, unless the text is the only column
        if quoted and first == 1 and _SEP.fullmatch(delimiter.join(row)):
            continue
        if not header and not any(name.strip() for name in row):
            continue  # only delimiters, above the header
        header = header or row
        if len(row) != len(header):
            advice = "check for stray or missing separators"
            if not quoted and any(cell.startswith('"') for cell in row):
                advice = "a .tsv file has no quoted cells: name it .csv if it has"
            elif quoted and delimiter == "," and len(row) > len(header):
                advice += ", or give --delimiter if it is not ','"
            raise mistake(f"{len(row)} fields, but the header has {len(header)}; {advice}")
        yield row, mistake


def guess_encoding(path: Path) -> str:
    """Return "utf-8", or "utf-16" or "cp1252" for a file that is not UTF-8 and looks like these.

    If the first bytes that are not UTF-8 do not look like a word in Windows-1252, return "utf-8": the reader then
    reports the first invalid byte.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    before = b""
    with open_binary(path) as file:
        try:
            while chunk := file.read(_CHUNK):
                if not before:
                    if chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                        return "utf-16"
                    if len(chunk) >= 4 and (zeros := chunk[:400].count(0)) and zeros >= len(chunk[:400]) // 4:
                        return "utf-16-be" if chunk[0] == 0 else "utf-16-le"
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError:
                    return "cp1252" if _is_windows(before + chunk) else "utf-8"
                before = chunk
        except (EOFError, zlib.error):
            return "utf-8"  # a damaged gzip file: its reader reports the place
        except OSError as error:
            if error.errno is None:
                return "utf-8"  # also damaged
            raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    return "utf-8"


def _is_windows(raw: bytes) -> bool:
    """Return whether bytes that are not UTF-8 are Windows-1252: accented letters in words, and no UTF-8 character."""
    return bool(_IN_WORD.search(raw)) and not _UNDEFINED.search(raw) and not _TWO_BYTES.search(raw)


def _guess_delimiter(lines: list[str], mapping: TableMapping) -> str:
    """Return the delimiter that yields the wanted columns, or else the one that gives most rows the same length."""
    if lines and (named := _SEP.fullmatch(lines[0])):
        return named[1]
    wanted = {name.casefold() for name in (*mapping.text, mapping.labels)}

    def fit(delimiter: str) -> tuple[int, float, int]:
        try:
            rows = [row for row in csv.reader((f"{line}\n" for line in lines), delimiter=delimiter) if row]
        except csv.Error:
            return 0, 0.0, 0
        if not rows or len(rows[0]) < 2:
            return 0, 0.0, 0
        header = {name.strip().casefold() for name in rows[0]}
        # the sample may end within a quoted cell
        like_header = sum(len(row) == len(rows[0]) for row in rows[:-1]) / max(1, len(rows) - 1)
        return len(wanted & header), like_header, -_DELIMITERS.index(delimiter)

    best = max(_DELIMITERS, key=fit)
    return best if fit(best)[:2] > (0, 0.0) else ","
