"""The scikit-learn adapter: any method of xmtc as a multi-label classifier.

It accepts texts (or features, for methods that train on them) and labels in the forms of scikit-learn, and returns
sparse (documents × labels) matrices. It works with clone, Pipeline and GridSearchCV. It needs scikit-learn, but not
torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc import api
from xmtc.core import metrics
from xmtc.core.corpus import Corpus
from xmtc.core.errors import XmtcError
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.model import Documents, check_k
from xmtc.core.ranking import Ranking
from xmtc.core.steering import check_limit, drop_below
from xmtc.core.texts import Texts

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted
except ModuleNotFoundError as error:
    raise ImportError("xmtc.sklearn needs scikit-learn; install it with: pip install 'xmtc[sklearn]'") from error

__all__ = ["InputError", "XMTCClassifier", "label_matrix"]

_UNKNOWN = (  # scikit-learn requires these first words of every classifier
    "Unknown label type: a multi-label classifier takes y as a (documents × labels) matrix of zeros and ones, or as a "
    "list of labels for each document"
)


class InputError(XmtcError, ValueError):
    """Invalid input: an error of xmtc that is also the ValueError that scikit-learn expects."""


class XMTCClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Tag texts with the most relevant of many labels, as a scikit-learn classifier.

    - method: one of `xmtc.api.METHODS`.
    - config: nested settings of the method, such as {"tree": {"trees": 1}}.
    - k: maximum labels per document.
    - threshold: minimum score of a label in `predict`. None returns all k labels.
    - seed: random seed. The same seed gives the same model.

    `fit` and `score` also accept lists of labels as y. The searches and cross-validation of scikit-learn reject such
    lists unless cv is a splitter, such as KFold(3); give them a matrix from `label_matrix(lists)`.

    After `fit`, `classes_` has the label of each column (column numbers, if y was a matrix), and `model_` is the model,
    with `explain` and `save`.
    """

    def __init__(
        self,
        method: str = "linear",
        config: Mapping[str, Any] | None = None,
        k: int = 5,
        threshold: float | None = None,
        seed: int = 0,
    ) -> None:
        self.method = method
        self.config = config
        self.k = k
        self.threshold = threshold
        self.seed = seed

    def fit(self, X: Any, y: Any) -> XMTCClassifier:
        """Train on texts (a list or array of strings) or features (a matrix, for the linear method).

        - y: a sparse or dense (documents × labels) matrix of zeros and ones, or a list of labels per document.
        """
        if y is None:
            raise InputError("XMTCClassifier requires y to be passed, but the target y is None")
        documents = _read_documents(X)
        matrix, classes = _read_targets(y)
        with _known_to_both():
            check_k(self.k)
            check_limit("threshold", self.threshold)
            corpus = _corpus(documents, matrix, classes)
            self.model_ = api.train(corpus, self.method, self.config, seed=self.seed)
        self.classes_ = classes
        if sp.issparse(documents):
            self.n_features_in_ = documents.shape[1]
        column_of = {label: column for column, label in enumerate(corpus.labels.ids)}
        self._columns = np.array([column_of[label] for label in self.model_.labels.ids], dtype=np.int64)
        return self

    def predict(self, X: Any) -> sp.csr_matrix:
        """Return a (documents × labels) matrix with ones for the k best labels whose score reaches the threshold."""
        ranking = self._rank(X, self.k)
        return self._matrix(drop_below(ranking, min_score=self.threshold), None)

    def predict_proba(self, X: Any) -> sp.csr_matrix:
        """Return a sparse (documents × labels) matrix with the scores of the k best labels.

        These are the scores of the method. They order the labels, but are not calibrated probabilities.
        """
        ranking = self._rank(X, self.k)
        return self._matrix(ranking, ranking.scores)

    def score(self, X: Any, y: Any) -> float:
        """Return P@1 as a fraction: the share of documents whose best label is correct."""
        ranking = self._rank(X, 1)
        matrix, classes = _read_targets(y)
        if _is_matrix(y):
            if matrix.shape[1] != len(self.classes_):
                raise InputError(f"y has {matrix.shape[1]} columns, and this model knows {len(self.classes_)} labels")
            classes = self.classes_
        with _known_to_both():
            truth = _corpus(Texts.pack([""] * len(ranking)), matrix, classes).align(self.model_.labels)
            report = metrics.evaluate(ranking, truth.Y, truth.labels, self.model_.manifest.n_documents, ks=(1,))
        return report["P@1"] / 100

    def _rank(self, X: Any, k: int) -> Ranking:
        check_is_fitted(self, "model_")
        documents = _read_documents(X)
        width = getattr(self, "n_features_in_", None)
        if sp.issparse(documents) and width is not None and documents.shape[1] != width:
            given = documents.shape[1]
            raise InputError(f"X has {given} features, but XMTCClassifier is expecting {width} features as input")
        with _known_to_both():
            check_k(k)
            return self.model_.rank(documents, min(k, self.model_.labels.n_labels))

    def _matrix(self, ranking: Ranking, values: NDArray[np.float32] | None) -> sp.csr_matrix:
        """Return a ranking as a matrix with the columns of y, with these values or ones."""
        rows, places = np.nonzero(ranking.labels >= 0)
        columns = self._columns[ranking.labels[rows, places]]
        data = np.ones(len(rows), dtype=np.int64) if values is None else values[rows, places]
        return sp.csr_matrix((data, (rows, columns)), shape=(len(ranking), len(self.classes_)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags


def label_matrix(lists: Sequence[Sequence[str | int]]) -> tuple[sp.csr_matrix, NDArray[Any]]:
    """Turn lists of labels into a (documents × labels) matrix; return it and the label of each column.

    This is the y that GridSearchCV and cross_val_score accept.
    """
    return _read_targets(lists)


@contextmanager
def _known_to_both() -> Iterator[None]:
    """Turn errors of xmtc into errors that scikit-learn expects."""
    try:
        yield
    except XmtcError as error:
        raise InputError(str(error)) from error


def _read_documents(X: Any) -> Documents:
    """Return X as texts, or as a csr matrix of features."""
    if isinstance(X, str):
        raise InputError("X must be a list of texts; got one string: put it in a list")
    if not sp.issparse(X):
        # keep a list: an array of strings uses the width of the longest string for all
        given = X if isinstance(X, (list, tuple, Texts)) else np.asarray(X)
        if getattr(given, "ndim", 1) == 1 and any(isinstance(text, str) for text in given):
            with _known_to_both():
                return Texts.pack(str(text) if isinstance(text, np.str_) else text for text in given)
    return sp.csr_matrix(check_array(X, accept_sparse="csr", dtype=np.float32))


def _read_targets(y: Any) -> tuple[sp.csr_matrix, NDArray[Any]]:
    """Return y as a (documents × labels) matrix of ones, and the label of each column."""
    if _is_matrix(y):
        given = check_array(y, accept_sparse="csr", dtype=None, input_name="y")
        try:
            matrix = sp.csr_matrix(given, dtype=np.float32, copy=True)
        except (TypeError, ValueError):
            raise InputError(f"{_UNKNOWN}; got {given.dtype} values") from None
        if not np.isin(matrix.data, (0, 1)).all():
            raise InputError(f"{_UNKNOWN}; got other numbers than 0 and 1")
        matrix.eliminate_zeros()
        return matrix, np.arange(matrix.shape[1])
    lists = list(y if isinstance(y, (list, tuple)) else np.asarray(y))
    for row, labels in enumerate(lists):
        if isinstance(labels, str) or not isinstance(labels, (Sequence, set, frozenset, np.ndarray)):
            raise InputError(f"{_UNKNOWN}; got {labels!r} for document {row}: put a single label in a list")
    given = set(chain.from_iterable(lists))
    if not any(all(isinstance(label, kind) for label in given) for kind in (str, (int, np.integer))):
        raise InputError(f"{_UNKNOWN}, all strings or all whole numbers")
    classes = sorted(given)
    column_of = {label: column for column, label in enumerate(classes)}
    columns = [sorted({column_of[label] for label in labels}) for labels in lists]
    indptr = np.cumsum([0, *map(len, columns)])
    indices = np.fromiter(chain.from_iterable(columns), dtype=np.int64, count=int(indptr[-1]))
    ones = np.ones(len(indices), dtype=np.float32)
    matrix = sp.csr_matrix((ones, indices, indptr), shape=(len(lists), len(classes)))
    return matrix, np.array(classes)


def _is_matrix(y: Any) -> bool:
    """Return whether y is an indicator matrix; a plain list of lists means lists of labels."""
    return sp.issparse(y) or (hasattr(y, "__array__") and np.asarray(y).ndim != 1)


def _corpus(documents: Documents, matrix: sp.csr_matrix, classes: NDArray[Any]) -> Corpus:
    """Return a corpus whose label i is column i, including labels without documents."""
    n = documents.shape[0] if sp.issparse(documents) else len(documents)
    check_consistent_length(np.empty(n), matrix)
    ids = [str(label) for label in classes.tolist()]
    counts = np.bincount(matrix.indices, minlength=len(ids))
    labels = LabelSet.restore(zip(map(Concept, ids), counts.tolist(), strict=True), len(ids))
    features = documents if sp.issparse(documents) else None
    texts = None if sp.issparse(documents) else Texts.pack(documents)
    return Corpus(Texts.pack(map(str, range(n))), texts, features, matrix, labels)
