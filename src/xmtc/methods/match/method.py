"""Match: find labels by their names in a text, and rank them by learned features; see docs/methods/match.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from xmtc.core.abilities import TakesLabels
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept
from xmtc.core.method import Method
from xmtc.core.parallel import blocks
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import FolderReader, Manifest
from xmtc.core.texts import Texts
from xmtc.core.updatable import Updatable
from xmtc.features.boosting import is_installed
from xmtc.methods.match.index import Index
from xmtc.methods.match.model import NAME, PART, MatchConfig, MatchDetails, MatchModel
from xmtc.methods.match.ranker import FOLDS, Pairs, Usage, teach
from xmtc.methods.match.semantic import LabelVectors
from xmtc.methods.match.stems import Read, choose_analyzer

_AT_ONCE = 8  # parts of the documents matched between two progress steps


class MatchMethod(Method[MatchConfig], Updatable[MatchModel], TakesLabels[MatchModel]):
    """Train, load and update match models."""

    name = NAME
    Config = MatchConfig
    cheap = True

    def train(
        self,
        corpus: Corpus,
        config: MatchConfig,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        progress: Progress = SILENT,
        partial: Path | None = None,
    ) -> MatchModel:
        """Index the names of all labels, and learn from documents how reliable matches are."""
        if corpus.texts is None:
            raise DataError("match finds names in texts, and this corpus has only features; use linear or knn")
        if len(corpus):
            corpus.labelled_rows()  # raises if no document has labels: there would be nothing to learn
        labels = corpus.labels
        analyzer = choose_analyzer(config.names.analyzer, progress)
        progress.stage("indexing names")
        index = Index.build(labels, analyzer)
        nameless = int((~index.named(len(labels))[: labels.n_labels]).sum())
        if nameless:
            progress.say(
                f"{nameless:,} of {labels.n_labels:,} labels have no name and are not found in texts; name them in "
                "labels.jsonl"
            )
        vectors = None
        if config.semantic.nearest:
            vectors = LabelVectors.build(labels, config.semantic, config.encoder, progress)
        documents = corpus.take(_draw(corpus, config.learn.documents, seed)) if len(corpus) else corpus
        usage, n = Usage.unknown(len(labels)), len(documents)
        read = _read(index, documents, progress) if n >= config.learn.least else None
        weights = _weigh(index, None if read is None else (stems for _, stems in read))
        details = MatchDetails(analyzer=analyzer, n_counted=0)
        manifest = Manifest.describe(NAME, config, corpus, seed, details)
        model = MatchModel(manifest, config, labels, index, weights, usage, None, vectors)
        if read is None:
            progress.say(f"a fixed rule ranks: {n} labelled documents are too few to learn from")
            return model
        pairs = _find(model, read, progress)
        keys = pairs.rows * len(labels) + pairs.entries
        truth = np.repeat(np.arange(n), np.diff(documents.Y.indptr)) * len(labels) + documents.Y.indices
        right = np.isin(keys, truth)
        usage = Usage.count(pairs, right, len(labels), n)
        text = None
        if not right.any():
            progress.say(
                "a fixed rule ranks: no document contains the name of one of its labels, so nothing can be learnt"
            )
        elif not is_installed():
            progress.say("a fixed rule ranks: learning needs LightGBM; install it with: pip install 'xmtc[stack]'")
        else:
            progress.stage("learning")
            fold_of = np.zeros(n, dtype=np.int64)
            for fold, rows in enumerate(documents.fold(FOLDS, seed) if _units(documents) >= FOLDS else []):
                fold_of[rows] = fold
            of_fold = fold_of[np.repeat(np.arange(n), np.diff(documents.Y.indptr))]
            true_counts = np.zeros((FOLDS, len(labels)), dtype=np.int64)
            np.add.at(true_counts, (of_fold, documents.Y.indices), 1)
            text = teach(pairs, right, fold_of, true_counts, labels.counts, config.booster, seed)
        manifest = manifest.with_details(details.model_copy(update={"n_counted": n}))
        return MatchModel(manifest, config, labels, index, weights, usage, text, vectors)

    def load(self, reader: FolderReader) -> MatchModel:
        """Load a model from its folder."""
        return MatchModel.load(reader)

    def uses_dev(self, config: MatchConfig) -> bool:
        """Return False: this method does not use dev documents."""
        return False

    def update(
        self,
        model: MatchModel,
        corpus: Corpus | None,
        *,
        base: Corpus | None = None,
        retire: Iterable[str] = (),
        budget: float = 0.05,
        progress: Progress = SILENT,
    ) -> MatchModel:
        """Return a model with updated document counts and new labels, and without the labels to retire.

        The ranker stays as trained, so `budget` has no effect.
        """
        from xmtc.methods.match.update import update_model

        return update_model(model, corpus, base, retire, progress)

    def add_labels(self, model: MatchModel, concepts: Sequence[Concept], *, progress: Progress = SILENT) -> MatchModel:
        """Return a model that also finds these concepts; see `xmtc.update`."""
        from xmtc.methods.match.update import add_labels

        return add_labels(model, concepts, progress)


def _draw(corpus: Corpus, limit: int, seed: int) -> NDArray[np.int64]:
    """Return up to `limit` rows of labelled documents, drawn with a seed."""
    rows = corpus.labelled_rows()
    return np.sort(np.random.default_rng(seed).permutation(rows)[:limit])


def _units(documents: Corpus) -> int:
    """Return the number of units that folds are made of: documents, or groups of them."""
    return len(documents) if documents.groups is None else len(set(documents.groups.tolist()))


def _read(index: Index, documents: Corpus, progress: Progress) -> list[tuple[Texts, Read]]:
    """Return texts in parts, with their stems."""
    progress.stage("reading texts")
    texts, parts = Texts.pack(documents.texts or ()), []
    for start, stop in blocks(len(texts), PART):
        part = texts[start:stop]
        parts.append((part, index.stems(part)))
        progress.step(stop, len(texts))
    return parts


def _weigh(index: Index, read: Iterable[Read] | None) -> NDArray[np.float32]:
    """Return the inverse document frequency of each stem, ln((1 + n) / (1 + df)), over texts, or over names if None."""
    names, n_stems, n = index.names, len(index.stems), 0
    frequency = np.zeros(n_stems, dtype=np.int64)
    for stems, ends in [(names.stems, names.offsets)] if read is None else read:
        rows, known = np.repeat(np.arange(len(ends) - 1), np.diff(ends)), stems >= 0
        keys = np.unique(rows[known] * n_stems + stems[known])
        frequency += np.bincount(keys % n_stems, minlength=n_stems)
        n += len(ends) - 1
    return np.log((1 + n) / (1 + frequency)).astype(np.float32)


def _find(model: MatchModel, read: list[tuple[Texts, Read]], progress: Progress) -> Pairs:
    """Return all pairs of a document and a label found in it."""
    progress.stage("matching names")
    found, done = list[Pairs](), 0
    for start, stop in blocks(len(read), _AT_ONCE):
        parts = read[start:stop]
        for (texts, _), pairs in zip(
            parts, model.find([one for one, _ in parts], [two for _, two in parts]), strict=True
        ):
            found.append(pairs._replace(rows=pairs.rows + done))
            done += len(texts)
        progress.step(stop, len(read))
    return Pairs(*(np.concatenate(columns) for columns in zip(*found, strict=True)))
