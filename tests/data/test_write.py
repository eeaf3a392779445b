from __future__ import annotations

from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept
from xmtc.data import read_corpus
from xmtc.data.layouts.native import write_native

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
