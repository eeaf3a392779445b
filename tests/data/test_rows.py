from __future__ import annotations

from xmtc.core.errors import DataError
from xmtc.data.rows import Row, jsonl_rows, require


def test_rows_without_labels_do_not_look_at_them() -> None:
    lines = ['{"text": "a", "labels": 3}', '{"id": 5, "text": "b"}', '{"id": null, "text": "c"}']
    assert list(jsonl_rows(lines, DataError, labelled=False)) == [
        Row(None, "a", []),
        Row("5", "b", []),
        Row(None, "c", []),
    ]


def test_missing_names_are_told_with_what_is_there(refusal) -> None:
    require(("a", "b"), {"b", "a"}, "column", DataError)
    there = [f"column {i}" for i in range(1000)]
    message = refusal(require, ("text",), there, "column", DataError)
    assert message.startswith("no column 'text' (there: 'column 0', 'column 1', ")
    assert len(message) < 250
