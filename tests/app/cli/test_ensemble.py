from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.conftest import fails, xmtc
from xmtc import api


def test_an_ensemble_is_a_model_like_any_other(model: Path, other_model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "e"
    result = xmtc("ensemble", model, other_model, "--out", out, "--rule", "rank", "--weights", "1,2")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"{out}: ensemble, ")
    members = [api.load(model), api.load(other_model)]
    expected = api.ensemble(members, "rank", [1, 2]).rank(["sugar boat"], 3)
    [row] = xmtc("predict", out, "sugar boat", "-k", 3, "--json").json_lines
    assert [label["label"] for label in row["labels"]] == members[0].labels.decode(expected.labels[0])
    assert [label["score"] for label in row["labels"]] == expected.scores[0].tolist()
    assert xmtc("evaluate", out, data, "--json").json["metrics"]["P@1"] > 90
    assert "exists already" in fails("ensemble", model, other_model, "--out", out)
    assert xmtc("ensemble", model, other_model, "--out", out, "--overwrite").code == 0


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--rule", "maen"], "Did you mean 'mean'?"),
        (["--weights", "1"], "weights"),
        (["--weights", "1,x"], "--weights"),
        (["--weights", "0,0"], "not all 0"),
    ],
)
def test_mistakes(model: Path, other_model: Path, tmp_path: Path, options: list[str], hint: str) -> None:
    assert hint in fails("ensemble", model, other_model, "--out", tmp_path / "e", *options)
    assert not (tmp_path / "e").exists()


def test_one_model_is_no_ensemble(model: Path, tmp_path: Path) -> None:
    assert "two" in fails("ensemble", model, "--out", tmp_path / "e")


def test_a_learned_ensemble_from_the_training_documents(
    model: Path, other_model: Path, data: Path, tmp_path: Path
) -> None:
    pytest.importorskip("lightgbm")
    out, documents = tmp_path / "e", tmp_path / "train.jsonl"
    rows = [json.loads(line) for line in (data / "train.jsonl").read_text().splitlines()]
    documents.write_text("".join(json.dumps({**row, "source": i % 6}) + "\n" for i, row in enumerate(rows)))
    learned = ("ensemble", model, other_model, "--out", out, "--rule", "learned", "--tail", 0.3)
    result = xmtc(*learned, "--dev", documents, "--group", "source")
    assert result.code == 0, result.err
    assert "fold 3 of 3" in result.err
    [row] = xmtc("predict", out, "sugar beet", "--json").json_lines
    assert row["labels"][0]["label"] == "t1"
    assert 0 < row["labels"][0]["probability"] < 1
    members = xmtc("explain", out, "sugar beet", "--label", "sugar", "--json").json["labels"][0]["members"]
    assert sum(member["share"] for member in members) == pytest.approx(1)
    assert "  by     linear" in xmtc("explain", out, "sugar beet", "--label", "sugar").out
    assert "'sorce'" in fails(*learned, "--overwrite", "--dev", documents, "--group", "sorce")
    assert "--dev" in fails(*learned, "--overwrite")
    assert "--dev" in fails(*learned, "--overwrite", "--group", "source")


def test_a_cascade_shows_what_each_share_reaches(model: Path, other_model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "e"
    made = ("ensemble", model, other_model, "--out", out, "--rule", "cascade", "--dev", data / "train.jsonl")
    result = xmtc(*made, "--share", 0.25)
    assert result.code == 0, result.err
    assert "by share of documents" in result.out
    assert "25%" in result.out
    assert "25%" in xmtc("inspect", out).out
    [row] = xmtc("predict", out, "sugar beet", "--json").json_lines
    assert row["labels"][0]["label"] == "t1"
    assert 0 < row["labels"][0]["probability"] < 1
    assert "--budget takes a time per document" in fails(*made, "--overwrite", "--budget", "soon")
    assert "leave them out of rule 'mean'" in fails(
        "ensemble", model, other_model, "--out", tmp_path / "m", "--share", 1
    )
