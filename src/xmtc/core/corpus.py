"""Corpus: documents with their labels, as texts, as features, or both. Independent of file formats."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.display import SHOWN, Displayed, Grid, shorten
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.texts import AT_ONCE, Texts, to_utf8


@dataclass(frozen=True, eq=False, repr=False)
class Corpus(Displayed):
    """Documents and their labels. Row i of every field is document i; Y has one column per entry of `labels`."""

    ids: Texts
    texts: Texts | None
    X: sp.csr_matrix | None  # (documents × features)
    Y: sp.csr_matrix  # (documents × label entries), ones
    labels: LabelSet
    groups: NDArray[np.int64] | None = None  # documents with the same number stay together when some are held out
    n_names: int = 0  # number of last rows that are label names, used only for training: neither counted nor held out

    def __post_init__(self) -> None:
        if self.texts is None and self.X is None:
            raise DataError("a corpus needs texts or features; got neither")
        # also accepts lists of strings and other matrix types; frozen fields are set this way
        object.__setattr__(self, "ids", Texts.pack(self.ids))
        object.__setattr__(self, "Y", sp.csr_matrix(self.Y))
        if self.texts is not None:
            object.__setattr__(self, "texts", Texts.pack(self.texts))
        if self.X is not None:
            object.__setattr__(self, "X", sp.csr_matrix(self.X))
        rows = {"ids": len(self.ids), "labels": self.Y.shape[0]}
        if self.groups is not None:
            object.__setattr__(self, "groups", _number(self.groups))
            rows["groups"] = len(self.groups)
        if self.texts is not None:
            rows["texts"] = len(self.texts)
        if self.X is not None:
            rows["features"] = self.X.shape[0]
        if len(set(rows.values())) > 1:
            found = ", ".join(f"{count} {name}" for name, count in rows.items())
            raise DataError(f"the parts of a corpus must have the same number of documents; got {found}")
        if self.Y.shape[1] != len(self.labels):
            raise DataError(f"Y has {self.Y.shape[1]} columns for {len(self.labels)} labels")
        if self.X is not None and not np.isfinite(self.X.data).all():
            row = int(np.searchsorted(self.X.indptr, np.flatnonzero(~np.isfinite(self.X.data))[0], side="right")) - 1
            raise DataError(f"features of document {row} hold NaN or infinity; replace them by numbers")

    @classmethod
    def from_lists(
        cls,
        texts: Iterable[str],
        label_lists: Iterable[Iterable[str | int]],
        ids: Iterable[str] | None = None,
        concepts: Iterable[Concept] = (),
        groups: Iterable[str | int] | None = None,
    ) -> Corpus:
        """Make a corpus from texts and, for each, a list of label strings; `concepts` add names and parents.

        `groups`: a source, author or year per document. Documents of one group are never on both sides of a split.

        >>> import xmtc
        >>> corpus = xmtc.Corpus.from_lists(
        ...     ["Sugar imports from Cuba", "Fishing quotas"],
        ...     [["4313", "2635"], ["2437"]],
        ...     concepts=[xmtc.Concept("4313", "sugar"), xmtc.Concept("2635", "import")],
        ... )
        >>> len(corpus), corpus.labels.names
        (2, ('2437', 'import', 'sugar'))
        """
        made = cls.assemble(label_lists, texts=Texts.pack(texts), ids=ids, concepts=concepts)
        return made if groups is None else made.grouped(groups)

    @classmethod
    def assemble(
        cls,
        label_lists: Iterable[Iterable[str | int]],
        texts: Texts | None = None,
        X: sp.csr_matrix | None = None,
        ids: Iterable[str] | None = None,
        concepts: Iterable[Concept] = (),
    ) -> Corpus:
        """Build the label set from the labels of the documents and count them; ids default to row numbers."""
        lists: list[list[str]] = []
        for row, document in enumerate(label_lists):
            if isinstance(document, str):
                raise DataError(f"labels of document {row} must be a list of strings; got the string {document!r}")
            lists.append([_label(label, row) for label in document])
        labels = LabelSet.build((label for document in lists for label in document), concepts)
        Y = labels.encode(lists)
        packed = Texts.pack(map(str, range(len(lists))) if ids is None else ids)
        return cls(packed, texts, X, Y, labels.with_counts(_count(Y)))

    def __len__(self) -> int:
        return len(self.ids)

    def grouped(self, groups: Iterable[str | int] | None) -> Corpus:
        """Return this corpus with a group per document, such as its source or year; None removes the groups."""
        return replace(self, groups=None if groups is None else np.asarray(list(groups), dtype=object))

    def display_line(self) -> str:
        """Return the numbers of documents and labels."""
        held = [] if self.texts is None else [f"{len(self.texts.buffer):,} bytes of text"]
        held += [] if self.X is None else [f"{self.X.shape[1]:,} features"]
        mean = self.Y.nnz / len(self) if len(self) else 0
        return f"{len(self):,} documents ({', '.join(held)}), {mean:.1f} labels each; {self.labels.display_line()}"

    def display_grids(self) -> list[Grid]:
        """Return the first documents."""
        rows = [
            (
                shorten(self.ids[i], 20),
                "" if self.texts is None else shorten(self.texts[i]),
                shorten(", ".join(self.labels.names[entry] for entry in self.Y[i].indices)),
            )
            for i in range(min(SHOWN, len(self)))
        ]
        return [Grid("document", ("text", "labels"), rows)]

    def take(self, rows: Sequence[int] | NDArray[np.integer]) -> Corpus:
        """Return the given rows, in that order. Labels keep their positions; their counts are those of the rows."""
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            raise DataError("take needs row numbers, got a mask; pass np.flatnonzero(mask)")
        if len(chosen) and not np.issubdtype(chosen.dtype, np.integer):
            raise DataError(f"take needs row numbers; got {chosen.dtype} values")
        rows = chosen.astype(np.int64)
        if len(rows) and not (-len(self) <= rows.min() and rows.max() < len(self)):
            raise DataError(f"take needs rows of 0 to {len(self) - 1}; got {rows.min()} to {rows.max()}")
        Y = self.Y[rows]
        return replace(
            self,
            ids=self.ids.take(rows),
            texts=None if self.texts is None else self.texts.take(rows),
            X=None if self.X is None else self.X[rows],
            Y=Y,
            labels=self.labels.with_counts(_count(Y)),
            groups=None if self.groups is None else self.groups[rows],
            n_names=int((rows >= len(self) - self.n_names).sum()) if self.n_names else 0,
        )

    def split(self, fraction: float, seed: int = 0) -> tuple[Corpus, Corpus]:
        """Return (kept, held out): a random sample of `fraction` of the documents is held out; both keep the order.

        A corpus with groups holds out whole groups: as many as fit into the fraction, but at least the smallest one.
        Rows that are label names are kept.
        """
        if not 0 < fraction < 1:
            raise DataError(f"split needs a fraction between 0 and 1; got {fraction}")
        n = len(self) - self.n_names
        n_held = min(n - 1, max(1, round(fraction * n)))
        draw = np.random.default_rng(seed).permutation
        held = np.zeros(len(self), dtype=bool)
        if self.groups is None:
            held[draw(n)[:n_held]] = True
        else:
            held[:n] = _choose_groups(np.bincount(self.groups[:n]), n_held, draw)[self.groups[:n]]
        return self.take(np.flatnonzero(~held)), self.take(np.flatnonzero(held))

    def fold(self, n: int, seed: int = 0) -> list[NDArray[np.int64]]:
        """Return n random sets of rows of about equal size; each row, and each group, is in exactly one of them."""
        draw = np.random.default_rng(seed).permutation
        n_units = len(self) if self.groups is None else len(set(self.groups.tolist()))
        if n_units < n:
            raise DataError(f"{n} folds need {n} {'documents' if self.groups is None else 'groups'}; got {n_units}")
        if self.groups is None:
            return [np.sort(part) for part in np.array_split(draw(len(self)), n)]
        sizes, drawn = np.bincount(self.groups), draw(n_units)
        fold_of, filled = np.zeros(n_units, dtype=np.int64), [0] * n
        for group in drawn[np.argsort(-sizes[drawn], kind="stable")].tolist():  # largest first, into the emptiest fold
            emptiest = filled.index(min(filled))
            fold_of[group] = emptiest
            filled[emptiest] += int(sizes[group])
        return [np.flatnonzero(fold_of[self.groups] == i) for i in range(n)]

    def labelled_rows(self) -> NDArray[np.int64]:
        """Return the rows of documents that have a label; raise if none has one."""
        rows = np.flatnonzero(np.diff(self.Y[:, : self.labels.n_labels].tocsr().indptr))
        if len(rows) == 0:
            raise DataError("no document has a label; there is nothing to learn")
        return rows

    def compact(self) -> Corpus:
        """Return this corpus with the labels that have documents first and those without documents as concepts.

        After `take`, some labels may have no documents: a model must give them neither parameters nor a score.
        """
        counts = _count(self.Y)
        seen = np.flatnonzero(counts)
        if len(seen) == self.labels.n_labels and (seen == np.arange(len(seen))).all():
            return self
        order = np.concatenate([seen, np.flatnonzero(counts == 0)])
        return replace(
            self, Y=self.Y[:, order], labels=self.labels.reorder(order, len(seen)).with_counts(counts[order])
        )

    def align(self, labels: LabelSet) -> Corpus:
        """Return this corpus over `labels`, matched by label id; labels missing there are appended as entries."""
        if self.labels.ids == labels.ids:  # for example, documents held out from the same corpus
            return replace(self, Y=self.Y.sorted_indices(), labels=labels)
        used = np.flatnonzero(_count(self.Y))
        joined = labels.extend([self.labels.ids[i] for i in used], self.labels.concepts())
        to = np.zeros(len(self.labels), dtype=np.int32)
        to[used] = [joined.position[self.labels.ids[i]] for i in used]
        Y = sp.csr_matrix((self.Y.data, to[self.Y.indices], self.Y.indptr), shape=(len(self), len(joined)), copy=True)
        Y.sort_indices()
        return replace(self, Y=Y, labels=joined)

    def fingerprint(self) -> str:
        """Return a sha256 over documents and labels: equal for equal content, independent of the source file."""
        if self.n_names:
            return self.take(np.arange(len(self) - self.n_names)).fingerprint()
        digest = hashlib.sha256()
        parts: list[NDArray] = [self.ids.buffer, self.ids.offsets]
        if self.texts is not None:
            parts += [self.texts.buffer, self.texts.offsets]
        for matrix in [self.Y] if self.X is None else [self.Y, self.X]:
            parts += [matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float32)]
        for part in parts:
            digest.update(len(part).to_bytes(8, "little"))
            raw = np.ascontiguousarray(part).view(np.uint8)
            for start in range(0, len(raw), AT_ONCE):
                digest.update(raw[start : start + AT_ONCE].data)
                if self.texts is not None and len(raw) > AT_ONCE:
                    self.texts.release()
        if self.groups is not None:
            digest.update(b"groups" + self.groups.tobytes())
        digest.update(self.labels.digest_text().encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def _number(groups: NDArray) -> NDArray[np.int64]:
    """Number groups in order of their first documents; documents with equal values form one group."""
    number_of: dict[object, int] = {}
    return np.array([number_of.setdefault(group, len(number_of)) for group in groups.tolist()], dtype=np.int64)


def _choose_groups(sizes: NDArray[np.int64], room: int, draw: Callable[[int], NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Choose groups in the drawn order, each one that still fits; the smallest group if none fits."""
    if len(sizes) < 2:
        raise DataError("all documents belong to one group; holding out by group needs two or more groups")
    chosen = np.zeros(len(sizes), dtype=bool)
    for group in draw(len(sizes)).tolist():
        if sizes[group] <= room:
            chosen[group] = True
            room -= int(sizes[group])
    if not chosen.any():
        chosen[np.argmin(sizes)] = True
    return chosen


def _label(label: object, row: int) -> str:
    """Return a label as a string; whole numbers are accepted too, because they are common as ids."""
    if isinstance(label, str) and label:
        return to_utf8(label).decode()
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        return str(label)
    raise DataError(f"labels of document {row} must be strings, none empty; got {label!r}")


def _count(Y: sp.csr_matrix) -> NDArray[np.int64]:
    """Return the number of documents of each column."""
    return np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)
