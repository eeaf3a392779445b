"""Settings: typed, no unknown keys, each default defined in one place.

The settings of each component are defined next to its code and derive from `Settings`; a method's `Config` composes
them. Recipes are TOML files of the same structure; `--set a.b=c` overrides a recipe.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from xmtc.core.errors import ConfigError, nearest


class Settings(BaseModel):
    """Base class of all settings: immutable; rejects unknown keys, NaN and infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


AnySettings = TypeVar("AnySettings", bound=Settings)


def build(cls: type[AnySettings], *layers: Mapping[str, Any]) -> AnySettings:
    """Make settings from nested mappings; later ones win. Report the first error in one line."""
    merged: Mapping[str, Any] = reduce(merge, layers) if layers else {}
    try:
        return cls.model_validate(dict(merged))
    except ValidationError as error:
        raise ConfigError(_one_line(cls, error)) from None


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two nested mappings; `above` wins."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Turn `a.b=c` strings into a nested mapping. Values that are valid JSON are parsed as JSON; others are strings."""
    result: dict[str, Any] = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals or not path.strip():
            raise ConfigError(f"--set takes path=value, such as train.epochs=3; got {assignment!r}")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        for key in reversed(path.strip().split(".")):
            value = {key: value}
        result = merge(result, value)
    return result


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; raise a one-line error with the file and the position of a syntax error."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _one_line(cls: type[Settings], error: ValidationError) -> str:
    first = error.errors()[0]
    path = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        *outer, last = (str(part) for part in first["loc"])
        known = _fields_at(cls, outer)
        elsewhere = [f"{place!r}" for place in _paths(cls) if place.endswith(f".{last}")][:3]
        hint = f" Did you mean {' or '.join(elsewhere)}?" if elsewhere else nearest(last, known)
        hint = hint or f" Known here: {', '.join(sorted(known))}."
        return f"unknown setting {path!r}.{hint}"
    if not path:  # the message of a rule over several settings needs no path
        return first["msg"].removeprefix("Value error, ")
    more = f" ({error.error_count() - 1} more mistakes)" if error.error_count() > 1 else ""
    hint = """ (a list is JSON, quoted for the shell: '["a", "b"]')""" if first["type"] == "list_type" else ""
    return f"setting {path!r}: {first['msg']}{hint}; got {first['input']!r}{more}"


def find_settings(cls: type[BaseModel], name: str) -> list[str]:
    """Return the paths of all settings with this name, such as `tfidf.analyzer` for `analyzer`."""
    return [path for path in _paths(cls) if path.rpartition(".")[2] == name]


def _paths(cls: type[BaseModel]) -> Iterator[str]:
    """Yield the names of all fields, nested ones as `tree.trees`."""
    for name in cls.model_fields:
        yield name
        nested = _nested(cls, name)
        if nested is not None:
            yield from (f"{name}.{path}" for path in _paths(nested))


def _fields_at(cls: type[BaseModel], path: Iterable[str]) -> list[str]:
    """Return the field names of the settings nested at `path`."""
    for part in path:
        nested = _nested(cls, part)
        if nested is None:
            break
        cls = nested
    return list(cls.model_fields)


def _nested(cls: type[BaseModel], name: str) -> type[BaseModel] | None:
    """Return the type of the settings that a field holds or may hold; None if it holds a value."""
    field = cls.model_fields.get(name)
    options = [] if field is None else [field.annotation, *get_args(field.annotation)]
    return next((option for option in options if isinstance(option, type) and issubclass(option, BaseModel)), None)
