"""LightXML (Jiang et al., AAAI 2021): one transformer, five layers' [CLS], clusters recall, a discriminator ranks.

docs/methods/lightxml.md maps the equations to the code and lists what differs from paper and authors' code.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.metrics import Propensity
from xmtc.core.partition import Partition
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import FolderReader, Manifest
from xmtc.features.clustering import ClusterConfig, split_to_size
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import Tfidf, TfidfConfig
from xmtc.features.tokens import tokenize_once
from xmtc.neural.batches import Batch
from xmtc.neural.candidates import Clusters
from xmtc.neural.dev import hold_out, scorer
from xmtc.neural.encoder import Encoder, EncoderConfig, Tokenizer, load_encoder, restore_encoder
from xmtc.neural.heads import ClusterHead, FlatHead
from xmtc.neural.model import NeuralModel, load_weights
from xmtc.neural.pooling import concat_cls, masked_mean
from xmtc.neural.trainer import Group, TrainConfig, TrainingData, fit

METHOD = "lightxml"


class LightEncoderConfig(EncoderConfig):
    """The encoder, and what is taken from it."""

    cls_layers: int | None = Field(None, ge=1, description="last layers whose [CLS] is read; None: five, or all")
    mean: bool = Field(False, description="read the mean of the last layer too")


class HeadConfig(Settings):
    """Between the text's vector and the labels."""

    mode: Literal["auto", "small", "large"] = Field("auto", description="one layer over all labels, or clusters")
    large_from: int = Field(100_000, ge=1, description="labels from which auto means large")
    dropout: float = Field(0.5, ge=0, lt=1)
    initial_bias: float = Field(0.0, description="of the first scores; −6 says that labels are rare")
    bottleneck: int = Field(400, ge=1, description="width of the label vectors (large)")
    shortlist: int = Field(75, ge=1, description="clusters whose labels are ranked (large)")
    sigmoid: bool = Field(False, description="Eq. 4's sigmoid on the bottleneck (large)")
    negatives: Literal["dynamic", "static", "static-own"] = Field(
        "dynamic",
        description="large: candidates by the generator's scores of each step; or recall is trained first, and ranking "
        "on its fixed candidates, with the same encoder frozen (static, the paper's S) or one of its own (BS)",
    )
    dense_table: bool = Field(False, description="plain AdamW on the label table, in place of the row-sparse one")


class RateConfig(Settings):
    """Learning rates."""

    encoder: float = Field(1e-4, gt=0)
    head: float = Field(1e-4, gt=0)
    decay: float = Field(0.01, ge=0, description="weight decay, of all but biases and norms")


class Config(Settings):
    """Settings of LightXML."""

    encoder: LightEncoderConfig = Field(default_factory=LightEncoderConfig)
    head: HeadConfig = Field(default_factory=HeadConfig)
    cluster: ClusterConfig = Field(default_factory=lambda: ClusterConfig(size=100))
    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    rate: RateConfig = Field(default_factory=RateConfig)
    train: TrainConfig = Field(default_factory=lambda: TrainConfig(schedule="constant", clip=None))
    propensity: Propensity = Field(default_factory=Propensity)


class Network(nn.Module):
    """Encoder, dropout, head. `stage` says which part learns: all, or for static negatives recall, then ranking."""

    def __init__(self, encoder: Encoder, config: Config, n_labels: int, partition: Partition | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.n_cls = config.encoder.cls_layers or min(5, encoder.n_layers)
        self.mean = config.encoder.mean
        self.dropout = nn.Dropout(config.head.dropout)
        self.stage: Literal["all", "recall", "rank"] = "all"
        width = encoder.width * (self.n_cls + self.mean)
        self.head: FlatHead | ClusterHead
        self.recaller: Encoder | None = None
        if partition is None:
            self.head = FlatHead(width, n_labels, config.head.initial_bias)
            return
        head = config.head
        self.head = ClusterHead(
            width, Clusters(partition), head.bottleneck, head.shortlist, head.initial_bias, head.sigmoid
        )
        self.head.table.sparse = not head.dense_table
        if head.negatives == "static-own":
            self.recaller = copy.deepcopy(encoder)  # recall keeps this one; ranking goes on with `encoder`

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(sum, count) of this stage's loss."""
        if self.stage == "all" or isinstance(self.head, FlatHead):
            return self.head.loss(self.dropout(self._text(self.encoder, batch)), batch)
        if self.stage == "recall":
            return self.head.recall_loss(self.dropout(self._text(self._recall_encoder(), batch)), batch)
        logits = self._recall_logits(batch)
        if self.recaller is None:  # S: the encoder stays as recall left it
            with torch.no_grad():
                text = self._text(self.encoder, batch)
        else:
            text = self._text(self.encoder, batch)
        return self.head.ranking_loss(self.dropout(text), batch, logits)

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """(labels, scores) of the k best labels; −1 where the shortlist holds fewer."""
        text = self._text(self.encoder, batch)
        if isinstance(self.head, FlatHead):
            return self.head.rank(text, k)
        return self.head.rank(text, k, None if self.recaller is None else self._recall_logits(batch))

    def score(self, batch: Batch, label: int) -> Tensor:
        """(B,) logit of one label."""
        text = self._text(self.encoder, batch)
        if isinstance(self.head, FlatHead):
            return text @ self.head.output.weight[label] + self.head.output.bias[label]
        return self.head.label_logit(text, label)

    def start_ranking(self) -> None:
        """Begin the second stage of static negatives: ranking's own encoder starts from recall's."""
        self.stage = "rank"
        if self.recaller is not None:
            self.encoder.load_state_dict(self.recaller.state_dict())

    def _recall_encoder(self) -> Encoder:
        return self.encoder if self.recaller is None else self.recaller

    @torch.no_grad()
    def _recall_logits(self, batch: Batch) -> Tensor:
        """Scores of the clusters by the finished recall, without dropout: the same for a text in every epoch."""
        assert isinstance(self.head, ClusterHead)
        encoder = self._recall_encoder()
        was_training = encoder.training
        encoder.eval()
        logits: Tensor = self.head.generator(self._text(encoder, batch))
        encoder.train(was_training)
        return logits

    def _text(self, encoder: Encoder, batch: Batch) -> Tensor:
        encoded = encoder(batch.ids, batch.mask)
        parts = [concat_cls(encoded, self.n_cls)]
        if self.mean:
            parts.append(masked_mean(encoded))
        return torch.cat(parts, dim=1)


def train(
    corpus: Corpus,
    config: Config,
    dev: Corpus | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
    partial: Path | None = None,
) -> NeuralModel:
    """Fine-tune an encoder on a corpus; the epoch that ranks dev best is kept."""
    if corpus.texts is None:
        raise DataError("lightxml reads texts, and this corpus has only features")
    labels = corpus.labels
    fingerprint = corpus.fingerprint()
    n_documents = len(corpus)
    corpus = corpus.take(np.flatnonzero(np.diff(corpus.Y.indptr)))
    if len(corpus) == 0:
        raise DataError("no document has a label; there is nothing to learn")
    progress.stage("loading the encoder")
    torch.manual_seed(seed)
    encoder, tokenizer = load_encoder(config.encoder)
    if (config.encoder.cls_layers or 1) > encoder.n_layers:
        raise ConfigError(
            f"encoder.cls_layers = {config.encoder.cls_layers}, but the encoder has {encoder.n_layers} layers"
        )
    if dev is None:
        corpus, dev = hold_out(corpus, config.train.dev_fraction, seed, progress)
    large = config.head.mode == "large" or (config.head.mode == "auto" and labels.n_labels >= config.head.large_from)
    partition = _cluster(corpus, config, seed, progress) if large else None
    network = Network(encoder, config, labels.n_labels, partition)
    curve = _fit(network, corpus, dev, config, seed, progress, partial, tokenizer, fingerprint)
    manifest = Manifest(
        method=METHOD,
        config=config.model_dump(mode="json"),
        seed=seed,
        n_labels=labels.n_labels,
        n_documents=n_documents,
        data=fingerprint,
        details={"features": False, "clusters": None if partition is None else partition.n_clusters, "curve": curve},
    )
    return NeuralModel(manifest, labels, network, tokenizer)


def load(reader: FolderReader) -> NeuralModel:
    """Rebuild a model from its folder; neither hub nor cache is needed."""
    config = Config.model_validate(reader.manifest.config)
    encoder, tokenizer = restore_encoder(reader.folder / "encoder", config.encoder.max_length)
    labels = reader.labels()
    partition = None
    if reader.manifest.details["clusters"] is not None:
        parents = reader.tensors("network")["head.clusters.cluster_of"].astype(np.int32)
        partition = Partition(parents, reader.manifest.details["clusters"])
    network = Network(encoder, config, labels.n_labels, partition)
    load_weights(network, reader)
    return NeuralModel(reader.manifest, labels, network, tokenizer)


def _cluster(corpus: Corpus, config: Config, seed: int, progress: Progress) -> Partition:
    """Clusters of labels by the words of their documents (the paper's "Label clustering")."""
    progress.stage("clustering labels")
    assert corpus.texts is not None
    _, X = Tfidf.fit_transform(corpus.texts, config.tfidf)
    Y = corpus.Y[:, : corpus.labels.n_labels].tocsr()
    vectors = pifa(X, Y, config.cluster.weighting, config.cluster.top)
    return split_to_size(vectors, config.cluster.size, seed, config.cluster)


def _fit(
    network: Network,
    corpus: Corpus,
    dev: Corpus,
    config: Config,
    seed: int,
    progress: Progress,
    partial: Path | None,
    tokenizer: Tokenizer,
    fingerprint: str,
) -> list[dict[str, Any]]:
    """Train in one stage, or with static negatives in two of half the epochs each."""
    assert corpus.texts is not None
    assert dev.texts is not None
    tokens, dev_tokens = (
        tokenize_once(part, tokenizer, tokenizer.fingerprint(), progress) for part in (corpus.texts, dev.texts)
    )
    data = TrainingData(tokens, corpus.Y, network.encoder.layout)
    if config.encoder.freeze_words:
        for encoder in (network.encoder, network.recaller):
            if encoder is not None:
                encoder.embed_words().weight.requires_grad_(False)
    score = scorer(dev, corpus.labels, len(corpus), config.train.metric)
    static = isinstance(network.head, ClusterHead) and config.head.negatives != "dynamic"
    curve = []
    for stage in ("recall", "rank") if static else ("all",):
        settings = config.train
        if static:
            half = config.train.epochs // 2
            settings = settings.model_copy(
                update={"epochs": max(1, half if stage == "recall" else settings.epochs - half)}
            )
            network.stage = stage
            if stage == "rank":
                network.start_ranking()
        curve += fit(
            network,
            _groups(network, config),
            data,
            settings,
            # recall alone ranks nothing yet: its last epoch goes on to ranking
            dev=None if stage == "recall" else (dev_tokens, score),
            seed=seed,
            partial=None if partial is None else partial / stage,
            identity={"config": config.model_dump(mode="json"), "seed": seed, "data": fingerprint},
            skips_parameters=static,
            progress=progress,
        )
    return curve


def _groups(network: Network, config: Config) -> list[Group]:
    """The stage's parameters: biases and norms without decay, the label table row by row."""
    head, rate = network.head, config.rate
    table: list[nn.Parameter] = []
    if isinstance(head, FlatHead):
        encoder, layers = [network.encoder], [head.output]
    elif network.stage == "recall":
        encoder, layers = [network._recall_encoder()], [head.generator]
    else:
        encoder, layers = [network.encoder], [head.generator, head.bottleneck]
        table = list(head.table.parameters())
        if network.stage == "rank":
            encoder, layers = [] if network.recaller is None else encoder, [head.bottleneck]
    groups = []
    for modules, speed in ((encoder, rate.encoder), (layers, rate.head)):
        trained = [p for module in modules for p in module.parameters() if p.requires_grad]
        groups.append(Group([p for p in trained if p.ndim > 1], speed, rate.decay))
        groups.append(Group([p for p in trained if p.ndim <= 1], speed))
    groups.append(Group(table, rate.head, rate.decay, row_sparse=not config.head.dense_table))
    return [group for group in groups if group.parameters]
