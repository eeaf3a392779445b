from __future__ import annotations

import json
import warnings
from pathlib import Path

from xmtc.data import describe
from xmtc.data.description import Hierarchy


def write(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_figures_of_a_folder(tmp_path: Path) -> None:
    train = [{"id": str(i), "text": f"text {i}", "labels": ["many", *(["few"] if i < 20 else [])]} for i in range(101)]
    train += [{"id": str(1000 + i), "text": "same here\u00a0twice", "labels": ["medium"]} for i in range(21)]
    train += [{"id": "0", "text": " ", "labels": []}]
    write(tmp_path / "train.jsonl", train)
    write(tmp_path / "test.jsonl", [{"text": "text 5", "labels": ["few", "p"]}, {"text": "new", "labels": ["x"]}])
    parents = [{"label": "few", "parents": ["p"]}, {"label": "p", "parents": ["q"]}, {"label": "lone"}]
    write(tmp_path / "labels.jsonl", parents)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = describe(tmp_path)
    assert found.layout == "native"
    first, second = found.splits["train"], found.splits["test"]
    assert (first.documents, first.labels, first.labels_per_document) == (123, 3, 142 / 123)
    assert first.words_per_document == (101 * 2 + 21 * 3) / 123
    assert (first.empty_texts, first.without_labels, first.duplicate_ids, first.duplicate_texts) == (1, 1, 1, 20)
    assert (first.unseen_labels, first.texts_in_train, first.features) == (None, None, None)
    assert (second.documents, second.labels, second.unseen_labels, second.texts_in_train) == (2, 3, 2, 1)
    assert found.bins == {"few": 1, "medium": 1, "many": 1}
    assert found.zipf == [(1, 101), (2, 21), (3, 20)]
    assert found.hierarchy == Hierarchy(concepts=6, roots=4, depth=3)


def test_figures_of_a_file_of_features(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("2 5 3\n0 1:1\n 1:1\n")
    found = describe(tmp_path / "a.txt")
    assert list(found.splits) == ["a.txt"]
    figures = found.splits["a.txt"]
    assert (figures.documents, figures.features, figures.words_per_document, figures.without_labels) == (2, 5, None, 1)
    assert found.hierarchy is None


def test_zipf_ranks_are_spaced_by_ratio(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", [{"text": "t", "labels": [str(i) for i in range(5000 // n)]} for n in range(1, 50)])
    ranks = [rank for rank, _ in describe(tmp_path).zipf]
    assert (ranks[0], ranks[-1]) == (1, 5000)
    assert 20 < len(ranks) <= 32


def test_figures_of_the_shared_data_sets(shared_data: Path) -> None:
    tate = describe(shared_data / "tate")
    assert tate.splits["test"].unseen_labels == 2_069
    assert tate.bins["few"] == 13_037
    assert tate.hierarchy is not None
    assert tate.hierarchy.depth == 3
