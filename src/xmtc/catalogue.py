"""The catalogue: which methods and recipes there are, and the settings that they stand for. Trains nothing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from xmtc.core.config import Settings, build, merge, read_toml
from xmtc.core.errors import ConfigError, nearest

# name → module with Config, train and load, and uses_dev where settings decide that; imported when used
METHODS = {
    "linear": "xmtc.methods.linear",
    "lightxml": "xmtc.methods.lightxml",
    "aplc": "xmtc.methods.aplc",
    "mexml": "xmtc.methods.mexml",
    "xbert": "xmtc.methods.xbert",
    "treader": "xmtc.methods.treader",
}
_WITHOUT_DEV = frozenset({"linear"})


def read_settings(
    method: str | None = None,
    config: Mapping[str, Any] | Settings | None = None,
    recipe: str | Path | None = None,
) -> tuple[str, Settings]:
    """Return the method and the checked settings that `train` would use, before any data is read."""
    layers: list[Mapping[str, Any]] = []
    if recipe is not None:
        named, settings = read_recipe(recipe)
        if method is not None and method != named:
            raise ConfigError(f"recipe {str(recipe)!r} is for method {named!r}, not {method!r}; leave one of them out")
        method = named
        layers.append(settings)
    if isinstance(config, Settings):
        config = config.model_dump()
    if config is not None and not isinstance(config, Mapping):
        raise ConfigError(f"config must be a mapping of settings; got {type(config).__name__}")
    layers.append(config or {})
    method = method or "linear"
    return method, build(open_method(method).Config, *layers)


def read_recipe(recipe: str | Path) -> tuple[str, dict[str, Any]]:
    """Return the method and the settings of a recipe, given by name ("linear/one-tree") or by path."""
    folder = Path(str(files("xmtc") / "recipes"))
    path = folder / f"{recipe}.toml"
    if not path.is_file():
        path = Path(recipe)
        if not path.is_file():
            known = [str(p.relative_to(folder).with_suffix("").as_posix()) for p in sorted(folder.rglob("*.toml"))]
            hint = nearest(str(recipe), known) or f" Known: {', '.join(known)}."
            raise ConfigError(f"no recipe {str(recipe)!r}.{hint}")
    settings = read_toml(path)
    method = settings.pop("method", None)
    if not isinstance(method, str):
        raise ConfigError(f'{path} names no method; begin it with a line such as method = "linear"')
    open_method(method)
    return method, merge({}, settings)


def uses_dev(method: str, config: Settings | None = None) -> bool:
    """Say whether a method, with these settings if given, stops early or chooses by dev documents; others need none."""
    asked = getattr(open_method(method), "uses_dev", None)
    return method not in _WITHOUT_DEV if asked is None or config is None else bool(asked(config))


def open_method(name: str) -> Any:
    """Return a method's module, imported now."""
    if name not in METHODS:
        hint = nearest(name, METHODS) or f" Known: {', '.join(METHODS)}."
        raise ConfigError(f"unknown method {name!r}.{hint}")
    return import_module(METHODS[name])
