from __future__ import annotations

import json

import pytest

from tests.app.conftest import Result
from xmtc.app.text import flat_settings, json_line, printable


def test_printable_keeps_places() -> None:
    assert printable("a\nb\x00é\u2028日") == "a b é 日"


def test_json_is_one_line_of_unicode_and_no_nan() -> None:
    assert json_line({"a": "é\n"}) == '{"a": "é\\n"}'
    assert json.loads(json_line([1.5])) == Result(0, "[1.5]", "").json
    with pytest.raises(ValueError):
        json_line(float("nan"))


def test_settings_are_flat() -> None:
    settings = {"a": {"b": 1, "c": [1, 2]}, "d": [{"e": "x"}, {"e": None}], "f": {}}
    assert dict(flat_settings(settings)) == {"a.b": "1", "a.c": "[1, 2]", "d.0.e": "x", "d.1.e": "null"}
