"""What is shipped: version, public names, recipes and pins. tests/test_release.py builds the wheel."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import xmtc
from xmtc import api
from xmtc.catalogue import open_method
from xmtc.core.config import build, merge, read_toml

ROOT = Path(__file__).parent.parent
PACKAGE = Path(xmtc.__file__).parent
PROJECT = read_toml(ROOT / "pyproject.toml")["project"]
PINS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
RECIPES = [path.relative_to(PACKAGE / "recipes") for path in sorted((PACKAGE / "recipes").rglob("*.toml"))]


def test_version_is_one() -> None:
    assert PROJECT["version"] == xmtc.__version__
    assert f"## [{xmtc.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", xmtc.__all__)
def test_public_name_resolves(name: str) -> None:
    assert getattr(xmtc, name).__name__ == name
    assert name in dir(xmtc)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = xmtc.trian


@pytest.mark.parametrize("module", sorted(set(xmtc._PUBLIC.values())))
def test_public_definitions_have_docstrings(module: str) -> None:
    # read, not imported: a dataclass without a docstring is given its signature as one
    path = Path(importlib.import_module(module).__file__ or "")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    assert [name for name, node in public_definitions(tree) if not ast.get_docstring(node)] == []


def public_definitions(
    node: ast.Module | ast.ClassDef,
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    for child in node.body:
        if isinstance(child, (ast.ClassDef, ast.FunctionDef)) and not child.name.startswith("_"):
            yield child.name, child
            if isinstance(child, ast.ClassDef):
                yield from public_definitions(child)


def test_there_are_recipes() -> None:
    assert Path("linear/one-tree.toml") in RECIPES


@pytest.mark.parametrize("path", RECIPES, ids=str)
def test_recipe_is_valid(path: Path) -> None:
    method, settings = api.read_recipe(path.with_suffix("").as_posix())
    assert method == path.parts[0]
    assert settings, "a recipe that sets nothing"
    if method != "linear":
        pytest.importorskip("torch", reason="neural methods need torch")
    config = build(open_method(method).Config, settings)
    held = config.model_dump(mode="json")
    assert merge(held, settings) == held, "the config holds something else"


def test_published_propensities() -> None:
    assert api.read_recipe("linear/amazon-670k")[1]["propensity"] == {"A": 0.6, "B": 2.6}
    assert api.read_recipe("linear/wiki-500k")[1]["propensity"] == {"A": 0.5, "B": 0.4}


def test_every_pin_is_one_version_for_every_python() -> None:
    names = [pin.name for pin in PINS]
    assert names == sorted({canonicalize_name(name) for name in names})
    assert [str(pin) for pin in PINS if pin.marker or [part.operator for part in pin.specifier] != ["=="]] == []


def test_every_dependency_is_pinned() -> None:
    here = {pin.name: pin for pin in PINS}
    assert needed() - here.keys() == set()
    for requirement in declared():
        pin = here.get(canonicalize_name(requirement.name))
        if pin is not None:
            (version,) = (specifier.version for specifier in pin.specifier)
            assert requirement.specifier.contains(version), f"{pin} is outside {requirement}"


def declared() -> Iterator[Requirement]:
    """What pyproject.toml asks for on this Python, extras included."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for requirement in (Requirement(line) for lines in lists for line in lines):
        if requirement.name != "xmtc" and (requirement.marker is None or requirement.marker.evaluate()):
            yield requirement


def needed() -> set[str]:
    """Names of all that is declared and of what that needs in turn, as far as it is installed here."""
    seen: set[tuple[str, str]] = set()
    queue = [(requirement.name, "") for requirement in declared()]
    while queue:
        name, extra = queue.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for requirement in map(Requirement, lines):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                queue += [(requirement.name, one) for one in ("", *requirement.extras)]
    return {canonicalize_name(name) for name, _ in seen}
