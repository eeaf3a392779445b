from __future__ import annotations

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
