"""ME-XML (Extreme Multi-label Text Classification with Multi-layer Experts): one encoder, experts on several layers.

docs/methods/mexml.md maps the equations to the code and lists the differences from the paper, which has no code.
"""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.core.method import Method
from xmtc.core.partition import Partition, cluster_targets
from xmtc.core.progress import SILENT, Progress
from xmtc.core.search_space import Tunable
from xmtc.core.storage import Details, FolderReader, FolderWriter
from xmtc.features.label_clusters import LabelClusterConfig, cluster_labels
from xmtc.features.tfidf import TfidfConfig
from xmtc.methods.mexml.experts import (
    DocumentExpert,
    Shortlist,
    check_expert,
    cross_entropy,
    divergence,
    diversity_loss,
    locate_expert,
    size_experts,
)
from xmtc.methods.mexml.label_attention import LabelAttention, start_from_names
from xmtc.neural.batches import Batch
from xmtc.neural.encoder import Encoded, Encoder, PooledEncoderConfig
from xmtc.neural.heads import InitialBias
from xmtc.neural.label_start import log_prior
from xmtc.neural.model import NeuralModel, read_encoder, read_partition, restore_network
from xmtc.neural.network import Network
from xmtc.neural.optimizer import Group, group_by_decay
from xmtc.neural.pooling import Kind, Pool, read_pool
from xmtc.neural.prepare import NeuralConfig, prepare
from xmtc.neural.spread import warn_if_alike

NAME = "mexml"
_DIVERSITY = 0.01  # α of Eq. 10


class HeadConfig(Settings):
    """Settings of the layers between the encoder's layers and the labels."""

    dropout: float = Field(0.1, ge=0, lt=1, description="dropout in document experts and the cluster scorer")
    hidden: int = Field(256, ge=1, le=65_536, description="width of the perceptron after attention")
    initial_bias: InitialBias = Field(
        0.0, description="bias of the scores at the start; −6 suits rare labels; prior: from the frequencies"
    )
    queries: Literal["random", "text"] = Field(
        "random", description="whether label queries start at random or from the labels' names"
    )
    shortlist: int | None = Field(
        None, ge=1, description="score only the labels of this many clusters; None: all labels, as in the paper"
    )


class LossConfig(Settings):
    """Settings of the experts' loss."""

    kind: Literal["individual", "collaborative"] = Field(
        "individual", description="cross-entropy of each expert, or of their mean logits (Eq. 5)"
    )
    reduction: Literal["mean", "sum"] = Field(
        "mean", description="mean or sum of the cross-entropy over labels; the diversity loss is always a sum"
    )
    diversity: float | None = Field(
        None, ge=0, description=f"weight of the diversity loss; None: {_DIVERSITY}, or 0 with one expert"
    )
    diversity_from: int | None = Field(
        None, ge=0, description="epoch, from 0, in which the diversity loss starts; None: after half the epochs"
    )


class RateConfig(Settings):
    """Learning rates (Table 5)."""

    encoder: Annotated[float, Tunable(2e-5, 5e-4, log=True)] = Field(
        5e-5, gt=0, description="learning rate of the encoder"
    )
    queries: Annotated[float, Tunable(2e-4, 1e-2, log=True)] = Field(
        2e-4, gt=0, description="learning rate of word-label attention"
    )
    output: Annotated[float, Tunable(2e-4, 1e-2, log=True)] = Field(
        2e-3, gt=0, description="learning rate of the perceptrons and the cluster scorer"
    )
    decay: float = Field(0.0, ge=0, description="weight decay of all weights except biases and norms")


class MexmlConfig(NeuralConfig):
    """Settings of ME-XML."""

    experts: tuple[str, ...] = Field(
        ("A-first", "D-last"),
        description="A-m attends to the words of layer m, D-m reads its [CLS], D-m+n those of two; m: number, first, "
        "middle or last",
    )
    encoder: PooledEncoderConfig = Field(default_factory=PooledEncoderConfig)
    head: HeadConfig = Field(default_factory=HeadConfig)
    loss: LossConfig = Field(default_factory=LossConfig)
    cluster: LabelClusterConfig = Field(default_factory=LabelClusterConfig)
    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    rate: RateConfig = Field(default_factory=RateConfig)

    @model_validator(mode="after")
    def _check(self) -> MexmlConfig:
        if not self.experts:
            raise ConfigError("experts is empty; name one or more, such as A-first and D-last")
        for name in self.experts:
            check_expert(name)
        if self.encoder.windows > 1:
            raise ConfigError(
                f"encoder.windows = {self.encoder.windows}, but experts read one window: set it to 1, or raise "
                "encoder.max_length"
            )
        if self.loss.diversity and len(self.experts) == 1:
            raise ConfigError(f"loss.diversity = {self.loss.diversity}, but there is only one expert: set it to 0")
        if self.diversity and self.diversity_from >= self.train.epochs:
            raise ConfigError(
                f"loss.diversity_from = {self.diversity_from}, but the last of {self.train.epochs} epochs is number "
                f"{self.train.epochs - 1}: set less, or loss.diversity = 0"
            )
        return self

    @property
    def diversity(self) -> float:
        """Return α of Eq. 10."""
        given = self.loss.diversity
        return (_DIVERSITY if len(self.experts) > 1 else 0.0) if given is None else given

    @property
    def diversity_from(self) -> int:
        """Return the epoch in which the diversity loss starts."""
        given = self.loss.diversity_from
        return self.train.epochs // 2 if given is None else given


class MexmlDetails(Details):
    """Facts that a model stores next to its settings and arrays."""

    features: None = None  # it ranks texts only
    clusters: int | None  # of the shortlist; None: experts score all labels


class MexmlNetwork(Network):
    """An encoder and its experts; `diverse` is whether the diversity loss has started.

    With a partition of the labels, the experts score only the labels of clusters that a shortlist chooses.
    """

    counts: Tensor  # (L,) training documents of each label; used only by the diversity loss

    def __init__(self, encoder: Encoder, config: MexmlConfig, n_labels: int, partition: Partition | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.config = config
        self.n_labels = n_labels
        self.diverse = False
        self.register_buffer("counts", torch.ones(n_labels), persistent=False)
        head, width, pool = config.head, encoder.width, _pool(encoder, config)
        constant = 0.0 if isinstance(head.initial_bias, str) else head.initial_bias
        self.experts = nn.ModuleList()
        for name in config.experts:
            kind, found = locate_expert(name, encoder.n_layers)
            layers = [layer - encoder.n_layers - 1 for layer in found]  # from the last, −1: the first may be dropped
            self.experts.append(
                DocumentExpert(width, n_labels, pool.at(layers), head.dropout, constant)
                if kind == "D"
                else LabelAttention(width, n_labels, layers[0], head.hidden, constant, partition is not None)
            )
        self.shortlist: Shortlist | None = None
        if partition is not None:
            n_chosen = head.shortlist or partition.n_clusters
            self.shortlist = Shortlist(pool, partition, n_chosen, head.dropout, constant)

    @property
    def attention(self) -> list[LabelAttention]:
        """Return the experts that attend to words."""
        return [expert for expert in self.experts if isinstance(expert, LabelAttention)]

    @property
    def reads(self) -> Pool:
        """Return all states of the encoder that experts and shortlist read."""
        parts = [part for expert in self.experts if isinstance(expert, DocumentExpert) for part in expert.parts]
        attended: list[tuple[Kind, int]] = [("mean", expert.layer) for expert in self.attention]
        return Pool((*_pool(self.encoder, self.config).parts, *parts, *attended), 0)

    @torch.no_grad()
    def set_prior(self, Y: sp.csr_matrix, partition: Partition | None) -> None:
        """Set biases so that every expert and the shortlist start at the labels' shares of the training documents."""
        prior = log_prior(Y)
        for expert in self.experts:
            if isinstance(expert, DocumentExpert):
                expert.output.bias.copy_(prior)
        for attention in self.attention:
            attention.label_bias.copy_(prior)
        if self.shortlist is not None and partition is not None:
            self.shortlist.generator.bias.copy_(log_prior(cluster_targets(Y, partition)))

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return Σ over documents of Eq. 10 plus the shortlist's loss, if there is one, and the number of documents."""
        encoded = self.encoder(batch.ids, batch.mask, batch.lower)
        settings, labels, recall = self.config.loss, None, None
        if self.shortlist is None:
            rows, columns = batch.document_of_positive(), batch.positives
        else:
            recall, labels = self.shortlist.loss(encoded, batch)  # (B, K), (B, C)
            rows, columns = self.shortlist.positives(labels, batch)
        logits = self._logits(encoded, labels)
        combined = [torch.stack(logits).mean(0)] if settings.kind == "collaborative" else logits
        losses = cross_entropy(combined, rows, columns, labels)  # (B,)
        if settings.reduction == "mean":
            losses = losses / (self.n_labels if labels is None else (labels >= 0).sum(1))
        if self.diverse and self.config.diversity:
            counts = self.counts[columns if labels is None else labels[rows, columns]]
            terms = diversity_loss([z[rows, columns] for z in logits], counts)
            # Eq. 6 is a sum over the positives: a mean over all labels would be negligible next to the cross-entropy
            losses = losses.index_add(0, rows, self.config.diversity * terms)
        if recall is not None:
            losses = losses + (recall.mean(1) if settings.reduction == "mean" else recall.sum(1))
        return losses.sum(), torch.tensor(float(len(batch)), device=batch.ids.device)

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best labels by the mean of the experts' probabilities; −1 if the shortlist holds fewer."""
        encoded = self.encoder(batch.ids, batch.mask, batch.lower)
        labels = None if self.shortlist is None else self.shortlist(encoded)
        scores = torch.stack([z.sigmoid() for z in self._logits(encoded, labels)]).mean(0)
        if labels is not None:
            scores = scores.masked_fill(labels < 0, -torch.inf)
        best, places = scores.topk(min(k, scores.shape[1]), dim=1)
        return (places if labels is None else labels.gather(1, places)), best

    def score(self, batch: Batch, label: int) -> Tensor:
        """Return the score that explanations without attention use, the logarithm of the label's score: (B,)."""
        encoded = self.encoder(batch.ids, batch.mask, batch.lower)
        logits = self._logits(encoded, torch.full((len(batch), 1), label, device=batch.ids.device))
        return torch.cat([F.logsigmoid(z) for z in logits], dim=1).logsumexp(1) - math.log(len(logits))

    def attend(self, batch: Batch, label: int) -> Tensor | None:
        """Return a label's attention to each token, averaged over the attention experts (B, T); None without any."""
        if not self.attention:
            return None
        encoded = self.encoder(batch.ids, batch.mask, batch.lower)
        return torch.stack([expert.weights(encoded, label) for expert in self.attention]).mean(0)

    def disagree(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return Σ over positives of the KL between experts, mean over pairs (Fig. 2b), and the number of positives."""
        logits = self._logits(self.encoder(batch.ids, batch.mask, batch.lower), None)
        each = [z[batch.document_of_positive(), batch.positives] for z in logits]
        pairs = [divergence(one, two) for one, two in combinations(each, 2)]
        return torch.stack(pairs).mean(0).sum(), torch.tensor(float(len(batch.positives)))

    def _logits(self, encoded: Encoded, labels: Tensor | None) -> list[Tensor]:
        """Return each expert's logits (B, L), or (B, C) of candidates; padding reads a label that is a candidate."""
        if labels is not None:
            labels = torch.where(labels < 0, labels.amax(1, keepdim=True).clamp(min=0), labels)
        return [expert(encoded, labels) for expert in self.experts]


class MexmlMethod(Method[MexmlConfig]):
    """Train and load ME-XML models."""

    name = NAME
    Config = MexmlConfig

    def train(
        self,
        corpus: Corpus,
        config: MexmlConfig,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        progress: Progress = SILENT,
        partial: Path | None = None,
    ) -> NeuralModel[MexmlNetwork]:
        """Fine-tune an encoder and its experts on a corpus; keep the epoch with the best score on dev."""
        ready = prepare(NAME, corpus, config, dev, seed, progress)
        head, experts = config.head, [locate_expert(name, ready.encoder.n_layers) for name in config.experts]
        partition = None
        if head.shortlist:
            partition = cluster_labels(ready.corpus, config.tfidf, config.cluster, seed, progress)
        n_labels, n_words, pool = ready.labels.n_labels, config.encoder.max_length, _pool(ready.encoder, config)
        shortlist = None if partition is None else (partition, head.shortlist or partition.n_clusters)
        ready.announce_plan(size_experts(experts, ready.encoder.width, n_labels, n_words, head.hidden, pool, shortlist))
        network = MexmlNetwork(ready.encoder, config, n_labels, partition)
        for name, expert in zip(config.experts, network.experts, strict=True):
            if isinstance(expert, DocumentExpert):
                warn_if_alike(ready.encoder, ready.data.inputs, expert.parts, progress, f"expert {name}'s")
        network.counts.copy_(torch.from_numpy(np.bincount(ready.data.Y.indices, minlength=network.n_labels).clip(1)))
        if head.initial_bias == "prior":
            network.set_prior(ready.data.Y, partition)
        if head.queries == "text":
            names = ready.labels.names[: network.n_labels]
            start_from_names(network.attention, names, ready.tokenizer, ready.encoder.embed_words().weight, progress)

        def start_diversity(epoch: int) -> None:
            network.diverse = epoch >= config.diversity_from

        ready = ready.store_frozen(network.reads)
        curve = ready.fit(network, groups(network, config), partial, on_epoch=start_diversity)
        n_clusters = None if partition is None else partition.n_clusters
        manifest = ready.describe(MexmlDetails, clusters=n_clusters, curve=curve)
        return NeuralModel(manifest, ready.labels, network, ready.tokenizer)

    def load(self, reader: FolderReader) -> NeuralModel[MexmlNetwork]:
        """Load a model from its folder; needs neither hub nor cache."""
        manifest, config, labels = reader.open(MexmlConfig, MexmlDetails)
        encoder, tokenizer = read_encoder(reader, "encoder", config.encoder)
        n_clusters = manifest.details.clusters
        partition = None
        if n_clusters is not None:
            partition = read_partition(reader, "shortlist.clusters.cluster_of", n_clusters, labels.n_labels)
        network = restore_network(lambda: MexmlNetwork(encoder, config, labels.n_labels, partition), reader)
        return NeuralModel(manifest, labels, network, tokenizer)

    def export(self, model: NeuralModel[MexmlNetwork], out: FolderWriter, *, int8: bool) -> None:
        """Write a model that ranks without torch; see `freeze.py`."""
        from xmtc.methods.mexml.freeze import write_frozen

        write_frozen(model, MexmlConfig.model_validate(model.manifest.config), out, int8)

    def uses_dev(self, config: MexmlConfig) -> bool:
        """Return whether dev documents choose the epoch."""
        return config.train.dev_fraction > 0


def _pool(encoder: Encoder, config: MexmlConfig) -> Pool:
    """Return the pooling of document experts (own layer) and cluster scorer (last layer); the paper's is [CLS]."""
    pool = read_pool(config.encoder, encoder)
    if any(layer != -1 for _, layer in pool.parts):
        raise ConfigError(
            f"encoder.pool = {config.encoder.pool}, but document experts read one layer each, which `experts` names: "
            "set cls, mean or cls+mean"
        )
    return pool


def groups(network: MexmlNetwork, config: MexmlConfig) -> list[Group]:
    """Return three groups: encoder, queries, all else; queries row by row if only a shortlist's are updated."""
    rate = config.rate
    outputs: list[nn.Module] = [expert for expert in network.experts if isinstance(expert, DocumentExpert)]
    outputs += [layer for expert in network.attention for layer in (expert.hidden, expert.output)]
    if network.shortlist is not None:
        outputs.append(network.shortlist)
    found = group_by_decay([network.encoder], rate.encoder, rate.decay)
    found += group_by_decay(outputs, rate.output, rate.decay)
    if network.attention:
        queries = [expert.queries for expert in network.attention]
        found.append(Group(queries, rate.queries, rate.decay, row_sparse=network.shortlist is not None))
        found.append(Group([expert.label_bias for expert in network.attention], rate.output))
    return found


METHOD = MexmlMethod()
