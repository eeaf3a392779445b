"""Scopes: a document's teacher set, the labels of its nearest documents and their parents (TReaderXML, 3.2).

Input: neighbours, the labels of the documents searched, and a label set. Output: weighted entries of the label set, one
set per document. This module knows no texts and no network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field, model_validator

from xmtc.core.config import Settings
from xmtc.core.errors import DataError
from xmtc.core.labels import LabelSet
from xmtc.core.parallel import blocks
from xmtc.features.neighbours import Neighbours

_BLOCK = 1 << 15  # documents processed at once: limits memory

Ancestors = Literal["none", "parents", "all"]


class ScopeConfig(Settings):
    """Settings of the labels in a teacher set."""

    literal: bool = Field(False, description="follow Algorithm 1 exactly: labels without a parent are left out")
    ancestors: Ancestors = Field("parents", description="ancestors that are added to the labels of the neighbours")
    weighted: bool = Field(False, description="weigh labels by the similarity of the neighbours that have them")
    power: float = Field(
        1.0, gt=0, description="p: a neighbour of similarity s counts s^p in weights and votes; 4 favours the nearest"
    )

    @model_validator(mode="after")
    def _one_algorithm(self) -> ScopeConfig:
        if self.literal and self.ancestors != "parents":
            raise ValueError(
                f"literal follows Algorithm 1, which adds direct parents; got ancestors = {self.ancestors!r}: "
                "set it to 'parents', or literal to false"
            )
        return self


@dataclass(eq=False)
class Scopes:
    """Teacher sets of many documents; set i is `entries[offsets[i]:offsets[i + 1]]`, ascending, without duplicates."""

    entries: NDArray[np.int32]  # of the label set; those from n_labels on have no parameters
    weights: NDArray[np.float32]  # in the mean of the descriptions; those of one set sum to 1
    votes: NDArray[np.float32]  # Σ s^p over the neighbours that have the label; an ancestor has that of its best label
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, document: int) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
        own = slice(self.offsets[document], self.offsets[document + 1])
        return self.entries[own], self.weights[own], self.votes[own]

    def become(self, other: Scopes) -> None:
        """Take the other's sets: training in progress reads them from the next batch on."""
        self.entries, self.weights, self.votes, self.offsets = other.entries, other.weights, other.votes, other.offsets


def build_scopes(neighbours: Neighbours, Y: sp.csr_matrix, labels: LabelSet, config: ScopeConfig) -> Scopes:
    """Return the teacher set of each document whose `neighbours` are rows of Y (pool documents × entries).

    A set holds the labels of the neighbours and, depending on `config.ancestors`, their parents or all their ancestors.
    With `literal`, labels without a parent are excluded (Algorithm 1), so sets are empty for a label set without
    hierarchy. A label's vote is the sum of s^p over the neighbours that have it, where s is their similarity. An
    ancestor's vote is the largest vote of a label below it, or its own vote if neighbours have it and that is larger.
    Weights are 1 / size of the set or, with `weighted`, the votes divided by their sum.

    Every stored entry of Y is a label of a document, whatever its value. A hierarchy with a cycle raises DataError.
    """
    if Y.shape[1] != len(labels):
        raise DataError(f"Y has {Y.shape[1]} columns for {len(labels)} labels")
    if neighbours.rows.max(initial=-1) >= Y.shape[0]:
        raise DataError(f"a neighbour is document {neighbours.rows.max()}, but Y has {Y.shape[0]} documents")
    above = _ancestors(labels, config.ancestors)
    admitted = np.diff(above.indptr) > 0 if config.literal else np.ones(len(labels), dtype=bool)
    has = sp.csr_matrix((np.ones(Y.nnz), Y.indices, Y.indptr), shape=Y.shape)
    entries, sizes = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    weights, all_votes = [np.empty(0, np.float32)], [np.empty(0, np.float32)]
    for first, last in blocks(len(neighbours.rows), _BLOCK):
        n = last - first
        shares = neighbours.similarities[first:last].astype(np.float64) ** config.power
        documents, found, votes = _votes(neighbours.rows[first:last], shares, has)
        kept = admitted[found]
        documents, found, votes = _with_ancestors(documents[kept], found[kept], votes[kept], above)
        counted = votes if config.weighted else np.ones(len(votes))
        totals = np.bincount(documents, counted, minlength=n)
        entries.append(found.astype(np.int32))
        weights.append((counted / totals[documents]).astype(np.float32))
        all_votes.append(votes.astype(np.float32))
        sizes.append(np.bincount(documents, minlength=n))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    return Scopes(np.concatenate(entries), np.concatenate(weights), np.concatenate(all_votes), offsets)


def describe_entries(labels: LabelSet, pifa_words: Callable[[NDArray[np.int64]], list[str]] | None = None) -> list[str]:
    """Return one text for each entry: its description, else its name, else its documents' top words, else its id.

    A name equal to the id is ignored. `pifa_words` receives the labels (those with parameters) that have neither
    description nor name, and returns a text for each, or "" if it has none.
    """
    texts = [
        description.strip() or (name.strip() if name != label else "")
        for label, name, description in zip(labels.ids, labels.names, labels.descriptions, strict=True)
    ]
    bare = np.array([entry for entry in range(labels.n_labels) if not texts[entry]], dtype=np.int64)
    if pifa_words is not None and len(bare):
        for entry, words in zip(bare.tolist(), pifa_words(bare), strict=True):
            texts[entry] = words.strip()
    return [text or label for text, label in zip(texts, labels.ids, strict=True)]


def check_hierarchy(labels: LabelSet) -> None:
    """Raise DataError if a label is its own ancestor, naming the labels of one such cycle."""
    _top_down(labels)


def _top_down(labels: LabelSet) -> list[int]:
    """Return all entries, parents before their children."""
    try:
        return list(TopologicalSorter(dict(enumerate(labels.parents))).static_order())
    except CycleError as error:
        cycle = " → ".join(labels.ids[entry] for entry in reversed(error.args[1]))  # from child to parent
        raise DataError(f"the hierarchy runs in a circle: {cycle}; remove one of these parents") from None


@lru_cache(maxsize=4)  # a model that tags texts one by one requests the same result each time
def _ancestors(labels: LabelSet, kind: Ancestors) -> sp.csr_matrix:
    """Return a matrix (entries × entries): the stored columns of a row are the ancestors added with that entry."""
    top_down = _top_down(labels)
    above: list[tuple[int, ...]] = [()] * len(labels)
    if kind == "parents":
        above = [tuple(sorted(set(parents))) for parents in labels.parents]
    elif kind == "all":
        for entry in top_down:
            parents = labels.parents[entry]
            above[entry] = tuple(sorted({*parents, *(higher for parent in parents for higher in above[parent])}))
    indptr = np.cumsum([0, *map(len, above)])
    indices = np.fromiter((entry for row in above for entry in row), dtype=np.int32, count=indptr[-1])
    return sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(labels), len(labels)))


Triples = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # documents, entries, votes


def _votes(rows: NDArray[np.int32], shares: NDArray[np.float64], has: sp.csr_matrix) -> Triples:
    """Return the distinct labels of each document's neighbours, with the sum of these neighbours' shares."""
    there = rows >= 0
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    near = sp.csr_matrix((shares[there], rows[there], indptr), shape=(len(rows), has.shape[0]))
    votes = (near @ has).tocoo()
    return votes.row.astype(np.int64), votes.col.astype(np.int64), votes.data


def _with_ancestors(
    documents: NDArray[np.int64], entries: NDArray[np.int64], votes: NDArray[np.float64], above: sp.csr_matrix
) -> Triples:
    """Return the entries and their ancestors, sorted; duplicate entries keep the larger vote."""
    counts = np.diff(above.indptr)[entries]
    source = np.repeat(np.arange(len(entries)), counts)
    within = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    added = above.indices[above.indptr[entries][source] + within]
    documents = np.concatenate([documents, documents[source]])
    entries = np.concatenate([entries, added])
    votes = np.concatenate([votes, votes[source]])
    order = np.lexsort((entries, documents))
    documents, entries, votes = documents[order], entries[order], votes[order]
    if not len(order):
        return documents, entries, votes
    starts = np.flatnonzero(np.diff(documents, prepend=-1) | np.diff(entries, prepend=-1))
    return documents[starts], entries[starts], np.maximum.reduceat(votes, starts)
