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


def run(home: Path, *more: str, recipe: str | Path, train: int = 120, labels: int = N_LABELS, rows: str = "") -> int:
    published = home / "published.toml"
    published.write_text(PUBLISHED.format(train=train, labels=labels) + rows)
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


ENSEMBLE = """
[[sets.tiny.results]]
models = "ensemble of two seeds"
table = "Table 3"
scores = { "P@1" = 60.0 }
members = [{ settings = ["head.dropout=0.1"] }, { seed = 4 }]
"""


def test_models_are_ranked_together_as_by_an_ensemble(home: Path) -> None:
    train, test = (api.read_corpus(home / "tiny", split) for split in ("train", "test"))
    config = {"tfidf": {"min_df": 1}, "tree": {"trees": 1}}
    models = [api.train(train, "linear", config, seed=seed, out=home / f"model-{seed}") for seed in (0, 1)]
    job = {"data": str(home / "tiny"), "models": [str(home / "model-0"), str(home / "model-1")]}
    found = reproduce.PHASES["join"](job)["reports"]
    for truth in ("known", "all"):
        expected = api.evaluate(api.ensemble(models), test, truth=truth)
        assert found[truth]["metrics"]["P@5"] == pytest.approx(expected["P@5"])


@pytest.mark.slow
def test_an_ensembles_members_are_trained_and_ranked_together(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = write_recipe(home, all_texts(), epochs=3)
    given = ("--models", "ensemble of two seeds", "--set", "train.epochs=1", "--work", str(home / "work"))
    assert run(home, *given, recipe=recipe, rows=ENSEMBLE) == 0
    names = ["lightxml-tiny-cpu+head.dropout=0.1+train.epochs=1-0", "lightxml-tiny-cpu+train.epochs=1-4"]
    whole = "lightxml-tiny-cpu+ensemble_of_two_seeds+train.epochs=1-0"
    stored = {path.stem: json.loads(path.read_text()) for path in (home / "results" / "reproduce").glob("*.json")}
    assert stored.keys() == {*names, whole}
    assert stored[whole]["members"] == names
    assert all(len(stored[name]["curve"]) == 1 for name in names)  # --set wins over the recipe
    models = [api.load(home / "work" / "reproduce" / name) for name in names]
    test = api.read_corpus(home / "tiny", "test")
    expected = api.evaluate(api.ensemble(models), test, truth="known")["P@1"]
    assert stored[whole]["reports"]["known"]["metrics"]["P@1"] == pytest.approx(expected)
    rows = {row["models"]: row["differences"] for row in stored[whole]["published"]}
    assert rows["ensemble of two seeds"]["known"]["P@1"] == pytest.approx(expected - 60, abs=1e-3)
    assert rows["one model"] == {}  # which did not run
    assert f"{expected - 60:+.2f}" in capsys.readouterr().out
    assert run(home, "--models", "ensemble of two sedes", recipe=recipe, rows=ENSEMBLE) == 2
    assert "Did you mean 'ensemble of two seeds'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "given", "names"),
    [
        ("lightxml", {"encoder": {"name": "a"}}, {"a"}),
        ("xbert", {"encoder": {"name": "a"}, "cluster": {"encoder": "b"}}, {"a", "b"}),
        ("xbert", {"encoder": {"name": "a"}, "match": {"kind": "xttention"}}, {"a"}),  # which reads label names
        ("xbert", {"encoder": {"name": "a"}, "match": {"kind": "xttention"}, "cluster": {"vectors": ["pifa"]}}, set()),
        ("treader", {"encoder": {"name": "a"}, "text": "words", "neighbours": {"vectors": "words"}}, set()),
        ("treader", {"encoder": {"name": "a"}, "text": "encoder"}, {"a"}),
    ],
)
def test_only_encoders_that_are_used_are_looked_for(method: str, given: dict, names: set[str]) -> None:
    config = api.read_settings(method, given)[1].model_dump(mode="json")
    assert reproduce._encoders(config) == names


def test_random_word_vectors_are_warned_of(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = home / "published.toml"
    text = PUBLISHED.format(train=120, labels=1).replace("row =", 'word_vectors = "those of GloVe"\nrow =')
    published.write_text(text)
    recipe = home / "recipe.toml"
    recipe.write_text('method = "treader"\ntext = "words"\n[neighbours]\nvectors = "words"\n')
    arguments = ["treader", "tiny", "--data", str(home / "tiny"), "--recipe", str(recipe)]
    assert reproduce.BENCHMARK.main([*arguments, "--published", str(published)]) == 2  # the sizes are wrong, too
    assert "the paper begins with those of GloVe" in capsys.readouterr().err
    given = ["--published", str(published), "--set", "words.vectors=wordllama"]
    assert reproduce.BENCHMARK.main([*arguments, *given]) == 2
    assert "GloVe" not in capsys.readouterr().err


@pytest.mark.parametrize(("bf16", "precision"), [(True, "bf16"), (False, "fp16")])
def test_mixed_precision_on_a_gpu(monkeypatch: pytest.MonkeyPatch, bf16: bool, precision: str) -> None:
    import torch

    def precision_of(*assigned: str) -> str:
        return reproduce._read_settings("lightxml", "lightxml/eurlex-4k", list(assigned))[1]["train"]["precision"]

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert precision_of() == "fp32"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: bf16)
    assert precision_of() == precision
    assert precision_of("train.precision=fp32") == "fp32"


def test_help_names_the_methods_and_sets(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        reproduce.BENCHMARK.main(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    for name in ("xbert: eurlex-4k, wiki10-28k, amazoncat-13k, wiki-500k", "rcv1", "--models", "--set PATH=VALUE"):
        assert name in told


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


def test_every_published_row_has_settings_that_exist() -> None:
    for path in sorted((Path(reproduce.__file__).parent / "published").glob("*.toml")):
        for name, published in reproduce.read_published(path).sets.items():
            assert len({row.models for row in published.results}) == len(published.results)
            for row in published.results:
                recipe = row.recipe or reproduce._choose_recipe(path.stem, name)
                for member in row.members or [reproduce.MemberRun()]:
                    reproduce._read_settings(path.stem, recipe, [*row.settings, *member.settings])


def test_every_published_set_needs_no_recipe_named() -> None:
    for path in sorted((Path(reproduce.__file__).parent / "published").glob("*.toml")):
        for name in reproduce.read_published(path).sets:
            method, _ = api.read_settings(path.stem, None, reproduce._choose_recipe(path.stem, name))
            assert method == path.stem
