from __future__ import annotations

import hashlib
import importlib
import json
from pathlib import Path

import pytest

from xmtc.data import pydocs, read_corpus, splits
from xmtc.data.pydocs import build_pydocs

SOURCES = {
    "__init__.py": '"""The package."""',
    "tests/test_it.py": '"""Never read."""',
    "conftest.py": '"""Never read."""',
    "broken.py": 'print "python 2"  """x"""',
    "sub/__init__.py": "",
    "sub/deep/__init__.py": "",
    "sub/deep/deeper.py": '''
def readHTTPServer_csv(self, path, /, a, *args, b=1, **kwargs):
    """Read a file.

    More
    prose.

    Parameters
    ----------
    path : str
        Not in the text.
    """
    def inner(x):
        """Not a document."""

class Thing:
    """A thing.

    Args:
        size: not in the text
    """
    def __init__(self, size): ...
    async def method(self, n):
        """Do it. :param is only a section at a line's start.

        :param n: not in the text
        """
    @classmethod
    def make(cls, colour):
        """Equal words."""
    if True:
        def no_prose(self):
            """
            Returns:
                nothing
            """
''',
    "other.py": 'def make(shade):\n    """Equal\n    words."""\n',
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, source in SOURCES.items():
        path = tmp_path / "site" / "toypackage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    info = tmp_path / "site" / "toy_dist-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-dist\nVersion: 1.2\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setitem(pydocs.PACKAGES, "toypackage", "toy-dist")
    return "toypackage"


def test_documents_and_labels(tmp_path: Path, package: str) -> None:
    summary = build_pydocs(tmp_path / "out", [package])
    rows = {}
    for split in splits(tmp_path / "out"):
        for line in (tmp_path / "out" / f"{split}.jsonl").read_text().splitlines():
            row = json.loads(line)
            rows[row["id"]] = (row["text"], row["labels"])
    deep = ["toypackage", "toypackage.sub", "toypackage.sub.deep"]
    place = "toypackage.sub.deep.deeper"
    assert rows == {
        "toypackage": ("toypackage. The package.", ["toypackage"]),
        "toypackage.other.make": (
            "make. Equal words.",
            ["arg:colour", "arg:shade", *deep[:1], "toypackage.other", *deep[1:]],
        ),
        f"{place}.readHTTPServer_csv": (
            "read HTTP Server csv. Read a file. More prose.",
            ["arg:a", "arg:args", "arg:b", "arg:kwargs", "arg:path", *deep],
        ),
        f"{place}.Thing": ("Thing. A thing.", ["arg:size", *deep]),
        f"{place}.Thing.method": ("method. Do it. :param is only a section at a line's start.", ["arg:n", *deep]),
    }
    assert summary.versions == {package: "1.2"}
    assert sum(summary.documents.values()) == 5
    labels = [json.loads(line) for line in (tmp_path / "out" / "labels.jsonl").read_text().splitlines()]
    assert {"label": "arg:size", "name": "argument size"} in labels
    assert {"label": deep[2], "name": deep[2], "parents": [deep[1]]} in labels
    assert summary.labels == len(labels) == 13


def test_same_sources_same_bytes(tmp_path: Path, package: str) -> None:
    calls = []
    one = build_pydocs(tmp_path / "one", [package], progress=lambda *done: calls.append(done))
    two = build_pydocs(tmp_path / "two", [package])
    assert one == two
    assert calls[-1] == (len(calls), len(calls))
    digest = hashlib.sha256()
    for name in ("train.jsonl", "test.jsonl", "labels.jsonl"):
        content = (tmp_path / "one" / name).read_bytes()
        assert content == (tmp_path / "two" / name).read_bytes()
        digest.update(content)
    about = json.loads((tmp_path / "one" / "about.json").read_text())
    assert about["sha256"] == digest.hexdigest() == one.sha256
    assert about["versions"] == one.versions


def test_installed_packages_make_a_usable_corpus(tmp_path: Path) -> None:
    summary = build_pydocs(tmp_path / "out", ["numpy", "scipy"])
    assert splits(tmp_path / "out") == ["train", "test"]
    train, test = read_corpus(tmp_path / "out"), read_corpus(tmp_path / "out", "test")
    assert {"train": len(train), "test": len(test)} == summary.documents
    assert len(train) > 3 * len(test) > 1500
    modules = [{_module_of(id) for id in corpus.ids} for corpus in (train, test)]
    assert not modules[0] & modules[1]
    assert min(map(len, modules)) > 50
    assert not set(train.texts) & set(test.texts)
    kept, held = (
        {_module_of(id) for id in part.ids} for part in read_corpus(tmp_path / "out", group="group").split(0.1)
    )
    assert not kept & held
    assert len(set(train.texts)) == len(train)
    sparse = train.labels.position["scipy.sparse"]
    assert train.labels.decode(train.labels.parents[sparse]) == ["scipy"]
    assert train.labels.counts[train.labels.position["arg:axis"]] > 100


def _module_of(id: str) -> str:
    """The longest prefix of an id that is a module."""
    parts = id.split("#")[0].split(".")
    root = Path(importlib.import_module(parts[0]).__file__).parent
    for length in range(len(parts), 0, -1):
        place = root.joinpath(*parts[1:length])
        if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file():
            return ".".join(parts[:length])
    raise AssertionError(f"{id} lies in no module")


def test_unknown_and_missing_packages_are_refused(tmp_path: Path, refusal, monkeypatch) -> None:
    assert refusal(build_pydocs, tmp_path / "out", ["nunpy"]).endswith("'nunpy'. Did you mean 'numpy'?")
    monkeypatch.setitem(pydocs.PACKAGES, "notthere", "notthere")
    assert "is not installed" in refusal(build_pydocs, tmp_path / "out", ["notthere"])
    assert not (tmp_path / "out").exists()
