"""xmtc's own linear method on the same matrices, as its rivals run: a driver like theirs, in xmtc's environment."""

from __future__ import annotations

import numpy as np

from benchmarks.framework import Clock, Found, folder_mb
from benchmarks.linear import METHOD, warm_up
from benchmarks.peers.drivers.job import Job, alone, environment, matrix, repeat, texts, write_top
from benchmarks.stages import Stages, short_name
from xmtc import api
from xmtc.core.config import merge
from xmtc.core.corpus import Corpus
from xmtc.core.labels import LabelSet
from xmtc.core.texts import Texts
from xmtc.features.tfidf import fit_tfidf
from xmtc.methods.linear.method import LinearConfig

_TFIDF = LinearConfig().tfidf


def train(job: Job) -> Found:
    """Cluster the labels, train, save; compiling the kernels, once a machine, comes before."""
    with Clock() as kernels:
        warm_up(job)
    X, Y = matrix(job, "X.train"), matrix(job, "Y.train")
    labels = LabelSet.build(f"{label:07d}" for label in range(Y.shape[1]))  # sorted as numbers are
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    corpus = Corpus(Texts.pack(map(str, range(X.shape[0]))), None, X, Y, labels.with_counts(counts))
    stages, settings = Stages(short_name), job["settings"]
    C = {"solver": {"C": settings["C"]}} if "C" in settings else {}
    config = merge(settings.get("config", {}), C)
    with Clock() as clock:
        model = api.train(corpus, METHOD, config, recipe=settings["recipe"], seed=job["seed"], progress=stages)
        stages.stage("save")
        model.save(job["model"])
        stages.stage("")
    return {
        "seconds": clock.seconds,
        "stages": stages.seconds,
        "kernels_seconds": kernels.seconds,
        "model_mb": folder_mb(job["model"]),
        "config": model.manifest.config,
        **environment("xmtc", "numba"),
    }


def predict(job: Job) -> Found:
    """Rank all test documents in one call."""
    X = matrix(job, "X.test")
    with Clock() as load:
        model = api.load(job["model"])
    model.rank(X[:1], job["k"])
    found, seconds = repeat(lambda: model.rank(X, job["k"]))
    write_top(job, [row[row >= 0] for row in found.labels])
    return {"seconds": min(seconds), "all_seconds": seconds, "load_seconds": load.seconds}


def single(job: Job) -> Found:
    """Rank documents one by one; texts are vectorised by xmtc's TF-IDF."""
    model = api.load(job["model"])
    vectoriser = fit_tfidf(texts(job, "train"), _TFIDF)[0]
    return alone(job, lambda row: model.rank(row, 5), lambda text: vectoriser.transform([text]))


def tfidf(job: Job) -> Found:
    """Fit on the training texts and transform them, then the test texts."""
    warm_up(job)
    train, test = texts(job, "train"), texts(job, "test")
    with Clock() as fit:
        vectoriser, _ = fit_tfidf(train, _TFIDF)
    found, seconds = repeat(lambda: vectoriser.transform(test))
    return {
        "fit_transform": fit.seconds,
        "transform": min(seconds),
        "all_seconds": seconds,
        "features": found.shape[1],
        **environment("xmtc", "numba"),
    }


PHASES = {"train": train, "predict": predict, "single": single, "tfidf": tfidf}
