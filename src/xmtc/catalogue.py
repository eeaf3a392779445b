"""The catalogue: which methods and recipes there are, and the settings that they stand for. Trains nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from typing import Any

from xmtc.core.config import Settings, build, find_settings, merge, parse_assignments, read_toml
from xmtc.core.errors import ConfigError, ModelError, nearest
from xmtc.core.method import Method
from xmtc.core.model import Model
from xmtc.core.storage import FolderReader

ENTRY_POINTS = "xmtc.methods"  # group in which other packages name their methods
# packages of methods/, imported when used
METHODS = ("linear", "knn", "match", "lightxml", "aplc", "mexml", "xbert", "treader")
_NEURAL = ("torch", "transformers", "accelerate")  # packages of the extra `neural`
_LONGEST = 140  # characters of a line about a recipe, before its cost


def read_settings(
    method: str | None = None,
    config: Mapping[str, Any] | Settings | None = None,
    recipe: str | Path | None = None,
    language: str | None = None,
) -> tuple[str, Settings]:
    """Return the method and the checked settings that `train` would use, before any data is read.

    language: of the texts; analyzers then stem its words, unless `config` chooses them.
    """
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
    method = method or "linear"
    Config = open_method(method).Config
    if language is not None:
        from xmtc.core.languages import find_language

        stem = f"stem:{find_language(language)}"
        layers.append(parse_assignments(f"{path}={stem}" for path in find_settings(Config, "analyzer")))
    layers.append(config or {})
    return method, build(Config, *layers)


def read_recipe(recipe: str | Path) -> tuple[str, dict[str, Any]]:
    """Return the method and the settings of a recipe, given by name ("linear/one-tree") or by path."""
    path = _recipes() / f"{recipe}.toml"
    if not path.is_file():
        path = Path(recipe)
        if not path.is_file():
            known = list_recipes()
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
    opened = open_method(method)
    return opened.uses_dev(opened.Config() if config is None else config)


def list_recipes() -> list[str]:
    """Return the names of all recipes that come with the package, such as "linear/one-tree"."""
    folder = _recipes()
    return [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.toml"))]


def list_methods() -> list[str]:
    """Return the names of all methods: those of this package, then those that other packages offer."""
    return [*METHODS, *_outside()]


def describe_recipes() -> list[dict[str, str]]:
    """Return what each recipe is for and what it costs; reads the files, imports no method.

    Each has a `name`, `about` (the first sentence of the comment at its top), `machine` ("CPU" or "GPU") and `cost`
    (what decides the time, of the settings that it names). A recipe runs on a CPU if it is for the linear method, or
    if its name ends in -cpu or -demo; the others have the published sizes, which need a GPU.
    """
    return [_describe_recipe(name) for name in list_recipes()]


def _describe_recipe(name: str) -> dict[str, str]:
    path = _recipes() / f"{name}.toml"
    comment = takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
    text = " ".join(line.lstrip("# ").rstrip() for line in comment)
    about = re.split(r"(?<=[^.][^.])\.(?: |$)|; ", text, maxsplit=1)[0]
    if len(about) > _LONGEST:  # the part after the colon explains
        about = about.partition(": ")[0]
    settings = read_toml(path)
    encoder, train = settings.get("encoder", {}), settings.get("train", {})
    costs = {
        "encoder": Path(str(encoder.get("name", ""))).name,
        "layers": encoder.get("layers"),
        "tokens": encoder.get("max_length"),
        "epochs": train.get("epochs"),
        "trees": settings.get("tree", {}).get("trees"),
    }
    told = [
        str(value) if key == "encoder" else f"{value} {key.removesuffix('s') if value == 1 else key}"
        for key, value in costs.items()
        if value
    ]
    on_cpu = settings.get("method") == "linear" or name.endswith(("-cpu", "-demo"))
    return {"name": name, "about": about, "machine": "CPU" if on_cpu else "GPU", "cost": ", ".join(told)}


def open_method(name: str) -> Method[Any]:
    """Return a method by its name; its package is imported now."""
    if name not in METHODS:
        return _open_outside(name)
    try:
        method: Method[Any] = import_module(f"xmtc.methods.{name}").METHOD
    except ModuleNotFoundError as error:
        if error.name not in _NEURAL:
            raise
        raise ConfigError(f"method {name!r} needs {error.name}; install it with: pip install 'xmtc[neural]'") from None
    return method


def load_frozen(reader: FolderReader) -> Model:
    """Load an exported model; its method's package is imported now, without what training needs."""
    if reader.method not in METHODS:
        raise ModelError(f"{reader.folder} was exported by method {reader.method!r}, which this xmtc does not have")
    model: Model = import_module(f"xmtc.methods.{reader.method}").load_frozen(reader)
    model.rank(["trial"], 1)  # fails here, not for the first user, where graph and arrays do not fit each other
    return model


def _open_outside(name: str) -> Method[Any]:
    """A method of another package, which names it in its entry points."""
    outside = _outside()
    if name not in outside:
        known = [*METHODS, *outside]
        hint = nearest(name, known) or f" Known: {', '.join(known)}."
        raise ConfigError(f"unknown method {name!r}.{hint}")
    try:
        method: Method[Any] = outside[name].load()
    except Exception as error:  # whatever another package does when it is imported
        raise ConfigError(
            f"method {name!r} cannot be imported from {outside[name].value}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(method, Method) or method.name != name:
        raise ConfigError(
            f"{outside[name].value} is not a method called {name!r}; it must be an object that implements "
            "xmtc.core.method.Method, with this name"
        )
    return method


def _outside() -> dict[str, EntryPoint]:
    """Methods of other packages by name; a name of this package's methods cannot be taken."""
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS) if entry.name not in METHODS}


def _recipes() -> Path:
    return Path(str(files("xmtc") / "recipes"))
