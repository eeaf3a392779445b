"""A learned ensemble: boosted trees estimate how likely each candidate label is correct.

The members rank. `candidates.py` computes a row of features for each label that a member lists. Trees predict from it
whether the label is correct. They are trained on documents that no member was trained on. docs/methods/ensemble.md
describes the features, the weights of rare labels and their cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from xmtc.core.abilities import can_rank, count_ranked
from xmtc.core.calibration import Calibration, fit_calibration
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError, ModelError
from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet
from xmtc.core.lessons import Lesson
from xmtc.core.metrics import evaluate, find_right
from xmtc.core.model import DisplayedModel, Documents, Model, check_k
from xmtc.core.progress import SILENT, Progress
from xmtc.core.propensity import inverse_propensity
from xmtc.core.ranking import Ranking
from xmtc.core.storage import FolderReader, Manifest, write_folder
from xmtc.features.boosting import Trees, grow_trees
from xmtc.methods.ensemble.candidates import OF_EACH_MEMBER, Candidates, NameShares, feature_names, find_candidates
from xmtc.methods.ensemble.explanations import join_explanations
from xmtc.methods.ensemble.members import (
    EnsembleConfig,
    EnsembleDetails,
    Standing,
    count_documents,
    find_entries,
    mark_hidden,
    rename,
    save_members,
    unite_concepts,
)

_TREES = "trees.txt"
_HALVES = 2  # trees trained on one half of the documents score the other half, for calibration
_SCORED = 5  # labels per document that the leaderboard needs
_FEWEST = 10  # minimum number of labelled documents to learn from


@dataclass(frozen=True, eq=False)
class Taught:
    """The result of training: the trees, the calibration of their scores, and the scores of ensemble and members."""

    text: str  # the trees, in LightGBM's text format
    calibration: Calibration
    board: list[Standing]  # the ensemble, then its members
    ranking: Ranking  # of the lessons' documents in order, by trees not trained on them; no hidden labels


def teach(
    manifest: Manifest[EnsembleDetails],
    config: EnsembleConfig,
    labels: LabelSet,
    corpus: Corpus,
    lessons: Iterable[Lesson],
    member_names: Sequence[str],
    progress: Progress = SILENT,
) -> Taught:
    """Train the trees on rankings by models that were not trained on the documents.

    The leaderboard reports the scores of the ensemble and of each member on these documents. The ensemble's scores come
    from trees trained on the other half of the documents.

    The calibration uses scores that trees trained on one half of the documents give to the other half. So it holds for
    new documents and corrects for the weights of rare labels. Labels that a lesson hid count as unseen in it, and the
    leaderboard excludes them.
    """
    aligned = corpus.align(labels)
    taught, right, rows, listed, hidden = _study(lessons, aligned, labels)
    if len(rows) < _FEWEST:
        raise DataError(f"a learned ensemble needs {_FEWEST} labelled documents or more; got {len(rows)}")
    if not right.any():
        raise DataError("no member lists a true label of any of these documents; there is nothing to learn")
    rarity = inverse_propensity(aligned.labels.counts, manifest.n_documents, config.propensity)
    rare = rarity[taught.labels]
    if hidden is not None:  # a hidden label has no documents in its lesson
        unseen = np.asarray(hidden[taught.rows, taught.labels]).ravel() > 0
        rare[unseen] = inverse_propensity(np.zeros(1, np.int64), manifest.n_documents, config.propensity)[0]
    weights = np.where(right, rare**config.tail, 1.0)
    names = feature_names(len(manifest.details.members))

    def grow(chosen: NDArray[np.bool_]) -> str:
        return grow_trees(taught.features[chosen], right[chosen], weights[chosen], names, config.booster, manifest.seed)

    progress.stage("learning")
    # `take` recounts the labels; keep the counts of training, which define the label bins
    documents, scores = replace(aligned.take(rows), labels=aligned.labels), np.zeros(len(right))
    for i, half in enumerate(documents.fold(_HALVES, manifest.seed)):
        inside = np.isin(taught.rows, half)
        scores[inside] = expit(Trees.parse(grow(~inside), names).score(taught.features[inside]))
        progress.step(i + 1, _HALVES + 1)
    n_entries = len(documents.labels)
    ranking = _rank(taught.rows, taught.labels, scores, len(rows), n_entries, config.depth)
    calibration = fit_calibration(*_as_unseen(ranking, documents, hidden), "isotonic", _SOURCE)
    text = grow(np.ones(len(right), dtype=bool))
    progress.step(_HALVES + 1, _HALVES + 1)

    shown = documents.Y if hidden is None else documents.Y - documents.Y.multiply(hidden)

    def show(ranking: Ranking) -> Ranking:
        return ranking if hidden is None else ranking.keep((ranking.labels >= 0) & ~find_right(ranking, hidden))

    def score(ranking: Ranking) -> dict[str, float]:
        found = evaluate(
            show(ranking), shown, aligned.labels, manifest.n_documents, mode="known", propensity=config.propensity
        )
        return {key: round(found[key], 2) for key in SHOWN}

    gains = Trees.parse(text, names).gains()[: len(member_names) * len(OF_EACH_MEMBER)]
    by_member = gains.reshape(len(member_names), -1).sum(axis=1)
    shares = by_member / max(by_member.sum(), 1e-12)
    board = [Standing(name=_ALL, scores=score(ranking))]
    for name, own, share in zip(member_names, listed, shares.tolist(), strict=True):
        board.append(Standing(name=name, scores=score(own), share=round(share, 4)))
    return Taught(text, calibration, board, show(ranking).padded(config.depth))


SHOWN = ("P@1", "P@5", "PSP@5")  # metrics in the leaderboard
_ALL = "ensemble"
_SOURCE = "that the ensemble learnt from (scored by trees that had not seen them)"


def _study(
    lessons: Iterable[Lesson], aligned: Corpus, labels: LabelSet
) -> tuple[Candidates, NDArray[np.bool_], NDArray[np.int64], list[Ranking], sp.csr_matrix | None]:
    """Return the candidates of all lessons, whether each is correct, their documents' rows, and each member's ranking.

    Candidates number documents by their position in the rows. The last result is a (rows × entries) matrix of the
    labels that were hidden from the members when they ranked a row, or None if no lesson hides labels.
    """
    names, n_entries = NameShares.of_labels(labels), len(aligned.labels)
    truth = np.repeat(np.arange(len(aligned)), np.diff(aligned.Y.indptr)) * n_entries + aligned.Y.indices
    found, right, rows = [], [], [np.zeros(0, dtype=np.int64)]
    listed: list[list[Ranking]] = []
    hidden: list[sp.csr_matrix] = []
    for lesson in lessons:
        rankings = [
            rename(ranking, find_entries(labels, own))
            for ranking, own in zip(lesson.rankings, lesson.labels, strict=True)
        ]
        # counts of the documents that these models saw, not those that the members saw
        counts = count_documents(labels, lesson.labels)
        texts = None if aligned.texts is None else aligned.texts.take(lesson.rows)
        candidates = find_candidates(rankings, counts, names, texts)
        right.append(np.isin(lesson.rows[candidates.rows] * n_entries + candidates.labels, truth))
        found.append(replace(candidates, rows=candidates.rows + sum(map(len, rows))))
        rows.append(lesson.rows)
        hidden.append(mark_hidden(lesson, labels, n_entries))
        listed.append([ranking.top(_SCORED).padded(_SCORED) for ranking in rankings])
    together = Candidates(
        np.concatenate([one.rows for one in found]),
        np.concatenate([one.labels for one in found]),
        np.concatenate([one.features for one in found]),
    )
    by_member = [Ranking.stack(list(parts)) for parts in zip(*listed, strict=True)]
    hides = sp.vstack(hidden, format="csr") if any(part.nnz for part in hidden) else None
    return together, np.concatenate(right), np.concatenate(rows), by_member, hides


def _as_unseen(
    ranking: Ranking, documents: Corpus, hidden: sp.csr_matrix | None
) -> tuple[Ranking, sp.csr_matrix, LabelSet]:
    """Return a ranking, its truth and its labels, with labels hidden from a row replaced by copies without documents.

    So probabilities of unseen labels are learned only from unseen labels, and those of the others only from seen ones.
    """
    if hidden is None:
        return ranking, documents.Y, documents.labels
    width, counts = len(documents.labels), documents.labels.counts
    unseen = find_right(ranking, hidden)
    twins = np.where(unseen, ranking.labels + width, ranking.labels).astype(np.int32)
    shown = documents.Y - documents.Y.multiply(hidden)
    truth = sp.hstack([shown, documents.Y.multiply(hidden)], format="csr")
    truth.eliminate_zeros()
    truth.sort_indices()
    return replace(ranking, labels=twins), truth, documents.labels.with_counts(np.append(counts, np.zeros_like(counts)))


def read_learned(
    reader: FolderReader,
    manifest: Manifest[EnsembleDetails],
    config: EnsembleConfig,
    labels: LabelSet,
    members: tuple[Model, ...],
) -> LearnedEnsemble:
    """Rebuild a learned ensemble from its loaded members."""
    text = reader.text(_TREES)
    if text is None:
        raise ModelError(f"{reader.folder / _TREES} is missing; copy the model folder again")
    model = LearnedEnsemble(manifest, labels, members, config.depth, text)
    _ = model.trees  # raise now if the text is not in LightGBM's format
    return model


@dataclass(frozen=True, eq=False, repr=False)
class LearnedEnsemble(DisplayedModel):
    """Models whose rankings are scored by trees; see `xmtc.core.model.Model`. Scores are the trees', from 0 to 1."""

    manifest: Manifest[EnsembleDetails]
    labels: LabelSet
    members: tuple[Model, ...]
    depth: int  # number of candidates per member
    text: str  # the trees, in LightGBM's text format

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each document.

        A document with fewer than k candidates also gets labels from further down the members' rankings. These are
        sorted by the best position that a member gives them; their score is that position, negated.
        """
        check_k(k)
        return self.judge(self._rank_each(documents, max(k, self.depth)), documents, k)

    def judge(self, rankings: Sequence[Ranking], documents: Documents, k: int) -> Ranking:
        """Return the k best labels of documents that the members have already ranked, over the ensemble's labels."""
        found = self._candidates(rankings, documents)
        scores = expit(self.trees.score(found.features))
        rows, labels = found.rows, found.labels
        if k > self.depth:
            deeper = _find_deeper(rankings, self.depth, rows, labels, len(self.labels))
            rows, labels, scores = (np.concatenate(pair) for pair in zip((rows, labels, scores), deeper, strict=True))
        ranking = _rank(rows, labels, scores, len(rankings[0]), len(self.labels), k)
        return replace(ranking, label_set=self.labels)

    def explain(self, text: str, label: str) -> Explanation:
        """Explain with the members that know the label, weighted by how much each ranking added to the score."""
        entry = self.labels.find(label)
        if not can_rank(self, self.labels.ids[entry]):
            raise DataError(f"label {label!r} has no training document, so no member ever suggests it")
        rankings = self._rank_each([text], self.depth)
        found = self._candidates(rankings, [text])
        features = found.features[found.labels == entry]
        if len(features):
            score = float(np.float32(expit(self.trees.score(features))[0]))
            added = self.trees.share_out(features[0])[: len(self.members) * len(OF_EACH_MEMBER)]
            worth = np.maximum(added.reshape(len(self.members), -1).sum(axis=1), 0)
        else:
            score, worth = self._score_deeper(text, entry), np.zeros(len(self.members))
        id = self.labels.ids[entry]
        knows = np.array([can_rank(member, id) for member in self.members])
        worth = np.where(knows, worth if worth[knows].sum() > 0 else 1.0, 0.0)
        shares = (worth / worth.sum()).tolist()
        explained = [(m.explain(text, id), share) for m, share in zip(self.members, shares, strict=True) if share > 0]
        return join_explanations(id, score, explained)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write one folder that holds all members and the trees."""
        with write_folder(folder, overwrite=overwrite) as out:
            save_members(out, self.labels, self.members)
            out.text(_TREES, self.text)
            out.manifest(self.manifest)

    @cached_property
    def trees(self) -> Trees:
        """Return the trees, validated."""
        return Trees.parse(self.text, feature_names(len(self.manifest.details.members)))

    @cached_property
    def ranked_concepts(self) -> NDArray[np.int64]:
        """Return entries without training documents that a member can rank."""
        return unite_concepts(self.labels, self.members)

    @cached_property
    def _entries(self) -> list[NDArray[np.int32]]:
        return [find_entries(self.labels, member.labels) for member in self.members]

    @cached_property
    def _names(self) -> NameShares | None:
        return None if self.manifest.details.features is not None else NameShares.of_labels(self.labels)

    def _rank_each(self, documents: Documents, k: int) -> list[Ranking]:
        """Return each member's ranking, over the ensemble's labels."""
        return [
            rename(member.rank(documents, k), entries)
            for member, entries in zip(self.members, self._entries, strict=True)
        ]

    def _candidates(self, rankings: Sequence[Ranking], documents: Documents) -> Candidates:
        texts = None if sp.issparse(documents) else documents
        lists = [ranking.top(self.depth) for ranking in rankings]
        return find_candidates(lists, self.labels.counts, self._names, texts)

    def _score_deeper(self, text: str, entry: int) -> float:
        """Return the score of a label that is no candidate: from its position further down, or below all positions."""
        k, n_ranked = self.depth, count_ranked(self)
        while k < n_ranked:
            k = min(4 * k, n_ranked)
            ranking = self.rank([text], k)
            if (ranking.labels == entry).any():
                return float(ranking.scores[ranking.labels == entry][0])
        return -float(n_ranked + 1)


def _find_deeper(
    rankings: Sequence[Ranking], depth: int, rows: NDArray[np.int64], labels: NDArray[np.int64], width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the labels below the candidates: their documents, the labels, and their best positions from 1, negated."""
    keys, places = [], []
    for ranking in rankings:
        below = ranking.labels[:, depth:]
        listed = below >= 0
        keys.append((np.arange(len(below))[:, None] * width + below)[listed])
        places.append(np.broadcast_to(np.arange(depth + 1, ranking.k + 1), below.shape)[listed])
    found, which = np.unique(np.concatenate(keys), return_inverse=True)
    best = np.full(len(found), width + 1.0)
    np.minimum.at(best, which, np.concatenate(places))
    new = ~np.isin(found, rows * width + labels)
    return found[new] // width, found[new] % width, -best[new]


def _rank(
    rows: NDArray[np.int64], labels: NDArray[np.int64], scores: NDArray[np.float64], n: int, width: int, k: int
) -> Ranking:
    """Rank scored pairs of a document and a label, given in any order."""
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return Ranking.from_csr(sp.csr_matrix((scores[order], labels[order], indptr), shape=(n, width)), k)
