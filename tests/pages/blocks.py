"""Code blocks of a Markdown page: what a test runs, what it writes to a file, and what it leaves out, with the reason.

The rules, for README and docs:

- A fenced block of language `bash` or `python` is run, in the order of the page, in a folder of the page's own.
- A block of language `text` directly after it is its output: `…` is any characters, numbers may differ a little.
- A block of another language after a line that is only "`name`:" is written to that file.
- A comment before a block keeps it from running here: `<!-- not run: reason -->` never, `<!-- slow -->` only with the
  marker slow, `<!-- tested by: tests/… -->` because that test runs it. At the top of a page it is for all its blocks.
- `<!-- setup: bash … -->` or `python` is run as well, and readers do not see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = ("bash", "python")

_FENCE = re.compile(r"^(?P<fence>```+)(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
_SETUP = re.compile(r"^<!-- setup: (?P<language>bash|python)\n(?P<code>.*?)^-->$", re.MULTILINE | re.DOTALL)
_EXEMPT = r"<!-- (?P<kind>not run|tested by|slow)(?:: (?P<reason>[^\n]+?))? -->"
_BEFORE = re.compile(_EXEMPT + r"\s*\Z")
_WHOLE = re.compile(r"\A(?:# [^\n]+\n\s*)?" + _EXEMPT)
_FILE = re.compile(r"^`(?P<name>[\w./-]+)`:\s*\Z", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A piece of code on a page."""

    line: int
    language: str
    code: str
    output: str | None = None  # what the page shows that it prints
    file: str | None = None  # where it is written, instead of run
    exempt: str = ""  # "not run", "tested by", "slow" or nothing
    reason: str = ""
    hidden: bool = False  # set-up, which readers do not see


def all_pages() -> list[Path]:
    """README and every page of docs, generated results aside: they have no code."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: str) -> list[Block]:
    """Return the blocks that matter, in the order of the page."""
    whole = _WHOLE.match(page)
    if whole and whole["kind"] == "tested by":
        return [Block(1, "", "", exempt="tested by", reason=whole["reason"])]
    return sorted([*_setups(page), *_fenced(page)], key=lambda block: block.line)


def _setups(page: str) -> Iterator[Block]:
    for found in _SETUP.finditer(page):
        yield Block(_line(page, found.start("code")), found["language"], found["code"], hidden=True)


def _fenced(page: str) -> Iterator[Block]:
    fences = list(_FENCE.finditer(_SETUP.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), page)))
    for found, following in zip_longest(fences, fences[1:]):
        before, line = page[: found.start()], _line(page, found.start("code"))
        if found["language"] not in RUN:
            if name := _FILE.search(before.rstrip()):
                yield Block(line, found["language"], found["code"], file=name["name"])
            continue
        output = None
        if following and following["language"] == "text" and not page[found.end() : following.start()].strip():
            output = following["code"]
        exempt = _BEFORE.search(before)
        kind, reason = (exempt["kind"], exempt["reason"] or "") if exempt else ("", "")
        yield Block(line, found["language"], found["code"], output, exempt=kind, reason=reason)


def _line(page: str, position: int) -> int:
    return page.count("\n", 0, position) + 1


def indented_commands(page: str) -> list[str]:
    """Return commands in indented blocks, which no test would run."""
    return re.findall(r"^    +((?:xmtc|pip|make|python -m) .+)$", _FENCE.sub("", _SETUP.sub("", page)), re.MULTILINE)


_NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")


def differs(shown: str, printed: str) -> str | None:
    """Return the first line of a page's output that the program did not print like this; None if there is none.

    Numbers may differ by 5 % or 0.02: other processors round otherwise. Spaces at the ends of lines do not count.
    """
    shown_lines, printed_lines = shown.strip().splitlines(), printed.strip().splitlines()
    at = 0
    for i, line in enumerate(shown_lines):
        if line.strip() == "…":  # any lines, up to the one that follows
            following = shown_lines[i + 1] if i + 1 < len(shown_lines) else None
            if following is None:
                return None
            while at < len(printed_lines) and not _same_line(following, printed_lines[at]):
                at += 1
            continue
        if at >= len(printed_lines) or not _same_line(line, printed_lines[at]):
            return line
        at += 1
    return None if at == len(printed_lines) else f"(nothing, but {printed_lines[at]!r} was printed)"


def _same_line(shown: str, printed: str) -> bool:
    pattern = "".join(
        ".*?" if part == "…" else r"[-+−]?\d[\d,]*(?:\.\d+)?" if _NUMBER.fullmatch(part) else re.escape(part)
        for part in re.split(rf"(…|{_NUMBER.pattern})", " ".join(shown.split()))
    )
    printed = " ".join(printed.split())
    if not re.fullmatch(pattern, printed):
        return False
    if "…" in shown:
        return True
    return all(_near(a, b) for a, b in zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True))


def _near(shown: str, printed: str) -> bool:
    a, b = (float(text.replace(",", "").replace("−", "-")) for text in (shown, printed))
    return abs(a - b) <= max(0.02, 0.05 * abs(a))
