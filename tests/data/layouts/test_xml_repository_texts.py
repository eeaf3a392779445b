from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from xmtc.data import detect, read_corpus, splits

LABELS = [{"uid": "B0", "title": "Kettle"}, {"uid": "B1", "title": ""}, {"uid": 7, "title": "Tea pot"}]


def write(folder: Path, name: str, rows: list) -> Path:
    path = folder / f"{name}.json.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def test_titles_and_contents_are_texts_and_labels_have_names(tmp_path: Path) -> None:
    write(tmp_path, "lbl", LABELS)
    rows = [
        {"uid": "d0", "title": "Steel kettle", "content": "boils", "target_ind": [2, 0], "target_rel": [1.0, 1.0]},
        {"uid": "d1", "title": "Cup", "content": "", "target_ind": [1]},
        {"uid": "d2", "title": "Mug", "target_ind": [0]},
    ]
    write(tmp_path, "trn", rows)
    write(tmp_path, "tst", rows[1:])
    assert (detect(tmp_path), splits(tmp_path)) == ("xml-repository-texts", ["train", "test"])
    corpus = read_corpus(tmp_path)
    assert list(corpus.texts) == ["Steel kettle\nboils", "Cup", "Mug"]
    assert list(corpus.ids) == ["d0", "d1", "d2"]
    assert corpus.labels.ids == ("7", "B0", "B1")
    assert corpus.labels.names == ("Tea pot", "Kettle", "B1")
    assert corpus.Y.toarray().tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert len(read_corpus(tmp_path, "test")) == 2


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"title": "t", "target_ind": [3]}, "target_ind 3 is out of range: lbl.json has labels 0 … 2"),
        ({"title": "t", "target_ind": [-1]}, "target_ind -1 is out of range"),
        ({"title": "t", "target_ind": ["0"]}, "'target_ind' must hold whole numbers, got a string"),
        ({"title": "t", "target_ind": 0}, "'target_ind' must be a list, got a whole number"),
        ({"title": 3, "target_ind": [0]}, "'title' must be a string, got a whole number"),
        ({"title": "t"}, "no key 'target_ind'"),
        ([], "expected a JSON object, got a list"),
    ],
)
def test_wrong_documents_are_refused_with_their_line(tmp_path: Path, refusal, row: object, reason: str) -> None:
    write(tmp_path, "lbl", LABELS)
    path = write(tmp_path, "trn", [{"title": "t", "target_ind": [0]}, row])
    message = refusal(read_corpus, tmp_path)
    assert message.startswith(f"{path}, line 2: ")
    assert reason in message


def test_a_label_described_twice_is_refused_with_its_line(tmp_path: Path, refusal) -> None:
    path = write(tmp_path, "lbl", [LABELS[0], LABELS[0]])
    write(tmp_path, "trn", [{"title": "t", "target_ind": [0]}])
    assert refusal(read_corpus, tmp_path).startswith(f"{path}, line 2: label 'B0' is described a second time")
