"""The notebooks of docs run, and print and show what is stored in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.site.execute import run_cells
from tests.pages.blocks import ROOT, differs

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 2


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for cell, outputs in zip(cells, run_cells(cells, tmp_path), strict=True):
        stored = cell.get("outputs", [])
        assert [sorted(output.get("data", ())) for output in stored] == [
            sorted(output.get("data", ())) for output in outputs
        ]
        for old, new in zip(stored, outputs, strict=True):
            assert differs(text_of(old), text_of(new)) is None, "".join(cell["source"])


def test_explanations_are_highlighted() -> None:
    """In the stored output of a notebook, words have a background that shows their weight."""
    shown = [json.loads(path.read_text(encoding="utf-8"))["cells"] for path in NOTEBOOKS]
    html = [
        "".join(o.get("data", {}).get("text/html", ())) for cells in shown for c in cells for o in c.get("outputs", ())
    ]
    assert any('style="background: rgba(' in page and "quotas</span>" in page for page in html)


def text_of(output: dict) -> str:
    return "".join(output.get("text") or output["data"]["text/plain"])
