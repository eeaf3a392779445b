"""Several models as one: each ranks, `core.ensemble` joins the rankings.

Members may come from any method and any label order; labels are joined by id. Knows no method by name: loading is
handed down by api.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings, build
from xmtc.core.display import SHOWN
from xmtc.core.ensemble import Rule, combine
from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet
from xmtc.core.model import DisplayedModel, Documents, Model, check_k
from xmtc.core.propensity import Propensity
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Details, FolderReader, Manifest, write_folder

NAME = "ensemble"
_DEPTH = 100  # labels that each member puts forward; the published ensembles join top-100 lists


class EnsembleConfig(Settings):
    """How the members of an ensemble are joined."""

    rule: Rule = "mean"
    weights: tuple[float, ...] | None = None  # None: equal
    propensity: Propensity = Field(default_factory=Propensity)


class EnsembleDetails(Details):
    """What an ensemble stores beside settings."""

    members: list[str]  # their methods


def join(members: Sequence[Model], rule: Rule = "mean", weights: Sequence[float] | None = None) -> EnsembleModel:
    """Make one model of several."""
    if len(members) < 2:
        raise ConfigError(f"an ensemble needs at least two models; got {len(members)}")
    if weights is not None and len(weights) != len(members):
        raise ConfigError(f"{len(members)} models need as many weights; got {len(weights)}")
    if len({member.manifest.details.features for member in members}) > 1:
        raise ConfigError("an ensemble needs models of one kind of input: all on texts, or all on the same features")
    # raises for a rule or for weights that cannot be, before anything else is done
    combine([Ranking(np.zeros((1, 1), np.int32), np.ones((1, 1), np.float32))] * len(members), 1, rule, weights)
    labels = _union([member.labels for member in members])
    first = members[0].manifest
    chosen = None if weights is None else tuple(weights)
    settings = build(
        EnsembleConfig, {"rule": rule, "weights": chosen, "propensity": first.config.get("propensity", {})}
    )
    manifest = Manifest(
        method=NAME,
        config=settings.model_dump(mode="json", exclude_unset=True),
        seed=first.seed,
        n_labels=labels.n_labels,
        n_documents=max(member.manifest.n_documents for member in members),
        data=first.data,
        seen=first.seen,
        details=EnsembleDetails(
            features=first.details.features, members=[member.manifest.method for member in members]
        ),
    )
    return EnsembleModel(manifest, labels, tuple(members), rule, chosen)


def load(reader: FolderReader, load_member: Callable[[Path], Model]) -> EnsembleModel:
    """Rebuild an ensemble; `load_member` loads the model of one subfolder."""
    manifest, config, labels = reader.open(EnsembleConfig, EnsembleDetails)
    members = [load_member(reader.folder / f"member-{i}") for i in range(len(manifest.details.members))]
    return EnsembleModel(manifest, labels, tuple(members), config.rule, config.weights)


@dataclass(frozen=True, eq=False, repr=False)
class EnsembleModel(DisplayedModel):
    """Models that rank together; see `xmtc.core.model.Model`."""

    manifest: Manifest[EnsembleDetails]
    labels: LabelSet
    members: tuple[Model, ...]
    rule: Rule
    weights: tuple[float, ...] | None

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each document, by all members together."""
        check_k(k)
        found = [
            replace(ranking, labels=np.where(ranking.labels < 0, -1, entries[ranking.labels]), probabilities=None)
            for ranking, entries in (
                (member.rank(documents, max(k, _DEPTH)), entries)
                for member, entries in zip(self.members, self._entries, strict=True)
            )
        ]
        return replace(combine(found, k, self.rule, self.weights), label_set=self.labels)

    def display_line(self) -> str:
        """Return how many models rank together, and by which rule."""
        methods = ", ".join(member.manifest.method for member in self.members[:SHOWN])
        more = ", …" if len(self.members) > SHOWN else ""
        return f"{len(self.members)} models ({methods}{more}), joined by {self.rule}; {self.labels.display_line()}"

    def explain(self, text: str, label: str) -> Explanation:
        """Explain by the first member that knows the label."""
        entry = self.labels.find(label)
        for member in self.members:
            if member.labels.position.get(self.labels.ids[entry], member.labels.n_labels) < member.labels.n_labels:
                return member.explain(text, self.labels.ids[entry])
        raise ModelError(f"label {label!r} has no training document, so no member ever gives it")

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write one folder that holds all members."""
        with write_folder(folder, overwrite=overwrite) as out:
            out.labels(self.labels)
            for i, member in enumerate(self.members):
                member.save(out.folder / f"member-{i}")
            out.manifest(self.manifest)

    @cached_property
    def _entries(self) -> list[NDArray[np.int32]]:
        """For each member, the ensemble's entry of each of its labels."""
        position = self.labels.position
        return [
            np.array([position[label] for label in member.labels.ids[: member.labels.n_labels]], dtype=np.int32)
            for member in self.members
        ]


def _union(sets: Sequence[LabelSet]) -> LabelSet:
    """All labels that any member has parameters for, with the largest of their counts."""
    trained = {label for labels in sets for label in labels.ids[: labels.n_labels]}
    concepts = {concept.id: concept for labels in reversed(sets) for concept in labels.concepts()}
    union = LabelSet.build(trained, concepts.values())
    counts = np.zeros(len(union), dtype=np.int64)
    for labels in sets:
        entries = np.array([union.position[label] for label in labels.ids], dtype=np.int64)
        counts[entries] = np.maximum(counts[entries], labels.counts)
    return union.with_counts(counts)
