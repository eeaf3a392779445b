from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.data import svmlight
from xmtc.data.files import Lines
from xmtc.data.svmlight import SparseRows, iter_rows, offsets, read_header, read_rows


def lines_of(text: str | bytes) -> Lines:
    return Lines("rows.txt", io.BytesIO(text.encode() if isinstance(text, str) else text))


def naive(text: str, width: int, n_labels: int | None) -> tuple[list[list[int]], np.ndarray]:
    """Row by row, with dictionaries."""
    labels, dense = [], []
    for line in text.splitlines():
        own, row = [], np.zeros(width, np.float32)
        for word in line.split():
            if ":" in word:
                column, value = word.split(":")
                row[int(column)] += np.float32(value)
            else:
                own = [int(label) for label in word.split(",")]
        labels.append(own)
        dense.append(row)
    return labels, np.array(dense)


def lists_of(rows: SparseRows) -> list[list[int]]:
    ends = offsets(rows.n_labels)
    return [rows.labels[ends[i] : ends[i + 1]].tolist() for i in range(rows.n_rows)]


def random_rows(n: int, width: int, n_labels: int | None, seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        columns = np.sort(rng.choice(width, rng.integers(0, 6), replace=False))
        values = rng.choice(["1", "0.5", "-2.25e-3", "1E3", ".125", "7."], len(columns))
        pairs = " ".join(f"{c}:{v}" for c, v in zip(columns, values, strict=True))
        if n_labels is None:
            out.append(pairs)
        else:
            labels = ",".join(map(str, rng.choice(n_labels, rng.integers(0, 4), replace=False)))
            out.append(f"{labels} {pairs}" if pairs or not labels else labels)
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("n_labels", [None, 9])
@pytest.mark.parametrize("ending", ["\n", "\r\n", " \n", "  \r\n"])
def test_plain_rows_are_parsed_at_once_and_alike(monkeypatch, n_labels: int | None, ending: str) -> None:
    text = random_rows(300, 20, n_labels)
    labels, dense = naive(text, 20, n_labels)
    monkeypatch.setattr(svmlight, "_parse_lines", None)  # the quick way must do
    rows = read_rows(lines_of(text.replace("\n", ending)), 300, 20, n_labels)
    assert lists_of(rows) == labels
    np.testing.assert_array_equal(rows.matrix(20).toarray(), dense)


@pytest.mark.parametrize("n_labels", [None, 9])
def test_quick_and_strict_parser_agree(monkeypatch, n_labels: int | None) -> None:
    text = random_rows(200, 20, n_labels, seed=1)
    quick = read_rows(lines_of(text), 200, 20, n_labels)
    monkeypatch.setattr(svmlight, "_parse_chunk", lambda *_: None)
    strict = read_rows(lines_of(text), 200, 20, n_labels)
    for one, other in zip(quick, strict, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_rows_are_the_same_however_the_file_is_cut(monkeypatch) -> None:
    text = random_rows(200, 20, 9, seed=2)
    whole = read_rows(lines_of(text), 200, 20, 9)
    chunks = Lines.chunks
    monkeypatch.setattr(Lines, "chunks", lambda self: chunks(self, size=100))
    cut = list(iter_rows(lines_of(text), 200, 20, 9))
    assert len(cut) > 10
    np.testing.assert_array_equal(sp.vstack([part.matrix(20) for part in cut]).toarray(), whole.matrix(20).toarray())
    assert [own for part in cut for own in lists_of(part)] == lists_of(whole)


def test_odd_spacing_is_understood() -> None:
    rows = read_rows(lines_of("1,2\t3:4   5:6\n \n  7:1\n0:1 0:2\n8\n\n\n"), 5, 9, 9)
    assert lists_of(rows) == [[1, 2], [], [], [], [8]]
    dense = np.zeros((5, 9), np.float32)
    dense[0, 3], dense[0, 5], dense[2, 7], dense[3, 0] = 4, 6, 1, 3
    np.testing.assert_array_equal(rows.matrix(9).toarray(), dense)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1 3:4 5", "expected index:value, got '5'"),
        ("1 2 3:4", "expected index:value, got '2'"),
        ("1, 3:4", "label '' is not a whole number"),
        ("a 3:4", "label 'a' is not a whole number"),
        ("-1 3:4", "label '-1' is not a whole number"),
        ("1.5 3:4", "label '1.5' is not a whole number"),
        ("9 3:4", "label 9 is out of range: the header allows 0 … 8"),
        ("1 20:4", "index 20 is out of range: the header allows 0 … 19"),
        ("1 99999999999999999999:4", "is not a whole number"),
        ("1 -3:4", "index '-3' is not a whole number"),
        ("1 x:4", "index 'x' is not a whole number"),
        ("1 3:", "value '' is not a number"),
        ("1 3:4:5", "value '4:5' is not a number"),
        ("1 3:four", "value 'four' is not a number"),
        ("1 3:nan", "value 'nan' is NaN, infinite or too large"),
        ("1 3:inf", "value 'inf' is NaN, infinite or too large"),
        ("1 3:1e39", "value '1e39' is NaN, infinite or too large"),
        ("1 3:4 5:6-7", "value '6-7' is not a number"),
        ("1 3 :4", "expected index:value, got '3'"),
        ("1 \x00", "expected index:value"),
    ],
)
def test_wrong_rows_are_refused_with_their_line(refusal, row: str, reason: str) -> None:
    lines = lines_of(f"header\n0 1:1\n 2:2\n{row}\n1 1:1\n")
    lines.first()
    message = refusal(read_rows, lines, 4, 20, 9)
    assert message.startswith("rows.txt, line 4: ")
    assert reason in message


def test_bytes_that_are_not_utf8_are_refused(refusal) -> None:
    assert refusal(read_rows, lines_of(b"1 3:1\n1 \xff:1\n"), 2, 20, 9).startswith("rows.txt, line 2: index")


def test_labels_are_refused_where_rows_hold_pairs_only(refusal) -> None:
    assert refusal(read_rows, lines_of("1:1\n4 1:1\n"), 2, 20).startswith(
        "rows.txt, line 2: expected index:value, got '4'"
    )


def test_number_of_rows_must_be_the_headers(refusal) -> None:
    assert refusal(read_rows, lines_of("0:1\n0:1\n"), 3, 5) == (
        "rows.txt, line 2: the file ends after 2 rows, but its header says 3; is it cut short?"
    )
    assert refusal(read_rows, lines_of("0:1\n0:1\n\n0:1\n"), 2, 5).startswith("rows.txt, line 4: more rows than the 2")
    assert read_rows(lines_of("0:1\n0:1\n\n\n"), 2, 5).n_rows == 2


@pytest.mark.parametrize("line", ["", "3 4", "3 4 x", "3 4 5 6", "0:1 3:4 2:2", "3 4 -5", "3.0 4 5", "3 4 2147483648"])
def test_wrong_headers_are_refused(refusal, line: str) -> None:
    message = refusal(read_header, lines_of(f"{line}\n"), "documents", "features", "labels")
    assert message.startswith(
        "rows.txt, line 1: expected a header of 3 whole numbers (documents, features, labels), got"
    )
    assert read_header(lines_of("\ufeff3 4 5\r\n"), "a", "b", "c") == [3, 4, 5]


def test_a_header_may_leave_out_what_is_optional(refusal) -> None:
    assert read_header(lines_of("3 4\n"), "a", "b", optional="c") == [3, 4]
    assert read_header(lines_of("3 4 5\n"), "a", "b", optional="c") == [3, 4, 5]
    for line in ("3", "3 4 5 6", "3 4 x"):
        assert "header of 2 or 3 whole numbers (a, b, optional c)" in refusal(
            lambda line: read_header(lines_of(f"{line}\n"), "a", "b", optional="c"), line
        )
