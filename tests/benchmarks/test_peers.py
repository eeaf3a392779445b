"""The rivals: which run unasked, that each has its driver, and that those which read texts get the matrices' rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import scipy.sparse as sp

from benchmarks.machine import ROOT
from benchmarks.peers import __main__ as peers
from benchmarks.peers.drivers.job import texts
from benchmarks.peers.export import export
from benchmarks.peers.rivals import RIVALS
from benchmarks.sets import SETS


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
