from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import numpy as np
import pytest

from xmtc.data import iter_documents, iter_features


def flat(source: object, batch: int = 1024) -> list[tuple[str, str]]:
    return [pair for some in iter_documents(source, batch) for pair in zip(some.ids, some.texts, strict=True)]


def test_plain_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b'one\r\n\r\n{"text": 3\x0b\n'))
    assert flat(tmp_path / "a.txt.gz") == [("0", "one"), ("1", ""), ("2", '{"text": 3\x0b')]


def test_json_lines_need_no_labels(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n\n{"id": 7, "text": "two", "labels": 3}\n{"text": ""}\n')
    assert flat(str(tmp_path / "a.jsonl")) == [("0", "one"), ("7", "two"), ("2", "")]


def test_tables_need_no_labels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text\n"one\n1"\n""\nthree\n')
    assert flat(tmp_path / "a.csv") == [("0", "one\n1"), ("1", ""), ("2", "three")]
    (tmp_path / "a.tsv").write_text("id\ttext\nx\t[one\n\ttwo\n")
    assert flat(tmp_path / "a.tsv") == [("x", "[one"), ("1", "two")]
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"text": ["one", "two"], "labels": [None, None]}), tmp_path / "a.parquet")
    assert flat(tmp_path / "a.parquet") == [("0", "one"), ("1", "two")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'\n \n{"text": "a"}\n{"id": "x", "text": "b"}', [("0", "a"), ("x", "b")]),
        (b"\n\nplain\n{}\n", [("0", ""), ("1", ""), ("2", "plain"), ("3", "{}")]),
        (b"\n\n", [("0", ""), ("1", "")]),
        (b"", []),
    ],
)
def test_standard_input_tells_its_format(monkeypatch, content: bytes, expected: list) -> None:
    assert flat(io.BytesIO(content)) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert flat("-") == expected


def test_mistakes_in_standard_input_name_the_line(monkeypatch, refusal) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'\n{"text": "a"}\n{"txt": "b"}\n')))
    assert refusal(flat, "-").startswith("standard input, line 3: no key 'text' (there: 'txt'). Did you mean 'txt'?")


def test_batches_are_bounded_and_lazy(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{i}\n" for i in range(10)) + "x\n")
    assert [len(some.ids) for some in iter_documents(tmp_path / "a.txt", batch=4)] == [4, 4, 3]
    (tmp_path / "b.jsonl").write_text('{"text": "good"}\nbroken\n')
    assert next(iter_documents(tmp_path / "b.jsonl", batch=1)).texts == ["good"]
    long = "y" * (1 << 24)
    (tmp_path / "c.txt").write_text(f"{long}\n" * 4)
    assert [len(some.ids) for some in iter_documents(tmp_path / "c.txt")] == [2, 2]


def test_unknown_format_is_refused(tmp_path: Path, refusal) -> None:
    assert "does not exist" in refusal(flat, tmp_path / "a.docx")
    (tmp_path / "a.docx").touch()
    assert "unknown format" in refusal(flat, tmp_path / "a.docx")


def test_feature_rows_come_as_the_models_width(tmp_path: Path, refusal) -> None:
    path = tmp_path / "test.txt"
    path.write_text("5 3 9\n0 0:1\n 1:2\n8,1 2:3\n\n0 0:4\n\n")
    batches = list(iter_features(path, n_features=4, batch=2))
    assert [X.shape for X in batches] == [(2, 4), (2, 4), (1, 4)]
    dense = np.vstack([X.toarray() for X in batches])
    assert dense.tolist() == [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 3, 0], [0, 0, 0, 0], [4, 0, 0, 0]]
    assert refusal(list, iter_features(path, 2)).startswith(f"{path}, line 1: 3 features, but the model has 2")
    path.write_text("2 3 9\n0 0:1\n0 3:1\n")
    assert refusal(list, iter_features(path, 4)).startswith(f"{path}, line 3: index 3 is out of range")


def test_feature_rows_of_the_new_repository_layout_hold_no_labels(tmp_path: Path, refusal) -> None:
    path = tmp_path / "tst_X_Xf.txt"
    path.write_text("3 3\n0:1 2:3\n\n1:2\n")
    [X] = iter_features(path, n_features=4)
    assert X.toarray().tolist() == [[1, 0, 3, 0], [0, 0, 0, 0], [0, 2, 0, 0]]
    path.write_text("2 3\n0:1\n0 1:1\n")
    assert refusal(list, iter_features(path, 4)).startswith(f"{path}, line 3: expected index:value, got '0'")
    path.write_text("2\n0:1\n")
    assert refusal(list, iter_features(path, 4)).startswith(
        f"{path}, line 1: expected a header of 2 or 3 whole numbers (documents, features, optional labels), got '2'"
    )
