"""StagedModel: retrieve clusters of labels and rank the labels in them, with one or several members.

Input: texts. Output: rankings and explanations. This module knows matchers, including neural ones, only by their
interface; their networks and tokenizers are elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.ensemble import BY_LIST, Rule, combine
from xmtc.core.errors import DataError, ModelError
from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet, name_cluster
from xmtc.core.metrics import TruthMode
from xmtc.core.model import DisplayedModel, Documents, check_k, pack_texts
from xmtc.core.partition import Partition, cluster_targets
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Details, Epoch, FolderReader, FolderWriter, Manifest, Record, write_folder
from xmtc.core.stored_arrays import check_array
from xmtc.core.texts import Texts
from xmtc.features.tfidf import Tfidf, word_shares
from xmtc.features.tokens import Tokens
from xmtc.linear.chunks import LinearTree, TreeShape
from xmtc.methods.xbert.feature_choice import FeatureChoice
from xmtc.methods.xbert.index import VectorKind
from xmtc.methods.xbert.matching import recall_in_clusters, score_clusters, take_logarithm
from xmtc.methods.xbert.ranker import StagedSearchConfig, join_features, label_score, match_linearly, rank_in_clusters

_BATCH = 2048  # documents whose clusters are scored at once
_SCORED = 5  # clusters needed for P@5
_WIDER = 2  # times k clusters are retrieved by each of two matchers


class EnsembleConfig(Settings):
    """Settings of how members are combined."""

    rule: Rule = Field(
        "mean", description="as in `xmtc ensemble`; with mean, a label that a member leaves out scores 0"
    )
    width: int = Field(
        20,
        ge=1,
        le=100_000,
        description="labels that each of several members proposes; with mean and sigmoid, k if that is more",
    )

    def depth(self, k: int) -> int:
        """Return how many labels each of several members ranks when k are requested.

        For rules based on positions the number is fixed, otherwise scores would depend on k.
        """
        return self.width if self.rule in BY_LIST else max(k, self.width)


class MemberDetails(Record):
    """Facts that a model stores about one member, next to settings and arrays."""

    vectors: VectorKind
    seed: int
    clusters: int = Field(ge=1, lt=2**31)
    curve: list[Epoch]
    coarse_curve: list[Epoch] = Field(default_factory=list)  # of the earlier epochs, on coarser clusters (match.coarse)
    matcher: TreeShape | None = None  # of a linear matcher
    ranker: TreeShape


class XbertDetails(Details):
    """Facts that a model stores next to its settings and arrays."""

    features: None = None  # it ranks texts only
    members: list[MemberDetails] = Field(min_length=1)
    clusters: int
    feature_choice: FeatureChoice | None = None  # with rank.embedding = auto


class Matcher(Protocol):
    """Finds the clusters that may contain a document's labels."""

    def match(
        self, X: sp.csr_matrix, tokens: Tokens | None, k: int, progress: Progress = SILENT
    ) -> tuple[Ranking, NDArray[np.float32] | None]:
        """Return each document's k best clusters, with transformed scores, and its vector if the ranker needs it."""

    def save(self, out: FolderWriter, prefix: str) -> None:
        """Write the trained parts."""


class Reader(Protocol):
    """Turns texts into the tokens that neural matchers read."""

    def __call__(self, texts: Texts) -> Tokens:
        """Tokenize texts."""

    def save(self, out: FolderWriter) -> None:
        """Write everything needed to tokenize again."""


@dataclass(frozen=True, eq=False)
class LinearMatcher:
    """A linear tree whose labels are the clusters; reads TF-IDF."""

    tree: LinearTree
    search: StagedSearchConfig

    def match(
        self, X: sp.csr_matrix, tokens: Tokens | None, k: int, progress: Progress = SILENT
    ) -> tuple[Ranking, None]:
        """Return each document's k best clusters."""
        return match_linearly(self.tree, X, self.search, k), None

    def save(self, out: FolderWriter, prefix: str) -> None:
        """Write the tree's arrays."""
        out.arrays(f"{prefix}/matcher", self.tree.arrays())


@dataclass(frozen=True, eq=False)
class JointMatcher:
    """Two matchers of the same clusters: an encoder reads the beginning of a text, a linear tree all of its words.

    A cluster's score is the mean of both transformed scores, weighted by `share`. Each matcher retrieves 2k clusters
    and scores all others 0.
    """

    neural: Matcher
    linear: LinearMatcher
    share: float  # of the linear matcher

    def match(
        self, X: sp.csr_matrix, tokens: Tokens | None, k: int, progress: Progress = SILENT
    ) -> tuple[Ranking, NDArray[np.float32] | None]:
        """Return each document's k best clusters by both, and the texts' vectors if the ranker reads them."""
        wider = min(_WIDER * k, len(self.linear.tree.leaf_labels))  # the leaves are the clusters
        first, vectors = self.neural.match(X, tokens, wider, progress)
        found = [first, self.linear.match(X, tokens, wider)[0]]
        weights = (1 - self.share, self.share)
        if not self.linear.search.adds:
            return combine(found, k, weights=weights), vectors
        joined = combine([Ranking(each.labels, np.exp(each.scores)) for each in found], k, weights=weights)
        return take_logarithm(joined), vectors

    def save(self, out: FolderWriter, prefix: str) -> None:
        """Write both matchers."""
        self.neural.save(out, prefix)
        self.linear.save(out, prefix)


@dataclass(frozen=True, eq=False)
class Member:
    """One index, one matcher, one ranker."""

    partition: Partition
    matcher: Matcher
    ranker: LinearTree

    def match(
        self, X: sp.csr_matrix, tokens: Tokens | None, beam: int, progress: Progress = SILENT
    ) -> tuple[Ranking, NDArray[np.float32] | None]:
        """Do the same as the matcher's `match`; a beam larger than the number of clusters takes all."""
        return self.matcher.match(X, tokens, min(beam, self.partition.n_clusters), progress)


def restore_member(
    reader: FolderReader,
    number: int,
    details: MemberDetails,
    n_labels: int,
    matcher: Matcher,
    linear: LinearMatcher | None,
    widths: tuple[int, int],
) -> Member:
    """Load one member around its matcher; raise unless its parts fit together, which searches rely on.

    linear: the linear part of the matcher. widths: of TF-IDF, and of the text's vector if the ranker reads it, else 0.
    """
    place, inside = f"member-{number}", (0, details.clusters - 1)
    parents = check_array(reader.arrays(f"{place}/index"), "parents", "int32", length=n_labels, within=inside)
    ranker = LinearTree.restore(reader.arrays(f"{place}/ranker"), details.ranker, n_labels)
    partition = Partition(parents, details.clusters)
    if not _fits(partition, ranker, linear, widths):
        raise ModelError(f"{reader.folder / place}: index, matcher and ranker differ; train again")
    return Member(partition, matcher, ranker)


def _fits(partition: Partition, ranker: LinearTree, linear: LinearMatcher | None, widths: tuple[int, int]) -> bool:
    """Return whether the parts of a stored member have the same clusters and features."""
    n_clusters, starts = partition.n_clusters, ranker.child_starts
    if len(starts) != n_clusters + 1 or starts[0] != n_clusters or len(ranker.leaf_labels) != len(partition):
        return False
    clusters = np.repeat(np.arange(n_clusters), np.diff(starts))
    same = np.array_equal(partition.parents[ranker.leaf_labels], clusters) and ranker.shape.n_features == sum(widths)
    if linear is None:
        return same
    return same and linear.tree.shape.n_features == widths[0] and len(linear.tree.leaf_labels) == n_clusters


@dataclass(frozen=True, eq=False, repr=False)
class StagedModel(DisplayedModel):
    """A trained model of three stages; see `xmtc.core.model.Model`."""

    manifest: Manifest[XbertDetails]
    labels: LabelSet
    tfidf: Tfidf
    reader: Reader | None  # None: the matchers read TF-IDF
    members: tuple[Member, ...]
    search: StagedSearchConfig
    ensemble: EnsembleConfig

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each text; it is vectorised and tokenized once for all members."""
        check_k(k)
        return self._rank(*self._read(pack_texts(documents)), k)[0]

    def rank_in_stages(
        self, corpus: Corpus, k: int = 5, truth: TruthMode = "all", progress: Progress = SILENT
    ) -> tuple[Ranking, dict[str, Any]]:
        """Rank a corpus and measure the matching stage of each member.

        The measures, in percent: P@k of its clusters, and the recall of the true labels in the clusters that it
        retrieves. `truth` as in `xmtc.evaluate`.
        """
        if corpus.texts is None:
            raise ModelError("this model ranks texts, and the corpus has only features; give it the texts")
        if len(corpus) == 0:
            raise DataError("the corpus has no documents")
        check_k(k)
        beam = self.search.beam
        ranked: list[Ranking] = []
        retrieved: list[list[Ranking]] = [[] for _ in self.members]  # the clusters whose labels are ranked
        best: list[list[Ranking]] = [[] for _ in self.members]
        progress.stage("ranking")
        for start in range(0, len(corpus), _BATCH):
            X, tokens = self._read(corpus.texts.take(np.arange(start, min(start + _BATCH, len(corpus)))))
            ranking, clusters = self._rank(X, tokens, k)
            ranked.append(ranking)
            for i, member in enumerate(self.members):
                retrieved[i].append(clusters[i])
                # a beam of fewer than 5 clusters is too short for P@5; the wider search is for the metric only
                best[i].append(clusters[i] if beam >= _SCORED else member.match(X, tokens, _SCORED)[0])
            progress.step(min(start + _BATCH, len(corpus)), len(corpus))
        stacked = ([Ranking.stack(found) for found in each] for each in (best, retrieved))
        return Ranking.stack(ranked), {"matching": self._measure(corpus, truth, *stacked)}

    def _rank(self, X: sp.csr_matrix, tokens: Tokens | None, k: int) -> tuple[Ranking, list[Ranking]]:
        """Return the k best labels of each document, and the clusters that each member found them in."""
        width = k if len(self.members) == 1 else self.ensemble.depth(k)
        found, retrieved = [], []
        for member in self.members:
            clusters, vectors = member.match(X, tokens, self.search.beam)
            found.append(rank_in_clusters(member.ranker, _features(X, vectors), clusters, self.search, width))
            retrieved.append(clusters)
        joined = found[0] if len(found) == 1 else combine(found, k, self.ensemble.rule)
        return replace(joined.padded(k), label_set=self.labels), retrieved

    def _measure(
        self, corpus: Corpus, truth: TruthMode, best: list[Ranking], retrieved: list[Ranking]
    ) -> list[dict[str, Any]]:
        Y = corpus.align(self.labels).Y
        if truth == "known":
            Y = Y[:, : self.labels.n_labels].tocsr()
        rows = np.arange(len(corpus)) if truth == "all" else np.flatnonzero(np.diff(Y.indptr))
        if len(rows) == 0:
            return []
        measured = []
        for i, (member, details) in enumerate(zip(self.members, self.manifest.details.members, strict=True)):
            scores = score_clusters(_some(best[i], rows), cluster_targets(Y[rows], member.partition))
            recall = recall_in_clusters(_some(retrieved[i], rows), member.partition, Y[rows])
            known = details.model_dump(include={"vectors", "seed", "clusters"}) | {"beam": self.search.beam}
            measured.append({**known, **{key: scores[key] for key in ("P@1", "P@3", "P@5")}, "recall": recall})
        return measured

    def explain(self, text: str, label: str) -> Explanation:
        """Explain which words of a text affect the rankers' score for a label, averaged over members.

        Also return the scores of the label's cluster and of the label itself in the first member.
        """
        entry = self.labels.find_trained(label)
        X, tokens = self._read(Texts.pack([text]))
        push = np.zeros(X.shape[1], dtype=np.float64)
        path: list[tuple[str, float]] = []
        alone = []  # the label's scores, as if its cluster had been retrieved
        for member in self.members:
            cluster = int(member.partition.parents[entry])
            clusters, vectors = member.match(X, tokens, self.search.beam)
            if cluster not in clusters.labels[0]:  # compute its score as if it had been retrieved
                clusters, vectors = member.match(X, tokens, member.partition.n_clusters)
            features = _features(X, vectors)
            raw, weighted, weights = label_score(member.ranker, features, entry)
            words = weighted < X.shape[1]  # the other features are the text's vector and the bias
            scale = np.linalg.norm(features.data[: X.nnz])  # with a vector appended, TF-IDF has a smaller norm
            push[weighted[words]] += scale * weights[words] / len(self.members)
            at = clusters.labels[0] == cluster
            only = Ranking(clusters.labels[:, at], clusters.scores[:, at])
            inside = rank_in_clusters(member.ranker, features, only, self.search, self.labels.n_labels)
            alone.append(float(inside.scores[0][inside.labels[0] == entry][0]))
            if not path:
                name = name_cluster(self.labels, member.partition.members(cluster))
                path = [(name, float(only.scores[0, 0])), (self.labels.names[entry], raw)]
        return Explanation(
            label=self.labels.ids[entry],
            score=self._score(text, entry, float(np.mean(alone))),
            method=self.manifest.method,
            spans=word_shares(self.tfidf, text, push),
            path=tuple(path),
            text=text,
        )

    def _score(self, text: str, entry: int, alone: float) -> float:
        """Return the score that `rank` gives the label; if it is not listed, the score in a longer ranking.

        If that does not list it either, return `alone`, or 0 for a rule that does not use scores.
        """
        everything = self.labels.n_labels
        # members rank `width` labels, and more only if more are requested
        lists = (everything,) if len(self.members) == 1 else (min(self.ensemble.width, everything), everything)
        for k in lists:
            ranking = self.rank([text], k)
            found = ranking.scores[0][ranking.labels[0] == entry]
            if len(found):
                return float(found[0])
        return alone if len(self.members) == 1 or self.ensemble.rule == "mean" else 0.0

    def known_words(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return two counts for each text: the distinct words that the model knows, and all distinct words."""
        return self.tfidf.known_words(texts)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write one model folder for all members, atomically."""
        with write_folder(folder, overwrite=overwrite) as out:
            out.labels(self.labels)
            out.arrays("tfidf", self.tfidf.arrays())
            if self.reader is not None:
                self.reader.save(out)
            for i, member in enumerate(self.members):
                out.arrays(f"member-{i}/index", {"parents": member.partition.parents})
                out.arrays(f"member-{i}/ranker", member.ranker.arrays())
                member.matcher.save(out, f"member-{i}")
            out.manifest(self.manifest)

    def _read(self, texts: Texts) -> tuple[sp.csr_matrix, Tokens | None]:
        """Return the features and tokens of the texts, which all members share."""
        return self.tfidf.transform(texts), None if self.reader is None else self.reader(texts)


def _some(clusters: Ranking, rows: NDArray[np.int64]) -> Ranking:
    return Ranking(clusters.labels[rows], clusters.scores[rows])


def _features(X: sp.csr_matrix, vectors: NDArray[np.float32] | None) -> sp.csr_matrix:
    """Return the features that the ranker reads."""
    return X if vectors is None else join_features(X, vectors)
