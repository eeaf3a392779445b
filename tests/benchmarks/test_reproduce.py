"""benchmarks.reproduce on a small folder in the layout of the published data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="neural recipes need torch")

import xmtc
from benchmarks import reproduce
from benchmarks.framework import process, results
from tests.benchmarks.phases import run_here
from tests.benchmarks.sets import N_LABELS, all_texts, write_raw_texts, write_recipe
from xmtc import api
from xmtc.core.config import read_toml

PUBLISHED = """
title = "Someone"
sizes = "Table 2"
[sets.tiny]
row = "Tiny-12"
train = {train}
test = 40
labels = {labels}
[[sets.tiny.results]]
models = "one model"
table = "Table 4"
scores = {{ "P@1" = 50.0, "P@5" = 10.0 }}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(process, "run", run_here)
    write_raw_texts(tmp_path / "tiny", {"train": 120, "test": 40})
    return tmp_path


def run(home: Path, *more: str, recipe: str | Path, train: int = 120, labels: int = N_LABELS) -> int:
    published = home / "published.toml"
    published.write_text(PUBLISHED.format(train=train, labels=labels))
    return reproduce.BENCHMARK.main(
        [
            *("lightxml", "tiny", "--data", str(home / "tiny"), "--recipe", str(recipe)),
            *("--published", str(published), "--threads", "1", *more),
        ]
    )


def test_the_papers_row_stands_beside_ours(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(home, recipe=write_recipe(home, all_texts(), epochs=2)) == 0
    told = capsys.readouterr()
    found = json.loads((home / "results" / "reproduce" / "lightxml-tiny-cpu-0.json").read_text())
    ours = found["reports"]["known"]["metrics"]["P@1"]
    assert found["published"][0]["differences"]["known"]["P@1"] == pytest.approx(ours - 50, abs=1e-3)
    assert found["data"]["train_documents"] == 120  # of which the method itself holds some out
    assert f"{ours - 50:+.2f}" in told.out
    assert "Someone, one model (Table 4)" in told.out
    assert "LightXML on tiny-bert, 2 layers, 16 tokens, 2 epochs, all truth" in told.out
    assert "train documents: 120, as in Table 2, row Tiny-12" in told.err
    assert "counted in train or in train and test" in told.err
    assert str(home) not in json.dumps(found)


def test_other_sizes_are_refused_a_line_each(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = write_recipe(home, all_texts(), epochs=2)
    assert run(home, recipe=recipe, train=15_449, labels=3_956) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert errors == [
        "error: train documents: 120 here, 15,449 in Table 2, row Tiny-12",
        "error: labels: 12 in train and 12 in train and test here, 3,956 in Table 2, row Tiny-12",
    ]
    assert not (home / "results").exists()


def test_labels_of_train_alone_or_of_both_are_accepted(home: Path) -> None:
    path = home / "tiny" / "test_labels.txt"
    path.write_text("\n".join(["unseen", *path.read_text().splitlines()[1:]]) + "\n")
    for labels, where in ((12, "counted in train"), (13, "counted in train and test")):
        published = reproduce.PublishedSet(row="Tiny", train=120, test=40, labels=labels, results=[])
        right, wrong = reproduce.check_sizes(home / "tiny", published, "Table 2")
        assert wrong == []
        assert right[-1].endswith(where)


def test_an_encoder_that_cannot_be_had_is_told_before_reading(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = home / "recipe.toml"
    recipe.write_text('method = "lightxml"\n[encoder]\nname = "./no-such-encoder"\n')
    assert run(home, recipe=recipe) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "no encoder folder './no-such-encoder'" in errors


def test_unknown_methods_and_sets_suggest_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.BENCHMARK.main(["lightxlm", "eurlex-4k", "--data", "."]) == 2
    assert "Did you mean 'lightxml'?" in capsys.readouterr().err
    assert reproduce.BENCHMARK.main(["lightxml", "eurlex4k", "--data", "."]) == 2
    assert "Did you mean 'eurlex-4k'?" in capsys.readouterr().err


def test_every_published_set_has_a_recipe_of_its_method() -> None:
    folder, recipes = Path(reproduce.__file__).parent / "published", Path(xmtc.__file__).parent / "recipes"
    for path in sorted(folder.glob("*.toml")):
        published = reproduce.read_published(path)
        for name in published.sets:
            found = [*recipes.glob(f"{path.stem}/{name}.toml"), *recipes.glob(f"{path.stem}/{name}-*.toml")]
            assert found
            assert {read_toml(recipe)["method"] for recipe in found} == {path.stem}


def test_of_several_recipes_the_papers_is_taken_or_one_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "recipes" / "lightxml"
    folder.mkdir(parents=True)
    monkeypatch.setattr(reproduce, "files", lambda package: tmp_path)
    for variant in ("long", "repo"):
        (folder / f"eurlex-4k-{variant}.toml").write_text('method = "lightxml"\n')
    assert reproduce.BENCHMARK.main(["lightxml", "eurlex-4k", "--data", "."]) == 2
    assert "--recipe: lightxml/eurlex-4k-long or lightxml/eurlex-4k-repo" in capsys.readouterr().err
    for variant in ("eurlex-4k-paper", "eurlex-4k"):
        (folder / f"{variant}.toml").write_text('method = "lightxml"\n')
        assert reproduce._choose_recipe("lightxml", "eurlex-4k") == f"lightxml/{variant}"


def test_every_published_set_needs_no_recipe_named() -> None:
    for path in sorted((Path(reproduce.__file__).parent / "published").glob("*.toml")):
        for name in reproduce.read_published(path).sets:
            method, _ = api.read_settings(path.stem, None, reproduce._choose_recipe(path.stem, name))
            assert method == path.stem
