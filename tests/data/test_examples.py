"""Every example of docs/DATA.md is read as it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import xmtc
from tests.data.conftest import PAGE
from xmtc.data import LAYOUTS, detect, read_corpus, splits
from xmtc.data.layout import HOLDABLE

TEXTS = ["Sugar imports from Cuba", "Fishing quotas in the North Sea"]
LABELS = [["import", "sugar"], ["fishery"]]
Example = Callable[[str], Path]


def label_lists(corpus: xmtc.Corpus) -> list[list[str]]:
    return [sorted(corpus.labels.decode(row.indices)) for row in corpus.Y]


@pytest.mark.parametrize(
    ("section", "layout", "ids"),
    [
        ("native", "native", ["d1", "d2"]),
        ("csv, tsv, parquet", "csv", ["d1", "d2"]),
        ("libmultilabel", "libmultilabel", ["d1", "d2"]),
        ("attentionxml", "attentionxml", ["0", "1"]),
        ("xbert", "xbert", ["0", "1"]),
        ("xtransformer", "xtransformer", ["0", "1"]),
        ("pecos", "pecos", ["0", "1"]),
        ("aplc", "aplc", ["d1", "d2"]),
        ("xml-repository-texts", "xml-repository-texts", ["d1", "d2"]),
    ],
)
def test_layouts_with_texts_tell_the_same(example: Example, section: str, layout: str, ids: list[str]) -> None:
    folder = example(section)
    assert (detect(folder), splits(folder)) == (layout, ["train"])
    corpus = read_corpus(folder)
    assert corpus.texts == TEXTS
    assert corpus.ids == ids
    assert label_lists(corpus) == LABELS


@pytest.mark.parametrize("layout", ["xml-repository", "xml-repository-sparse"])
def test_layouts_with_features(example: Example, layout: str) -> None:
    folder = example(layout)
    assert detect(folder) == layout
    corpus = read_corpus(folder)
    assert corpus.texts is None
    np.testing.assert_allclose(corpus.X.toarray(), [[0.6, 0.8, 0], [0, 0, 1]], rtol=1e-6)
    assert label_lists(corpus) == [["1", "2"], ["0"]]


def test_pecos_has_features_too(example: Example) -> None:
    corpus = read_corpus(example("pecos"))
    np.testing.assert_allclose(corpus.X.toarray(), [[0.6, 0.8, 0], [0, 0, 1]], rtol=1e-6)
    assert corpus.X.dtype == np.float32


def test_native_labels(example: Example) -> None:
    labels = read_corpus(example("native")).labels
    assert labels.names == ("fishery", "import", "Sugar", "Food")
    assert labels.parents == ((), (), (3,), ())
    assert labels.alternatives[2] == ("beet sugar",)


def test_annif_with_its_vocabulary(example: Example, tmp_path: Path) -> None:
    folder = example("annif")
    assert (detect(folder), detect(folder / "train.tsv")) == ("annif", "annif")
    assert read_corpus(folder).labels.names[0] == "http://example.org/fishery"
    (vocabulary,) = re.findall(r"^`labels.ttl`:\n\n```turtle\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (folder / "labels.ttl").write_text(vocabulary)
    for data in (folder, folder / "train.tsv"):
        corpus = read_corpus(data)
        assert corpus.texts == TEXTS
        assert label_lists(corpus) == [[f"http://example.org/{name}" for name in names] for names in LABELS]
        assert corpus.labels.names == ("fishery", "http://example.org/import", "sugar", "food")  # no molasses
        assert corpus.labels.parents == ((3,), (), (3,), ())
        assert (corpus.labels.alternatives[2], corpus.labels.descriptions[2]) == (("beet sugar",), "Sweet.")


def test_every_layout_has_a_section_and_a_line_in_each_table() -> None:
    names = {entry.name for entry in LAYOUTS}
    first, second = (set(re.findall(r"`([a-z-]+)`", "".join(table))) for table in (_column(0), _column(1)))
    assert first == names | {"hf"}
    assert second == {entry.name for entry in LAYOUTS if entry.writable}
    for heading in re.findall(r"\]\(#(.+?)\)", PAGE):
        titles = [title.replace(",", "").replace(" ", "-").lower() for title in re.findall(r"^## (.+)$", PAGE, re.M)]
        assert heading in titles


def _column(table: int) -> list[str]:
    tables = re.findall(r"^\| Layout .+?\n\|---.+?\n((?:\|.+\n)+)", PAGE, re.MULTILINE)
    return [line.split("|")[1] for line in tables[table].splitlines()]


def test_what_layouts_hold_is_told_rightly() -> None:
    (header, rows) = re.findall(r"^\| Layout \| (texts .+)\n\|---.+\n((?:\|.+\n)+)", PAGE, re.MULTILINE)[0]
    kinds = [kind.strip() for kind in header.strip("|").split("|")]
    assert set(kinds) == HOLDABLE.keys() - {"carriage returns"}
    told = {}
    for row in rows.splitlines():
        name, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        told[name.strip("`")] = {kind for kind, cell in zip(kinds, cells, strict=True) if cell == "yes"}
    assert told == {entry.name: set(entry.open().holds) - {"carriage returns"} for entry in LAYOUTS if entry.writable}
