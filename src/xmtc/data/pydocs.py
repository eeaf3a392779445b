"""Build a corpus in the native layout from the docstrings of installed Python packages.

Sources are parsed, never imported. A document is a module, class, function or method that has prose in its
(triple-quoted) docstring. Its text is its own name, split into words, and the prose before the parameter section. Its
labels are the first three prefixes of its module's path (`scipy`, `scipy.sparse`, …) and `arg:<name>` for each of its
parameters.

Documents with equal texts are merged into one with all their labels, in the module where the text first occurs. The
split is by a hash of that module, so the documents of a module are all in train or all in test. The same package
versions give the same bytes.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sysconfig
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from xmtc.core.errors import DataError, nearest
from xmtc.core.labels import Concept
from xmtc.data.fields import write_json_objects
from xmtc.data.files import fill_folder, new_folder, open_whole
from xmtc.data.vocabulary import LABELS, write_concepts

STANDARD_LIBRARY = "python"
# import name → distribution; dependencies of the library and its extras
PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "torch": "torch",
    "transformers": "transformers",
    "networkx": "networkx",
    "huggingface_hub": "huggingface_hub",
    "pydantic": "pydantic",
    "rich": "rich",
    "pyarrow": "pyarrow",
    "accelerate": "accelerate",
    "joblib": "joblib",
    "typer": "typer",
}
_SKIPPED = {"tests", "test", "testing", "idle_test", "_vendor"}
_DEPTH = 3  # prefixes of a module's path that are labels
_TEST_SHARE = 5  # one module in five goes to test


@dataclass(frozen=True)
class Summary:
    """What was built; `sha256` covers the bytes of train.jsonl, test.jsonl and labels.jsonl, in that order."""

    sha256: str
    versions: dict[str, str]
    documents: dict[str, int]  # of each split
    labels: int


def build_pydocs(
    out: str | Path,
    packages: Iterable[str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Write the corpus into the new folder `out`, with its sha256 and the package versions in about.json.

    `packages` are import names, or "python" for the standard library; by default all of `PACKAGES` that are installed.
    `progress` is called with the number of parsed files and their total.
    """
    versions = _find_packages(packages)
    folder = new_folder(out)
    sources = [source for package in versions for source in _sources(package)]
    found: dict[str, Docstring] = {}
    with _no_garbage_collection():
        for done, source in enumerate(sources, start=1):
            for docstring in _docstrings(source):
                found.setdefault(docstring.text, docstring).labels.update(docstring.labels)
            progress(done, len(sources))
    with fill_folder(folder) as temporary:
        return _write(temporary, list(found.values()), versions)


class Source(NamedTuple):
    """A file to parse."""

    module: str
    path: Path


class Docstring(NamedTuple):
    """A docstring that becomes a document."""

    module: str
    name: str  # with its enclosing classes
    text: str
    labels: set[str]


def _find_packages(packages: Iterable[str] | None) -> dict[str, str]:
    """Return import name → version, in a fixed order."""
    known = {STANDARD_LIBRARY: STANDARD_LIBRARY, **PACKAGES}
    versions = {}
    for package in known if packages is None else packages:
        if package not in known:
            raise DataError(f"pydocs does not know the package {package!r}.{nearest(package, known)}")
        if package == STANDARD_LIBRARY:
            versions[package] = platform.python_version()
        elif importlib.util.find_spec(package) is not None:
            versions[package] = importlib.metadata.version(known[package])
        elif packages is not None:
            raise DataError(f"the package {package!r} is not installed; install it or leave it out")
    return versions


def _sources(package: str) -> Iterator[Source]:
    """Yield the files of a package in a fixed order, without its tests."""
    if package == STANDARD_LIBRARY:
        roots, prefix = [sysconfig.get_path("stdlib")], []
    else:
        spec = importlib.util.find_spec(package)
        roots, prefix = list(spec.submodule_search_locations or []) if spec else [], [package]
    for root in roots:
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if name.isidentifier() and name not in _SKIPPED)
            place = Path(folder).relative_to(root).parts
            for file in sorted(files):
                name, ending = os.path.splitext(file)
                if ending == ".py" and name.isidentifier() and not name.startswith("test_") and name != "conftest":
                    path = [*prefix, *place, *([] if name == "__init__" else [name])]
                    yield Source(".".join(path), Path(folder, file))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection, which takes a third of the time; syntax trees have no reference cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _docstrings(source: Source) -> Iterator[Docstring]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in strings of the parsed packages
        try:
            code = source.path.read_bytes()
            if b'"""' not in code and b"'''" not in code:
                return  # checked first, because parsing is slow
            tree = ast.parse(code)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return  # a template, or source of another Python version
    module = source.module.split(".")
    prefixes = {".".join(module[:depth]) for depth in range(1, min(_DEPTH, len(module)) + 1)}
    for node, name in [(tree, ""), *_definitions(tree.body, "")]:
        prose = _prose(ast.get_docstring(node) or "")
        if prose:
            own = (name or source.module).rpartition(".")[2]
            labels = prefixes | {f"arg:{parameter}" for parameter in _parameters(node)}
            yield Docstring(source.module, name, f"{_words(own)}. {prose}", labels)


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _definitions(body: Iterable[ast.AST], outer: str) -> Iterator[tuple[Definition, str]]:
    """Yield classes, functions and methods with their names; skip functions inside functions."""
    for node in body:
        if isinstance(node, Definition):
            yield node, outer + node.name
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node.body, f"{outer}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _definitions(ast.iter_child_nodes(node), outer)


def _parameters(node: ast.AST) -> list[str]:
    """Return the names of a function's parameters; for a class, those of its constructor."""
    if isinstance(node, ast.ClassDef):
        inits = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
        return _parameters(inits[0]) if inits else []
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    given = node.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return [parameter.arg for parameter in every if parameter and parameter.arg not in ("self", "cls")]


_HEADINGS = (
    "parameters|params|other parameters|args|arguments|keyword args|keyword arguments|kwargs|attributes|inputs?"
    "|returns?|yields|raises|examples?|usage|notes?|see also|references|shape|methods"
)
_SECTION = re.compile(
    rf"^[ \t]*(?:(?:{_HEADINGS})[ \t]*:?[ \t]*\n[ \t]*[-=~^]{{3,}}"  # numpy: underlined
    rf"|(?:{_HEADINGS})[ \t]*::?[ \t]*$"  # google: with a colon
    r"|[:@](?:param|arg|type|return|rtype|raise)"  # sphinx, epydoc
    r"|>>>)",
    re.MULTILINE | re.IGNORECASE,
)


def _prose(docstring: str) -> str:
    """Return the text before the first section, on one line."""
    section = _SECTION.search(docstring)
    return " ".join((docstring[: section.start()] if section else docstring).split())


def _words(name: str) -> str:
    """Split a name into words: "HTTPServer" → "HTTP Server", "read_csv" → "read csv"."""
    return " ".join(re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", name).split())


def _write(folder: Path, docstrings: list[Docstring], versions: dict[str, str]) -> Summary:
    times: dict[str, int] = {}
    documents: dict[str, list[dict[str, object]]] = {"train": [], "test": []}
    for docstring in docstrings:
        id = f"{docstring.module}.{docstring.name}".rstrip(".")
        times[id] = times.get(id, 0) + 1  # a name may be defined twice, in `if` and `else`
        unique = id if times[id] == 1 else f"{id}#{times[id]}"
        fields: dict[str, object] = {
            "id": unique,
            "text": docstring.text,
            "labels": sorted(docstring.labels),
            "group": docstring.module,
        }
        documents[_split_of(docstring.module)].append(fields)
    labels = sorted(set().union(*(docstring.labels for docstring in docstrings)))
    for split in documents:
        write_json_objects(folder / f"{split}.jsonl", documents[split])
    write_concepts(folder / LABELS, map(_concept, labels))
    digest = hashlib.sha256()
    for name in ("train.jsonl", "test.jsonl", LABELS):
        digest.update((folder / name).read_bytes())
    summary = Summary(digest.hexdigest(), versions, {split: len(own) for split, own in documents.items()}, len(labels))
    with open_whole(folder / "about.json") as file:
        file.write(json.dumps(asdict(summary), indent=2).encode() + b"\n")
    return summary


def _split_of(module: str) -> str:
    hashed = int.from_bytes(hashlib.sha256(module.encode()).digest()[:8], "big")
    return "test" if hashed % _TEST_SHARE == 0 else "train"


def _concept(label: str) -> Concept:
    _, colon, parameter = label.partition(":")
    if colon:
        return Concept(label, name=f"argument {parameter}")
    above = label.rpartition(".")[0]
    return Concept(label, name=label, parents=(above,) if above else ())
