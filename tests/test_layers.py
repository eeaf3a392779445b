"""Imports point down only (the drawing of layers in docs/ARCHITECTURE.md), and the sparse path needs no torch."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import xmtc

SOURCES = Path(xmtc.__file__).parent

# room (or module beside the rooms) → what it may import of xmtc, besides itself
MAY_IMPORT = {
    "core": set(),
    "engines": {"core"},
    "data": {"core"},
    "features": {"core"},
    "linear": {"core", "data", "features"},
    "neural": {"core", "data", "features"},
    "methods": {"core", "data", "features", "linear", "neural"},
    "catalogue": {"core", "methods"},
    "presets": {"core", "data", "methods", "catalogue"},
    "sharing": {"core"},
    "api": {"core", "engines", "data", "methods", "catalogue", "presets", "sharing"},
    "sklearn": {"core", "api"},
    "tuning": {"core", "engines", "api"},
    "tracking": {"core"},
    "app": {"core", "engines", "data", "api", "tuning", "tracking", "sharing"},
    "__init__": {"core", "api"},
    "__main__": {"app"},
}
# modules below methods/ that one method alone reaches, and why they stay where they are
SHARED_ALTHOUGH: dict[str, str] = {}
# where getattr and hasattr may stand: on objects of other libraries, of the interpreter, or of plain data
BY_NAME = {
    "xmtc.sklearn": "arguments of any type, and scikit-learn's own attributes",
    "xmtc.app.cli.commands": "errors of the command-line library",
    "xmtc.app.cli.entry": "standard streams",
    "xmtc.app.cli.panels": "parameters of the command-line library, some of which have no panel",
    "xmtc.app.rest.middleware": "the web framework's route",
    "xmtc.app.hang_up": "a signal that not every system has",
    "xmtc.core.calibration.thresholds": "precision, recall or f1, as the user wrote it",
    "xmtc.core.lazy": "a package's names, imported when they are first asked for",
    "xmtc.core.revision": "fields of a label set",
    "xmtc.core.threads": "a function of os that not every system has",
    "xmtc.data.layouts.numbered": "sparse matrices of any class",
    "xmtc.linear.tree": "a thread's own storage",
    "xmtc.neural.devices": "a function of torch that its older versions lack",
    "xmtc.neural.encoder": "settings of Hugging Face's configurations, which differ by family",
}
CORE_PACKAGES = {"numpy", "scipy", "pydantic", "safetensors"}
NEURAL_PACKAGES = {"torch", "transformers", "accelerate"}
RAY_MODULE = "xmtc.engines.ray"  # the only one that imports Ray
NEURAL_ROOMS = {"neural", "methods"}
VAGUE = {"utils", "util", "common", "base", "helpers", "helper", "misc"}


def name_of(path: Path) -> str:
    """The dotted name of a module under SOURCES."""
    parts = ("xmtc", *path.relative_to(SOURCES).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(SOURCES.rglob("*.py"))}
PACKAGES = {name for name, path in MODULES.items() if path.stem == "__init__"}
# packages of which others import only what `__init__` exports: data, and every package inside a room
CLOSED = {name for name in PACKAGES if name.count(".") > 1} | {"xmtc.data"}


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imported(module: str, source: str) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, also inside functions, and of every string that names a module of xmtc."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module if module in PACKAGES else module.rpartition(".")[0]
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            yield from ((node.lineno, resolve(origin, alias.name)) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_module(node.value):
            yield node.lineno, node.value


def resolve(origin: str, name: str) -> str:
    """The module that `from origin import name` reads: a submodule, or where xmtc's public name lives."""
    if origin == "xmtc" and name in xmtc._PUBLIC:
        return xmtc._PUBLIC[name]
    return f"{origin}.{name}" if f"{origin}.{name}" in MODULES else origin


def is_module(text: str) -> bool:
    return re.fullmatch(r"xmtc(\.\w+)+", text) is not None and text in MODULES


def violations(module: str, source: str) -> list[str]:
    room = room_of(module)
    found = []
    for line, target in imported(module, source):
        package = target.split(".")[0]
        if target == "xmtc":  # the bare package holds the version and lazy names; `resolve` follows the names
            continue
        if package == "xmtc":
            inside = room_of(target)
            other_method = room == inside == "methods" and method_of(module) != method_of(target)
            if other_method or (inside != room and inside not in MAY_IMPORT[room]):
                found.append(f"{module}:{line} imports {target}")
            elif closed := closed_around(target, module):
                found.append(f"{module}:{line} imports {target}; import what {closed} exports")
        elif (
            (package in NEURAL_PACKAGES and room not in NEURAL_ROOMS)
            or (room == "core" and not fits_core(target))
            or (package == "ray" and module != RAY_MODULE)
        ):
            found.append(f"{module}:{line} imports {target}")
    return found


def method_of(module: str) -> str:
    """The package of a method that a module of methods/ belongs to."""
    return ".".join(module.split(".")[:3])


def closed_around(target: str, module: str) -> str | None:
    """The outermost closed package that `target` is inside of and `module` outside of."""
    parts = target.split(".")
    for n in range(2, len(parts)):
        package = ".".join(parts[:n])
        if package in CLOSED and module != package and not module.startswith(f"{package}."):
            return package
    return None


def fits_core(target: str) -> bool:
    package = target.split(".")[0]
    if package == "safetensors":  # its torch side is not for core
        return target == "safetensors.numpy"
    return package in CORE_PACKAGES or package in sys.stdlib_module_names


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    assert violations(module, MODULES[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("xmtc.core.labels", "from xmtc.data.read import read_corpus"),
        ("xmtc.core.labels", "from xmtc import train"),
        ("xmtc.core.labels", "def f():\n    import numba"),
        ("xmtc.core.labels", "from ..data import read"),
        ("xmtc.core.storage", "from safetensors.torch import save"),
        ("xmtc.data.read", "from xmtc.features.tfidf import Tfidf"),
        ("xmtc.features.tfidf", "from transformers import AutoTokenizer"),
        ("xmtc.linear.tree", "import xmtc.neural.trainer"),
        ("xmtc.neural.trainer", "import xmtc.linear.tree"),
        ("xmtc.methods.linear", "from xmtc.methods.ensemble.method import join"),
        ("xmtc.methods.linear.method", "from .. import ensemble"),
        ("xmtc.methods.linear", "import xmtc.api"),
        ("xmtc.api", "from xmtc.linear.tree import train_tree"),
        ("xmtc.app.cli", "import_module('xmtc.methods.linear')"),
        ("xmtc.api", "from xmtc.core.metrics.bootstrap import compare"),
        ("xmtc.methods.linear.method", "from xmtc.features.tfidf.vocabulary import build_vocabulary"),
        ("xmtc.app.report.page", "import xmtc.app.cli.tables"),
        ("xmtc.api", "from xmtc.data.read import read_corpus"),
        ("xmtc.engines.processes", "from xmtc.data import read_corpus"),
        ("xmtc.methods.linear.method", "from xmtc.engines import open_engine"),
        ("xmtc.app.cli.predict", "import ray"),
    ],
)
def test_an_import_upwards_or_sideways_is_found(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen, waiting = set[str](), [start]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += graph[module]
    return seen


def import_graph() -> dict[str, set[str]]:
    """Module → the modules that importing it runs, the packages around each among them."""
    graph = {}
    for module, path in MODULES.items():
        targets = {target for _, target in imported(module, path.read_text(encoding="utf-8")) if target in MODULES}
        graph[module] = targets | {target.rpartition(".")[0] for target in targets if target.count(".") > 1}
    return graph


def test_what_one_method_alone_reaches_is_in_its_package() -> None:
    graph = import_graph()
    methods = {method_of(module) for module in MODULES if module.count(".") > 1 and room_of(module) == "methods"}
    reached = {
        method: {
            target
            for module in MODULES
            if module == method or module.startswith(f"{method}.")
            for target in reachable(module, graph)
        }
        for method in methods
    }
    above = {module for module in MODULES if room_of(module) not in {"core", "data", "features", "linear", "neural"}}
    from_above = {
        target for module in above if room_of(module) != "methods" for target in reachable_outside(module, graph)
    }
    lonely = {
        module: sorted(by)
        for module in MODULES.keys() - above - from_above
        if module.count(".") > 1 and len(by := {method for method in methods if module in reached[method]}) == 1
    }
    unlisted = {
        module: by
        for module, by in lonely.items()
        if not any(module == listed or module.startswith(f"{listed}.") for listed in SHARED_ALTHOUGH)
    }
    assert unlisted == {}
    for listed in SHARED_ALTHOUGH:
        assert any(module == listed or module.startswith(f"{listed}.") for module in lonely), f"{listed} is shared now"


def reachable_outside(module: str, graph: dict[str, set[str]]) -> set[str]:
    """What a module reaches without passing through a method."""
    cut = {name: set[str]() if room_of(name) == "methods" else targets for name, targets in graph.items()}
    return reachable(module, cut)


@pytest.mark.parametrize("package", sorted(CLOSED))
def test_a_closed_package_says_what_it_exports(package: str) -> None:
    """Its `__init__` has `__all__`, and every `from package import name` of others asks for one of these names."""
    exported = set(getattr(import_module(package), "__all__", ()))
    assert exported, f"{package} exports nothing"
    for module, path in MODULES.items():
        if module == package or module.startswith(f"{package}."):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == package:
                assert {alias.name for alias in node.names} <= exported, f"{module}:{node.lineno}"


def test_no_ability_is_found_by_name() -> None:
    """Methods, models and networks have protocols: whoever asks what one can do uses isinstance."""
    found = {
        module
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr")
    }
    assert found == BY_NAME.keys()


def test_every_room_has_its_rule() -> None:
    assert {room_of(module) for module in MODULES} <= set(MAY_IMPORT)


def test_no_module_has_a_vague_name() -> None:
    assert [name for name in MODULES if VAGUE & set(name.split("."))] == []


def test_import_loads_nothing_heavy() -> None:
    heavy = {"torch", "transformers", "accelerate", "numba", "scipy", "ray"}
    assert run(f"import sys, xmtc; print(*({heavy} & sys.modules.keys()))").split() == []


def test_core_loads_neither_torch_nor_numba() -> None:
    modules = ", ".join(name for name in MODULES if room_of(name) == "core")
    heavy = NEURAL_PACKAGES | {"numba"}
    assert run(f"import sys, {modules}; print(*({heavy} & sys.modules.keys()))").split() == []


HIDE_TORCH = f"""
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {NEURAL_PACKAGES}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""

SPARSE_PATH = """
import xmtc

texts = ["sugar imports from abroad", "quotas for imports of sugar", "fishing boats", "fleets and fishing rights"]
corpus = xmtc.Corpus.from_lists(texts, [["sugar"], ["sugar", "trade"], ["fish"], ["fish"]])
model = xmtc.train(corpus, method="linear", out=sys.argv[1])
loaded = xmtc.load(sys.argv[1])
for one in (model, loaded):
    print(*(named[0][0] for named in one.rank(["sugar", "fishing"], k=2).named(one.labels)))
print(xmtc.evaluate(loaded, corpus)["P@1"])
"""


def test_sparse_path_works_without_torch(tmp_path: Path) -> None:
    lines = run(HIDE_TORCH + SPARSE_PATH, str(tmp_path / "model")).splitlines()
    assert lines == ["sugar fish", "sugar fish", "100.0"]


def test_command_line_starts_without_torch() -> None:
    assert run(HIDE_TORCH + "import xmtc.app.cli; print('started')") == "started\n"


def run(code: str, *arguments: str) -> str:
    """What a new Python prints."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
