"""Assemble the pages of the documentation site: python -m docs.site FOLDER.

Copies docs/, the changelog and the project's pages, and writes what is generated: the reference of Python, command line
and settings, and the notebooks as pages. mkdocs then builds the site from FOLDER. Run it with the project's own Python,
with all extras: settings are read from the methods themselves.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from docs.site import commands, notebooks, python_api, settings

ROOT = Path(__file__).parents[2]
PROJECT = ("CONTRIBUTING.md", "RELEASING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")  # at the root
RESULTS = "benchmarks/results"  # JSON that the figures link to
SOURCES = ("docs", "README.md", "CHANGELOG.md", *PROJECT)

_COMMENT = re.compile(r"^<!--.*?-->\n\n?", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
_DEFINED = re.compile(r"^(\[\d+\]: )([^\s#]+)()$", re.MULTILINE)  # the results that a page of figures refers to


def assemble(out: Path) -> None:
    """Write all pages into `out`, which is emptied first."""
    shutil.rmtree(out, ignore_errors=True)
    docs = ROOT / "docs"
    for source in sorted(docs.rglob("*")):
        place = source.relative_to(docs)
        if source.is_dir() or place.parts[0] in ("site", "notebooks") or place.name == "requirements.txt":
            continue
        target = out / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            _write(target, source.read_text(encoding="utf-8"), out, source)
        else:
            shutil.copyfile(source, target)
    for source in sorted((ROOT / RESULTS).rglob("*.json")):
        target = out / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    _write(out / "changelog.md", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), out, ROOT / "CHANGELOG.md")
    for name in PROJECT:
        if (ROOT / name).is_file():
            page = (ROOT / name).read_text(encoding="utf-8")
            _write(out / "project" / name.lower().replace("_", "-"), page, out, ROOT / name)
    pages = {
        "reference/python.md": python_api.page(),
        "reference/commands.md": commands.page(),
        "reference/settings.md": settings.page(),
    }
    for notebook in sorted((docs / "notebooks").glob("*.ipynb")):
        pages[f"notebooks/{notebook.stem}.md"] = notebooks.page(notebook)
    for name, page in pages.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(page, encoding="utf-8")


def _write(target: Path, page: str, out: Path, source: Path) -> None:
    """Write a page without its comments, its links pointing into the site."""
    target.parent.mkdir(parents=True, exist_ok=True)

    def relink(found: re.Match[str]) -> str:
        if re.match(r"[a-z]+:", found[2]):
            return found[0]
        linked = (source.parent / found[2]).resolve()
        inside = linked.relative_to(ROOT).as_posix() if linked.is_relative_to(ROOT) else found[2]
        place = _place(inside)
        if place is None:  # a file of the sources: named, not linked
            return f"{found[1]}#{found[3]}" if not linked.exists() else found[0]
        depth = len(target.relative_to(out).parts) - 1
        return f"{found[1]}{'../' * depth}{place}{found[3]}"

    linked = _LINK.sub(relink, _COMMENT.sub("", page))
    target.write_text(_DEFINED.sub(relink, linked), encoding="utf-8")


def _place(inside: str) -> str | None:
    """Where a file of the repository is in the site; None for one that is not there."""
    if inside == "CHANGELOG.md":
        return "changelog.md"
    if inside == "README.md":
        return "index.md"
    if inside in PROJECT:
        return f"project/{inside.lower().replace('_', '-')}"
    if inside.startswith("docs/notebooks/") and inside.endswith(".ipynb"):
        return f"{inside.removeprefix('docs/').removesuffix('.ipynb')}.md"
    if inside.startswith(f"{RESULTS}/"):
        return inside
    return inside.removeprefix("docs/") if inside.startswith("docs/") else None


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))
