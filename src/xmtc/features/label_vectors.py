"""Label vectors: represent labels by their documents (PIFA) or by their own text.

Input: a corpus's features and labels, or a label set and a function that embeds texts. Output: one row of length 1 per
label, zero if nothing is known about the label. Independent of encoders: callers pass `embed`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError, DataError
from xmtc.core.labels import LabelSet
from xmtc.core.parallel import run
from xmtc.features.clustering import Weighting as Weighting  # also exported here, because it is an argument of pifa
from xmtc.features.select import nth_smallest

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

_TASK_ENTRIES = 1_000_000  # approximate number of entries that one task adds: some milliseconds of work


def pifa(X: sp.csr_matrix, Y: sp.csr_matrix, weighting: Weighting = "plain", top: int | None = None) -> sp.csr_matrix:
    """Return the (labels × features) float32 matrix of positive instance feature aggregates, rows of length 1.

    Label l's row is Σ a_i x_i over the documents i that have l, normalised. `weighting` "plain" uses a_i = 1, as
    AttentionXML and Bonsai do; "sqrt" uses a_i = 1/√(labels of document i), as PECOS does, so that documents with
    many labels count less. A label without documents has an empty row. `top` keeps each label's `top` entries of
    largest magnitude (among equals, the earlier feature) and normalises those: it bounds memory if there are many
    labels.

    X is (documents × features). Every stored entry of Y (documents × labels) is a label of a document, whatever its
    value.
    """
    if X.shape[0] != Y.shape[0]:
        raise DataError(f"got features of {X.shape[0]} documents and labels of {Y.shape[0]}; both must list the same")
    if top is not None and top < 1:
        raise ConfigError(f"top must be at least 1, or None to keep every entry; got {top}")
    indptr, indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    data = X.data.astype(np.float32, copy=False)
    keep = X.shape[1] if top is None else top
    starts, documents, weights, bounds, _ = plan_labels(Y, np.diff(indptr), weighting)
    parts = run(
        lambda own: aggregate(own, documents, weights, indptr, indptr[1:], indices, data, X.shape[1], keep),
        [starts[first : last + 1] for first, last in pairwise(bounds.tolist())],
    )
    sizes, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return sp.csr_matrix(
        (values, columns, np.concatenate([[0], np.cumsum(sizes)])), shape=(Y.shape[1], X.shape[1]), dtype=np.float32
    )


def label_texts(labels: LabelSet) -> list[str]:
    """Return one text for each label with parameters: its name, alternatives and description.

    URL escapes are decoded, punctuation becomes spaces, and a label without words becomes "unk". If a URI is both id
    and name, only its last part is used.
    """
    texts = []
    for i in range(labels.n_labels):
        name = labels.names[i] if labels.names[i] != labels.ids[i] else local_name(labels.ids[i])
        text = unquote(" ".join([name, *labels.alternatives[i], labels.descriptions[i]]))
        texts.append(" ".join(re.sub(r"[\W_]", " ", text).split()) or "unk")
    return texts


def own_name(labels: LabelSet, entry: int) -> str:
    """Return the name of an entry; "" if it has none.

    If a label has documents but no name, its id is used if it contains letters: tags are often both. A concept without
    a name gets none, because it may be only the parent of others.
    """
    id, name = labels.ids[entry], labels.names[entry]
    if name != id:
        return name
    name = local_name(id) if entry < labels.n_labels else ""
    return name if any(letter.isalpha() for letter in name) else ""


def named_texts(labels: LabelSet, gone: Collection[str] = ()) -> tuple[NDArray[np.int64], list[str]]:
    """Return the entries that have a name or alternatives, except those with ids in `gone`, and a text for each."""
    entries, texts = list[int](), list[str]()
    retired = set(gone)
    for entry, (id, others) in enumerate(zip(labels.ids, labels.alternatives, strict=True)):
        name = own_name(labels, entry)
        if (name or others) and id not in retired:
            entries.append(entry)
            texts.append(", ".join([*([name] if name else []), *others]))
    return np.array(entries, dtype=np.int64), texts


def local_name(identifier: str) -> str:
    """Return the part of a URI after the last / or #; other ids are returned unchanged."""
    return re.split(r"[/#]", identifier.rstrip("/#"))[-1] if "://" in identifier else identifier


def embed_labels(labels: LabelSet, embed: Callable[[list[str]], NDArray]) -> NDArray[np.float32]:
    """Return the (labels × d) embeddings of the labels' texts, rows of length 1, for labels with parameters.

    `embed` turns a list of texts into an array with one row per text.
    """
    vectors = np.array(embed(label_texts(labels)), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != labels.n_labels or not np.isfinite(vectors).all():
        raise DataError(f"embed must return {labels.n_labels} rows of finite numbers; got shape {vectors.shape}")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.where(lengths > 0, lengths, 1)
    return vectors


# documents and their weights by label: label l has the documents[starts[l] : starts[l + 1]]; bounds of blocks of labels
# with about equal work, followed by the number of labels; the number of entries to add in each block
LabelPlan = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]


def plan_labels(Y: sp.csr_matrix, row_sizes: Ints, weighting: Weighting) -> LabelPlan:
    """Return starts, documents, weights, bounds and work of the label vectors, for rows of `row_sizes` entries.

    There is at least one block of labels.
    """
    per_label = Y.tocsc()
    starts, documents = per_label.indptr.astype(np.int64), per_label.indices.astype(np.int32, copy=False)
    weights = np.ones(Y.shape[0]) if weighting == "plain" else 1 / np.sqrt(np.maximum(np.diff(Y.indptr), 1))
    added = np.concatenate([[0], np.cumsum(row_sizes[documents])])[starts]  # before each label
    marks = np.arange(_TASK_ENTRIES, added[-1], _TASK_ENTRIES)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(added, marks), [len(added) - 1]]))
    if len(bounds) == 1:  # no labels
        bounds = np.zeros(2, dtype=np.int64)
    return starts, documents, weights, bounds, np.diff(added[bounds])


@njit(nogil=True, cache=True)
def aggregate(
    starts: Ints,
    documents: Ints,
    weights: Floats,
    row_starts: Ints,
    row_stops: Ints,
    indices: Ints,
    data: Floats,
    n_features: int,
    keep: int,
) -> tuple[Ints, Ints, Floats]:
    """Add the rows of each label's documents; return the labels' entry counts, columns (ascending) and values.

    Row i of the documents has the entries from row_starts[i] to before row_stops[i].
    """
    n_labels = len(starts) - 1
    sizes = np.zeros(n_labels, np.int64)
    columns = np.empty(1024, np.int32)
    values = np.empty(1024, np.float32)
    sums = np.zeros(n_features, np.float64)
    seen = np.zeros(n_features, np.bool_)
    touched = np.empty(n_features + 1, np.int32)
    filled = 0
    for label in range(n_labels):
        n_added = 0
        for at in range(starts[label], starts[label + 1]):
            n_added += row_stops[documents[at]] - row_starts[documents[at]]
        n_touched = 0
        if n_added > n_features:  # scanning all columns is then faster than collecting the touched ones
            for at in range(starts[label], starts[label + 1]):
                weight = weights[documents[at]]
                for entry in range(row_starts[documents[at]], row_stops[documents[at]]):
                    sums[indices[entry]] += weight * data[entry]
            for column in range(n_features):
                touched[n_touched] = column
                n_touched += sums[column] != 0
            own = touched[:n_touched].copy()
        else:
            for at in range(starts[label], starts[label + 1]):
                weight = weights[documents[at]]
                for entry in range(row_starts[documents[at]], row_stops[documents[at]]):
                    column = indices[entry]
                    touched[n_touched] = column  # without a branch, which the processor would mispredict
                    n_touched += not seen[column]
                    seen[column] = True
                    sums[column] += weight * data[entry]
            own = np.sort(touched[:n_touched])
        kept = _largest(own, sums, keep) if n_touched > keep else own
        square = 0.0
        for column in kept:
            square += sums[column] ** 2
        scale = 1 / np.sqrt(square) if square > 0 else 0.0
        if filled + len(kept) > len(columns):
            columns = _enlarged(columns, filled, filled + len(kept))
            values = _enlarged(values, filled, filled + len(kept))
        for column in kept:
            columns[filled] = column
            values[filled] = sums[column] * scale
            filled += 1
        sizes[label] = len(kept)
        for column in own:
            sums[column] = 0
            seen[column] = False
    return sizes, columns[:filled].copy(), values[:filled].copy()


@njit(nogil=True, cache=True)
def _largest(columns: Ints, sums: Floats, keep: int) -> Ints:
    """Return the `keep` columns with the largest |sum|, in the given order; among equals, the first ones."""
    magnitudes = np.abs(sums[columns])
    least = nth_smallest(magnitudes, len(columns) - keep)
    room = keep - np.sum(magnitudes > least)
    kept = np.empty(keep, columns.dtype)
    n_kept = 0
    for i in range(len(columns)):
        if magnitudes[i] == least and room > 0:
            room -= 1
        elif magnitudes[i] <= least:
            continue
        kept[n_kept] = columns[i]
        n_kept += 1
    return kept


@njit(nogil=True, cache=True)
def _enlarged(array: NDArray, filled: int, needed: int) -> NDArray:
    """Return a larger copy, with room for at least `needed` items."""
    larger = np.empty(max(needed, 2 * len(array)), array.dtype)
    for i in range(filled):  # numba takes seconds to compile the checks of an assignment to a slice
        larger[i] = array[i]
    return larger
