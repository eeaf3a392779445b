from __future__ import annotations

from pathlib import Path

import pytest

from xmtc.data import DataWarning, detect, read_corpus, splits


def write(folder: Path, rows: str) -> Path:
    (folder / "train.csv").write_text(rows, encoding="utf-8")
    (folder / "labels.txt").write_text("4313\nüber|all\n2635\n", encoding="utf-8")
    return folder


def test_columns_go_by_position_and_labels_by_commas(tmp_path: Path) -> None:
    write(tmp_path, 'guid,body,target\nx,"a, ""b""\nc","4313, über|all"\ny,two,2635\n')
    (tmp_path / "dev.csv").write_text("a,b,c\n0,three,4313\n")
    assert (detect(tmp_path), splits(tmp_path)) == ("aplc", ["train", "dev"])
    corpus = read_corpus(tmp_path)
    assert corpus.texts == ['a, "b"\nc', "two"]
    assert corpus.ids == ["x", "y"]
    assert [corpus.labels.decode(row.indices) for row in corpus.Y] == [["4313", "über|all"], ["2635"]]
    dev = read_corpus(tmp_path, "dev")
    assert dev.labels.ids == ("4313", "über|all", "2635")  # those without documents follow
    assert dev.labels.n_labels == 1


def test_labels_that_the_list_lacks_are_kept_and_told(tmp_path: Path) -> None:
    write(tmp_path, 'id,text,labels\n0,one,"new,newer"\n1,two,"new,4313"\n2,three,\n')
    with pytest.warns(DataWarning, match="kept documents without labels: 1, labels that labels.txt lacks: 2$"):
        corpus = read_corpus(tmp_path)
    assert corpus.labels.ids[:3] == ("4313", "new", "newer")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("id,text\n0,one\n", "train.csv, line 1: 2 columns; APLC's tables have three"),
        ("id,text,labels\n0,one\n", "train.csv, line 2: 2 fields, but the header has 3"),
        ('id,text,labels\n0,"one,2\n', "train.csv, line 2: malformed CSV"),
        ("id,text,labels\n", "holds no documents"),
        ("", "holds no documents"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, refusal, rows: str, reason: str) -> None:
    assert reason in refusal(read_corpus, write(tmp_path, rows))


def test_a_label_listed_twice_is_refused(tmp_path: Path, refusal) -> None:
    write(tmp_path, "id,text,labels\n0,one,a\n")
    (tmp_path / "labels.txt").write_text("a\nb\na\n")
    assert refusal(read_corpus, tmp_path).startswith(f"{tmp_path / 'labels.txt'}, line 3: label 'a' is listed a second")
