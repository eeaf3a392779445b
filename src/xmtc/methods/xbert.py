"""X-BERT (Chang et al. 2019): index the labels, match texts to clusters of labels, rank the labels of these clusters.

docs/methods/xbert.md maps the paper to the code and lists what differs. Members of an ensemble differ by label vectors
and seeds; they share TF-IDF and tokens, are trained one after another, and lie in one model folder.
"""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.held_out import hold_out
from xmtc.core.partition import Partition
from xmtc.core.progress import SILENT, Progress
from xmtc.core.stages import finish_stage
from xmtc.core.storage import FolderReader, Manifest
from xmtc.core.texts import Texts
from xmtc.features.clustering import ClusterConfig, label_tree
from xmtc.features.label_index import (
    IndexConfig,
    VectorKind,
    build_index,
    choose_vectors,
    cluster_targets,
    count_clusters,
)
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import Tfidf, TfidfConfig
from xmtc.features.tfidf_once import fit_transform_once
from xmtc.features.words import Words, WordsConfig, word_vectors
from xmtc.linear.chunks import LinearTree
from xmtc.linear.ranker import RankConfig, StagedSearchConfig, finish_tree, join_features, train_ranker
from xmtc.linear.solver import SolverConfig
from xmtc.linear.staged import EnsembleConfig, LinearMatcher, Matcher, Member, StagedModel
from xmtc.linear.tree import TreeConfig, train_tree
from xmtc.neural.checkpoint import Checkpoints
from xmtc.neural.encoder import load_encoder, restore_encoder
from xmtc.neural.label_encoding import LabelEncoding
from xmtc.neural.matcher import (
    ClusterMatcher,
    MatchConfig,
    NeuralMatcher,
    PooledEncoder,
    PooledEncoderConfig,
    RateConfig,
    TextReader,
    cluster_scorer,
)
from xmtc.neural.prepare import NeuralConfig
from xmtc.neural.trainer import TrainConfig, TrainingData, fit
from xmtc.neural.xttention import Xttention, XttentionConfig

METHOD = "xbert"
_CURVE = "curve"  # of a trained matcher, beside its weights


class XbertTrainConfig(TrainConfig):
    """The paper's warm-up; the best epoch is the one that ranks the clusters of dev best."""

    warmup: float = Field(0.2, ge=0, lt=1, description="share of the steps in which the rates rise from 0")


class Config(NeuralConfig):
    """Settings of X-BERT."""

    encoder: PooledEncoderConfig = Field(default_factory=PooledEncoderConfig)
    cluster: IndexConfig = Field(default_factory=IndexConfig)
    match: MatchConfig = Field(default_factory=MatchConfig)
    words: WordsConfig = Field(default_factory=WordsConfig)
    xttention: XttentionConfig = Field(default_factory=XttentionConfig)
    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    rank: RankConfig = Field(default_factory=RankConfig)
    solver: SolverConfig = Field(default_factory=SolverConfig)
    search: StagedSearchConfig = Field(default_factory=StagedSearchConfig)
    ensemble: EnsembleConfig = Field(default_factory=EnsembleConfig)
    rate: RateConfig = Field(default_factory=RateConfig)
    train: XbertTrainConfig = Field(default_factory=XbertTrainConfig)


def train(
    corpus: Corpus,
    config: Config,
    dev: Corpus | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
    partial: Path | None = None,
) -> StagedModel:
    """Train all members, one after another; what an interrupted run has finished is taken from `partial`."""
    run = _Run(corpus, config, dev, seed, progress, partial)
    kinds = choose_vectors(corpus.labels, config.cluster, progress)
    first = seed * config.cluster.seeds  # runs of other seeds have no member in common
    wanted = [(kind, first + i) for kind in kinds for i in range(config.cluster.seeds)]
    members, facts = [], []
    for number, (kind, member_seed) in enumerate(wanted):
        if len(wanted) > 1:
            progress.say(f"member {number + 1} of {len(wanted)}: {kind}, seed {member_seed}")
        member, curve = run.train_member(number, kind, member_seed)
        members.append(member)
        matcher = member.matcher.tree.scalars() if isinstance(member.matcher, LinearMatcher) else None
        known = {"vectors": kind, "seed": member_seed, "clusters": run.n_clusters, "curve": curve}
        facts.append({**known, "matcher": matcher, "ranker": member.ranker.scalars()})
    run.manifest.details.update(members=facts, clusters=run.n_clusters, curve=facts[0]["curve"])
    parts = (corpus.labels, run.tfidf, run.reader, tuple(members))
    return StagedModel(run.manifest, *parts, config.search, config.ensemble)


def load(reader: FolderReader) -> StagedModel:
    """Rebuild a model from its folder; neither hub nor cache is needed."""
    config = Config.model_validate(reader.manifest.config)
    text_reader = None
    if config.match.kind == "xttention":
        text_reader = TextReader(Words.from_arrays(reader.arrays("words"), config.words.max_words), None)
    members = []
    for i, facts in enumerate(reader.manifest.details["members"]):
        matcher: Matcher
        if config.match.kind == "linear":
            tree = LinearTree.from_parts(reader.arrays(f"member-{i}/matcher"), facts["matcher"])
            matcher = LinearMatcher(tree, config.search)
        else:
            weights = {k: torch.from_numpy(array) for k, array in reader.tensors(f"member-{i}/network").items()}
            body: PooledEncoder | Xttention
            if config.match.kind == "bert":
                encoder, tokenizer = restore_encoder(reader.folder / "encoder", config.encoder)
                text_reader = TextReader(tokenizer, encoder)
                body = PooledEncoder(encoder, config.encoder.mean)
            else:
                n_words, width = weights["body.words.weight"].shape
                body = Xttention(n_words, width, config.xttention)
            network = ClusterMatcher(body, facts["clusters"], config.match)
            network.load_state_dict(weights)
            matcher = _neural(network.eval(), config)
        partition = Partition(reader.arrays(f"member-{i}/index")["parents"], facts["clusters"])
        ranker = LinearTree.from_parts(reader.arrays(f"member-{i}/ranker"), facts["ranker"])
        members.append(Member(partition, matcher, ranker))
    tfidf = Tfidf.from_arrays(reader.arrays("tfidf"), config.tfidf)
    parts = (reader.labels(), tfidf, text_reader, tuple(members))
    return StagedModel(reader.manifest, *parts, config.search, config.ensemble)


class _Run:
    """What the members of a run share, and the training of one."""

    def __init__(
        self, corpus: Corpus, config: Config, dev: Corpus | None, seed: int, progress: Progress, partial: Path | None
    ) -> None:
        for name, part in (("this corpus", corpus), ("dev", dev)):
            if part is not None and part.texts is None:
                raise DataError(f"{METHOD} reads texts, and {name} has only features")
        neural = config.match.kind != "linear"
        if config.rank.embedding and not neural:
            raise ConfigError("rank.embedding needs a neural matcher: set match.kind to bert or xttention")
        several = len(config.cluster.vectors) * config.cluster.seeds > 1
        if several and config.ensemble.rule == "mean" and (config.search.adds or config.search.combiner == "noop"):
            raise ConfigError(
                f"ensemble.rule = mean gives labels that a member leaves out 0, and with search.combiner = "
                f"{config.search.combiner} scores lie below 0: set ensemble.rule to rank, sigmoid or softmax"
            )
        self.config, self.progress, self.partial = config, progress, partial
        labels = corpus.labels
        self.manifest = Manifest(
            method=METHOD,
            config=config.model_dump(mode="json"),
            seed=seed,
            n_labels=labels.n_labels,
            n_documents=len(corpus),
            data=corpus.fingerprint(),
            details={"features": None},
        )
        self.identity = {"config": self.manifest.config, "seed": seed, "data": self.manifest.data}
        corpus = corpus.take(np.flatnonzero(np.diff(corpus.Y[:, : labels.n_labels].tocsr().indptr)))
        if len(corpus) == 0:
            raise DataError("no document has a label; there is nothing to learn")
        Checkpoints(partial, self.identity)  # refuses what another run left
        if neural and dev is None:
            corpus, dev = hold_out(corpus, config.train.dev_fraction, seed, progress)
        texts = Texts.pack(corpus.texts or ())
        self.Y = corpus.Y[:, : labels.n_labels].tocsr()
        self.tfidf, self.X = fit_transform_once(texts, config.tfidf, progress)
        self.n_clusters = count_clusters(labels.n_labels, config.cluster, progress)
        encoding = LabelEncoding(labels, texts, self.X, self.Y, config.cluster, config.encoder, progress)
        self.vectors = cache(encoding.vectors)
        self.reader: TextReader | None = None
        if neural and dev is not None:
            self.reader = self._build_reader(texts)
            self.tokens = self.reader.read_once(texts, progress)
            self.dev_tokens = self.reader.read_once(Texts.pack(dev.texts or ()), progress)
            self.dev_Y = dev.align(labels).Y[:, : labels.n_labels].tocsr()

    def train_member(self, number: int, kind: VectorKind, seed: int) -> tuple[Member, list[dict[str, Any]]]:
        """Index, match, rank; returns the member and the curve of its matcher."""
        folder = None if self.partial is None else self.partial / f"member-{number}"
        partition = self._index(folder, kind, seed)
        targets = cluster_targets(self.Y, partition)
        curve: list[dict[str, Any]] = []
        matcher: LinearMatcher | NeuralMatcher
        if self.reader is None:
            tree = finish_tree(folder, "matcher", lambda: self._train_tree(targets, seed))
            matcher = LinearMatcher(tree, self.config.search)
        else:
            network, curve = self._train_network(targets, partition, seed, folder)
            matcher = _neural(network, self.config)
        ranker = finish_tree(folder, "ranker", lambda: self._train_ranker(partition, matcher, seed))
        return Member(partition, matcher, ranker), curve

    def _index(self, folder: Path | None, kind: VectorKind, seed: int) -> Partition:
        def compute() -> dict[str, NDArray[Any]]:
            vectors = self.vectors(kind)
            self.progress.stage("clustering labels")
            return {"parents": build_index(vectors, self.n_clusters, self.config.cluster, seed).parents}

        return Partition(finish_stage(folder, "index", compute)["parents"], self.n_clusters)

    def _train_tree(self, targets: sp.csr_matrix, seed: int) -> LinearTree:
        """A linear tree whose labels are the clusters."""
        config = self.config
        tree = label_tree(pifa(self.X, targets, config.cluster.weighting, config.cluster.top), ClusterConfig(), seed)
        one = TreeConfig(trees=1)
        return train_tree(self.X, targets, tree, one, config.solver, config.search, seed, self.progress)

    def _train_network(
        self, targets: sp.csr_matrix, partition: Partition, seed: int, folder: Path | None
    ) -> tuple[ClusterMatcher, list[dict[str, Any]]]:
        """Train a network; once it is trained its weights are a stage of their own, and its checkpoints go."""
        config = self.config
        torch.manual_seed(seed)
        network = ClusterMatcher(self._build_body(seed), self.n_clusters, config.match)
        checkpoints = None if folder is None else folder / "checkpoints"

        def compute() -> dict[str, NDArray[Any]]:
            network.tell_plan(self.tokens.lengths, config.train, self.progress)
            curve = fit(
                network,
                network.groups(config.rate),
                TrainingData(self.tokens, targets, network.body.layout),
                config.train,
                dev=(self.dev_tokens, cluster_scorer(cluster_targets(self.dev_Y, partition), config.train.metric)),
                seed=seed,
                partial=checkpoints,
                identity=self.identity,
                skips_parameters=True,  # encoders bring a pooler or a mask's vector, which no text's vector needs
                progress=self.progress,
            )
            told = np.frombuffer(json.dumps(curve).encode(), dtype=np.uint8)
            return {**{name: value.cpu().numpy() for name, value in network.state_dict().items()}, _CURVE: told}

        found = finish_stage(folder, "matcher", compute)
        curve = json.loads(found.pop(_CURVE).tobytes())
        network.load_state_dict({name: torch.tensor(array) for name, array in found.items()})
        if checkpoints is not None:
            shutil.rmtree(checkpoints, ignore_errors=True)
        return network.eval(), curve

    def _train_ranker(self, partition: Partition, matcher: LinearMatcher | NeuralMatcher, seed: int) -> LinearTree:
        config, progress = self.config, self.progress
        progress.stage("matching the training documents")
        tokens = None if self.reader is None else self.tokens
        clusters, vectors = matcher.match(self.X, tokens, config.search.beam, progress)
        never = np.setdiff1d(np.arange(self.n_clusters), clusters.labels)
        if len(never):
            n_labels = int(np.isin(partition.parents, never).sum())
            progress.say(
                f"the matcher retrieves {len(never):,} of {self.n_clusters:,} clusters for no training document: their "
                f"{n_labels:,} labels may never be ranked; raise search.beam, or train longer"
            )
        X = self.X if vectors is None else join_features(self.X, vectors)
        return train_ranker(X, self.Y, partition, clusters, config.rank.negatives, config.solver, seed, progress)

    def _build_reader(self, texts: Texts) -> TextReader:
        if self.config.match.kind == "bert":
            encoder, tokenizer = load_encoder(self.config.encoder)
            return TextReader(tokenizer, encoder)
        self.progress.stage("counting words")
        return TextReader(Words.fit(texts, self.config.words), None)

    def _build_body(self, seed: int) -> PooledEncoder | Xttention:
        config = self.config
        words = None if self.reader is None else self.reader.tokenizer
        if not isinstance(words, Words):
            self.progress.stage("loading the encoder")
            return PooledEncoder(load_encoder(config.encoder)[0], config.encoder.mean)
        vectors = torch.from_numpy(word_vectors(words, config.words, seed, self.progress))
        body = Xttention(vectors.shape[0], vectors.shape[1], config.xttention)
        body.words.weight.data.copy_(vectors)
        return body


def _neural(network: ClusterMatcher, config: Config) -> NeuralMatcher:
    return NeuralMatcher(network, config.search.cluster, config.search.adds, config.rank.embedding)
