"""PECOS XR-Linear, through its Python API."""

from __future__ import annotations

import numpy as np
from pecos.utils.featurization.text.vectorizers import Tfidf
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from benchmarks.framework import Clock, Found, folder_mb
from benchmarks.peers.drivers.job import Job, alone, environment, matrix, repeat, texts, write_top

# scikit-learn's words and weights, as nearly as it offers them
TFIDF = {"ngram_range": [1, 1], "analyzer": "word", "min_df_cnt": 2, "sublinear_tf": True, "norm": "l2"}


def train(job: Job) -> Found:
    """Embed and cluster the labels (PIFA), train, save."""
    X, Y = matrix(job, "X.train"), matrix(job, "Y.train").tocsc()
    settings = job["settings"]
    with Clock() as clock:
        with Clock() as cluster:
            vectors = LabelEmbeddingFactory.create(Y.tocsr(), X, method="pifa")
            clusters = Indexer.gen(
                vectors,
                indexer_type="hierarchicalkmeans",
                nr_splits=settings["nr_splits"],
                threads=job["threads"],
                seed=job["seed"],
            )
        model = XLinearModel.train(
            X,
            Y,
            C=clusters,
            threads=job["threads"],
            threshold=settings["threshold"],
            negative_sampling_scheme=settings["negative_sampling_scheme"],
            Cp=settings.get("C", 1.0),  # 1 is its default
            Cn=settings.get("C", 1.0),
        )
        model.save(job["model"])
    return {
        "seconds": clock.seconds,
        "cluster_seconds": cluster.seconds,
        "model_mb": folder_mb(job["model"]),
        **environment("libpecos", "torch"),
    }


def predict(job: Job) -> Found:
    """Rank all test documents in one call."""
    X = matrix(job, "X.test")
    with Clock() as load:
        model = XLinearModel.load(job["model"], is_predict_only=True)
    options = {"beam_size": job["settings"]["beam_size"], "only_topk": job["k"], "threads": job["threads"]}
    found, seconds = repeat(lambda: model.predict(X, **options))
    write_top(job, [row.indices[np.argsort(-row.data, kind="stable")] for row in found.tocsr()])
    return {"seconds": min(seconds), "all_seconds": seconds, "load_seconds": load.seconds}


def single(job: Job) -> Found:
    """Rank documents one by one; texts are vectorised by its own TF-IDF."""
    model = XLinearModel.load(job["model"], is_predict_only=True)
    options = {"beam_size": job["settings"]["beam_size"], "only_topk": 5, "threads": 1}
    vectoriser = Tfidf.train(texts(job, "train"), {**TFIDF, "threads": job["threads"]})
    return alone(
        job, lambda row: model.predict(row, **options), lambda text: vectoriser.predict([text], threads=1), own=True
    )


def tfidf(job: Job) -> Found:
    """Fit its TF-IDF on the training texts, then transform them and the test texts."""
    train, test = texts(job, "train"), texts(job, "test")
    with Clock() as fit:
        vectoriser = Tfidf.train(train, {**TFIDF, "threads": job["threads"]})
        vectoriser.predict(train, threads=job["threads"])
    found, seconds = repeat(lambda: vectoriser.predict(test, threads=job["threads"]))
    return {
        "fit_transform": fit.seconds,
        "transform": min(seconds),
        "all_seconds": seconds,
        "features": found.shape[1],
        **environment("libpecos"),
    }


PHASES = {"train": train, "predict": predict, "single": single, "tfidf": tfidf}
