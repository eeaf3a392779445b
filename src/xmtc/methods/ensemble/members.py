"""Combine the members' settings and labels; used by fixed-rule ensembles and by learned ensembles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.abilities import find_concepts
from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.ensemble import AnyRule
from xmtc.core.errors import ConfigError
from xmtc.core.labels import LabelSet
from xmtc.core.lessons import Lesson
from xmtc.core.model import Model
from xmtc.core.propensity import Propensity
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Details, FolderWriter, Manifest, Record
from xmtc.features.boosting import BoosterConfig

NAME = "ensemble"


class EnsembleConfig(Settings):
    """Settings of how an ensemble combines its members. `tail` to `booster` apply to the rule "learned"."""

    rule: AnyRule = "mean"
    weights: tuple[float, ...] | None = None  # None: equal
    propensity: Propensity = Field(default_factory=Propensity)
    tail: float = Field(
        0.0, ge=0, le=1, description="a right label weighs its inverse propensity to this power; 0: all weigh the same"
    )
    depth: int = Field(20, ge=1, le=10_000, description="number of labels per member that are candidates")
    documents: int = Field(12_000, ge=1, description="maximum number of labelled documents to learn from")
    booster: BoosterConfig = Field(default_factory=BoosterConfig)
    share: float = Field(0.2, ge=0, le=1, description="share of the documents that a cascade's expensive model ranks")


class Standing(Record):
    """One line in the leaderboard of a learned ensemble: a member, or the ensemble itself."""

    name: str
    scores: dict[str, float]  # percent, on the documents that the ensemble learned from, by models not trained on them
    share: float | None = None  # member's share of the trees' total gain; None for the ensemble
    milliseconds: float | None = None  # per document on one thread, if a latency limit was set


class SharePoint(Record):
    """The scores of a cascade when this share of the documents goes to the expensive model."""

    share: float
    scores: dict[str, float]  # percent, on the documents that the cascade learned from, by gates not trained on them


class EnsembleDetails(Details):
    """Facts that an ensemble stores next to its settings."""

    members: list[str] = Field(min_length=1)  # names of their methods
    leaderboard: list[Standing] = Field(default_factory=list)  # of a learned ensemble: itself first, then the members
    cascade: list[SharePoint] = Field(default_factory=list)  # of a cascade: scores by share
    preset: str | None = None  # the preset that chose the members, if any
    left_out: list[str] = Field(default_factory=list)  # members that the preset could not train, with the reason


def check_members(members: Sequence[Model]) -> None:
    """Raise unless these models can be combined."""
    if len(members) < 2:
        raise ConfigError(f"an ensemble needs at least two models; got {len(members)}")
    if len({member.manifest.details.features for member in members}) > 1:
        raise ConfigError("an ensemble needs models of one kind of input: all on texts, or all on the same features")


def describe(
    members: Sequence[Model], config: EnsembleConfig, labels: LabelSet, seed: int, dev: str | None = None
) -> Manifest[EnsembleDetails]:
    """Return the manifest of an ensemble; dev: fingerprint of the documents that it learns from."""
    first = members[0].manifest
    taught = {} if dev is None else {"dev": dev}
    return Manifest(
        method=NAME,
        config=config.model_dump(mode="json", exclude_unset=True),
        seed=seed,
        n_labels=labels.n_labels,
        n_documents=max(member.manifest.n_documents for member in members),
        data=first.data,
        seen=first.seen,
        details=EnsembleDetails(
            features=first.details.features, members=[member.manifest.method for member in members], **taught
        ),
    )


def unite_labels(sets: Sequence[LabelSet]) -> LabelSet:
    """Return all labels that any member has parameters for, each with its largest count."""
    trained = {label for labels in sets for label in labels.ids[: labels.n_labels]}
    concepts = {concept.id: concept for labels in reversed(sets) for concept in labels.concepts()}
    union = LabelSet.build(trained, concepts.values())
    return union.with_counts(count_documents(union, sets))


def count_documents(union: LabelSet, sets: Iterable[LabelSet]) -> NDArray[np.int64]:
    """Return the training documents of each entry of a label set: the largest count among the members."""
    counts = np.zeros(len(union), dtype=np.int64)
    for labels in sets:
        entries = np.array([union.position[label] for label in labels.ids], dtype=np.int64)
        counts[entries] = np.maximum(counts[entries], labels.counts)
    return counts


def find_entries(union: LabelSet, labels: LabelSet) -> NDArray[np.int32]:
    """Map each entry of a member's labels to the ensemble's entry."""
    position = union.position
    return np.array([position[label] for label in labels.ids], dtype=np.int32)


def unite_concepts(union: LabelSet, members: Iterable[Model]) -> NDArray[np.int64]:
    """Return the ensemble's entries without training documents that a member can rank, in ascending order."""
    found = [find_entries(union, member.labels)[find_concepts(member)] for member in members]
    entries = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found]))
    return entries[entries >= union.n_labels]


def rename(ranking: Ranking, entries: NDArray[np.int32]) -> Ranking:
    """Return a member's ranking with the ensemble's entries."""
    return replace(ranking, labels=np.where(ranking.labels < 0, -1, entries[ranking.labels]), probabilities=None)


def mark_hidden(lesson: Lesson, labels: LabelSet, width: int) -> sp.csr_matrix:
    """Return a (rows × width) matrix of the labels that a lesson hid."""
    position = labels.position
    entries = np.sort(np.array([position[label] for label in lesson.hidden if label in position], dtype=np.int64))
    n = len(lesson.rows)
    ones = np.ones(n * len(entries), dtype=np.float32)
    return sp.csr_matrix((ones, np.tile(entries, n), len(entries) * np.arange(n + 1)), shape=(n, width))


def rank_shown(lesson: Lesson, labels: LabelSet) -> list[Ranking]:
    """Return a lesson's rankings over the ensemble's entries, without the labels that it hid."""
    found = [
        rename(ranking, find_entries(labels, own)) for ranking, own in zip(lesson.rankings, lesson.labels, strict=True)
    ]
    if not lesson.hidden:
        return found
    hidden = [labels.position[label] for label in lesson.hidden if label in labels.position]
    return [one.keep((one.labels >= 0) & ~np.isin(one.labels, hidden)) for one in found]


def read_lessons(lessons: Sequence[Lesson], aligned: Corpus, labels: LabelSet) -> Corpus:
    """Return the lessons' documents in order, without the labels hidden from the models that ranked them."""
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *(lesson.rows for lesson in lessons)])
    documents = replace(aligned.take(rows), labels=aligned.labels)
    if not any(lesson.hidden for lesson in lessons):
        return documents
    hidden = sp.vstack([mark_hidden(lesson, labels, len(aligned.labels)) for lesson in lessons], format="csr")
    shown = sp.csr_matrix(documents.Y - documents.Y.multiply(hidden))
    shown.eliminate_zeros()
    shown.sort_indices()
    return replace(documents, Y=shown)


def save_members(out: FolderWriter, labels: LabelSet, members: Iterable[Model]) -> None:
    """Write the labels and one folder per member."""
    out.labels(labels)
    for i, member in enumerate(members):
        member.save(out.folder / f"member-{i}")
