"""LightXML (Jiang et al., AAAI 2021): one transformer, five layers' [CLS], clusters recall, a discriminator ranks.

docs/methods/lightxml.md maps the equations to the code and lists what differs from paper and authors' code.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.core.method import Method
from xmtc.core.progress import SILENT, Progress
from xmtc.core.search_space import Tunable
from xmtc.core.storage import Details, Epoch, FolderReader, FolderWriter
from xmtc.features.label_clusters import LabelClusterConfig, cluster_labels
from xmtc.features.tfidf import TfidfConfig
from xmtc.neural.batches import Batch
from xmtc.neural.dropout import Dropout
from xmtc.neural.encoder import Encoder, PooledEncoderConfig
from xmtc.neural.heads import FlatHead, InitialBias
from xmtc.neural.model import NeuralModel, read_encoder, read_partition, restore_network
from xmtc.neural.network import Network
from xmtc.neural.optimizer import Group, Schedule, group_by_decay
from xmtc.neural.plan import HeadSize
from xmtc.neural.pooling import pool_text, read_pool
from xmtc.neural.prepare import NeuralConfig, Prepared, prepare
from xmtc.neural.spread import warn_if_alike
from xmtc.neural.trainer import TrainConfig

if TYPE_CHECKING:
    from xmtc.core.partition import Partition
    from xmtc.methods.lightxml.head import ClusterHead
    from xmtc.neural.window_pool import WindowPool

NAME = "lightxml"
_LAYERS = 5  # number of layers whose [CLS] the paper reads
Stage = Literal["recall", "rank"]
_STAGES: tuple[Stage, ...] = ("recall", "rank")


class HeadConfig(Settings):
    """Settings of the layers between the text's vector and the labels."""

    mode: Literal["auto", "small", "large"] = Field(
        "auto", description="small: one layer over all labels; large: clusters; auto: by head.large_from"
    )
    large_from: int = Field(100_000, ge=1, description="number of labels from which auto means large")
    dropout: Annotated[float, Tunable(0.0, 0.6)] = Field(0.5, ge=0, lt=1, description="dropout on the text's vector")
    initial_bias: InitialBias = Field(
        0.0, description="bias of the scores at the start; −6 suits rare labels; prior: from the frequencies"
    )
    label_init: Literal["random", "documents"] = Field(
        "random", description="label rows start at random, or from the mean vectors of their documents"
    )
    bottleneck: int = Field(400, ge=1, le=65_536, description="width of the label vectors (large)")
    shortlist: int = Field(75, ge=1, le=1_000_000, description="number of clusters whose labels are ranked (large)")
    sigmoid: bool = Field(False, description="apply Eq. 4's sigmoid to the bottleneck (large)")
    negatives: Literal["dynamic", "static", "static-own"] = Field(
        "dynamic",
        description="large: candidates by the generator's scores of each step; or recall is trained first, and ranking "
        "on its fixed candidates, with the same encoder frozen (static, the paper's S) or one of its own (BS)",
    )
    dense_table: bool = Field(False, description="use plain AdamW on the label table instead of the row-sparse one")


class LightTrainConfig(TrainConfig):
    """Training settings; defaults are the paper's: constant rates, no clipping."""

    schedule: Schedule = Field("constant", description=TrainConfig.model_fields["schedule"].description)
    clip: float | None = Field(None, gt=0, description="maximum norm of the gradient")


class RateConfig(Settings):
    """Learning rates."""

    encoder: Annotated[float, Tunable(2e-5, 5e-4, log=True)] = Field(
        1e-4, gt=0, description="learning rate of the encoder"
    )
    head: Annotated[float, Tunable(1e-4, 1e-2, log=True)] = Field(
        1e-4, gt=0, description="learning rate of the layers after the encoder"
    )
    decay: float = Field(0.01, ge=0, description="weight decay of all weights except biases and norms")


class LightxmlConfig(NeuralConfig):
    """Settings of LightXML."""

    encoder: PooledEncoderConfig = Field(default_factory=PooledEncoderConfig)
    head: HeadConfig = Field(default_factory=HeadConfig)
    cluster: LabelClusterConfig = Field(default_factory=LabelClusterConfig)
    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    rate: RateConfig = Field(default_factory=RateConfig)
    train: LightTrainConfig = Field(default_factory=LightTrainConfig)
    reference: bool = Field(
        False,
        description="as the authors' code: read the first token even where [CLS] is last (XLNet), and fill short "
        "lists of candidates with their last label",
    )


class LightxmlDetails(Details):
    """Facts that a model stores next to its settings and arrays."""

    features: None = None  # it ranks texts only
    clusters: int | None  # None: one layer over all labels


class LightxmlNetwork(Network):
    """Encoder, dropout, head. `stage` is the part being trained: None for all; static negatives have two stages."""

    def __init__(self, encoder: Encoder, config: LightxmlConfig, n_labels: int, partition: Partition | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.pool = read_pool(config.encoder, encoder, _LAYERS)
        self.width = self.pool.width
        self.windows: WindowPool | None = None
        if config.encoder.windows > 1:
            from xmtc.neural.window_pool import WindowPool

            self.windows = WindowPool(self.width, config.encoder.window_pool)
        self.reference = config.reference
        self.dropout = Dropout(config.head.dropout)
        self.stage: Stage | None = None
        self.head: FlatHead | ClusterHead
        self.recaller: Encoder | None = None
        head = config.head
        constant = 0.0 if isinstance(head.initial_bias, str) else head.initial_bias
        if partition is None:
            self.head = FlatHead(self.width, n_labels, constant)
            return
        from xmtc.methods.lightxml.head import ClusterHead
        from xmtc.neural.candidates import Clusters

        self.head = ClusterHead(
            self.width,
            Clusters(partition),
            head.bottleneck,
            head.shortlist,
            constant,
            head.sigmoid,
            config.reference,
        )
        self.head.table.sparse = not head.dense_table
        if head.negatives == "static-own":
            self.recaller = copy.deepcopy(encoder)  # used by recall; ranking trains `encoder` further

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return (sum, count) of this stage's loss."""
        if isinstance(self.head, FlatHead) or self.stage is None:
            return self.head.loss(self.dropout(self._text(self.encoder, batch)), batch)
        if self.stage == "recall":
            return self.head.recall_loss(self.dropout(self._text(self.recaller or self.encoder, batch)), batch)
        recalled = self._frozen_text(batch)
        text = recalled if self.recaller is None else self._text(self.encoder, batch)
        with torch.no_grad():
            cluster_logits = self.head.generator(recalled)
        return self.head.ranking_loss(self.dropout(text), batch, cluster_logits)

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """Return (labels, scores) of the k best labels; −1 if the shortlist holds fewer."""
        text = self._text(self.encoder, batch)
        if isinstance(self.head, FlatHead):
            return self.head.rank(text, k)
        recalled = text if self.recaller is None else self._text(self.recaller, batch)
        return self.head.rank(text, k, self.head.generator(recalled))

    def score(self, batch: Batch, label: int) -> Tensor:
        """Return the score that explanations use: the label's logit; with clusters the log of its score, σ·σ: (B,)."""
        text = self._text(self.encoder, batch)
        if isinstance(self.head, FlatHead):
            return self.head.score(text, label)
        recalled = text if self.recaller is None else self._text(self.recaller, batch)
        cluster = self.head.clusters.cluster_of[label]
        generator = self.head.generator
        cluster_logit = recalled @ generator.weight[cluster] + generator.bias[cluster]
        return F.logsigmoid(self.head.label_logit(text, label)) + F.logsigmoid(cluster_logit)

    def read(self, batch: Batch) -> Tensor:
        """Return the texts' vectors (B, width), with no dropout applied to them."""
        return self._text(self.encoder, batch)

    def enter(self, stage: Stage) -> None:
        """Begin a stage; a separate ranking encoder starts from the recall encoder."""
        self.stage = stage
        if stage == "rank" and self.recaller is not None:
            self.encoder.load_state_dict(self.recaller.state_dict())

    @torch.no_grad()
    def _frozen_text(self, batch: Batch) -> Tensor:
        """Return the trained recall encoder's vectors of the texts, without dropout: the same in every epoch."""
        encoder = self.recaller or self.encoder
        was_training = encoder.training
        encoder.eval()
        text = self._text(encoder, batch)
        encoder.train(was_training)
        return text

    def _text(self, encoder: Encoder, batch: Batch) -> Tensor:
        """Return e of the paper, [CLS] of the last five layers, or the pooling set by `encoder.pool`: (B, width)."""
        encoded = encoder(batch.ids, batch.mask, batch.lower)
        if self.reference:
            encoded = encoded._replace(cls=batch.mask.int().argmax(1))
        text = pool_text(encoded, self.pool.parts)
        return text if self.windows is None else self.windows(text, batch)


class LightxmlMethod(Method[LightxmlConfig]):
    """Train and load LightXML models."""

    name = NAME
    Config = LightxmlConfig

    def train(
        self,
        corpus: Corpus,
        config: LightxmlConfig,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        progress: Progress = SILENT,
        partial: Path | None = None,
    ) -> NeuralModel[LightxmlNetwork]:
        """Fine-tune an encoder on a corpus; keep the epoch with the best score on dev."""
        if config.head.label_init == "documents" and config.head.sigmoid:
            raise ConfigError("head.label_init = documents needs a linear bottleneck: set head.sigmoid = false")
        ready = prepare(NAME, corpus, config, dev, seed, progress)
        labels = ready.labels
        width = read_pool(config.encoder, ready.encoder, _LAYERS).width
        large = config.head.mode == "large" or (
            config.head.mode == "auto" and labels.n_labels >= config.head.large_from
        )
        partition = None
        if large:
            partition = cluster_labels(ready.corpus, config.tfidf, config.cluster, seed, progress)
        n_encoders = 2 if large and config.head.negatives == "static-own" else 1
        ready.announce_plan(head_size(config, width, labels.n_labels, partition), n_encoders)
        network = LightxmlNetwork(ready.encoder, config, labels.n_labels, partition)
        warn_if_alike(ready.encoder, ready.data.inputs, network.pool.parts, progress)
        if config.encoder.freeze_layers and config.head.negatives != "static-own":  # "static-own" has two encoders
            ready = ready.store_frozen(network.pool)
        if config.head.initial_bias == "prior" or config.head.label_init == "documents":
            from xmtc.methods.lightxml.start import start_head

            start_head(network, ready, partition)
        if large and config.head.negatives != "dynamic":
            curve = _fit_in_stages(network, ready, config, partial)
        else:
            curve = ready.fit(network, groups(network, config), None if partial is None else partial / "all")
        n_clusters = None if partition is None else partition.n_clusters
        manifest = ready.describe(LightxmlDetails, clusters=n_clusters, curve=curve)
        return NeuralModel(manifest, labels, network, ready.tokenizer)

    def load(self, reader: FolderReader) -> NeuralModel[LightxmlNetwork]:
        """Load a model from its folder; needs neither hub nor cache."""
        manifest, config, labels = reader.open(LightxmlConfig, LightxmlDetails)
        encoder, tokenizer = read_encoder(reader, "encoder", config.encoder)
        n_clusters = manifest.details.clusters
        partition = None
        if n_clusters is not None:
            partition = read_partition(reader, "head.clusters.cluster_of", n_clusters, labels.n_labels)
        network = restore_network(lambda: LightxmlNetwork(encoder, config, labels.n_labels, partition), reader)
        return NeuralModel(manifest, labels, network, tokenizer)

    def export(self, model: NeuralModel[LightxmlNetwork], out: FolderWriter, *, int8: bool) -> None:
        """Write a model that ranks without torch; see `freeze.py`."""
        from xmtc.methods.lightxml.freeze import write_frozen

        write_frozen(model, LightxmlConfig.model_validate(model.manifest.config), out, int8)

    def uses_dev(self, config: LightxmlConfig) -> bool:
        """Return whether dev documents choose the epoch."""
        return config.train.dev_fraction > 0


def head_size(config: LightxmlConfig, width: int, n_labels: int, partition: Partition | None) -> HeadSize:
    """Return the sizes of the layers after the encoder, for the training plan."""
    if partition is None:
        advice = "rank by clusters (head.mode=large), or read fewer layers (encoder.pool=cls)"
        return HeadSize((width + 1) * n_labels, 0, 3 * n_labels, advice)
    n_clusters, bottleneck = partition.n_clusters, config.head.bottleneck
    candidates = min(config.head.shortlist, n_clusters) * int(np.diff(partition.starts).max())
    return HeadSize(
        (width + 1) * (n_clusters + bottleneck),
        n_labels * bottleneck,
        3 * n_clusters + candidates * (2 * bottleneck + 3),  # the candidates' vectors and their gradients
        "lower head.bottleneck, or make larger clusters (cluster.size)",
    )


def _fit_in_stages(
    network: LightxmlNetwork, ready: Prepared[LightxmlConfig], config: LightxmlConfig, partial: Path | None
) -> list[Epoch]:
    """Train with static negatives: all epochs of recall, then all epochs of ranking."""
    curve: list[Epoch] = []
    for stage in _STAGES:
        network.enter(stage)
        curve += ready.fit(
            network,
            groups(network, config),
            None if partial is None else partial / stage,
            choose=stage != "recall",  # recall alone cannot rank yet: use its last epoch
        )
    return curve


def groups(network: LightxmlNetwork, config: LightxmlConfig) -> list[Group]:
    """Return the stage's parameter groups: decay on all but biases and norms, the label table row by row."""
    head, rate = network.head, config.rate
    table: list[nn.Parameter] = []
    encoder: nn.Module | None = network.encoder
    layers: list[nn.Module | None]
    if isinstance(head, FlatHead):
        layers = [head.output, network.windows]
    elif network.stage == "recall":
        encoder, layers = network.recaller or encoder, [head.generator, network.windows]
    else:
        layers, table = [head.generator, head.bottleneck, network.windows], list(head.table.parameters())
        if network.stage == "rank":
            layers = [head.bottleneck]  # windows are pooled as learned during recall
            encoder = None if network.recaller is None else encoder
    found = group_by_decay([encoder], rate.encoder, rate.decay)
    found += group_by_decay(layers, rate.head, rate.decay)
    if table:
        found.append(Group(table, rate.head, rate.decay, row_sparse=not config.head.dense_table))
    return found


METHOD = LightxmlMethod()
