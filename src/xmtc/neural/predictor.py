"""Predict: run length-sorted batches through a network in inference mode."""

from __future__ import annotations

import numpy as np
import torch

from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.neural.batches import Inputs, order_batches
from xmtc.neural.network import Predictive

_TOKENS = 8192  # tokens per batch, including padding: long texts in small batches, short ones in large


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
            for rows in order_batches(lengths, batch_size, 0, 0, shuffle=False):
                longest = int(lengths[rows].max())
                part = max(1, _TOKENS // max(1, longest))
                for start in range(0, len(rows), part):
                    some = rows[start : start + part]
                    found, values = network.rank(inputs.collate(some).to(device), k)
                    width = found.shape[1]
                    labels[some, :width] = found.cpu().numpy()
                    scores[some, :width] = values.float().cpu().numpy()
                    done += len(some)
                    progress.step(done, n)
    finally:
        network.train(was_training)
    return Ranking.best(labels, scores, k)
