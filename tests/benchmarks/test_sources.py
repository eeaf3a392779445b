"""The hash of the sources that a result measures: what changes it, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.framework import sources
from benchmarks.framework.sources import hash_sources, is_current, method_roots, record_sources

FILES = {
    "__init__.py": "import xmtc.methods.other\n",
    "methods/__init__.py": "",
    "methods/one/__init__.py": "from xmtc.methods.one.method import train\n",
    "methods/one/method.py": "def train():\n    from ...core import numbers\n    return numbers.ONE\n",
    "methods/one/late.py": "NAME = 'xmtc.core.named'\n",
    "methods/other.py": "x = 1\n",
    "core/__init__.py": "",
    "core/numbers.py": "ONE = 1\n",
    "core/named.py": "y = 1\n",
    "core/metrics.py": "z = 1\n",
}
ROOTS = ["xmtc.methods.one"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write(tmp_path / "first" / "xmtc", monkeypatch)


def write(folder: Path, monkeypatch: pytest.MonkeyPatch, **changed: str) -> Path:
    """Write the sources; a changed file is named by its path with _ for / and without .py."""
    names = {name.replace("/", "_").removesuffix(".py"): name for name in FILES}
    for name, text in {**FILES, **{names[key]: text for key, text in changed.items()}}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(sources, "SOURCES", folder)
    return folder


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"methods_one_method": FILES["methods/one/method.py"].replace("ONE", "ONE + 0")}, True),
        ({"core_numbers": "ONE = 2\n"}, True),  # imported inside a function, by a relative name
        ({"core_named": "y = 2\n"}, True),  # named in a string
        ({"methods_other": "x = 2\n"}, False),  # only the package's front door names it
        ({"core_numbers": '"""Numbers."""\n\n# the first of them\nONE = (\n    1\n)\n'}, False),
        (
            {"methods_one_method": FILES["methods/one/method.py"].replace(":\n    f", ':\n    """Train."""\n    f')},
            False,
        ),
    ],
)
def test_what_the_hash_covers(
    home: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], differs: bool
) -> None:
    before = hash_sources(ROOTS)
    noted = {"sources": record_sources(ROOTS)}
    assert is_current(noted)
    write(home.parents[1] / "second" / "xmtc", monkeypatch, **changed)
    assert (hash_sources(ROOTS) != before) is differs
    assert is_current(noted) is not differs


def test_results_without_a_hash_are_of_older_code(home: Path) -> None:
    assert not is_current({})
    assert method_roots("one") == ["xmtc.methods.one", "xmtc.core.metrics"]
    assert hash_sources(method_roots("one")) != hash_sources(ROOTS)


def test_the_library_itself_is_read() -> None:
    linear, neural = (hash_sources(method_roots(method)) for method in ("linear", "lightxml"))
    assert linear != neural
    assert linear == hash_sources(method_roots("linear"))
