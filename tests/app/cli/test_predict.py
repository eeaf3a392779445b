from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xmtc as library
from tests.app.conftest import documents, fails, write_lines, xmtc
from xmtc.app.cli.rankings import ranking_json
from xmtc.core.ranking import Ranking

TEXTS = ["sugar beet sweet", "boat net fish", ""]


def test_json_is_one_object_a_line_as_the_library_ranks(model: Path) -> None:
    result = xmtc("predict", model, *TEXTS, "-k", 2, "--json")
    assert (result.code, result.err) == (0, "")
    loaded = library.load(model)
    ranking = loaded.rank(TEXTS, 2)
    assert [row["id"] for row in result.json_lines] == ["0", "1", "2"]
    for i, row in enumerate(result.json_lines):
        assert list(row) == ["id", "labels"]
        assert [label["label"] for label in row["labels"]] == loaded.labels.decode(ranking.labels[i])
        assert [(label["name"], label["score"]) for label in row["labels"]] == ranking.named(loaded.labels)[i]
        assert all(set(label) == {"label", "name", "score"} for label in row["labels"])
    assert result.json_lines[0]["labels"][0]["name"] == "sugar"
    assert result.json_lines[1]["labels"][0]["label"] == "t2"


def test_probabilities_are_told_where_there_are_any_and_padding_is_not(model: Path) -> None:
    labels = library.load(model).labels
    scores = np.array([[2.0, 1.0, -np.inf]], np.float32)
    ranking = Ranking(np.array([[3, 1, -1]], np.int32), scores, np.array([[0.5, 0.25, 0.0]], np.float32))
    assert [json.loads(line) for line in ranking_json(["a"], [""], ranking, labels)] == [
        {
            "id": "a",
            "labels": [
                {"label": "t4", "name": "milk", "score": 2.0, "probability": 0.5},
                {"label": "t2", "name": "fishery", "score": 1.0, "probability": 0.25},
            ],
        }
    ]


def test_text_shows_first_words_and_names(model: Path) -> None:
    result = xmtc("predict", model, "sugar\nbeet \x1b[31m" + "sweet " * 50)
    first, second, *_ = result.out.splitlines()
    assert first.startswith("0  sugar beet [31m")
    assert len(first) < 100
    assert second.split() == [second.split()[0], "sugar"]


def test_k_above_the_number_of_labels(model: Path) -> None:
    for k in (50, 10**12):  # a ranking as wide as that would need terabytes
        [row] = xmtc("predict", model, "sugar", "-k", k, "--json").json_lines
        assert 1 <= len(row["labels"]) <= 5


def test_files_of_every_kind_keep_their_ids_and_order(model: Path, tmp_path: Path) -> None:
    rows = [{"id": f"d{i}", "text": TEXTS[i % 3]} for i in range(5)]
    write_lines(tmp_path / "a.jsonl", rows)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in rows))
    (tmp_path / "a.txt").write_text("".join(f"{row['text']}\n" for row in rows))
    found = {name: xmtc("predict", model, "--input", tmp_path / name, "--json") for name in os.listdir(tmp_path)}
    assert len({result.out for name, result in found.items() if name != "a.txt"}) == 1
    assert [row["id"] for row in found["a.csv"].json_lines] == [row["id"] for row in rows]
    assert [row["id"] for row in found["a.txt"].json_lines] == ["0", "1", "2", "3", "4"]
    assert [row["labels"] for row in found["a.txt"].json_lines] == [row["labels"] for row in found["a.csv"].json_lines]


def test_many_batches_are_the_same_as_one_by_one(model: Path, tmp_path: Path) -> None:
    texts = [f"{TEXTS[i % 3]} {TEXTS[i % 2]}" for i in range(2500)]
    (tmp_path / "many.txt").write_text("\n".join(texts) + "\n")
    rows = xmtc("predict", model, "--input", tmp_path / "many.txt", "--json", "-k", 1).json_lines
    assert [row["id"] for row in rows] == [str(i) for i in range(2500)]
    ranking = library.load(model).rank(texts, 1)
    assert [row["labels"][0]["score"] for row in rows] == ranking.scores[:, 0].tolist()


@pytest.mark.parametrize("dash", [[], ["--input", "-"]])
def test_standard_input(model: Path, dash: list[str]) -> None:
    given = '{"id": "é", "text": "sugar"}\n{"text": "boat"}\n'
    found = subprocess.run(
        [sys.executable, "-m", "xmtc", "predict", str(model), *dash, "--json", "-k", "1"],
        input=given.encode(), capture_output=True, check=True, env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert [json.loads(line)["id"] for line in found.stdout.decode("utf-8").splitlines()] == ["é", "1"]
    assert b"error" not in found.stderr


def test_output_is_written_whole(model: Path, tmp_path: Path) -> None:
    result = xmtc("predict", model, "sugar", "--json", "--output", tmp_path / "found.jsonl")
    assert (result.code, result.out) == (0, "")
    assert (tmp_path / "found.jsonl").read_text() == xmtc("predict", model, "sugar", "--json").out
    assert os.listdir(tmp_path) == ["found.jsonl"]


def test_a_failed_run_leaves_the_old_output(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "sugar"}\n' * 3000 + "{\n")
    command = ["predict", model, "--input", tmp_path / "in.jsonl", "--json", "--output", tmp_path / "found.jsonl"]
    assert "line 3001" in fails(*command)
    assert os.listdir(tmp_path) == ["in.jsonl"]
    (tmp_path / "found.jsonl").write_text("old")
    assert "line 3001" in fails(*command)
    assert (tmp_path / "found.jsonl").read_text() == "old"
    assert len(os.listdir(tmp_path)) == 2


def test_output_to_a_device_does_not_replace_it(model: Path, tmp_path: Path) -> None:
    (tmp_path / "nowhere").symlink_to(os.devnull)
    assert xmtc("predict", model, "sugar", "--output", tmp_path / "nowhere").code == 0
    assert not Path(os.devnull).is_file()
    assert (tmp_path / "nowhere").is_symlink()


@pytest.fixture(scope="module")
def calibrated(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibrated")
    shutil.copytree(model, folder / "model")
    write_lines(folder / "dev.jsonl", documents(60, seed=3))
    assert xmtc("calibrate", folder / "model", folder / "dev.jsonl").code == 0
    return folder / "model"


def names(*arguments: object) -> list[list[str]]:
    """The labels of each document that `predict` gives."""
    result = xmtc("predict", *arguments, "--json")
    assert result.code == 0, result
    return [[label["name"] for label in row["labels"]] for row in result.json_lines]


def test_a_threshold_gives_fewer_labels_or_none(calibrated: Path) -> None:
    assert names(calibrated, "sugar beet", "net cow", "what", "--threshold", 0.5) == [
        ["sugar"],
        ["fishery", "milk"],
        [],
    ]
    assert names(calibrated, "net cow", "--threshold", 0.5, "-k", 1) == [["fishery"]]
    assert names(calibrated, "net cow", "--threshold", 0) == names(calibrated, "net cow")
    assert "no label" in xmtc("predict", calibrated, "what", "--threshold", 0.9).out
    rows = xmtc("predict", calibrated, *TEXTS, "--json").json_lines
    kept = xmtc("predict", calibrated, *TEXTS, "--json", "--threshold", 0.01).json_lines
    for row, short in zip(rows, kept, strict=True):
        assert short["labels"] == [label for label in row["labels"] if label["probability"] >= 0.01]


def test_a_target_chooses_the_threshold(calibrated: Path) -> None:
    result = xmtc("predict", calibrated, "sugar beet", "net cow", "--target", "precision=0.9", "--json")
    threshold = float(result.err.split()[1].rstrip(":"))
    assert "on the calibration documents" in result.err
    assert result.out == xmtc("predict", calibrated, "sugar beet", "net cow", "--threshold", threshold, "--json").out
    assert names(calibrated, "sugar beet", "--target", "f1") == [["sugar"]]
    told = fails("predict", calibrated, "sugar", "--target", "recall=0.9", "-k", 1)
    assert "recall=0.9 cannot be reached with 1 label per document: the best recall" in told


def test_a_least_score_needs_no_calibration(model: Path) -> None:
    rows = xmtc("predict", model, *TEXTS, "--json").json_lines
    kept = xmtc("predict", model, *TEXTS, "--json", "--min-score", 0.5).json_lines
    for row, short in zip(rows, kept, strict=True):
        assert short["labels"] == [label for label in row["labels"] if label["score"] >= 0.5]
    assert xmtc("predict", model, "sugar", "--min-score", "-1", "--json").json["labels"]


def test_labels_are_included_and_excluded(model: Path) -> None:
    assert names(model, "sugar beet", "-k", 1, "--exclude", "sugar") != [["sugar"]]
    assert names(model, "sugar beet", "-k", 2, "--include", "t4", "--include", "steel") in (
        [["milk", "steel"]],
        [["steel", "milk"]],
    )
    [everything] = names(model, "sugar beet", "--include", "everything")  # a concept above all labels
    assert len(everything) == 5
    assert names(model, "sugar beet", "--include", "top", "--exclude", "t1") == [everything[1:]]


def test_what_cannot_be_asked_for(model: Path, calibrated: Path) -> None:
    assert "run `xmtc calibrate MODEL DATA` first" in fails("predict", model, "sugar", "--threshold", 0.5)
    assert "xmtc calibrate" in fails("predict", model, "sugar", "--target", "f1")
    assert "either --threshold or --target" in fails("predict", calibrated, "a", "--threshold", 0.5, "--target", "f1")
    assert "from 0 to 1" in fails("predict", calibrated, "sugar", "--threshold", 90)
    assert "Did you mean 'precision'" in fails("predict", calibrated, "sugar", "--target", "precison=0.9")
    assert "Did you mean 'sugar'" in fails("predict", model, "sugar", "--include", "suger")
    assert "no label is left" in fails("predict", model, "sugar", "--include", "t1", "--exclude", "top")
    assert "must be a number" in fails("predict", model, "sugar", "--min-score", "nan")


def test_mistakes(model: Path, tmp_path: Path) -> None:
    assert "not both" in fails("predict", model, "sugar", "--input", "x.txt")
    assert "is a folder" in fails("predict", model, "--input", tmp_path)
    assert "model.json" in fails("predict", tmp_path, "sugar")
    assert "no-such" in fails("predict", tmp_path / "no-such", "sugar")
    assert "no-such.txt" in fails("predict", model, "--input", tmp_path / "no-such.txt")
    assert "cannot write" in fails("predict", model, "sugar", "--output", tmp_path / "no" / "x")
    assert "folder" in fails("predict", model, "sugar", "--output", tmp_path)
    assert "--output is empty" in fails("predict", model, "sugar", "--output", "")
    assert "--input is empty" in fails("predict", model, "--input", "")
    assert "TEXT 2 is not UTF-8" in fails("predict", model, "sugar", "caf\udce9")


def test_no_documents_are_no_error(model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    result = xmtc("predict", model, "--input", tmp_path / "empty.txt", "--json")
    assert (result.code, result.out) == (0, "")
    assert "no documents" in result.err


def test_a_model_trained_on_features_takes_a_feature_file(tmp_path: Path) -> None:
    rows = ["0 0:1 1:0.5", "1 2:1 3:0.5", "0 0:0.9 1:1", "1 2:0.7 3:1"] * 5
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text(f"{len(rows)} 4 2\n" + "\n".join(rows) + "\n")
    assert xmtc("train", tmp_path, "--out", tmp_path / "m").code == 0
    assert xmtc("ensemble", tmp_path / "m", tmp_path / "m", "--out", tmp_path / "e").code == 0
    for folder in ("m", "e"):
        result = xmtc("predict", tmp_path / folder, "--input", tmp_path / "test.txt", "--json", "-k", 1)
        assert [row["id"] for row in result.json_lines] == [str(i) for i in range(20)]
        assert [row["labels"][0]["label"] for row in result.json_lines] == ["0", "1"] * 10
        for wrong in (["some text"], ["--input", "-"]):
            assert "give --input FILE, an XML Repository file" in fails("predict", tmp_path / folder, *wrong)
        assert "features" in fails("explain", tmp_path / folder, "some text")
    assert xmtc("evaluate", tmp_path / "m", tmp_path, "--json").json["metrics"]["P@1"] == 100


def test_the_new_repository_layout_from_training_to_prediction(tmp_path: Path) -> None:
    rows = ["0:1 1:0.5", "2:1 3:0.5", "0:0.9 1:1", "2:0.7 3:1"] * 5
    for split in ("trn", "tst"):
        (tmp_path / f"{split}_X_Xf.txt").write_text(f"{len(rows)} 4\n" + "\n".join(rows) + "\n")
        (tmp_path / f"{split}_X_Y.txt").write_text(f"{len(rows)} 2\n" + "0:1\n1:1\n" * 10)
    assert xmtc("train", tmp_path, "--out", tmp_path / "m").code == 0
    result = xmtc("predict", tmp_path / "m", "--input", tmp_path / "tst_X_Xf.txt", "--json", "-k", 1)
    assert (result.code, result.err) == (0, "")
    assert [row["labels"][0]["label"] for row in result.json_lines] == ["0", "1"] * 10


def test_a_text_in_another_language_is_said_aloud(model: Path, tmp_path: Path) -> None:
    strange = "Verordnung über die Einfuhr aus allen Ländern der Gemeinschaft"
    write_lines(tmp_path / "texts.jsonl", [{"id": "en", "text": "sugar beet quota"}, {"id": "de", "text": strange}])
    result = xmtc("predict", model, "--input", tmp_path / "texts.jsonl", "--json")
    line = "warning: the model knows hardly a word of 1 texts (ids de); are they in another language?\n"
    assert (result.code, result.err) == (0, line)
    assert len(result.json_lines) == 2
    assert xmtc("predict", model, "sugar beet quota fish net boat").err == ""
