"""Run by test_resume.py in a process of its own: trains toys in children that are killed, and goes on with them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # the optimizers would import it, in every child anew
from safetensors.torch import save_file

from tests.neural.toys import Toy, documents, run
from xmtc.core.progress import SILENT, Progress
from xmtc.neural.plateau import Plateau

STANDING_STILL = (documents(20, seed=1).inputs, lambda ranking: 1.0)  # dev, and the score of whatever is ranked

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("flat", {}),
    "averaged": ("flat", {"average_from": 0, "average_every": 2}),
    "dropout in some steps": ("flat", {"dropout_steps": 4}),
    "row-sparse": ("cluster", {"accumulate": 2}),
    "plateau": ("flat", {"plateau": Plateau(factor=0.1), "dev": STANDING_STILL}),
}


class Killer(Progress):
    """kill -9, the moment a given number of steps is done."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def step(self, done: int, total: int) -> None:
        self.steps -= 1
        if self.steps == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, kills: list[int]) -> None:
    for case in CASES:
        partial = folder / f"{case}.partial"
        ends = [child(train, case, folder / f"{case}-whole.safetensors", None)]
        ends += [child(train, case, folder / "never", partial, Killer(steps)) for steps in kills]
        ends += [child(train, case, folder / f"{case}-resumed.safetensors", partial)]
        (folder / f"{case}.json").write_text(json.dumps(ends))


def train(case: str, out: Path, partial: Path | None, progress: Progress = SILENT) -> None:
    kind, settings = CASES[case]
    network = Toy(kind, dropout=0.3)
    # a checkpoint every few steps, whenever its time has come
    run(network, partial, epochs=3, checkpoint_minutes=0.01 / 60, progress=progress, **settings)
    save_file(network.state_dict(), out)


def child(work: Callable[..., None], *given: Any) -> int:
    """Do the work in a fork of this process, which itself never computes; returns how it ended."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work(*given)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), [int(step) for step in sys.argv[2:]])
