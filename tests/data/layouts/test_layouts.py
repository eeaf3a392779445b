"""The registry says what the modules of layouts hold, and imports none of them before it must."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import xmtc.data.layouts as package
from xmtc.data.layouts import LAYOUTS, Entry

ORDER = [
    "native",
    "aplc",
    "annif",
    "csv",
    "tsv",
    "parquet",
    "xlsx",
    "sqlite",
    "annif-fulltext",
    "attentionxml",
    "xtransformer",
    "xbert",
    "pecos",
    "xml-repository-texts",
    "xml-repository-sparse",
    "libmultilabel",
    "xml-repository",
]


def test_layouts_have_names_of_their_own_and_their_order() -> None:
    names = [entry.name for entry in LAYOUTS]
    assert len(set(names)) == len(names)
    assert names == ORDER  # what shares its file names with another is found first


@pytest.mark.parametrize("entry", LAYOUTS, ids=lambda entry: entry.name)
def test_an_entry_agrees_with_its_module(entry: Entry) -> None:
    layout = entry.open()
    assert layout.name == entry.name
    assert (layout.write is not None) == entry.writable


def test_every_layout_of_the_folder_is_registered() -> None:
    modules = [import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__)]
    written = [layout.name for module in modules for layout in vars(module).get("LAYOUTS", ())]
    assert sorted(written) == sorted(entry.name for entry in LAYOUTS)


LOADED = "print(*sorted(name for name in sys.modules if name.startswith('xmtc.data')))"
TRAIN = """
import sys
import xmtc

texts = ["sugar imports", "sugar quotas", "fishing boats", "fishing rights"]
xmtc.train(xmtc.Corpus.from_lists(texts, [["sugar"], ["sugar"], ["fish"], ["fish"]]), "linear")
"""


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        (TRAIN, "xmtc.data xmtc.data.read"),
        ("import sys\nfrom xmtc.data import LAYOUTS, read_corpus\n", "xmtc.data xmtc.data.layouts xmtc.data.read"),
    ],
    ids=["training", "names"],
)
def test_no_layout_is_imported_before_data_is_read(code: str, loaded: str) -> None:
    done = subprocess.run([sys.executable, "-c", code + LOADED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == loaded
