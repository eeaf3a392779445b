"""RDF files → (subject, object) pairs of the predicates asked for. Knows no vocabularies; fetches nothing.

rdflib parses, but would keep every triple three times; here only those asked for are kept, once, so that a large file
needs little memory.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from xmtc.core.errors import DataError

Pairs = dict[str, list[tuple[Any, Any]]]  # predicate → rdflib's nodes


def read_pairs(path: Path, raw: bytes, format: str, predicates: Collection[str]) -> Pairs:
    """Parse a file's bytes; raise with the line of a mistake."""
    try:
        import rdflib
        from rdflib.plugins.stores.memory import SimpleMemory
    except ImportError:
        raise DataError(f"reading {path} needs rdflib; install it with: pip install 'xmtc[skos]'") from None

    class Chosen(SimpleMemory):
        """Keeps the pairs of the chosen predicates, and nothing else."""

        context_aware = True  # JSON-LD's parser asks for it

        def __init__(self) -> None:
            super().__init__()
            self.found: Pairs = defaultdict(list)

        def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
            subject, predicate, value = triple
            if str(predicate) in predicates:
                self.found[str(predicate)].append((subject, value))

    if format != "xml":  # which tells its own encoding
        _check_utf8(path, raw)
    if format == "json-ld":
        _check_contexts(path, raw)
    store = Chosen()
    try:
        with _quiet():
            rdflib.Graph(store=store).parse(data=raw, format=format)
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # rdflib's parsers raise whatever they stumble over
        line, reason = _place(error, raw, format)
        where = f", line {line}" if line else ""
        raise DataError(
            f"{path}{where}: not valid {_NAMES[format]} ({reason[:150]}); mend it, or export it again"
        ) from None
    return store.found


_NAMES = {"turtle": "Turtle", "xml": "RDF/XML", "nt": "N-Triples", "json-ld": "JSON-LD"}


def _check_utf8(path: Path, raw: bytes) -> None:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = raw[error.start]
        raise DataError(f"{path}, line {line}: byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8") from None


def _check_contexts(path: Path, raw: bytes) -> None:
    """Refuse a context that is a URL, which rdflib would fetch."""
    try:
        waiting = [json.loads(raw)]
    except (ValueError, RecursionError):
        return  # the parser tells what is wrong
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            contexts = value.get("@context")
            for context in contexts if isinstance(contexts, list) else [contexts]:
                if isinstance(context, str) or (isinstance(context, dict) and "@import" in context):
                    shown = context if isinstance(context, str) else context["@import"]
                    raise DataError(
                        f"{path}: its @context is at {str(shown)[:100]!r}, and nothing is fetched; "
                        "put the context itself into the file, or export the vocabulary as Turtle"
                    )
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _place(error: Exception, raw: bytes, format: str) -> tuple[int | None, str]:
    """The line of a mistake, where the parser knows it, and the reason."""
    reason = (
        " ".join(str(getattr(error, "_why", "") or getattr(error, "msg", "") or error).split()) or type(error).__name__
    )
    if hasattr(error, "getLineNumber"):  # expat's
        return error.getLineNumber(), str(error.getMessage())  # type: ignore[attr-defined]
    if isinstance(error, json.JSONDecodeError):
        return error.lineno, error.msg
    if isinstance(getattr(error, "lines", None), int):  # Turtle's, from 0
        return error.lines + 1, reason  # type: ignore[attr-defined]
    if format == "nt":  # does not know it
        return _wrong_triple(raw), reason
    return None, reason


def _wrong_triple(raw: bytes) -> int | None:
    """The first line that is no N-Triple."""
    from rdflib.exceptions import ParserError
    from rdflib.plugins.parsers.ntriples import W3CNTriplesParser

    for number, line in enumerate(raw.split(b"\n"), start=1):
        try:
            W3CNTriplesParser().parsestring(line)
        except ParserError:
            return number
    return None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep rdflib's remarks on odd URIs and dates, and on itself, from the terminal."""
    logger = logging.getLogger("rdflib")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
