"""Revisions: how a model's labels and documents change when some are added and some labels are retired.

Input: a model's label set, the statistics of its training and the new documents. Output: a `Revision`: the label set of
the updated model, and the documents it can learn from. Independent of weights and methods.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.labels import LabelSet
from xmtc.core.storage import Manifest
from xmtc.core.texts import Texts
from xmtc.core.updatable import UpdatableDetails

NOTHING = "there is nothing to update: give documents, labels to retire, or both"


@dataclass(frozen=True, eq=False)
class Revision:
    """The labels of an updated model, and the documents to learn from."""

    labels: LabelSet  # kept labels in their old order, then new ones; retired labels are among the concepts after them
    new_ids: NDArray[np.int64]  # (labels of the model,): their positions in `labels`, −1 if retired
    retired: tuple[str, ...]  # ids of all labels retired so far
    corpus: Corpus | None  # documents with a label that can be ranked; Y has one column per such label
    whole: bool  # whether the training documents are included
    changed: NDArray[np.int64]  # (kept labels,): documents that each gained or lost since training
    n_documents: int
    data: Callable[[], str]  # computes the fingerprint of all documents learned from, on demand

    @property
    def n_kept(self) -> int:
        """Number of the model's labels that are kept; new labels come after them."""
        return len(self.changed)


def revise(
    labels: LabelSet,
    manifest: Manifest[UpdatableDetails],
    corpus: Corpus | None,
    base: Corpus | None = None,
    retire: Iterable[str] = (),
    *,
    concepts: Collection[int] = (),
    only_news: bool = True,
) -> Revision:
    """Return the revision of a model with `labels` and `manifest`.

    corpus: new documents, or all documents including those of training; None if labels are only retired. base: the
    training documents, if `corpus` does not include them. retire: ids or names of labels never to be ranked again.
    concepts: entries without training documents that the model can rank, and that can therefore be retired. only_news:
    raise if a model of trees could not learn anything from the documents.
    """
    if corpus is None:
        known = _retire(labels, manifest, retire, concepts)
        if base is not None or not known.newly:
            raise ConfigError(NOTHING)
        left = _arrange(labels, known.kept, None, [], labels.counts[known.kept])
        nothing = np.zeros(len(known.kept), dtype=np.int64)
        return Revision(
            left, known.new_ids, known.retired, None, False, nothing, manifest.n_documents, lambda: manifest.data
        )
    check_kind(corpus, manifest)
    if base is not None:
        check_base(base, manifest)
        corpus = join(base, corpus)
    known = _retire(labels, manifest, retire, concepts)
    whole = base is not None or is_whole(labels, manifest, corpus, known.kept)
    revision = _revise(labels, manifest, corpus, known, whole)
    if only_news:
        _check_news(corpus, whole, revision.labels.n_labels - revision.n_kept, revision.changed, known.newly)
    return revision


def revise_all(
    labels: LabelSet,
    manifest: Manifest[UpdatableDetails],
    corpus: Corpus,
    retire: Iterable[str] = (),
    *,
    concepts: Collection[int] = (),
) -> Revision:
    """Return the revision of a model that is to hold exactly the documents of `corpus`, old and new.

    concepts: as for `revise`.
    """
    return _revise(labels, manifest, corpus, _retire(labels, manifest, retire, concepts), whole=True)


def is_whole(
    labels: LabelSet,
    manifest: Manifest[UpdatableDetails],
    corpus: Corpus,
    kept: NDArray[np.int64] | None = None,
) -> bool:
    """Return whether a corpus seems to include the training documents: enough in all, and of every (kept) label."""
    kept = np.arange(labels.n_labels) if kept is None else kept
    counts = np.bincount(corpus.Y.indices, minlength=len(corpus.labels))
    position = corpus.labels.position
    entries = [position.get(labels.ids[i], -1) for i in kept.tolist()]
    now = np.array([0 if entry < 0 else counts[entry] for entry in entries], dtype=np.int64)
    return len(corpus) >= manifest.n_documents and bool((now >= labels.counts[kept]).all())


@dataclass(frozen=True, eq=False)
class _Retired:
    """Labels that are kept and labels that are retired."""

    kept: NDArray[np.int64]
    new_ids: NDArray[np.int64]  # (labels of the model,): positions among the kept ones, −1 for the others
    retired: tuple[str, ...]  # ids, including those of earlier updates
    newly: int  # how many of them are newly retired


def _retire(
    labels: LabelSet, manifest: Manifest[UpdatableDetails], retire: Iterable[str], concepts: Collection[int]
) -> _Retired:
    before = tuple(manifest.details.retired)
    retired = (*before, *_find_retired(labels, retire, before, concepts))
    gone = set(retired)
    kept = np.array([i for i in range(labels.n_labels) if labels.ids[i] not in gone], dtype=np.int64)
    if len(kept) == 0 and len(concepts) == 0:
        raise ConfigError("all labels would be retired; a model needs at least one")
    new_ids = np.full(labels.n_labels, -1, dtype=np.int64)
    new_ids[kept] = np.arange(len(kept))
    return _Retired(kept, new_ids, retired, len(retired) - len(before))


def _revise(
    labels: LabelSet, manifest: Manifest[UpdatableDetails], corpus: Corpus, known: _Retired, whole: bool
) -> Revision:
    kept, new_ids, gone = known.kept, known.new_ids, set(known.retired)
    counts = np.bincount(corpus.Y.indices, minlength=len(corpus.labels))
    columns, new = _columns(labels, new_ids, corpus.labels, counts, gone)
    old = (columns >= 0) & (columns < len(kept))
    now, then = np.zeros(len(kept), dtype=np.int64), labels.counts[kept]
    now[columns[old]] = counts[old]
    counts_of_new = counts[[corpus.labels.position[label] for label in new]]
    revised = _arrange(labels, kept, corpus.labels, new, np.append(now if whole else now + then, counts_of_new))
    return Revision(
        labels=revised,
        new_ids=new_ids,
        retired=known.retired,
        corpus=_over(corpus, columns, revised),
        whole=whole,
        changed=np.abs(now - then) if whole else np.zeros(len(kept), dtype=np.int64),
        n_documents=len(corpus) if whole else manifest.n_documents + len(corpus),
        data=partial(fingerprint, corpus, None if whole else manifest.data),
    )


def join(base: Corpus, added: Corpus) -> Corpus:
    """Return the documents of `base`, then those of `added`; an added document replaces a base one with the same id.

    Ids that are only row numbers, as for documents without ids, are not matched.
    """
    if (base.texts is None) != (added.texts is None) and (base.X is None) != (added.X is None):
        kinds = ["features" if corpus.texts is None else "texts" for corpus in (base, added)]
        raise DataError(f"the documents of training are {kinds[0]} and the new ones {kinds[1]}; both must be the same")
    if not (unnamed(base) or unnamed(added)):
        again = set(added.ids)
        base = base.take(np.array([i for i, name in enumerate(base.ids) if name not in again], dtype=np.int64))
    added = added.align(base.labels)
    width = len(added.labels)
    Y = sp.vstack([_widened(base.Y, width), added.Y], format="csr")
    X = None
    if base.X is not None and added.X is not None:
        n_features = max(base.X.shape[1], added.X.shape[1])
        X = sp.vstack([_widened(base.X, n_features), _widened(added.X, n_features)], format="csr")
    texts = None if base.texts is None or added.texts is None else _end_to_end(base.texts, added.texts)
    labels = added.labels.with_counts(np.bincount(Y.indices, minlength=width))
    return Corpus(_end_to_end(base.ids, added.ids), texts, X, Y, labels).compact()


def _find_retired(
    labels: LabelSet, retire: Iterable[str], before: Sequence[str], concepts: Collection[int]
) -> list[str]:
    found = []
    for name in dict.fromkeys(retire):
        entry = labels.find(name)
        if labels.ids[entry] in before:
            raise DataError(f"label {name!r} is retired already")
        if entry >= labels.n_labels and entry not in concepts:
            raise DataError(
                f"label {name!r} has no training document, so the model never suggests it: nothing to retire"
            )
        found.append(labels.ids[entry])
    return list(dict.fromkeys(found))


def check_kind(corpus: Corpus, manifest: Manifest[UpdatableDetails]) -> None:
    """Raise unless the documents are of the kind the model was trained on: texts, or features."""
    width = manifest.details.features  # None for a model of texts
    if width is None and corpus.texts is None:
        raise ModelError("this model was trained on texts, and the new documents are features; give their texts")
    if width is not None and corpus.X is None:
        raise ModelError("this model was trained on features, and the new documents are texts; give their features")
    if width is not None and corpus.X is not None and corpus.X.shape[1] > width:
        raise ModelError(f"this model was trained on {width} features; the new documents have {corpus.X.shape[1]}")


def check_base(base: Corpus, manifest: Manifest[UpdatableDetails]) -> None:
    """Raise unless `base` is the model's training corpus."""
    if base.compact().fingerprint() != manifest.data:
        raise DataError(
            "the base differs from the training data of the model, in documents or labels; give that training data, "
            "or give all documents, old and new, without a base"
        )


def _check_news(corpus: Corpus, whole: bool, n_new: int, changed: NDArray[np.int64], n_retired: int) -> None:
    if n_new or (whole and (changed.any() or n_retired)):
        return
    if whole:
        raise DataError("nothing to update: every label has as many documents as in the model's training data")
    raise DataError(
        f"the {len(corpus):,} documents have no new label, and refitting known labels needs the training documents, "
        "too: give them as base (--base)"
    )


def _columns(
    labels: LabelSet, new_ids: NDArray[np.int64], others: LabelSet, counts: NDArray[np.integer], gone: set[str]
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the new column of each entry of `others` that has documents, −1 for the rest; and the new ids, sorted."""
    columns = np.full(len(others), -1, dtype=np.int64)
    used = np.flatnonzero(counts)
    ids, position = [others.ids[i] for i in used.tolist()], labels.position
    entries = np.array([position.get(label, labels.n_labels) for label in ids], dtype=np.int64)
    known = entries < labels.n_labels
    columns[used[known]] = new_ids[entries[known]]
    new = sorted({ids[i] for i in np.flatnonzero(~known).tolist()} - gone)
    columns[[others.position[label] for label in new]] = int((new_ids >= 0).sum()) + np.arange(len(new))
    return columns, new


def _arrange(
    labels: LabelSet, kept: NDArray[np.int64], others: LabelSet | None, new: list[str], counts: NDArray[np.integer]
) -> LabelSet:
    """Return kept labels, then new ones, then, as concepts, all other entries and the new labels' ancestors."""
    others = labels if others is None else others
    added = [others.position[label] for label in new]
    ancestors: dict[str, int] = {}
    fresh = set(new)
    waiting = list(added)
    for i in waiting:  # grows by the ancestors found
        for parent in others.parents[i]:
            label = others.ids[parent]
            if not (label in labels.position or label in ancestors or label in fresh):
                ancestors[label] = parent
                waiting.append(parent)
    first = kept.tolist()
    ranked = {*first, *(labels.position[label] for label in new if label in labels.position)}
    rest = [i for i in range(len(labels)) if i not in ranked]

    parts = (labels, first), (others, added), (labels, rest), (others, list(ancestors.values()))

    def line_up(field: str) -> tuple[Any, ...]:
        fields = [(getattr(source, field), own) for source, own in parts]
        return tuple([of[i] for of, own in fields for i in own])

    ids = line_up("ids")
    place = {label: i for i, label in enumerate(ids)}
    parents = [moved for source, own in parts for moved in _move_parents(source, own, place)]
    padded = np.zeros(len(ids), dtype=np.int64)
    padded[: len(counts)] = counts
    translations: dict[str, dict[int, str]] = {}
    for source, own in parts:
        for language, named in source.translations.items():
            moved = {place[source.ids[i]]: named[i] for i in own if i in named}
            translations.setdefault(language, {}).update(moved)
    return LabelSet(
        ids=ids,
        names=line_up("names"),
        alternatives=line_up("alternatives"),
        descriptions=line_up("descriptions"),
        parents=tuple(parents),
        counts=padded,
        n_labels=len(first) + len(new),
        translations={language: named for language, named in translations.items() if named},
    )


def _move_parents(source: LabelSet, entries: list[int], place: dict[str, int]) -> list[tuple[int, ...]]:
    """Return the parents of some entries, at their new positions; siblings share one tuple, created once."""
    moved: dict[tuple[int, ...], tuple[int, ...]] = {}
    for parents in {source.parents[i] for i in entries}:
        moved[parents] = tuple([place[source.ids[parent]] for parent in parents])
    return [moved[source.parents[i]] for i in entries]


def _over(corpus: Corpus, columns: NDArray[np.int64], labels: LabelSet) -> Corpus:
    """Return the documents that have a label with a column, over the entries of `labels`."""
    to = columns[corpus.Y.indices]
    indptr = np.concatenate([[0], np.cumsum(to >= 0)])[corpus.Y.indptr]
    to = to[to >= 0]
    Y = sp.csr_matrix((np.ones(len(to), dtype=np.float32), to, indptr), shape=(len(corpus), len(labels)))
    Y.sort_indices()
    rows = np.flatnonzero(np.diff(indptr))
    if len(rows) == 0:
        raise DataError("no document has a label that is not retired; there is nothing to learn")
    if len(rows) == len(corpus):
        return replace(corpus, Y=Y, labels=labels)
    return Corpus(
        ids=corpus.ids.take(rows),
        texts=None if corpus.texts is None else corpus.texts.take(rows),
        X=None if corpus.X is None else corpus.X[rows],
        Y=Y[rows],
        labels=labels,
    )


def _widened(matrix: sp.csr_matrix, width: int) -> sp.csr_matrix:
    return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


def _end_to_end(first: Texts, second: Texts) -> Texts:
    offsets = np.concatenate([first.offsets, len(first.buffer) + second.offsets[1:]])
    return Texts(np.concatenate([first.buffer, second.buffer]), offsets)


def unnamed(corpus: Corpus) -> bool:
    """Return whether the ids are row numbers."""
    return all(name == str(row) for row, name in enumerate(corpus.ids))


def fingerprint(corpus: Corpus, before: str | None) -> str:
    """Return the fingerprint of these documents, or of those with the fingerprint `before` followed by these."""
    if before is None:
        return corpus.compact().fingerprint()
    return hashlib.sha256((before + corpus.fingerprint()).encode()).hexdigest()
