from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from xmtc.data import DataWarning, detect, read_corpus, splits

OLD = "3 4 30\n12,2 0:0.5 3:1\n 1:2\n2 0:1\n"


@pytest.mark.parametrize("packed", [False, True])
def test_old_layout(tmp_path: Path, packed: bool) -> None:
    if packed:
        (tmp_path / "train.txt.gz").write_bytes(gzip.compress(OLD.encode()))
    else:
        (tmp_path / "train.txt").write_text(OLD)
    (tmp_path / "test.txt").write_text("1 4 30\n29 2:1\n")
    assert (detect(tmp_path), splits(tmp_path)) == ("xml-repository", ["train", "test"])
    with pytest.warns(DataWarning, match="kept documents without labels: 1$"):
        corpus = read_corpus(tmp_path)
    assert corpus.texts is None
    assert corpus.X.dtype == np.float32
    assert corpus.X.toarray().tolist() == [[0.5, 0, 0, 1], [0, 2, 0, 0], [1, 0, 0, 0]]
    assert corpus.labels.ids == ("12", "2")
    assert corpus.Y.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]
    assert corpus.labels.counts.tolist() == [1, 2]
    assert list(corpus.ids) == ["0", "1", "2"]
    assert read_corpus(tmp_path, "test").labels.ids == ("29",)


def test_one_file_of_the_old_layout(tmp_path: Path) -> None:
    (tmp_path / "eurlex_train.txt").write_text("2 4 3\n0 1:1\n1\n")
    with pytest.warns(DataWarning, match="kept documents without features: 1$"):
        corpus = read_corpus(tmp_path / "eurlex_train.txt")
    assert corpus.X.shape == (2, 4)


def write_new(folder: Path, features: str, labels: str) -> None:
    (folder / "trn_X_Xf.txt").write_text(features)
    (folder / "trn_X_Y.txt").write_text(labels)


def test_new_layout(tmp_path: Path) -> None:
    write_new(tmp_path, "3 4\n0:0.5 3:1\n\n2:1\n", "3 30\n2:1 12:1\n5:1 6:0\n\n")
    (tmp_path / "tst_X_Xf.txt.gz").write_bytes(gzip.compress(b"1 4\n0:1\n"))
    (tmp_path / "tst_X_Y.txt.gz").write_bytes(gzip.compress(b"1 30\n7:1\n"))
    assert (detect(tmp_path), splits(tmp_path)) == ("xml-repository-sparse", ["train", "test"])
    with pytest.warns(DataWarning, match="kept documents without labels: 1, documents without features: 1$"):
        corpus = read_corpus(tmp_path)
    assert corpus.X.toarray().tolist() == [[0.5, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert corpus.labels.ids == ("12", "2", "5")
    assert corpus.Y.toarray().tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert read_corpus(tmp_path, "test").X.shape == (1, 4)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("", 1, "expected a header of 3 whole numbers"),
        ("0,1 2:1\n", 1, "expected a header of 3 whole numbers"),
        ("2 4 3\n0 1:1\n3 1:1\n", 3, "label 3 is out of range: the header allows 0 … 2"),
        ("2 4 3\n0 1:1\n0 4:1\n", 3, "index 4 is out of range: the header allows 0 … 3"),
        ("2 4 3\n0 1:1\n0 1:NaN\n", 3, "value 'NaN' is NaN, infinite or too large"),
        ("2 4 3\n0 1:1\n", 2, "the file ends after 1 rows, but its header says 2"),
        ("1 4 3\n0 1:1\n0 1:1\n", 3, "more rows than the 1 of the header"),
    ],
)
def test_wrong_old_files_are_refused_with_their_line(
    tmp_path: Path, refusal, content: str, line: int, reason: str
) -> None:
    path = tmp_path / "train.txt"
    path.write_text(content)
    message = refusal(read_corpus, tmp_path)
    assert message.startswith(f"{path}, line {line}: ")
    assert reason in message


def test_no_labelled_document_is_refused(tmp_path: Path, refusal) -> None:
    (tmp_path / "train.txt").write_text("1 4 3\n 1:1\n")
    assert refusal(read_corpus, tmp_path).startswith(f"{tmp_path / 'train.txt'}: none of the 1 documents has a label")


def test_wrong_new_files_are_refused(tmp_path: Path, refusal) -> None:
    features, labels = tmp_path / "trn_X_Xf.txt", tmp_path / "trn_X_Y.txt"
    write_new(tmp_path, "2 4\n0:1\n1:1\n", "3 5\n0:1\n1:1\n2:1\n")
    reason = "line 4: no features for this row in trn_X_Xf.txt (which has 2 rows); row i of both must be the same"
    assert refusal(read_corpus, tmp_path).startswith(f"{labels}, {reason}")
    write_new(tmp_path, "2 4\n0:1\n1:1\n", "1 5\n0:1\n")
    reason = "line 3: no labels for this row in trn_X_Y.txt (which has 1 rows); row i of both must be the same"
    assert refusal(read_corpus, tmp_path).startswith(f"{features}, {reason}")
    write_new(tmp_path, "2 4\n0:1\n4:1\n", "2 5\n0:1\n1:1\n")
    assert refusal(read_corpus, tmp_path).startswith(f"{features}, line 3: index 4 is out of range")
    write_new(tmp_path, "2 4\n0:1\n1:1\n", "2 5\n0:1\n5:1\n")
    assert refusal(read_corpus, tmp_path).startswith(f"{labels}, line 3: index 5 is out of range")
    write_new(tmp_path, "2 4\n0:1\n1:1\n", "2 5\n0:1\n")
    assert refusal(read_corpus, tmp_path).startswith(f"{labels}, line 2: the file ends after 1 rows")
