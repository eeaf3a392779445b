"""The hash of the sources that a result measures: by it, a page marks figures of older code.

Roots are modules or packages of src/xmtc; the hash covers them and all modules of xmtc that they import, also inside
functions. Docstrings, comments and layout leave it as it is, and so does the version of Python.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.framework.machine import ROOT

SOURCES = ROOT / "src" / "xmtc"
SCORED_BY = "xmtc.core.metrics"  # what every score is computed by
_FACADES = {"xmtc", "xmtc.api", "xmtc.catalogue"}  # they name all that there is; importing them measures nothing


def record_sources(roots: Sequence[str]) -> dict[str, Any]:
    """Return what a result notes of the code that it measures: the roots and the hash."""
    return {"roots": list(roots), "sha256": hash_sources(roots)}


def is_current(facts: dict[str, Any]) -> bool:
    """Say whether the sources that a result measured are those of today; not known means no."""
    noted = facts.get("sources")
    return noted is not None and noted["sha256"] == hash_sources(noted["roots"])


def hash_sources(roots: Sequence[str]) -> str:
    """Return the sha256 of the roots and all that they import; a root that is gone has its own value."""
    return _hash(SOURCES, tuple(roots))


def method_roots(*methods: str) -> list[str]:
    """Return the roots of methods of the library, and of the scores."""
    return [*(f"xmtc.methods.{method}" for method in methods), SCORED_BY]


@lru_cache
def _hash(folder: Path, roots: tuple[str, ...]) -> str:
    modules = _modules(folder)
    found = set[str]()
    waiting = [
        module for root in roots for module in (root, *(name for name in modules if name.startswith(f"{root}.")))
    ]
    while waiting:
        module = waiting.pop()
        if module in modules and module not in found:
            found.add(module)
            waiting += _imported(folder, module)
    digest = hashlib.sha256("\n".join(roots).encode())
    for module in sorted(found):
        digest.update(f"{module} {_digest(folder, module)}\n".encode())
    return digest.hexdigest()


@lru_cache
def _modules(folder: Path) -> dict[str, Path]:
    """Every module below the folder of xmtc, by its dotted name."""
    found = {}
    for path in folder.rglob("*.py"):
        parts = (folder.name, *path.relative_to(folder).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@lru_cache
def _tree(folder: Path, module: str) -> ast.Module:
    return ast.parse(_modules(folder)[module].read_text(encoding="utf-8"))


@lru_cache
def _imported(folder: Path, module: str) -> tuple[str, ...]:
    """The modules of xmtc that a module imports, or names in a string, with the packages around them."""
    modules, found = _modules(folder), set[str]()
    for node in ast.walk(_tree(folder, module)):
        for name in _named(node, module, modules[module].stem == "__init__"):
            parts = name.split(".")
            found |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)} & modules.keys()
    return tuple(sorted(found - _FACADES))


def _named(node: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        package = module.split(".") if is_package else module.split(".")[:-1]
        above = package[: len(package) + 1 - node.level] if node.level else []
        origin = ".".join([*above, *filter(None, [node.module])])
        yield from (f"{origin}.{alias.name}" for alias in node.names)  # a name that is no module counts as its origin
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("xmtc."):
        yield node.value


@lru_cache
def _digest(folder: Path, module: str) -> str:
    told = json.dumps(_plain(_tree(folder, module)), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(told.encode()).hexdigest()


def _plain(node: Any) -> Any:
    """A syntax tree as JSON without docstrings; what is empty is left out, since versions of Python differ in it."""
    if isinstance(node, ast.AST):
        fields = {name: _plain(value) for name, value in ast.iter_fields(node) if name not in ("kind", "type_comment")}
        return [type(node).__name__, {name: value for name, value in fields.items() if value not in (None, [])}]
    if isinstance(node, list):
        return [_plain(one) for one in node if not _is_prose(one)]
    return node if node is None else repr(node)


def _is_prose(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
