"""Predict: run length-sorted batches through a network in inference mode."""

from __future__ import annotations

import numpy as np
import torch

from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.neural.batches import Inputs
from xmtc.neural.network import Predictive
from xmtc.neural.padding import order_reading

# tokens per batch, including padding; on a CPU, the states of more do not fit into the caches
_ON_CPU, _ELSEWHERE = 2048, 8192


def tokens_at_once(device: torch.device) -> int:
    """Return how many tokens, including padding, a device reads fastest in one batch."""
    return _ON_CPU if device.type == "cpu" else _ELSEWHERE


def rank_inputs(
    network: Predictive, inputs: Inputs, k: int, batch_size: int = 256, progress: Progress = SILENT
) -> Ranking:
    """Rank documents with a network, and restore its mode afterwards."""
    lengths = inputs.tokens.lengths
    n = len(lengths)
    labels = np.full((n, k), -1, dtype=np.int32)
    scores = np.full((n, k), -np.inf, dtype=np.float32)
    device = next(network.parameters()).device
    was_training = network.training
    network.eval()
    done = 0
    try:
        with torch.inference_mode():
            for rows in order_reading(lengths, tokens_at_once(device), batch_size):
                found, values = network.rank(inputs.collate(rows).to(device), k)
                width = found.shape[1]
                labels[rows, :width] = found.cpu().numpy()
                scores[rows, :width] = values.float().cpu().numpy()
                done += len(rows)
                progress.step(done, n)
    finally:
        network.train(was_training)
    return Ranking.best(labels, scores, k)
