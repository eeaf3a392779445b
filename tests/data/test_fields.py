from __future__ import annotations

from xmtc.core.errors import DataError
from xmtc.data.fields import require


def test_missing_names_are_told_with_what_is_there(refusal) -> None:
    require(("a", "b"), {"b", "a"}, "column", DataError)
    there = [f"column {i}" for i in range(1000)]
    message = refusal(require, ("text",), there, "column", DataError)
    assert message.startswith("no column 'text' (there: 'column 0', 'column 1', ")
    assert len(message) < 250
