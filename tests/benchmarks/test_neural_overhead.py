"""benchmarks.neural_overhead: the ways do the same work, and what is found becomes a table."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the training loop needs torch")

import torch

from benchmarks import neural_overhead, store
from benchmarks import neural_overhead_run as ways
from tests.benchmarks.sets import all_texts, write_native
from tests.tiny import build_tiny
from xmtc.core.config import build
from xmtc.methods import lightxml
from xmtc.neural.encoder import load_encoder

SIZES = {"labels": 50, "cluster": 8, "bottleneck": 6, "shortlist": 3, "batch": 4, "tokens": 12}


@pytest.fixture
def encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    return build_tiny("bert", tmp_path / "tiny-bert", all_texts(), layers=2)


@pytest.mark.parametrize("mode", ["small", "large"])
def test_the_loop_by_hand_trains_as_ours(encoder: Path, mode: str) -> None:
    config = build(
        lightxml.Config,
        {
            "encoder": {"name": str(encoder), "max_length": 12, "dropout": 0.0},
            "head": {"mode": mode, "dropout": 0.0, "bottleneck": 6, "shortlist": 3},
            "train": {"batch_size": 4},
        },
    )
    loaded, _ = load_encoder(config.encoder)
    words = loaded.embed_words().num_embeddings
    data = ways.draw_documents(20, 12, words, 50, loaded.layout, shortest=6)
    partition = None if mode == "small" else ways.cut_evenly(50, 7)
    start = lightxml.Network(loaded, config, 50, partition)
    networks = [copy.deepcopy(start) for _ in range(2)]
    for network, way in zip(networks, (ways._by_hand, ways._ours), strict=True):
        stamps = ways.Stamps()
        way(ways.Problem.prepare(network, config, data), stamps)
        assert len(stamps.times) == 5
        assert stamps.ms > 0
    moved = 0.0
    for before, by_hand, ours in zip(start.parameters(), *(n.parameters() for n in networks), strict=True):
        torch.testing.assert_close(by_hand, ours, rtol=1e-4, atol=1e-6)
        moved += float((ours - before).detach().abs().sum())
    assert moved > 0.1


def test_both_cases_become_a_table(encoder: Path, tmp_path: Path) -> None:
    folder = write_native(tmp_path / "tate", {"train": 300, "test": 10})
    job: dict[str, Any] = {"encoder": str(encoder), "data": str(folder), "steps": 4, "rounds": 2, **SIZES}
    quiet = {"load_before": 0.1, "waited_s": 0.0, "others_cores": 0.5}
    cases = {case: {**getattr(ways, case)(job), "peak_rss_mb": 1.0, "machine": quiet} for case in ("small", "large")}
    for case in cases.values():
        assert set(case["ms_a_step"]) == {"bare", "hand", "ours"}
        assert len(case["rounds"]) == 2
        ratio = case["ratios"]["hand"]
        assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]
        shares = [entry["percent"] for entry in case["profile"]]
        assert shares == sorted(shares, reverse=True)
        assert 20 < sum(shares) <= 100
    facts = {"commit": None, "dirty": True, "cpu": "a processor", "cores": 2, "ram_gb": 8.0, "system": "Linux"}
    facts |= {"python": "3.11", "packages": {}, "threads": 1, "seed": 0}
    assert neural_overhead.section() == []
    store.write_result(".", neural_overhead.NAME, {"facts": facts, "steps": 4, "rounds": 2, "cases": cases})
    page = "\n".join(neural_overhead.section())
    assert "| large: synthetic, 50 labels in 7 clusters; up to 12 tokens, 4 documents a step |" in page
    assert "| small: tate, 12 labels, one layer over all; up to 48 tokens, 64 documents a step |" in page
    assert f"{cases['small']['ratios']['hand']['median']:.3f} [" in page


def test_labels_are_cut_into_even_clusters() -> None:
    sizes = [len(ways.cut_evenly(670, 8).members(cluster)) for cluster in range(8)]
    assert sum(sizes) == 670
    assert set(sizes) == {83, 84}
