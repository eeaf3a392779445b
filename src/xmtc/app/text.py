"""Convert values to text that is safe to show in a terminal or on a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def printable(text: str) -> str:
    """Replace line ends and control characters with spaces; the positions of characters do not change."""
    return "".join(c if c.isprintable() else " " for c in text)


def json_line(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def flat_settings(settings: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested settings as (a.b.c, value)."""
    items: Iterator[tuple[Any, Any]] | None = None
    if isinstance(settings, Mapping):
        items = iter(settings.items())
    elif isinstance(settings, list) and any(isinstance(value, Mapping) for value in settings):
        items = iter(enumerate(settings))
    if items is None:
        yield path, settings if isinstance(settings, str) else json_line(settings)
        return
    for key, value in items:
        yield from flat_settings(value, f"{path}.{key}" if path else str(key))
