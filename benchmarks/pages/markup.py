"""From parts of a page to its text: links to results, a mark at figures of older code, lines of readable length."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.framework.results import read_result
from benchmarks.framework.sources import is_current

GENERATED = "<!-- Written by `python -m benchmarks.tables` from benchmarks/results. Do not edit. -->"
LONGEST = 200  # characters of a line
MARK = "†"
_WIDTH = 116
_RESULTS = "../../benchmarks/results"  # from docs/results
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(result:([^)]+)\)")
_FOOTNOTE = f"{MARK} Measured on code that has changed since, or before results recorded a hash of their code."


def finish(parts: Sequence[str], others: Sequence[str] = ()) -> str:
    """Return the text of a page: parts are headings, tables, lists and paragraphs; `others` follow the footnote."""
    head, *rest = parts
    numbers: dict[str, int] = {}
    blocks = [_block(_linked(part, numbers)) for part in [head, GENERATED, *filter(None, rest)]]
    if any(MARK in block for block in blocks):
        blocks.append(_FOOTNOTE)
    blocks += [_block(part) for part in others]
    files = [f"[{number}]: {_RESULTS}/{file}.json" for file, number in numbers.items()]
    return "\n\n".join([*blocks, *(["\n".join(files)] if files else [])]) + "\n"


def older_places(parts: Sequence[str]) -> list[str]:
    """Return the results that parts of a page link to and that measured other code than today's."""
    return sorted({place for part in parts for _, place in _LINK.findall(part) if is_older(place)})


def is_older(place: str) -> bool:
    """Say whether a result, or after a # one part of it, measured other code than today's.

    An ensemble of stored rankings is as old as its members.
    """
    file, _, part = place.partition("#")
    result = read_result(file)
    if result is None:
        raise ValueError(f"a page links to results/{file}.json, which does not exist")
    kind, _, rest = file.partition("/")
    members = result["members"] if kind in ("ensembles", "learned") else {}
    name = rest.partition("/")[0]
    return any(is_older(f"train/{name}/{member}") for member in members) or not all(
        is_current(facts) for facts in _facts(result, part or None)
    )


def _facts(found: Any, part: str | None) -> Iterator[dict[str, Any]]:
    """All facts inside a result; of a part, those inside the value of that name."""
    if not isinstance(found, dict):
        return
    for key, value in found.items():
        if key == "facts" and part is None:
            yield value
        else:
            yield from _facts(value, None if key == part else part)


def _linked(part: str, numbers: dict[str, int]) -> str:
    """The part with numbered links, to be defined at the end of the page, so that rows stay short."""

    def link(match: re.Match[str]) -> str:
        title, place = match[1], match[2]
        number = numbers.setdefault(place.partition("#")[0], len(numbers) + 1)
        return f"[{title}][{number}]{MARK if is_older(place) else ''}"

    return _LINK.sub(link, part)


def _block(part: str) -> str:
    """A part with its lines wrapped; tables, headings and HTML stay as they are."""
    if part[0] in "|#<!" or part.startswith("    "):
        return part
    if part.startswith("- "):
        return "\n".join(_wrapped(line, "  ") for line in part.splitlines())
    return _wrapped(part, "")


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
