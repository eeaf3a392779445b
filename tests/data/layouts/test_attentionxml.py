from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from xmtc.data import DataWarning, detect, read_corpus, splits


def test_texts_and_labels_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "train_raw_texts.txt").write_bytes("Raw text\u2028one\r\n\r\nthree \x0b\r\n".encode())
    (tmp_path / "train_texts.txt").write_text("never read\n")
    (tmp_path / "train_labels.txt").write_text("b a\n\nc/d\tb\n")
    (tmp_path / "test_texts.txt.gz").write_bytes(gzip.compress(b"token text\n"))
    (tmp_path / "test_labels.txt").write_text("z")
    (tmp_path / "train.txt").write_text("0:1\n")  # features in the same folder are left alone
    assert (detect(tmp_path), splits(tmp_path)) == ("attentionxml", ["train", "test"])
    with pytest.warns(DataWarning, match="kept documents without labels: 1, empty texts: 1$"):
        corpus = read_corpus(tmp_path)
    assert list(corpus.texts) == ["Raw text\u2028one", "", "three \x0b"]
    assert corpus.labels.ids == ("a", "b", "c/d")
    assert corpus.Y.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    assert list(read_corpus(tmp_path, "test").texts) == ["token text"]


@pytest.mark.parametrize(
    ("n_texts", "n_labels", "reason"),
    [
        (5, 3, "train_texts.txt, line 4: no labels for this line in train_labels.txt (which has 3 lines); "),
        (2, 6, "train_labels.txt, line 3: no text for this line in train_texts.txt (which has 2 lines); "),
        (0, 1, "train_labels.txt, line 1: no text for this line in train_texts.txt (which has 0 lines); "),
    ],
)
def test_the_first_line_without_partner_is_refused(
    tmp_path: Path, refusal, n_texts: int, n_labels: int, reason: str
) -> None:
    (tmp_path / "train_texts.txt").write_text("t\n" * n_texts)
    (tmp_path / "train_labels.txt").write_text("a\n" * n_labels)
    assert refusal(read_corpus, tmp_path).startswith(f"{tmp_path}/{reason}")


def test_not_utf8_names_file_and_line(tmp_path: Path, refusal) -> None:
    texts, labels = tmp_path / "train_texts.txt", tmp_path / "train_labels.txt"
    texts.write_bytes(b"t\nt\n")
    labels.write_bytes(b"a\n\xfc\n")
    assert refusal(read_corpus, tmp_path).startswith(f"{labels}, line 2: byte 1 of the line (0xfc) is not UTF-8")
