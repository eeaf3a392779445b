"""Run by test_two_processes.py under torchrun, and as one process: trains toys on the same global batches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from torch import Tensor, nn

from tests.neural.toys import N_LABELS, Toy, run
from xmtc.neural.batches import Batch
from xmtc.neural.encoder import EncoderConfig, load_encoder
from xmtc.neural.heads import FlatHead
from xmtc.neural.pooling import pool_text
from xmtc.neural.trainer import Group

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("flat", {"average_from": 1, "average_every": 3, "warmup": 0.1}),
    "cluster": ("cluster", {}),
    "skips": ("skips", {}),
    "accumulated": ("cluster", {"accumulate": 3, "batch_size": 7}),
    "stops": ("flat", {"patience": 1, "epochs": 9}),
    "bert": ("bert", {}),
    "xlnet": ("xlnet", {}),
}


class Reading(nn.Module):
    """A real encoder over the toys' documents, with everything it has, pooler or not."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.kind = "reads"
        self.encoder, _ = load_encoder(EncoderConfig(name=str(folder), max_length=12, dropout=0.0))
        torch.manual_seed(0)
        self.head = FlatHead(self.encoder.width, N_LABELS, 0.0)

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.head.loss(pool_text(self.encoder(batch.ids, batch.mask)), batch)

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        return self.head.rank(pool_text(self.encoder(batch.ids, batch.mask)), k)

    def groups(self) -> list[Group]:
        return [Group([p for p in self.parameters() if p.requires_grad], 1e-3, 0.01)]


def main(encoders: Path, out: Path) -> None:
    from safetensors.torch import save_file

    for case, (kind, settings) in CASES.items():
        network: Any = Toy(kind) if kind in ("flat", "cluster", "skips") else Reading(encoders / kind)
        run(network, out / case, **settings)
        rank = PartialState().process_index
        save_file(network.state_dict(), out / f"{case}-{rank}.safetensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
    PartialState().destroy_process_group()
