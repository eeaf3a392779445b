from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xmtc
from tests.app.conftest import documents
from xmtc import api
from xmtc.core import storage
from xmtc.core.calibration import CalibratedModel, calibration_of, find_threshold, uncalibrated
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.storage import FolderReader, add_file

TEXTS = ["sugar beet", "fish net", ""]
ONE_TREE = {"tree": {"trees": 1}}


def corpus(n: int, seed: int) -> xmtc.Corpus:
    rows = documents(n, seed)
    return xmtc.Corpus.from_lists([row["text"] for row in rows], [row["labels"] for row in rows])


@pytest.fixture(scope="module")
def train() -> xmtc.Corpus:
    return corpus(120, seed=1)


@pytest.fixture(scope="module")
def dev() -> xmtc.Corpus:
    return corpus(60, seed=3)


@pytest.fixture(scope="module")
def model(train: xmtc.Corpus) -> xmtc.Model:
    return xmtc.train(train, "linear", ONE_TREE)


@pytest.fixture(scope="module")
def calibrated(model: xmtc.Model, dev: xmtc.Corpus) -> CalibratedModel:
    return api.calibrate(model, dev)


def same(first: xmtc.Model, second: xmtc.Model) -> bool:
    ours, theirs = first.rank(TEXTS, 4), second.rank(TEXTS, 4)
    if (ours.probabilities is None) != (theirs.probabilities is None):
        return False
    chances = ours.probabilities is None or (ours.probabilities == theirs.probabilities).all()
    return bool((ours.labels == theirs.labels).all() and (ours.scores == theirs.scores).all() and chances)


def test_scores_and_their_order_stay_and_probabilities_join(model: xmtc.Model, calibrated: CalibratedModel) -> None:
    plain, ranked = model.rank(TEXTS, 4), calibrated.rank(TEXTS, 4)
    assert plain.probabilities is None
    assert (ranked.labels == plain.labels).all()
    assert (ranked.scores == plain.scores).all()
    assert ranked.probabilities is not None
    assert ranked.probabilities[0, 0] > 0.9
    assert ranked.probabilities[0, 3] < 0.1
    assert calibrated.explain("sugar beet", "t1").score == model.explain("sugar beet", "t1").score
    assert uncalibrated(calibrated) is model
    assert calibration_of(model) is None
    assert xmtc.evaluate(calibrated, corpus(40, 2))["P@1"] == xmtc.evaluate(model, corpus(40, 2))["P@1"]


def test_a_saved_calibration_comes_back(model: xmtc.Model, calibrated: CalibratedModel, tmp_path: Path) -> None:
    calibrated.save(tmp_path / "m")
    assert same(xmtc.load(tmp_path / "m"), calibrated)
    listed = json.loads((tmp_path / "m" / "model.json").read_text())["files"]["calibration.json"]
    assert listed["size"] == (tmp_path / "m" / "calibration.json").stat().st_size
    calibrated.save(tmp_path / "m", overwrite=True)
    with pytest.raises(ModelError, match="exists already"):
        calibrated.save(tmp_path / "m")
    model.save(tmp_path / "m", overwrite=True)  # a model saved anew is not calibrated
    assert same(xmtc.load(tmp_path / "m"), model)
    assert os.listdir(tmp_path) == ["m"]


def test_calibration_is_added_to_the_folder_of_the_model(
    model: xmtc.Model, dev: xmtc.Corpus, calibrated: CalibratedModel, tmp_path: Path
) -> None:
    model.save(tmp_path / "m")
    calibrated.save(tmp_path / "whole")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "m").rglob("*.npy")}
    api.calibrate(model, dev, out=tmp_path / "m")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "m").rglob("*.npy")}
    for path in (tmp_path / "whole").rglob("*"):
        assert (
            path.is_dir() or path.read_bytes() == (tmp_path / "m" / path.relative_to(tmp_path / "whole")).read_bytes()
        )
    again = api.calibrate(xmtc.load(tmp_path / "m"), dev, "platt", out=tmp_path / "m")  # in place of the old one
    assert same(xmtc.load(tmp_path / "m"), again)
    assert not same(again, calibrated)
    assert sorted(os.listdir(tmp_path)) == ["m", "whole"]
    assert not list((tmp_path / "m").glob(".*"))


def test_a_cut_calibration_is_refused_by_name(calibrated: CalibratedModel, tmp_path: Path) -> None:
    calibrated.save(tmp_path / "m")
    path = tmp_path / "m" / "calibration.json"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ModelError, match=r"calibration\.json is cut or altered"):
        xmtc.load(tmp_path / "m")


KILLED = """
import os, sys
from pathlib import Path
from xmtc.core import storage

left = int(sys.argv[2])

def replace(source, target, really=os.replace):
    global left
    if left == 0:
        os.kill(os.getpid(), 9)
    left -= 1
    really(source, target)

storage.os.replace = replace
storage.add_file(sys.argv[1], "calibration.json", Path(sys.argv[3]).read_bytes())
"""


@pytest.mark.parametrize(("first", "steps"), [(True, 0), (True, 1), (False, 0), (False, 1), (False, 2)])
def test_killed_at_any_step_a_model_is_left(
    model: xmtc.Model, calibrated: CalibratedModel, tmp_path: Path, first: bool, steps: int
) -> None:
    (model if first else calibrated).save(tmp_path / "m")
    new = tmp_path / "new.json"
    new.write_text(calibrated.calibration.to_json().replace('"given for it"', '"others"'))
    command = [sys.executable, "-c", KILLED, str(tmp_path / "m"), str(steps), str(new)]
    assert subprocess.run(command, check=False).returncode == -9
    left = calibration_of(xmtc.load(tmp_path / "m"))
    if first or steps:
        assert left is None  # as it was, or, while one is replaced, without any: never half
    else:
        assert left is not None
        assert left.source == "given for it"
    add_file(tmp_path / "m", "calibration.json", new.read_bytes())
    found = calibration_of(xmtc.load(tmp_path / "m"))
    assert found is not None
    assert found.source == "others"
    assert not list((tmp_path / "m").glob(".*"))  # what the killed run left behind is gone


def test_a_folder_that_cannot_be_written_is_told(
    model: xmtc.Model, train: xmtc.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save(tmp_path / "m")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.os, "replace", full)
    with pytest.raises(ModelError, match=r"cannot write to the model .*No space left"):
        add_file(tmp_path / "m", "calibration.json", b"{}")
    monkeypatch.undo()
    assert FolderReader(tmp_path / "m").text("calibration.json") is None
    with pytest.raises(ModelError, match=r"no model\.json"):
        add_file(tmp_path, "calibration.json", b"{}")

    def read_only(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(ModelError, match=r"cannot write to the model .*Read-only"):  # before the documents are ranked
        api.calibrate(model, train.take([0]), out=tmp_path / "m")


def test_the_training_corpus_is_not_learnt_from_as_it_is(train: xmtc.Corpus, model: xmtc.Model) -> None:
    """A linear model is trained again without a part: the calibration must be that of the copy's rankings."""
    found = api.calibrate(model, train).calibration
    assert found.n_documents == 6  # 5 %
    assert "copy" in found.source
    kept, held = train.split(0.05, seed=0)
    by_hand = api.calibrate(xmtc.train(kept, "linear", ONE_TREE), held).calibration
    assert by_hand.curves["pooled"].to_json() == found.curves["pooled"].to_json()


def test_an_ensemble_has_a_calibration_of_its_own(
    train: xmtc.Corpus, dev: xmtc.Corpus, model: xmtc.Model, calibrated: CalibratedModel, tmp_path: Path
) -> None:
    other = xmtc.train(train, "linear", {**ONE_TREE, "solver": {"C": 0.1}}, seed=7)
    joined = api.ensemble([calibrated, other], out=tmp_path / "e")
    assert joined.rank(TEXTS, 2).probabilities is None  # its members' calibrations are not its own
    own = api.calibrate(joined, dev, out=tmp_path / "e")
    loaded = xmtc.load(tmp_path / "e")
    assert same(loaded, own)
    assert (loaded.rank(TEXTS, 2).scores == joined.rank(TEXTS, 2).scores).all()
    assert "copy" in api.calibrate(loaded, train).calibration.source


def test_targets_are_found_on_the_calibration(model: xmtc.Model, calibrated: CalibratedModel) -> None:
    found = find_threshold(calibrated, "precision=0.9")
    assert found.precision >= 0.9
    assert find_threshold(calibrated, "f1", k=1).recall < 1
    ranking = xmtc.suggest(calibrated, TEXTS, threshold=found.value)
    assert ranking.probabilities is not None
    assert (ranking.probabilities[ranking.labels >= 0] >= found.value).all()
    with pytest.raises(ModelError, match="xmtc calibrate"):
        find_threshold(model, "f1")
    with pytest.raises(ModelError, match="k must be"):
        find_threshold(calibrated, "f1", k=0)


def test_mistakes(model: xmtc.Model, dev: xmtc.Corpus, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="takes a Corpus"):
        api.calibrate(model, "data")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown calibration"):
        api.calibrate(model, dev, "beta")  # type: ignore[arg-type]
    xmtc.train(dev, "linear", ONE_TREE, out=tmp_path / "other")
    with pytest.raises(ModelError, match="contains another model"):
        api.calibrate(model, dev, out=tmp_path / "other")
    shutil.rmtree(tmp_path / "other")
    api.calibrate(model, dev, out=tmp_path / "other")  # a new folder gets the whole model
    assert xmtc.load(tmp_path / "other").rank(TEXTS).probabilities is not None
    features = xmtc.Corpus.assemble([["t1"]], X=np.ones((1, 3)))
    with pytest.raises(ModelError, match="ranks texts"):
        api.calibrate(model, features)
