from __future__ import annotations

import json
from pathlib import Path

import pytest

from xmtc.core.errors import DataError
from xmtc.data import read_corpus

ROWS = [
    ("1", "a text", "x", "north"),
    ("2", "more", "y", "south"),
    ("3", "last", "x", "north"),
    ("4", "alone", "x", ""),
]


def write(path: Path) -> Path:
    if path.suffix == ".jsonl":
        rows = [{"id": id, "text": text, "labels": [label], "source": group} for id, text, label, group in ROWS]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet")
        columns = dict(zip(("id", "text", "labels", "source"), zip(*ROWS, strict=True), strict=True))
        pyarrow.parquet.write_table(pyarrow.table({key: list(value) for key, value in columns.items()}), path)
    else:
        separator = "," if path.suffix == ".csv" else "\t"
        path.write_text("\n".join(separator.join(row) for row in [("id", "text", "labels", "source"), *ROWS]) + "\n")
    return path


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet"])
def test_a_field_divides_documents_into_groups(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"documents.{ending}")
    corpus = read_corpus(path, group="source")
    assert corpus.groups is not None
    assert corpus.groups.tolist() == [0, 1, 0, 2]  # the last has none, and stands alone
    assert read_corpus(path).groups is None
    assert read_corpus(path).fingerprint() == corpus.grouped(None).fingerprint()
    with pytest.raises(DataError, match="'sourze'"):
        read_corpus(path, group="sourze")


def test_years_are_groups_and_lists_are_not(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text('{"text": "a", "labels": ["x"], "year": 1990, "by": ["me"]}\n')
    assert read_corpus(path, group="year").groups is not None
    with pytest.raises(DataError, match=r"documents\.jsonl.*'by' must hold strings or whole numbers, got a list"):
        read_corpus(path, group="by")


def test_layouts_without_fields(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("id1\tx\ta text\n")
    with pytest.raises(DataError, match="only JSON lines and tables have fields to group by"):
        read_corpus(tmp_path / "train.txt", group="source")
