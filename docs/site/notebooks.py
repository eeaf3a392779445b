"""A notebook as a page: its text, its code, and the outputs that are stored in it. Nothing is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def page(notebook: Path) -> str:
    """Return the notebook as Markdown."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [_output(output) for output in cell["outputs"]]
    parts.append(f"---\n\nThis page is the notebook `docs/notebooks/{notebook.name}`.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="notebook-output">{"".join(data["text/html"])}</div>'
    text = "".join(output.get("text") or data.get("text/plain") or ())
    return f"```text\n{text.rstrip()}\n```" if text else ""
