"""benchmarks.neural_overhead: the ways do the same work, and what is found becomes a table."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the training loop needs torch")

import torch

from benchmarks import neural_overhead
from benchmarks.framework import results
from benchmarks.neural_overhead import loops
from benchmarks.training_steps import Stamps, cut_evenly, draw_documents
from tests.benchmarks.sets import all_texts, write_native
from tests.tiny import build_tiny
from xmtc.core.config import build
from xmtc.core.errors import ConfigError
from xmtc.methods.aplc import method as aplc
from xmtc.methods.lightxml import method as lightxml
from xmtc.methods.mexml import method as mexml
from xmtc.neural.encoder import Encoder, load_encoder

SIZES = {"labels": 50, "cluster": 8, "bottleneck": 6, "shortlist": 3, "batch": 4, "tokens": 12}


@pytest.fixture
def encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    return build_tiny("bert", tmp_path / "tiny-bert", all_texts(), layers=2)


def _lightxml(encoder: Encoder, settings: dict[str, Any], mode: str) -> tuple[Any, Any, Any]:
    over = {"head": {"mode": mode, "dropout": 0.0, "bottleneck": 6, "shortlist": 3}}
    config = build(lightxml.LightxmlConfig, settings, over)
    network = lightxml.LightxmlNetwork(encoder, config, 50, None if mode == "small" else cut_evenly(50, 7))
    return network, config, lightxml.groups


def _aplc(encoder: Encoder, settings: dict[str, Any]) -> tuple[Any, Any, Any]:
    config = build(aplc.AplcConfig, settings, {"train": {"clip": 0.1}})
    return aplc.AplcNetwork(encoder, config, cut_evenly(50, 2)), config, aplc.groups


def _mexml(encoder: Encoder, settings: dict[str, Any]) -> tuple[Any, Any, Any]:
    config = build(mexml.MexmlConfig, settings, {"train": {"clip": 0.1, "warmup": 0.3}})
    network = mexml.MexmlNetwork(encoder, config, 50, None)
    network.diverse = True
    return network, config, mexml.groups


@pytest.mark.parametrize("case", ["small", "large", "aplc", "mexml"])
def test_the_loop_by_hand_trains_as_ours(encoder: Path, case: str) -> None:
    settings = {
        "encoder": {"name": str(encoder), "max_length": 12, "dropout": 0.0},
        "head": {"dropout": 0.0},
        "train": {"batch_size": 4},
    }
    loaded, _ = load_encoder(build(lightxml.LightxmlConfig, settings).encoder)
    words = loaded.embed_words().num_embeddings
    data = draw_documents(20, 12, words, 50, loaded.layout, shortest=6)
    assemble = {"aplc": _aplc, "mexml": _mexml}.get(case) or partial(_lightxml, mode=case)
    start, config, groups = assemble(loaded, settings)
    networks = [copy.deepcopy(start) for _ in range(2)]
    for network, way in zip(networks, (loops._by_hand, loops._ours), strict=True):
        stamps = Stamps()
        way(loops.Problem.prepare(network, groups(network, config), data, config.train), stamps)
        assert len(stamps.times) == 5
        assert stamps.ms > 0
    moved = 0.0
    for before, by_hand, ours in zip(start.parameters(), *(n.parameters() for n in networks), strict=True):
        torch.testing.assert_close(by_hand, ours, rtol=1e-4, atol=1e-6)
        moved += float((ours - before).detach().abs().sum())
    assert moved > 0.1


def test_cases_become_a_table(encoder: Path, tmp_path: Path) -> None:
    assert tuple(loops.PHASES) == neural_overhead.CASES
    folder = write_native(tmp_path / "tate", {"train": 300, "test": 10})
    job: dict[str, Any] = {"encoder": str(encoder), "data": str(folder), "steps": 4, "rounds": 2, **SIZES}
    quiet = {"load_before": 0.1, "waited_s": 0.0, "others_cores": 0.5}
    facts = {"commit": None, "dirty": True, "cpu": "a processor", "cores": 2, "ram_gb": 8.0, "system": "Linux"}
    facts |= {"python": "3.11", "packages": {}, "threads": 1, "seed": 0}
    measured = {"facts": facts, "steps": 4, "peak_rss_mb": 1.0, "machine": quiet}
    assert neural_overhead.BENCHMARK.section() == []
    cases = {name: {**case(job), **measured} for name, case in loops.PHASES.items()}
    cases["mexml"]["steps"] = 5
    for name in ("mexml", "small", "aplc", "large"):  # in whatever order they are measured
        case = cases[name]
        assert set(case["ms_a_step"]) == {"bare", "hand", "ours"}
        assert len(case["rounds"]) == 2
        ratio = case["ratios"]["hand"]
        assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]
        shares = [entry["percent"] for entry in case["profile"]]
        assert shares == sorted(shares, reverse=True)
        assert 20 < sum(shares) <= 100
        results.write_result(neural_overhead.NAME, neural_overhead.join(name, case))
    page = "\n".join(neural_overhead.BENCHMARK.section())
    cases_told = [line for line in page.splitlines() if " documents a step; " in line]
    assert cases_told == [
        "- small: tate, 12 labels, one layer over all; up to 48 tokens, 64 documents a step; 2 rounds of 3 steps.",
        "- large: synthetic, 50 labels in 7 clusters; up to 12 tokens, 4 documents a step; 2 rounds of 3 steps.",
        "- aplc: tate, 12 labels, in two even bands; up to 48 tokens, 64 documents a step; 2 rounds of 3 steps.",
        "- mexml: tate, 12 labels, two experts and the diversity loss; up to 48 tokens, 64 documents a step; "
        "2 rounds of 4 steps.",
    ]
    kept = results.read_result(neural_overhead.NAME)
    assert kept is not None
    assert f"{kept['cases']['aplc']['ratios']['hand']['median']:.3f} [" in page


def test_cases_are_chosen_by_name() -> None:
    assert neural_overhead.choose("mexml,small") == ["mexml", "small"]
    assert neural_overhead.choose(None) == list(neural_overhead.CASES)
    with pytest.raises(ConfigError, match=r"--cases: there is no 'aplx'\. Did you mean 'aplc'\?"):
        neural_overhead.choose("aplc,aplx")


def test_labels_are_cut_into_even_clusters() -> None:
    sizes = [len(cut_evenly(670, 8).members(cluster)) for cluster in range(8)]
    assert sum(sizes) == 670
    assert set(sizes) == {83, 84}
