"""Reject RDF files that would exhaust memory, crash the parser or make it fetch something.

Files are untrusted. XML entities may expand to any size, deep nesting overflows a parser's stack or takes quadratic
time, and a JSON-LD context may be a URL. Real vocabularies stay far below these limits.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from xml.parsers import expat

from xmtc.core.errors import DataError

XML_DEPTH = 1000  # nested elements
JSON_DEPTH = 500  # nested objects and lists
QUOTED_DEPTH = 100  # nested triples
ENTITY_LENGTH = 10_000  # characters of an expanded XML entity
EXPANSION = 10  # all entities together may add this many times the file's size, plus a megabyte

_REFERENCE = re.compile(r"&([^;&#\s]{1,100});")
_DECLARATION = re.compile(r"^\s*<\?xml\b(.*?)\?>", re.DOTALL)
_ENCODING = re.compile(r"""encoding\s*=\s*["']([\w.:-]+)["']""")
# encodings that are character tables; others in Python, such as punycode, take quadratic time
_ENCODINGS = re.compile(r"ascii|utf-(8|16|32).*|iso8859.*|cp\d+|koi8.*|mac.*|gb.*|big5.*|euc.*|shift.*")


def check_utf8(path: Path, raw: bytes) -> None:
    """Raise if a file is not UTF-8; the error gives the line of the first invalid byte."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = raw[error.start]
        raise DataError(f"{path}, line {line}: byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8") from None


def decode_xml(path: Path, raw: bytes) -> bytes:
    """Convert an XML file from its declared encoding to UTF-8."""
    if raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        encoding = "utf-16"
        raw = raw[: len(raw) // 2 * 2]  # the line reader may have added half a line feed
    else:
        declared = _DECLARATION.match(raw[:1000].decode("latin-1"))
        named = _ENCODING.search(declared[1]) if declared else None
        encoding = named[1] if named else "utf-8"
    try:
        known = codecs.lookup(encoding).name
    except LookupError:
        known = ""
    if not _ENCODINGS.fullmatch(known):
        raise DataError(f"{path} declares the unknown encoding {encoding!r}; convert the file to UTF-8")
    if known == "utf-8":
        check_utf8(path, raw)
        return raw
    try:
        text = raw.decode(known)
    except UnicodeDecodeError:
        raise DataError(f"{path} is not in the encoding that it declares, {encoding}; convert it to UTF-8") from None
    return _DECLARATION.sub(lambda found: "\n" * found[0].count("\n"), text, count=1).encode("utf-8", "replace")


def check_xml(path: Path, raw: bytes) -> None:
    """Raise if XML is not well-formed, nests too deeply, or has entities that are too long or stored elsewhere."""
    depth = 0
    lengths: dict[str, int] = {}  # entity → number of characters when expanded

    def open_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > XML_DEPTH:
            raise _too_deep(path, "elements", XML_DEPTH, parser.CurrentLineNumber)

    def close_element(name: str) -> None:
        nonlocal depth
        depth -= 1

    def declare(name: str, is_parameter: bool, value: str | None, *elsewhere: str | None) -> None:
        if is_parameter or value is None:
            raise DataError(
                f"{path}, line {parser.CurrentLineNumber}: entity {name[:50]!r} is a parameter or stored elsewhere, "
                "and nothing is fetched; write its text into the file"
            )
        inner = _REFERENCE.findall(value)
        length = len(value) + sum(lengths.get(other, 0) for other in inner)
        if length > ENTITY_LENGTH:
            raise DataError(
                f"{path}, line {parser.CurrentLineNumber}: entity {name[:50]!r} expands to {length:,} characters, more "
                f"than {ENTITY_LENGTH:,}; write the text itself"
            )
        lengths.setdefault(name, length)

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = open_element
    parser.EndElementHandler = close_element
    parser.EntityDeclHandler = declare
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise DataError(
            f"{path}, line {error.lineno}: not valid RDF/XML ({reason}); correct it, or export it again"
        ) from None
    if lengths:
        used = Counter(found[1].decode() for found in re.finditer(rb"&([^;&#\s]{1,100});", raw))
        added = sum(used[name] * length for name, length in lengths.items())
        if added > EXPANSION * len(raw) + (1 << 20):
            raise DataError(f"{path}: its entities expand to {added:,} characters; write the texts themselves")


def check_json(path: Path, raw: bytes) -> None:
    """Raise if JSON-LD is not valid JSON, nests too deeply, or has a context to fetch."""
    try:
        waiting: list[tuple[Any, int]] = [(json.loads(raw), 1)]
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}, line {error.lineno}: not valid JSON-LD ({error.msg}); correct it, or export it again"
        ) from None
    except RecursionError:
        raise _too_deep(path, "objects and lists", JSON_DEPTH) from None
    except ValueError as error:  # such as a number of 5,000 digits
        raise DataError(f"{path}: not valid JSON-LD ({error}); correct it, or export it again") from None
    while waiting:
        value, depth = waiting.pop()
        if depth > JSON_DEPTH:
            raise _too_deep(path, "objects and lists", JSON_DEPTH)
        if isinstance(value, dict):
            _check_context(path, value.get("@context"))
            waiting += [(inner, depth + 1) for inner in value.values() if isinstance(inner, dict | list)]
        elif isinstance(value, list):
            waiting += [(inner, depth + 1) for inner in value if isinstance(inner, dict | list)]


def _check_context(path: Path, context: Any) -> None:
    """Raise for a context that is or imports a URL, at any depth of nested lists."""
    waiting = [context]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
            continue
        address = value.get("@import") if isinstance(value, dict) else value
        if isinstance(address, str):
            raise DataError(
                f"{path}: its @context is at {address[:100]!r}, and nothing is fetched; "
                "put the context itself into the file, or export the vocabulary as Turtle"
            )


def check_quoted_triples(path: Path, raw: bytes) -> None:
    """Raise if quoted triples nest too deeply, which would overflow the parser's stack."""
    if raw.count(b"<<") <= QUOTED_DEPTH:
        return
    depth = 0
    for found in re.finditer(rb"<<|>>|\.\s*\n", raw):
        if found[0] == b"<<":
            depth += 1
        else:
            depth = max(0, depth - 1) if found[0] == b">>" else 0  # a full stop at the end of a line ends the statement
        if depth > QUOTED_DEPTH:
            raise _too_deep(path, "quoted triples", QUOTED_DEPTH, raw.count(b"\n", 0, found.start()) + 1)


def _too_deep(path: Path, what: str, limit: int, line: int | None = None) -> DataError:
    where = f", line {line}" if line else ""
    return DataError(f"{path}{where}: {what} nest deeper than {limit}; this is not a usable vocabulary")
