"""The adapter: scikit-learn's own checks, and what they cannot ask of a classifier of texts with sparse output."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.app.conftest import documents
from tests.test_layers import HIDE_TORCH
from xmtc import api
from xmtc.core.errors import XmtcError

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MultiLabelBinarizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from xmtc.sklearn import XMTCClassifier, label_matrix

ONE_TREE = {"tree": {"trees": 1}}
TRAIN, TEST = documents(90, seed=1), documents(30, seed=2)
TEXTS, LABELS = [row["text"] for row in TRAIN], [row["labels"] for row in TRAIN]
TEST_TEXTS, TEST_LABELS = [row["text"] for row in TEST], [row["labels"] for row in TEST]
BINARIZER = MultiLabelBinarizer(sparse_output=True)
Y = BINARIZER.fit_transform(LABELS)

_CLASSES = "its y is one column of class numbers or names, not a matrix of zeros and ones"
_SPARSE = "it asks for a dense matrix: with a million labels there is none, so predict and predict_proba are sparse"
_BINARY = "it asks for a column for each of the two classes of a binary problem: here every column is a label"
NOT_FOR_US = {
    "check_estimators_dtypes": _CLASSES,
    "check_classifier_data_not_an_array": _CLASSES,
    "check_classifiers_classes": _CLASSES,
    "check_fit2d_1feature": _CLASSES,
    "check_classifier_not_supporting_multiclass": "it asks for the words of a binary classifier",
    "check_classifiers_train": _BINARY,
    "check_estimator_sparse_array": _BINARY,
    "check_estimator_sparse_matrix": _BINARY,
    "check_classifier_multioutput": _SPARSE,
    "check_classifiers_multilabel_output_format_predict": _SPARSE,
    "check_classifiers_multilabel_output_format_predict_proba": _SPARSE,
    "check_classifiers_multilabel_representation_invariance": "a plain list of lists is lists of labels here",
}


@parametrize_with_checks([XMTCClassifier(config=ONE_TREE)], expected_failed_checks=lambda _: NOT_FOR_US)
def test_checks_of_scikit_learn(estimator: XMTCClassifier, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def fitted() -> XMTCClassifier:
    return XMTCClassifier("linear", ONE_TREE, k=3).fit(TEXTS, Y)


def test_matrices_are_the_ranking_in_the_columns_of_y(fitted: XMTCClassifier) -> None:
    ranking = fitted.model_.rank(TEST_TEXTS, 3)
    scores, found = fitted.predict_proba(TEST_TEXTS), fitted.predict(TEST_TEXTS)
    for matrix in (scores, found):
        assert isinstance(matrix, sp.csr_matrix)
        assert matrix.shape == (30, 5)
    assert fitted.classes_.tolist() == [0, 1, 2, 3, 4]
    for row in range(30):
        entries = [label for label in ranking.labels[row] if label >= 0]
        columns = [int(fitted.model_.labels.ids[label]) for label in entries]
        assert sorted(columns) == found[row].indices.tolist() == scores[row].indices.tolist()
        assert scores[row].toarray()[0, columns].tolist() == ranking.scores[row][: len(columns)].tolist()
        assert found[row].data.tolist() == [1] * len(columns)


def test_the_threshold_cuts_scores(fitted: XMTCClassifier) -> None:
    strict = clone(fitted).set_params(threshold=0.5).fit(TEXTS, Y)
    found, scores = strict.predict(TEST_TEXTS), strict.predict_proba(TEST_TEXTS)
    assert (found != (scores >= 0.5).astype(int)).nnz == 0
    assert 0 < found.nnz < scores.nnz
    assert f1_score(BINARIZER.transform(TEST_LABELS), found, average="micro") > 0.9


def test_score_is_the_share_of_right_first_labels(fitted: XMTCClassifier) -> None:
    first = clone(fitted).set_params(k=1).fit(TEXTS, Y).predict(TEST_TEXTS)
    truth = BINARIZER.transform(TEST_LABELS)
    right = first.multiply(truth).sum() / 30
    assert fitted.score(TEST_TEXTS, truth) == pytest.approx(right)
    assert fitted.score(TEST_TEXTS, truth.toarray()) == pytest.approx(right)
    assert fitted.score(TEST_TEXTS, sp.csr_matrix((30, 5))) == 0
    named = XMTCClassifier(config=ONE_TREE).fit(TEXTS, LABELS)
    assert named.score(TEST_TEXTS, [[*labels, "never seen"] for labels in TEST_LABELS]) == pytest.approx(right)


def test_every_shape_of_y_gives_the_same(fitted: XMTCClassifier) -> None:
    expected = fitted.predict_proba(TEST_TEXTS).toarray()
    lists = XMTCClassifier("linear", ONE_TREE, k=3).fit(np.array(TEXTS), LABELS)
    assert lists.classes_.tolist() == BINARIZER.classes_.tolist()
    numbers = [[BINARIZER.classes_.tolist().index(label) for label in labels] for labels in LABELS]
    for y in (LABELS, numbers, Y.toarray(), Y.astype(bool), sp.csr_array(Y), Y.tocoo()):
        again = clone(fitted).fit(tuple(TEXTS), y)
        assert (again.predict_proba(np.array(TEST_TEXTS, dtype=object)).toarray() == expected).all()


def test_it_searches_over_a_csr(fitted: XMTCClassifier) -> None:
    grid = {"config": [{**ONE_TREE, "solver": {"C": C}} for C in (1e-6, 1.0)], "k": [1]}
    search = GridSearchCV(XMTCClassifier(), grid, cv=3).fit(TEXTS, Y)
    assert search.best_params_["config"]["solver"]["C"] == 1.0
    assert search.score(TEST_TEXTS, BINARIZER.transform(TEST_LABELS)) > 0.9
    assert sp.issparse(search.predict(TEST_TEXTS))


def test_a_fold_may_lack_labels() -> None:
    y = sp.csr_matrix((np.ones(60), (np.arange(60), [0] * 30 + [3] * 30)), shape=(60, 5))
    model = XMTCClassifier(config=ONE_TREE).fit(["sugar beet"] * 30 + ["fish net"] * 30, y)
    assert len(model.classes_) == 5
    assert model.predict(["fish net", "sugar beet"]).toarray()[:, [1, 2, 4]].sum() == 0
    assert set(model.predict_proba(["fish net"]).indices) <= {0, 3}


def test_pipelines_of_texts_and_of_features() -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    texts = Pipeline([("lower", lower), ("tag", XMTCClassifier(config=ONE_TREE))]).fit(TEXTS, Y)
    features = Pipeline([("tfidf", TfidfVectorizer()), ("tag", XMTCClassifier(config=ONE_TREE))]).fit(TEXTS, Y)
    truth = BINARIZER.transform(TEST_LABELS)
    assert texts.score([text.upper() for text in TEST_TEXTS], truth) > 0.9
    assert features.score(TEST_TEXTS, truth) > 0.9
    assert features[-1].n_features_in_ == len(features[0].vocabulary_)
    with pytest.raises(ValueError, match="ranks features"):
        features[-1].predict(TEST_TEXTS)
    with pytest.raises(ValueError, match="ranks texts"):
        texts[-1].predict(features[0].transform(TEST_TEXTS))


def test_a_clone_is_not_fitted(fitted: XMTCClassifier) -> None:
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "model_")


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ("sugar", Y, "one string"),
        (TEXTS[:3], Y[:2], "inconsistent numbers of samples"),
        (TEXTS[:2], ["t1", "t2"], "put a single label in a list"),
        (TEXTS[:2], np.array([0, 1]), "put a single label in a list"),
        (TEXTS[:2], np.array([[0, 2], [1, 0]]), "other numbers than 0 and 1"),
        (TEXTS[:2], np.array([["a", "b"], ["c", "d"]]), "Unknown label type"),
        (TEXTS[:2], [["a"], [1]], "all strings or all whole numbers"),
        (TEXTS[:2], [[1.5], [2.5]], "whole numbers"),
        (TEXTS[:2], [[], []], "no document has a label"),
        (["a", None], [["x"], ["y"]], "None"),
        (["a", "b"], None, "requires y"),
    ],
)
def test_mistakes_are_known_to_both(X: Any, y: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        XMTCClassifier(config=ONE_TREE).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "linaer"}, "Did you mean 'linear'"),
        ({"config": {"tre": {}}}, "tre"),
        ({"k": 0}, "k must be"),
        ({"threshold": "high"}, "threshold must be a number"),
    ],
)
def test_wrong_parameters_are_told_by_fit(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(XmtcError, match=words):
        XMTCClassifier(**parameters).fit(TEXTS[:4], Y[:4])


def test_a_truth_of_other_width_is_refused(fitted: XMTCClassifier) -> None:
    with pytest.raises(ValueError, match="4 columns"):
        fitted.score(TEXTS, Y[:, :4])


def test_it_needs_no_torch() -> None:
    code = HIDE_TORCH + "import xmtc.sklearn; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_it_trains_what_the_library_trains(fitted: XMTCClassifier) -> None:
    corpus = api.Corpus.from_lists(TEXTS, LABELS)
    model = api.train(corpus, "linear", ONE_TREE)
    assert (model.rank(TEST_TEXTS, 3).scores == fitted.model_.rank(TEST_TEXTS, 3).scores).all()


def test_lists_of_labels_become_a_matrix_that_searches_take(fitted: XMTCClassifier) -> None:
    lists = [[f"label {column}" for column in Y[row].indices] for row in range(Y.shape[0])]
    with pytest.raises(ValueError, match="Sequence of sequences"):
        GridSearchCV(XMTCClassifier(), {"k": [1]}, cv=3).fit(TEXTS, lists)
    matrix, classes = label_matrix(lists)
    assert [[classes[column] for column in matrix[row].indices] for row in range(len(lists))] == [
        sorted(labels) for labels in lists
    ]
    assert GridSearchCV(XMTCClassifier(), {"k": [1]}, cv=3).fit(TEXTS, matrix).best_score_ > 0
