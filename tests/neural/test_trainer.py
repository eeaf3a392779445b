"""The one loop: it learns, stops, keeps the best, averages, accumulates, and says what it did."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.neural.toys import SEED, Toy, documents, precision, run
from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.progress import Progress
from xmtc.neural import devices, optimizer, trainer
from xmtc.neural.batches import Batch, order_batches
from xmtc.neural.plateau import Plateau
from xmtc.neural.trainer import Group, TrainConfig, fit

KINDS = ["flat", "cluster", "skips"]


def weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}


def same(ours: dict[str, Tensor], theirs: dict[str, Tensor], atol: float = 0.0) -> bool:
    return all(torch.allclose(ours[name], value, atol=atol, rtol=0) for name, value in theirs.items())


@pytest.mark.parametrize("kind", KINDS)
def test_learns(kind: str) -> None:
    network = Toy(kind, dropout=0.1)
    data = documents()
    curve = run(network, epochs=20, dev=(data.inputs, precision(data)))
    assert [entry.epoch for entry in curve] == list(range(20))
    assert curve[-1].loss < curve[0].loss / 2
    assert max(entry.dev for entry in curve) >= 90
    assert not network.training


@pytest.mark.parametrize("clip", [None, 0.05])
def test_steps_are_those_of_a_plain_loop(clip: float | None) -> None:
    """Batches, schedule, mean over (sum, count), clipping, AdamW: all of it, written out."""
    ours, plain, data = Toy(), Toy(), documents()
    run(ours, epochs=2, dev=None, clip=clip, warmup=0.2, schedule="linear")
    optimizer = torch.optim.AdamW(plain.parameters(), lr=0.02, weight_decay=0.01)
    step = 0
    for epoch in range(2):
        for rows in order_batches(data.inputs.tokens.lengths, 4, SEED, epoch):
            optimizer.param_groups[0]["lr"] = 0.02 * (step / 4.4 if step < 4.4 else (22 - step) / (22 - 4.4))
            total, count = plain.loss(data.inputs.collate(rows, data.Y))
            (total / count).backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(plain.parameters(), clip)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
    assert same(weights(ours), weights(plain), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", [2, 3, 9])
def test_accumulation_equals_one_big_batch(kind: str, parts: int) -> None:
    whole, split = Toy(kind), Toy(kind)
    curve = run(whole, dev=None)
    again = [entry.to_json() for entry in run(split, dev=None, accumulate=parts)]
    assert again == [pytest.approx(entry.to_json(), abs=1e-5) for entry in curve]
    assert same(weights(split), weights(whole), atol=1e-5)


def test_parts_are_as_small_as_asked_for() -> None:
    network, sizes = Toy(), []
    loss = network.loss
    network.loss = lambda batch: sizes.append(len(batch)) or loss(batch)  # type: ignore[method-assign]
    run(network, dev=None, epochs=1, accumulate=2)
    assert max(sizes) == 2
    assert sum(sizes) == 41


class Scores:
    """Dev scores handed out one by one, and the weights that were scored."""

    def __init__(self, network: nn.Module, *scores: float) -> None:
        self.network, self.scores, self.seen = network, list(scores), list[dict[str, Tensor]]()

    def __call__(self, ranking: object) -> float:
        self.seen.append(weights(self.network))
        return self.scores[len(self.seen) - 1]


def test_best_epoch_is_kept() -> None:
    network = Toy()
    scores = Scores(network, 10, 30, 30, 20)
    curve = run(network, epochs=4, dev=(documents().inputs, scores))
    assert [entry.dev for entry in curve] == [10, 30, 30, 20]
    assert same(weights(network), scores.seen[1])  # the first of the best
    assert not same(weights(network), scores.seen[3])


def test_without_dev_the_last_epoch_is_kept() -> None:
    network = Toy()
    curve = run(network, epochs=3, dev=None)
    assert len(curve) == 3
    assert all(entry.dev is None for entry in curve)


@pytest.mark.parametrize(("patience", "epochs"), [(1, 2), (2, 6), (None, 9)])
def test_early_stopping(patience: int | None, epochs: int) -> None:
    network = Toy()
    scores = Scores(network, 10, 9, 11, 12, 12, 11, 99, 1, 1)
    curve = run(network, epochs=9, patience=patience, dev=(documents().inputs, scores))
    assert len(curve) == epochs


@pytest.mark.parametrize(
    ("plateau", "factors"),
    [(None, [1] * 6), (Plateau(), [1, 1, 0.5, 0.5, 0.25, 0.125]), (Plateau(epochs=2, factor=0.1), [1] * 5 + [0.1])],
)
def test_rates_fall_when_dev_stands_still(plateau: Plateau | None, factors: list[float]) -> None:
    """The rate of each epoch's first step, as the optimizer has it."""
    network = Toy()
    scores = Scores(network, 10, 9, 11, 11, 10, 9)
    rates: list[float] = []
    take = optimizer.take_step

    def listen(optimizers: Any, *more: Any) -> None:
        rates.append(optimizers[0].param_groups[0]["lr"])
        take(optimizers, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "take_step", listen)
        dev = (documents().inputs, scores)
        run(network, epochs=6, schedule="constant", dev=dev, plateau=plateau)
    assert rates[::11] == pytest.approx([0.02 * factor for factor in factors])


def test_a_stopped_run_is_not_gone_on_with(tmp_path: Path) -> None:
    for _ in range(2):
        network = Toy()
        scores = Scores(network, 10, 9, 99)
        assert len(run(network, tmp_path, epochs=3, patience=1, dev=(documents().inputs, scores))) == 2


@pytest.mark.parametrize(("start", "every"), [(0, 1), (1, 3), (1, 100)])
def test_average_is_the_mean_of_saved_weights(start: int, every: int) -> None:
    """From the weights at the start of an epoch, and those after step 0, p, 2p, … of this and every later epoch."""
    network, saved, step = Toy(), [], [0]

    class Listener(Progress):
        def step(self, done: int, total: int) -> None:
            if step[0] // 11 >= start and (done - 1) % every == 0:
                saved.append(weights(network))
            step[0] += 1

    def on_epoch(epoch: int) -> None:
        if epoch == start:
            saved.append(weights(network))

    run(network, epochs=3, dev=None, average_from=start, average_every=every, progress=Listener(), on_epoch=on_epoch)
    mean = {name: torch.stack([state[name] for state in saved]).mean(0) for name in saved[0]}
    assert len(saved) == 1 + (3 - start) * -(-11 // every)
    assert same(weights(network), mean, atol=1e-6)


def test_dev_sees_the_average_and_training_goes_on_without_it() -> None:
    network, plain = Toy(), Toy()
    scores = Scores(network, 1, 2)
    run(network, dev=(documents().inputs, scores), average_from=0, average_every=1)
    seen = Scores(plain, 1, 2)
    run(plain, dev=(documents().inputs, seen))
    assert same(weights(network), scores.seen[1])
    assert not same(scores.seen[1], seen.seen[1])
    other = Toy()
    assert run(other, dev=None, average_from=0) == run(Toy(), dev=None)  # the same losses


def test_epoch_hook() -> None:
    told: list[int] = []
    run(Toy(), epochs=3, on_epoch=told.append)
    assert told == [0, 1, 2]


def test_log_and_checkpoints(tmp_path: Path) -> None:
    curve = run(Toy(), tmp_path, checkpoint_minutes=1e-9)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    steps, epochs = ([line for line in lines if ("dev" in line) == flag] for flag in (False, True))
    assert [line["step"] for line in steps] == list(range(1, 23))
    assert [line["epoch"] for line in steps] == [0] * 11 + [1] * 11
    for entry, line in zip(curve, epochs, strict=True):
        losses = [step["loss"] for step in steps if step["epoch"] == entry.epoch]
        assert entry.loss == line["loss"] == pytest.approx(np.mean(losses))
        assert entry.dev == line["dev"]
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["log.jsonl", "run.json", "step-000000021", "step-000000022"]
    assert {path.suffix for path in tmp_path.rglob("step-*/*")} == {".safetensors", ".json"}


def test_without_checkpoints_in_between_there_is_one_an_epoch(tmp_path: Path) -> None:
    run(Toy(), tmp_path, epochs=3)
    assert sorted(path.name for path in tmp_path.glob("step-*")) == ["step-000000022", "step-000000033"]


@pytest.mark.parametrize("settings", [{}, {"average_from": 0, "average_every": 3}, {"accumulate": 2}])
@pytest.mark.parametrize("kind", KINDS)
def test_stopped_anywhere_and_gone_on_with(tmp_path: Path, kind: str, settings: dict[str, Any]) -> None:
    whole = Toy(kind, dropout=0.3)
    curve = run(whole, checkpoint_minutes=1e-9, **settings)

    class Stop(Exception):
        pass

    class Stopper(Progress):
        def __init__(self, after: int) -> None:
            self.after = after

        def step(self, done: int, total: int) -> None:
            self.after -= 1
            if self.after == 0:
                raise Stop

    for after in (1, 5, 8, 4):
        with pytest.raises(Stop):
            run(Toy(kind, dropout=0.3), tmp_path, checkpoint_minutes=1e-9, progress=Stopper(after), **settings)
    resumed = Toy(kind, dropout=0.3, seed=99)
    assert run(resumed, tmp_path, checkpoint_minutes=1e-9, **settings) == curve
    assert same(weights(resumed), weights(whole))
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "dev" not in line] == list(range(1, 23))
    finished = Toy(kind, seed=5)
    assert run(finished, tmp_path, checkpoint_minutes=1e-9, **settings) == curve
    assert same(weights(finished), weights(whole))


def test_progress_and_random_state_of_others_change_nothing(tmp_path: Path) -> None:
    class Noisy(Progress):
        def __init__(self) -> None:
            self.said: list[str] = []
            self.stages: list[str] = []

        def step(self, done: int, total: int) -> None:
            torch.rand(1)
            np.random.rand()

        def say(self, fact: str) -> None:
            self.said.append(fact)

        def stage(self, name: str) -> None:
            self.stages.append(name)

    quiet, noisy, listener = Toy(dropout=0.3), Toy(dropout=0.3), Noisy()
    run(quiet)
    run(noisy, tmp_path, progress=listener)
    assert same(weights(quiet), weights(noisy))
    assert listener.stages == ["epoch 1 of 2", "epoch 2 of 2"]
    assert listener.said[0].startswith("epoch 1: loss 0.")
    assert listener.said[0].endswith("on dev")
    run(Toy(), tmp_path, progress=listener)
    assert listener.said[-1] == "resuming at step 22 of 22"


def test_seed_decides() -> None:
    def trained(seed: int) -> dict[str, Tensor]:
        network, data = Toy(dropout=0.3), documents()
        fit(network, network.groups(), data, TrainConfig(epochs=1, batch_size=4), dev=None, seed=seed)
        return weights(network)

    assert same(trained(1), trained(1))
    assert not same(trained(1), trained(2))
    trained(2**62)


def test_checkpoints_of_other_settings_are_refused(tmp_path: Path) -> None:
    run(Toy(), tmp_path, identity={"rate": 1})
    with pytest.raises(ConfigError, match="other settings"):
        run(Toy(), tmp_path, identity={"rate": 2})


def test_cut_checkpoint_is_refused_by_name(tmp_path: Path) -> None:
    run(Toy(), tmp_path)
    path = tmp_path / "step-000000022" / "extra.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ModelError, match="step-000000022 is cut or altered"):
        run(Toy(), tmp_path)


def test_half_precision_on_a_cpu_is_refused_and_spoils_nothing() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(ConfigError, match=r"train.precision = fp16 needs a GPU"):
        run(Toy(), precision="fp16")
    run(Toy(), epochs=1)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "signal 4"),
        ("raise RuntimeError('no such kernel')", "RuntimeError: no such kernel"),
    ],
)
def test_bf16_is_refused_where_a_cpu_cannot(program: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    monkeypatch.setattr(devices, "_BF16_STEP", program)
    devices._probe_bf16.cache_clear()
    with pytest.raises(ConfigError, match=rf"train.precision = bf16 does not run on this CPU \({reason}\)"):
        run(Toy(), precision="bf16")


def test_bf16_trains_where_a_cpu_can() -> None:
    try:
        devices._probe_bf16()
    except ConfigError as error:
        pytest.skip(str(error))
    run(Toy(), epochs=1, precision="bf16")


@pytest.fixture
def forgets_the_processor() -> Iterator[None]:
    """Answers of the processor are cached; a test that changes them must leave none behind."""
    caches = (devices.choose_number, devices._probe_bf16)
    for answers in caches:
        answers.cache_clear()
    yield
    for answers in caches:
        answers.cache_clear()


@pytest.mark.parametrize(
    ("known", "program", "expected"),
    [
        ({"avx512_bf16": True}, "pass", "bf16"),
        ({"avx512_bf16": False, "amx_bf16": True}, "pass", "bf16"),
        ({"amx_bf16": True}, "raise SystemExit(4)", "fp32"),  # the system does not allow it
        ({"avx512_f": True}, "pass", "fp32"),  # would work, slowly
    ],
)
@pytest.mark.usefixtures("forgets_the_processor")
def test_auto_is_bf16_where_the_processor_has_instructions_for_it(
    known: dict[str, bool], program: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known, raising=False)
    monkeypatch.setattr(devices, "_BF16_STEP", program)
    assert devices.choose_number("auto") == expected
    assert devices.choose_number("fp32") == "fp32"


@pytest.mark.usefixtures("forgets_the_processor")
def test_auto_trains_as_the_precision_that_it_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict, raising=False)
    chosen, plain = Toy(), Toy()
    plain.load_state_dict(chosen.state_dict())
    run(chosen, precision="auto")
    run(plain, precision="fp32")
    for one, other in zip(chosen.parameters(), plain.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_loss_that_is_no_number_stops_the_run() -> None:
    network = Toy()
    network.words.weight.data[:] = math.nan
    with pytest.raises(ConfigError, match="the loss became nan in step 1: lower the learning rates"):
        run(network)


def test_what_no_group_names_stays_and_holds_no_gradient() -> None:
    network, data = Toy(), documents()
    before = copy.deepcopy(network.words.state_dict())
    groups = [Group(list(network.head.parameters()), 0.02)]
    dev = documents(20, seed=1)
    fit(network, groups, data, TrainConfig(epochs=1), dev=(dev.inputs, precision(dev)), seed=0)
    assert same(network.words.state_dict(), before)
    assert all(parameter.grad is None for parameter in network.parameters())


def test_one_document() -> None:
    network, data = Toy("cluster"), documents(1)
    curve = fit(network, network.groups(), data, TrainConfig(epochs=2), dev=None, seed=0)
    assert curve[1].loss < curve[0].loss


def test_network_sees_training_batches_in_training_mode() -> None:
    network, modes = Toy(), []
    loss = network.loss

    def spy(batch: Batch) -> tuple[Tensor, Tensor]:
        modes.append(network.training)
        return loss(batch)

    network.loss = spy  # type: ignore[method-assign]
    run(network)
    assert len(modes) == 22
    assert all(modes)


def test_dropout_stops_after_some_steps_of_each_epoch() -> None:
    """The steps are those of a plain loop that leaves training mode after three of an epoch's eleven."""
    network, data = Toy(dropout=0.5), documents()
    rates = [0.02 * (1 - step / 22) for step in range(22)]
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    trained = Toy(dropout=0.5)
    run(trained, dev=None, dropout_steps=3, clip=None)
    for step, rate in enumerate(rates):
        batch = order_batches(data.inputs.tokens.lengths, 4, SEED, step // 11)[step % 11]
        network.train(step % 11 < 3)
        torch.manual_seed((SEED * 1_000_003 + step) * 1_009)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        total, count = network.loss(data.inputs.collate(batch, data.Y))
        (total / count).backward()
        optimizer.step()
    for name, value in network.state_dict().items():
        torch.testing.assert_close(trained.state_dict()[name], value, rtol=1e-4, atol=1e-5)
    other = Toy(dropout=0.5)
    run(other, dev=None, dropout_steps=4, clip=None)
    assert not same(weights(other), weights(trained))


class Slow(Toy):
    """A toy whose every step takes a while."""

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        time.sleep(0.02)
        return super().loss(batch)


def test_time_is_up_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    limit = 0.1  # seconds: about five of the eleven steps of the first of a thousand epochs
    network = Slow()
    started = time.monotonic()
    curve = run(network, tmp_path, epochs=1000, time_limit=limit / 60, schedule="linear")
    assert time.monotonic() - started < 20 * limit
    assert len(curve) == 1
    assert curve[0].dev is not None
    steps = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert 1 <= steps[-1]["step"] < 11
    # resumed, nothing is left to do: the time before the interruption counts
    assert run(Slow(), tmp_path, epochs=1000, time_limit=limit / 60, schedule="linear") == curve


def test_a_limit_far_away_changes_nothing() -> None:
    free, limited = Toy(), Toy()
    assert run(free, schedule="constant") == run(limited, schedule="constant", time_limit=60)
    assert all(torch.equal(a, b) for a, b in zip(free.parameters(), limited.parameters(), strict=True))
