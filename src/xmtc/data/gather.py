"""Build a Corpus from a stream of documents, with one warning about suspicious data that was kept.

Labels are numbered in order of appearance, so that each label string is stored once.
"""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError, DataWarning
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.texts import Texts, TextsBuilder
from xmtc.data.document import Document
from xmtc.data.table_mapping import TableMapping
from xmtc.data.vocabulary import NOTHING, Described

FEW = 0.2  # minimum share of the used labels that a vocabulary should describe
ENOUGH = 10  # minimum number of labels for such a share to be meaningful


def gather(
    documents: Iterable[Document],
    source: str,
    concepts: Iterable[Concept] = (),
    *,
    known: Described = NOTHING,
    X: sp.csr_matrix | None = None,
    kept: Mapping[str, int] | None = None,
) -> Corpus:
    """Make a corpus from a stream of documents with texts; errors show `source` as the file.

    `concepts` describes the labels by the layout's own files; `known`, a labels file or vocabulary, takes precedence.
    `kept` counts other things to warn about; it is read after all documents.
    """
    texts, ids = TextsBuilder(), TextsBuilder()
    id_hashes = array("q")
    codes, ends = array("i"), array("q", [0])
    vocabulary: dict[str, int] = {}
    empty = 0
    for document in documents:
        empty += not document.text or document.text.isspace()
        id = str(len(ids)) if document.id is None else document.id
        id_hashes.append(hash(id))  # 8 bytes per document instead of a set of strings
        ids.append(id)
        texts.append(document.text)
        codes.extend([vocabulary.setdefault(label, len(vocabulary)) for label in document.labels])
        ends.append(len(codes))
    return assemble(
        source,
        list(vocabulary),
        np.asarray(codes, dtype=np.int32),
        np.asarray(ends, dtype=np.int64),
        ids=ids.build(),
        texts=texts.build(),
        X=X,
        known=known,
        concepts=concepts,
        kept={
            "empty texts": empty,
            "duplicate ids": len(id_hashes) - len(np.unique(np.asarray(id_hashes))),
            **(kept or {}),
        },
    )


def gather_file(files: tuple[Path, ...], known: Described, *, read: Callable[[Path], Iterable[Document]]) -> Corpus:
    """Make a corpus from a split stored in one file, whose documents `read` yields."""
    (path,) = files
    return gather(read(path), str(path), known=known)


def gather_mapped(
    files: tuple[Path, ...],
    known: Described,
    mapping: TableMapping,
    *,
    read: Callable[[Path, bool, TableMapping], Iterable[Document]],
) -> Corpus:
    """Make a corpus from a split stored in one table, whose columns the mapping names."""
    return gather_file(files, known, read=lambda path: read(path, True, mapping))


def gather_features(
    X: sp.csr_matrix,
    labels: NDArray[np.integer],
    ends: NDArray[np.integer],
    source: str,
    known: Described = NOTHING,
    *,
    concepts: Iterable[Concept] = (),
    names: Sequence[str] | None = None,
    kept: Mapping[str, int] | None = None,
) -> Corpus:
    """Make a corpus from feature rows; row i has the labels with the numbers `labels[ends[i]:ends[i + 1]]`.

    The id of a label is its name, or its number if there are no names.
    """
    used, codes = np.unique(labels, return_inverse=True)
    return assemble(
        source,
        [str(label) if names is None else names[label] for label in used.tolist()],
        codes.astype(np.int32),
        ends.astype(np.int64),
        X=X,
        known=known,
        concepts=concepts,
        kept={"documents without features": int((np.diff(X.indptr) == 0).sum()), **(kept or {})},
    )


def assemble(
    source: str,
    vocabulary: Sequence[str],
    codes: NDArray[np.int32],
    ends: NDArray[np.int64],
    *,
    ids: Texts | None = None,
    texts: Texts | None = None,
    X: sp.csr_matrix | None = None,
    known: Described = NOTHING,
    concepts: Iterable[Concept] = (),
    kept: Mapping[str, int],
) -> Corpus:
    """Make a corpus whose document i has the labels `vocabulary[c]` for c in `codes[ends[i]:ends[i + 1]]`.

    Every label of the vocabulary must occur. Raises if no document has a label; issues one warning with the counts in
    `kept`.
    """
    n = len(ends) - 1
    if n == 0:
        raise DataError(f"{source} holds no documents; check that it is the right file")
    if len(codes) == 0:
        raise DataError(f"{source}: none of the {n} documents has a label; check that the labels are in this file")
    described = [*concepts, *known.join(vocabulary)]
    labels = LabelSet.build(vocabulary, described)
    place = np.fromiter((labels.position[label] for label in vocabulary), dtype=np.int32, count=len(vocabulary))
    Y = sp.csr_matrix((np.ones(len(codes), dtype=np.float32), place[codes], ends), shape=(n, len(labels)))
    Y.sum_duplicates()
    Y.data[:] = 1
    counts = np.bincount(Y.indices, minlength=len(labels))
    _warn(source, {"documents without labels": int((np.diff(Y.indptr) == 0).sum()), **kept, **known.oddities()})
    _warn_of_vocabulary(source, vocabulary, described)
    return Corpus(ids or Texts.pack(map(str, range(n))), texts, X, Y, labels.with_counts(counts))


def _warn_of_vocabulary(source: str, used: Sequence[str], described: Sequence[Concept]) -> None:
    """Warn if a vocabulary describes only few of the used labels."""
    if not described or len(used) < ENOUGH:
        return
    n_described = len({concept.id for concept in described}.intersection(used))
    if n_described < FEW * len(used):
        some = f"{n_described:,}" if n_described else "none"
        warnings.warn(
            f"{source}: the vocabulary describes {some} of the {len(used):,} labels used ({used[0]!r} here, "
            f"{described[0].id!r} there); check that it is the right one",
            DataWarning,
            stacklevel=2,
        )


def _warn(source: str, kept: Mapping[str, int]) -> None:
    found = [f"{noun}: {count:,}" for noun, count in kept.items() if count]
    if found:
        warnings.warn(f"{source}: kept {', '.join(found)}", DataWarning, stacklevel=2)
