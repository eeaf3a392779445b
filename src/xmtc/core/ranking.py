"""Ranking: the only output type, used by evaluation, ensembles, command line and server."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.display import SHOWN, Displayed, Grid, shorten
from xmtc.core.errors import ConfigError
from xmtc.core.labels import LabelSet


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Displayed):
    """Ranked labels. Each row is one document's labels, sorted by (−score, label), padded with label −1, score −inf."""

    labels: NDArray[np.int32]  # (n, k)
    scores: NDArray[np.float32]  # (n, k)
    probabilities: NDArray[np.float32] | None = None  # (n, k), calibrated
    label_set: LabelSet | None = None  # labels of the model that ranked, for names; None if unknown

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def k(self) -> int:
        """Width of the ranking."""
        return int(self.labels.shape[1])

    @classmethod
    def best(cls, labels: NDArray[np.integer], scores: NDArray[np.floating], k: int) -> Ranking:
        """Rank candidates: `labels` and `scores` are (n, m), −1 marks a hole. A label may occur only once per row."""
        ids = np.asarray(labels, dtype=np.int32)
        values = np.where(ids < 0, -np.inf, scores).astype(np.float32)
        # lexsort's last key is the primary one: score descending, then label ascending; holes go last
        order = np.lexsort((np.where(ids < 0, np.iinfo(np.int32).max, ids), -values), axis=-1)[:, :k]
        ranking = cls(np.take_along_axis(ids, order, 1), np.take_along_axis(values, order, 1))
        return ranking.padded(k)

    @classmethod
    def from_csr(cls, scores: sp.csr_matrix, k: int) -> Ranking:
        """Rank the stored entries of a (documents × labels) matrix, including explicit zeros."""
        n = scores.shape[0]
        rows = np.repeat(np.arange(n), np.diff(scores.indptr))
        stored = scores.data.astype(np.float32)  # before sorting: scores that are equal after rounding rank as ties
        order = np.lexsort((scores.indices, -stored, rows))
        place = np.arange(len(order)) - np.repeat(scores.indptr[:-1], np.diff(scores.indptr))
        kept = place < k
        labels = np.full((n, k), -1, dtype=np.int32)
        values = np.full((n, k), -np.inf, dtype=np.float32)
        labels[rows[kept], place[kept]] = scores.indices[order][kept]
        values[rows[kept], place[kept]] = stored[order][kept]
        return cls(labels, values)

    def padded(self, k: int) -> Ranking:
        """Return the ranking padded to a width of at least k."""
        missing = k - self.labels.shape[1]
        if missing <= 0:
            return self
        fill = ((0, 0), (0, missing))
        return replace(
            self,
            labels=np.pad(self.labels, fill, constant_values=-1),
            scores=np.pad(self.scores, fill, constant_values=-np.inf),
            probabilities=None if self.probabilities is None else np.pad(self.probabilities, fill),
        )

    def top(self, k: int) -> Ranking:
        """Return the first k columns (fewer if the ranking is narrower)."""
        return replace(
            self,
            labels=self.labels[:, :k],
            scores=self.scores[:, :k],
            probabilities=None if self.probabilities is None else self.probabilities[:, :k],
        )

    def keep(self, kept: NDArray[np.bool_]) -> Ranking:
        """Return the ranking with only the kept entries; the others move up, and padding fills the rows."""
        order = np.argsort(~kept, axis=1, kind="stable")
        holes = ~np.take_along_axis(kept, order, 1)

        def moved(values: NDArray, padding: float) -> NDArray:
            return np.where(holes, np.asarray(padding, values.dtype), np.take_along_axis(values, order, 1))

        return replace(
            self,
            labels=moved(self.labels, -1),
            scores=moved(self.scores, -np.inf),
            probabilities=None if self.probabilities is None else moved(self.probabilities, 0),
        )

    def known(self, n_labels: int) -> Ranking:
        """Return the ranking without concepts, that is, entries from `n_labels` on without training documents."""
        kept = self.labels < n_labels
        return self if kept.all() else self.keep(kept)

    def put(self, rows: NDArray[np.integer], other: Ranking) -> Ranking:
        """Return the ranking with some of its rows replaced by those of another ranking of the same width."""
        labels, scores = self.labels.copy(), self.scores.copy()
        labels[rows], scores[rows] = other.labels, other.scores
        if self.probabilities is None or other.probabilities is None:
            return replace(self, labels=labels, scores=scores, probabilities=None)
        probabilities = self.probabilities.copy()
        probabilities[rows] = other.probabilities
        return replace(self, labels=labels, scores=scores, probabilities=probabilities)

    def named(self, labels: LabelSet | None = None) -> list[list[tuple[str, float]]]:
        """Return each document's (name, score) pairs, best first, without padding.

        `labels`: the labels of the model that ranked; needed only for a ranking that no model returned.

        >>> import xmtc
        >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
        >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
        >>> corpus = xmtc.Corpus.from_lists(texts, tags)
        >>> ranking = xmtc.train(corpus).rank(["fish", "beet"], k=1)
        >>> [[name for name, _ in row] for row in ranking.named()]
        [['fishery'], ['sugar']]
        """
        labels = self._known_labels(labels)
        return [
            [(labels.names[label], float(score)) for label, score in zip(row, scores, strict=True) if label >= 0]
            for row, scores in zip(self.labels.tolist(), self.scores.tolist(), strict=True)
        ]

    def to_frame(self, ids: Sequence[str] | None = None, labels: LabelSet | None = None) -> Any:
        """Return a data frame with one row per document and label: a pandas one if installed, else a polars one.

        Columns are document, rank (from 1), label (its id), name, score and, for calibrated models, probability. ids:
        ids of the documents; row numbers by default. labels: as for `named`.
        """
        known = self._known_labels(labels)
        if ids is not None and len(ids) != len(self):
            raise ConfigError(f"to_frame needs an id for each of {len(self):,} documents; got {len(ids):,}")
        rows, places = np.nonzero(self.labels >= 0)
        found = self.labels[rows, places].tolist()
        columns: dict[str, Any] = {
            "document": rows if ids is None else [ids[row] for row in rows.tolist()],
            "rank": places + 1,
            "label": known.decode(found),
            "name": [known.names[label] for label in found],
            "score": self.scores[rows, places],
        }
        if self.probabilities is not None:
            columns["probability"] = self.probabilities[rows, places]
        for library in ("pandas", "polars"):
            with suppress(ModuleNotFoundError):
                return import_module(library).DataFrame(columns)
        raise ConfigError("to_frame needs pandas or polars; install one of them: pip install pandas")

    def display_line(self) -> str:
        """Return the size of the ranking."""
        calibrated = "" if self.probabilities is None else ", with probabilities"
        return f"{len(self):,} documents, the {self.k} best labels of each{calibrated}"

    def display_grids(self) -> list[Grid]:
        """Return the labels of the first documents: names if known, else numbers."""
        rows = []
        for i, (labels, scores) in enumerate(zip(self.labels[:SHOWN].tolist(), self.scores[:SHOWN], strict=True)):
            pairs = [
                (f"label {label}" if self.label_set is None else shorten(self.label_set.names[label], 40), score)
                for label, score in zip(labels[:SHOWN], scores, strict=False)
                if label >= 0
            ]
            rows.append((str(i), ", ".join(f"{name} {score:.3g}" for name, score in pairs)))
        return [Grid("document", ("labels with scores",), rows)]

    def _known_labels(self, given: LabelSet | None) -> LabelSet:
        known = self.label_set if given is None else given
        if known is None:
            raise ConfigError("this ranking has no label set; pass that of its model: model.labels")
        return known

    @staticmethod
    def stack(parts: list[Ranking]) -> Ranking:
        """Stack rankings of the same width vertically."""
        probabilities = [part.probabilities for part in parts if part.probabilities is not None]
        return Ranking(
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.scores for part in parts]),
            np.concatenate(probabilities) if len(probabilities) == len(parts) else None,
            parts[0].label_set,
        )
