"""Read concepts from SKOS vocabularies. Independent of documents.

Formats are Turtle (.ttl), RDF/XML (.rdf), N-Triples (.nt) and JSON-LD (.jsonld), optionally packed as .gz. A concept's
id is its URI and prefLabel its name; altLabel gives alternatives, definition or else scopeNote the description, broader
and the inverse of narrower the parents; SKOS-XL labels count like plain ones. A link that closes a cycle of parents is
dropped and counted in a warning.

Names are in the requested language; by default in English if any concept has an English name, else in the language that
names most concepts. A concept without such a name gets one without language, else the first of another language. In a
vocabulary of several languages, every concept keeps its name in each of them.

The result is cached by content and language.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core.cache import cached, key_of
from xmtc.core.errors import DataError, nearest
from xmtc.core.labels import Concept
from xmtc.core.languages import language_tag
from xmtc.data.files import read_bytes, suffix
from xmtc.data.vocabulary.concepts import Described
from xmtc.data.vocabulary.rdf import Literal, Pairs, is_uri, read_pairs

FORMATS = {".ttl": "turtle", ".rdf": "xml", ".nt": "nt", ".jsonld": "json-ld"}
_VERSION = "skos 2"  # version of the cached format
_SKOS, _XL = "http://www.w3.org/2004/02/skos/core#", "http://www.w3.org/2008/05/skos-xl#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
_LINKS = {f"{_SKOS}broader", f"{_SKOS}narrower", f"{_SKOS}notation", f"{_RDF}type", f"{_RDF}value", _DEPRECATED}
_WORDS = {f"{_SKOS}{name}" for name in ("prefLabel", "altLabel", "definition", "scopeNote")}
_XL_WORDS = {f"{_XL}{name}" for name in ("prefLabel", "altLabel", "literalForm")}

Texts = dict[str, list[tuple[str, str]]]  # concept → (language, text)


def read_skos(path: Path, language: str | None = None) -> Described:
    """Read a vocabulary with names in `language`, a tag such as "de"; raise if no concept has a name in it."""
    raw = read_bytes(path)
    key = key_of([_VERSION, suffix(path), language or "", raw])
    kept = cached("skos", key, ["concepts"], lambda: {"concepts": _pack(path, raw, language)})
    lines = (json.loads(line) for line in kept["concepts"].tobytes().splitlines())
    circles = next(lines)
    concepts, notations, retired = [], {}, []
    for uri, name, alternatives, description, parents, notation, is_retired, translations in lines:
        names = tuple(translations.items())
        concepts.append(Concept(uri, name, tuple(alternatives), description, tuple(parents), names))
        if notation:
            notations[uri] = notation
        if is_retired:
            retired.append(uri)
    known = {concept.id for concept in concepts}
    named = {parent for concept in concepts for parent in concept.parents}
    codes = (_unique(notations), _unique({uri: re.split("[/#]", uri)[-1] or uri for uri in known}))
    return Described(concepts, len(named - known), circles, codes, retired)


def _unique(codes: Mapping[str, str]) -> dict[str, str]:
    """Return the codes that only one concept has."""
    counts = Counter(codes.values())
    return {uri: code for uri, code in codes.items() if counts[code] == 1}


def _pack(path: Path, raw: bytes, language: str | None) -> NDArray[np.uint8]:
    """Parse a vocabulary into JSON lines: first the number of dropped links, then one concept per line."""
    pairs = read_pairs(path, raw, FORMATS[suffix(path)], _LINKS | _WORDS | _XL_WORDS)
    uris = sorted(_concepts(pairs))
    if not uris:
        raise DataError(f"{path} holds no skos:Concept; give a SKOS vocabulary, or move the file elsewhere")
    names, alternatives = _texts(pairs, "prefLabel"), _texts(pairs, "altLabel")
    definitions, notes = _texts(pairs, "definition"), _texts(pairs, "scopeNote")
    wanted = _choose_language(path, (names[uri] for uri in uris if uri in names), language)
    retired = {s for s, o in pairs[_DEPRECATED] if isinstance(o, Literal) and o.text.lower() in ("true", "1")}
    parents = {uri: sorted(found) for uri, found in _parents(pairs, set(uris), retired).items()}
    noted = [(s, o.text) for s, o in pairs[f"{_SKOS}notation"] if isinstance(o, Literal)]
    notations = dict(sorted(noted, reverse=True))  # if there are several, the first in sort order
    several = len({tag for uri in uris for tag, _ in names.get(uri, ()) if tag}) > 1
    lines: list[Any] = [_break_circles(parents)]
    for uri in uris:
        name = min(names.get(uri, [("", "")]), key=lambda text: _rank(text, wanted))[1]
        others = sorted(
            {text[1] for text in alternatives.get(uri, ()) if _rank(text, wanted)[0] < _FOREIGN} - {name, ""}
        )
        told = [text for text in (definitions.get(uri) or notes.get(uri) or ()) if _rank(text, wanted)[0] < _FOREIGN]
        description = min(told, key=lambda text: _rank(text, wanted))[1] if told else ""
        translations = _translations(names.get(uri, ())) if several else {}
        described = [uri, name, others, description, parents.get(uri, []), notations.get(uri, ""), uri in retired]
        lines.append([*described, translations])
    packed = "\n".join(map(json.JSONEncoder(ensure_ascii=False).encode, lines))
    return np.frombuffer(packed.encode("utf-8", "replace"), dtype=np.uint8)


def _translations(names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return language → name, sorted by language; of several names in one language, the first in sort order."""
    first = dict(sorted((text for text in names if all(text)), reverse=True))
    return dict(sorted(first.items()))


def _concepts(pairs: Pairs) -> set[str]:
    """Return the URIs of the concepts: nodes of type Concept, or, in a file without types, nodes with a name."""
    typed = {s for s, o in pairs[f"{_RDF}type"] if o == f"{_SKOS}Concept" and is_uri(s)}
    other = {s for s, _ in pairs[f"{_RDF}type"]}
    return typed or {s for s, _ in pairs[f"{_SKOS}prefLabel"] if is_uri(s) and s not in other}


def _texts(pairs: Pairs, name: str) -> Texts:
    """Return the literals of each concept; if a node replaces a literal, as in SKOS-XL, that node's literals."""
    inner: dict[str, list[Literal]] = defaultdict(list)
    for node, value in (*pairs[f"{_RDF}value"], *pairs[f"{_XL}literalForm"]):
        if isinstance(value, Literal):
            inner[node].append(value)
    found: Texts = defaultdict(list)
    for subject, value in (*pairs[f"{_SKOS}{name}"], *pairs[f"{_XL}{name}"]):
        for literal in [value] if isinstance(value, Literal) else inner[value]:
            found[subject].append((literal.language, " ".join(literal.text.split())))
    return found


_EXACT, _REGIONAL, _PLAIN, _FOREIGN = range(4)


def _rank(text: tuple[str, str], wanted: str) -> tuple[int, str, str]:
    """Return a sort key for how well a text's language fits, best first."""
    tag = text[0]
    if tag == wanted:
        return _EXACT, *text
    if wanted and tag.startswith(f"{wanted}-"):
        return _REGIONAL, *text
    return (_FOREIGN if tag else _PLAIN), *text


def _choose_language(path: Path, names: Iterable[list[tuple[str, str]]], asked: str | None) -> str:
    counts = Counter(
        tag for texts in names for tag in {tag.partition("-")[0] for tag, _ in texts} | {t for t, _ in texts}
    )
    if asked is not None:
        asked = asked.lower() if asked.lower() in counts else language_tag(asked)
        if asked not in counts:
            tags = sorted(filter(None, counts))
            there = f"it has {', '.join(tags[:30])}" if tags else "its names have no language"
            raise DataError(f"{path} names nothing in {asked!r}; {there}.{nearest(asked, tags)}")
        return asked
    if "en" in counts:
        return "en"
    return min(counts, key=lambda tag: (-counts[tag], tag), default="")


def _parents(pairs: Pairs, concepts: set[str], retired: set[str]) -> dict[str, set[str]]:
    """Return the parents of each concept, without retired parents and parents that are not URIs."""
    found: dict[str, set[str]] = defaultdict(set)
    upwards = ((s, o) for s, o in pairs[f"{_SKOS}broader"])
    reversed_ = ((o, s) for s, o in pairs[f"{_SKOS}narrower"])
    for child, parent in (*upwards, *reversed_):
        if child in concepts and isinstance(parent, str) and is_uri(parent) and parent not in retired:
            found[str(child)].add(parent)
    return found


def _break_circles(parents: dict[str, list[str]]) -> int:
    """Remove the links that close a cycle, in place; return their number."""
    removed = 0
    done: set[str] = set()
    for start in sorted(parents):
        if start in done:
            continue
        path = {start}
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(list(parents[start])))]
        while stack:
            child, rest = stack[-1]
            parent = next(rest, None)
            if parent is None:
                stack.pop()
                path.discard(child)
                done.add(child)
            elif parent in path:
                parents[child].remove(parent)
                removed += 1
            elif parent not in done and parent in parents:
                path.add(parent)
                stack.append((parent, iter(list(parents[parent]))))
    return removed
