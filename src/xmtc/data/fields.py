"""Check values of JSON lines and tables, so that every layout rejects the same values. Independent of documents.

Labels and ids are kept exactly as written, never stripped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from xmtc.core.errors import DataError, nearest
from xmtc.data.files import write_lines

Mistake = Callable[[str], DataError]  # reason → error with file and line


def json_objects(lines: Iterable[str], mistake: Mistake) -> Iterator[dict[str, Any]]:
    """Parse one JSON object per line; skip blank lines."""
    for line in lines:
        if not line or line.isspace():
            continue
        try:
            value = json.loads(line)
            if isinstance(value, dict) and ("\\ud" in line or "\\uD" in line):
                value = _without_lone_surrogates(value)
        except json.JSONDecodeError as error:
            raise mistake(
                f"not valid JSON ({error.msg}, column {error.colno}); write one JSON object per line"
            ) from None
        except RecursionError:
            raise mistake("not valid JSON (nested too deeply); write one JSON object per line") from None
        except ValueError as error:
            raise mistake(f"not valid JSON ({error}); write one JSON object per line") from None
        if not isinstance(value, dict):
            raise mistake(f"expected a JSON object, got {kind(value)}; write one JSON object per line")
        yield value


def _without_lone_surrogates(value: dict[str, Any]) -> dict[str, Any]:
    """Replace lone surrogates, which only JSON escapes can express, with U+FFFD: UTF-8 files cannot store them."""
    text = json.dumps(value, ensure_ascii=False)
    fields: dict[str, Any] = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return fields


def write_json_objects(path: Path, objects: Iterable[Mapping[str, object]]) -> None:
    """Write one JSON object per line."""
    write_lines(path, (json.dumps(fields, ensure_ascii=False) for fields in objects))


def require(names: Iterable[str], found: Collection[str], noun: str, mistake: Mistake) -> None:
    """Raise if one of the `names` is not among those found; `noun`: what they are, such as "column"."""
    for name in names:
        if name not in found:
            there = ", ".join(map(repr, list(found)[:10])) or "none"
            hint = nearest(name, found) or f" Add it, or rename the {noun} that holds it."
            raise mistake(f"no {noun} {name!r} (there: {there}).{hint}")


def optional(fields: Mapping[str, Any], key: str, type_: type, default: Any, mistake: Mistake) -> Any:
    """Return a field, or the default if it is missing or null; raise if it has another type."""
    value = fields.get(key)
    if value is None:
        return default
    if not isinstance(value, type_):
        raise mistake(f"{key!r} must be {_NOUNS[type_]}, got {kind(value)}; correct the value or leave it out")
    return value


def as_ids(values: Iterable[object], key: str, mistake: Mistake) -> list[str]:
    """Return a list of labels as strings; see `as_id`."""
    return [value if type(value) is str and value else as_id(value, key, mistake) for value in values]


def as_id(value: object, key: str, mistake: Mistake) -> str:
    """Return a label or id: a string, or a whole number as its decimal string; raise for anything else."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    got = "an empty string" if value == "" else kind(value)
    raise mistake(f"{key!r} must hold strings or whole numbers, got {got}; correct the value or leave it out")


def as_text(value: object, mistake: Mistake) -> str:
    """Return a part of a text: a string, a number as a string, or "" for None; raise for anything else."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise mistake(f"a text must be a string, got {kind(value)}; correct the value, or choose other columns with --text")


def kind(value: object) -> str:
    """Return the JSON name of a value's type."""
    return "null" if value is None else _NOUNS.get(type(value), type(value).__name__)


_NOUNS = {
    str: "a string",
    list: "a list",
    dict: "an object",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a fraction",
}
