"""The neural matcher: predict the label clusters of a text, the second of X-BERT's three stages.

A body makes a vector of a text, and a linear layer scores the clusters. Batches hold clusters instead of labels. This
module knows no labels and no ranker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from safetensors import safe_open
from torch import Tensor, nn

from xmtc.core.config import Settings
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.search_space import Tunable
from xmtc.core.storage import FolderReader, FolderWriter
from xmtc.core.texts import Texts
from xmtc.features.tokens import Tokens, tokenize, tokenize_once
from xmtc.features.words import Words, WordsConfig
from xmtc.methods.xbert.matching import Transform, transform_scores
from xmtc.methods.xbert.xttention import Xttention, XttentionConfig
from xmtc.neural.batches import Batch, Inputs
from xmtc.neural.dropout import Dropout
from xmtc.neural.embed import Embedder, read_inputs
from xmtc.neural.encoder import Encoder, PooledEncoderConfig, Tokenizer, save_encoder
from xmtc.neural.heads import bce_of_positives
from xmtc.neural.model import read_encoder, restore_network
from xmtc.neural.network import Trainable
from xmtc.neural.optimizer import Group, group_by_decay
from xmtc.neural.plan import HeadSize, plan_training
from xmtc.neural.pooling import pool_text, read_pool
from xmtc.neural.trainer import TrainConfig
from xmtc.neural.window_pool import WindowPool

_WORDS = "encoder/words"  # embeddings that no member trains


class MatchConfig(Settings):
    """Settings of the matcher."""

    kind: Literal["bert", "xttention", "linear"] = Field(
        "bert",
        description="bert: any encoder, fine-tuned; xttention: a BiLSTM with self-attention; linear: a linear tree",
    )
    loss: Literal["hinge", "bce"] = Field("hinge", description="squared hinge or binary cross-entropy")
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout on the text's vector (bert)")
    initial_bias: float = Field(0.0, description="bias of the scores at the start; −1 suits rare clusters")
    linear: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of a linear tree in the clusters' scores, beside bert or xttention; 0: no tree",
    )
    coarse: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of the epochs, at the start, that learn coarser clusters of about eight each; 0: none",
    )


class RateConfig(Settings):
    """Learning rates."""

    encoder: Annotated[float, Tunable(2e-5, 5e-4, log=True)] = Field(
        5e-5, gt=0, description="learning rate of the encoder (bert)"
    )
    head: Annotated[float, Tunable(5e-5, 1e-2, log=True)] = Field(
        5e-5, gt=0, description="learning rate of the layer over the clusters (bert)"
    )
    xttention: float = Field(1e-4, gt=0, description="learning rate of all of X-ttention")
    decay: float = Field(0.01, ge=0, description="weight decay of bert, except biases and norms")


class PooledEncoder(nn.Module):
    """An encoder with pooling: [CLS] of the last layer, or as set in `encoder.pool`.

    words: frozen word embeddings shared with other members, so that memory and model folder hold them once.
    """

    def __init__(self, encoder: Encoder, config: PooledEncoderConfig, words: Tensor | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.pool = read_pool(config, encoder)
        self.windows = WindowPool(self.pool.width, config.window_pool) if config.windows > 1 else None
        self.layout = encoder.layout
        if words is not None:
            encoder.embed_words().weight = words
        self.shared = [name for name, each in self.named_parameters(remove_duplicate=False) if each is words]

    @property
    def width(self) -> int:
        """Return the size of a text's vector."""
        return self.pool.width

    def forward(self, ids: Tensor, mask: Tensor, lower: Tensor | None = None) -> Tensor:
        """Return (B, width), with one row per window if texts are read in several windows."""
        return pool_text(self.encoder(ids, mask, lower), self.pool.parts)


class ClusterMatcher(Trainable, Embedder):
    """A body and a linear layer over K clusters."""

    def __init__(self, body: PooledEncoder | Xttention, n_clusters: int, config: MatchConfig) -> None:
        super().__init__()
        self.body = body
        self.dropout = Dropout(config.dropout if isinstance(body, PooledEncoder) else 0.0)
        self.output = nn.Linear(body.width, n_clusters)
        nn.init.constant_(self.output.bias, config.initial_bias)
        self.hinge = config.loss == "hinge"

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return Σ over all (document, cluster) of the loss, and their number; y = ±1, positives are clusters.

        Hinge: max(0, 1 − y s)²; otherwise binary cross-entropy. Both are computed as if all were negatives, then
        corrected at the positives, so the (B, K) targets are never built.
        """
        scores = self.output(self.dropout(self.embed(batch)))  # (B, K)
        if self.hinge:
            right = scores[batch.document_of_positive(), batch.positives]
            total = F.relu(1 + scores).square().sum()
            total = total + (F.relu(1 - right).square() - F.relu(1 + right).square()).sum()
        else:
            total = bce_of_positives(scores, batch)
        return total, torch.tensor(float(scores.numel()), device=scores.device)

    def embed(self, batch: Batch) -> Tensor:
        """Return the input of the layer over the clusters: (B, width)."""
        vectors: Tensor = self.body(batch.ids, batch.mask, batch.lower)
        windows = self.body.windows if isinstance(self.body, PooledEncoder) else None
        return vectors if windows is None else windows(vectors, batch)

    def rank_vectors(self, vectors: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return (clusters, raw scores) of the k best clusters."""
        scores, clusters = self.output(vectors).topk(min(k, self.output.out_features), dim=1)
        return clusters, scores

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """Return (clusters, raw scores) of the k best clusters."""
        return self.rank_vectors(self.embed(batch), k)

    def refine(self, parents: NDArray[np.integer], config: MatchConfig) -> ClusterMatcher:
        """Return a matcher of finer clusters with the same body; cluster c starts with the row of `parents[c]`."""
        finer = ClusterMatcher(self.body, len(parents), config)
        rows = torch.as_tensor(np.asarray(parents, dtype=np.int64), device=self.output.weight.device)
        with torch.no_grad():
            finer.output.weight.copy_(self.output.weight[rows])
            finer.output.bias.copy_(self.output.bias[rows])
        return finer

    def groups(self, rate: RateConfig) -> list[Group]:
        """Return the parameters with their learning rates."""
        body = self.body
        if isinstance(body, PooledEncoder):
            groups = group_by_decay([body.encoder], rate.encoder, rate.decay)
            return groups + group_by_decay([self.output, body.windows], rate.head, rate.decay)
        layers: list[nn.Module] = [body.lstm, body.first, body.second, body.mlp, self.output]
        dense = [parameter for layer in layers for parameter in layer.parameters()]
        return [Group(dense, rate.xttention), Group(list(body.words.parameters()), rate.xttention, row_sparse=True)]

    def announce_plan(self, lengths: NDArray[np.integer], config: TrainConfig, progress: Progress) -> None:
        """Report what training on texts of these lengths will need; raise ConfigError if it cannot fit."""
        body, n_clusters = self.body, self.output.out_features
        if isinstance(body, PooledEncoder):
            advice = "use fewer clusters (cluster.count)"
            head = HeadSize((body.width + 1) * n_clusters, 0, 3 * n_clusters, advice)
            plan_training(body.encoder, 1, head, lengths, config).announce(progress)
        else:
            n_parameters = sum(parameter.numel() for parameter in self.parameters())
            progress.say(f"X-ttention has {n_parameters / 1e6:,.1f} million parameters")


@dataclass(frozen=True, eq=False)
class NeuralMatcher:
    """A trained network that retrieves clusters for tokenized texts."""

    network: ClusterMatcher
    transform: Transform
    logarithm: bool  # whether transformed scores are logarithms
    keeps_vectors: bool  # whether a ranker reads the vectors

    def match(
        self, X: sp.csr_matrix, tokens: Tokens | None, k: int, progress: Progress = SILENT
    ) -> tuple[Ranking, NDArray[np.float32] | None]:
        """Return each text's k best clusters, with transformed scores, and its vector if kept, in one pass."""
        assert tokens is not None  # a neural matcher has a reader
        body = self.network.body
        width = body.width if self.keeps_vectors else None
        raw, vectors = read_inputs(self.network, Inputs(tokens, body.layout), k, width, progress)
        return transform_scores(raw, self.transform, self.logarithm), vectors

    def save(self, out: FolderWriter, prefix: str) -> None:
        """Write the weights; the reader writes word embeddings that all members share."""
        weights = self.network.state_dict()
        if isinstance(self.network.body, PooledEncoder):
            for name in self.network.body.shared:
                del weights[f"body.{name}"]
        out.tensors(f"{prefix}/network", {name: value.detach().cpu().numpy() for name, value in weights.items()})


@dataclass(frozen=True, eq=False)
class TextReader:
    """Tokens of texts, for all members: an encoder's pieces, or words."""

    tokenizer: Tokenizer | Words
    encoder: Encoder | None  # its tokenizer makes the pieces; not yet trained by a member; None for words

    @property
    def frozen_words(self) -> Tensor | None:
        """Return word embeddings that no member trains, so that all share them; None if they are trained."""
        weight = None if self.encoder is None else self.encoder.embed_words().weight
        return None if weight is None or weight.requires_grad else weight

    def __call__(self, texts: Texts) -> Tokens:
        """Tokenize texts."""
        return tokenize(texts, self.tokenizer)

    def read_once(self, texts: Texts, progress: Progress = SILENT) -> Tokens:
        """Tokenize texts, or memory-map the result of an earlier run."""
        return tokenize_once(texts, self.tokenizer, self.tokenizer.fingerprint(), progress)

    def save(self, out: FolderWriter) -> None:
        """Write the vocabulary, or the tokenizer with the encoder's settings and the weights that no member trains."""
        if isinstance(self.tokenizer, Words):
            out.arrays("words", self.tokenizer.arrays())
        elif self.encoder is not None:
            save_encoder(self.encoder, self.tokenizer, out.folder / "encoder")
            if self.frozen_words is not None:
                out.tensors(_WORDS, {"weight": self.frozen_words.detach().cpu().numpy()})


def load_reader(
    reader: FolderReader, match: MatchConfig, encoder: PooledEncoderConfig, words: WordsConfig
) -> TextReader:
    """Load what `TextReader.save` wrote; its encoder's weights are loaded later, with those of the first member."""
    if match.kind == "xttention":
        return TextReader(Words.from_arrays(reader.arrays("words"), words.max_words), None)
    untrained, tokenizer = read_encoder(reader, "encoder", encoder)
    if f"{_WORDS}.safetensors" in reader.files:  # frozen by freeze_words or freeze_layers; else each member has its own
        untrained.embed_words().requires_grad_(False)
        restore_network(untrained.embed_words, reader, _WORDS)
    return TextReader(tokenizer, untrained)


def load_network(
    reader: FolderReader,
    number: int,
    texts: TextReader,
    n_clusters: int,
    match: MatchConfig,
    encoder: PooledEncoderConfig,
    xttention: XttentionConfig,
) -> ClusterMatcher:
    """Load what `NeuralMatcher.save` wrote for one member, ready to predict."""
    name = f"member-{number}/network"
    if texts.encoder is not None:
        words = texts.frozen_words
        # the reader needs its encoder only for shape and words, so the first member uses it, without another copy
        untrained = texts.encoder if number == 0 else read_encoder(reader, "encoder", encoder)[0]
        pooled = PooledEncoder(untrained, encoder, words)
        shared = {} if words is None else {f"body.{each}": words for each in pooled.shared}
        return restore_network(lambda: ClusterMatcher(pooled, n_clusters, match), reader, name, shared)
    with safe_open(reader.path(f"{name}.safetensors"), framework="pt") as weights:
        width = weights.get_slice("body.words.weight").get_shape()[1]
    assert isinstance(texts.tokenizer, Words)
    n_words = len(texts.tokenizer)
    return restore_network(
        lambda: ClusterMatcher(Xttention(n_words, width, xttention), n_clusters, match), reader, name
    )
