"""TReaderXML (Wang et al. 2022): read a text together with the labels of the most similar training documents.

docs/methods/treader.md maps the equations to the code and lists every decision: no code by the authors is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial as partial_of
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.core.labels import LabelSet
from xmtc.core.method import Method
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import FolderReader, FolderWriter
from xmtc.core.stored_arrays import check_array, misfit
from xmtc.core.texts import Texts
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import fit_tfidf_once
from xmtc.features.words import UNKNOWN, Words, word_vectors
from xmtc.methods.treader.inputs import TaughtInputs
from xmtc.methods.treader.model import TaughtModel
from xmtc.methods.treader.network import TreaderConfig, TreaderDetails, TreaderNetwork
from xmtc.methods.treader.renewal import Renewal
from xmtc.methods.treader.scopes import ScopeConfig, check_hierarchy, describe_entries
from xmtc.methods.treader.teacher import ByEncoder, ByTfidf, ByWords, Comparer, Teacher, load_comparer
from xmtc.methods.treader.word_encoder import WordEncoder, WordTokenizer
from xmtc.neural.embed import FrozenEncoder, spread_words
from xmtc.neural.encoder import Encoder, Tokenizer
from xmtc.neural.model import read_encoder, restore_network
from xmtc.neural.optimizer import Group, group_by_decay
from xmtc.neural.plan import HeadSize
from xmtc.neural.pooling import Pool
from xmtc.neural.prepare import Prepared, prepare

NAME = "treader"


class TreaderMethod(Method[TreaderConfig]):
    """Train and load TReaderXML models."""

    name = NAME
    Config = TreaderConfig

    def train(
        self,
        corpus: Corpus,
        config: TreaderConfig,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        progress: Progress = SILENT,
        partial: Path | None = None,
    ) -> TaughtModel:
        """Find every document's scope among the others, and train the dual network; dev chooses the epoch."""
        check_hierarchy(corpus.labels)
        if config.head.vote != "none" and not config.reader.teacher:
            raise ConfigError(
                f"head.vote = {config.head.vote}, but without a teacher (reader.teacher = false) there is no scope: "
                "set head.vote = none, or reader.teacher = true"
            )
        read_words = partial_of(_fit_words, config=config, seed=seed, progress=progress)
        ready = prepare(NAME, corpus, config, dev, seed, progress, read_words if config.text == "words" else None)
        teacher, descriptions = None, None
        if config.reader.teacher:
            _tell_hierarchy(ready.labels, config.scope, progress)
            descriptions = _read_descriptions(ready, config)
            teacher, ready = _teach(ready, config)
        torch.manual_seed(seed)
        network = TreaderNetwork(ready.encoder, config, ready.labels.n_labels, descriptions)
        ready.announce_plan(_head_size(network, config))
        renewal, renewed = None, False
        if teacher is not None and config.neighbours.renew is not None:
            renewal = Renewal(network, ready, teacher, config.neighbours.renew)
        elif config.text == "encoder":
            ready = ready.store_frozen(Pool((("mean", -1),), ready.encoder.width))
        curve = ready.fit(network, _groups(network, config), partial, on_epoch=renewal, plateau=config.plateau)
        if renewal is not None:
            teacher, renewed = renewal.finish()
        manifest = ready.describe(TreaderDetails, width=ready.encoder.width, renewed=renewed, curve=curve)
        return TaughtModel(manifest, ready.labels, network, ready.tokenizer, teacher)

    def load(self, reader: FolderReader) -> TaughtModel:
        """Load a model from its folder; needs neither training data nor hub nor cache."""
        manifest, config, labels = reader.open(TreaderConfig, TreaderDetails)
        encoder: Encoder
        tokenizer: Tokenizer
        if config.text == "words":
            words = Words.from_arrays(reader.arrays("words"), config.words.max_words)
            encoder, tokenizer = WordEncoder(len(words), manifest.details.width), WordTokenizer(words)
        else:
            encoder, tokenizer = read_encoder(reader, "encoder", config.encoder)
        teacher, descriptions = None, None
        if config.reader.teacher:
            renewed, near = manifest.details.renewed, config.neighbours
            by = config.encoder if renewed else near.encoder or config.encoder
            n_words = encoder.embed_words().num_embeddings
            compare = load_comparer(reader, "encoder" if renewed else near.vectors, config.tfidf, by, n_words)
            teacher = Teacher.load(reader, labels, near, config.scope, compare)
            arrays = reader.arrays("descriptions")
            descriptions = check_array(
                arrays, "words", "int64", "int32", ndim=2, length=len(labels), within=(-1, n_words - 1)
            )
            if descriptions.shape[1] != config.reader.description_words:
                raise misfit(arrays, "words", f"must have {config.reader.description_words} columns")
        network = restore_network(lambda: TreaderNetwork(encoder, config, labels.n_labels, descriptions), reader)
        return TaughtModel(manifest, labels, network, tokenizer, teacher)

    def export(self, model: TaughtModel, out: FolderWriter, *, int8: bool) -> None:
        """Write a model that ranks without torch; see `freeze.py`."""
        from xmtc.methods.treader.freeze import write_frozen

        write_frozen(model, TreaderConfig.model_validate(model.manifest.config), out, int8)

    def uses_dev(self, config: TreaderConfig) -> bool:
        """Return whether dev documents choose the epoch."""
        return config.train.dev_fraction > 0


def _fit_words(corpus: Corpus, config: TreaderConfig, seed: int, progress: Progress) -> tuple[Encoder, Tokenizer]:
    """Return the words of texts and label names, with their vectors."""
    progress.stage("counting words")
    words = Words.fit(chain(corpus.texts or (), describe_entries(corpus.labels)), config.words)
    embed = spread_words(config.encoder) if config.words.vectors == "encoder" else None
    vectors = word_vectors(words, config.words, seed, progress, embed)
    encoder = WordEncoder(*vectors.shape)
    encoder.words.weight.data.copy_(torch.from_numpy(vectors))
    return encoder, WordTokenizer(words)


def _tell_hierarchy(labels: LabelSet, scope: ScopeConfig, progress: Progress) -> None:
    if scope.ancestors != "none" and not any(labels.parents):
        told = "every scope is empty (scope.literal)" if scope.literal else "scopes contain only the neighbours' labels"
        progress.say(f"the labels have no hierarchy: {told}")


def _read_descriptions(ready: Prepared[TreaderConfig], config: TreaderConfig) -> NDArray[np.int64]:
    """Return the first words of every entry's description, −1 after its end: (entries, m)."""
    m, corpus = config.reader.description_words, ready.corpus

    def top_words(labels: NDArray[np.int64]) -> list[str]:
        words = config.tfidf.model_copy(update={"analyzer": "words"})  # descriptions are read as words, not as stems
        tfidf, X = fit_tfidf_once(corpus.texts or (), words, ready.progress)
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


def _teach(ready: Prepared[TreaderConfig], config: TreaderConfig) -> tuple[Teacher, Prepared[TreaderConfig]]:
    """Return a teacher built from the training documents, and the training and dev documents with their scopes."""
    progress, (dev_inputs, score) = ready.progress, ready.dev
    compare = _build_comparer(ready, config)
    vectors = compare.once(Texts.pack(ready.corpus.texts or ()), ready.data.inputs.tokens, progress)
    pool = (ready.labels, ready.corpus.ids, ready.corpus.Y.tocsr(), vectors)
    teacher = Teacher.build(*pool, compare, config.neighbours, config.scope, progress)
    progress.stage("finding neighbours")
    inputs = ready.data.inputs
    taught = TaughtInputs(inputs.tokens, inputs.layout, teacher.teach_pool(vectors, progress))
    scopes = teacher.teach_once(Texts.pack(ready.held.texts or ()), dev_inputs.tokens, progress)
    dev = TaughtInputs(dev_inputs.tokens, dev_inputs.layout, scopes)
    return teacher, replace(ready, data=replace(ready.data, inputs=taught), dev=(dev, score))


def _build_comparer(ready: Prepared[TreaderConfig], config: TreaderConfig) -> Comparer:
    kind = config.neighbours.vectors
    if kind == "tfidf":
        return ByTfidf(fit_tfidf_once(ready.corpus.texts or (), config.tfidf, ready.progress)[0])
    if kind == "encoder":
        return ByEncoder(FrozenEncoder.pretrained(config.neighbours.encoder or config.encoder))
    table = ready.encoder.embed_words().weight.detach().cpu().numpy().copy()
    table[[UNKNOWN] if config.text == "words" else ready.tokenizer.inner.all_special_ids] = 0
    return ByWords(table)


def _head_size(network: TreaderNetwork, config: TreaderConfig) -> HeadSize:
    """Return the size of all parts except word vectors or encoder."""
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


def _groups(network: TreaderNetwork, config: TreaderConfig) -> list[Group]:
    """Return parameter groups: word vectors, row by row, or encoder; votes; all the rest, with one or two rates."""
    rate, encoder = config.rate, network.encoder
    if isinstance(encoder, WordEncoder):
        groups = [Group(list(encoder.parameters()), rate.words, row_sparse=True)]
    else:
        groups = group_by_decay([encoder], rate.encoder, rate.decay)
    if network.vote is not None:
        groups.append(Group(list(network.vote.parameters()), rate.vote))
    if rate.output is None:
        return groups + group_by_decay(_rest(network), rate.reader, rate.decay)
    reading = [part for part in _rest(network) if part is not network.head]
    groups += group_by_decay([network.head], rate.output, rate.decay)
    return groups + group_by_decay(reading, rate.reader, rate.decay)


def _rest(network: TreaderNetwork) -> list[nn.Module]:
    return [part for part in (network.reader, network.head, network.scope) if part is not None]


METHOD = TreaderMethod()
