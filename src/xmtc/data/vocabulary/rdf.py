"""RDF files → (subject, object) pairs of the predicates asked for. Knows no vocabularies; fetches nothing.

pyoxigraph parses, and hands over one triple at a time; only those asked for are kept, so that a large file needs little
memory. `rdf_checks` refuses before what the parser would not survive.
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
_PLACE = re.compile(r"^Parser error at [^:]*: |\(line \d+\)$")  # of the parser's message; told apart from the reason


class Literal(NamedTuple):
    """A text, and the tag of its language in lower case, "" if it has none."""

    text: str
    language: str


Pairs = dict[str, list[tuple[str, str | Literal]]]  # predicate → (subject, object); a blank node begins with "_:"


def is_uri(node: str | Literal) -> bool:
    """Return whether a node is a URI: neither a literal nor blank."""
    return isinstance(node, str) and not node.startswith("_:")


def read_pairs(path: Path, raw: bytes, format: str, predicates: Collection[str]) -> Pairs:
    """Parse a file's bytes; raise with the line of a mistake."""
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
    nodes: dict[str, str] = {}  # each URI once: concepts are subjects of many triples, and parents of others
    try:
        for triple in ox.parse(raw, formats[format], lenient=True):  # odd URIs are kept as they are
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
