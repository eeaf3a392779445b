"""Lazy imports: a package's names are imported on first use, so that unused modules are not loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package; `modules` maps each name to the module that defines it.

    Assign both in the package's `__init__.py`, and import the same names under TYPE_CHECKING for type checkers.
    """
    names = vars(sys.modules[package])

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = names[name] = getattr(import_module(modules[name]), name)
        return value

    return find, lambda: sorted({*names, *modules})
