"""Checkpoints: two kept, no pickle, refused by name when cut or of another run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.neural.toys import Toy
from xmtc.core.errors import ConfigError, ModelError
from xmtc.neural.checkpoint import Checkpoints
from xmtc.neural.optimizer import build_optimizers

IDENTITY = {"config": {"rate": 0.1}, "seed": 3}


def trained(seed: int) -> tuple[nn.Module, list[torch.optim.Optimizer]]:
    """A network with both kinds of optimizers, each with some state."""
    network = Toy("cluster", seed=seed)
    optimizers = build_optimizers(network.groups())
    for _ in range(2):
        text = torch.randn(3, 16)
        labels = torch.tensor([[0, 3], [1, 4], [2, 5]])
        (network.head._logits(text, labels).sum() + network.words.weight.square().sum()).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return network, optimizers


def test_round_trip(tmp_path: Path) -> None:
    network, optimizers = trained(0)
    shared = torch.ones(3)
    extra = {"best.x": shared, "average.x": shared}  # the same memory twice
    Checkpoints(tmp_path / "c", IDENTITY).save(7, network, optimizers, extra, {"step": 7, "loss": 0.1, "best": None})
    other, others = trained(1)
    found = Checkpoints(tmp_path / "c", IDENTITY).load(other, others)
    assert found is not None
    assert found[1] == {"step": 7, "loss": 0.1, "best": None}
    assert all(torch.equal(found[0][name], shared) for name in extra)
    for name, value in network.state_dict().items():
        assert torch.equal(other.state_dict()[name], value)
    for ours, theirs in zip(others, optimizers, strict=True):
        for number, state in theirs.state_dict()["state"].items():
            for name, value in state.items():
                assert torch.equal(ours.state_dict()["state"][number][name], value)
                assert ours.state_dict()["state"][number][name].dtype == value.dtype


def test_two_are_kept_without_pickle(tmp_path: Path) -> None:
    network, optimizers = trained(0)
    checkpoints = Checkpoints(tmp_path, IDENTITY)
    assert checkpoints.load(network, optimizers) is None
    for step in (5, 9, 100, 100):
        checkpoints.save(step, network, optimizers, {}, {"step": step})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "step-000000009", "step-000000100"]
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".safetensors", ".json"}
    found = checkpoints.load(network, optimizers)
    assert found is not None
    assert found[1] == {"step": 100}


def test_another_run_is_refused(tmp_path: Path) -> None:
    Checkpoints(tmp_path / "c", IDENTITY)
    Checkpoints(tmp_path / "c", json.loads(json.dumps(IDENTITY)))
    with pytest.raises(ConfigError, match="other settings, data or seed") as error:
        Checkpoints(tmp_path / "c", {**IDENTITY, "seed": 4})
    assert str(tmp_path / "c") in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("file", ["network.safetensors", "optimizer.safetensors", "extra.safetensors", "state.json"])
@pytest.mark.parametrize("size", [0, 20])
def test_a_cut_checkpoint_is_refused_by_name(tmp_path: Path, file: str, size: int) -> None:
    network, optimizers = trained(0)
    checkpoints = Checkpoints(tmp_path, IDENTITY)
    checkpoints.save(5, network, optimizers, {"best.x": torch.ones(99)}, {"step": 5, "curve": list(range(99))})
    checkpoints.save(6, network, optimizers, {"best.x": torch.ones(99)}, {"step": 6, "curve": list(range(99))})
    path = tmp_path / "step-000000006" / file
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ModelError, match="step-000000006 is cut or altered") as error:
        checkpoints.load(network, optimizers)
    assert "\n" not in str(error.value)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    network, optimizers = trained(0)
    Checkpoints(tmp_path, IDENTITY).save(5, network, optimizers, {}, {"step": 5})
    with pytest.raises(ModelError, match="step-000000005"):
        Checkpoints(tmp_path, IDENTITY).load(nn.Linear(2, 2), [])


def test_a_cut_identity_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"seed"')
    with pytest.raises(ModelError, match=r"run\.json is cut"):
        Checkpoints(tmp_path, IDENTITY)


def test_a_killed_save_does_not_count(tmp_path: Path) -> None:
    network, optimizers = trained(0)
    checkpoints = Checkpoints(tmp_path, IDENTITY)
    (tmp_path / ".step-000000005").mkdir()
    (tmp_path / ".step-000000005" / "network.safetensors").write_bytes(b"half")
    assert checkpoints.load(network, optimizers) is None
    checkpoints.save(5, network, optimizers, {}, {"step": 5})
    assert checkpoints.load(network, optimizers) is not None


def test_without_a_folder_nothing_is_kept() -> None:
    network, optimizers = trained(0)
    checkpoints = Checkpoints(None, IDENTITY)
    checkpoints.save(5, network, optimizers, {}, {"step": 5})
    assert checkpoints.load(network, optimizers) is None
