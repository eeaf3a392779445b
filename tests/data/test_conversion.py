from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.core.labels import Concept
from xmtc.data import DataWarning, convert, detect, layouts, read_corpus, splits
from xmtc.data.layout import HOLDABLE
from xmtc.data.layouts.native import write_native

LAYOUTS = [entry.open() for entry in layouts.LAYOUTS if entry.writable]
NAMES = [layout.name for layout in LAYOUTS]
WITH_TEXTS = [layout.name for layout in LAYOUTS if "texts" in layout.takes]
WITH_FEATURES = [layout.name for layout in LAYOUTS if "features" in layout.takes]
CONCEPTS = [Concept("b", "Bee", ("the bee",), "an insect", ("top",)), Concept("top", "Top")]


def native(folder: Path, plain: bool) -> Path:
    """A data set with all that the native layout can hold, or with nothing that any layout lacks."""
    if plain:
        train = Corpus.from_lists(['a "q", 1', " zwei \u2028;|", "", "drei"], [["b", "a"], ["ü/1"], ["a"], []])
        dev = Corpus.from_lists(["vier"], [["new"]])
        test = Corpus.from_lists(["five"], [["a", "b"]])
    else:
        train = Corpus.from_lists(["a\r\nb\tc", "z"], [["b", "a"], ["ü/1"]], ["x", "y"], CONCEPTS)
        dev = Corpus.from_lists(["d"], [["new"]], concepts=CONCEPTS)
        test = Corpus.from_lists(["e"], [["a", "b"]], concepts=CONCEPTS)
    write_native({"train": train, "dev": dev, "test": test}.items(), folder)
    return folder


def features(folder: Path) -> Path:
    """A data set of features whose labels are numbers."""
    folder.mkdir()
    for split, n in (("train", 4), ("dev", 2), ("test", 3)):
        X = sp.random(n, 7, 0.5, format="csr", random_state=n, dtype=np.float32)
        rows = [
            f"{','.join(map(str, range(i % 3, 2 * i, 3)))} "
            + " ".join(f"{c}:{v!r}" for c, v in zip(row.indices, map(float, row.data), strict=True))
            for i, row in enumerate(X, start=1)
        ]
        (folder / f"{split}.txt").write_text("\n".join([f"{n} 7 12", *rows]) + "\n")
    return folder


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return function(*arguments, **options)


def contents(folder: Path) -> dict[str, tuple]:
    """Everything that must survive, whatever the layout."""
    found = {}
    for split in splits(folder):
        corpus = quietly(read_corpus, folder, split)
        labels = [sorted(corpus.labels.decode(row.indices)) for row in corpus.Y]
        X = None if corpus.X is None else [(r.indices.tolist(), r.data.tolist()) for r in corpus.X.sorted_indices()]
        found[split] = (None if corpus.texts is None else list(corpus.texts), X, labels)
    return found


@pytest.mark.parametrize("layout", WITH_TEXTS)
def test_texts_there_and_back(tmp_path: Path, layout: str) -> None:
    source = native(tmp_path / "source", plain=True)
    done = quietly(convert, source, tmp_path / "there", layout)
    assert (done.documents, done.n_labels, done.lost) == ({"train": 4, "dev": 1, "test": 1}, 4, [])
    assert detect(tmp_path / "there") == layout
    assert contents(tmp_path / "there") == contents(source)
    assert quietly(convert, tmp_path / "there", tmp_path / "back", "native").lost == []
    for split in ("train", "dev", "test"):
        back, before = (quietly(read_corpus, tmp_path / name, split) for name in ("back", "source"))
        assert back.align(before.labels).fingerprint() == before.fingerprint()


@pytest.mark.parametrize("layout", WITH_FEATURES)
def test_features_there_and_back(tmp_path: Path, layout: str) -> None:
    source = features(tmp_path / "source")
    assert quietly(convert, source, tmp_path / "there", layout).lost == []
    assert detect(tmp_path / "there") == layout
    assert contents(tmp_path / "there") == contents(source)
    assert quietly(convert, tmp_path / "there", tmp_path / "back", "xml-repository").lost == []
    assert contents(tmp_path / "back") == contents(source)


@pytest.mark.parametrize("layout", WITH_TEXTS)
def test_what_a_layout_lacks_is_told_in_one_line(tmp_path: Path, layout: str) -> None:
    source = native(tmp_path / "source", plain=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = convert(source, tmp_path / "there", layout)
    holds = next(other.holds for other in LAYOUTS if other.name == layout)
    has = ["line breaks", "carriage returns", "document ids", "label names", "descriptions", "hierarchy"]
    lacking = [
        kind for kind in has if kind not in holds and not (kind[:8] == "carriage" and "line breaks" not in holds)
    ]
    assert done.lost == [HOLDABLE[kind] for kind in lacking]
    told = [str(warning.message) for warning in caught]
    there = tmp_path / "there"
    assert told == ([f"{there}: the {layout} layout does not hold {', '.join(done.lost)}"] if lacking else [])
    back = quietly(read_corpus, tmp_path / "there")
    assert list(back.ids) == (["x", "y"] if "document ids" in holds else ["0", "1"])
    assert back.texts[0] == {0: "a b c", 1: "a\nb\tc", 2: "a\r\nb\tc"}[len(holds & {"line breaks", "carriage returns"})]
    assert back.labels.names[1] == ("Bee" if "label names" in holds else "b")
    assert bool(back.labels.descriptions[1]) == ("descriptions" in holds)
    assert any(back.labels.parents) == ("hierarchy" in holds)


def test_texts_and_features_together(tmp_path: Path) -> None:
    (tmp_path / "X.trn.txt").write_text("one\ntwo\n")
    sp.save_npz(tmp_path / "Y.trn.npz", sp.csr_matrix([[0.0, 1, 1], [1, 0, 0]]))
    sp.save_npz(tmp_path / "X.trn.npz", sp.csr_matrix([[0.1, 0], [0, 2.0]]))
    for layout in ("xtransformer", "xbert", "pecos"):
        assert convert(tmp_path, tmp_path / layout, layout).lost == []
        assert contents(tmp_path / layout) == contents(tmp_path)
    with pytest.warns(DataWarning, match="does not hold features$"):
        convert(tmp_path, tmp_path / "native", "native")
    with pytest.warns(DataWarning, match="does not hold texts$"):
        convert(tmp_path, tmp_path / "old", "xml-repository")


@pytest.mark.parametrize("layout", NAMES)
def test_the_wrong_kind_of_documents_is_refused(tmp_path: Path, refusal, layout: str) -> None:
    if layout == "pecos":
        return  # takes both
    has, lacks = ("texts", "features") if layout in WITH_FEATURES else ("features", "texts")
    source = native(tmp_path / "s", plain=True) if has == "texts" else features(tmp_path / "s")
    message = quietly(refusal, convert, source, tmp_path / "out", layout)
    assert f"the train split has {has} but no {lacks}, which the {layout} layout needs; choose one of " in message
    assert list((tmp_path / "out").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "s"]  # nothing half-written is left


@pytest.mark.parametrize(
    ("label", "layouts"),
    [
        ("a b", {"attentionxml", "libmultilabel", "annif"}),
        ("a,b", {"aplc"}),
        ("<a>", {"annif"}),
        (" a", {"attentionxml", "libmultilabel", "annif", "aplc", "xbert", "xtransformer", "pecos"}),
        ("a\nb", {"attentionxml", "libmultilabel", "annif", "aplc", "xbert", "xtransformer", "pecos"}),
    ],
)
def test_labels_that_do_not_fit_are_refused(tmp_path: Path, refusal, label: str, layouts: set[str]) -> None:
    write_native([("train", Corpus.from_lists(["t", "u"], [[label, "x"], ["x"]]))], tmp_path / "s")
    for layout in WITH_TEXTS:
        if layout in layouts:
            message = refusal(convert, tmp_path / "s", tmp_path / layout, layout)
            assert message.startswith(f"label {label!r} does not fit: the {layout} layout ")
        else:
            convert(tmp_path / "s", tmp_path / layout, layout)
            assert contents(tmp_path / layout) == contents(tmp_path / "s")


def test_labels_of_the_repository_are_numbers(tmp_path: Path, refusal) -> None:
    sp.save_npz(tmp_path / "X.trn.npz", sp.csr_matrix([[1.0]]))
    sp.save_npz(tmp_path / "Y.trn.npz", sp.csr_matrix([[1.0]]))
    (tmp_path / "output-items.txt").write_text("sugar\n")
    for layout in ("xml-repository", "xml-repository-sparse"):
        message = refusal(convert, tmp_path, tmp_path / "out", layout)
        assert message.startswith(f"label 'sugar' does not fit: the {layout} layout calls labels by their numbers")


@pytest.mark.parametrize(
    ("name", "split"), [("corpus", "train"), ("x-test", "test"), ("valid", "dev"), ("my_train_2", "train")]
)
def test_a_file_becomes_the_split_it_is_called_by(tmp_path: Path, name: str, split: str) -> None:
    (tmp_path / f"{name}.csv").write_text("text,labels\nt,a\n")
    convert(tmp_path / f"{name}.csv", tmp_path / "out", "native")
    assert splits(tmp_path / "out") == [split]


def test_mistakes(tmp_path: Path, refusal) -> None:
    source = native(tmp_path / "s", plain=True)
    with pytest.raises(ConfigError, match=r"^no layout 'parket' to write. Did you mean 'parquet'\?$"):
        convert(source, tmp_path / "out", "parket")
    with pytest.raises(ConfigError, match="Known: native, aplc, annif"):
        convert(source, tmp_path / "out", "hf")
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").touch()
    assert "is not empty" in refusal(convert, source, tmp_path / "mine", "native")
    assert "does not exist" in refusal(convert, tmp_path / "none", tmp_path / "out", "native")
    assert "is not empty" in refusal(convert, source, source, "csv")


def test_a_vocabulary_is_written_with_the_documents(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph")
    (tmp_path / "train.tsv").write_text("t\t<http://x.org/a>\n")
    skos = "@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n"
    (tmp_path / "v.ttl").write_text(skos + '<http://x.org/a> a s:Concept; s:prefLabel "sugar"@en, "Zucker"@de .')
    options = {"labels": tmp_path / "v.ttl", "language": "de"}
    convert(tmp_path / "train.tsv", tmp_path / "out", "native", **options)
    assert read_corpus(tmp_path / "out").labels.names == ("Zucker",)
