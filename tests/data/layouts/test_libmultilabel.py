from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from xmtc.data import DataWarning, detect, read_corpus, splits


def test_id_labels_and_text(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text('2286\tE11 ECAT\trecov "recov\n7\t\tunlabelled\n\n8\tM/1\t\n')
    (tmp_path / "valid.txt.gz").write_bytes(gzip.compress("1\tE11\tü\n".encode()))
    assert (detect(tmp_path), splits(tmp_path)) == ("libmultilabel", ["train", "dev"])
    with pytest.warns(DataWarning, match="kept documents without labels: 1, empty texts: 1$"):
        corpus = read_corpus(tmp_path)
    assert corpus.ids == ["2286", "7", "8"]
    assert corpus.texts == ['recov "recov', "unlabelled", ""]
    assert [corpus.labels.decode(row.indices) for row in corpus.Y] == [["E11", "ECAT"], [], ["M/1"]]
    assert read_corpus(tmp_path, "dev").texts == ["ü"]


def test_a_file_without_ids(tmp_path: Path) -> None:
    (tmp_path / "rcv1.txt").write_text("E11 ECAT\tone\nM11\ttwo\n")
    assert detect(tmp_path / "rcv1.txt") == "libmultilabel"
    corpus = read_corpus(tmp_path / "rcv1.txt")
    assert (corpus.ids, corpus.texts) == (["0", "1"], ["one", "two"])
    assert corpus.labels.ids == ("E11", "ECAT", "M11")


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        ("2\t4\t30\n12,2 0:0.5 3:1\n2 0:1\n", "xml-repository"),  # tabs in its header
        ("1 4 30\n12\t0:0.5\n", "xml-repository"),
        ("0\t5\t1984\n1\t5\t2001\n", "libmultilabel"),
    ],
)
def test_repository_files_of_the_same_name_are_told_apart(tmp_path: Path, content: str, layout: str) -> None:
    (tmp_path / "train.txt").write_text(content)
    assert detect(tmp_path) == detect(tmp_path / "train.txt") == layout
    assert len(read_corpus(tmp_path)) >= 1


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("a\tb\tc\na\tb\n", 2, "2 fields, expected the 3 of the first"),
        ("a\tb\tc\na\tb\tc\td\n", 2, "4 fields, expected the 3 of the first"),
        ("a\tb\tc\td\n", 1, "4 fields, expected 3: id, labels and text"),
        ("a\tb\tc\nplain\n", 2, "1 fields, expected the 3 of the first; check for stray or missing tabs"),
        ("3,7\ttext\n", 1, "expected labels separated by white space, got '3,7'; if X-BERT's, add label_vocab.txt"),
    ],
)
def test_wrong_lines_are_refused(tmp_path: Path, refusal, content: str, line: int, reason: str) -> None:
    (tmp_path / "train.txt").write_text(content)
    message = refusal(read_corpus, tmp_path)
    assert message.startswith(f"{tmp_path / 'train.txt'}, line {line}: {reason}")


def test_not_utf8_names_the_line(tmp_path: Path, refusal) -> None:
    (tmp_path / "train.txt").write_bytes(b"a\tb\tc\na\tb\t\xff\n")
    assert f"{tmp_path / 'train.txt'}, line 2: byte 5 of the line (0xff) is not UTF-8" in refusal(read_corpus, tmp_path)


@pytest.mark.parametrize("train", ["1\ta\tt\n", "1 1 1\n0 0:1\n"])
def test_training_never_opens_the_test_split(tmp_path: Path, train: str) -> None:
    (tmp_path / "train.txt").write_text(train)
    (tmp_path / "test.txt").write_bytes(b"\xff\n")
    assert len(read_corpus(tmp_path)) == 1
