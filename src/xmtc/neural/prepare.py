"""Prepare a neural training: check, hold out dev documents, load the encoder, tokenize.

Input: a corpus and settings. Output: `Prepared`, which trains networks of any method and builds models from them. This
module knows no method: heads, losses and details are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.held_out import hold_out
from xmtc.core.labels import LabelSet
from xmtc.core.metrics import Propensity, dev_scorer
from xmtc.core.progress import Progress
from xmtc.core.storage import Details, Epoch, Manifest
from xmtc.core.texts import Texts
from xmtc.features.tokens import tokenize_once
from xmtc.neural.batches import Inputs
from xmtc.neural.encoder import Encoder, EncoderConfig, Tokenizer, load_encoder
from xmtc.neural.network import Trainable
from xmtc.neural.optimizer import Group
from xmtc.neural.plan import HeadSize, plan_training
from xmtc.neural.resolve import digest_weights
from xmtc.neural.trainer import Score, TrainConfig, TrainingData, fit

if TYPE_CHECKING:
    from xmtc.core.outlined import Pace
    from xmtc.neural.plateau import Plateau
    from xmtc.neural.pooling import Pool


class NeuralConfig(Settings):
    """The settings that all neural methods share."""

    encoder: EncoderConfig = Field(default_factory=EncoderConfig)
    train: TrainConfig = Field(default_factory=TrainConfig)
    propensity: Propensity = Field(default_factory=Propensity)

    def outline(self, corpus: Corpus) -> str:
        """Return an estimate of training on this corpus, before the encoder is loaded."""
        from xmtc.neural.outline import outline_training

        return outline_training(self.encoder, self.train, corpus)

    def measure_pace(self, corpus: Corpus) -> Pace:
        """Return how fast a network with this encoder trains on this machine, measured with a few steps."""
        from xmtc.neural.pace import measure_pace

        return measure_pace(self.encoder, self.train, corpus)


C = TypeVar("C", bound=NeuralConfig)
D = TypeVar("D", bound=Details)


@dataclass(frozen=True, eq=False)
class Prepared(Generic[C]):
    """Training and dev documents, and the encoder that reads them."""

    manifest: Manifest[Details]
    labels: LabelSet
    corpus: Corpus  # labelled documents, without dev
    encoder: Encoder
    tokenizer: Tokenizer
    data: TrainingData
    dev: tuple[Inputs, Score]
    held: Corpus  # dev documents; none if train.dev_fraction is 0
    config: C
    progress: Progress

    def announce_plan(self, head: HeadSize, n_encoders: int = 1) -> None:
        """Report what training will need; raise ConfigError if it cannot fit."""
        lengths = self.data.inputs.tokens.lengths
        plan_training(self.encoder, n_encoders, head, lengths, self.config.train).announce(self.progress)

    def store_frozen(self, reads: Pool) -> Prepared[C]:
        """Return a copy with the states of frozen layers, computed once, if the network reads no lower states.

        reads: all states of the encoder that the network reads. Nothing is stored if there is dropout, because it makes
        frozen layers differ from step to step.
        """
        config, (dev_inputs, score) = self.config.encoder, self.dev
        if config.freeze_layers == 0 or config.dropout != 0:
            return self
        from xmtc.neural.lower import keep_lower_states

        given = [self.data.inputs, dev_inputs]
        kept, kept_dev = keep_lower_states(
            self.encoder, config.freeze_layers, given, reads, self.progress, self.config.train.precision
        )
        return replace(self, data=replace(self.data, inputs=kept), dev=(kept_dev, score))

    def fit(
        self,
        network: Trainable,
        groups: Sequence[Group],
        partial: Path | None,
        *,
        config: TrainConfig | None = None,
        choose: bool = True,
        on_epoch: Callable[[int], None] | None = None,
        plateau: Plateau | None = None,
    ) -> list[Epoch]:
        """Train a network on these documents with `trainer.fit`; `choose` keeps the epoch that ranks dev best.

        Without dev documents, the last epoch is kept.

        A step may leave parameters unused: encoders have a pooler or layers that text vectors do not need.
        """
        return fit(
            network,
            groups,
            self.data,
            config or self.config.train,
            dev=self.dev if choose and len(self.held) else None,
            seed=self.manifest.seed,
            partial=partial,
            identity=identity_of(self.manifest),
            on_epoch=on_epoch,
            skips_parameters=True,
            plateau=plateau,
            progress=self.progress,
        )

    def describe(self, details: type[D], **known: Any) -> Manifest[D]:
        """Return the manifest of the trained model; `known` are the fields that the method's details add."""
        described = details(**self.manifest.details.to_json() | known)
        return Manifest(**{**vars(self.manifest), "details": described})


def begin(
    method: str, corpus: Corpus, config: NeuralConfig, dev: Corpus | None, seed: int, *, pretrained: bool
) -> tuple[Manifest[Details], Corpus]:
    """Return the manifest of the future model and the labelled documents; raise if nothing can be learned.

    pretrained: whether training starts from the weights of the encoder that the settings name.
    """
    for name, part in (("this corpus", corpus), ("dev", dev)):
        if part is not None and part.texts is None:
            raise DataError(f"{method} reads texts, and {name} has only features")
    labelled = corpus.take(corpus.labelled_rows())
    details = Details(features=None, dev=None if dev is None else dev.fingerprint())
    if pretrained:
        details = details.model_copy(update={"encoder": digest_weights(config.encoder.name)})
    return Manifest.describe(method, config, corpus, seed, details), labelled


def identity_of(manifest: Manifest[Details]) -> dict[str, Any]:
    """Return the identity of a run; a run may resume from checkpoints with the same identity."""
    same = {"config": manifest.config, "seed": manifest.seed, "data": manifest.data}
    return {**same, "dev": manifest.details.dev, "encoder": manifest.details.encoder}


def prepare(
    method: str,
    corpus: Corpus,
    config: C,
    dev: Corpus | None,
    seed: int,
    progress: Progress,
    load: Callable[[Corpus], tuple[Encoder, Tokenizer]] | None = None,
) -> Prepared[C]:
    """Check the corpus, hold out dev documents if none are given, load the encoder, and tokenize.

    With train.dev_fraction = 0 there are no dev documents: given ones are not used.

    `load` builds an encoder from the training documents, instead of the encoder of the settings.
    """
    labels = corpus.labels
    if config.train.dev_fraction == 0:
        dev = None
    manifest, corpus = begin(method, corpus, config, dev, seed, pretrained=load is None)
    if dev is None:
        corpus, dev = hold_out(corpus, config.train.dev_fraction, seed, progress)
    torch.manual_seed(seed)
    if load is None:
        progress.stage("loading the encoder")
        encoder, tokenizer = load_encoder(config.encoder)
    else:
        encoder, tokenizer = load(corpus)
    inputs, dev_inputs = (
        Inputs(
            tokenize_once(Texts.pack(part.texts or ()), tokenizer, tokenizer.fingerprint(), progress), encoder.layout
        )
        for part in (corpus, dev)
    )
    aligned = (dev if len(dev) else corpus).align(labels)  # without dev, nothing is scored; still checks the metric
    score = dev_scorer(aligned.Y, aligned.labels.counts, manifest.n_documents, config.train.metric, config.propensity)
    data = TrainingData(inputs, corpus.Y[:, : labels.n_labels].tocsr())
    return Prepared(manifest, labels, corpus, encoder, tokenizer, data, (dev_inputs, score), dev, config, progress)
