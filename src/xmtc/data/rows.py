"""Rows: one document as a table or a JSON line tells it. Values are checked here, so that every layout refuses alike.

Knows neither files nor corpora. Labels are kept exactly as written, never stripped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from xmtc.core.errors import DataError, nearest

Mistake = Callable[[str], DataError]  # says a reason with the place it was found at


class Row(NamedTuple):
    """A document; `labels` is empty where they were not asked for."""

    id: str | None
    text: str
    labels: list[str]


def jsonl_rows(lines: Iterable[str], mistake: Mistake, labelled: bool = True) -> Iterator[Row]:
    """Parse `{"id"?, "text", "labels"}` lines; other keys are ignored, and so are blank lines.

    With `labelled=False`, for prediction, `labels` may be missing and is not looked at.
    """
    for fields in json_objects(lines, mistake):
        require(("text", "labels") if labelled else ("text",), fields, "key", mistake)
        yield make_row(fields.get("id"), fields["text"], fields["labels"] if labelled else [], mistake)


def json_objects(lines: Iterable[str], mistake: Mistake) -> Iterator[dict[str, Any]]:
    """Parse one JSON object a line; blank lines are skipped."""
    for line in lines:
        if not line or line.isspace():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise mistake(f"not valid JSON ({error.msg}, column {error.colno}); write one JSON object a line") from None
        except (ValueError, RecursionError) as error:
            raise mistake(f"not valid JSON ({error}); write one JSON object a line") from None
        if not isinstance(value, dict):
            raise mistake(f"expected a JSON object, got {kind(value)}; write one JSON object a line")
        yield _without_lone_surrogates(value) if "\\ud" in line or "\\uD" in line else value


def _without_lone_surrogates(value: dict[str, Any]) -> dict[str, Any]:
    """Half a surrogate pair, which only JSON escapes can spell, becomes U+FFFD: no file could hold it again."""
    text = json.dumps(value, ensure_ascii=False)
    fields: dict[str, Any] = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return fields


def require(names: Iterable[str], found: Collection[str], noun: str, mistake: Mistake) -> None:
    """Refuse a row or table that lacks one of the `names`."""
    for name in names:
        if name not in found:
            there = ", ".join(map(repr, list(found)[:10])) or "none"
            hint = nearest(name, found) or f" Add it, or rename the {noun} that holds it."
            raise mistake(f"no {noun} {name!r} (there: {there}).{hint}")


def make_row(id: object, text: object, labels: object, mistake: Mistake) -> Row:
    """Check the values of one document."""
    if not isinstance(text, str):
        raise mistake(f"'text' must be a string, got {kind(text)}; write \"\" for an empty text")
    if not isinstance(labels, list):
        raise mistake(f"'labels' must be a list of strings, got {kind(labels)}; write [] for none")
    return Row(None if id is None else as_id(id, "id", mistake), text, as_ids(labels, "labels", mistake))


def as_ids(values: Iterable[object], key: str, mistake: Mistake) -> list[str]:
    """Check a list of labels; whole numbers become their decimal string."""
    return [value if type(value) is str and value else as_id(value, key, mistake) for value in values]


def as_id(value: object, key: str, mistake: Mistake) -> str:
    """Check a label or id: a string, or a whole number, which becomes its decimal string."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    got = "an empty string" if value == "" else kind(value)
    raise mistake(f"{key!r} must hold strings or whole numbers, got {got}; mend the value or leave it out")


def optional(fields: Mapping[str, Any], key: str, type_: type, default: Any, mistake: Mistake) -> Any:
    """Return a field that may be missing or null, or refuse its type."""
    value = fields.get(key)
    if value is None:
        return default
    if not isinstance(value, type_):
        raise mistake(f"{key!r} must be {_NOUNS[type_]}, got {kind(value)}; mend the value or leave it out")
    return value


def kind(value: object) -> str:
    """Name a value's type in JSON's words."""
    return "null" if value is None else _NOUNS.get(type(value), type(value).__name__)


_NOUNS = {
    str: "a string",
    list: "a list",
    dict: "an object",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a fraction",
}
