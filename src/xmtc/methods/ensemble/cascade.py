"""A cascade: a cheap model ranks every document; an expensive model ranks only those that gain most.

A gate reads the cheap model's ranking of a document and predicts how much higher the expensive model's P@5 would be. It
is a ridge regression on the features and their squares, trained on documents that neither model was trained on. A
document goes to the expensive model if its expected gain is above a threshold, so results do not depend on batching.
docs/methods/ensemble.md describes features and report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.calibration import Calibration, fit_calibration
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet
from xmtc.core.lessons import Lesson
from xmtc.core.metrics import evaluate
from xmtc.core.model import DisplayedModel, Documents, Model, check_k
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.storage import FolderReader, Manifest, write_folder
from xmtc.methods.ensemble.latency import measure_latency, sample_documents, take_documents
from xmtc.methods.ensemble.members import (
    EnsembleConfig,
    EnsembleDetails,
    SharePoint,
    find_entries,
    rank_shown,
    read_lessons,
    rename,
    save_members,
)

DEPTH = 20  # labels of each model used to calibrate its probabilities
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)  # shares of the documents in the report
SHOWN = ("P@5", "PSP@5")
_SEEN, _SCORED = 10, 5  # labels that the gate reads, and labels that P@5 counts
_SHRINK, _FURTHEST = 50.0, 4.0  # penalty of the ridge regression; limit of a scaled feature, in standard deviations
N_FEATURES = 9
_FEWEST = 10  # minimum number of labelled documents to learn from
_GATE, _CALIBRATION = "gate.json", "calibration-{}.json"
_SOURCE = "that the cascade learnt from"


@dataclass(frozen=True, eq=False)
class Gate:
    """The gate: predicts the gain as a linear function of the standardized features and their squares."""

    center: NDArray[np.float64]  # (features,)
    scale: NDArray[np.float64]  # (features,)
    weights: NDArray[np.float64]  # (2 · features,)
    base: float
    threshold: float = np.inf  # a document goes to the expensive model if its expected gain is above this

    @classmethod
    def fit(cls, features: NDArray[np.float64], gains: NDArray[np.float64]) -> Gate:
        """Learn the weights by ridge regression."""
        center, scale = features.mean(axis=0), features.std(axis=0)
        gate = cls(center, np.where(scale > 0, scale, 1.0), np.zeros(2 * len(center)), float(gains.mean()))
        terms = gate._terms(features)
        means = terms.mean(axis=0)
        terms = terms - means
        weights = np.linalg.solve(terms.T @ terms + _SHRINK * np.eye(terms.shape[1]), terms.T @ (gains - gate.base))
        return replace(gate, weights=weights, base=gate.base - float(means @ weights))

    def expect(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected gain of each document."""
        return np.asarray(self.base + self._terms(features) @ self.weights)

    def _terms(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        # without this limit, squares of unusual values would grow without bound
        scaled = np.clip((features - self.center) / self.scale, -_FURTHEST, _FURTHEST)
        return np.hstack([scaled, scaled**2])

    def to_json(self) -> str:
        """Return the gate as text."""
        arrays = {"center": self.center, "scale": self.scale, "weights": self.weights}
        raw = {name: array.tolist() for name, array in arrays.items()}
        threshold = None if np.isinf(self.threshold) else self.threshold
        known = {"base": self.base, "threshold": threshold, "all": self.threshold == -np.inf}
        return json.dumps({**raw, **known}, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Gate:
        """Load a gate from the output of `to_json`."""
        raw = json.loads(text)
        center, scale, weights = (np.array(raw[name], dtype=np.float64) for name in ("center", "scale", "weights"))
        if not len(center) == len(scale) == len(weights) / 2 == N_FEATURES or not (scale > 0).all():
            raise ModelError("the gate of the cascade is not valid; copy the model folder again")
        threshold = raw["threshold"] if raw["threshold"] is not None else (-np.inf if raw["all"] else np.inf)
        return cls(center, scale, weights, raw["base"], threshold)


def describe_rankings(ranking: Ranking, labels: LabelSet, sizes: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the gate's features of the cheap model's rankings, whose scores are probabilities: (documents, features).

    sizes: characters of each text, or number of features of each row.
    """
    assert ranking.probabilities is not None
    listed = ranking.labels[:, :_SEEN] >= 0
    p = np.where(listed, ranking.probabilities[:, :_SEEN], 0).astype(np.float64)
    scores = np.where(listed, ranking.scores[:, :_SEEN], 0).astype(np.float64)
    known = np.where(listed, np.log1p(labels.counts)[ranking.labels[:, :_SEEN]], 0)
    features = (
        p[:, :_SCORED].sum(axis=1),  # expected number of correct labels
        p[:, 0],
        p[:, _SCORED - 1],
        p[:, _SCORED:].sum(axis=1),  # expected number of correct labels just below
        (p * (1 - p)).sum(axis=1),
        scores[:, 0],
        scores[:, 0] - scores[:, _SCORED - 1],
        known[:, :_SCORED].mean(axis=1),
        np.log1p(sizes),
    )
    return np.stack(features, axis=1)


def learn_cascade(
    manifest: Manifest[EnsembleDetails],
    config: EnsembleConfig,
    labels: LabelSet,
    corpus: Corpus,
    lessons: Iterable[Lesson],
    progress: Progress = SILENT,
) -> tuple[Gate, tuple[Calibration, Calibration], list[SharePoint]]:
    """Train a gate on rankings by models that were not trained on the documents.

    Return the gate, the calibrations of both models and a report: the scores reached when a given share of the
    documents goes to the expensive model. The gains in the report are predicted by gates trained on the other half of
    the documents.
    """
    aligned, lessons = corpus.align(labels), list(lessons)
    parts = [[ranking.padded(DEPTH) for ranking in rank_shown(lesson, labels)] for lesson in lessons]
    documents = read_lessons(lessons, aligned, labels)
    if len(documents) < _FEWEST:
        raise DataError(f"a cascade needs {_FEWEST} labelled documents or more; got {len(documents)}")
    cheap, expensive = (Ranking.stack(list(own)) for own in zip(*parts, strict=True))
    sizes = _sizes(documents.texts if documents.texts is not None else documents.X)
    gains = _hits(expensive, documents.Y) - _hits(cheap, documents.Y)

    def learn(chosen: NDArray[np.int64]) -> tuple[Gate, Calibration]:
        truth = documents.take(chosen)
        calibration = fit_calibration(_take(cheap, chosen), truth.Y, aligned.labels, "isotonic", _SOURCE)
        return Gate.fit(see(chosen, calibration), gains[chosen]), calibration

    def see(chosen: NDArray[np.int64], calibration: Calibration) -> NDArray[np.float64]:
        judged = calibration.apply(_take(cheap, chosen), aligned.labels)
        return describe_rankings(judged, aligned.labels, sizes[chosen])

    progress.stage("learning")
    everything = np.arange(len(documents))
    expected = np.zeros(len(documents))
    for half in documents.fold(2, manifest.seed):
        gate, calibration = learn(np.setdiff1d(everything, half))
        expected[half] = gate.expect(see(half, calibration))
    order = np.argsort(-expected, kind="stable")
    report = []
    for share in sorted({*SHARES, config.share}):
        asked = np.sort(order[: round(share * len(order))])
        found = evaluate(
            cheap.put(asked, _take(expensive, asked)),
            documents.Y,
            aligned.labels,
            manifest.n_documents,
            mode="known",
            propensity=config.propensity,
            intervals=False,
        )
        report.append(SharePoint(share=share, scores={key: round(found[key], 2) for key in SHOWN}))
    gate, calibration = learn(everything)
    other = fit_calibration(expensive, documents.Y, aligned.labels, "isotonic", _SOURCE)
    ends = {0.0: np.inf, 1.0: -np.inf}
    usual = float(np.quantile(gate.expect(see(everything, calibration)), 1 - config.share))
    return replace(gate, threshold=ends.get(config.share, usual)), (calibration, other), report


def share_within(members: Sequence[Model], corpus: Corpus, budget: float, progress: Progress = SILENT) -> float:
    """Return the share of documents that may go to the second model for a mean of `budget` seconds per document.

    The time is measured on this machine, on single documents. It differs on another machine or under load.
    """
    documents = sample_documents(corpus)
    cheap, expensive = (measure_latency(member, documents) for member in members)
    progress.say(f"one document takes {1e3 * cheap:.2f} ms, and {1e3 * expensive:.2f} ms more by the expensive model")
    if budget < cheap:
        raise ConfigError(
            f"budget is {1e3 * budget:g} ms per document, but the cheap model alone takes {1e3 * cheap:.2f} ms here"
        )
    return min(1.0, round((budget - cheap) / expensive, 4))


@dataclass(frozen=True, eq=False, repr=False)
class CascadeModel(DisplayedModel):
    """A cheap model, an expensive model and a gate; see `xmtc.core.model.Model`. Scores are probabilities."""

    manifest: Manifest[EnsembleDetails]
    labels: LabelSet
    members: tuple[Model, ...]  # the cheap model, then the expensive model
    gate: Gate
    calibrations: tuple[Calibration, Calibration]

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each document, with the scores of the model that the gate chooses."""
        check_k(k)
        wide = max(k, _SEEN)
        cheap = self._rank_by(0, documents, wide)
        asked = self._asked(cheap, documents)
        if len(asked):
            cheap = cheap.put(asked, self._rank_by(1, take_documents(documents, asked), wide))
        return replace(cheap.top(k), label_set=self.labels)

    def display_line(self) -> str:
        """Return which models rank, and how many documents go to the second."""
        cheap, expensive = (member.manifest.method for member in self.members)
        share = self.manifest.config["share"]
        return f"{cheap}, and {expensive} for about {share:.0%} of the documents; {self.labels.display_line()}"

    def explain(self, text: str, label: str) -> Explanation:
        """Explain with the model that ranks the text, or with the other model if that one does not know the label."""
        entry = self.labels.find(label)
        id = self.labels.ids[entry]
        asked = len(self._asked(self._rank_by(0, [text], _SEEN), [text]))
        for member in self.members[::-1] if asked else self.members:
            if member.labels.position.get(id, member.labels.n_labels) < member.labels.n_labels:
                return member.explain(text, id)
        raise DataError(f"label {label!r} has no training document, so no member ever suggests it")

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write one folder that holds both models and the gate."""
        with write_folder(folder, overwrite=overwrite) as out:
            save_members(out, self.labels, self.members)
            out.text(_GATE, self.gate.to_json())
            for i, calibration in enumerate(self.calibrations):
                out.text(_CALIBRATION.format(i), calibration.to_json())
            out.manifest(self.manifest)

    def _rank_by(self, i: int, documents: Documents, k: int) -> Ranking:
        """Return a member's ranking over the cascade's labels, with probabilities."""
        ranking = rename(self.members[i].rank(documents, k), self._entries[i])
        return self.calibrations[i].apply(ranking, self.labels)

    def _asked(self, cheap: Ranking, documents: Documents) -> NDArray[np.int64]:
        """Return the documents that go to the expensive model."""
        expected = self.gate.expect(describe_rankings(cheap, self.labels, _sizes(documents)))
        return np.flatnonzero(expected > self.gate.threshold)

    @cached_property
    def _entries(self) -> list[NDArray[np.int32]]:
        return [find_entries(self.labels, member.labels) for member in self.members]


def read_cascade(
    reader: FolderReader, manifest: Manifest[EnsembleDetails], labels: LabelSet, members: tuple[Model, ...]
) -> CascadeModel:
    """Rebuild a cascade from its loaded members."""
    texts = [reader.text(name) for name in (_GATE, *(_CALIBRATION.format(i) for i in range(2)))]
    gate, *known = [text for text in texts if text is not None] or [""]
    if len(known) != 2:
        raise ModelError(f"{reader.folder} lacks its gate or a calibration; copy the model folder again")
    one, two = map(Calibration.from_json, known)
    return CascadeModel(manifest, labels, members, Gate.from_json(gate), (one, two))


def _hits(ranking: Ranking, truth: sp.csr_matrix) -> NDArray[np.float64]:
    """Return P@5 of each document, from 0 to 1."""
    keys = np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr)) * truth.shape[1] + truth.indices
    best = ranking.labels[:, :_SCORED].astype(np.int64)
    own = np.arange(len(best))[:, None] * truth.shape[1] + best
    return np.asarray((np.isin(own, keys) & (best >= 0)).sum(axis=1) / _SCORED)


def _take(ranking: Ranking, rows: NDArray[np.int64]) -> Ranking:
    return Ranking(ranking.labels[rows], ranking.scores[rows])


def _sizes(documents: Documents | None) -> NDArray[np.int64]:
    """Return the characters of each text, or the number of stored features of each row."""
    if documents is None:
        return np.zeros(0, dtype=np.int64)
    if sp.issparse(documents):
        return np.diff(documents.indptr)
    return np.array([len(text) for text in documents], dtype=np.int64)
