"""The rivals: which run unasked, that each has its driver, and that those which read texts get the matrices' rows."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
import scipy.sparse as sp

from benchmarks.machine import ROOT
from benchmarks.peers import __main__ as peers
from benchmarks.peers import race
from benchmarks.peers.drivers.job import percentiles, texts
from benchmarks.peers.export import export
from benchmarks.peers.rivals import OURS, RIVALS, ready
from benchmarks.sets import SETS
from xmtc.catalogue import read_settings
from xmtc.core.errors import ConfigError


def test_slow_rivals_run_only_when_named() -> None:
    assert "pecos-xrt" not in [rival.name for rival in peers._choose(None)]
    assert [rival.name for rival in peers._choose("pecos-xrt,omikuji")] == ["pecos-xrt", "omikuji"]


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_has_a_driver(name: str) -> None:
    assert (ROOT / "benchmarks" / "peers" / "drivers" / f"{RIVALS[name].module}.py").is_file()


def test_the_transformer_reads_as_much_of_every_set_as_xbert() -> None:
    lengths = RIVALS["pecos-xrt"].settings["truncate_length"]
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
