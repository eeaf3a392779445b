"""The catalogue of methods and recipes: names → methods and checked settings. Trains nothing."""

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
from xmtc.core.spinning import prepare
from xmtc.core.storage import FolderReader

ENTRY_POINTS = "xmtc.methods"  # entry-point group where other packages register their methods
# packages of methods/, imported when used
METHODS = ("linear", "knn", "match", "lightxml", "aplc", "mexml", "xbert", "treader")
_NEURAL = ("torch", "transformers", "accelerate")  # packages of the extra `neural`
_ON_TORCH = ("lightxml", "aplc", "mexml", "xbert", "treader")  # methods that import them
_LONGEST = 140  # maximum characters of a recipe's description, without its cost


def read_settings(
    method: str | None = None,
    config: Mapping[str, Any] | Settings | None = None,
    recipe: str | Path | None = None,
    language: str | None = None,
) -> tuple[str, Settings]:
    """Return the method and the checked settings that `train` would use, before any data is read.

    language: language of the texts; analyzers then stem its words, unless `config` sets the analyzers.
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
    method = "linear" if method is None else method
    if not isinstance(method, str):
        raise ConfigError(f"method must be a name, such as 'linear'; got {method!r}")
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
    """Return whether a method, with these settings if given, uses dev documents for early stopping or selection."""
    opened = open_method(method)
    return opened.uses_dev(opened.Config() if config is None else config)


def list_recipes() -> list[str]:
    """Return the names of all recipes that come with the package, such as "linear/one-tree"."""
    folder = _recipes()
    return [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.toml"))]


def list_methods() -> list[str]:
    """Return the names of all methods: those of this package, then those of other packages."""
    return [*METHODS, *_outside()]


def describe_recipes() -> list[dict[str, str]]:
    """Return the purpose and cost of each recipe; reads the files, imports no method.

    Each has a `name`, `about` (the first sentence of its top comment), `machine` ("CPU" or "GPU") and `cost` (those of
    its settings that determine the training time). A recipe runs on a CPU if it is for the linear method, or if its
    name ends in -cpu or -demo; the others have the published sizes, which need a GPU.
    """
    return [_describe_recipe(name) for name in list_recipes()]


def _describe_recipe(name: str) -> dict[str, str]:
    path = _recipes() / f"{name}.toml"
    comment = takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
    text = " ".join(line.lstrip("# ").rstrip() for line in comment)
    about = re.split(r"(?<=[^.][^.])\.(?: |$)|; ", text, maxsplit=1)[0]
    if len(about) > _LONGEST:  # drop the explanation after the colon
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
    """Import the package of a method and return the method with this name."""
    if name not in METHODS:
        return _open_outside(name)
    try:
        if name in _ON_TORCH:
            prepare()
        method: Method[Any] = import_module(f"xmtc.methods.{name}").METHOD
    except ModuleNotFoundError as error:
        if error.name not in _NEURAL:
            raise
        raise ConfigError(f"method {name!r} needs {error.name}; install it with: pip install 'xmtc[neural]'") from None
    return method


def load_frozen(reader: FolderReader) -> Model:
    """Load an exported model; imports its method's package, but not what only training needs."""
    if reader.method not in METHODS:
        raise ModelError(f"{reader.folder} was exported by method {reader.method!r}, which this xmtc does not have")
    model: Model = import_module(f"xmtc.methods.{reader.method}").load_frozen(reader)
    model.rank(["trial"], 1)  # fails now, not at the first prediction, if graph and arrays do not match
    return model


def _open_outside(name: str) -> Method[Any]:
    """Return a method that another package registers in its entry points."""
    outside = _outside()
    if name not in outside:
        known = [*METHODS, *outside]
        hint = nearest(name, known) or f" Known: {', '.join(known)}."
        raise ConfigError(f"unknown method {name!r}.{hint}")
    try:
        method: Method[Any] = outside[name].load()
    except Exception as error:  # importing another package may raise anything
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
    """Return methods of other packages by name; names of this package's methods are reserved."""
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS) if entry.name not in METHODS}


def _recipes() -> Path:
    return Path(str(files("xmtc") / "recipes"))
