from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import xmtc as library
from tests.app.conftest import documents, fails, write_lines, xmtc

TEXTS = ["sugar beet", "boat net cow", ""]


@pytest.fixture(scope="session")
def with_dev(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("with-dev")
    shutil.copytree(data, folder, dirs_exist_ok=True)
    write_lines(folder / "dev.jsonl", documents(60, seed=3))
    return folder


@pytest.fixture
def copy(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "model"))


def test_dev_gives_probabilities_and_thresholds(copy: Path, with_dev: Path) -> None:
    result = xmtc("calibrate", copy, with_dev)
    assert (result.code, result.err) == (0, "")
    first, *rest = result.out.splitlines()
    assert first.endswith("model: isotonic, from the best 20 labels of 60 documents given for it")
    assert any("medium (21–100)" in line and "300 labels ranked, 90 of them right" in line for line in rest)
    assert any("--target precision=0.9 " in line and "threshold 0." in line for line in rest)
    rows = xmtc("predict", copy, *TEXTS, "--json", "-k", 3).json_lines
    ranking = library.load(copy).rank(TEXTS, 3)
    assert ranking.probabilities is not None
    told = [[label["probability"] for label in row["labels"]] for row in rows]
    assert told == ranking.probabilities.tolist()
    assert set(rows[0]["labels"][0]) == {"label", "name", "score", "probability"}
    line = xmtc("predict", copy, "sugar beet").out.splitlines()[1]
    assert line.split()[1].endswith("%")
    assert line.split()[2] == "sugar"


def test_json_and_platt_and_a_file(copy: Path, with_dev: Path) -> None:
    told = xmtc("calibrate", copy, with_dev / "dev.jsonl", "--method", "platt", "--json").json
    assert {key: told[key] for key in ("method", "n_documents", "source")} == {
        "method": "platt",
        "n_documents": 60,
        "source": "given for it",
    }
    assert told["pairs"]["medium"] == 300
    assert set(told["thresholds"]["f1"]) == {"value", "precision", "recall", "f1"}
    assert xmtc("inspect", copy, "--json").json["calibration"]["method"] == "platt"
    assert xmtc("calibrate", copy, with_dev, "--split", "test", "--json").json["n_documents"] == 40


def test_without_dev_a_copy_is_trained_without_a_part(copy: Path, data: Path) -> None:
    result = xmtc("calibrate", copy, data)
    assert result.code == 0
    assert "dev: 6 of the 120 training documents; a copy of the model is trained without them" in result.err
    assert "ranked by a copy trained without them" in result.out
    assert "calibrated" in xmtc("inspect", copy).out
    same = xmtc("calibrate", copy, data / "train.jsonl")  # the file that it was trained on is known again
    assert (same.out, same.err) == (result.out, result.err)


def test_inspect_says_whether_it_is_calibrated(model: Path, copy: Path, with_dev: Path) -> None:
    assert "no; `xmtc calibrate` adds probabilities" in xmtc("inspect", model).out
    assert xmtc("inspect", model, "--json").json["calibration"] is None
    xmtc("calibrate", copy, with_dev)
    assert "isotonic, on 60 documents given for it" in xmtc("inspect", copy).out


def test_a_model_of_features(tmp_path: Path) -> None:
    rows = ["0 0:1 1:0.5", "1 2:1 3:0.5", "0 0:0.9 1:1", "1 2:0.7 3:1"] * 10
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text(f"{len(rows)} 4 2\n" + "\n".join(rows) + "\n")
    assert xmtc("train", tmp_path, "--out", tmp_path / "m").code == 0
    assert xmtc("calibrate", tmp_path / "m", tmp_path, "--split", "test").code == 0
    found = xmtc("predict", tmp_path / "m", "--input", tmp_path / "test.txt", "--json", "--threshold", 0.5).json_lines
    assert [[label["label"] for label in row["labels"]] for row in found] == [["0"], ["1"]] * 20
    steered = xmtc("predict", tmp_path / "m", "--input", tmp_path / "test.txt", "--json", "--exclude", "0").json_lines
    assert {label["label"] for row in steered for label in row["labels"]} == {"1"}


def test_an_ensemble_is_calibrated_as_any_model(model: Path, other_model: Path, with_dev: Path, tmp_path: Path) -> None:
    assert xmtc("ensemble", model, other_model, "--out", tmp_path / "e").code == 0
    assert "xmtc calibrate" in fails("predict", tmp_path / "e", "sugar", "--threshold", 0.5)
    assert xmtc("calibrate", tmp_path / "e", with_dev).code == 0
    [row] = xmtc("predict", tmp_path / "e", "sugar beet", "--threshold", 0.5, "--json").json_lines
    assert [label["name"] for label in row["labels"]] == ["sugar"]


def test_mistakes(model: Path, copy: Path, with_dev: Path, tmp_path: Path) -> None:
    assert "Did you mean 'dev'" in fails("calibrate", copy, with_dev, "--split", "dve")
    assert "no-such" in fails("calibrate", tmp_path / "no-such", with_dev)
    assert "no-such" in fails("calibrate", copy, tmp_path / "no-such")
    assert "isotonic" in fails("calibrate", copy, with_dev, "--method", "beta")
    write_lines(tmp_path / "train.jsonl", documents(20, seed=9))
    complaint = fails("calibrate", copy, tmp_path)
    assert "has no dev split, and" in complaint
    assert "was not trained on its train split" in complaint
    assert "--split" in complaint
    (tmp_path / "empty.jsonl").write_text(json.dumps({"text": "sugar", "labels": []}) + "\n")
    assert "label" in fails("calibrate", copy, tmp_path / "empty.jsonl")
    assert not (copy / "calibration.json").exists()
