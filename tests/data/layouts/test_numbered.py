"""X-BERT, X-Transformer and PECOS: what they share, and what each refuses."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.data import DataWarning, detect, read_corpus, splits
from xmtc.data.layouts.numbered import read_matrix, read_names, read_numbers

Y = sp.csr_matrix([[0.0, 1, 1], [1, 0, 0]])
X = sp.csr_matrix([[0.5, 0], [0, 2.0]])


def xtransformer(folder: Path) -> Path:
    (folder / "train_raw_texts.txt").write_bytes(b'one "quoted\ttext\ntwo\n')
    (folder / "label_map.txt").write_bytes("Käse\nfish\nsugar\n".encode("iso-8859-1"))
    sp.save_npz(folder / "Y.trn.npz", Y)
    sp.save_npz(folder / "X.trn.npz", X.tocsc())
    return folder


def pecos(folder: Path) -> Path:
    (folder / "X.trn.txt").write_text("one\ntwo\n")
    sp.save_npz(folder / "Y.trn.npz", Y)
    return folder


def xbert(folder: Path) -> Path:
    (folder / "mlc2seq").mkdir()
    (folder / "mlc2seq" / "train.txt").write_text("1,2\tone\ttab\n0\ttwo\n")
    (folder / "mlc2seq" / "label_vocab.txt").write_text("1\tKäse\n1\tfish\n1\tsugar\n", encoding="utf-8")
    return folder


def lists(corpus) -> list[list[str]]:
    return [corpus.labels.decode(row.indices) for row in corpus.Y]


def test_xtransformer_reads_raw_lines_and_latin_names(tmp_path: Path) -> None:
    xtransformer(tmp_path)
    (tmp_path / "test_raw_texts.txt").write_text("three\n")
    sp.save_npz(tmp_path / "Y.tst.npz", sp.csr_matrix([[0.0, 0, 1]]))
    assert (detect(tmp_path), splits(tmp_path)) == ("xtransformer", ["train", "test"])
    corpus = read_corpus(tmp_path)
    assert corpus.texts == ['one "quoted\ttext', "two"]
    assert corpus.labels.ids == ("Käse", "fish", "sugar")
    assert lists(corpus) == [["fish", "sugar"], ["Käse"]]
    assert corpus.X.toarray().tolist() == [[0.5, 0], [0, 2]]
    test = read_corpus(tmp_path, "test")
    assert (test.X, lists(test)) == (None, [["sugar"]])
    (tmp_path / "label_map.txt").write_text("Käse\nfish\nsugar\n", encoding="utf-8")
    assert read_corpus(tmp_path).labels.ids[0] == "Käse"


def test_xbert_folder_its_lines_and_one_file(tmp_path: Path) -> None:
    xbert(tmp_path)
    (tmp_path / "mlc2seq" / "valid.txt.gz").write_bytes(gzip.compress(b"2\tdev\n"))
    sp.save_npz(tmp_path / "X.trn.npz", X)
    sp.save_npz(tmp_path / "Y.trn.npz", Y)
    sp.save_npz(tmp_path / "L.pifa.npz", Y)
    for data in (tmp_path, tmp_path / "mlc2seq", tmp_path / "mlc2seq" / "train.txt"):
        assert detect(data) == "xbert"
        corpus = read_corpus(data)
        assert corpus.texts == ["one\ttab", "two"]
        assert lists(corpus) == [["fish", "sugar"], ["Käse"]]
        assert corpus.X.toarray().tolist() == [[0.5, 0], [0, 2]]
    assert splits(tmp_path) == ["train", "dev"]
    assert lists(read_corpus(tmp_path, "dev")) == [["sugar"]]
    (tmp_path / "mlc2seq" / "label_vocab.txt").unlink()
    assert lists(read_corpus(tmp_path)) == [["1", "2"], ["0"]]


@pytest.mark.parametrize("truth", ["Y.trn.npz", "Y.trn.txt"])
def test_pecos_with_texts_or_features_alone(tmp_path: Path, truth: str) -> None:
    pecos(tmp_path)
    if truth == "Y.trn.txt":
        (tmp_path / "Y.trn.npz").unlink()
        (tmp_path / truth).write_text("1:0.25,2::3,0:0\n0\n")
    assert (detect(tmp_path), splits(tmp_path)) == ("pecos", ["train"])
    assert lists(read_corpus(tmp_path)) == [["1", "2"], ["0"]]
    (tmp_path / "output-items.txt").write_text("Käse\nfish\nsugar\n", encoding="utf-8")
    assert lists(read_corpus(tmp_path)) == [["fish", "sugar"], ["Käse"]]
    (tmp_path / "X.trn.txt").unlink()
    (tmp_path / "tfidf-attnxml").mkdir()
    sp.save_npz(tmp_path / "tfidf-attnxml" / "X.trn.npz", X)
    corpus = read_corpus(tmp_path)
    assert (detect(tmp_path), corpus.texts) == ("pecos", None)
    assert corpus.X.toarray().tolist() == [[0.5, 0], [0, 2]]
    assert lists(corpus) == [["fish", "sugar"], ["Käse"]]


def test_relevances_of_zero_are_no_labels_and_texts_that_labels_share_stay_apart(tmp_path: Path) -> None:
    pecos(tmp_path)
    matrix = Y.copy()
    matrix.data[0] = 0
    sp.save_npz(tmp_path / "Y.trn.npz", matrix)
    (tmp_path / "output-items.txt").write_text("a\nb\na\n")
    with pytest.warns(DataWarning, match="kept label texts that several labels share: 1$"):
        corpus = read_corpus(tmp_path)
    assert lists(corpus) == [["a #2"], ["a #0"]]
    assert corpus.labels.names == ("a", "a", "b")


class Evil:
    def __reduce__(self):
        return (exec, ("raise SystemExit('pickle was run')",))


def save(path: Path, **parts) -> None:
    np.savez(path, **parts)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_bytes(b"oops"), "not a sparse matrix"),
        (lambda path: path.write_bytes(b""), "not a sparse matrix"),
        (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(40)), "not a sparse matrix"),
        (lambda path: save(path, a=np.ones(3)), "not a sparse matrix"),
        (lambda path: save(path, format=np.array([Evil()], dtype=object)), "not a sparse matrix"),
        (
            lambda path: save(
                path, format=b"csr", shape=[1, 2], indptr=[0, 1], indices=[0], data=np.array([Evil()], dtype=object)
            ),
            "not a sparse matrix",
        ),
        (
            lambda path: save(path, format=b"csc", shape=[2, 2], indptr=[0, 1, 2], indices=[0, 99], data=[1.0, 1]),
            "not a sparse matrix",
        ),
        (
            lambda path: save(path, format=b"csr", shape=[2, 2], indptr=[0, 1, 2], indices=[0, -7], data=[1.0, 1]),
            "not a sparse matrix",
        ),
        (
            lambda path: save(path, format=b"csr", shape=[1, 1], indptr=[0, 1], indices=[0], data=np.array(["x"])),
            "",
        ),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path: Path, refusal, make, reason: str) -> None:
    path = tmp_path / "Y.trn.npz"
    make(path)
    message = refusal(read_matrix, path)
    assert message.startswith(f"{path}: ")
    assert reason in message


def test_a_cut_matrix_is_refused(tmp_path: Path, refusal) -> None:
    path = tmp_path / "Y.trn.npz"
    sp.save_npz(path, sp.random(200, 200, 0.5, format="csr"))
    raw = path.read_bytes()
    for length in (100, len(raw) // 2, len(raw) - 10):
        path.write_bytes(raw[:length])
        assert "not a sparse matrix" in refusal(read_matrix, path)
    damaged = bytearray(raw)
    damaged[len(raw) // 3] ^= 0xFF
    path.write_bytes(damaged)
    assert str(path) in refusal(read_matrix, path)
    assert "cannot read" in refusal(read_matrix, tmp_path / "none.npz")


def test_a_matrix_of_another_format_is_read(tmp_path: Path) -> None:
    for format in ("csr", "csc", "coo", "bsr", "dia"):
        sp.save_npz(tmp_path / "m.npz", X.asformat(format))
        assert (read_matrix(tmp_path / "m.npz") != X).nnz == 0
    raw = io.BytesIO()
    sp.save_npz(raw, X, compressed=False)
    assert zipfile.is_zipfile(raw)


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("train_raw_texts.txt", "one\n", "ends after line 1, but Y.trn.npz has 2 rows"),
        (
            "train_raw_texts.txt",
            "one\ntwo\nthree\n",
            ", line 3: no labels for this line in Y.trn.npz (which has 2 rows)",
        ),
        ("label_map.txt", "a\nb\n", "has 3 columns, but label_map.txt names 2 labels"),
        ("label_map.txt", "", "is empty; it must contain one label per line"),
        ("X.trn.npz", sp.csr_matrix(np.ones((3, 1))), "has 3 rows, but Y.trn.npz has 2 documents"),
        ("X.trn.npz", sp.csr_matrix([[1.0], [np.nan]]), ", row 2: a feature is NaN"),
        ("Y.trn.npz", sp.csr_matrix([[1.0, 0, 0], [-1.0, 0, 0]]), ", row 2: a label has the relevance -1.0"),
        ("Y.trn.npz", sp.csr_matrix((2, 3)), "none of the 2 documents has a label"),
    ],
)
def test_wrong_xtransformer_folders_are_refused(tmp_path: Path, refusal, file: str, content, reason: str) -> None:
    xtransformer(tmp_path)
    if isinstance(content, str):
        (tmp_path / file).write_text(content)
    else:
        sp.save_npz(tmp_path / file, content)
    message = refusal(read_corpus, tmp_path)
    assert str(tmp_path) in message
    assert reason in message


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("mlc2seq/train.txt", "1\tone\nno tab\n", "train.txt, line 2: no tab in this line"),
        ("mlc2seq/train.txt", "1\tone\n3\ttwo\n", "train.txt, line 2: label 3 is out of range: the labels are 0 … 2"),
        ("mlc2seq/train.txt", "1\tone\nfish\ttwo\n", "train.txt, line 2: label 'fish' is not a whole number"),
        ("mlc2seq/train.txt", "1:x\tone\n", "train.txt, line 1: relevance 'x' of label 1 is not a number"),
        ("mlc2seq/label_vocab.txt", "1\ta\nb\n", "label_vocab.txt, line 2: expected a count, a tab"),
        ("Y.trn.npz", sp.csr_matrix(np.ones((3, 3))), "Y.trn.npz has 3 rows, but train.txt has 2 documents"),
        ("X.trn.npz", sp.csr_matrix(np.ones((1, 3))), "X.trn.npz has 1 rows, but train.txt has 2 documents"),
    ],
)
def test_wrong_xbert_folders_are_refused(tmp_path: Path, refusal, file: str, content, reason: str) -> None:
    xbert(tmp_path)
    if isinstance(content, str):
        (tmp_path / file).write_text(content)
    else:
        sp.save_npz(tmp_path / file, content)
    assert reason in refusal(read_corpus, tmp_path)


def test_wrong_pecos_lines_are_refused(tmp_path: Path, refusal) -> None:
    pecos(tmp_path)
    (tmp_path / "Y.trn.npz").unlink()
    (tmp_path / "output-items.txt").write_text("a\nb\n")
    (tmp_path / "Y.trn.txt").write_text("0\n2\n")
    assert f"{tmp_path / 'Y.trn.txt'}, line 2: label 2 is out of range" in refusal(read_corpus, tmp_path)
    (tmp_path / "Y.trn.txt").unlink()
    message = refusal(read_corpus, tmp_path)
    assert message == f"{tmp_path} holds X.trn.txt but not Y.trn.npz; add that: the pecos layout needs both"


def test_half_an_xtransformer_folder_says_what_is_missing(tmp_path: Path, refusal) -> None:
    xtransformer(tmp_path)
    (tmp_path / "X.trn.npz").unlink()
    (tmp_path / "Y.trn.npz").unlink()
    message = refusal(read_corpus, tmp_path)
    assert message.startswith(f"{tmp_path} holds train_raw_texts.txt")
    (tmp_path / "Y.trn.npz").touch()
    (tmp_path / "label_map.txt").unlink()
    message = refusal(read_corpus, tmp_path)
    assert (
        "train_raw_texts.txt and Y.trn.npz but not label_map.txt; add that: the xtransformer layout needs all"
        in message
    )


def test_numbers_and_names(tmp_path: Path, refusal) -> None:
    def mistake(reason: str) -> ValueError:
        return ValueError(reason)

    assert read_numbers("", 3, mistake) == []
    assert read_numbers("2,0", 3, mistake) == [2, 0]
    assert read_numbers("2:0.5,0::0, 1::1", None, mistake) == [2, 1]
    for wrong in ("-1", "1.5", "²", "1:nan", "1:-2", "9" * 30):
        with pytest.raises(ValueError):
            read_numbers(wrong, 3, mistake)
    assert read_names(tmp_path, "label_map.txt").ids is None
