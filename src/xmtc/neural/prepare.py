"""What every neural method does before its own work: check, set documents aside for dev, load, tokenize.

A corpus and settings enter; `Prepared` leaves, ready for the trainer. Knows no method: heads and losses come later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.held_out import hold_out
from xmtc.core.labels import LabelSet
from xmtc.core.progress import Progress
from xmtc.core.propensity import Propensity
from xmtc.core.storage import Manifest
from xmtc.core.texts import Texts
from xmtc.features.tokens import Tokens, tokenize_once
from xmtc.neural.dev import scorer
from xmtc.neural.encoder import Encoder, EncoderConfig, Tokenizer, load_encoder
from xmtc.neural.plan import HeadSize, available_memory, plan_training
from xmtc.neural.trainer import Score, TrainConfig, TrainingData


class NeuralConfig(Settings):
    """What the settings of all neural methods have."""

    encoder: EncoderConfig = Field(default_factory=EncoderConfig)
    train: TrainConfig = Field(default_factory=TrainConfig)
    propensity: Propensity = Field(default_factory=Propensity)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Documents to train on and to choose by, and the encoder that reads them."""

    manifest: Manifest
    labels: LabelSet
    corpus: Corpus  # documents with labels, dev's left out
    encoder: Encoder
    tokenizer: Tokenizer
    data: TrainingData
    dev: tuple[Tokens, Score]
    held: Corpus  # dev's documents
    config: NeuralConfig
    progress: Progress

    def plan(self, head: HeadSize, n_encoders: int = 1) -> None:
        """Say what training will take; refuse what cannot fit."""
        plan = plan_training(self.encoder, n_encoders, head, self.data.tokens.lengths, self.config.train)
        plan.tell(self.progress, available_memory())

    def run(self, partial: Path | None) -> dict[str, Any]:
        """What `fit` is told besides the network, its groups and its share of the epochs."""
        identity = identity_of(self.manifest)
        return {"seed": self.manifest.seed, "partial": partial, "identity": identity, "progress": self.progress}


def begin(method: str, corpus: Corpus, config: NeuralConfig, dev: Corpus | None, seed: int) -> tuple[Manifest, Corpus]:
    """Return the manifest of the model to come, and the documents that have labels; a corpus that cannot be learnt
    from is refused."""
    for name, part in (("this corpus", corpus), ("dev", dev)):
        if part is not None and part.texts is None:
            raise DataError(f"{method} reads texts, and {name} has only features")
    labelled = corpus.take(np.flatnonzero(np.diff(corpus.Y[:, : corpus.labels.n_labels].tocsr().indptr)))
    if len(labelled) == 0:
        raise DataError("no document has a label; there is nothing to learn")
    manifest = Manifest(
        method=method,
        config=config.model_dump(mode="json"),
        seed=seed,
        n_labels=corpus.labels.n_labels,
        n_documents=len(corpus),
        data=corpus.fingerprint(),
        details={"features": None, "dev": None if dev is None else dev.fingerprint()},
    )
    return manifest, labelled


def identity_of(manifest: Manifest) -> dict[str, Any]:
    """What makes two runs the same, so that one may go on with the other's checkpoints."""
    same = {"config": manifest.config, "seed": manifest.seed, "data": manifest.data}
    return {**same, "dev": manifest.details["dev"]}


def prepare(
    method: str,
    corpus: Corpus,
    config: NeuralConfig,
    dev: Corpus | None,
    seed: int,
    progress: Progress,
    load: Callable[[Corpus], tuple[Encoder, Tokenizer]] | None = None,
) -> Prepared:
    """Check the corpus, hold out dev where none is given, load the encoder, and tokenize.

    `load` makes another encoder than the one of the settings, from the documents to train on.
    """
    labels = corpus.labels
    manifest, corpus = begin(method, corpus, config, dev, seed)
    if dev is None:
        corpus, dev = hold_out(corpus, config.train.dev_fraction, seed, progress)
    torch.manual_seed(seed)
    if load is None:
        progress.stage("loading the encoder")
        encoder, tokenizer = load_encoder(config.encoder)
    else:
        encoder, tokenizer = load(corpus)
    tokens, dev_tokens = (
        tokenize_once(Texts.pack(part.texts or ()), tokenizer, tokenizer.fingerprint(), progress)
        for part in (corpus, dev)
    )
    score = scorer(dev, labels, manifest.n_documents, config.train.metric, config.propensity)
    Y = corpus.Y[:, : labels.n_labels].tocsr()
    data = TrainingData(tokens, Y, encoder.layout)
    return Prepared(manifest, labels, corpus, encoder, tokenizer, data, (dev_tokens, score), dev, config, progress)
