from __future__ import annotations

import pytest

from xmtc.app.cli.console import duration, megabytes, one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("short", "short"),
        (" two\r\n\tlines ", "two lines"),
        ("x" * 10, "x" * 10),
        ("x" * 11, "x" * 9 + "…"),
        ("a b c d e f g", "a b c d e…"),
        (" " * 100, "…"),
        ("\x1b[2J", "[2J"),
        ("", ""),
    ],
)
def test_one_line(text: str, line: str) -> None:
    assert one_line(text, 10) == line


def test_figures_for_people() -> None:
    assert [duration(s) for s in (0.04, 59.9, 61, 3600, 7385)] == [
        "0.0 s",
        "59.9 s",
        "1 min 1 s",
        "1 h 0 min",
        "2 h 3 min",
    ]
    assert megabytes(1_234_567_890) == "1,234.6 MB"
