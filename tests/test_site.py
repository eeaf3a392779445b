"""The documentation site: generated pages are complete, its navigation expands, and no other host is loaded."""

from __future__ import annotations

import re
from pathlib import Path

import xmtc
from docs.site import commands, nav, notebooks, python_api, settings
from docs.site.__main__ import assemble
from docs.site.hosts import check, loads
from tests.pages.test_pages import GENERATED
from xmtc.catalogue import METHODS, open_method

ROOT = Path(__file__).parents[1]


def test_every_setting_is_described() -> None:
    missing = [
        f"{name}: {path}"
        for name in METHODS
        for path, field in settings.fields(open_method(name).Config)
        if not field.description
    ]
    assert missing == []


def test_settings_page() -> None:
    page = settings.page()
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == list(METHODS)
    assert "| `solver.C` **·** | number, > 0 | `0.85` | Weight of the loss relative to the regulariser |" in page
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)


def test_commands_page() -> None:
    page = commands.page()
    assert {"## xmtc train", "## xmtc predict", "## xmtc data pydocs"} <= set(page.splitlines())
    assert not re.search(r"\{\w+\}", page)  # names that the command line fills in
    assert "| `--seed` | Random seed. The same seed gives the same result. | `0` |" in page


def test_python_page() -> None:
    page = python_api.page()
    assert all(f"### xmtc.{name}\n" in page for name in xmtc.__all__)
    assert page.count("```") % 2 == 0
    assert ">>> model = xmtc.train(" in page


def test_notebook_page() -> None:
    page = notebooks.page(ROOT / "docs" / "notebooks" / "own-texts.ipynb")
    assert page.startswith("# Your own texts in a notebook\n")
    assert '<div class="notebook-output">' in page
    assert "rgba(0, 160, 80" in page


def test_assembled_pages(tmp_path: Path) -> None:
    assemble(tmp_path)
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}
    assert made >= GENERATED | {"index.md", "notebooks/own-texts.md", "project/security.md"}
    assert not any("<!-- setup" in (tmp_path / page).read_text(encoding="utf-8") for page in made)
    assert "](SERVING.md)" in (tmp_path / "changelog.md").read_text(encoding="utf-8")
    figures = [path.read_text(encoding="utf-8") for path in (tmp_path / "results").glob("*.md")]
    results = {place for page in figures for place in re.findall(r"^\[\d+\]: (\S+)$", page, re.MULTILINE)}
    assert results
    assert [place for place in results if not (tmp_path / "results" / place).is_file()] == []


def test_patterns_of_the_navigation(tmp_path: Path) -> None:
    for name in ("b.md", "index.md", "a.md"):
        (tmp_path / "part").mkdir(exist_ok=True)
        (tmp_path / "part" / name).touch()
    found = nav.on_config({"nav": ["x.md", {"Part": ["part/*.md", "none/*.md"]}], "docs_dir": str(tmp_path)})["nav"]
    assert found == ["x.md", {"Part": ["part/index.md", "part/a.md", "part/b.md"]}]


def test_loads_from_other_hosts_are_found(tmp_path: Path) -> None:
    assert loads("a.html", '<script src="https://cdn.example.org/x.js"></script>') == ["https://cdn.example.org/x.js"]
    assert loads("a.html", '<link rel="stylesheet" href="//fonts.example.org/a.css">') == ["//fonts.example.org/a.css"]
    assert loads("a.css", "@font-face { src: url('https://fonts.example.org/a.woff2') }")
    assert loads("a.html", '<a href="https://example.org">x</a><img src="images/a.png">') == []
    (tmp_path / "page.html").write_text('<img src="http://example.org/a.png">')
    assert list(check(tmp_path)) == ["page.html loads http://example.org/a.png"]
