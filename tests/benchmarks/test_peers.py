"""The rivals: which run unasked, that each has its driver, and that those which read texts get the matrices' rows."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import pytest
import scipy.sparse as sp

from benchmarks.machine import ROOT
from benchmarks.peers import __main__ as peers
from benchmarks.peers import choose, race
from benchmarks.peers.drivers.job import percentiles, texts
from benchmarks.peers.export import export
from benchmarks.peers.rivals import OURS, RIVALS, ready
from benchmarks.sets import SETS
from benchmarks.store import read_result
from xmtc.api import read_corpus
from xmtc.catalogue import read_settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.data.pydocs import build_pydocs


def test_slow_rivals_run_only_when_named() -> None:
    assert "pecos-xrt" not in [rival.name for rival in peers._choose(None)]
    assert [rival.name for rival in peers._choose("pecos-xrt,omikuji")] == ["pecos-xrt", "omikuji"]


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_has_a_driver(name: str) -> None:
    assert (ROOT / "benchmarks" / "peers" / "drivers" / f"{RIVALS[name].module}.py").is_file()


def test_the_transformer_reads_as_much_of_every_set_as_xbert() -> None:
    lengths = {name: settings["truncate_length"] for name, settings in RIVALS["pecos-xrt"].by_set.items()}
    recipes = ROOT / "src" / "xmtc" / "recipes" / "xbert"
    assert lengths.keys() == set(SETS)
    for name, length in lengths.items():
        assert f"max_length = {length}\n" in (recipes / f"{name}-cpu.toml").read_text()


def test_texts_are_those_of_the_rows(tmp_path: Path) -> None:
    documents = {
        "train": [("fish net beet", ["f"]), ("sugar fish net", []), ("sugar «beet» sugar", ["s"])],
        "test": [("beet of sugar", ["s"])],
    }
    for split, rows in documents.items():
        lines = [json.dumps({"text": text, "labels": labels}) for text, labels in rows]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.warns(match="without labels"):
        problem = export(tmp_path, tmp_path / "problem")
    job = {"data": str(problem.folder)}
    assert texts(job, "train") == ["fish net beet", "sugar «beet» sugar"]
    assert texts(job, "test") == ["beet of sugar"]
    assert sp.load_npz(problem.folder / "X.train.npz").shape[0] == 2


def test_xmtc_runs_like_its_rivals_but_in_this_environment(tmp_path: Path) -> None:
    for rival in OURS.values():
        assert ready(rival, tmp_path) == Path(sys.executable)
        assert (ROOT / "benchmarks" / "peers" / "drivers" / f"{rival.module}.py").is_file()
        read_settings("linear", recipe=rival.settings["recipe"])


def test_the_race_names_its_contestants() -> None:
    assert [rival.name for rival in race.choose("pecos,xmtc-fast")] == ["pecos", "xmtc-fast"]
    assert {"omikuji", "pecos", "napkinxc", "libmultilabel", "scikit-learn"} < {one.name for one in race.choose(None)}
    with pytest.raises(ConfigError, match="xmtc-fast"):
        race.choose("xmtc-fats")


def test_percentiles_are_of_milliseconds() -> None:
    found = percentiles(lambda i: time.sleep(0.002 if i % 25 == 0 else 0))
    assert found["p50"] < 1 < 2 <= found["p99"]


def test_the_race_has_the_values_that_were_chosen() -> None:
    result = read_result(choose.KIND, "pydocs")
    assert result is not None
    for name, found in result["contestants"].items():
        assert race.CONTESTANTS[name].by_set["pydocs"]["C"] == found["chosen"], name
    chosen = {name for name, rival in race.CONTESTANTS.items() if rival.by_set}
    assert chosen == set(result["contestants"])


def test_a_module_is_held_out_whole_and_every_value_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.store.RESULTS", tmp_path / "results")
    build_pydocs(tmp_path / "pydocs", ["rich", "joblib"])
    corpus = read_corpus(tmp_path / "pydocs", "train")
    train, held = choose.hold_out(corpus)
    assert len(train) + len(held) == len(corpus)

    def modules(part: Corpus) -> set[str]:
        deepest = [[part.labels.ids[label] for label in row.indices] for row in part.Y]
        return {max((label for label in labels if not label.startswith("arg:")), key=len) for labels in deepest}

    assert modules(held)
    assert not modules(train) & modules(held)
    options = argparse.Namespace(threads=1, seed=0, timeout=60, patience=0)
    choose.try_set("pydocs", tmp_path / "pydocs", race.choose("xmtc-fast"), tmp_path / "work", options)
    found = read_result(choose.KIND, "pydocs")["contestants"]["xmtc-fast"]
    assert list(found["tried"]) == ["0.25", "0.5", "1.0", "2.0"]
    best = max(tried["nDCG@5"] for tried in found["tried"].values())
    assert found["tried"][str(found["chosen"])]["nDCG@5"] == best
    assert len({tried["nDCG@5"] for tried in found["tried"].values()}) > 1  # the value reaches the solver
    assert f"| xmtc linear/fast (1 tree) | {found['chosen']} (chosen) |" in "\n".join(choose.section("pydocs"))
