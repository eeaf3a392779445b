"""Write and read a run's folder: its log, and checkpoints from which it resumes as if it had not stopped.

Checkpoints are safetensors and JSON, never pickled. They are stored in `<out>.partial/`. Each is written to a sibling
and renamed; the two newest are kept. Random states are not saved: batches and dropout are functions of (seed, epoch,
step).
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from xmtc.core.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from xmtc.core.tracker import Tracker

_KEPT = 2


class Checkpoints:
    """The checkpoints of one run; without a folder, nothing is saved."""

    def __init__(self, folder: Path | None, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        self.identity = json.loads(json.dumps(identity, sort_keys=True))
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        run = folder / "run.json"
        if not run.is_file():
            partial = folder / f".run-{os.getpid()}.json"
            partial.write_text(
                json.dumps(self.identity, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="\n"
            )
            partial.replace(run)
        elif _read_json(run) != self.identity:
            raise ConfigError(
                f"{folder} contains checkpoints of other settings, data or seed; use those, or remove the folder"
            )

    def save(
        self,
        step: int,
        network: nn.Module,
        optimizers: list[torch.optim.Optimizer],
        extra: Mapping[str, Tensor],
        state: Mapping[str, Any],
    ) -> None:
        """Write one checkpoint and delete all but the two newest."""
        if self.folder is None:
            return
        from safetensors.torch import save_file

        partial = self.folder / f".step-{step:09d}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        save_file(_storable(network.state_dict()), partial / "network.safetensors")
        flat = {}  # <optimizer>.<parameter>.<name>
        for i, optimizer in enumerate(optimizers):
            for number, values in optimizer.state_dict()["state"].items():
                for name, value in values.items():
                    flat[f"{i}.{number}.{name}"] = value if isinstance(value, Tensor) else torch.tensor(value)
        save_file(_storable(flat), partial / "optimizer.safetensors")
        save_file(_storable(extra), partial / "extra.safetensors")
        (partial / "state.json").write_text(json.dumps(state, sort_keys=True) + "\n", encoding="utf-8", newline="\n")
        target = self.folder / f"step-{step:09d}"
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
        for old in sorted(self.folder.glob("step-*"))[:-_KEPT]:
            shutil.rmtree(old)

    def load(
        self, network: nn.Module, optimizers: list[torch.optim.Optimizer]
    ) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Load the newest checkpoint into network and optimizers; return its extra tensors and state, or None."""
        found = [] if self.folder is None else sorted(self.folder.glob("step-*"))
        if not found:
            return None
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        newest = found[-1]
        try:
            network.load_state_dict(load_file(newest / "network.safetensors"))
            _unflatten(optimizers, load_file(newest / "optimizer.safetensors"))
            state = json.loads((newest / "state.json").read_text(encoding="utf-8"))
            return load_file(newest / "extra.safetensors"), state
        except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"checkpoint {newest} is cut or altered ({reason}); remove it to resume from the one before"
            ) from None


class RunLog:
    """The run's log: one JSON object per line; without a path, none is written. Trackers also receive the figures.

    The lines of an earlier run are kept up to step `upto`.
    """

    def __init__(self, path: Path | None, upto: int = 0, trackers: Sequence[Tracker] = ()) -> None:
        self._file: Any = None
        self._trackers = trackers
        self._started = time.monotonic()
        if path is None:
            return
        kept = _lines(path, upto) if path.is_file() else []
        path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8", newline="\n")
        self._file = path.open("a", buffering=1, encoding="utf-8", newline="\n")  # each line is written at once

    def write(self, *, step: int, **facts: Any) -> None:
        """Write one line with these facts and the seconds since the run began or resumed."""
        if self._file is not None:
            seconds = round(time.monotonic() - self._started, 3)
            self._file.write(json.dumps({"step": step, **facts, "seconds": seconds}) + "\n")
        for tracker in self._trackers:
            tracker.log(step, {name: float(value) for name, value in facts.items() if value is not None})

    def close(self) -> None:
        """Close the file; the caller that opened the trackers closes them."""
        if self._file is not None:
            self._file.close()


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ModelError(f"{path} is cut or altered; remove its folder to start again") from None


def _storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return contiguous tensors on the CPU; those that share memory are copied, because safetensors rejects them."""
    stored: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        value = tensor.detach().cpu().contiguous()
        stored[name] = value.clone() if value.data_ptr() in seen else value
        seen.add(value.data_ptr())
    return stored


def _unflatten(optimizers: list[torch.optim.Optimizer], flat: Mapping[str, Tensor]) -> None:
    """Restore the optimizers' state, which is named <optimizer>.<parameter>.<name>."""
    for i, optimizer in enumerate(optimizers):
        whole = optimizer.state_dict()
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in flat.items():
            which, number, name = key.split(".", 2)
            if int(which) == i:
                state.setdefault(int(number), {})[name] = value
        optimizer.load_state_dict({**whole, "state": state})


def _lines(path: Path, upto: int) -> list[str]:
    """Return the complete lines of steps up to `upto`: later steps are run again after the last checkpoint."""
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= upto:
                kept.append(line)
        except (ValueError, KeyError, TypeError):  # truncated when the process was killed
            continue
    return kept
