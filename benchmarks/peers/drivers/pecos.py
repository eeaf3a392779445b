"""PECOS XR-Linear, through its Python API."""

from __future__ import annotations

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from benchmarks.machine import Clock, folder_mb
from benchmarks.peers.drivers.job import Job, environment, matrix, write_top
from benchmarks.process import Found, serve


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
    with Clock() as clock:
        found = model.predict(X, beam_size=job["settings"]["beam_size"], only_topk=job["k"], threads=job["threads"])
    write_top(job, [row.indices[np.argsort(-row.data, kind="stable")] for row in found.tocsr()])
    return {"seconds": clock.seconds, "load_seconds": load.seconds}


if __name__ == "__main__":
    serve({"train": train, "predict": predict})
