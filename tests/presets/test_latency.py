"""Presets with a limit on latency: which model is chosen, by latencies that are given here instead of measured."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import xmtc
from tests.methods.ensemble.test_learned import documents
from tests.presets.test_presets import Heard, tiny_encoders
from tests.tiny import build_tiny
from xmtc.api import prepare_preset
from xmtc.core.abilities import Composed
from xmtc.core.calibration import uncalibrated
from xmtc.core.errors import ConfigError
from xmtc.core.threads import n_threads, one_thread
from xmtc.methods.ensemble import CascadeModel, LearnedEnsemble
from xmtc.methods.ensemble.latency import measure_latency, sample_documents
from xmtc.presets.members import ENCODERS

pytest.importorskip("lightgbm")
TRAIN, TEST = documents(240, 0), documents(100, 2)
TEXTS = list(TEST.texts or ())[:20]
TIMES = {"linear": 1e-3, "knn": 8e-3, "lightxml": 60e-3}  # of one document
INT8, ENCODED_KNN, JOINING, GATE = 5e-3, 30e-3, 1e-3, 0.5e-3


def pretend(model: xmtc.Model, _: object = None) -> float:
    """Seconds that a model is said to take."""
    plain = uncalibrated(model)
    if isinstance(plain, CascadeModel):
        assert plain.manifest.config["share"] == 0  # its gate is timed, not the second model
        return pretend(plain.members[0]) + GATE
    if isinstance(plain, Composed):
        return sum(map(pretend, plain.members)) + JOINING
    if plain.manifest.details.format == "onnx-int8":
        return INT8
    if plain.manifest.method == "knn" and plain.manifest.config["neighbours"]["vectors"] == "encoder":
        return ENCODED_KNN
    return TIMES[plain.manifest.method]


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xmtc.methods.ensemble.within.measure_latency", pretend)
    monkeypatch.setattr("xmtc.presets.plan._add", lambda plan, *_: plan)  # trees, neighbours and encoders are enough


def told(model: xmtc.Model) -> SimpleNamespace:
    details = model.manifest.details
    (chosen,) = (option for option in details.latency if option.chosen)
    limit = details.latency_limit
    assert limit is not None
    kept = chosen.milliseconds <= limit
    return SimpleNamespace(chosen=chosen.name, kept=kept, limit=limit, options=details.latency)


def test_all_members_where_there_is_time(pretended: None, tmp_path: Path) -> None:
    model = xmtc.train(TRAIN, preset="balanced", latency=0.012, out=tmp_path / "model")
    plain = xmtc.train(TRAIN, preset="balanced")
    assert (told(model).chosen, told(model).kept, told(model).limit) == ("ensemble", True, 12)
    assert [option.milliseconds for option in told(model).options] == [10]
    board = uncalibrated(model).manifest.details.leaderboard
    assert [line.milliseconds for line in board] == [10, 1, 8]
    assert model.rank(TEXTS, 5).labels.tolist() == plain.rank(TEXTS, 5).labels.tolist()


def test_a_cascade_for_as_many_documents_as_there_is_time_for(pretended: None, tmp_path: Path) -> None:
    heard = Heard()
    out = tmp_path / "model"
    model = xmtc.train(TRAIN, preset="balanced", latency=0.005, dev=TEST, out=out, progress=heard)
    found = told(model)
    whole, alone, cascade = found.options
    assert [option.name for option in found.options[:2]] == ["ensemble", "linear"]
    assert cascade.share == pytest.approx(0.35, abs=2e-4)  # (5 − 1 − 0.5) / 10
    assert cascade.name == "linear, then ensemble for 35%"
    assert cascade.milliseconds == pytest.approx(5, abs=0.01)
    assert found.kept
    worth = [option.scores["P@5"] + 0.3 * option.scores["PSP@5"] for option in (alone, cascade)]
    assert found.chosen == (cascade if worth[1] > worth[0] else alone).name
    assert whole.scores["P@5"] == max(option.scores["P@5"] for option in found.options)
    assert any(fact.startswith("linear, then ensemble for 35%: 5.00 ms") for fact in heard.facts)
    if worth[1] > worth[0]:
        cheap, expensive = uncalibrated(xmtc.load(out)).members
        assert isinstance(expensive, LearnedEnsemble)
        assert cheap.manifest.method == "linear"
        (ends,) = (p for p in model.manifest.details.cascade if p.share == 1)
        assert ends.scores == whole.scores  # both say what the same ensemble reaches
    loaded = xmtc.load(out)
    assert told(loaded) == found
    assert loaded.rank(TEXTS, 5).labels.tolist() == model.rank(TEXTS, 5).labels.tolist()
    assert loaded.rank(TEXTS, 5).probabilities is not None
    with pytest.raises(ConfigError, match="contains a model for another latency"):
        xmtc.train(TRAIN, preset="balanced", latency=0.01, dev=TEST, out=out, resume=True)


def test_the_fastest_with_a_warning_where_none_is_fast_enough(pretended: None) -> None:
    heard = Heard()
    model = xmtc.train(TRAIN, preset="balanced", latency=0.0005, progress=heard)
    assert (told(model).chosen, told(model).kept) == ("linear", False)
    assert model.manifest.method == "linear"
    assert model.rank(TEXTS, 5).probabilities is not None
    warning = "warning: no model answers one document within 0.5 ms here; the fastest, linear, takes 1.00 ms"
    assert warning in heard.facts


def test_one_member_is_measured_not_chosen(pretended: None) -> None:
    model = xmtc.train(TRAIN, preset="fast", latency=0.002)
    assert (told(model).chosen, told(model).kept) == ("linear", True)
    assert told(model).options[0].scores == {}


def test_real_times_are_measured_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XMTC_THREADS", raising=False)
    seen = []

    class Timed:
        manifest = xmtc.train(TRAIN, "linear").manifest

        def rank(self, documents: object, k: int) -> None:
            seen.append((n_threads(), len(documents), k))  # type: ignore[arg-type]

    with one_thread():
        assert 0 < measure_latency(Timed(), sample_documents(TRAIN)) < 1  # type: ignore[arg-type]
    assert seen == [(1, 1, 5)] * 55
    assert "XMTC_THREADS" not in os.environ


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="encoders need torch")
    pytest.importorskip("onnx", reason="encoders are exported")
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("encoders")
    for name in ENCODERS[:2]:
        build_tiny("bert", folder / name, list(TRAIN.texts or ()), layers=10)  # more than presets freeze
    return folder


@pytest.mark.slow
def test_exported_encoders_where_torch_is_too_slow(
    pretended: None, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = prepare_preset("best", latency=0.055, out=tmp_path / "model")
    kept: dict[str, xmtc.Model] = {}

    def train(corpus: xmtc.Corpus, method: str, config: Mapping[str, Any], **options: Any) -> xmtc.Model:
        key = json.dumps([method, config, len(corpus)], sort_keys=True)
        if key not in kept:
            kept[key] = run.trainers.train(corpus, method, config, **{**options, "out": None})
        return kept[key]

    monkeypatch.setattr("xmtc.presets.plan.EPOCHS", 1)
    quick = replace(run, trainers=replace(run.trainers, train=train))
    with tiny_encoders(weights):
        model = quick.start(TRAIN)
        assert [option.name for option in told(model).options] == ["ensemble", "ensemble, int8"]
        assert told(model).chosen == "ensemble, int8"  # 1 + 8 + 2 × 5 + 30 + 1 ms
        formats = [member.manifest.details.format for member in uncalibrated(model).members]
        assert formats.count("onnx-int8") == 2
        assert not (tmp_path / "model.partial").exists()
        assert xmtc.load(tmp_path / "model").rank(TEXTS, 5).labels.tolist() == model.rank(TEXTS, 5).labels.tolist()
        monkeypatch.setattr("xmtc.neural.freeze.find_spec", lambda name: None)
        less = replace(quick, out=None).start(TRAIN)
    left_out = uncalibrated(less).manifest.details.to_json()["left_out"]
    assert [line.split(":")[0] for line in left_out] == ["lightxml-gte-small in int8", "lightxml-minilm in int8"]
    assert "pip install 'xmtc[export]'" in left_out[0]
    assert told(less).kept
    assert told(less).options[1].name == "linear + knn + knn-gte-small"  # 1 + 8 + 30 and joining


@pytest.mark.parametrize("latency", [0, -1, float("inf"), True, "5 ms"])
def test_what_is_no_latency(latency: object) -> None:
    with pytest.raises(ConfigError, match="latency must be a positive number of seconds"):
        xmtc.train(TRAIN, preset="balanced", latency=latency)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="a latency needs a preset"):
        xmtc.train(TRAIN, "linear", latency=0.1)
