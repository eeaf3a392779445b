"""Tables with columns of their own, from training to prediction, and predictions as files."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from tests.app.conftest import documents, fails, write_lines, xmtc
from xmtc.data import stored_mapping

OPTIONS = ["--text", "title, description", "--labels", "categories", "--id", "sku"]


def write_products(path: Path, n: int, seed: int, encoding: str = "cp1252") -> None:
    """Products as a spreadsheet exports them: semicolons, Windows' encoding, labels between bars."""
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["sku", "title", "description", "categories"])
        for row in documents(n, seed):
            title, _, rest = row["text"].partition(" ")
            writer.writerow([row["id"], f"Café {title}", rest, "|".join(row["labels"])])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    write_products(folder / "products.csv", 80, 1)
    write_products(folder / "new.csv", 20, 2)
    result = xmtc("train", folder / "products.csv", *OPTIONS, "--out", folder / "model")
    assert result.code == 0, result
    [note] = [line for line in result.err.splitlines() if line.startswith("note: ")]
    assert note.endswith(
        "read as cp1252, columns separated by ';', labels separated by '|'; "
        "change that with --encoding, --delimiter, --label-separator"
    )
    return folder


def test_a_model_remembers_the_columns(shop: Path, data: Path) -> None:
    assert stored_mapping(shop / "model").text == ("title", "description")
    report = xmtc("evaluate", shop / "model", shop / "new.csv", "--json").json
    assert report["n"] == 20
    assert report["metrics"]["P@1"] > 60
    [first, *_] = xmtc("predict", shop / "model", "--input", shop / "new.csv", "--json").json_lines
    assert first["id"] == "doc-2-0"
    # other data has the default columns
    assert xmtc("evaluate", shop / "model", data, "--json").json["n"] == 40
    # what is given wins
    assert "no column 'name'" in fails("predict", shop / "model", "--input", shop / "new.csv", "--text", "name")


def test_the_same_training_gives_the_same_bytes(shop: Path, tmp_path: Path) -> None:
    assert xmtc("train", shop / "products.csv", *OPTIONS, "--out", tmp_path / "again").code == 0
    for file in ("model.json", "table.json"):
        assert (tmp_path / "again" / file).read_bytes() == (shop / "model" / file).read_bytes()
    again = xmtc("train", shop / "products.csv", *OPTIONS, "--out", tmp_path / "again", "--resume")
    assert (again.code, "nothing to do" in again.err) == (0, True)
    (tmp_path / "again" / "table.json").write_text("{}")
    assert "altered" in fails("predict", tmp_path / "again", "sugar")


def test_update_inspect_and_convert_take_the_columns(shop: Path, tmp_path: Path) -> None:
    update = xmtc(
        "update", shop / "model", shop / "new.csv", "--base", shop / "products.csv", "--out", tmp_path / "newer"
    )
    assert update.code == 0, update
    assert stored_mapping(tmp_path / "newer") == stored_mapping(shop / "model")
    assert xmtc("inspect", shop / "new.csv", *OPTIONS, "--json").json["splits"]["new.csv"]["documents"] == 20
    assert "Use --text title,description?" in fails("inspect", shop / "new.csv")
    result = xmtc("data", "convert", shop / "new.csv", *OPTIONS, "--to", "native", "--out", tmp_path / "native")
    assert result.code == 0, result
    line = json.loads((tmp_path / "native" / "train.jsonl").read_text().splitlines()[0])
    assert line["id"] == "doc-2-0"
    assert line["text"].startswith("Café regulation\n")


def test_ensembles_seeds_and_comparisons_take_the_columns(shop: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        command = ["train", shop / "products.csv", *OPTIONS, "--seed", seed, "--out", tmp_path / f"m-{seed}"]
        assert xmtc(*command, "--method", "knn").code == 0
    both = ["ensemble", tmp_path / "m-0", shop / "model"]
    assert xmtc(*both, "--out", tmp_path / "mean").code == 0
    assert stored_mapping(tmp_path / "mean") == stored_mapping(shop / "model")
    assert xmtc("evaluate", tmp_path / "mean", shop / "new.csv", "--json").json["n"] == 20
    cascade = xmtc(*both, "--rule", "cascade", "--dev", shop / "new.csv", "--out", tmp_path / "cascade")
    assert cascade.code == 0, cascade
    assert "no column 'name'" in fails(
        *both, "--rule", "cascade", "--dev", shop / "new.csv", "--text", "name", "--out", tmp_path / "other"
    )
    assert xmtc("evaluate", tmp_path / "m", shop / "new.csv", "--seeds", "0,1", "--json").json["n"] == 20
    saved = tmp_path / "ranking.npz"
    assert xmtc("evaluate", shop / "model", shop / "new.csv", "--save-ranking", saved).code == 0
    assert xmtc("compare", saved, tmp_path / "m-0", "--data", shop / "new.csv", "--json").json["n"] == 20


def test_options_of_tables_are_checked(shop: Path, tmp_path: Path) -> None:
    train = ["train", shop / "products.csv", "--out", tmp_path / "m"]
    assert "one character" in fails(*train, "--delimiter", "::")
    assert "unknown encoding" in fails(*train, "--encoding", "windows")
    assert "Did you mean 'title'?" in fails(*train, "--text", "titel", "--labels", "categories")
    assert not (tmp_path / "m").exists()


def test_a_dry_run_says_what_it_would_do_and_stops(data: Path, tmp_path: Path) -> None:
    result = xmtc("train", data, "--out", tmp_path / "m", "--dry-run")
    assert (result.code, result.out) == (0, "linear: 120 documents, 5 labels\n")
    assert os.listdir(tmp_path) == []


def test_predictions_as_rows(model: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.jsonl", [{"id": "a,b", "text": "sugar beet"}, {"id": "c\td", "text": "boat net"}])
    command = ["predict", model, "--input", tmp_path / "in.jsonl", "-k", 2]
    expected = [
        {"id": row["id"], "rank": str(rank), **{key: str(value) for key, value in label.items()}}
        for row in xmtc(*command, "--json").json_lines
        for rank, label in enumerate(row["labels"], start=1)
    ]
    assert xmtc(*command, "--output", tmp_path / "out.csv").code == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == expected
    assert xmtc(*command, "--output", tmp_path / "out.tsv").code == 0
    header, *rows = (tmp_path / "out.tsv").read_text().splitlines()
    assert header == "id\trank\tlabel\tname\tscore"
    assert [row.split("\t")[:3] for row in rows] == [
        [row["id"].replace("\t", " "), row["rank"], row["label"]] for row in expected
    ]
    assert xmtc(*command, "--output", tmp_path / "out.jsonl").code == 0
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [{key: str(value) for key, value in row.items()} for row in found] == expected
    pq = pytest.importorskip("pyarrow.parquet")
    assert xmtc(*command, "--output", tmp_path / "out.parquet").code == 0
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["id", "rank", "label", "name", "score"]
    assert table["label"].to_pylist() == [row["label"] for row in expected]
    assert sorted(os.listdir(tmp_path)) == ["in.jsonl", *(f"out.{end}" for end in ("csv", "jsonl", "parquet", "tsv"))]


def test_one_row_per_document(model: Path, tmp_path: Path) -> None:
    command = ["predict", model, "sugar beet", "what", "-k", 2, "--min-score", 0.3, "--wide"]
    plain = xmtc(*command[:-1], "--json")
    assert [len(row["labels"]) for row in plain.json_lines][1] < 2  # so that cells are left empty
    assert xmtc(*command, "--output", tmp_path / "out.csv").code == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "label_1", "name_1", "score_1", "label_2", "name_2", "score_2"]
    for row, wanted in zip(rows, plain.json_lines, strict=True):
        assert [row[f"label_{i}"] for i in (1, 2) if row[f"label_{i}"]] == [x["label"] for x in wanted["labels"]]
    assert xmtc(*command, "--output", tmp_path / "out.jsonl").code == 0
    assert (tmp_path / "out.jsonl").read_text() == plain.out


def test_what_cannot_be_written_is_refused(model: Path, tmp_path: Path) -> None:
    predict = ["predict", model, "sugar"]
    assert ".csv, .tsv, .jsonl, .parquet, .txt" in fails(*predict, "--output", tmp_path / "out.xlsx")
    assert "two formats" in fails(*predict, "--output", tmp_path / "out.csv", "--json")
    assert "--wide needs --output" in fails(*predict, "--wide")
    assert os.listdir(tmp_path) == []


def test_a_text_that_names_a_file_is_refused(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    write_lines(path, [{"text": "sugar"}])
    assert f"is a file; tag its documents with --input {path}" in fails("predict", model, path)
    assert xmtc("predict", model, tmp_path / "none.jsonl").code == 0


def test_text_shows_whole_ids_and_uris(tmp_path: Path) -> None:
    uri = "http://example.org/" + "x" * 200
    rows = [{"id": "d" * 150, "text": f"sugar {i}", "labels": [uri]} for i in range(4)]
    write_lines(tmp_path / "train.jsonl", rows)
    write_lines(tmp_path / "labels.jsonl", [{"label": uri, "name": "sugar"}])
    assert xmtc("train", tmp_path, "--out", tmp_path / "m").code == 0
    first, second, *_ = xmtc("predict", tmp_path / "m", "--input", tmp_path / "train.jsonl").out.splitlines()
    assert first == "d" * 150 + "  sugar 0"
    assert second.split()[1:] == ["sugar", f"<{uri}>"]
