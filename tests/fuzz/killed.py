"""Train a small neural model in this process, which kills itself at its n-th call that renames or removes.

    python -m tests.fuzz.killed METHOD FOLDER N

FOLDER holds the encoder; the model goes to FOLDER/model, and what a killed run left is resumed. N = 0: no kill.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.models import make_corpus, settings_of

CALLS = ("rename", "replace", "unlink", "rmdir")


def main(name: str, folder: Path, stop: int) -> None:
    """Train, or resume."""
    import torch

    import xmtc

    torch.set_num_threads(1)
    method, config = settings_of(name, folder)
    config["train"] = {**config["train"], "epochs": 3, "checkpoint_minutes": 1e-6}
    count = 0

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def step(*given: object, **named: object) -> object:
            nonlocal count
            count += 1
            if count == stop:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **named)

        return step

    for call in CALLS:
        setattr(os, call, counted(getattr(os, call)))
    xmtc.train(make_corpus(), method, config, out=folder / "model", resume=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
