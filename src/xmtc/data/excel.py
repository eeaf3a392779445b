"""Read sheets of Excel workbooks (.xlsx) into rows of strings, as Excel shows them. Independent of documents.

A workbook is a zip archive of XML files. Only the requested sheet, its strings and its number formats are opened;
formulas give the values that Excel stored. Dates are written as 2024-01-31, with the time if the cell shows one. A
document type declaration is rejected, because XML entities could expand without limit.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from xml.parsers import expat

from xmtc.core.errors import DataError, nearest
from xmtc.data.table import Row, Table, refuse
from xmtc.data.table_mapping import TableMapping

_CHUNK = 1 << 16
_MOST_UNPACKED = 1 << 28  # bytes of one unpacked XML file that are accepted at any compression ratio
_MOST_RATIO = 200  # of unpacked to packed bytes, above _MOST_UNPACKED
# built-in formats, which Excel identifies by number only
_FORMATS = {1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 37: "#,##0", 38: "#,##0"} | {
    39: "#,##0.00",
    40: "#,##0.00",
    18: "h:mm",
    19: "h:mm:ss",
    20: "h:mm",
    21: "h:mm:ss",
    22: "d/m/yy h:mm",
    **dict.fromkeys((14, 15, 16, 17), "d/m/yy"),
    **dict.fromkeys((45, 46, 47), "mm:ss"),
}
_NOT_SHOWN = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')  # literal text, colours, conditions and fillers of a format
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


class _Sheet(NamedTuple):
    name: str
    file: str


class _Workbook(NamedTuple):
    strings: list[str]
    formats: list[str]  # indexed by the style number of a cell
    first_day: datetime


def open_excel(path: Path, mapping: TableMapping) -> Table:
    """Open the only sheet of a workbook, or the one that the mapping names."""
    with _archive(path) as archive:
        names = set(archive.namelist())
        sheets, first_day = _sheets(archive, path)
        sheet = _choose(sheets, mapping.table, path)
        strings = _strings(archive, path) if "xl/sharedStrings.xml" in names else []
        formats = _formats(archive, path) if "xl/styles.xml" in names else []
    workbook = _Workbook(strings, formats, first_day)
    where = f"{path}, sheet {sheet.name!r}"
    _, header = next(_rows(path, sheet, workbook), (0, []))
    names_ = [name.strip() for name in header]
    return Table(names_, partial(refuse, where, None), partial(_read, path, sheet, workbook, names_, where))


def _read(
    path: Path, sheet: _Sheet, workbook: _Workbook, names: list[str], where: str, columns: Sequence[str]
) -> Iterator[Row]:
    places = [names.index(column) for column in columns]
    rows = _rows(path, sheet, workbook)
    next(rows, None)
    for number, cells in rows:
        values = [cells[place] if place < len(cells) else "" for place in places]
        yield Row(values, partial(refuse, where, number))


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise DataError(
            f"{path} is not an .xlsx workbook; if it is an old .xls or has a password, save it as .xlsx without one"
        ) from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def _sheets(archive: zipfile.ZipFile, path: Path) -> tuple[list[_Sheet], datetime]:
    """Return the visible sheets, and the day from which dates are counted."""
    targets: dict[str, str] = {}
    found: list[_Sheet] = []
    first_day = datetime(1899, 12, 30)  # correct for Excel's dates from March 1900 on

    def on_relation(name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship":
            targets[attributes.get("Id", "")] = attributes.get("Target", "")

    def on_workbook(name: str, attributes: dict[str, str]) -> None:
        nonlocal first_day
        if name == "workbookPr" and attributes.get("date1904") in ("1", "true"):
            first_day = datetime(1904, 1, 1)
        if name == "sheet" and attributes.get("state", "visible") == "visible":
            target = next((targets.get(value, "") for key, value in attributes.items() if key.endswith(":id")), "")
            file = target.lstrip("/") if target.startswith("/") else str(PurePosixPath("xl", target))
            found.append(_Sheet(attributes.get("name", ""), file))

    _parse(archive, "xl/_rels/workbook.xml.rels", path, start=on_relation)
    _parse(archive, "xl/workbook.xml", path, start=on_workbook)
    return found, first_day


def _choose(sheets: list[_Sheet], asked: str | None, path: Path) -> _Sheet:
    names = [sheet.name for sheet in sheets]
    shown = ", ".join(map(repr, names[:10]))
    if asked is not None:
        if asked not in names:
            raise DataError(f"{path} has no sheet {asked!r}; it has {shown}.{nearest(asked, names)}")
        return sheets[names.index(asked)]
    if len(sheets) != 1:
        raise DataError(f"{path} has {len(sheets)} sheets ({shown}); choose one with --table")
    return sheets[0]


def _strings(archive: zipfile.ZipFile, path: Path) -> list[str]:
    """Return the strings that cells refer to by number."""
    found: list[str] = []
    parts: list[str] = []
    inside: list[str] = []

    def on_start(name: str, attributes: dict[str, str]) -> None:
        inside.append(name)
        if name == "si":
            parts.clear()

    def on_end(name: str) -> None:
        inside.pop()
        if name == "si":
            found.append(_unescape("".join(parts)))

    def on_text(text: str) -> None:
        if inside and inside[-1] == "t" and "rPh" not in inside:  # rPh: pronunciation of Japanese text
            parts.append(text)

    _parse(archive, "xl/sharedStrings.xml", path, on_start, on_end, on_text)
    return found


def _formats(archive: zipfile.ZipFile, path: Path) -> list[str]:
    """Return the number format of each style."""
    custom: dict[int, str] = {}
    styles: list[int] = []
    inside: list[str] = []

    def on_start(name: str, attributes: dict[str, str]) -> None:
        inside.append(name)
        if name == "numFmt" and "numFmts" in inside:
            custom[_whole(attributes.get("numFmtId"))] = attributes.get("formatCode", "")
        elif name == "xf" and "cellXfs" in inside:
            styles.append(_whole(attributes.get("numFmtId")))

    _parse(archive, "xl/styles.xml", path, on_start, lambda name: inside.remove(name) if name in inside else None)
    return [custom.get(number, _FORMATS.get(number, "")) for number in styles]


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def _rows(path: Path, sheet: _Sheet, workbook: _Workbook) -> Iterator[tuple[int, list[str]]]:
    """Stream the non-empty rows of a sheet with their row numbers."""
    done: list[tuple[int, list[str]]] = []
    cells: list[str] = []
    parts: list[str] = []
    inside: list[str] = []
    cell: dict[str, str] = {}
    number = 0

    def on_start(name: str, attributes: dict[str, str]) -> None:
        nonlocal number, cell
        inside.append(name)
        if name == "row":
            number = _whole(attributes.get("r")) or number + 1
            cells.clear()
        elif name == "c":
            cell = attributes
            parts.clear()

    def on_end(name: str) -> None:
        inside.pop()
        if name == "c":
            place = _column(cell.get("r", ""))
            if place is not None:
                cells.extend([""] * (place - len(cells)))
            cells.append(_show("".join(parts), cell, workbook))
        elif name == "row" and any(text.strip() for text in cells):
            done.append((number, list(cells)))

    def on_text(text: str) -> None:
        if inside and (inside[-1] == "v" or (inside[-1] == "t" and "rPh" not in inside)):
            parts.append(text)

    with _archive(path) as archive:
        for _ in _feed(archive, sheet.file, path, on_start, on_end, on_text):
            yield from done
            done.clear()


def _column(reference: str) -> int | None:
    """Return the column index of a cell: "A7" → 0, "AB7" → 27; None if the file does not give it."""
    letters = re.match(r"[A-Z]{1,3}(?=\d)", reference)
    if letters is None:
        return None
    place = 0
    for letter in letters[0]:
        place = 26 * place + ord(letter) - ord("A") + 1
    return place - 1


def _show(text: str, cell: dict[str, str], workbook: _Workbook) -> str:
    """Return the text that a cell shows."""
    kind = cell.get("t", "n")
    if kind == "s":
        place = _whole(text)
        return workbook.strings[place] if place < len(workbook.strings) else ""
    if kind == "b":
        return "TRUE" if text == "1" else "FALSE"
    if kind != "n" or not text:
        return _unescape(text)
    style = _whole(cell.get("s"))
    return show_number(text, workbook.formats[style] if style < len(workbook.formats) else "", workbook.first_day)


def show_number(text: str, format: str, first_day: datetime = datetime(1899, 12, 30)) -> str:
    """Return a number as Excel shows it in this format; dates are written in ISO 8601."""
    try:
        value = float(text)
    except ValueError:
        return text
    code = _NOT_SHOWN.sub("", format.partition(";")[0])
    if re.search("[ymdhs]", code, re.IGNORECASE) and code.casefold() != "general":
        return _show_date(value, code.casefold(), first_day)
    pattern = re.fullmatch(r"\s*([#,]*)(0*)(?:\.([0#]+))?\s*(%?)\s*", code)
    if pattern is None or not code.strip():
        # Excel keeps 15 digits: 0.1 + 0.2 shows as 0.3
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.15g}"
    grouped, whole, decimals, percent = pattern.groups()
    shown = f"{abs(value) * (100 if percent else 1):{',' if ',' in grouped else ''}.{len(decimals or '')}f}"
    before, point, after = shown.partition(".")
    after = after[: (decimals or "").rfind("0") + 1] + after[(decimals or "").rfind("0") + 1 :].rstrip("0")
    return f"{'-' if value < 0 else ''}{before.zfill(len(whole))}{point if after else ''}{after}{percent}"


def _show_date(value: float, code: str, first_day: datetime) -> str:
    try:
        moment = first_day + timedelta(seconds=round(value * 86400))
    except OverflowError:
        return f"{value:.15g}"
    has_day, has_time = bool(re.search("[yd]", code)), bool(re.search("[hs]", code))
    if has_time:
        clock = moment.strftime("%H:%M:%S" if "s" in code else "%H:%M")
        return f"{moment.date().isoformat()} {clock}" if has_day else clock
    return moment.date().isoformat()


def _unescape(text: str) -> str:
    """Decode escapes such as `_x000D_`, which Excel writes for characters that XML does not allow."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _ignore(*_: object) -> None:
    pass


def _parse(
    archive: zipfile.ZipFile,
    name: str,
    path: Path,
    start: Callable[[str, dict[str, str]], None] = _ignore,
    end: Callable[[str], None] = _ignore,
    text: Callable[[str], None] = _ignore,
) -> None:
    for _ in _feed(archive, name, path, start, end, text):
        pass


def _feed(
    archive: zipfile.ZipFile,
    name: str,
    path: Path,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None],
) -> Iterator[None]:
    """Parse one XML file of the archive, chunk by chunk; names are passed without their namespace."""

    def on_doctype(*_: object) -> None:
        raise DataError(f"{path}: {name} declares a document type, which Excel never writes; save the file again")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    handlers: Any = parser
    handlers.StartDoctypeDeclHandler = on_doctype
    handlers.StartElementHandler = lambda tag, attributes: start(tag.rpartition(":")[2], attributes)
    handlers.EndElementHandler = lambda tag: end(tag.rpartition(":")[2])
    handlers.CharacterDataHandler = text
    try:
        facts = archive.getinfo(name)
        if facts.file_size > max(_MOST_UNPACKED, _MOST_RATIO * facts.compress_size):
            raise DataError(
                f"{path}: {name} unpacks to {facts.file_size:,} bytes, too many for its size; save it as .csv"
            )
        with archive.open(name) as file:
            while chunk := file.read(_CHUNK):
                parser.Parse(chunk, False)
                yield
            parser.Parse(b"", True)
            yield
    except KeyError:
        raise DataError(f"{path} is not an .xlsx workbook: it lacks {name}; save it again as .xlsx or .csv") from None
    except (
        expat.ExpatError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        NotImplementedError,  # raised by zipfile for an unknown compression
        RuntimeError,
    ) as error:
        raise DataError(f"cannot read {path}: {name} is damaged ({error}); save it again as .xlsx or .csv") from None
