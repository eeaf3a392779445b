"""The settings of every method as tables, from the settings' own fields: path, type, default, limits, description."""

from __future__ import annotations

import types
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from xmtc.catalogue import METHODS, open_method
from xmtc.core.search_space import Tunable

_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
_HEAD = """# Settings

Every method has its own settings. Give them with `--set PATH=VALUE` on the command line, as
`config={"part": {"setting": value}}` in Python, or in a TOML file ([recipe](../guides/which-method.md#recipes)). An
unknown setting or an invalid value is an error. A **·** marks settings that [`xmtc tune`](../TUNING.md) searches.

This page is generated from the code.
"""


def page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for name in METHODS:
        config = open_method(name).Config
        about = (config.__doc__ or "").strip()
        parts.append(f"## {name}\n\n{about} What the method computes: [methods/{name}](../methods/{name}.md).\n")
        parts.append(_table(config))
    return "\n".join(parts)


def _table(config: type[BaseModel]) -> str:
    lines = ["| Setting | Type | Default | Meaning |", "|---|---|---|---|"]
    for path, field in fields(config):
        searched = " **·**" if any(isinstance(mark, Tunable) for mark in field.metadata) else ""
        meaning = (field.description or "").strip().replace("<", "&lt;")
        meaning = meaning[:1].upper() + meaning[1:]
        cells = (f"`{path}`{searched}", f"{_type(field.annotation)}{_limits(field)}", _default(field), meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def fields(config: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every setting that holds a value, with its path; nested settings stand for their own."""
    for name, field in config.model_fields.items():
        nested = [
            option
            for option in (field.annotation, *get_args(field.annotation))
            if isinstance(option, type) and issubclass(option, BaseModel)
        ]
        if nested:
            yield from fields(nested[0], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def _type(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Literal:
        return " or ".join(f"`{option}`" for option in get_args(annotation))
    if origin in (Union, types.UnionType):
        options = [_type(option) for option in get_args(annotation) if option is not type(None)]
        return " or ".join(options)
    if origin is not None and origin.__name__ == "Annotated":
        return _type(get_args(annotation)[0])
    if hasattr(annotation, "__metadata__"):
        return _type(annotation.__origin__)
    if origin in (tuple, list):
        return f"list of {_type(get_args(annotation)[0])}"
    if origin is dict:
        return "table"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{option.value}`" for option in annotation)
    named = {int: "whole number", float: "number", str: "text", bool: "true or false"}
    return named.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _limits(field: FieldInfo) -> str:
    found = [
        f"{sign} {getattr(mark, bound):,}"
        for mark in field.metadata
        for bound, sign in _BOUNDS.items()
        if getattr(mark, bound, None) is not None and not isinstance(mark, Tunable)
    ]
    return f", {', '.join(found)}" if found else ""


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, (tuple, list)):
        return "none" if not value else f"`{list(value)}`"
    return f"`{value}`"
