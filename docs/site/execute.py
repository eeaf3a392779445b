"""Run notebooks and store their outputs: python -m docs.site.execute docs/notebooks/*.ipynb.

Cells run in one namespace, in a new folder. What a cell prints becomes a stream; the value of its last line becomes
HTML where the object offers it, else its repr. No Jupyter is needed.
"""

from __future__ import annotations

import ast
import io
import json
import os
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any


def run_cells(cells: list[dict[str, Any]], folder: Path) -> list[list[dict[str, Any]]]:
    """Run the code cells of a notebook in a folder; return the outputs of each cell, none for cells of text."""
    names: dict[str, Any] = {"__name__": "__main__"}
    outputs: list[list[dict[str, Any]]] = []
    with chdir(folder):
        for number, cell in enumerate(cells):
            outputs.append([] if cell["cell_type"] != "code" else _run("".join(cell["source"]), names, number))
    return outputs


def _run(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(source, f"cell {number}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        found.append({"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None})
    return found


def execute(notebook: Path) -> None:
    """Run a notebook and write it with its outputs."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for cell, outputs in zip(content["cells"], run_cells(content["cells"], Path(folder)), strict=True):
            if cell["cell_type"] == "code":
                cell["outputs"] = outputs
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("XMTC_THREADS", "1")
    for given in sys.argv[1:]:
        execute(Path(given).resolve())
