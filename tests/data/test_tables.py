from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from xmtc.core.corpus import Corpus
from xmtc.data import read_corpus

pa = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TEXTS = ['says "hi", twice', "line one\nline two\r\nthree", "", "tab\there", "naïve \u2028 text"]
LISTS = [["red wine", "b"], ["b"], ["wine, white"], ["c;d|e"], ["[x]"]]


def write_csv(path: Path, rows: list[list[str]]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def read_lists(path: Path) -> list[list[str]]:
    corpus = read_corpus(path)
    return [corpus.labels.decode(corpus.Y[i].indices) for i in range(len(corpus))]


@pytest.mark.filterwarnings("ignore::xmtc.data.DataWarning")
def test_csv_keeps_every_character(tmp_path: Path) -> None:
    rows = [["other", "labels", "id", "text"]]
    rows += [["-", json.dumps(y), f"d{i}", t] for i, (t, y) in enumerate(zip(TEXTS, LISTS, strict=True))]
    corpus = read_corpus(write_csv(tmp_path / "all.csv", rows))
    texts = [text.replace("\r\n", "\n") for text in TEXTS]  # Windows line ends are line ends, in fields too
    assert corpus.fingerprint() == Corpus.from_lists(texts, LISTS, [f"d{i}" for i in range(5)]).fingerprint()


@pytest.mark.parametrize(
    ("cells", "lists"),
    [
        (["a|b c| d", "wine, white", "x;y", "|"], [["a", "b c", "d"], ["wine, white"], ["x;y"], []]),
        (["a; b c", "wine, white;", "d"], [["a", "b c"], ["wine, white"], ["d"]]),
        (["a,b c", "", "d"], [["a", "b c"], [], ["d"]]),
        (["one label", "two"], [["one label"], ["two"]]),
        (['["a|b", 3]', "x;y", " [] "], [["3", "a|b"], ["x", "y"], []]),
    ],
)
@pytest.mark.filterwarnings("ignore::xmtc.data.DataWarning")
def test_labels_of_a_cell(tmp_path: Path, cells: list[str], lists: list[list[str]]) -> None:
    assert read_lists(write_csv(tmp_path / "a.csv", [["text", "labels"], *(["t", cell] for cell in cells)])) == lists
    (tmp_path / "a.tsv").write_text("text\tlabels\n" + "".join(f"t\t{cell}\n" for cell in cells))
    assert read_lists(tmp_path / "a.tsv") == lists
    pq.write_table(pa.table({"text": ["t"] * len(cells), "labels": cells}), tmp_path / "a.parquet")
    assert read_lists(tmp_path / "a.parquet") == lists


def test_tsv_has_no_quotes(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(
        '\ufeffid\ttext\tlabels\r\n7\t"open quote\ta\r\n\r\n\tsay ""\tb\r\n', encoding="utf-8"
    )
    corpus = read_corpus(tmp_path / "a.tsv")
    assert list(corpus.texts) == ['"open quote', 'say ""']
    assert list(corpus.ids) == ["7", "1"]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_lists(tmp_path: Path, type_: pa.DataType) -> None:
    n = 3000  # several record batches
    table = pa.table(
        {
            "text": pa.array([f"text {i}" for i in range(n)], pa.string()).cast(type_),
            "labels": pa.array([[f"l{i % 7}", "x, y"] for i in range(n)], pa.large_list(pa.string())),
            "id": pa.array(range(n)),
        }
    )
    pq.write_table(table, tmp_path / "train.parquet")
    corpus = read_corpus(tmp_path)
    expected = Corpus.from_lists([f"text {i}" for i in range(n)], [[f"l{i % 7}", "x, y"] for i in range(n)])
    assert corpus.fingerprint() == expected.fingerprint()


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("text,label\nt,a\n", 1, "no column 'labels' (there: 'text', 'label'). Did you mean 'label'?"),
        ("labels\na\n", 1, "no column 'text'"),
        ('text,labels\n"a\nb",x\nt,x,y\n', 4, "3 fields, but the header has 2"),
        ("text,labels\nt,a\nt\n", 3, "1 fields, but the header has 2"),
        ('text,labels\nt,a\n"never\nclosed,b\n', 3, "malformed CSV (unexpected end of data)"),
        ('text,labels\n"a"b,x\n', 2, "malformed CSV"),
        ("text,labels\nt,a\nt,\"['a', 'b']\"\n", 3, "the labels begin with '[' but are not a JSON list"),
        ('text,labels\nt,"[1.5]"\n', 2, "'labels' must hold strings or whole numbers"),
    ],
)
def test_wrong_csv_is_refused_with_its_line(tmp_path: Path, refusal, content: str, line: int, reason: str) -> None:
    path = tmp_path / "train.csv"
    path.write_text(content)
    message = refusal(read_corpus, tmp_path)
    assert message.startswith(f"{path}, line {line}: ")
    assert reason in message


def test_not_utf8_and_empty_csv(tmp_path: Path, refusal) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,labels\nt,a\n\xe4,b\n")
    assert refusal(read_corpus, path).startswith(f"{path}, line 3: byte 1 of the line (0xe4) is not UTF-8")
    for content in (b"", b"text,labels\n"):
        path.write_bytes(content)
        assert refusal(read_corpus, path).startswith(f"{path} holds no documents")


def test_wrong_tsv_is_refused_with_its_line(tmp_path: Path, refusal) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabels\nt\ta\nt\ta\tb\n")
    assert refusal(read_corpus, path).startswith(f"{path}, line 3: 3 fields, but the header has 2")


def test_long_cells_are_read(tmp_path: Path) -> None:
    text = "word " * 2_000_000
    assert read_corpus(write_csv(tmp_path / "a.csv", [["text", "labels"], [text, "a"]])).texts[0] == text


@pytest.mark.parametrize(
    ("columns", "place", "reason"),
    [
        ({"text": ["t"], "tags": [["a"]]}, ": ", "no column 'labels'"),
        ({"text": ["t", None], "labels": [["a"], ["a"]]}, ", row 2: ", "'text' must be a string, got null"),
        ({"text": [1], "labels": [["a"]]}, ", row 1: ", "'text' must be a string, got a whole number"),
        ({"text": ["t", "t"], "labels": [["a"], [None]]}, ", row 2: ", "'labels' must hold strings or whole numbers"),
        ({"text": ["t"], "labels": [[1.5]]}, ", row 1: ", "'labels' must hold strings or whole numbers"),
        ({"text": ["t", "t"], "labels": [["a"], None]}, ", row 2: ", "'labels' must be a list of strings, got null"),
        ({"text": [b"t"], "labels": [["a"]]}, ", row 1: ", "'text' must be a string, got bytes"),
    ],
)
def test_wrong_parquet_is_refused_with_its_row(tmp_path: Path, refusal, columns: dict, place: str, reason: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    message = refusal(read_corpus, path)
    assert message.startswith(f"{path}{place}")
    assert reason in message


def test_what_is_not_parquet_is_refused(tmp_path: Path, refusal) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 nonsense PAR1")
    assert refusal(read_corpus, path).startswith(f"cannot read {path} as Parquet: ")


def test_a_parquet_column_whose_name_is_not_utf8_is_refused(tmp_path: Path, refusal) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a b"], "labels": ["x"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"labels", b"l\xec\x80els"))
    assert refusal(read_corpus, path).startswith(f"cannot read {path} as Parquet: ")


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'xmtc[parquet]'" in refusal(read_corpus, tmp_path / "a.parquet")
