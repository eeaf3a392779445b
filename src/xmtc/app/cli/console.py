"""Print results to the terminal, and format text for it. Independent of commands and models."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console

from xmtc.app.text import json_line, printable

_PIPE_WIDTH = 120  # characters per line of a table that is written to a file


def out() -> Console:
    """Return the console for results."""
    terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, width=None if terminal else _PIPE_WIDTH, highlight=False)


def print_json(value: Any) -> None:
    """Print one JSON value as one line of stdout."""
    print(json_line(value))


def one_line(text: str, width: int = 100) -> str:
    """Return the beginning of a text as one line without control characters."""
    start = text[: 4 * width]
    line = " ".join(printable(start).split())
    return line if len(line) <= width and len(text) == len(start) else line[: width - 1].rstrip() + "…"


def duration(seconds: float) -> str:
    """Return a duration as readable text."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def megabytes(n_bytes: int) -> str:
    """Return a size as readable text."""
    return f"{n_bytes / 1e6:,.1f} MB"
