from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xmtc
from tests.methods.ensemble.test_learned import documents
from tests.tiny import build_tiny
from xmtc import api
from xmtc.catalogue import read_settings
from xmtc.core.calibration import calibration_of, uncalibrated
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.labels import Concept
from xmtc.core.outlined import Pace, Timed
from xmtc.core.progress import Progress
from xmtc.presets import PresetRun
from xmtc.presets.members import ENCODERS, Member, fine_tuned, held_out_fraction, tokens_to_read
from xmtc.presets.names import decide_names
from xmtc.presets.plan import make_plan, next_encoder

pytest.importorskip("lightgbm")
TRAIN, TEST = documents(240, 0), documents(100, 2)


class Heard(Progress):
    def __init__(self) -> None:
        self.facts: list[str] = []

    def say(self, fact: str) -> None:
        self.facts.append(fact)


class Interrupted(Heard):
    """Stops a run, as Ctrl-C does, when a stage begins for the n-th time."""

    def __init__(self, stage: str, times: int = 1) -> None:
        super().__init__()
        self.waiting, self.times = stage, times

    def stage(self, name: str) -> None:
        self.times -= name == self.waiting
        if self.times == 0:
            raise KeyboardInterrupt


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@contextmanager
def tiny_encoders(folder: Path) -> Iterator[None]:
    """Put tiny encoders under the names that presets ask for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XMTC_ENCODERS", str(folder))
        patch.setenv("XMTC_CACHE", str(folder / "cache"))
        patch.setattr("xmtc.presets.plan.ENCODERS", ENCODERS[:2])
        patch.setattr("xmtc.presets.plan.EPOCHS", 2)
        yield


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="encoders need torch")
    folder = tmp_path_factory.mktemp("encoders")
    for name in ENCODERS[:2]:
        build_tiny("bert", folder / name, list(TRAIN.texts or ()), layers=10)  # more than presets freeze
    return folder


@pytest.fixture
def encoders(weights: Path) -> Iterator[Path]:
    with tiny_encoders(weights):
        yield weights


@pytest.fixture(scope="module")
def whole(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `best` makes without an interruption."""
    out = tmp_path_factory.mktemp("whole") / "model"
    with tiny_encoders(weights):
        xmtc.train(TRAIN, preset="best", out=out)
    return out


def test_fast_is_the_default_linear_model_with_probabilities(tmp_path: Path) -> None:
    model = xmtc.train(TRAIN, preset="fast", out=tmp_path / "fast")
    plain = xmtc.train(TRAIN, "linear")
    assert calibration_of(model) is not None
    assert model.manifest.config == plain.manifest.config
    assert (model.rank(list(TEST.texts or ()), 5).labels == plain.rank(list(TEST.texts or ()), 5).labels).all()


def test_balanced_repeats_byte_for_byte_and_ranks_as_saved(tmp_path: Path) -> None:
    model = xmtc.train(TRAIN, preset="balanced", out=tmp_path / "a")
    xmtc.train(TRAIN, preset="balanced", out=tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert not (tmp_path / "a.partial").exists()
    loaded = xmtc.load(tmp_path / "a")
    texts = list(TEST.texts or ())
    assert (loaded.rank(texts, 5).labels == model.rank(texts, 5).labels).all()
    assert loaded.rank(texts, 5).probabilities is not None
    details = uncalibrated(loaded).manifest.details.to_json()
    assert (details["preset"], details["left_out"]) == ("balanced", [])
    board = details["leaderboard"]
    assert [line["name"] for line in board] == ["ensemble", "linear", "knn", "linear-pairs", "linear-characters"]
    assert sum(line["share"] for line in board[1:]) == pytest.approx(1, abs=1e-3)
    assert all(0 < line["scores"]["P@1"] <= 100 for line in board)


def test_members_trained_side_by_side_make_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_THREADS", "2")
    xmtc.train(TRAIN, preset="balanced", out=tmp_path / "here")
    heard = Heard()
    xmtc.train(TRAIN, preset="balanced", out=tmp_path / "there", engine="processes", progress=heard)
    assert files(tmp_path / "here") == files(tmp_path / "there")
    assert "members are trained on 2 processes" in heard.facts
    assert sum(" is trained, in " in fact for fact in heard.facts) == 4
    stopped = Interrupted("learning")  # the members are finished, the ensemble is not
    with pytest.raises(KeyboardInterrupt):
        xmtc.train(TRAIN, preset="balanced", out=tmp_path / "again", engine="processes", progress=stopped)
    resumed = Heard()
    xmtc.train(TRAIN, preset="balanced", out=tmp_path / "again", engine="processes", resume=True, progress=resumed)
    assert {"linear is finished already", "knn is finished already"} <= set(resumed.facts)
    assert files(tmp_path / "here") == files(tmp_path / "again")


def test_on_another_engine_a_preset_needs_a_folder() -> None:
    with pytest.raises(ConfigError, match="a preset on engine 'processes' needs out"):
        xmtc.train(TRAIN, preset="fast", engine="processes")
    with pytest.raises(ConfigError, match="leave out workers"):
        xmtc.train(TRAIN, preset="fast", workers=2)


def named(words: str, seed: int) -> tuple[xmtc.Corpus, xmtc.Corpus]:
    """Documents with words of their labels, but for every fifth label's only one; test documents have them all."""
    n = 60
    concepts = [Concept(f"L{i}", words.format(i=i)) for i in range(n)]
    kept = [i for i in range(n) for _ in range(1 if i % 5 == 0 else 6)]
    random = np.random.default_rng(seed)

    def write(labels: list[int], told: bool) -> xmtc.Corpus:
        noise = [" ".join(f"noise{j}" for j in random.integers(0, 40, 5)) for _ in labels]
        texts = [f"{f'topic{i}' if told or i % 5 else ''} {more}" for i, more in zip(labels, noise, strict=True)]
        if not told:  # a word must be in two documents to be counted
            texts = [f"{text} topic{i - 1}" if i % 5 == 1 else text for i, text in zip(labels, texts, strict=True)]
        return xmtc.Corpus.from_lists(texts, [[f"L{i}"] for i in labels], concepts=concepts)

    return write(kept, False), write(list(range(n)), True)


@pytest.mark.parametrize(("words", "expected"), [("topic{i}", True), ("noise{i} noise1 noise2 noise3", False)])
def test_names_teach_where_they_rank_dev_better(words: str, expected: bool) -> None:
    train, dev = named(words, 0)
    heard = Heard()
    model = xmtc.train(train, preset="balanced", dev=dev, progress=heard)
    configs = [member.manifest.config for member in uncalibrated(model).members]
    linear, knn, *others = (config.get("train", {}).get("names", False) for config in configs)
    taught = {"linear": linear, "knn": knn}
    assert not any(others)
    assert taught == {"linear": expected, "knn": expected}
    assert sum("with label names as documents" in fact for fact in heard.facts) == 2


def test_leaderboard_scores_are_those_of_the_members_on_dev() -> None:
    model = xmtc.train(TRAIN, preset="balanced", dev=TEST)
    board = {line.name: line for line in uncalibrated(model).manifest.details.leaderboard}
    for name in ("linear", "knn"):
        measured = xmtc.evaluate(xmtc.train(TRAIN, name), TEST, truth="known", intervals=False)
        assert board[name].scores == {key: round(measured[key], 2) for key in ("P@1", "P@5", "PSP@5")}


@pytest.mark.parametrize(("stage", "times"), [("epoch 2 of 2", 1), ("epoch 1 of 2", 2), ("learning", 1)])
def test_best_interrupted_anywhere_resumes_to_the_same_bytes(
    encoders: Path, whole: Path, tmp_path: Path, stage: str, times: int
) -> None:
    out = tmp_path / "model"
    with pytest.raises(KeyboardInterrupt):
        xmtc.train(TRAIN, preset="best", out=out, progress=Interrupted(stage, times))
    assert not out.exists()
    with pytest.raises(ConfigError, match="another preset, language, latency, seed or corpus"):
        xmtc.train(TRAIN, preset="best", out=out, seed=1, resume=True)
    heard = Heard()
    xmtc.train(TRAIN, preset="best", out=out, resume=True, progress=heard)
    assert "linear is finished already" in heard.facts
    assert files(out) == files(whole)
    again = Heard()
    xmtc.train(TRAIN, preset="best", out=out, resume=True, progress=again)
    assert again.facts == [f"{out} is finished already, with the same data and seed: nothing to do"]


def test_best_has_encoders_and_names_them(whole: Path) -> None:
    details = uncalibrated(xmtc.load(whole)).manifest.details.to_json()
    names = [line["name"] for line in details["leaderboard"]]
    assert names[:5] == ["ensemble", "linear", "knn", "linear-pairs", "linear-characters"]
    assert names[5:] == ["lightxml-gte-small", "knn-gte-small", "lightxml-minilm"]


def test_a_second_leaves_a_model(encoders: Path, tmp_path: Path) -> None:
    heard = Heard()
    xmtc.train(TRAIN, preset="best", time_limit=1, out=tmp_path / "model", progress=heard)
    model = xmtc.load(tmp_path / "model")
    assert model.manifest.method == "linear"
    assert xmtc.evaluate(model, TEST, intervals=False)["P@1"] > 20
    assert any("left out: knn and the ensemble" in fact for fact in heard.facts)


def test_a_member_that_cannot_be_trained_is_left_out(encoders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = api.prepare_preset("best")

    def train(corpus: xmtc.Corpus, method: str, *rest: Any, **options: Any) -> xmtc.Model:
        if method == "lightxml":
            raise ConfigError("no memory")
        return run.trainers.train(corpus, method, *rest, **options)

    broken: PresetRun = replace(run, trainers=replace(run.trainers, train=train))
    details = uncalibrated(broken.start(TRAIN)).manifest.details
    assert details.to_json()["left_out"] == ["lightxml-gte-small: no memory", "lightxml-minilm: no memory"]
    assert sorted(broken.seconds) == ["ensemble", "knn", "knn-gte-small", "linear", "linear-characters", "linear-pairs"]


def test_without_torch_it_says_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def find_few(name: str, *rest: Any) -> Any:
        return None if name in ("torch", "transformers", "accelerate") else find(name, *rest)

    monkeypatch.setattr("xmtc.presets.plan.find_spec", find_few)
    heard = Heard()
    model = xmtc.train(TRAIN, preset="best", progress=heard)
    reason = (
        "encoders (gte-small, minilm, minilm-l3): they need torch, transformers, accelerate; install them with: "
        "pip install 'xmtc[neural]'"
    )
    assert f"  left out: {reason}" in heard.facts
    assert uncalibrated(model).manifest.details.to_json()["left_out"] == [reason]


def test_without_lightgbm_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xmtc.presets.plan.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'xmtc\[stack\]', or use preset 'fast'"):
        xmtc.train(TRAIN, preset="balanced")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"preset": "bets"}, "unknown preset 'bets'. Did you mean 'best'"),
        ({"preset": "fast", "method": "linear"}, "leave out method"),
        ({"preset": "fast", "recipe": "linear/fast", "config": {"tree": {"trees": 1}}}, "leave out recipe and config"),
        ({"time_limit": 60}, "a time limit needs a preset"),
        ({"preset": "fast", "time_limit": 0}, "positive number of seconds; got 0"),
        ({"preset": "fast", "time_limit": "30m"}, "positive number of seconds; got '30m'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        xmtc.train(TRAIN, **arguments)


def test_only_a_corpus_is_trained_on() -> None:
    with pytest.raises(DataError, match="train takes a Corpus"):
        xmtc.train("data/", preset="fast")  # type: ignore[arg-type]


def pace(train: float) -> Pace:
    return Pace(train, train / 3, 2**20, on_gpu=False)


PACES = {"gte-small": pace(0.04), "minilm": pace(0.02), "minilm-l3": pace(0.01)}


@pytest.mark.parametrize(("minutes", "names"), [
    (1000, ["lightxml-gte-small", "knn-gte-small", "lightxml-minilm", "lightxml-minilm-l3"]),
    (2, ["lightxml-minilm"]),
    (0.4, ["lightxml-minilm-l3"]),
    (0.1, []),
])  # fmt: skip
def test_more_time_brings_larger_encoders_and_never_more_than_there_is(minutes: float, names: list[str]) -> None:
    corpus = documents(1000, 3)
    left, done, spent = 60 * minutes, list[str](), 0.0
    while (planned := next_encoder(corpus, PACES, left - spent, set(done))) is not None:
        done.append(planned.member.name)
        spent += planned.seconds or 0
        if "train" in planned.member.config:
            assert planned.member.config["train"]["time_limit"] * 60 < (planned.seconds or 0)
    assert spent <= left
    assert done[: len(names)] == names
    assert len(done) <= 4
    assert bool(done) == bool(names)


def test_the_plan_reads_lengths_and_sizes(encoders: Path) -> None:
    long = xmtc.Corpus.from_lists(["word " * 300] * 4, [["a"]] * 4)
    assert tokens_to_read(long) == 128
    assert tokens_to_read(long, on_gpu=True) == 432
    assert tokens_to_read(xmtc.Corpus.from_lists(["a word"], [["a"]])) == 16
    assert (held_out_fraction(10_000), held_out_fraction(15_000), held_out_fraction(10**6)) == (0.12, 0.1, 0.05)
    lines = make_plan("best", TRAIN, 3600).lines()
    assert lines[0] == "preset best, time limit 60 min:"
    assert lines[5].startswith("  lightxml-gte-small: about ")
    assert all(line.endswith("MiB") for line in lines[1:-1])
    assert lines[-1].startswith("  learned ensemble of these: about ")


def test_match_is_a_member_where_labels_have_names() -> None:
    def members(corpus: xmtc.Corpus, limit: float | None = None) -> list[str]:
        return [planned.member.name for planned in make_plan("balanced", corpus, limit).members]

    views = ["linear-pairs", "linear-characters"]
    assert members(TRAIN) == ["linear", "knn", *views]
    assert members(replace(TRAIN, texts=[100 * text for text in TRAIN.texts])) == ["linear", "knn", "linear-pairs"]
    ids = TRAIN.labels.ids
    concepts = [xmtc.Concept(id, f"topic {id}") for id in ids[: (len(ids) + 1) // 2]]
    named = replace(TRAIN, labels=TRAIN.labels.described(concepts))
    assert members(named) == ["linear", "knn", "match", *views]
    assert members(named, 30) == ["linear", "knn", *views]
    assert "match: it and its copies" in make_plan("balanced", named, 30).left_out[0]
    assert "match: it takes" in make_plan("balanced", named, 15, has_dev=True).left_out[0]
    with_dev = make_plan("balanced", named, 30, has_dev=True)  # no copies of members
    assert [planned.member.name for planned in with_dev.members] == ["linear", "knn", "match", *views]
    assert with_dev.teaching == make_plan("balanced", TRAIN, None, has_dev=True).teaching
    assert make_plan("fast", named, None).members[0].member.name == "linear"


def test_measuring_consumes_no_random_state(encoders: Path) -> None:
    import torch

    before = torch.get_rng_state()
    make_plan("best", TRAIN, 3600)
    assert torch.equal(torch.get_rng_state(), before)


def test_reading_frozen_layers_is_measured_and_planned_for(encoders: Path) -> None:
    _, settings = read_settings("lightxml", fine_tuned("minilm", TRAIN, 2).config)
    assert isinstance(settings, Timed)
    measured = settings.measure_pace(TRAIN)
    assert measured.once > 0
    slow = replace(PACES["minilm"], once=1.0)
    planned = next_encoder(documents(1000, 3), {"minilm": slow}, 2000, set())
    assert planned is not None
    assert planned.member.config["train"]["time_limit"] * 60 < (planned.seconds or 0) - 1000


@pytest.mark.parametrize(("words", "expected"), [("topic{i}", True), ("noise{i} noise1 noise2 noise3", False)])
def test_linear_trials_decide_on_names_for_encoders(words: str, expected: bool) -> None:
    tried = list[str]()

    def train(corpus: xmtc.Corpus, trial: Member) -> Any:
        tried.append(trial.method)
        return xmtc.train(corpus, method=trial.method, config=trial.config)

    corpus, dev = named(words, 0)
    decided = decide_names(fine_tuned("minilm", corpus, 2), corpus, dev, train, 0.3, 0, Heard())
    assert tried == ["linear", "linear"]
    assert decided.config["train"].get("names", False) == expected
    assert decided.config["train"]["epochs"] == 2  # its other settings stay


def test_with_little_time_an_encoder_trains_at_once() -> None:
    slow = replace(PACES["minilm"], once=1.0)  # reading 1,000 documents first would take 1,000 s
    planned = next_encoder(documents(1000, 3), {"minilm": slow}, 200, set())
    assert planned is not None
    assert planned.member.config["encoder"]["freeze_layers"] == 0
    assert planned.member.config["head"]["label_init"] == "random"
    whole = next_encoder(documents(1000, 3), {"minilm": slow}, 2000, set())
    assert whole is not None
    assert whole.member.config["encoder"]["freeze_layers"] == 3
    assert whole.member.config["head"]["label_init"] == "documents"


def test_with_ample_time_more_layers_are_trained() -> None:
    deep = {"gte-small": pace(0.1)}
    for minutes, n_frozen in ((60, 4), (8, 9)):  # an epoch takes about 90 or 35 s
        planned = next_encoder(documents(1000, 3), PACES, 60 * minutes, set(), deep)
        assert planned is not None
        assert planned.member.name == "lightxml-gte-small"
        assert planned.member.config["encoder"]["freeze_layers"] == n_frozen
        assert planned.member.config["train"]["epochs"] == 4
        assert (planned.seconds or 0) <= 60 * minutes


def test_deeper_training_is_measured_only_if_it_could_fit(encoders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = list[int]()

    def measure(settings: Any, corpus: xmtc.Corpus) -> Pace:
        measured.append(settings.encoder.freeze_layers)
        return pace(0.04)

    monkeypatch.setattr("xmtc.neural.prepare.NeuralConfig.measure_pace", measure)
    make_plan("best", TRAIN, 3600)
    assert measured == [9, 4, 3]
    measured.clear()
    make_plan("best", TRAIN, 25)  # too short to be worth measuring it
    assert measured == [9, 3]
