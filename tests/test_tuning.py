from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

import xmtc
from tests.app.conftest import fails, write_lines
from tests.app.conftest import xmtc as command
from tests.methods.ensemble.test_learned import documents
from xmtc import api, tuning
from xmtc.core.config import Settings
from xmtc.core.errors import ConfigError
from xmtc.core.progress import Progress
from xmtc.core.search_space import Tunable, defaults_of, search_space
from xmtc.engines import open_engine

pytest.importorskip("optuna")
TRAIN, DEV = documents(150, 0), documents(80, 1)
FIXED = {"tfidf": {"min_df": 1}, "tree": {"trees": 1}}


class Inner(Settings):
    power: Annotated[float, Tunable(0.5, 2.0)] = Field(9.0, ge=0)
    other: int = 3


class Outer(Settings):
    inner: Inner = Field(default_factory=Inner)
    size: Annotated[int, Tunable(2, 8, log=True)] = 4


def test_ranges_stand_beside_the_fields() -> None:
    space = search_space(Outer())
    assert space == {"inner.power": Tunable(0.5, 2.0), "size": Tunable(2, 8, log=True)}
    assert defaults_of(Outer(), space) == {"inner.power": 2.0, "size": 4}  # 9 is outside its range


@pytest.mark.parametrize("method", api.METHODS)
def test_every_method_declares_ranges_that_its_settings_accept(method: str) -> None:
    if method not in ("linear", "knn", "match"):
        pytest.importorskip("torch")
    space = search_space(api.read_settings(method)[1])
    assert len(space) >= 2
    for path, tunable in space.items():
        for value in (tunable.low, tunable.high):
            config: object = value
            for key in reversed(path.split(".")):
                config = {key: config}
            api.read_settings(method, config)  # type: ignore[arg-type]


def test_the_best_trial_wins_and_its_recipe_trains(tmp_path: Path) -> None:
    found = tuning.tune(TRAIN, "knn", FIXED_KNN, trials=5, dev=DEV, journal=tmp_path / "j")
    assert len(found.scores) == 5
    assert found.best == max(found.scores)
    default = xmtc.train(TRAIN, "knn", FIXED_KNN)
    assert found.scores[0] == pytest.approx(xmtc.evaluate(default, DEV, "known", intervals=False)["nDCG@5"])
    recipe = tmp_path / "found.toml"
    recipe.write_text(found.recipe())
    model = xmtc.train(TRAIN, recipe=recipe)
    assert xmtc.evaluate(model, DEV, "known", intervals=False)["nDCG@5"] == pytest.approx(found.best)
    assert model.manifest.config["tfidf"]["min_df"] == 1
    assert model.manifest.config["neighbours"]["k"] == found.config["neighbours"]["k"]


FIXED_KNN = {"tfidf": {"min_df": 1}}


def test_trials_in_other_processes_are_those_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker: the same settings in the same order. Two: the same number, the first with the defaults."""
    here = tuning.tune(TRAIN, "knn", FIXED_KNN, trials=3, dev=DEV, journal=tmp_path / "here")
    monkeypatch.setenv("XMTC_THREADS", "1")
    with open_engine("processes") as engine:
        there = tuning.tune(TRAIN, "knn", FIXED_KNN, trials=3, dev=DEV, journal=tmp_path / "there", engine=engine)
    assert there == here
    monkeypatch.setenv("XMTC_THREADS", "2")
    heard: list[str] = []

    class Heard(Progress):
        def say(self, fact: str) -> None:
            heard.append(fact)

    def search(trials: int, **options: Any) -> tuning.Tuning:
        with open_engine("processes") as engine:
            options |= {"journal": tmp_path / "two", "engine": engine, "progress": Heard()}
            return tuning.tune(TRAIN, "knn", FIXED_KNN, trials=trials, dev=DEV, **options)

    two = search(3)
    assert sorted(two.scores) == pytest.approx(sorted(here.scores))  # none is proposed by what another has reached
    assert heard[0] == "trials run on 2 processes"
    assert len(search(5).scores) == 5  # resumes
    assert len(search(9, time_limit=1e-9).scores) == 5


def test_an_interrupted_search_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, calls = api.train, []

    def interrupted(*arguments: object, **options: object) -> xmtc.Model:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(api, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tuning.tune(TRAIN, "knn", FIXED_KNN, trials=4, dev=DEV, journal=tmp_path / "j")
    shutil.copy(tmp_path / "j", tmp_path / "other")
    found = tuning.tune(TRAIN, "knn", FIXED_KNN, trials=4, dev=DEV, journal=tmp_path / "j")
    assert len(calls) == 5  # two, the one that was interrupted, and the two that were missing
    assert len(found.scores) == 4
    again = tuning.tune(TRAIN, "knn", FIXED_KNN, trials=4, dev=DEV, journal=tmp_path / "j")
    assert (again, len(calls)) == (found, 5)
    with pytest.raises(ConfigError, match="another method, metric, seed or corpus"):
        tuning.tune(TRAIN, "knn", FIXED_KNN, trials=4, dev=DEV, seed=1, journal=tmp_path / "other")


def test_time_is_up_after_the_first_trial(tmp_path: Path) -> None:
    found = tuning.tune(TRAIN, "linear", FIXED, trials=50, time_limit=1e-6, journal=tmp_path / "j")
    assert len(found.scores) == 1
    assert tomllib.loads(found.recipe())["tree"] == {"trees": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "linaer"}, "unknown method 'linaer'"),
        ({"method": "knn", "metric": "nDCG@6"}, "unknown metric 'nDCG@6'"),
        ({"method": "knn", "trials": 0}, "trials must be"),
        ({"method": "knn", "config": {"neighbours": {"k": 3}, "vote": {"power": 1}}}, "have a fixed value"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tuning.tune(TRAIN, dev=DEV, journal=tmp_path / "j", **arguments)  # type: ignore[arg-type]


def test_a_journal_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("no journal\n")
    with pytest.raises(ConfigError, match="is not the journal of a search"):
        tuning.tune(TRAIN, "knn", dev=DEV, journal=tmp_path / "j")


def test_on_the_command_line(tmp_path: Path) -> None:
    rows = zip(TRAIN.texts or (), TRAIN.Y, strict=True)
    write_lines(
        tmp_path / "train.jsonl", [{"text": text, "labels": TRAIN.labels.decode(row.indices)} for text, row in rows]
    )
    out = tmp_path / "tuned.toml"
    options = ["--method", "knn", "--metric", "P@1", "--set", "tfidf.min_df=1", "--out", out]
    done = command("tune", tmp_path, "--trials", 2, *options)
    assert done.code == 0, done.err
    assert "trial 2 of 2: P@1" in done.err
    assert (tmp_path / "tuned.svg").read_text().startswith("<?xml")
    more = command("tune", tmp_path, "--trials", 3, *options)
    assert more.code == 0, more.err
    assert more.err.count("trial ") == 1
    trained = command("train", tmp_path, "--recipe", out, "--out", tmp_path / "model")
    assert trained.code == 0, trained.err
    assert "unknown metric 'P@9'" in fails("tune", tmp_path, "--metric", "P@9", "--out", out)
    (tmp_path / "mine.toml").write_text("")
    assert "mine.toml exists" in fails("tune", tmp_path, "--out", tmp_path / "mine.toml")
