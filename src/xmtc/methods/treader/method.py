"""TReaderXML (Wang et al. 2022): a text is read together with the labels of the training documents most like it.

docs/methods/treader.md maps the equations to the code and lists every decision: no code of the authors is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial as partial_of
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.core.labels import LabelSet
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import FolderReader
from xmtc.core.texts import Texts
from xmtc.features.label_vectors import pifa
from xmtc.features.neighbours import NeighbourConfig
from xmtc.features.tfidf import TfidfConfig, fit_tfidf
from xmtc.features.words import UNKNOWN, Words, WordsConfig, word_vectors
from xmtc.methods.treader.reading import DualReader, PoolConfig, ReaderConfig, ScopeReader
from xmtc.methods.treader.scopes import ScopeConfig, check_hierarchy, describe_entries
from xmtc.methods.treader.teacher import ByEncoder, ByTfidf, ByWords, Comparer, TaughtModel, Teacher
from xmtc.methods.treader.word_encoder import WordEncoder, WordTokenizer
from xmtc.neural.batches import Batch
from xmtc.neural.dropout import Dropout
from xmtc.neural.embed import spread_scale, spread_words
from xmtc.neural.encoder import Encoder, Tokenizer, load_encoder, restore_encoder
from xmtc.neural.heads import FlatHead, VoteHead, Votes
from xmtc.neural.model import load_weights
from xmtc.neural.optimizer import Group, group_by_decay
from xmtc.neural.plan import HeadSize
from xmtc.neural.prepare import NeuralConfig, Prepared, prepare
from xmtc.neural.schedule import Plateau, Schedule
from xmtc.neural.trainer import TrainConfig, fit

METHOD = "treader"


class TreaderWordsConfig(WordsConfig):
    """Words of texts and descriptions; the length is the paper's on EURLex, the width that of its vectors."""

    max_words: int = Field(500, ge=1, description="T, words of a text that are read")
    width: int = Field(300, ge=1, description="of random vectors")


class HeadConfig(PoolConfig):
    """Between the states of all words and the labels."""

    dropout: float = Field(0.0, ge=0, lt=1, description="on what the output layer reads")
    initial_bias: float = Field(0.0, description="of the first scores; −6 says that labels are rare")
    vote: bool = Field(False, description="let the scope's labels raise their own scores, as far as helps in training")


class TreaderTrainConfig(TrainConfig):
    """Rates stay, or fall on a plateau, and nothing is clipped; the paper says no more."""

    epochs: int = Field(20, ge=1)
    schedule: Schedule = "constant"
    clip: float | None = Field(None, gt=0, description="largest norm of the gradient")


class RateConfig(Settings):
    """Learning rates; the paper has one for all."""

    words: float = Field(1e-4, gt=0, description="of the word vectors (text = words)")
    encoder: float = Field(1e-4, gt=0, description="of the encoder (text = encoder)")
    reader: float = Field(1e-4, gt=0, description="of attention, bottleneck and output layer")
    decay: float = Field(0.0, ge=0, description="weight decay, of all but word vectors, biases and norms")


class Config(NeuralConfig):
    """Settings of TReaderXML."""

    text: Literal["words", "encoder"] = Field("words", description="word vectors; or an encoder's last layer")
    words: TreaderWordsConfig = Field(default_factory=TreaderWordsConfig)
    neighbours: NeighbourConfig = Field(default_factory=NeighbourConfig)
    scope: ScopeConfig = Field(default_factory=ScopeConfig)
    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    reader: ReaderConfig = Field(default_factory=ReaderConfig)
    head: HeadConfig = Field(default_factory=HeadConfig)
    rate: RateConfig = Field(default_factory=RateConfig)
    plateau: Plateau | None = Field(None, description="how rates fall when dev stands still; None: they do not")
    train: TreaderTrainConfig = Field(default_factory=TreaderTrainConfig)


class Network(nn.Module):
    """Words or encoder, scope, dual reader, output layer; without `descriptions` there is no teacher."""

    def __init__(
        self, encoder: Encoder, config: Config, n_labels: int, descriptions: NDArray[np.integer] | None
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.scope: ScopeReader | None = None
        if descriptions is not None:
            rows = torch.from_numpy(descriptions.astype(np.int64))
            # word embeddings of an encoder are far smaller than its states, which they stand beside
            scale = 1.0 if isinstance(encoder, WordEncoder) else spread_scale(encoder)
            self.scope = ScopeReader(rows, encoder.width, scale)
        longest = config.words.max_words if config.text == "words" else config.encoder.max_length
        self.reader = DualReader(encoder.width, longest, config.reader, config.head)
        self.dropout = Dropout(config.head.dropout)
        self.head = FlatHead(config.head.bottleneck, n_labels, config.head.initial_bias)
        self.vote = VoteHead(n_labels) if config.head.vote and self.scope is not None else None

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Σ over documents and labels of BCE (Eq. 19 on logits), and the number of documents."""
        total, _ = self.head.loss(self.dropout(self._read(batch)), batch, self._votes(batch))
        return total, torch.tensor(float(len(batch)), device=total.device)

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """(labels, σ of their logits) of the k best labels."""
        return self.head.rank(self._read(batch), k, self._votes(batch))

    def score(self, batch: Batch, label: int) -> Tensor:
        """(B,) what an explanation follows: the label's logit."""
        return self.head.score(self._read(batch), label, self._votes(batch))

    def _votes(self, batch: Batch) -> Votes | None:
        return None if self.vote is None else self.vote(batch)

    def _read(self, batch: Batch) -> Tensor:
        """(B, bottleneck): O_Interaction."""
        states, mask = self.encoder(batch.ids, batch.mask).states[-1], batch.mask  # E_x
        if self.encoder.layout.pad_left:  # the reader counts places from the first word on
            order = (~mask).int().argsort(dim=1, stable=True)
            states, mask = states.gather(1, order.unsqueeze(2).expand_as(states)), mask.gather(1, order)
        scope = None if self.scope is None else self.scope(batch, self.encoder.embed_words())  # E_y′
        read: Tensor = self.reader(states, mask, scope)
        return read


def train(
    corpus: Corpus,
    config: Config,
    dev: Corpus | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
    partial: Path | None = None,
) -> TaughtModel:
    """Find every document's scope among the others, and train the dual network; dev chooses the epoch."""
    check_hierarchy(corpus.labels)
    if config.head.vote and not config.reader.teacher:
        raise ConfigError("head.vote = true, but without a teacher (reader.teacher) there is no scope: set one of them")
    read_words = partial_of(_fit_words, config=config, seed=seed, progress=progress)
    ready = prepare(METHOD, corpus, config, dev, seed, progress, read_words if config.text == "words" else None)
    teacher, descriptions = None, None
    data, (dev_tokens, score) = ready.data, ready.dev
    if config.reader.teacher:
        _tell_hierarchy(ready.labels, config.scope, progress)
        descriptions = _read_descriptions(ready, config)
        texts = Texts.pack(ready.corpus.texts or ())
        compare = _build_comparer(ready, config)
        vectors = compare.once(texts, data.tokens, progress)
        pool = (ready.labels, ready.corpus.ids, ready.corpus.Y.tocsr(), vectors)
        teacher = Teacher.build(*pool, compare, config.neighbours, config.scope, progress)
        progress.stage("finding neighbours")
        data = replace(data, tokens=teacher.teach_pool(data.tokens, vectors, progress))
        dev_tokens = teacher.teach_once(Texts.pack(ready.held.texts or ()), dev_tokens, progress)
    torch.manual_seed(seed)
    network = Network(ready.encoder, config, ready.labels.n_labels, descriptions)
    ready.plan(_head_size(network, config))
    curve = fit(
        network,
        _groups(network, config),
        data,
        config.train,
        dev=(dev_tokens, score),
        skips_parameters=True,  # encoders bring a pooler or a mask's vector, which no state needs
        plateau=config.plateau,
        **ready.run(partial),
    )
    ready.manifest.details.update(width=ready.encoder.width, curve=curve)
    return TaughtModel(ready.manifest, ready.labels, network, ready.tokenizer, teacher)


def load(reader: FolderReader) -> TaughtModel:
    """Rebuild a model from its folder; neither training data nor hub nor cache is needed."""
    config = Config.model_validate(reader.manifest.config)
    labels = reader.labels()
    encoder: Encoder
    tokenizer: Tokenizer
    if config.text == "words":
        words = Words.from_arrays(reader.arrays("words"), config.words.max_words)
        encoder, tokenizer = WordEncoder(len(words), reader.manifest.details["width"]), WordTokenizer(words)
    else:
        encoder, tokenizer = restore_encoder(reader.folder / "encoder", config.encoder)
    teacher, descriptions = None, None
    if config.reader.teacher:
        teacher = Teacher.load(reader, labels, config.neighbours, config.scope, config.tfidf, config.encoder)
        descriptions = reader.arrays("descriptions")["words"]
    network = Network(encoder, config, labels.n_labels, descriptions)
    load_weights(network, reader)
    return TaughtModel(reader.manifest, labels, network, tokenizer, teacher)


def _fit_words(corpus: Corpus, config: Config, seed: int, progress: Progress) -> tuple[Encoder, Tokenizer]:
    """The words of texts and label names, with their vectors."""
    progress.stage("counting words")
    words = Words.fit(chain(corpus.texts or (), describe_entries(corpus.labels)), config.words)
    embed = spread_words(config.encoder) if config.words.vectors == "encoder" else None
    vectors = word_vectors(words, config.words, seed, progress, embed)
    encoder = WordEncoder(*vectors.shape)
    encoder.words.weight.data.copy_(torch.from_numpy(vectors))
    return encoder, WordTokenizer(words)


def _tell_hierarchy(labels: LabelSet, scope: ScopeConfig, progress: Progress) -> None:
    if scope.ancestors != "none" and not any(labels.parents):
        told = "every scope stays empty (scope.literal)" if scope.literal else "scopes hold neighbours' labels alone"
        progress.say(f"the labels have no hierarchy: {told}")


def _read_descriptions(ready: Prepared, config: Config) -> NDArray[np.int64]:
    """(entries, m): the first words of every entry's description, −1 after its end."""
    m, corpus = config.reader.description_words, ready.corpus

    def top_words(labels: NDArray[np.int64]) -> list[str]:
        tfidf, X = fit_tfidf(corpus.texts or (), config.tfidf, ready.progress, cache=True)
        rows = pifa(X, corpus.Y[:, labels].tocsr())
        told = []
        for i in range(len(labels)):
            own = slice(rows.indptr[i], rows.indptr[i + 1])
            best = np.lexsort((rows.indices[own], -rows.data[own]))[:m]
            told.append(" ".join(tfidf.vocabulary[feature] for feature in rows.indices[own][best].tolist()))
        return told

    rows = ready.tokenizer(_lines(describe_entries(ready.labels, top_words)))
    special = set() if config.text == "words" else set(ready.tokenizer.inner.all_special_ids)
    found = np.full((len(rows), m), -1, dtype=np.int64)
    for entry, row in enumerate(rows):
        words = [word for word in row if word not in special][:m]
        found[entry, : len(words)] = words
    return found


def _lines(texts: Sequence[str]) -> list[str]:
    return list(Texts.pack(texts))  # packed: tokenizers refuse lone surrogates


def _build_comparer(ready: Prepared, config: Config) -> Comparer:
    kind = config.neighbours.vectors
    if kind == "tfidf":
        return ByTfidf(fit_tfidf(ready.corpus.texts or (), config.tfidf, ready.progress, cache=True)[0])
    if kind == "encoder":
        encoder, tokenizer = load_encoder(config.encoder)
        return ByEncoder(encoder.eval(), tokenizer)
    table = ready.encoder.embed_words().weight.detach().cpu().numpy().copy()
    table[[UNKNOWN] if config.text == "words" else ready.tokenizer.inner.all_special_ids] = 0
    return ByWords(table)


def _head_size(network: Network, config: Config) -> HeadSize:
    """All but word vectors or encoder."""
    places = config.words.max_words if config.text == "words" else config.encoder.max_length
    places += config.reader.description_words if config.reader.teacher else 0
    layers = len(network.reader.text.layers) + 1
    a_place = layers * (8 * network.encoder.width + 4 * config.reader.heads * places)
    return HeadSize(
        dense=sum(parameter.numel() for part in _rest(network) for parameter in part.parameters()),
        table=0,
        activations=places * a_place + 3 * network.head.output.out_features,
        advice="lower head.bottleneck, read fewer words (words.max_words, encoder.max_length), or set head.pool=mean",
    )


def _groups(network: Network, config: Config) -> list[Group]:
    """One rate for word vectors, row by row, or for the encoder; one for all the rest."""
    rate, encoder = config.rate, network.encoder
    if isinstance(encoder, WordEncoder):
        groups = [Group(list(encoder.parameters()), rate.words, row_sparse=True)]
    else:
        groups = group_by_decay([encoder], rate.encoder, rate.decay)
    return groups + group_by_decay(_rest(network), rate.reader, rate.decay)


def _rest(network: Network) -> list[nn.Module]:
    return [part for part in (network.reader, network.head, network.scope, network.vote) if part is not None]
