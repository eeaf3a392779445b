from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.app.conftest import fails, xmtc
from xmtc.app.cli import rankings
from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet

TEXT = "Sugar beet and a boat"


def test_json_explains_the_best_labels(model: Path) -> None:
    result = xmtc("explain", model, TEXT, "-k", 2, "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["text"] == TEXT
    first, second = result.json["labels"]
    ranked = xmtc("predict", model, TEXT, "-k", 2, "--json").json_lines[0]["labels"]
    assert [found["label"] for found in (first, second)] == [label["label"] for label in ranked]
    assert first["score"] == pytest.approx(ranked[0]["score"], abs=1e-5)
    assert first["name"] == "sugar"
    assert {span["text"] for span in first["spans"] if span["weight"] > 0} >= {"Sugar", "beet"}
    assert all(TEXT[span["start"] : span["end"]] == span["text"] for span in first["spans"])
    assert first["words"][0]["word"] in ("sugar", "beet")
    assert first["path"]


def test_a_label_is_given_by_name_or_id(model: Path) -> None:
    by_name = xmtc("explain", model, TEXT, "--label", "fishery", "--json").json
    assert by_name == xmtc("explain", model, TEXT, "--label", "t2", "--json").json
    assert [found["label"] for found in by_name["labels"]] == ["t2"]


def test_text_lists_words_and_path(model: Path) -> None:
    out = xmtc("explain", model, TEXT, "--label", "sugar").out
    assert out.startswith("sugar  ")
    assert "words  sugar +" in out or "words  beet +" in out
    assert "\n  path   " in out


def test_mistakes(model: Path) -> None:
    assert "Did you mean 'sugar'?" in fails("explain", model, TEXT, "--label", "suger")
    assert "UTF-8" in fails("explain", model, "caf\udce9")
    assert "no training document" in fails("explain", model, TEXT, "--label", "everything")


def test_k_above_the_number_of_labels(model: Path) -> None:
    assert len(xmtc("explain", model, TEXT, "-k", 10**12, "--json").json["labels"]) <= 5


def test_words_are_highlighted_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=80, color_system="standard", highlight=False)
    monkeypatch.setattr(rankings, "out", lambda: screen)
    found = Explanation(label="a", score=1.0, method="linear", spans=((0, 3, 2.0), (4, 7, -2.0), (8, 13, 0.2)))
    rankings.print_explanations([found], "for and words", LabelSet.build(["a"]))
    assert isinstance(screen.file, io.StringIO)
    shown = screen.file.getvalue()
    assert "\x1b[1;32mfor\x1b[0m \x1b[1;31mand\x1b[0m \x1b[32mwords\x1b[0m" in shown


def test_neighbours_and_scope_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), width=200, highlight=False)
    monkeypatch.setattr(rankings, "out", lambda: screen)
    labels = LabelSet.build([f"l{i:02d}" for i in range(25)])
    scope = tuple((label, 0.04) for label in labels.ids)
    found = Explanation("l00", 1.0, neighbours=(("d7", 0.875, ("l01", "l02")),), scope=scope)
    rankings.print_explanations([found], "text", labels)
    assert isinstance(screen.file, io.StringIO)
    lines = screen.file.getvalue().splitlines()
    assert "  like   0.88  d7: l01, l02" in lines
    assert f"  scope  {' · '.join(labels.ids[:20])} and 5 more" in lines
    assert rankings.explanation_json(found, "text", labels)["scope"][1] == {
        "label": "l01",
        "name": "l01",
        "weight": 0.04,
    }
