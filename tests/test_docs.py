"""What sources say of the docs, and what the docs say of the sources, exists.

Sources refer to a page as `docs/DATA.md`, to a section of it as `docs/CONVENTIONS.md, "Metrics"`. Pages name files and
folders by their path under src/xmtc, or from the root of the repository (tests/, benchmarks/, docs/, src/). A file of a
worked example does not exist; its page introduces it as "New file `path`:".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "xmtc"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SOURCES = sorted(path for room in ("src", "tests", "benchmarks") for path in (ROOT / room).rglob("*.py"))
FROM_ROOT = {"scripts", "src", "tests", "benchmarks", "docs"}
CONVENTIONS = [
    "Formats",
    "TF-IDF",
    "Label vectors",
    "Pooling",
    "Clustering",
    "Solver",
    "Score combination",
    "Metrics",
    "Calibration",
]

_PAGE = re.compile(r'\b(docs/(?:[\w-]+/)*[\w-]+\.md)(?:,(?:\s|#)+"([^"]+)")?')
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?<![\w./*-])((?:[\w*-]+/)+[\w*-]+\.py)\b")
_NEW = re.compile(r"^New file `([^`]+)`:$", re.MULTILINE)
_QUOTED = re.compile(r"`([^`\s]+)`")


def headings(page: str) -> set[str]:
    """Titles of a page's sections; lines of code that begin with # are none."""
    return set(_HEADING.findall(_FENCED.sub("", page)))


def stale_references(text: str) -> Iterator[str]:
    """References to pages and sections that do not exist."""
    for page, section in _PAGE.findall(text):
        if not (ROOT / page).is_file():
            yield page
        elif section and section not in headings((ROOT / page).read_text(encoding="utf-8")):
            yield f"{page}, {section!r}"


def stale_paths(page: str) -> Iterator[str]:
    """Files and folders of the sources that a page names and that do not exist; * stands for any part of a name."""
    quoted = _QUOTED.findall(page)
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()} | FROM_ROOT
    folders = [word for word in quoted if re.fullmatch(r"(?:[\w-]+/)+", word) and word.split("/")[0] in rooms]
    for path in sorted({*_FILE.findall(page), *folders} - set(_NEW.findall(page))):
        start = ROOT if path.split("/")[0] in FROM_ROOT else PACKAGE
        if not any(start.glob(path.rstrip("/"))):
            yield path
    for name in sorted({word for word in quoted if re.fullmatch(r"\w+\.py", word)}):
        if not any(source.name == name for source in SOURCES):
            yield name


@cache
def definitions() -> dict[str, str]:
    """Class or function → the source of all that have this name."""
    found: dict[str, str] = {}
    for source in PACKAGE.rglob("*.py"):
        text = source.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                body = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                found[node.name] = f"{found.get(node.name, '')}\n{body}"
    return found


def stale_names(page: str) -> Iterator[str]:
    """Functions, classes and members of classes that the last column of a page's "Code" tables names in vain."""
    for table in re.findall(r"^\|[^\n]*\| Code \|\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE):
        for row in table.splitlines():
            for name in _QUOTED.findall(row.rstrip("| ").rpartition(" | ")[2]):
                if re.fullmatch(r"\w+|[A-Z]\w+\.\w+", name):  # not a path, nor a function by its module
                    owner, _, member = name.rpartition(".")
                    source = definitions().get(owner or member, "")
                    if not re.search(rf"\b(?:def |class |self\.){member}\b|^ +{member}:", source, re.MULTILINE):
                        yield name


def test_references_to_docs_lead_somewhere() -> None:
    found = [
        f"{source.relative_to(ROOT)}: {reference}"
        for source in SOURCES
        if source != Path(__file__)  # its own examples are stale
        for reference in stale_references(source.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_paths_in_docs_exist(page: Path) -> None:
    assert list(stale_paths(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_in_docs_exist(page: Path) -> None:
    assert list(stale_names(page.read_text(encoding="utf-8"))) == []


def test_conventions_have_their_sections() -> None:
    page = (ROOT / "docs" / "CONVENTIONS.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == CONVENTIONS


def test_a_stale_reference_is_found() -> None:
    text = '(docs/DATA.md), docs/NONE.md; docs/CONVENTIONS.md, "Metrics"; docs/CONVENTIONS.md,\n    # "Weather"'
    assert list(stale_references(text)) == ["docs/NONE.md", "docs/CONVENTIONS.md, 'Weather'"]


def test_a_stale_path_is_found() -> None:
    page = (
        "`core/labels.py`, `core/none_*.py`, tests/test_docs.py, tests/test_none.py, `linear/fast`, `core/`, `data/x/`"
    )
    assert list(stale_paths(page)) == ["core/none_*.py", "data/x/", "tests/test_none.py"]
    assert list(stale_paths("`labels.py` and `stickers.py`")) == ["stickers.py"]
    assert list(stale_paths("New file `src/xmtc/a.py`:\n\nNew file `src/xmtc/b.py`, src/xmtc/b.py")) == [
        "src/xmtc/b.py"
    ]


def test_a_stale_name_is_found() -> None:
    table = (
        "| Step | Code |\n|---|---|\n| a | `fit`, `no_such` |\n| b `c` | `Corpus.take`, `Corpus.give`, `core/x.py` |\n"
    )
    assert list(stale_names(table)) == ["no_such", "Corpus.give"]
