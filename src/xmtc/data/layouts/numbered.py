"""Helpers for layouts with numbered labels: X-BERT, X-Transformer and PECOS. Not a layout itself.

They read scipy sparse matrices (.npz), and files whose line i names label i. Nothing is unpickled. A label's id is its
text, by which data sets and models are matched; if no file names the labels, the id is the number.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept
from xmtc.data.document import Document
from xmtc.data.fields import Mistake
from xmtc.data.files import Lines, check_unpacked, find_file, open_lines, open_whole, read_bytes
from xmtc.data.gather import gather, gather_features
from xmtc.data.vocabulary import Described
from xmtc.data.write import Numbered, check_labels, number_labels


class Names(NamedTuple):
    """The ids and names of the labels, by number."""

    ids: list[str] | None  # None: their numbers
    concepts: list[Concept]
    kept: dict[str, int]  # what to warn about

    @property
    def n_labels(self) -> int | None:
        """Number of labels; None if no file names them."""
        return None if self.ids is None else len(self.ids)

    def label(self, number: int) -> str:
        """Return the id of a label."""
        return str(number) if self.ids is None else self.ids[number]


def read_names(folder: Path, *files: str, counted: bool = False) -> Names:
    """Read the first of these files that exists; line i is the text of label i, after a count if `counted`.

    The encoding is UTF-8, or else ISO-8859-1, as in X-Transformer's own files. Empty texts, and texts of several
    labels, get the label's number added, so that ids are unique.
    """
    path = find_file(folder, *files)
    if path is None:
        return Names(None, [], {})
    texts = list(_texts(path, counted))
    if not texts:
        raise DataError(f"{path} is empty; it must contain one label per line")
    often = Counter(texts)
    ids = [text if text and often[text] == 1 else f"{text} #{i}".lstrip() for i, text in enumerate(texts)]
    shared = sum(count > 1 for count in often.values())
    concepts = [Concept(id, text) for id, text in zip(ids, texts, strict=True)]
    return Names(ids, concepts, {"label texts that several labels share": shared})


def _texts(path: Path, counted: bool) -> Iterator[str]:
    raw = read_bytes(path)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("iso-8859-1")
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        if counted:
            count, tab, line = line.partition("\t")
            if not (tab and count.strip().isdigit()):
                raise DataError(
                    f"{path}, line {number}: expected a count, a tab and the label's text; got {count[:40]!r}"
                )
        yield line.removesuffix("\r").strip()


def write_names(
    path: Path, corpora: Mapping[str, Corpus], layout: str, *, counted: bool = False, latin: bool = False
) -> dict[str, Numbered]:
    """Number the labels, write their ids line by line, and return them; raise if a label does not fit on a line.

    Ids are written instead of names, because data sets are matched by id. `latin` writes ISO-8859-1 if all labels can
    be encoded in it.
    """
    check_labels(corpora, layout, r"\S([^\r\n]*\S)?", "holds one label per line, without spaces around it")
    labels = number_labels(corpora.values())
    text = "".join(f"{label.n_documents}\t{label.id}\n" if counted else f"{label.id}\n" for label in labels.values())
    with open_whole(path) as file:
        file.write(text.encode("iso-8859-1" if latin and _is_latin(text) else "utf-8"))
    return labels


def _is_latin(text: str) -> bool:
    """Return whether ISO-8859-1 can encode the text and the bytes are not valid UTF-8."""
    try:
        text.encode("iso-8859-1").decode("utf-8")
    except UnicodeEncodeError:
        return False
    except UnicodeDecodeError:
        return True
    return False


def read_matrix(path: Path) -> sp.csr_matrix:
    """Read a matrix that scipy.sparse.save_npz wrote; raise for anything else, including pickled objects."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked(path, sum(part.file_size for part in archive.infolist()), path.stat().st_size)
        found = sp.load_npz(path)  # with allow_pickle=False
        if hasattr(found, "check_format"):
            found.check_format(full_check=True)  # before compiled code uses its indices unchecked
        matrix = sp.csr_matrix(found)
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # an archive may be encrypted, use another compression, or contain anything
        reason = str(error).strip("'\"").splitlines() or [type(error).__name__]
        raise DataError(
            f"{path}: not a sparse matrix ({reason[0][:100]}); write it with scipy.sparse.save_npz, as csr"
        ) from None
    if not (np.issubdtype(matrix.dtype, np.number) or matrix.dtype == bool) or np.iscomplexobj(matrix.data):
        raise DataError(f"{path}: holds {matrix.dtype} values; write numbers")
    matrix.sum_duplicates()
    return matrix


def read_label_vectors(path: Path) -> tuple[list[str], sp.csr_matrix | NDArray[np.float32]]:
    """Return label ids and one row per label, from a sparse matrix (.npz) or an array (.npy).

    Row i is the vector of the label named on line i of mlc2seq/label_vocab.txt or label_vocab.txt (X-BERT) or of
    label_map.txt (X-Transformer) in the same folder; without these files, of the label with the number i. A sparse
    matrix that is mostly filled, as L.elmo.npz is, becomes an array.
    """
    vectors: sp.csr_matrix | NDArray[np.float32]
    if path.suffix == ".npy":
        vectors = _read_array(path)
    else:
        vectors = read_matrix(path).astype(np.float32)
        if vectors.nnz > 0.5 * vectors.shape[0] * vectors.shape[1]:
            vectors = vectors.toarray()
    if not np.isfinite(vectors.data if sp.issparse(vectors) else vectors).all():
        raise DataError(f"{path}: a label vector holds NaN or infinity; replace it by a number")
    names = Names(None, [], {})
    for folder, file, counted in (
        (path.parent / "mlc2seq", "label_vocab.txt", True),
        (path.parent, "label_vocab.txt", True),
        (path.parent, "label_map.txt", False),
    ):
        if names.ids is None and folder.is_dir():
            names = read_names(folder, file, counted=counted)
            if names.ids is not None and len(names.ids) != vectors.shape[0]:
                raise DataError(
                    f"{path} has {vectors.shape[0]} rows, but {file} names {len(names.ids)} labels; line i must name "
                    "the label of row i"
                )
    return names.ids or [str(number) for number in range(vectors.shape[0])], vectors


def _read_array(path: Path) -> NDArray[np.float32]:
    try:
        found = np.load(path, allow_pickle=False)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise DataError(
            f"{path}: not an array ({str(error).splitlines()[0][:100]}); write it with numpy.save"
        ) from None
    if found.ndim != 2 or not np.issubdtype(found.dtype, np.number) or np.iscomplexobj(found):
        raise DataError(
            f"{path}: holds {found.dtype} values of shape {found.shape}; write a row of numbers for each label"
        )
    return np.asarray(found, dtype=np.float32)


def read_features(path: Path | None, n: int, beside: Path) -> sp.csr_matrix | None:
    """Read the features of the `n` documents in the file `beside`; return None if there is no feature file."""
    if path is None:
        return None
    X = read_matrix(path).astype(np.float32)
    check_rows(X, path, n, beside)
    bad = np.flatnonzero(~np.isfinite(X.data))
    if len(bad):
        row = int(np.searchsorted(X.indptr, bad[0], side="right"))
        raise DataError(f"{path}, row {row}: a feature is NaN, infinite or too large; replace it by a number")
    return X


def check_rows(matrix: sp.csr_matrix, path: Path, n: int, beside: Path) -> None:
    """Raise unless a matrix has one row for each of the `n` documents in the file `beside`."""
    if matrix.shape[0] != n:
        raise DataError(
            f"{path} has {matrix.shape[0]} rows, but {beside.name} has {n} documents; "
            "row i of both must be the same document"
        )


def read_truth(path: Path, names: Names, named_by: str) -> sp.csr_matrix:
    """Read the labels of documents from a matrix of relevances; a relevance above 0 is a label."""
    Y = read_matrix(path)
    bad = np.flatnonzero(~(Y.data >= 0))
    if len(bad):
        row = int(np.searchsorted(Y.indptr, bad[0], side="right"))
        raise DataError(
            f"{path}, row {row}: a label has the relevance {Y.data[bad[0]]}; write 1, or another number above 0"
        )
    if names.ids is not None and Y.shape[1] != len(names.ids):
        raise DataError(
            f"{path} has {Y.shape[1]} columns, but {named_by} names {len(names.ids)} labels; line i must name column i"
        )
    Y.eliminate_zeros()
    return Y


def read_numbers(line: str, n_labels: int | None, mistake: Mistake) -> list[int]:
    """Read `l1,l2`, where each label may have a relevance, `l:r` or `l::r`; skip labels with relevance 0."""
    numbers = []
    for word in line.replace(",", " ").split():
        label, colon, relevance = word.partition(":")
        if not label.isascii() or not label.isdigit() or len(label) > 9:
            raise mistake(f"label {label[:40]!r} is not a whole number; write the numbers of labels, from 0, as 3,7")
        if n_labels is not None and int(label) >= n_labels:
            raise mistake(f"label {int(label)} is out of range: the labels are 0 … {n_labels - 1}; correct the label")
        try:
            weight = float(relevance.removeprefix(":")) if colon else 1.0
        except ValueError:
            weight = -1.0
        if not 0 <= weight < float("inf"):
            raise mistake(
                f"relevance {relevance[:40]!r} of label {label} is not a number from 0; write label:relevance"
            )
        if weight > 0:
            numbers.append(int(label))
    return numbers


def corpus_of_matrix(
    texts: Path | None, Y: sp.csr_matrix, truth: Path, X: sp.csr_matrix | None, names: Names, known: Described
) -> Corpus:
    """Make a corpus from texts, one per line, or from features only, and from the labels in a matrix's rows."""
    if texts is None:
        assert X is not None  # a layout has texts or features
        return gather_features(
            X, Y.indices, Y.indptr, str(truth), known, concepts=names.concepts, names=names.ids, kept=names.kept
        )
    documents = _documents(open_lines(texts), Y, truth, names)
    return gather(documents, str(texts), known=known, concepts=names.concepts, X=X, kept=names.kept)


def _documents(texts: Lines, Y: sp.csr_matrix, truth: Path, names: Names) -> Iterator[Document]:
    n = Y.shape[0]
    for i, text in enumerate(texts):
        if i == n:
            raise texts.mistake(
                f"no labels for this line in {truth.name} (which has {n} rows); line i must be the document of row i"
            )
        numbers = Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()
        yield Document(None, text, [names.label(number) for number in numbers])
    if texts.number < n:
        raise DataError(
            f"{texts.name} ends after line {texts.number}, but {truth.name} has {n} rows; "
            "line i must be the document of row i"
        )


def write_matrices(corpus: Corpus, labels: Mapping[str, Numbered], truth: Path, features: Path) -> None:
    """Write the labels of documents to `truth`, and their features, if there are any, to `features`."""
    _write_matrix(truth, _truth_matrix(corpus, labels))
    if corpus.X is not None:
        features.parent.mkdir(exist_ok=True)
        _write_matrix(features, corpus.X)


def _write_matrix(path: Path, matrix: sp.csr_matrix) -> None:
    with open_whole(path) as file:
        sp.save_npz(file, matrix)


def _truth_matrix(corpus: Corpus, labels: Mapping[str, Numbered]) -> sp.csr_matrix:
    """Return the labels of documents with a column for each numbered label."""
    n = corpus.labels.n_labels
    place = np.fromiter((labels[label].number for label in corpus.labels.ids[:n]), dtype=np.int32, count=n)
    Y = sp.csr_matrix(
        (corpus.Y.data, place[corpus.Y.indices], corpus.Y.indptr), shape=(len(corpus), len(labels)), copy=True
    )
    Y.sort_indices()
    return Y
