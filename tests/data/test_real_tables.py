"""Tables as people have them: each is read rightly, or refused in one line that names the option to give."""

from __future__ import annotations

import json
import sqlite3
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from xmtc.core.errors import DataError, Notice
from xmtc.data import DataWarning, TableMapping, convert, read_corpus

PRODUCTS = {"text": ["title", "description"], "labels": "categories", "id": "sku"}
Documents = list[tuple[str, str, list[str]]]  # id, text, labels in the order of their ids
CHEESE: Documents = [("A1", "Käse\nwürzig, alt", ["food", "milk"]), ("A2", "Boot\nRot", ["sea"])]


def raw(content: str, encoding: str = "utf-8") -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content.encode(encoding, "surrogateescape"))  # type: ignore[return-value]


def sheet(rows: list[list[Any]], *, names: tuple[str, ...] = ("Tabelle1",), prolog: str = "") -> Callable[[Path], None]:
    """A workbook as Excel writes it: shared strings, styles, cells that are missing, one sheet of data."""

    def write(path: Path) -> None:
        strings = sorted({cell for row in rows for cell in row if isinstance(cell, str)})
        lines = []
        for number, row in enumerate(rows, start=1):
            cells = []
            for column, cell in zip("ABCDEFGH", row, strict=False):
                if isinstance(cell, str):
                    cells.append(f'<c r="{column}{number}" t="s"><v>{strings.index(cell)}</v></c>')
                elif isinstance(cell, bool):
                    cells.append(f'<c r="{column}{number}" t="b"><v>{int(cell)}</v></c>')
                elif isinstance(cell, tuple):
                    cells.append(f'<c r="{column}{number}" s="{cell[1]}"><v>{cell[0]}</v></c>')
                elif cell is not None:
                    cells.append(f'<c r="{column}{number}"><v>{cell}</v></c>')
            lines.append(f'<row r="{number}">{"".join(cells)}</row>')
        parts = {
            "xl/workbook.xml": "<workbook><sheets>"
            + "".join(f'<sheet name="{name}" r:id="r{i}"/>' for i, name in enumerate(names))
            + "</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": "<Relationships>"
            + "".join(f'<Relationship Id="r{i}" Target="worksheets/sheet1.xml"/>' for i in range(len(names)))
            + "</Relationships>",
            "xl/sharedStrings.xml": f"{prolog}<sst>"
            + "".join(f"<si><r><t>{escape(s[:1])}</t></r><r><t>{escape(s[1:])}</t></r></si>" for s in strings)
            + "</sst>",
            "xl/styles.xml": '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="00000"/></numFmts><cellXfs>'
            '<xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="10"/></cellXfs></styleSheet>',
            "xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{''.join(lines)}</sheetData></worksheet>",
        }
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)

    return write


def database(statements: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.executescript(statements)
        connection.close()

    return write


READ: list[tuple[str, Callable[[Path], None], dict[str, Any], Documents]] = [
    (
        "quotes and newlines.csv",
        raw('id,text,labels\r\n1,"He said ""no"", twice\r\nand left",a\r\n2,5" screen,b\r\n'),
        {},
        [("1", 'He said "no", twice\nand left', ["a"]), ("2", '5" screen', ["b"])],
    ),
    ("byte order mark.csv", raw("\ufefftext,labels\nt,a|b\n"), {}, [("0", "t", ["a", "b"])]),
    (
        "semicolons.csv",
        raw("sku;title;description;categories\nA1;Käse;würzig, alt;food|milk\nA2;Boot;Rot;sea\n"),
        PRODUCTS,
        CHEESE,
    ),
    (
        "cp1252.csv",
        raw("sku;title;description;categories\nA1;Käse;würzig, alt;food|milk\nA2;Boot;Rot;sea\n", "cp1252"),
        PRODUCTS,
        CHEESE,
    ),
    (
        "utf16 from excel.csv",
        raw("sku\ttitle\tdescription\tcategories\r\nA1\tKäse\twürzig, alt\tfood|milk\r\nA2\tBoot\tRot\tsea", "utf-16"),
        PRODUCTS,
        CHEESE,
    ),
    ("utf16 without mark.csv", raw("text,labels\nzwei,a\n", "utf-16-le"), {}, [("0", "zwei", ["a"])]),
    (
        "missing cells.csv",
        raw("sku,title,description,categories\nA1,,only this,x\n,title alone,,\nA3,,,y\n"),
        PRODUCTS,
        [("A1", "only this", ["x"]), ("1", "title alone", []), ("A3", "", ["y"])],
    ),
    ("duplicate ids.csv", raw("id,text,labels\n7,t,a\n7,u,b\n"), {}, [("7", "t", ["a"]), ("7", "u", ["b"])]),
    (
        "numbers as labels.csv",
        raw('text,labels\nt,4313\nu,"12, 7"\n'),
        {},
        [("0", "t", ["4313"]), ("1", "u", ["12", "7"])],
    ),
    (
        "json lists in cells.csv",
        raw('text,labels\nt,"[""a, b"", ""c|d""]"\nu,[]\n'),
        {},
        [("0", "t", ["a, b", "c|d"]), ("1", "u", [])],
    ),
    ("pipes as delimiter.csv", raw("text|labels\nt, really|a;b\n"), {}, [("0", "t, really", ["a", "b"])]),
    ("sep line.csv", raw("sep=;\ntext;labels\nx;a,b\n"), {}, [("0", "x", ["a", "b"])]),
    (
        "header with spaces.csv",
        raw(" Product Title ,Tags\nt,a\n"),
        {"text": "product title", "labels": "tags"},
        [("0", "t", ["a"])],
    ),
    ("empty lines.csv", raw("\n\ntext,labels\n\nt,a\n\n\nu,b\n\n"), {}, [("0", "t", ["a"]), ("1", "u", ["b"])]),
    ("tabs.tsv", raw('Text\tLabels\n"quoted" word\ta|b\n'), {}, [("0", '"quoted" word', ["a", "b"])]),
    (
        "slash between labels.csv",
        raw('text,labels\nt,"[new] / red, white"\n'),
        {"label_separator": " / "},
        [("0", "t", ["[new]", "red, white"])],
    ),
    (
        "workbook.xlsx",
        sheet(
            [
                ["sku", "title", "description", "categories"],
                [(42, 2), "Käse", "R&D", "food|milk"],
                [],
                [7.0, (45322, 1), (0.125, 3), 12],
                [8, True, None, None],
            ]
        ),
        PRODUCTS,
        [("00042", "Käse\nR&D", ["food", "milk"]), ("7", "2024-01-31\n12.50%", ["12"]), ("8", "TRUE", [])],
    ),
    (
        "shop.sqlite",
        database(
            "CREATE TABLE products (sku, title TEXT, description TEXT, categories TEXT, price REAL);"
            "INSERT INTO products VALUES (1, 'Käse', 'würzig', 'food|milk', 2.5), ('A2', 12, NULL, 7, NULL);"
        ),
        PRODUCTS,
        [("1", "Käse\nwürzig", ["food", "milk"]), ("A2", "12", ["7"])],
    ),
    (
        "one of two tables.db",
        database("CREATE TABLE a (text, labels); CREATE TABLE b (text, labels); INSERT INTO b VALUES ('t', 'x;y');"),
        {"table": "b"},
        [("0", "t", ["x", "y"])],
    ),
    (
        "mixed keys.jsonl",
        raw(
            '{"title": "t", "tags": "a, b", "sku": 5}\n'
            '{"body": "u", "tags": ["c"]}\n'
            '{"title": 3, "body": "v", "tags": [4]}\n'
        ),
        {"text": ["title", "body"], "labels": "tags", "id": "sku", "label_separator": ","},
        [("5", "t", ["a", "b"]), ("1", "u", ["c"]), ("2", "3\nv", ["4"])],
    ),
]

REFUSED: list[tuple[str, Callable[[Path], None], dict[str, Any], str]] = [
    ("no header.csv", raw("1,Sugar imports from Cuba to Spain,sugar\n2,Fish,sea\n"), {}, "add a row above it"),
    ("other names.csv", raw("sku,title,description,categories\n1,t,d,c\n"), {}, "Use --text title,description?"),
    ("other labels.csv", raw("text,categories\nt,c\n"), {}, "Use --labels categories?"),
    ("unknown names.csv", raw("a,b\nsome longer words here,x\n"), {}, "Use --text a?"),
    ("names with spaces.csv", raw("Full Text,Tags\nt,x\n"), {}, 'Use --text "Full Text"?'),
    ("misspelt.csv", raw("title,labels\nt,x\n"), {"text": "titel"}, "Did you mean 'title'?"),
    ("semicolons.tsv", raw("text;labels\nt;x\n"), {}, "give --delimiter ';'"),
    ("damaged.csv", raw("text,labels\ncafé,a\ncaf\udce9,b\n", "utf-8"), {}, "--encoding"),
    ("python lists.csv", raw("text,labels\nt,\"['a', 'b']\"\n"), {}, "--label-separator"),
    ("too wide.csv", raw("text,labels\nt,a,b\n"), {}, "3 fields, but the header has 2"),
    ("quoted.tsv", raw('text\tlabels\n"two\nlines"\ta\n'), {}, "name it .csv"),
    ("string labels.jsonl", raw('{"text": "t", "labels": "a|b"}\n'), {}, "--label-separator"),
    ("keys.jsonl", raw('{"title": "t", "tags": ["a"]}\n'), {}, "Use --text title?"),
    ("two sheets.xlsx", sheet([["text", "labels"]], names=("one", "two")), {}, "choose one with --table"),
    ("no such sheet.xlsx", sheet([["text", "labels"]]), {"table": "Tabelle"}, "Did you mean 'Tabelle1'?"),
    ("entities.xlsx", sheet([["text"]], prolog='<!DOCTYPE x [<!ENTITY a "b">]>'), {}, "declares a document type"),
    ("old.xlsx", raw("not a zip file"), {}, "save it as .xlsx"),
    ("two tables.sqlite", database("CREATE TABLE a (x); CREATE TABLE b (x);"), {}, "choose one with --table"),
    ("blob.sqlite", database("CREATE TABLE a (text, labels); INSERT INTO a VALUES (x'00', 'b');"), {}, "--text"),
    ("not a database.db", raw("hello"), {}, "check that it is a database"),
    ("features.txt", raw("1 2 1\n0 0:1 1:1\n"), {"text": "title"}, "no columns to choose"),
]


def read(path: Path, mapping: dict[str, Any]) -> Documents:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (DataWarning))
        warnings.simplefilter("ignore", (Notice))
        corpus = read_corpus(path, mapping=mapping)
    assert corpus.texts is not None
    lists = [sorted(corpus.labels.decode(corpus.Y[i].indices)) for i in range(len(corpus))]
    return list(zip(corpus.ids, corpus.texts, lists, strict=True))


@pytest.mark.parametrize(("name", "write", "mapping", "expected"), READ, ids=[case[0] for case in READ])
def test_a_table_is_read(tmp_path: Path, name: str, write: Any, mapping: dict[str, Any], expected: Documents) -> None:
    write(tmp_path / name)
    assert read(tmp_path / name, mapping) == [(id, text, sorted(labels)) for id, text, labels in expected]


@pytest.mark.parametrize(("name", "write", "mapping", "reason"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_table_is_refused(tmp_path: Path, name: str, write: Any, mapping: dict[str, Any], reason: str) -> None:
    write(tmp_path / name)
    with pytest.raises(DataError) as caught:
        read(tmp_path / name, mapping)
    assert reason in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text,labels\nt,a\n", None),
        ('text,labels\nt,"[""a|b""]"\n', None),
        ("text,labels\nt,a|b\n", "labels separated by '|'; change that with --label-separator"),
        ("text;labels\nKäse;a\n", "read as cp1252, columns separated by ';'; change that with --encoding, --delimiter"),
    ],
)
def test_what_is_guessed_is_said_in_one_line(tmp_path: Path, content: str, said: str | None) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode("cp1252"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_corpus(path)
        read_corpus(path, mapping=TableMapping(label_separator="|", delimiter=content[4], encoding="cp1252"))
    assert [str(warning.message) for warning in caught] == ([f"{path}: {said}"] if said else [])


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        ({"text": []}, "text"),
        ({"delimiter": ";;"}, "one character"),
        ({"encoding": "latin-99"}, "unknown encoding"),
        ({"encoding": "base64"}, "unknown encoding"),
        ({"label_separator": ""}, "empty"),
        ({"columns": "a"}, "unknown setting 'columns'"),
    ],
)
def test_a_wrong_mapping_is_one_line(tmp_path: Path, mapping: dict[str, Any], reason: str) -> None:
    (tmp_path / "a.csv").write_text("text,labels\nt,a\n")
    with pytest.raises(Exception, match=reason) as caught:
        read_corpus(tmp_path / "a.csv", mapping=mapping)
    assert "\n" not in str(caught.value)


def test_parquet_takes_a_mapping(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"title": ["t", None], "body": ["x", "y"], "tags": [["a"], []], "sku": [1, 2], "code": [5, 6]})
    pq.write_table(table, tmp_path / "a.parquet")
    columns = {"text": ["title", "body"], "id": "sku"}
    assert read(tmp_path / "a.parquet", {**columns, "labels": "tags"}) == [("1", "t\nx", ["a"]), ("2", "y", [])]
    assert read(tmp_path / "a.parquet", {**columns, "labels": "code"}) == [("1", "t\nx", ["5"]), ("2", "y", ["6"])]


def test_a_mapped_folder_is_converted_with_its_splits(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for split in ("train", "test"):
        (source / f"{split}.csv").write_text(f"sku;title;description;categories\n{split};a;b;x\n")
    with pytest.warns(Notice, match="columns separated by ';'"):
        convert(source, tmp_path / "out", "native", mapping=PRODUCTS)
    line = json.loads((tmp_path / "out" / "test.jsonl").read_text())
    assert line == {"id": "test", "text": "a\nb", "labels": ["x"]}


def test_a_database_whose_schema_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE namely (text, labels)")
    connection.commit()
    connection.close()
    # SQLite names the table in its message, and Python decodes the message
    path.write_bytes(path.read_bytes().replace(b"namely", b"n\xe4mely").replace(b"CREATE TABLE", b"CREATE TABXE"))
    with pytest.raises(DataError, match=r"cannot read .* as SQLite"):
        read_corpus(path)


def test_a_name_of_a_table_for_a_file_of_one_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,labels\nsugar beet,x\n")
    with pytest.raises(DataError, match="is one table, and has none called 'other'; leave out --table"):
        read_corpus(tmp_path / "a.csv", mapping=TableMapping(table="other"))
