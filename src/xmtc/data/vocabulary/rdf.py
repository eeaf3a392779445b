"""Read the (subject, object) pairs of the requested predicates from RDF files. Fetches nothing from the network.

pyoxigraph parses and yields one triple at a time; only requested ones are kept, so that a large file needs little
memory. `rdf_checks` first rejects files that would crash the parser.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from xmtc.core.errors import DataError
from xmtc.data.vocabulary.rdf_checks import check_json, check_quoted_triples, check_utf8, check_xml, decode_xml

_NAMES = {"turtle": "Turtle", "xml": "RDF/XML", "nt": "N-Triples", "json-ld": "JSON-LD"}
_PLACE = re.compile(r"^Parser error at [^:]*: |\(line \d+\)$")  # the place in the parser's message, without the reason


class Literal(NamedTuple):
    """A text and its language tag in lower case, or "" without one."""

    text: str
    language: str


Pairs = dict[str, list[tuple[str, str | Literal]]]  # predicate → (subject, object); a blank node begins with "_:"


def is_uri(node: str | Literal) -> bool:
    """Return whether a node is a URI: neither a literal nor blank."""
    return isinstance(node, str) and not node.startswith("_:")


def read_pairs(path: Path, raw: bytes, format: str, predicates: Collection[str]) -> Pairs:
    """Parse a file's bytes; errors give the line."""
    try:
        import pyoxigraph as ox
    except ImportError:
        raise DataError(f"reading {path} needs pyoxigraph; install it with: pip install 'xmtc[skos]'") from None

    if format == "xml":
        raw = decode_xml(path, raw)
        check_xml(path, raw)
    else:
        check_utf8(path, raw)
    if format == "json-ld":
        check_json(path, raw)
    elif format != "xml":
        check_quoted_triples(path, raw)
    formats = {
        "turtle": ox.RdfFormat.TURTLE,
        "xml": ox.RdfFormat.RDF_XML,
        "nt": ox.RdfFormat.N_TRIPLES,
        "json-ld": ox.RdfFormat.JSON_LD,
    }
    found: Pairs = defaultdict(list)
    nodes: dict[str, str] = {}  # store each URI once: a concept is in many triples, as subject or parent
    try:
        for triple in ox.parse(raw, formats[format], lenient=True):  # invalid URIs are kept unchanged
            predicate = triple.predicate.value
            if predicate not in predicates:
                continue
            start, end = triple.subject, triple.object
            subject = start.value if isinstance(start, ox.NamedNode) else str(start)
            if isinstance(end, ox.Literal):
                literal = Literal(end.value, (end.language or "").lower())
                found[predicate].append((nodes.setdefault(subject, subject), literal))
            else:
                value = end.value if isinstance(end, ox.NamedNode) else str(end)
                found[predicate].append((nodes.setdefault(subject, subject), nodes.setdefault(value, value)))
    except (SyntaxError, ValueError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        reason = " ".join(_PLACE.sub("", error.msg if isinstance(error, SyntaxError) else str(error)).split())
        where = f", line {line}" if line else ""
        raise DataError(
            f"{path}{where}: not valid {_NAMES[format]} ({reason[:150]}); correct it, or export it again"
        ) from None
    return found
