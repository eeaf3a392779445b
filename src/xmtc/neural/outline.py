"""Estimate a training before its encoder is loaded: from settings, a corpus and config.json to one line.

Sizes come from the encoder's config.json, lengths from a sample of the texts. `plan.py` has more accurate figures once
the encoder and the head are built.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from xmtc.core.corpus import Corpus
from xmtc.core.progress import describe_duration
from xmtc.neural.encoder_config import EncoderConfig, PooledEncoderConfig
from xmtc.neural.plan import training_speed
from xmtc.neural.resolve import resolve
from xmtc.neural.trainer import TrainConfig

_SAMPLE = 1000  # texts whose words are counted
_TOKENS_PER_WORD = 1.4  # for English with a vocabulary of 30,000 pieces


def outline_training(encoder: EncoderConfig, train: TrainConfig, corpus: Corpus) -> str:
    """Return the encoder's size, the length of the texts, and roughly how long the encoder's part will take.

    The head is not counted: for very many labels, it may double the time.
    """
    sizes = _read_sizes(resolve(encoder.name))
    n_layers = min(encoder.layers or sizes["layers"], sizes["layers"])
    body = n_layers * (4 * sizes["width"] ** 2 + 2 * sizes["width"] * sizes["inner"])  # attention and feed-forward
    windows = encoder.windows if isinstance(encoder, PooledEncoderConfig) else 1
    tokens = _mean_tokens(corpus, encoder.max_length * windows)
    seconds = 6.0 * body * tokens * len(corpus) * train.epochs / training_speed(train.precision)
    return (
        f"encoder {Path(encoder.name).name} with {n_layers} layers, "
        f"{(body + sizes['words'] * sizes['width']) / 1e6:,.1f} million parameters; texts of about {tokens:,.0f} "
        f"tokens, {train.epochs} epochs: the encoder takes roughly {describe_duration(seconds)}"
    )


def _read_sizes(folder: str) -> dict[str, int]:
    """Return the sizes of an encoder, under the names that most families use; others get BERT's proportions."""
    raw: dict[str, Any] = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))

    def size(*names: str, default: int) -> int:
        return next((int(raw[name]) for name in names if isinstance(raw.get(name), int)), default)

    width = size("hidden_size", "d_model", "dim", default=768)
    return {
        "width": width,
        "layers": size("num_hidden_layers", "n_layer", "n_layers", default=12),
        "inner": size("intermediate_size", "d_inner", "hidden_dim", default=4 * width),
        "words": size("vocab_size", default=30_000),
    }


def _mean_tokens(corpus: Corpus, longest: int | None) -> float:
    """Return the mean number of tokens per text, from the words of evenly spaced texts."""
    rows = np.linspace(0, len(corpus) - 1, min(_SAMPLE, len(corpus))).astype(int).tolist()
    if corpus.texts is None:
        return 1.0
    lengths = [2 + _TOKENS_PER_WORD * len(corpus.texts[row].split()) for row in rows]
    return float(np.mean([min(length, longest or length) for length in lengths]))
