from __future__ import annotations

import json

import pytest

from tests.app.conftest import Result
from xmtc.app.cli.console import duration, json_line, megabytes, one_line, printable


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


def test_printable_keeps_places() -> None:
    assert printable("a\nb\x00é\u2028日") == "a b é 日"


def test_json_is_one_line_of_unicode_and_no_nan() -> None:
    assert json_line({"a": "é\n"}) == '{"a": "é\\n"}'
    assert json.loads(json_line([1.5])) == Result(0, "[1.5]", "").json
    with pytest.raises(ValueError):
        json_line(float("nan"))


def test_figures_for_people() -> None:
    assert [duration(s) for s in (0.04, 59.9, 61, 3600, 7385)] == [
        "0.0 s",
        "59.9 s",
        "1 min 1 s",
        "1 h 0 min",
        "2 h 3 min",
    ]
    assert megabytes(1_234_567_890) == "1,234.6 MB"
