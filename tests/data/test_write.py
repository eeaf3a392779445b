from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept
from xmtc.data.read import read_corpus
from xmtc.data.rows import Row
from xmtc.data.write import open_whole, write_native, write_rows

CONCEPTS = [Concept("b", "Bee", ("B", "bee, the"), "an insect\u2028!", ("top",)), Concept("top", "Top"), Concept("u")]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    train = Corpus.from_lists(['a "quote"\n', "zwei \u2028 \x85"], [["b", " a "], ["ü|;,"]], ["x", "y"], CONCEPTS)
    test = Corpus.from_lists(["t"], [["c"]], concepts=[*CONCEPTS, Concept("c", "Sea")])
    write_native(iter([("train", train), ("test", test)]), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["labels.jsonl", "test.jsonl", "train.jsonl"]
    again = read_corpus(tmp_path / "out")
    assert list(again.texts) == list(train.texts)
    assert list(again.ids) == ["x", "y"]
    entries = {concept.id: concept for concept in again.labels.concepts()}
    for concept in train.labels.concepts():
        if concept.id != "u":  # nothing is known of it but its id
            assert entries[concept.id] == concept
    assert again.align(train.labels).Y.toarray().tolist() == train.Y.toarray().tolist()
    assert read_corpus(tmp_path / "out", "test").labels.names[0] == "Sea"


def test_no_labels_file_where_nothing_is_known(tmp_path: Path) -> None:
    write_native([("train", Corpus.from_lists(["t"], [["a"]]))], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["train.jsonl"]


def test_data_is_never_overwritten(tmp_path: Path, refusal) -> None:
    (tmp_path / "train.jsonl").write_text("precious")
    corpus = Corpus.from_lists(["t"], [["a"]])
    assert refusal(write_native, [("train", corpus)], tmp_path).startswith(f"{tmp_path} is not empty")
    assert "cannot make the folder" in refusal(write_native, [("train", corpus)], tmp_path / "train.jsonl" / "x")
    assert (tmp_path / "train.jsonl").read_text() == "precious"


def test_features_cannot_be_written_as_texts(tmp_path: Path, refusal) -> None:
    corpus = Corpus.assemble([["a"]], X=sp.csr_matrix(np.ones((1, 2), np.float32)))
    assert "features but no texts" in refusal(write_native, [("train", corpus)], tmp_path)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, refusal) -> None:
    def rows():
        yield Row(None, "t", ["a"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(tmp_path / "train.jsonl", rows())
    assert list(tmp_path.iterdir()) == []
    with open_whole(tmp_path / "a") as file:
        file.write(b"x")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"x"
    assert refusal(write_rows, tmp_path / "no" / "a", []).startswith(f"cannot write {tmp_path / 'no' / 'a'}")
