"""X-BERT (Chang et al. 2019): index the labels, match texts to clusters of labels, rank the labels of these clusters.

docs/methods/xbert.md maps the paper to the code and lists what differs. Members of an ensemble differ by label vectors
and seeds; they share TF-IDF and tokens, are trained one after another, and lie in one model folder.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.core.held_out import hold_out
from xmtc.core.method import Method
from xmtc.core.partition import Partition
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import Epoch, FolderReader
from xmtc.core.texts import Texts
from xmtc.features.clustering import ClusterConfig, label_tree
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import Tfidf, TfidfConfig, fit_tfidf_once
from xmtc.features.words import Words, WordsConfig, fill_vectors, known_vectors
from xmtc.linear.chunks import LinearTree
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, train_tree
from xmtc.methods.xbert.index import (
    IndexConfig,
    VectorKind,
    build_index,
    choose_vectors,
    cluster_targets,
    count_clusters,
)
from xmtc.methods.xbert.label_encoding import LabelEncoding, check_encoders
from xmtc.methods.xbert.matcher import (
    ClusterMatcher,
    MatchConfig,
    NeuralMatcher,
    PooledEncoder,
    RateConfig,
    TextReader,
    load_network,
    load_reader,
)
from xmtc.methods.xbert.matcher_training import cluster_scorer, train_matcher
from xmtc.methods.xbert.model import (
    EnsembleConfig,
    JointMatcher,
    LinearMatcher,
    Matcher,
    Member,
    MemberDetails,
    StagedModel,
    XbertDetails,
)
from xmtc.methods.xbert.ranker import RankConfig, StagedSearchConfig, finish_tree, join_features, train_ranker
from xmtc.methods.xbert.stages import finish_stage
from xmtc.methods.xbert.xttention import Xttention, XttentionConfig
from xmtc.neural.batches import Inputs
from xmtc.neural.checkpoint import Checkpoints
from xmtc.neural.devices import build_accelerator
from xmtc.neural.embed import spread_words
from xmtc.neural.encoder import load_encoder
from xmtc.neural.pooling import PooledEncoderConfig
from xmtc.neural.prepare import NeuralConfig, begin, identity_of
from xmtc.neural.spread import warn_if_alike
from xmtc.neural.trainer import TrainConfig

NAME = "xbert"


class XbertTrainConfig(TrainConfig):
    """The paper's warm-up; the best epoch is the one that ranks the clusters of dev best."""

    warmup: float = Field(0.2, ge=0, lt=1, description="share of the steps in which the rates rise from 0")


class XbertConfig(NeuralConfig):
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


class XbertMethod(Method[XbertConfig]):
    """Train and load X-BERT models."""

    name = NAME
    Config = XbertConfig

    def train(
        self,
        corpus: Corpus,
        config: XbertConfig,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        progress: Progress = SILENT,
        partial: Path | None = None,
    ) -> StagedModel:
        """Train all members, one after another; what an interrupted run has finished is taken from `partial`."""
        kinds = choose_vectors(corpus.labels, config.cluster, progress)
        run = _Run(corpus, config, kinds, dev, seed, progress, partial)
        first = seed * config.cluster.seeds  # runs of other seeds have no member in common
        wanted = [(kind, first + i) for kind in kinds for i in range(config.cluster.seeds)]
        members, known = [], []
        for number, (kind, member_seed) in enumerate(wanted):
            if len(wanted) > 1:
                progress.say(f"member {number + 1} of {len(wanted)}: {kind}, seed {member_seed}")
            member, details = run.train_member(number, kind, member_seed)
            members.append(member)
            known.append(details)
        begun = run.manifest.details.to_json()
        details_of_all = XbertDetails(**begun, members=known, clusters=run.n_clusters, curve=known[0].curve)
        manifest = run.manifest.with_details(details_of_all)
        shared = (corpus.labels, run.tfidf, run.reader, tuple(members))
        return StagedModel(manifest, *shared, config.search, config.ensemble)

    def load(self, reader: FolderReader) -> StagedModel:
        """Rebuild a model from its folder; neither hub nor cache is needed."""
        manifest, config, labels = reader.open(XbertConfig, XbertDetails)
        neural = config.match.kind != "linear"
        text_reader = load_reader(reader, config.match, config.encoder, config.words) if neural else None
        members = []
        for i, details in enumerate(manifest.details.members):
            linear = None
            if details.matcher is not None:
                linear = _linear(LinearTree.restore(reader.arrays(f"member-{i}/matcher"), details.matcher), config)
            network = None
            if text_reader is not None:
                sizes = (config.match, config.encoder, config.xttention)
                network = load_network(reader, i, text_reader, details.clusters, *sizes)
            matcher = _join(network, linear, config)
            partition = Partition(reader.arrays(f"member-{i}/index")["parents"], details.clusters)
            ranker = LinearTree.restore(reader.arrays(f"member-{i}/ranker"), details.ranker)
            members.append(Member(partition, matcher, ranker))
        tfidf = Tfidf.from_arrays(reader.arrays("tfidf"), config.tfidf)
        shared = (labels, tfidf, text_reader, tuple(members))
        return StagedModel(manifest, *shared, config.search, config.ensemble)

    def uses_dev(self, config: XbertConfig) -> bool:
        """Say whether dev chooses the best epoch: a linear matcher has none."""
        return config.match.kind != "linear"


class _Run:
    """What the members of a run share, and the training of one."""

    def __init__(
        self,
        corpus: Corpus,
        config: XbertConfig,
        kinds: list[VectorKind],
        dev: Corpus | None,
        seed: int,
        progress: Progress,
        partial: Path | None,
    ) -> None:
        neural = config.match.kind != "linear"
        if config.rank.embedding and not neural:
            raise ConfigError("rank.embedding needs a neural matcher: set match.kind to bert or xttention")
        if config.match.linear > 0 and not neural:
            raise ConfigError("match.linear goes with a neural matcher; match.kind = linear is a linear tree alone")
        n_members = len(kinds) * config.cluster.seeds
        if (
            n_members > 1
            and config.ensemble.rule == "mean"
            and (config.search.adds or config.search.combiner == "noop")
        ):
            raise ConfigError(
                f"ensemble.rule = mean gives labels that a member leaves out 0, and with search.combiner = "
                f"{config.search.combiner} scores lie below 0: set ensemble.rule to rank, sigmoid or softmax"
            )
        if config.match.loss == "bce" and neural and config.search.cluster != "sigmoid":
            progress.say(f"match.loss = bce goes with search.cluster = sigmoid; it is {config.search.cluster}")
        self.config, self.progress, self.partial = config, progress, partial
        labels = corpus.labels
        pretrained = config.match.kind == "bert"
        self.manifest, corpus = begin(NAME, corpus, config, dev if neural else None, seed, pretrained=pretrained)
        self.identity = identity_of(self.manifest)
        Checkpoints(partial, self.identity)  # refuses what another run left
        if neural and dev is None:
            corpus, dev = hold_out(corpus, config.train.dev_fraction, seed, progress)
        texts = Texts.pack(corpus.texts or ())
        self.Y = corpus.Y[:, : labels.n_labels].tocsr()
        self.n_clusters = count_clusters(labels.n_labels, config.cluster, progress)
        # before the long stages, for settings can be wrong here
        build_accelerator(config.train.precision, skips_parameters=True)
        cluster_scorer(sp.csr_matrix((1, self.n_clusters)), config.train.metric)
        check_encoders(kinds, config.cluster, config.encoder)
        self.reader = self._build_reader(texts) if neural else None
        self.tfidf, self.X = fit_tfidf_once(texts, config.tfidf, progress)
        encoding = LabelEncoding(labels, texts, self.X, self.Y, config.cluster, config.encoder, progress)
        self.vectors = cache(encoding.vectors)
        if self.reader is not None and dev is not None:
            self.tokens = self.reader.read_once(texts, progress)
            self.dev_tokens = self.reader.read_once(Texts.pack(dev.texts or ()), progress)
            self.dev_Y = dev.align(labels).Y[:, : labels.n_labels].tocsr()
            network = self._build_network(seed)
            network.announce_plan(self.tokens.lengths, config.train, progress)
            if isinstance(network.body, PooledEncoder):
                inputs = Inputs(self.tokens, network.body.layout)
                warn_if_alike(network.body.encoder, inputs, network.body.pool.parts, progress)
            if n_members > 1:
                progress.say(f"that is one member of {n_members}; the others take as long")

    def train_member(self, number: int, kind: VectorKind, seed: int) -> tuple[Member, MemberDetails]:
        """Index, match, rank; returns the member and what the model's details say of it."""
        folder = None if self.partial is None else self.partial / f"member-{number}"
        partition = self._index(folder, kind, seed)
        targets = cluster_targets(self.Y, partition)
        curve: list[Epoch] = []
        network, linear = None, None
        if self.reader is not None:
            network, curve = self._train_network(targets, partition, seed, folder)
        if self.reader is None or self.config.match.linear > 0:
            tree = finish_tree(folder, "linear-matcher", lambda: self._train_tree(targets, seed))
            linear = _linear(tree, self.config)
        matcher = _join(network, linear, self.config)
        ranker = finish_tree(folder, "ranker", lambda: self._train_ranker(partition, matcher, seed))
        details = MemberDetails(
            vectors=kind,
            seed=seed,
            clusters=self.n_clusters,
            curve=curve,
            matcher=None if linear is None else linear.tree.shape,
            ranker=ranker.shape,
        )
        return Member(partition, matcher, ranker), details

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
    ) -> tuple[ClusterMatcher, list[Epoch]]:
        config = self.config
        network = self._build_network(seed)
        dev = self.dev_tokens, cluster_targets(self.dev_Y, partition)
        rest = (config.train, config.rate, seed, folder, self.identity, self.progress)
        return network, train_matcher(network, (self.tokens, targets), dev, *rest)

    def _train_ranker(self, partition: Partition, matcher: Matcher, seed: int) -> LinearTree:
        config, progress = self.config, self.progress
        progress.stage("matching the training documents")
        tokens = None if self.reader is None else self.tokens
        clusters, vectors = matcher.match(self.X, tokens, min(config.search.beam, self.n_clusters), progress)
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
        words = Words.fit(texts, self.config.words)
        embed = spread_words(self.config.encoder) if self.config.words.vectors == "encoder" else None
        self.known_words = known_vectors(words, self.config.words, self.progress, embed)
        return TextReader(words, None)

    def _build_network(self, seed: int) -> ClusterMatcher:
        torch.manual_seed(seed)
        return ClusterMatcher(self._build_body(seed), self.n_clusters, self.config.match)

    def _build_body(self, seed: int) -> PooledEncoder | Xttention:
        config = self.config
        words = None if self.reader is None else self.reader.tokenizer
        if not isinstance(words, Words):
            self.progress.stage("loading the encoder")
            shared = None if self.reader is None else self.reader.frozen_words
            return PooledEncoder(load_encoder(config.encoder)[0], config.encoder, shared)
        vectors = torch.from_numpy(fill_vectors(self.known_words, len(words), config.words.width, seed))
        body = Xttention(vectors.shape[0], vectors.shape[1], config.xttention)
        body.words.weight.data.copy_(vectors)
        return body


def _linear(tree: LinearTree, config: XbertConfig) -> LinearMatcher:
    """A linear matcher; what it learnt are margins, also where probabilities of clusters stand beside them."""
    beside = config.match.kind != "linear" and config.match.loss == "bce"
    search = config.search.model_copy(update={"cluster": "l2-hinge"}) if beside else config.search
    return LinearMatcher(tree, search)


def _join(network: ClusterMatcher | None, linear: LinearMatcher | None, config: XbertConfig) -> Matcher:
    """The matcher of a member, of the parts that it has."""
    if network is None:
        assert linear is not None  # settings give a member one part at least
        return linear
    neural = NeuralMatcher(network, config.search.cluster, config.search.adds, config.rank.embedding)
    return neural if linear is None else JointMatcher(neural, linear, config.match.linear)
