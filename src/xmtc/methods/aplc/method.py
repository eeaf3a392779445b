"""APLC-XLNet (Ye et al., ICML 2020): one transformer's [CLS], a hidden layer, and labels in bands of frequency.

docs/methods/aplc.md maps the equations to the code and lists what differs from paper and authors' code.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.core.method import Method
from xmtc.core.partition import Partition
from xmtc.core.progress import SILENT, Progress
from xmtc.core.search_space import Tunable
from xmtc.core.storage import Details, FolderReader, FolderWriter
from xmtc.methods.aplc.head import AplcHead, count_parameters, tail_widths
from xmtc.neural.batches import Batch
from xmtc.neural.dropout import Dropout
from xmtc.neural.encoder import Encoder, PooledEncoderConfig
from xmtc.neural.heads import InitialBias
from xmtc.neural.model import NeuralModel, read_encoder, read_partition, restore_network
from xmtc.neural.network import Network
from xmtc.neural.optimizer import Group, Schedule, group_by_decay
from xmtc.neural.plan import HeadSize
from xmtc.neural.pooling import pool_text, read_pool
from xmtc.neural.prepare import NeuralConfig, prepare
from xmtc.neural.spread import warn_if_alike
from xmtc.neural.trainer import TrainConfig
from xmtc.neural.window_pool import WindowPool

NAME = "aplc"


class HeadConfig(Settings):
    """Settings of the layers between the text's vector and the labels."""

    width: int | None = Field(None, ge=1, le=65_536, description="d_h, width of the hidden layer; None: the encoder's")
    hidden_init: Literal["random", "average"] = Field(
        "random",
        description="the hidden layer starts at random, or as the average of the parts of the text's vector "
        "(encoder.pool), if it is as wide as the encoder",
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout after the hidden layer")
    q: float = Field(2.0, ge=1, description="tail i is d_h / qⁱ wide")
    bare: bool = Field(False, description="tails as Eq. 6 counts them, without the code's LayerNorm and ReLU")
    initial_bias: InitialBias = Field(
        0.0, description="added to the labels' logits; −6 suits rare labels; prior: from each label's frequency"
    )


class BandConfig(Settings):
    """Settings of the split into head and tails, by falling frequency; set one of these, or get two even bands."""

    proportions: list[float] | None = Field(None, description="share of the labels in head and tails: [0.5, 0.5]")
    cutoffs: list[int] | None = Field(None, description="number of labels before each tail: [1978]")
    bands: int | None = Field(None, ge=1, le=10_000, description="number of even bands, including the head")


class AplcTrainConfig(TrainConfig):
    """Training settings; defaults are the paper's (Table 3)."""

    epochs: int = Field(8, ge=1, description=TrainConfig.model_fields["epochs"].description)
    batch_size: int = Field(12, ge=1, description="documents per step, over all processes")
    schedule: Schedule = Field("slanted", description=TrainConfig.model_fields["schedule"].description)


class RateConfig(Settings):
    """Learning rates of the three modules (section 4.1)."""

    encoder: Annotated[float, Tunable(2e-5, 5e-4, log=True)] = Field(
        5e-5, gt=0, description="η_x, learning rate of the encoder"
    )
    hidden: float = Field(1e-4, gt=0, description="η_h, learning rate of the hidden layer")
    aplc: Annotated[float, Tunable(2e-4, 1e-2, log=True)] = Field(
        2e-3, gt=0, description="η_a, learning rate of head and tails"
    )
    decay: float = Field(0.0, ge=0, description="weight decay of all weights except biases and norms")


class AplcConfig(NeuralConfig):
    """Settings of APLC-XLNet."""

    encoder: PooledEncoderConfig = Field(default_factory=PooledEncoderConfig)
    head: HeadConfig = Field(default_factory=HeadConfig)
    cluster: BandConfig = Field(default_factory=BandConfig)
    loss: Literal["repo", "paper"] = Field("repo", description="repo: the loss of the authors' code; paper: Eq. 5")
    rate: RateConfig = Field(default_factory=RateConfig)
    train: AplcTrainConfig = Field(default_factory=AplcTrainConfig)


class AplcDetails(Details):
    """Facts that a model stores next to its settings and arrays."""

    features: None = None  # it ranks texts only
    bands: list[int]  # number of labels in the head and in each tail


class AplcNetwork(Network):
    """The network: encoder, hidden layer and APLC head."""

    def __init__(self, encoder: Encoder, config: AplcConfig, bands: Partition) -> None:
        super().__init__()
        head = config.head
        self.encoder = encoder
        self.pool = read_pool(config.encoder, encoder)
        joining = config.encoder.window_pool
        self.windows = WindowPool(self.pool.width, joining) if config.encoder.windows > 1 else None
        self.hidden = nn.Linear(self.pool.width, _hidden_width(encoder, config))
        nn.init.normal_(self.hidden.weight, std=0.02)
        nn.init.zeros_(self.hidden.bias)
        if head.hidden_init == "average":
            n_parts = len(self.pool.parts)
            self.hidden.weight.data.copy_(torch.eye(encoder.width).repeat(1, n_parts) / n_parts)
        self.dropout = Dropout(head.dropout)
        prior = isinstance(head.initial_bias, str)
        constant = 0.0 if isinstance(head.initial_bias, str) else head.initial_bias
        pooled = config.loss == "paper"
        self.head = AplcHead(self.hidden.out_features, bands, head.q, head.bare, pooled, constant, prior)

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return (sum, count) of the loss."""
        return self.head.loss(self._hidden(batch), batch)

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """Return (labels, probabilities) of the k best labels."""
        return self.head.rank(self._hidden(batch), k)

    def score(self, batch: Batch, label: int) -> Tensor:
        """Return the score that an explanation uses, the logarithm of the label's probability: (B,)."""
        return self.head.score(self._hidden(batch), label)

    def _hidden(self, batch: Batch) -> Tensor:
        """Return the hidden layer's output for the texts (sections 3.1 and 3.2): (B, d_h)."""
        text = pool_text(self.encoder(batch.ids, batch.mask, batch.lower), self.pool.parts)
        if self.windows is not None:
            text = self.windows(text, batch)
        hidden: Tensor = self.dropout(self.hidden(text).tanh())
        return hidden


class AplcMethod(Method[AplcConfig]):
    """Train and load APLC-XLNet models."""

    name = NAME
    Config = AplcConfig

    def train(
        self,
        corpus: Corpus,
        config: AplcConfig,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        progress: Progress = SILENT,
        partial: Path | None = None,
    ) -> NeuralModel[AplcNetwork]:
        """Fine-tune an encoder on a corpus; keep the epoch with the best score on dev."""
        sizes = band_sizes(config.cluster, corpus.labels.n_labels)
        ready = prepare(NAME, corpus, config, dev, seed, progress)
        ready.announce_plan(_head_size(config, ready.encoder, sizes))
        bands = band_labels(ready.corpus.labels.counts[: ready.labels.n_labels], sizes)
        network = AplcNetwork(ready.encoder, config, bands)
        if config.head.initial_bias == "prior":
            network.head.set_prior(ready.data.Y)
        warn_if_alike(ready.encoder, ready.data.inputs, network.pool.parts, progress)
        curve = ready.store_frozen(network.pool).fit(network, groups(network, config), partial)
        manifest = ready.describe(AplcDetails, bands=sizes, curve=curve)
        return NeuralModel(manifest, ready.labels, network, ready.tokenizer)

    def load(self, reader: FolderReader) -> NeuralModel[AplcNetwork]:
        """Load a model from its folder; needs neither hub nor cache."""
        manifest, config, labels = reader.open(AplcConfig, AplcDetails)
        encoder, tokenizer = read_encoder(reader, "encoder", config.encoder)
        bands = read_partition(reader, "head.band_of", len(manifest.details.bands), labels.n_labels)
        network = restore_network(lambda: AplcNetwork(encoder, config, bands), reader)
        return NeuralModel(manifest, labels, network, tokenizer)

    def export(self, model: NeuralModel[AplcNetwork], out: FolderWriter, *, int8: bool) -> None:
        """Write a model that ranks without torch; see `freeze.py`."""
        from xmtc.methods.aplc.freeze import write_frozen

        write_frozen(model, AplcConfig.model_validate(model.manifest.config), out, int8)

    def uses_dev(self, config: AplcConfig) -> bool:
        """Return whether dev documents choose the epoch."""
        return config.train.dev_fraction > 0


def band_sizes(config: BandConfig, n_labels: int) -> list[int]:
    """Return how many labels the head and each tail hold; raise if a band would be empty."""
    given = [name for name, value in config if value is not None]
    if len(given) > 1:
        raise ConfigError(f"cluster.{given[0]} and cluster.{given[1]} both split the labels: set one of them to null")
    if config.cutoffs is not None:
        ends = _check_cutoffs(config.cutoffs, n_labels)
    elif config.proportions is not None:
        ends = _check_proportions(config.proportions, n_labels)
    else:
        n_bands = min(2, n_labels) if config.bands is None else config.bands
        if n_bands > n_labels:
            raise ConfigError(f"cluster.bands = {n_bands}, but there are only {n_labels} labels: use fewer bands")
        ends = [i * n_labels // n_bands for i in range(1, n_bands)]
    return [end - start for start, end in pairwise([0, *ends, n_labels])]


def band_labels(counts: NDArray[np.integer], sizes: list[int]) -> Partition:
    """Split labels, by falling count and then by number, into bands of these sizes."""
    order = np.argsort(-counts, kind="stable")
    parents = np.empty(len(counts), dtype=np.int32)
    parents[order] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    return Partition(parents, len(sizes))


def _check_cutoffs(cutoffs: list[int], n_labels: int) -> list[int]:
    told = ", ".join(map(str, cutoffs))
    if any(end <= start for start, end in pairwise([0, *cutoffs])):
        raise ConfigError(f"cluster.cutoffs must rise, from 1 on; got {told}")
    if cutoffs and cutoffs[-1] >= n_labels:
        raise ConfigError(
            f"cluster.cutoffs must be below the number of labels, {n_labels}, to leave each tail one; got {told}"
        )
    return cutoffs


def _check_proportions(proportions: list[float], n_labels: int) -> list[int]:
    told = ", ".join(map(str, proportions))
    if not abs(sum(proportions) - 1) < 1e-6 or min(proportions) < 0:
        raise ConfigError(f"cluster.proportions must be positive and add up to 1; got {told}")
    ends = [round(share * n_labels) for share in np.cumsum(proportions)[:-1].tolist()]
    for band, (start, end) in enumerate(pairwise([0, *ends, n_labels])):
        if end <= start:
            name = "the head" if band == 0 else f"tail {band}"
            raise ConfigError(
                f"cluster.proportions {told} leave {name} none of the {n_labels} labels: use fewer or larger shares"
            )
    return ends


def _hidden_width(encoder: Encoder, config: AplcConfig) -> int:
    width = config.head.width or encoder.width
    if config.head.hidden_init == "average" and width != encoder.width:
        raise ConfigError(
            f"head.hidden_init = average needs a hidden layer as wide as the encoder, {encoder.width}, and head.width "
            f"is {width}: leave head.width out, or set head.hidden_init = random"
        )
    return width


def _head_size(config: AplcConfig, encoder: Encoder, sizes: list[int]) -> HeadSize:
    width = _hidden_width(encoder, config)
    narrow = tail_widths(width, config.head.q, len(sizes) - 1)
    if narrow and narrow[-1] < 2:  # a LayerNorm of one number is constant
        raise ConfigError(
            f"tail {len(narrow)} would be {narrow[-1]} wide, because head.width is {width} and head.q is "
            f"{config.head.q:g}: lower head.q, raise head.width, or use fewer tails"
        )
    hidden = (read_pool(config.encoder, encoder).width + 1) * width
    return HeadSize(
        dense=hidden + count_parameters(width, sizes, config.head.q, config.head.bare),
        table=0,
        activations=3 * sizes[0] + 5 * sum(sizes[1:]),  # upper bound: every document has positives in every tail
        advice="lower head.width, raise head.q, or put more labels into the tails (cluster.proportions)",
    )


def groups(network: AplcNetwork, config: AplcConfig) -> list[Group]:
    """Return parameter groups for discriminative fine-tuning (section 4.1): each module has its own learning rate."""
    rate = config.rate
    middle = [network.hidden, network.windows]
    parts = (([network.encoder], rate.encoder), (middle, rate.hidden), ([network.head], rate.aplc))
    return [group for modules, value in parts for group in group_by_decay(modules, value, rate.decay)]


METHOD = AplcMethod()
