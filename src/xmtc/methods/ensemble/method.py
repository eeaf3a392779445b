"""Combine several models into one: each ranks, then a rule of `core.ensemble` or learned trees merge the rankings.

Members may come from any method and have any label order; labels are matched by id. This module knows no method by
name: api.py passes in the function that loads a member.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core.abilities import can_rank
from xmtc.core.calibration import CalibratedModel
from xmtc.core.config import build
from xmtc.core.corpus import Corpus
from xmtc.core.display import SHOWN
from xmtc.core.ensemble import CASCADE, LEARNED, Rule, combine
from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet
from xmtc.core.lessons import Lesson
from xmtc.core.model import DisplayedModel, Documents, Model, check_k
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.storage import FolderReader, Manifest, write_folder
from xmtc.features.boosting import check_installed
from xmtc.methods.ensemble.cascade import CascadeModel, learn_cascade, read_cascade
from xmtc.methods.ensemble.learned import LearnedEnsemble, Taught, read_learned, teach
from xmtc.methods.ensemble.members import (
    EnsembleConfig,
    EnsembleDetails,
    check_members,
    describe,
    find_entries,
    rename,
    save_members,
    unite_concepts,
    unite_labels,
)

_DEPTH = 100  # labels per member; the published ensembles combine top-100 lists


def join(members: Sequence[Model], rule: Rule = "mean", weights: Sequence[float] | None = None) -> EnsembleModel:
    """Combine several models into one."""
    if len(members) > 1 and weights is not None and len(weights) != len(members):
        raise ConfigError(f"{len(members)} models need as many weights; got {len(weights)}")
    check_members(members)
    check_rule(len(members), rule, weights)
    labels = unite_labels([member.labels for member in members])
    first = members[0].manifest
    chosen = None if weights is None else tuple(weights)
    config = build(EnsembleConfig, {"rule": rule, "weights": chosen, "propensity": first.config.get("propensity", {})})
    return EnsembleModel(describe(members, config, labels, first.seed), labels, tuple(members), rule, chosen)


def check_rule(n_members: int, rule: Rule, weights: Sequence[float] | None) -> None:
    """Raise for an invalid rule or invalid weights, before any other work."""
    combine([Ranking(np.zeros((1, 1), np.int32), np.ones((1, 1), np.float32))] * n_members, 1, rule, weights)


def check_learn(members: Sequence[Model], tail: float) -> EnsembleConfig:
    """Check the arguments of `learn` before any documents are read; return the settings."""
    check_members(members)
    check_installed("rule 'learned'")
    propensity = members[0].manifest.config.get("propensity", {})
    return build(EnsembleConfig, {"rule": LEARNED, "tail": tail, "propensity": propensity})


def learn(
    members: Sequence[Model],
    config: EnsembleConfig,
    corpus: Corpus,
    lessons: Iterable[Lesson],
    *,
    names: Sequence[str] | None = None,
    about: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> CalibratedModel:
    """Combine several models with trees trained on labelled documents; the result is calibrated.

    lessons: rows of the corpus, ranked by substitute models, one per member, that were not trained on them, as
    `lessons.find_lessons` yields them, with `config.depth` labels each. names: of the members in the leaderboard; by
    default their methods. about: more fields of the details.
    """
    model, _ = learn_ranked(members, config, corpus, lessons, names=names, about=about, seed=seed, progress=progress)
    return model


def learn_ranked(
    members: Sequence[Model],
    config: EnsembleConfig,
    corpus: Corpus,
    lessons: Iterable[Lesson],
    *,
    names: Sequence[str] | None = None,
    about: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> tuple[CalibratedModel, Taught]:
    """Do the same as `learn`, and also return the result of training."""
    labels = unite_labels([member.labels for member in members])
    manifest = describe(members, config, labels, seed, corpus.fingerprint())
    called = manifest.details.members if names is None else names
    taught = teach(manifest, config, labels, corpus, lessons, called, progress)
    details = manifest.details.model_copy(update={"leaderboard": taught.board, **(about or {})})
    ensemble = LearnedEnsemble(manifest.with_details(details), labels, tuple(members), config.depth, taught.text)
    return CalibratedModel(ensemble, taught.calibration), taught


def check_cascade(members: Sequence[Model], share: float | None) -> EnsembleConfig:
    """Check the arguments of `join_cascade` before any documents are read; return the settings."""
    check_members(members)
    if len(members) != 2:
        raise ConfigError(f"a cascade has two models, the cheap one and the expensive one; got {len(members)}")
    propensity = members[0].manifest.config.get("propensity", {})
    given = {} if share is None else {"share": share}
    config = build(EnsembleConfig, {"rule": CASCADE, "propensity": propensity}, given)
    return config.model_copy(update={"share": config.share})  # set explicitly, so that the saved settings contain it


def join_cascade(
    members: Sequence[Model],
    config: EnsembleConfig,
    corpus: Corpus,
    lessons: Iterable[Lesson],
    *,
    about: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> CascadeModel:
    """Combine a cheap and an expensive model into a cascade; arguments as for `learn`."""
    labels = unite_labels([member.labels for member in members])
    manifest = describe(members, config, labels, seed, corpus.fingerprint())
    gate, calibrations, report = learn_cascade(manifest, config, labels, corpus, lessons, progress)
    manifest = manifest.with_details(manifest.details.model_copy(update={"cascade": report, **(about or {})}))
    return CascadeModel(manifest, labels, tuple(members), gate, calibrations)


def load(reader: FolderReader, load_member: Callable[[Path], Model]) -> EnsembleModel | LearnedEnsemble | CascadeModel:
    """Rebuild an ensemble; `load_member` loads the model in one subfolder."""
    manifest, config, labels = reader.open(EnsembleConfig, EnsembleDetails)
    members = tuple(load_member(reader.folder / f"member-{i}") for i in range(len(manifest.details.members)))
    known = set(labels.ids[: labels.n_labels])
    if any(not known.issuperset(member.labels.ids[: member.labels.n_labels]) for member in members):
        raise ModelError(f"{reader.folder}: a member has labels that the ensemble lacks; combine the members again")
    if {member.manifest.details.features for member in members} != {manifest.details.features}:
        raise ModelError(f"{reader.folder}: a member reads other input than the ensemble; combine the members again")
    if config.rule == LEARNED:
        return read_learned(reader, manifest, config, labels, members)
    if config.rule == CASCADE:
        return read_cascade(reader, manifest, labels, members)
    check_rule(len(members), config.rule, config.weights)
    return EnsembleModel(manifest, labels, members, config.rule, config.weights)


def with_members(model: Model, members: Sequence[Model]) -> Model:
    """Return the ensemble with its members replaced by ones that know more concepts."""
    assert isinstance(model, (EnsembleModel, LearnedEnsemble))
    return replace(model, members=tuple(members), labels=unite_labels([member.labels for member in members]))


@dataclass(frozen=True, eq=False, repr=False)
class EnsembleModel(DisplayedModel):
    """Models combined by a fixed rule; see `xmtc.core.model.Model`."""

    manifest: Manifest[EnsembleDetails]
    labels: LabelSet
    members: tuple[Model, ...]
    rule: Rule
    weights: tuple[float, ...] | None

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each document, by all members together."""
        check_k(k)
        found = [
            rename(member.rank(documents, max(k, _DEPTH)), entries)
            for member, entries in zip(self.members, self._entries, strict=True)
        ]
        return replace(combine(found, k, self.rule, self.weights), label_set=self.labels)

    def display_line(self) -> str:
        """Return how many models are combined, and by which rule."""
        methods = ", ".join(member.manifest.method for member in self.members[:SHOWN])
        more = ", …" if len(self.members) > SHOWN else ""
        return f"{len(self.members)} models ({methods}{more}), joined by {self.rule}; {self.labels.display_line()}"

    def explain(self, text: str, label: str) -> Explanation:
        """Explain with the first member that knows the label."""
        entry = self.labels.find(label)
        for member in self.members:
            if can_rank(member, self.labels.ids[entry]):
                return member.explain(text, self.labels.ids[entry])
        raise ModelError(f"label {label!r} has no training document, so no member ever suggests it")

    @cached_property
    def ranked_concepts(self) -> NDArray[np.int64]:
        """Return entries without training documents that a member can rank."""
        return unite_concepts(self.labels, self.members)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write one folder that holds all members."""
        with write_folder(folder, overwrite=overwrite) as out:
            save_members(out, self.labels, self.members)
            out.manifest(self.manifest)

    @cached_property
    def _entries(self) -> list[NDArray[np.int32]]:
        return [find_entries(self.labels, member.labels) for member in self.members]
