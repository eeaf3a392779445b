"""Rank with an exported X-BERT model: neural matchers are ONNX graphs; index, linear matchers, rankers as trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.storage import FolderReader, FolderWriter
from xmtc.core.texts import Texts
from xmtc.features.tfidf import Tfidf, TfidfConfig
from xmtc.features.tokens import Tokens, tokenize
from xmtc.features.words import Words
from xmtc.linear.chunks import LinearTree
from xmtc.methods.xbert.matching import Transform, transform_scores
from xmtc.methods.xbert.model import (
    EnsembleConfig,
    JointMatcher,
    LinearMatcher,
    Matcher,
    StagedModel,
    XbertDetails,
    restore_member,
)
from xmtc.methods.xbert.ranker import StagedSearchConfig
from xmtc.neural.frozen import (
    AnySettings,
    FrozenInputs,
    FrozenSpec,
    Shape,
    TextReader,
    best_columns,
    join_windows,
    own_files,
    pick,
    read_spec,
    read_tokenizer,
    read_weights,
)
from xmtc.neural.graph import Graph


class XbertSpec(FrozenSpec):
    """Settings of the matchers, stored in an exported model."""

    words: bool = False  # whether texts are read as words (X-ttention), without an encoder's tokenizer
    vectors: bool = False  # whether rankers read the matcher's vectors
    linear: float = Field(0.0, ge=0, le=1)  # share of a linear matcher next to the neural one
    linear_transform: Transform  # of its margins


@dataclass(frozen=True, eq=False)
class FrozenMatcher:
    """A graph and a layer over the clusters; see `model.Matcher`."""

    graph: Graph
    weights: Mapping[str, NDArray[np.float32]]
    spec: XbertSpec
    search: StagedSearchConfig
    files: Mapping[str, NDArray[np.uint8]]

    def match(
        self, X: sp.csr_matrix, tokens: Tokens | None, k: int, progress: Progress = SILENT
    ) -> tuple[Ranking, NDArray[np.float32] | None]:
        """Return each text's k best clusters, with transformed scores, and its vector if rankers read it."""
        assert tokens is not None  # a neural matcher has a reader
        weight, bias = self.weights["output.weight"], self.weights["output.bias"]
        n, k = len(tokens), min(k, len(weight))
        clusters = np.zeros((n, k), dtype=np.int32)
        scores = np.zeros((n, k), dtype=np.float32)
        vectors = np.zeros((n, weight.shape[1]), dtype=np.float32) if self.spec.vectors else None
        done = 0
        for batch in FrozenInputs(tokens, self.spec.layout).batches():
            found = self.graph.run(batch.feeds())["text"]
            text = join_windows(found, batch, self.spec.window_pool, self.weights.get("attention"))
            raw = text @ weight.T + bias
            chosen = best_columns(raw, k)
            clusters[batch.rows], scores[batch.rows] = chosen, pick(raw, chosen)
            if vectors is not None:
                vectors[batch.rows] = text
            done += len(batch.rows)
            progress.step(done, n)
        return transform_scores(Ranking.best(clusters, scores, k), self.search.cluster, self.search.adds), vectors

    def save(self, out: FolderWriter, prefix: str) -> None:
        """Write the graph and the layer unchanged."""
        for name, content in self.files.items():
            out.data(name, content)


@dataclass(frozen=True, eq=False)
class FrozenReader:
    """Tokens of texts, for all members; see `model.Reader`."""

    tokenizer: TextReader
    files: Mapping[str, NDArray[np.uint8]]

    def __call__(self, texts: Texts) -> Tokens:
        """Tokenize texts."""
        return tokenize(texts, self.tokenizer)

    def save(self, out: FolderWriter) -> None:
        """Write the tokenizer or the vocabulary unchanged."""
        for name, content in self.files.items():
            out.data(name, content)


def load_frozen(reader: FolderReader) -> StagedModel:
    """Load an exported model."""
    manifest, _, labels = reader.open(AnySettings, XbertDetails)
    spec, config = read_spec(reader, XbertSpec), manifest.config
    search = StagedSearchConfig.model_validate(config["search"])
    beside = search.model_copy(update={"cluster": spec.linear_transform})
    tokenizer: TextReader = read_tokenizer(reader, spec) if not spec.words else _read_words(reader, spec)
    tfidf = Tfidf.from_arrays(reader.arrays("tfidf"), TfidfConfig.model_validate(config["tfidf"]))
    members = []
    for i, details in enumerate(manifest.details.members):
        prefix = f"member-{i}"
        own = {name: reader.data(name) for name in (f"{prefix}/graph.onnx", f"{prefix}/head.safetensors")}
        shapes: dict[str, Shape] = {"output.weight": (details.clusters, "d"), "output.bias": (details.clusters,)}
        weights = read_weights(reader, shapes, optional={"attention": ("d",)}, name=f"{prefix}/head")
        matcher: Matcher = FrozenMatcher(Graph(reader, f"{prefix}/graph.onnx"), weights, spec, search, own)
        linear = None
        if details.matcher is not None:
            tree = LinearTree.restore(reader.arrays(f"{prefix}/matcher"), details.matcher, details.clusters)
            linear = LinearMatcher(tree, beside)
            matcher = JointMatcher(matcher, linear, spec.linear)
        widths = (len(tfidf.vocabulary), weights["output.weight"].shape[1] if spec.vectors else 0)
        members.append(restore_member(reader, i, details, labels.n_labels, matcher, linear, widths))
    text_reader = FrozenReader(tokenizer, own_files(reader, "words/"))
    ensemble = EnsembleConfig.model_validate(config["ensemble"])
    return StagedModel(manifest, labels, tfidf, text_reader, tuple(members), search, ensemble)


def _read_words(reader: FolderReader, spec: XbertSpec) -> Words:
    return Words.from_arrays(reader.arrays("words"), spec.max_length)
