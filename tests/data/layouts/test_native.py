from __future__ import annotations

import gzip
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept
from xmtc.data import DataWarning, detect, read_corpus, splits
from xmtc.data.layouts.native import write_native

GOOD = '{"text": "t", "labels": ["a"]}'


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_folder_with_labels_file(tmp_path: Path) -> None:
    write(
        tmp_path / "train.jsonl",
        '{"id": "x", "text": "Zürich\\nlake", "labels": ["b", " a "], "other": 1}',
        "",
        '{"text": "two", "labels": [7, "b", "b"]}',
    )
    write(
        tmp_path / "labels.jsonl",
        '{"label": "b", "name": "Bee", "alternatives": ["B"], "description": "an insect", "parents": ["top"]}',
        '{"label": "top", "name": null}',
        '{"label": 7, "name": "seven", "parents": []}',
    )
    corpus = read_corpus(tmp_path)
    concepts = [Concept("b", "Bee", ("B",), "an insect", ("top",)), Concept("top"), Concept("7", "seven")]
    expected = Corpus.from_lists(["Zürich\nlake", "two"], [["b", " a "], ["7", "b"]], ["x", "1"], concepts)
    assert corpus.fingerprint() == expected.fingerprint()
    assert corpus.labels.ids == (" a ", "7", "b", "top")
    assert corpus.labels.counts.tolist() == [1, 1, 2, 0]
    assert list(corpus.ids) == ["x", "1"]
    assert detect(tmp_path) == "native"
    assert splits(tmp_path) == ["train"]


def test_one_split_is_read_without_the_others(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", "broken")
    with gzip.open(tmp_path / "test.jsonl.gz", "wt") as file:
        file.write(GOOD)
    assert splits(tmp_path) == ["train", "test"]
    assert list(read_corpus(tmp_path, "test").texts) == ["t"]


def test_a_file_is_itself_whatever_the_split(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", GOOD)
    write(tmp_path / "labels.jsonl", "broken")
    assert len(read_corpus(path, "test")) == len(read_corpus(str(path))) == 1
    assert splits(path) == []


MISTAKES = [
    ('{"text": "t", "labels": ["a"]', "not valid JSON (Expecting ',' delimiter, column 30)"),
    ("[" * 100_000, "not valid JSON"),
    ("[1]", "expected a JSON object, got a list"),
    ('"t"', "expected a JSON object, got a string"),
    ('{"labels": ["a"]}', "no key 'text' (there: 'labels')"),
    ('{"Text": "t", "labels": ["a"]}', "Did you mean 'Text'?"),
    ('{"text": "t"}', "no key 'labels'"),
    ('{"text": 3, "labels": ["a"]}', "'text' must be a string, got a whole number"),
    ('{"text": null, "labels": ["a"]}', "'text' must be a string, got null"),
    ('{"text": ["t"], "labels": ["a"]}', "'text' must be a string, got a list"),
    ('{"text": "t", "labels": "a"}', "'labels' must be a list of strings, got a string"),
    ('{"text": "t", "labels": null}', "'labels' must be a list of strings, got null"),
    ('{"text": "t", "labels": {"a": 1}}', "'labels' must be a list of strings, got an object"),
    ('{"text": "t", "labels": [1.0]}', "'labels' must hold strings or whole numbers, got a number with a fraction"),
    ('{"text": "t", "labels": [true]}', "'labels' must hold strings or whole numbers, got true or false"),
    ('{"text": "t", "labels": ["a", null]}', "'labels' must hold strings or whole numbers, got null"),
    ('{"text": "t", "labels": [["a"]]}', "'labels' must hold strings or whole numbers, got a list"),
    ('{"text": "t", "labels": [""]}', "got an empty string"),
    ('{"id": [1], "text": "t", "labels": ["a"]}', "'id' must hold strings or whole numbers, got a list"),
]


@pytest.mark.parametrize(("line", "reason"), MISTAKES)
def test_wrong_lines_are_refused_with_their_number(tmp_path: Path, refusal, line: str, reason: str) -> None:
    path = write(tmp_path / "train.jsonl", GOOD, "", line, GOOD)
    message = refusal(read_corpus, tmp_path)
    assert message.startswith(f"{path}, line 3: ")
    assert reason in message


def test_not_utf8_names_the_line(tmp_path: Path, refusal) -> None:
    path = tmp_path / "train.jsonl"
    path.write_bytes(GOOD.encode() + b'\n{"text": "\xff", "labels": []}\n')
    assert refusal(read_corpus, tmp_path).startswith(f"{path}, line 2: byte 11 of the line (0xff) is not UTF-8")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_empty_file_is_refused(tmp_path: Path, refusal, content: bytes) -> None:
    (tmp_path / "train.jsonl").write_bytes(content)
    assert refusal(read_corpus, tmp_path).startswith(f"{tmp_path / 'train.jsonl'} holds no documents")


def test_no_labelled_document_is_refused(tmp_path: Path, refusal) -> None:
    path = write(tmp_path / "train.jsonl", '{"text": "t", "labels": []}', '{"text": "u", "labels": []}')
    assert refusal(read_corpus, tmp_path).startswith(f"{path}: none of the 2 documents has a label")


def test_cut_gzip_is_refused(tmp_path: Path, refusal) -> None:
    path = tmp_path / "train.jsonl.gz"
    path.write_bytes(gzip.compress(GOOD.encode())[:-9])
    assert refusal(read_corpus, tmp_path).startswith(f"{path}, line 1: the gzip file is cut short")


def test_file_and_packed_file_at_once_are_refused(tmp_path: Path, refusal) -> None:
    write(tmp_path / "train.jsonl", GOOD)
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(GOOD.encode()))
    assert refusal(read_corpus, tmp_path).startswith(f"{tmp_path} holds both train.jsonl and train.jsonl.gz")


def test_odd_documents_are_kept_and_told_in_one_warning(tmp_path: Path) -> None:
    write(
        tmp_path / "train.jsonl",
        '{"id": "x", "text": "", "labels": ["a"]}',
        '{"id": "x", "text": " \\n", "labels": []}',
        '{"id": "x", "text": "t", "labels": []}',
        '{"text": "t", "labels": []}',
    )
    write(tmp_path / "labels.jsonl", '{"label": "a", "parents": ["p", "q"]}', '{"label": "b", "parents": ["p"]}')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        corpus = read_corpus(tmp_path)
    assert [str(warning.message) for warning in caught] == [
        f"{tmp_path / 'train.jsonl'}: kept documents without labels: 3, empty texts: 2, duplicate ids: 2, "
        "parents that the labels file does not describe: 2"
    ]
    assert caught[0].category is DataWarning
    assert len(corpus) == 4
    assert list(corpus.ids) == ["x", "x", "x", "3"]
    assert corpus.labels.names == ("a", "b", "p", "q")


def test_lone_surrogates_become_the_replacement_character(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", r'{"id": "\ud800", "text": "\ud83d\ude00 \udc00", "labels": ["\uD800"]}')
    corpus = read_corpus(tmp_path)
    assert (corpus.ids[0], corpus.texts[0], corpus.labels.ids[0]) == ("\ufffd", "😀 \ufffd", "\ufffd")


def test_a_line_of_50_megabytes_is_read(tmp_path: Path) -> None:
    text = "läng word " * 5_000_000
    write(tmp_path / "train.jsonl", GOOD, json.dumps({"text": text, "labels": ["b"]}, ensure_ascii=False))
    corpus = read_corpus(tmp_path)
    assert int(np.diff(corpus.texts.offsets)[1]) == len(text.encode()) == 55_000_000
    assert corpus.texts[1] == text


def test_eurlex57k_needs_little_more_memory_than_its_text(shared_data: Path) -> None:
    script = (
        "import resource, sys\n"
        "from xmtc.data import read_corpus\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        f"corpus = read_corpus({str(shared_data / 'eurlex57k')!r})\n"
        "print(len(corpus), corpus.labels.n_labels, len(corpus.labels), corpus.texts.buffer.nbytes, peak() - before)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    documents, n_labels, concepts, text_bytes, grown = map(int, result.stdout.split())
    assert (documents, n_labels, concepts) == (45_000, 4_108, 7_201)
    assert result.stderr == ""
    unit = 1 if sys.platform == "darwin" else 1024
    assert grown * unit < 1.3 * text_bytes


def test_data_is_never_overwritten(tmp_path: Path, refusal) -> None:
    (tmp_path / "train.jsonl").write_text("precious")
    corpus = Corpus.from_lists(["t"], [["a"]])
    assert refusal(write_native, [("train", corpus)], tmp_path).startswith(f"{tmp_path} is not empty")
    assert "cannot make the folder" in refusal(write_native, [("train", corpus)], tmp_path / "train.jsonl" / "x")
    assert (tmp_path / "train.jsonl").read_text() == "precious"


def test_features_cannot_be_written_as_texts(tmp_path: Path, refusal) -> None:
    corpus = Corpus.assemble([["a"]], X=sp.csr_matrix(np.ones((1, 2), np.float32)))
    assert "features but no texts" in refusal(write_native, [("train", corpus)], tmp_path)
