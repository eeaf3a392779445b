"""Measure the training speed of these settings on this machine: settings and a corpus → seconds per document.

A few real steps run on a temporary copy: encoder, one layer over all labels, optimizer. This uses no random state and
knows no method. `plan.py` estimates from sizes; only this measurement shows the load of the machine.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor, nn

from xmtc.core.corpus import Corpus
from xmtc.core.outlined import Pace
from xmtc.core.texts import Texts
from xmtc.features.tokens import tokenize
from xmtc.neural.batches import Batch, Inputs
from xmtc.neural.devices import Precision, computing_in
from xmtc.neural.encoder import Encoder, EncoderConfig, PooledEncoderConfig, load_encoder
from xmtc.neural.heads import FlatHead
from xmtc.neural.lower import keep_lower_states
from xmtc.neural.optimizer import build_optimizers, group_by_decay
from xmtc.neural.plan import HeadSize, plan_training
from xmtc.neural.pooling import pool_text, read_pool
from xmtc.neural.trainer import TrainConfig
from xmtc.neural.window_pool import WindowPool

_STEPS = 4  # timed, after one untimed step
_MOST_LABELS = 100_000  # with more labels, clusters are used, and a step scores few labels


def measure_pace(encoder_config: EncoderConfig, train: TrainConfig, corpus: Corpus) -> Pace:
    """Run a few steps on evenly spaced texts and return the mean time per document."""
    if corpus.texts is None or not len(corpus):
        return Pace(0.0, 0.0, 0, torch.cuda.is_available())
    n = min(len(corpus), _STEPS * train.batch_size)
    rows = np.linspace(0, len(corpus) - 1, n).astype(np.int64)
    with torch.random.fork_rng():
        encoder, tokenizer = load_encoder(encoder_config)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        n_labels = min(corpus.labels.n_labels, _MOST_LABELS)
        network = _Network(encoder, encoder_config, n_labels).to(device)
        inputs = Inputs(tokenize(Texts.pack(corpus.texts).take(rows), tokenizer), encoder.layout)
        Y = corpus.Y[rows][:, :n_labels].tocsr()
        started = time.perf_counter()
        learnt = inputs
        if encoder_config.freeze_layers and encoder_config.dropout == 0:
            frozen, precision = encoder_config.freeze_layers, train.precision
            (learnt,) = keep_lower_states(encoder, frozen, [inputs], network.pool, precision=precision)
        once = time.perf_counter() - started
        order = np.argsort(inputs.tokens.lengths, kind="stable")  # batches hold documents of similar length
        parts = [order[start : start + train.batch_size] for start in range(0, n, train.batch_size)]
        step = _time_training(network, [learnt.collate(rows, Y).to(device) for rows in parts], train.precision)
        read = _time_ranking(network, [inputs.collate(rows).to(device) for rows in parts])
    size = HeadSize(sum(p.numel() for p in network.head.parameters()), 0, 3 * n_labels, "")
    memory = plan_training(encoder, 1, size, inputs.tokens.lengths, train).memory
    return Pace(step / n, read / n, memory, device.type == "cuda", once / n)


class _Network(nn.Module):
    """The encoder and one layer over the labels, where most networks spend their time."""

    def __init__(self, encoder: Encoder, config: EncoderConfig, n_labels: int) -> None:
        super().__init__()
        self.encoder = encoder
        pooled = config if isinstance(config, PooledEncoderConfig) else PooledEncoderConfig()
        self.pool = read_pool(pooled, encoder, 5)
        self.windows = WindowPool(self.pool.width, "mean") if pooled.windows > 1 else None
        self.head = FlatHead(self.pool.width, n_labels, 0.0)

    def forward(self, batch: Batch) -> Tensor:
        text = pool_text(self.encoder(batch.ids, batch.mask, batch.lower), self.pool.parts)
        return text if self.windows is None else self.windows(text, batch)


def _time_training(network: _Network, batches: list[Batch], precision: Precision) -> float:
    """Return the seconds of training on all batches."""
    optimizers = build_optimizers(group_by_decay([network], 1e-6, 0.0))

    def learn(batch: Batch) -> float:
        with computing_in(precision):
            loss, count = network.head.loss(network(batch), batch)
        (loss / count.clamp(min=1)).backward()  # type: ignore[no-untyped-call]
        for optimizer in optimizers:
            optimizer.step()
        network.zero_grad(set_to_none=True)
        return float(loss.detach())  # reading a number waits for the GPU

    network.train()
    learn(batches[0])
    started = time.perf_counter()
    for batch in batches:
        learn(batch)
    return time.perf_counter() - started


@torch.inference_mode()
def _time_ranking(network: _Network, batches: list[Batch]) -> float:
    """Return the seconds of ranking all batches."""
    network.eval()
    started = time.perf_counter()
    for batch in batches:
        network.head.rank(network(batch), 5)[1].sum().item()
    return time.perf_counter() - started
