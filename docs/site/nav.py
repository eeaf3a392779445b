"""A hook of mkdocs: `folder/*.md` in the navigation becomes the pages of that folder, `index.md` first.

Folders that are not there give nothing: some pages are written by other tools, or only in a release.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Expand the patterns; mkdocs calls this before it reads pages."""
    config["nav"] = _expand(config["nav"], Path(config["docs_dir"]))
    return config


def _expand(nav: list[Any], folder: Path) -> list[Any]:
    found: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and "*" in entry:
            pages = sorted(folder.glob(entry), key=lambda page: (page.name != "index.md", page.name))
            found += [page.relative_to(folder).as_posix() for page in pages]
        elif isinstance(entry, dict):
            found.append(
                {title: _expand(part, folder) if isinstance(part, list) else part for title, part in entry.items()}
            )
        else:
            found.append(entry)
    return found
