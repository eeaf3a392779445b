"""The estimate before training: exact where it counts parameters, refusing with the right advice, drawing nothing."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the plan needs torch")

from tests.tiny import build_tiny  # noqa: E402
from xmtc.core.errors import ConfigError  # noqa: E402
from xmtc.core.progress import SILENT, Progress  # noqa: E402
from xmtc.neural.encoder import EncoderConfig, load_encoder  # noqa: E402
from xmtc.neural.plan import HeadSize, available_memory, plan_training  # noqa: E402
from xmtc.neural.trainer import TrainConfig  # noqa: E402

LENGTHS = np.array([3, 10, 20, 7])


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = build_tiny("bert", tmp_path_factory.mktemp("encoder"), ["one two"])
    return load_encoder(EncoderConfig(name=str(folder), max_length=32))[0]


def plan(encoder, dense=1000, table=0, activations=30, n_encoders=1, **train):
    head = HeadSize(dense, table, activations, "shrink the head")
    return plan_training(encoder, n_encoders, head, LENGTHS, TrainConfig(**train))


def test_counts_parameters(encoder):
    body = sum(p.numel() for p in encoder.parameters())
    assert plan(encoder, dense=1000, table=50).parameters == body + 1050
    assert plan(encoder, dense=1000, n_encoders=2).parameters == 2 * body + 1000


def test_memory_follows_what_is_held(encoder):
    plain = plan(encoder)
    body = sum(p.numel() for p in encoder.parameters())
    trained = sum(p.numel() for p in encoder.parameters() if p.requires_grad)  # all but the pooler, which idles
    assert trained < body
    assert plain.encoder == 8 * body + 8 * trained  # weights and the best ones; two moments
    assert plain.gradients == 4 * (trained + 1000)
    assert plan(encoder, table=500).saving == 8 * (trained + 1500)
    assert plan(encoder, table=500).gradients == plain.gradients  # those of a few rows count as activations
    few, many = plan(encoder, table=10**6), plan(encoder, activations=10**7)
    assert few.memory == few.encoder + few.head + few.saving
    assert many.memory == many.encoder + many.head + many.activations + many.gradients
    assert plan(encoder, average_from=0).encoder - plain.encoder == 4 * body
    assert plan(encoder, batch_size=4).activations == 2 * plan(encoder, batch_size=4, accumulate=2).activations
    assert plan(encoder, batch_size=400).activations == plan(encoder, batch_size=4).activations  # of four documents
    assert plan(encoder, table=10_000).head > plan(encoder).head
    words = encoder.embed_words().weight
    words.requires_grad_(False)
    assert plain.encoder - plan(encoder).encoder == 8 * words.numel()  # no moments
    words.requires_grad_(True)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("gpu", [False, True])
def test_mixed_precision_takes_less_for_activations_alone(encoder, monkeypatch, precision, gpu):
    monkeypatch.setattr("xmtc.neural.plan.training_speed", lambda precision: 1e9)
    whole = plan(encoder, batch_size=2, activations=30)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    half = plan(encoder, batch_size=2, activations=30, precision=precision)
    body = sum(p.numel() for p in encoder.parameters())
    words = encoder.embed_words().weight.numel()
    # weights, the best ones and moments are kept in float32; products need copies of the weights
    assert (half.encoder, half.head, half.saving) == (whole.encoder, whole.head, whole.saving)
    assert half.gradients - whole.gradients == 2 * (body - words + 1000)
    for found, half_widths, square in ((whole, 0, 4), (half, 19, 2 if gpu else 4)):
        expected = 0
        for _ in range(2):  # documents in memory, each as long as the longest
            expected += 4 * 30
            for _ in range(20):
                for _ in range(encoder.n_layers):
                    expected += (4 * (28 - half_widths) + 2 * half_widths) * encoder.width
                    expected += 3 * square * encoder.n_heads * 20
        assert found.activations == expected


def test_time_grows_with_the_work(encoder, monkeypatch):
    monkeypatch.setattr("xmtc.neural.plan.training_speed", lambda precision: 1e9)
    assert plan(encoder, epochs=6).seconds == pytest.approx(2 * plan(encoder, epochs=3).seconds)
    assert plan(encoder, dense=10**6).seconds > plan(encoder).seconds


def test_draws_no_random_numbers_and_leaves_no_gradient(encoder):
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    plan(encoder)
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == numpy_before).all()
    assert all(p.grad is None for p in encoder.parameters())


def test_is_told_in_one_line(encoder, monkeypatch):
    class Listener(Progress):
        def say(self, text):
            lines.append(text)

    lines = []
    monkeypatch.setattr("xmtc.neural.plan.available_memory", lambda: 2**34)
    plan(encoder).announce(Listener())
    (line,) = lines
    assert "\n" not in line
    assert "16.0 GiB are free" in line
    assert "million parameters" in line


@pytest.mark.parametrize(
    ("sizes", "advice"),
    [
        ({"dense": 10**9}, "shrink the head"),
        ({"dense": 10, "activations": 10**9}, "raise train.accumulate, or lower train.batch_size"),
        ({"dense": 1, "activations": 1, "n_encoders": 50}, "use a smaller encoder"),
    ],
)
def test_refuses_with_what_to_change(encoder, monkeypatch, sizes, advice):
    monkeypatch.setattr("xmtc.neural.plan.available_memory", lambda: 1000)
    with pytest.raises(ConfigError, match=advice):
        plan(encoder, **sizes).announce(SILENT)


def test_memory_of_this_machine():
    assert 2**20 < available_memory() < 2**50
