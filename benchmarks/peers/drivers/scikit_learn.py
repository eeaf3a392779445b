"""scikit-learn: LinearSVC one-vs-rest, the fits of OneVsRestClassifier, and its TF-IDF.

Each label's weights are kept sparse, for dense ones of thousands of labels would not fit memory. Training ends with an
error as soon as it can be told that it will not finish in time.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.svm import LinearSVC

from benchmarks.framework import Clock, Found, folder_mb
from benchmarks.peers.drivers.job import Job, alone, environment, matrix, repeat, scikit_learn_tfidf, texts, write_top

_BATCH = 256  # documents whose scores for all labels, dense, are held at a time
_BLOCK = 16  # labels of a task


def train(job: Job) -> Found:
    """Fit one LinearSVC a label, save."""
    X, Y = matrix(job, "X.train").astype(np.float64), matrix(job, "Y.train").tocsc()
    n_labels, prune = Y.shape[1], job["settings"]["prune"]
    order = np.random.default_rng(job["seed"]).permutation(n_labels)  # so that the first tell the time of all
    tasks = [order[start : start + _BLOCK] for start in range(0, n_labels, _BLOCK)]
    weights: list[sp.csr_matrix] = []
    biases: list[np.ndarray] = []
    with Clock() as clock:
        start = time.perf_counter()
        with Parallel(n_jobs=job["threads"], return_as="generator") as pool:
            for done, (rows, intercepts) in enumerate(pool(delayed(_fit)(X, Y, task, prune) for task in tasks), 1):
                weights.append(rows)
                biases.append(intercepts)
                expected = (time.perf_counter() - start) * len(tasks) / done
                if done >= 4 * job["threads"] and expected > job["settings"]["most_seconds"]:
                    raise TimeoutError(
                        f"{done * _BLOCK} of {n_labels} labels tell that all would take about {expected:,.0f} s"
                    )
        back = np.argsort(np.concatenate(tasks))
        W = sp.vstack(weights, format="csr")[back].T.tocsr()
        folder = Path(job["model"])
        folder.mkdir(parents=True)
        sp.save_npz(folder / "weights.npz", W, compressed=False)
        np.save(folder / "biases.npy", np.concatenate(biases)[back])
    return {"seconds": clock.seconds, "model_mb": folder_mb(job["model"]), **environment("scikit-learn")}


def predict(job: Job) -> Found:
    """Rank all test documents, some at a time."""
    X = matrix(job, "X.test")
    W, biases = _load(job)
    rows: list[np.ndarray] = []
    with Clock() as clock:
        for start in range(0, X.shape[0], _BATCH):
            rows += list(_best(X[start : start + _BATCH], W, biases, job["k"]))
    write_top(job, rows)
    return {"seconds": clock.seconds}


def single(job: Job) -> Found:
    """Rank documents one by one."""
    W, biases = _load(job)
    return alone(job, lambda row: _best(row, W, biases, 5))


def tfidf(job: Job) -> Found:
    """Fit its TF-IDF on the training texts and transform them, then the test texts."""
    train, test = texts(job, "train"), texts(job, "test")
    vectoriser = scikit_learn_tfidf()
    with Clock() as fit:
        vectoriser.fit_transform(train)
    found, seconds = repeat(lambda: vectoriser.transform(test))
    return {
        "fit_transform": fit.seconds,
        "transform": min(seconds),
        "all_seconds": seconds,
        "features": found.shape[1],
        **environment("scikit-learn"),
    }


def _fit(X: sp.csr_matrix, Y: sp.csc_matrix, labels: np.ndarray, prune: float) -> tuple[sp.csr_matrix, np.ndarray]:
    warnings.filterwarnings("ignore")
    weights, biases = [], []
    for label in labels:
        y = np.zeros(X.shape[0])
        y[Y.indices[Y.indptr[label] : Y.indptr[label + 1]]] = 1
        if 0 < y.sum() < len(y):
            fitted = LinearSVC().fit(X, y)
            w, bias = fitted.coef_.ravel(), float(fitted.intercept_[0])
        else:
            w, bias = np.zeros(X.shape[1]), 1.0 if y.all() else -1.0
        weights.append(sp.csr_matrix(np.where(np.abs(w) >= prune, w, 0).astype(np.float32)))
        biases.append(bias)
    return sp.vstack(weights, format="csr"), np.array(biases, dtype=np.float32)


def _load(job: Job) -> tuple[sp.csr_matrix, np.ndarray]:
    folder = Path(job["model"])
    return sp.csr_matrix(sp.load_npz(folder / "weights.npz")), np.load(folder / "biases.npy", allow_pickle=False)


def _best(X: sp.csr_matrix, W: sp.csr_matrix, biases: np.ndarray, k: int) -> np.ndarray:
    scores = (X @ W).toarray() + biases
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


PHASES = {"train": train, "predict": predict, "single": single, "tfidf": tfidf}
