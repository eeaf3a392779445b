"""Search space of a method's settings: `Tunable` annotates a field, `search_space` collects the annotations.

    C: Annotated[float, Tunable(0.1, 10, log=True)] = Field(1.0, gt=0)

The search itself is in `xmtc.tuning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from xmtc.core.config import Settings


@dataclass(frozen=True)
class Tunable:
    """The search range of a setting; if both ends are whole numbers, only whole numbers are tried."""

    low: float
    high: float
    log: bool = False  # try as many values between 0.1 and 1 as between 1 and 10


def search_space(settings: Settings) -> dict[str, Tunable]:
    """Return the ranges that settings declare, by path such as `solver.C`."""
    return dict(_walk(settings, ""))


def defaults_of(settings: Settings, space: Mapping[str, Tunable]) -> dict[str, Any]:
    """Return the values of these settings at the paths of a space, clipped to the ranges."""
    found = {}
    for path, tunable in space.items():
        value: Any = settings.model_dump()
        for key in path.split("."):
            value = value[key]
        found[path] = min(max(value, tunable.low), tunable.high)
    return found


def _walk(settings: BaseModel, prefix: str) -> list[tuple[str, Tunable]]:
    found: list[tuple[str, Tunable]] = []
    for (name, field), value in zip(type(settings).model_fields.items(), dict(settings).values(), strict=True):
        found += [(f"{prefix}{name}", note) for note in field.metadata if isinstance(note, Tunable)]
        if isinstance(value, BaseModel):
            found += _walk(value, f"{prefix}{name}.")
    return found
