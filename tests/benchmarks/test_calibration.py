"""benchmarks.calibration on a small set: from stored rankings, and from the model where they are too narrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import calibration
from benchmarks.framework import results
from benchmarks.rankings import write_ranking
from benchmarks.splits import label_fingerprint, read_splits
from tests.benchmarks.sets import write_native
from xmtc import api


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory):
    """A set with dev, a linear model in the folder of models, and its run with both rankings in the results."""
    folder = tmp_path_factory.mktemp("calibration")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "RESULTS", folder / "results")
        data = write_native(folder / "data" / "small", {"train": 60, "dev": 150, "test": 120})
        splits, test = read_splits(data), api.read_corpus(data, "test")
        model = api.train(splits.train, "linear", {"tree": {"trees": 1}}, out=folder / "work" / "small" / "linear-0")
        rankings = {}
        for split, corpus in (("dev", splits.dev), ("test", test)):
            ranking = api.rank_corpus(model, corpus, 12)
            rankings[split] = write_ranking("small", f"linear-0.{split}", ranking.labels, ranking.scores)
        facts = {**splits.about(), "test": test.fingerprint(), "label_ids": label_fingerprint(model.labels)}
        run = {"set": "small", "name": "linear-0", "title": "xmtc linear", "data": facts, "rankings": rankings}
        results.write_result("train/small/linear-0", run)
        yield folder


def measure(home: Path) -> dict[str, Any]:
    code = calibration.BENCHMARK.main(["small", "linear-0", "--data", str(home / "data"), "--work", str(home / "work")])
    result = json.loads((home / "results" / "calibration" / "small" / "linear-0.json").read_text())
    assert code == (0 if result["fits"] else 1)
    return result


def test_figures_are_those_of_a_plain_count(home: Path) -> None:
    result = measure(home)
    assert str(home) not in json.dumps(result)
    assert result["rankings"].startswith("stored")
    assert result["pairs"]["all"] == 120 * 12
    splits, test = read_splits(home / "data" / "small"), api.read_corpus(home / "data" / "small", "test")
    model = api.load(home / "work" / "small" / "linear-0")
    calibrated = api.calibrate(model, splits.dev).rank(test.texts, 12)
    truth = test.align(model.labels).Y.toarray()
    right = np.take_along_axis(truth, calibrated.labels.astype(np.int64), axis=1) > 0
    for kind, sure in (("score", calibrated.scores), ("isotonic", calibrated.probabilities)):
        pairs = sorted(zip(sure.ravel().tolist(), right.ravel().tolist(), strict=True), key=lambda pair: pair[0])
        groups = np.array_split(np.array(pairs), 15)
        gaps = [abs(group[:, 0].mean() - group[:, 1].mean()) * len(group) for group in groups]
        assert result["error"][kind]["all"] == pytest.approx(sum(gaps) / len(pairs), abs=2e-3)
    held = result["threshold"]["isotonic"]
    given = calibrated.probabilities >= held["value"] - 1e-3  # stored scores are halves
    assert held["pairs"] == pytest.approx(given.sum(), rel=0.02)
    assert held["precision"] == pytest.approx(right[given].mean(), abs=0.02)
    assert held["interval"][0] <= held["precision"] <= held["interval"][1]
    assert held["dev_precision"] >= 0.9


def test_a_ranking_that_is_not_stored_is_made_by_the_model(home: Path) -> None:
    before = measure(home)
    path = home / "results" / "rankings" / "small" / "linear-0.dev.npz"
    kept = path.read_bytes()
    try:
        path.unlink()
        again = measure(home)
    finally:
        path.write_bytes(kept)
    assert again["rankings"] == "by the model"
    assert again["error"]["isotonic"]["all"] == pytest.approx(before["error"]["isotonic"]["all"], abs=5e-3)


def test_the_page_tells_it(home: Path) -> None:
    result = measure(home)
    page = "\n".join(calibration.BENCHMARK.section())
    assert f"| small: xmtc linear | score | {result['error']['score']['all']:.4f} |" in page
    assert f"{100 * result['threshold']['isotonic']['precision']:.2f} [" in page
    assert ("all runs. " in page) is result["fits"]


def test_mistakes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibration.BENCHMARK.main(["small", "linaer-0", "--data", str(home / "data")]) == 2
    assert "Did you mean 'linear-0'" in capsys.readouterr().err
    other = write_native(home / "other" / "small", {"train": 61, "dev": 150, "test": 120})
    # train alone does not matter
    assert calibration.BENCHMARK.main(["small", "linear-0", "--data", str(other.parent)]) in (0, 1)
    write_native(home / "third" / "small", {"train": 60, "test": 120})
    assert calibration.BENCHMARK.main(["small", "linear-0", "--data", str(home / "third")]) == 2
    assert "differ" in capsys.readouterr().err


def test_no_result_no_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert calibration.BENCHMARK.section() == []
