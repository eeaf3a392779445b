from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.app.conftest import fails, write_lines, xmtc
from xmtc import api
from xmtc.core.metrics import Propensity


def test_json_is_what_the_library_measures(model: Path, data: Path) -> None:
    result = xmtc("evaluate", model, data, "--json")
    assert (result.code, result.err) == (0, "")
    report = api.evaluate(api.load(model), api.read_corpus(data, "test"))
    found = result.json
    assert {"metrics", "intervals", "n", "n_labels", "propensity", "truth", "model", "data"} <= set(found)
    assert found["metrics"] == report.metrics
    assert found["intervals"] == {key: list(interval) for key, interval in report.intervals.items()}
    assert set(found["intervals"]) == set(found["metrics"])
    assert found["metrics"]["P@1"] > 90
    assert (found["n"], found["n_labels"], found["truth"]) == (40, 5, "all")
    assert found["propensity"] == {"A": 0.55, "B": 1.5, "N": 120}
    assert (found["model"], found["data"]) == (str(model), str(data))


def test_options_reach_the_metrics(model: Path, data: Path) -> None:
    found = xmtc("evaluate", model, data, "--truth", "known", "--propensity", "0.5,0.4", "--json").json
    assert (found["truth"], found["propensity"]) == ("known", {"A": 0.5, "B": 0.4, "N": 120})
    expected = api.evaluate(api.load(model), api.read_corpus(data, "test"), "known", Propensity(A=0.5, B=0.4))
    assert found["metrics"] == expected.metrics
    assert found["metrics"] != xmtc("evaluate", model, data, "--json").json["metrics"]


def test_split_names_a_folders_split_and_a_file_is_itself(model: Path, data: Path) -> None:
    assert xmtc("evaluate", model, data, "--split", "train", "--json").json["n"] == 120
    assert xmtc("evaluate", model, data / "train.jsonl", "--json").json["n"] == 120


def test_the_table_shows_scores_bins_and_what_was_used(model: Path, data: Path) -> None:
    result = xmtc("evaluate", model, data)
    report = xmtc("evaluate", model, data, "--json").json
    assert (result.code, result.err) == (0, "")
    for key in ("P@1", "PSP@5", "nDCG@3", "macro-F@5/medium", "coverage@5/medium"):
        assert f"{report['metrics'][key]:.2f} [" in result.out
    told = " ".join(result.out.split())  # where lines break hangs on how long the folders' names are
    assert "truth all" in told
    assert "1 of them were not in the training data" in told
    assert "A = 0.55, B = 1.5" in told
    assert ["labels", "0", "5", "0"] in [line.split() for line in result.out.splitlines()]


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--split", "tset"], "Did you mean 'test'?"),
        (["--propensity", "0.5"], "two numbers"),
        (["--propensity", "a,b"], "0.55,1.5"),
        (["--propensity", "0.5,-1"], "'B'"),
        (["--truth", "none"], "'known'"),
    ],
)
def test_mistakes(model: Path, data: Path, options: list[str], hint: str) -> None:
    assert hint in fails("evaluate", model, data, *options)


def test_comparison_is_what_the_library_finds(model: Path, other_model: Path, data: Path) -> None:
    result = xmtc("compare", model, other_model, "--data", data, "--json")
    assert (result.code, result.err) == (0, "")
    models = {str(folder): api.load(folder) for folder in (model, other_model)}
    expected = api.compare(models, api.read_corpus(data, "test")).to_json()
    assert result.json == {**expected, "truth": "all", "data": str(data)}


def test_comparison_table(model: Path, other_model: Path, data: Path, tmp_path: Path) -> None:
    twin, poor = tmp_path / "twin", tmp_path / "poor"
    assert xmtc("train", data, "--out", twin).code == 0
    write_lines(tmp_path / "nothing.jsonl", ({"text": "regulation", "labels": [f"t{1 + i % 5}"]} for i in range(20)))
    assert xmtc("train", tmp_path / "nothing.jsonl", "--out", poor).code == 0
    result = xmtc("compare", model, twin, poor, "--data", data)
    assert (result.code, result.err) == (0, "")
    rows = [line.split() for line in result.out.splitlines() if line.split()[:1] == ["P@1"]]
    assert len(rows) == 3  # all side by side, then each with the first
    assert rows[1][-1] == "undecided"
    assert rows[1][3] == "+0.00"
    assert rows[2][-1] == "worse"
    assert rows[2][3].startswith("-")
    assert "propensity A = 0.55, B = 1.5, N = 120 training documents" in " ".join(result.out.split())


def test_comparison_needs_two_models(model: Path, data: Path) -> None:
    assert "two" in fails("compare", model, "--data", data)
    assert "two" in fails("compare", model, model, "--data", data)


def test_saved_rankings_are_compared_like_their_models(
    model: Path, other_model: Path, data: Path, tmp_path: Path
) -> None:
    file, page = tmp_path / "first.npz", tmp_path / "page.html"
    result = xmtc("evaluate", model, data, "--save-ranking", file, "--report", page)
    assert (result.code, result.err) == (0, "")
    assert f"ranking: {file}" in result.out
    with_file = xmtc("compare", file, other_model, "--data", data, "--json").json
    expected = xmtc("compare", model, other_model, "--data", data, "--json").json
    assert with_file["first"] == str(file)
    assert [one["metrics"] for one in with_file["models"]] == [one["metrics"] for one in expected["models"]]
    assert with_file["models"][1]["differences"] == expected["models"][1]["differences"]
    assert "cut or altered" in fails("compare", page, model, "--data", data)
    assert "ranks 40 documents" in fails("compare", file, model, "--data", data / "train.jsonl")
    assert "is a saved ranking" in fails("compare", file, model, "--data", data, "--report", page)
    assert "name a file" in fails("evaluate", model, data, "--save-ranking", tmp_path)


def test_all_pairs(model: Path, other_model: Path, data: Path, tmp_path: Path) -> None:
    file, page = tmp_path / "third.npz", tmp_path / "page.html"
    assert xmtc("evaluate", model, data, "--save-ranking", file).code == 0
    result = xmtc("compare", model, other_model, file, "--data", data, "--all-pairs")
    assert re.findall(r"\[\d\] − \[\d\]", result.out) == ["[2] − [1]", "[3] − [1]", "[3] − [2]"]
    found = xmtc("compare", model, other_model, file, "--data", data, "--all-pairs", "--json").json
    assert list(found["models"][2]["pairs"]) == [str(other_model)]
    copy = tmp_path / "copy"
    api.load(model).save(copy)
    assert xmtc("compare", model, other_model, copy, "--data", data, "--all-pairs", "--report", page).code == 0
    assert f"copy minus {other_model.name}" in page.read_text(encoding="utf-8")


def test_seeds_are_trained_and_measured_together(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    one_tree = ("--set", "tree.trees=1")
    trained = xmtc("train", data, "--out", out, "--seeds", "3,7", *one_tree)
    assert (trained.code, trained.err) == (0, "")
    assert [line.partition(": ")[0] for line in trained.out.splitlines()] == [f"{out}-3", f"{out}-7"]
    assert api.load(f"{out}-7").manifest.seed == 7
    found = xmtc("evaluate", out, data, "--seeds", "3,7", "--json").json
    scores = [xmtc("evaluate", f"{out}-{seed}", data, "--json").json["metrics"]["PSP@1"] for seed in (3, 7)]
    assert [one["metrics"]["PSP@1"] for one in found["models"]] == scores
    assert found["metrics"]["PSP@1"]["mean"] == pytest.approx(sum(scores) / 2)
    assert found["metrics"]["PSP@1"]["spread"] == pytest.approx(abs(scores[0] - scores[1]) / 2**0.5)
    assert "standard deviation" in xmtc("evaluate", out, data, "--seeds", "3,7").out
    for wrong in ("1", "1,1", "1,x", "-1,2"):
        assert "--seeds takes two or more different whole numbers" in fails("evaluate", out, data, "--seeds", wrong)
    assert "leave them out" in fails("evaluate", out, data, "--seeds", "3,7", "--report", tmp_path / "r.html")
    assert "exists" in fails("train", data, "--out", out, "--seeds", "3,9", *one_tree)
    assert not (tmp_path / "model-9").exists()
