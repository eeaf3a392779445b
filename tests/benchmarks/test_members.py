"""benchmarks.members, from a small set's files to the results page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="benchmarks.train tells the version of torch")

from benchmarks import members, train
from benchmarks.framework import process, results
from benchmarks.framework.markdown import SCORES
from benchmarks.models import some_members
from benchmarks.rankings import WIDTH, read_stored, write_ranking
from tests.benchmarks.phases import run_here
from tests.benchmarks.sets import write_native
from xmtc import api
from xmtc.core import metrics

RUN = "xbert-four-0"
RECIPE = """\
method = "xbert"
[match]
kind = "linear"
[cluster]
vectors = ["words", "pifa"]
seeds = 2
count = 4
[search]
beam = 2
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(process, "run", run_here)
    write_native(tmp_path / "data" / "tiny", {"train": 200, "test": 60})
    (tmp_path / "four.toml").write_text(RECIPE)
    options = ["--set-name", "tiny", "--data", str(tmp_path / "data"), "--patience", "0", "--threads", "1"]
    assert train.BENCHMARK.main([str(tmp_path / "four.toml"), *options]) == 0
    return tmp_path


@pytest.mark.timeout(600)
def test_members_alone_and_by_kinds_are_what_models_of_them_give(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["tiny", RUN, "--data", str(home / "data")]
    assert members.BENCHMARK.main(given) == 0
    found = json.loads((home / "results" / "members" / "tiny" / f"{RUN}.json").read_text())
    model = api.load(home / "cache" / "benchmarks" / "tiny" / RUN)
    test = api.read_corpus(home / "data" / "tiny", "test")
    kinds = [one.vectors for one in model.manifest.details.members]
    assert len(kinds) == 4
    chosen = {"all": [0, 1, 2, 3], **{kind: [i for i in range(4) if kinds[i] == kind] for kind in set(kinds)}}
    alone = {str(i): [i] for i in range(4)}
    for who, which in {**chosen, **alone}.items():
        ranking = api.rank_corpus(some_members(model, which), test, WIDTH)
        aligned = test.align(model.labels)
        report = metrics.evaluate(ranking, aligned.Y, aligned.labels, model.manifest.n_documents, mode="known")
        scores = found["kinds"][who] if who in chosen else found["members"][which[0]]["metrics"]
        assert scores == pytest.approx({key: report.metrics[key] for key in SCORES}, abs=1e-3)
    for kind, differences in found["differences"].items():
        gain = found["kinds"]["all"]["P@1"] - found["kinds"][kind]["P@1"]
        assert differences["P@1"]["difference"] == pytest.approx(gain, abs=1e-3)
    assert f"### Members of {RUN}" in members.describe_set("tiny")
    assert members.stale("tiny") == []

    path = home / "results" / "train" / "tiny" / f"{RUN}.json"
    result = json.loads(path.read_text())
    stored = read_stored(home / "results" / "rankings" / "tiny" / f"{RUN}.test.npz")
    other = np.roll(stored.ids, 1, axis=0)
    result["rankings"]["test"] = write_ranking("tiny", f"{RUN}.test", other)
    path.write_text(json.dumps(result))
    assert members.stale("tiny") == [
        f"tiny: members of {RUN} are of another model; run python -m benchmarks.members tiny {RUN} again"
    ]
    capsys.readouterr()
    assert members.BENCHMARK.main(given) == 2
    assert "ranks otherwise than its result" in capsys.readouterr().err
    assert members.BENCHMARK.main(["tiny", "xbert-five-0", *given[2:]]) == 2
    assert "no run 'xbert-five-0' on tiny" in capsys.readouterr().err
