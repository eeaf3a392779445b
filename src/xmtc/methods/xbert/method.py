"""X-BERT (Chang et al. 2019): index the labels, match texts to clusters of labels, rank the labels of these clusters.

docs/methods/xbert.md maps the paper to the code and lists the differences. Members of an ensemble differ by label
vectors and seeds. They share TF-IDF and tokens, are trained one after another, and are stored in one model folder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from functools import partial as partial_of
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.held_out import hold_out
from xmtc.core.method import Method
from xmtc.core.partition import Partition, cluster_targets
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.stages import finish_stage
from xmtc.core.storage import Epoch, FolderReader, FolderWriter
from xmtc.core.texts import Texts
from xmtc.features.clustering import ClusterConfig, label_tree
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import Tfidf, TfidfConfig, fit_tfidf_once
from xmtc.features.words import Words, WordsConfig, fill_vectors, known_vectors
from xmtc.linear.chunks import LinearTree
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, train_tree
from xmtc.methods.xbert.feature_choice import FeatureChoice, MatchedDocuments, choose_features
from xmtc.methods.xbert.index import (
    IndexConfig,
    VectorKind,
    build_index,
    choose_vectors,
    coarsen,
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
from xmtc.methods.xbert.matcher_training import cluster_scorer, split_epochs, train_matcher
from xmtc.methods.xbert.model import (
    EnsembleConfig,
    JointMatcher,
    LinearMatcher,
    Matcher,
    Member,
    MemberDetails,
    StagedModel,
    XbertDetails,
    restore_member,
)
from xmtc.methods.xbert.ranker import RankConfig, StagedSearchConfig, finish_tree, join_features, train_ranker
from xmtc.methods.xbert.xttention import Xttention, XttentionConfig
from xmtc.neural.batches import Inputs
from xmtc.neural.checkpoint import Checkpoints
from xmtc.neural.devices import build_accelerator, computing_in
from xmtc.neural.embed import spread_words
from xmtc.neural.encoder import PooledEncoderConfig, load_encoder
from xmtc.neural.prepare import NeuralConfig, begin, identity_of
from xmtc.neural.spread import warn_if_alike
from xmtc.neural.trainer import TrainConfig

NAME = "xbert"
_FEWEST_TO_JOIN = 4  # clusters; with fewer, there is no coarser level
Matched = tuple[Ranking, NDArray[np.float32] | None]  # retrieved clusters, and the vectors of texts


class XbertTrainConfig(TrainConfig):
    """Training settings; the paper's warm-up. The best epoch is the one with the best ranking of dev's clusters."""

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
        """Train all members, one after another; reuse what an interrupted run has finished in `partial`."""
        kinds = choose_vectors(corpus.labels, config.cluster, progress)
        run = _Run(corpus, config, kinds, dev, seed, progress, partial)
        first = seed * config.cluster.seeds  # runs with other seeds share no member
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
        if run.choice is not None:
            details_of_all = details_of_all.model_copy(update={"feature_choice": run.choice})
        manifest = run.manifest.with_details(details_of_all)
        shared = (corpus.labels, run.tfidf, run.reader, tuple(members))
        return StagedModel(manifest, *shared, config.search, config.ensemble)

    def load(self, reader: FolderReader) -> StagedModel:
        """Load a model from its folder; needs neither hub nor cache."""
        manifest, config, labels = reader.open(XbertConfig, XbertDetails)
        neural = config.match.kind != "linear"
        text_reader = load_reader(reader, config.match, config.encoder, config.words) if neural else None
        joins = _reads_vectors(config, manifest.details.feature_choice)
        tfidf = Tfidf.from_arrays(reader.arrays("tfidf"), config.tfidf)
        members = []
        for i, details in enumerate(manifest.details.members):
            linear = None
            if details.matcher is None and not neural:
                raise ModelError(f"{reader.folder} has no matcher; train it again")
            if details.matcher is not None:
                tree = LinearTree.restore(reader.arrays(f"member-{i}/matcher"), details.matcher, details.clusters)
                linear = _linear(tree, config)
            network = None
            if text_reader is not None:
                sizes = (config.match, config.encoder, config.xttention)
                network = load_network(reader, i, text_reader, details.clusters, *sizes)
            matcher = _join(network, linear, config, joins)
            widths = (len(tfidf.vocabulary), network.body.width if network is not None and joins else 0)
            members.append(restore_member(reader, i, details, labels.n_labels, matcher, linear, widths))
        shared = (labels, tfidf, text_reader, tuple(members))
        return StagedModel(manifest, *shared, config.search, config.ensemble)

    def export(self, model: StagedModel, out: FolderWriter, *, int8: bool) -> None:
        """Write a model that ranks without torch; see `freeze.py`."""
        from xmtc.methods.xbert.freeze import write_frozen

        write_frozen(model, XbertConfig.model_validate(model.manifest.config), out, int8)

    def uses_dev(self, config: XbertConfig) -> bool:
        """Return whether dev chooses the best epoch; a linear matcher has no epochs."""
        return config.match.kind != "linear" and config.train.dev_fraction > 0


class _Run:
    """The shared data of a run's members, and the training of one member."""

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
        if config.match.coarse > 0 and not neural:
            raise ConfigError("match.coarse needs a neural matcher: set match.kind to bert or xttention")
        if config.match.coarse > 0 and config.train.epochs < 2:
            raise ConfigError("match.coarse divides the epochs, but train.epochs is 1: set it to 2 or more")
        if config.match.linear > 0 and not neural:
            raise ConfigError(
                "match.linear needs a neural matcher: set match.kind to bert or xttention, or leave it out"
            )
        n_members = len(kinds) * config.cluster.seeds
        if (
            n_members > 1
            and config.ensemble.rule == "mean"
            and (config.search.adds or config.search.combiner == "noop")
        ):
            raise ConfigError(
                f"ensemble.rule = mean scores a label that a member leaves out 0, but with search.combiner = "
                f"{config.search.combiner} scores lie below 0: set ensemble.rule to rank, sigmoid or softmax"
            )
        if config.match.loss == "bce" and neural and config.search.cluster != "sigmoid":
            progress.say(f"match.loss = bce is meant for search.cluster = sigmoid; it is {config.search.cluster}")
        self.config, self.progress, self.partial = config, progress, partial
        self.choice: FeatureChoice | None = None  # with rank.embedding = auto, after the first member is matched
        labels = corpus.labels
        if not neural or config.train.dev_fraction == 0:
            dev = None
        self.manifest, corpus = begin(NAME, corpus, config, dev, seed, pretrained=config.match.kind == "bert")
        self.identity = identity_of(self.manifest)
        Checkpoints(partial, self.identity)  # raises if the folder belongs to another run
        if neural and dev is None:
            corpus, dev = hold_out(corpus, config.train.dev_fraction, seed, progress)
        texts = Texts.pack(corpus.texts or ())
        self.Y = corpus.Y[:, : labels.n_labels].tocsr()
        self.n_clusters = count_clusters(labels.n_labels, config.cluster, progress)
        self.coarse_first = config.match.coarse > 0 and self.n_clusters >= _FEWEST_TO_JOIN
        if config.match.coarse > 0 and not self.coarse_first:
            progress.say(f"match.coarse has no effect: {self.n_clusters} clusters are too few to join")
        # checks settings before the long stages
        build_accelerator(config.train.precision, skips_parameters=True)
        cluster_scorer(sp.csr_matrix((1, self.n_clusters)), config.train.metric)
        check_encoders(kinds, config.cluster, config.encoder)
        self.reader = self._build_reader(texts) if neural else None
        self.tfidf, self.X = fit_tfidf_once(texts, config.tfidf, progress)
        encoding = LabelEncoding(labels, texts, self.X, self.Y, config.cluster, config.encoder, progress)
        self.vectors = cache(encoding.vectors)
        if self.reader is not None and dev is not None:
            self.tokens = self.reader.read_once(texts, progress)
            self.dev_texts = Texts.pack(dev.texts or ())
            self.dev_tokens = self.reader.read_once(self.dev_texts, progress)
            self.dev_Y = dev.align(labels).Y[:, : labels.n_labels].tocsr()
            network = self._build_network(seed, self.n_clusters)
            network.announce_plan(self.tokens.lengths, config.train, progress)
            if isinstance(network.body, PooledEncoder):
                inputs = Inputs(self.tokens, network.body.layout)
                warn_if_alike(network.body.encoder, inputs, network.body.pool.parts, progress)
                if config.encoder.freeze_layers and config.encoder.dropout == 0:
                    self._store_frozen(network.body, inputs)
            if n_members > 1:
                progress.say(f"this is one member of {n_members}; each other takes as long")

    def train_member(self, number: int, kind: VectorKind, seed: int) -> tuple[Member, MemberDetails]:
        """Index, match and rank; return the member and its part of the model's details."""
        folder = None if self.partial is None else self.partial / f"member-{number}"
        partition, coarse = self._index(folder, kind, seed)
        targets = cluster_targets(self.Y, partition)
        curve: list[Epoch] = []
        coarse_curve: list[Epoch] = []
        network, linear = None, None
        if self.reader is not None:
            network, curve, coarse_curve = self._train_network(targets, partition, coarse, seed, folder)
        if self.reader is None or self.config.match.linear > 0:
            tree = finish_tree(folder, "linear-matcher", lambda: self._train_tree(targets, seed))
            linear = _linear(tree, self.config)
        undecided = self.config.rank.embedding == "auto" and self.choice is None
        matcher = _join(network, linear, self.config, undecided or _reads_vectors(self.config, self.choice))
        matched = cache(partial_of(self._match, partition, matcher))  # one pass for both the choice and the ranker
        if undecided:
            self.choice = self._choose_features(partition, matched, matcher, seed, folder)
        joins = _reads_vectors(self.config, self.choice)
        ranker = finish_tree(folder, "ranker", lambda: self._train_ranker(partition, *matched(), joins, seed))
        details = MemberDetails(
            vectors=kind,
            seed=seed,
            clusters=self.n_clusters,
            curve=curve,
            matcher=None if linear is None else linear.tree.shape,
            ranker=ranker.shape,
        )
        if coarse_curve:
            details = details.model_copy(update={"coarse_curve": coarse_curve})
        return Member(partition, _join(network, linear, self.config, joins), ranker), details

    def _index(self, folder: Path | None, kind: VectorKind, seed: int) -> tuple[Partition, NDArray[np.int32] | None]:
        """Return the label clusters and, if the matcher starts with coarse clusters, the coarse cluster of each."""
        config = self.config

        def compute() -> dict[str, NDArray[Any]]:
            vectors = self.vectors(kind)
            self.progress.stage("clustering labels")
            partition = build_index(vectors, self.n_clusters, config.cluster, seed)
            above = {"coarse": coarsen(partition, vectors, config.cluster, seed)} if self.coarse_first else {}
            return {"parents": partition.parents, **above}

        found = finish_stage(folder, "index", compute)
        return Partition(found["parents"], self.n_clusters), found.get("coarse")

    def _train_tree(self, targets: sp.csr_matrix, seed: int) -> LinearTree:
        """Train a linear tree whose labels are the clusters."""
        config = self.config
        tree = label_tree(pifa(self.X, targets, config.cluster.weighting, config.cluster.top), ClusterConfig(), seed)
        one = TreeConfig(trees=1)
        return train_tree(self.X, targets, tree, one, config.solver, config.search, seed, self.progress)

    def _train_network(
        self,
        targets: sp.csr_matrix,
        partition: Partition,
        coarse: NDArray[np.int32] | None,
        seed: int,
        folder: Path | None,
    ) -> tuple[ClusterMatcher, list[Epoch], list[Epoch]]:
        """Train a matcher; return it, its curve, and the curve of the coarse clusters before it."""
        config, dev_targets = self.config, cluster_targets(self.dev_Y, partition)

        def train(network: ClusterMatcher, above: Partition | None, settings: TrainConfig, stage: str) -> list[Epoch]:
            """Train a stage on the clusters, or on the coarse ones above them."""
            own, dev = (each if above is None else cluster_targets(each, above) for each in (targets, dev_targets))
            documents, held = (self.tokens, own), (self.dev_tokens, dev)
            return train_matcher(
                network, documents, held, settings, config.rate, seed, folder, self.identity, self.progress, stage
            )

        if coarse is None:
            network = self._build_network(seed, self.n_clusters)
            return network, train(network, None, config.train, "matcher"), []
        first, second = split_epochs(config.train, config.match.coarse)
        above = Partition(coarse, int(coarse.max()) + 1)
        self.progress.say(f"the matcher learns {above.n_clusters:,} coarse clusters first, then {self.n_clusters:,}")
        network = self._build_network(seed, above.n_clusters)
        coarse_curve = train(network, above, first, "coarse-matcher")
        network = network.refine(coarse, config.match)
        return network, train(network, None, second, "matcher"), coarse_curve

    def _match(self, partition: Partition, matcher: Matcher) -> Matched:
        """Return the training documents' clusters, and their vectors by a neural matcher."""
        config, progress = self.config, self.progress
        progress.stage("matching the training documents")
        tokens = None if self.reader is None else self.tokens
        with computing_in(config.train.precision):  # as in training: exact scores are needed for new documents only
            clusters, vectors = matcher.match(self.X, tokens, min(config.search.beam, self.n_clusters), progress)
        never = np.setdiff1d(np.arange(self.n_clusters), clusters.labels)
        if len(never):
            n_labels = int(np.isin(partition.parents, never).sum())
            progress.say(
                f"the matcher retrieves {len(never):,} of {self.n_clusters:,} clusters for no training document: their "
                f"{n_labels:,} labels may never be ranked; raise search.beam, or train longer"
            )
        return clusters, vectors

    def _choose_features(
        self, partition: Partition, matched: Callable[[], Matched], matcher: Matcher, seed: int, folder: Path | None
    ) -> FeatureChoice:
        """Return which features the rankers of all members read, chosen on dev with the first member."""
        config = self.config

        def compute() -> dict[str, NDArray[Any]]:
            clusters, vectors = matched()
            dev_X = self.tfidf.transform(self.dev_texts)
            dev_clusters, dev_vectors = matcher.match(dev_X, self.dev_tokens, clusters.k)
            assert vectors is not None  # from a neural matcher
            assert dev_vectors is not None
            chosen = choose_features(
                MatchedDocuments(self.X, vectors, clusters, self.Y),
                MatchedDocuments(dev_X, dev_vectors, dev_clusters, self.dev_Y),
                partition,
                config.rank.negatives,
                config.solver,
                config.search,
                config.train.metric,
                seed,
                self.progress,
            )
            return {name: np.asarray(value) for name, value in chosen}

        return FeatureChoice(
            **{name: value.item() for name, value in finish_stage(folder, "features", compute).items()}
        )

    def _train_ranker(
        self, partition: Partition, clusters: Ranking, vectors: NDArray[np.float32] | None, joins: bool, seed: int
    ) -> LinearTree:
        config, progress = self.config, self.progress
        X = self.X if vectors is None or not joins else join_features(self.X, vectors)
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

    def _store_frozen(self, body: PooledEncoder, inputs: Inputs) -> None:
        """Compute the states of the frozen layers, once for all members, which start from the same weights."""
        from xmtc.neural.lower import keep_lower_states

        given = [inputs, Inputs(self.dev_tokens, body.layout)]
        config = self.config
        kept = keep_lower_states(
            body.encoder, config.encoder.freeze_layers, given, body.pool, self.progress, config.train.precision
        )
        self.tokens, self.dev_tokens = (each.tokens for each in kept)

    def _build_network(self, seed: int, n_clusters: int) -> ClusterMatcher:
        torch.manual_seed(seed)
        return ClusterMatcher(self._build_body(seed), n_clusters, self.config.match)

    def _build_body(self, seed: int) -> PooledEncoder | Xttention:
        config = self.config
        words = None if self.reader is None else self.reader.tokenizer
        if not isinstance(words, Words):
            self.progress.stage("loading the encoder")
            shared = None if self.reader is None else self.reader.frozen_words
            encoder = load_encoder(config.encoder)[0]
            if self.tokens.states is not None:
                from xmtc.neural.lower import divide

                encoder.halves = divide(encoder, config.encoder.freeze_layers)
            return PooledEncoder(encoder, config.encoder, shared)
        vectors = torch.from_numpy(fill_vectors(self.known_words, len(words), config.words.width, seed))
        body = Xttention(vectors.shape[0], vectors.shape[1], config.xttention)
        body.words.weight.data.copy_(vectors)
        return body


def _linear(tree: LinearTree, config: XbertConfig) -> LinearMatcher:
    """Build a linear matcher; it is trained on margins, even if combined with probabilities of clusters."""
    beside = config.match.kind != "linear" and config.match.loss == "bce"
    search = config.search.model_copy(update={"cluster": "l2-hinge"}) if beside else config.search
    return LinearMatcher(tree, search)


def _reads_vectors(config: XbertConfig, choice: FeatureChoice | None) -> bool:
    """Return whether rankers read the matcher's vectors: from the settings, or from the choice on dev."""
    return config.rank.embedding is True if choice is None else choice.joined


def _join(
    network: ClusterMatcher | None, linear: LinearMatcher | None, config: XbertConfig, keeps_vectors: bool
) -> Matcher:
    """Build the matcher of a member from the parts that it has."""
    if network is None:
        assert linear is not None  # settings give a member at least one part
        return linear
    neural = NeuralMatcher(network, config.search.cluster, config.search.adds, keeps_vectors)
    return neural if linear is None else JointMatcher(neural, linear, config.match.linear)


METHOD = XbertMethod()
