"""LibMultiLabel's linear tree, through its Python API."""

from __future__ import annotations

from pathlib import Path

import libmultilabel.linear as linear
import numpy as np
import psutil

from benchmarks.framework import Clock, Found, folder_mb
from benchmarks.peers.drivers.job import Job, alone, environment, matrix, write_top

_BATCH = 256  # documents whose scores for all labels, dense, are held at a time


def train(job: Job) -> Found:
    """Cluster, train, and save as it saves its own pipelines."""
    X, Y = matrix(job, "X.train").astype(np.float64), matrix(job, "Y.train").astype(np.float64)
    settings = job["settings"]
    options = settings["options"] + (f" -c {settings['C']}" if "C" in settings else "")
    psutil.cpu_count = lambda logical=True: job["threads"]
    np.random.seed(job["seed"])  # the generator that it draws from
    with Clock() as clock:
        model = linear.train_tree(Y, X, options, K=settings["K"], dmax=settings["dmax"], verbose=False)
        linear.save_pipeline(job["model"], None, model)
    return {
        "seconds": clock.seconds,
        "model_mb": folder_mb(job["model"]),
        **environment("libmultilabel", "liblinear-multicore", "sparsekmeans"),
    }


def predict(job: Job) -> Found:
    """Rank all test documents, some at a time."""
    X = matrix(job, "X.test").astype(np.float64)
    k, width = job["k"], job["settings"]["beam_width"]
    with Clock() as load:
        _, model = linear.load_pipeline(str(Path(job["model"], "linear_pipeline.pickle")))
    rows = []
    with Clock() as clock:
        for start in range(0, X.shape[0], _BATCH):
            values = model.predict_values(X[start : start + _BATCH], beam_width=width)
            best = np.argsort(-values, axis=1, kind="stable")[:, :k]
            # a score of 0 says that the search left the label out
            rows += [labels[found[labels] > 0] for labels, found in zip(best, values, strict=True)]
    write_top(job, rows)
    return {"seconds": clock.seconds, "load_seconds": load.seconds}


def single(job: Job) -> Found:
    """Rank documents one by one."""
    _, model = linear.load_pipeline(str(Path(job["model"], "linear_pipeline.pickle")))
    width = job["settings"]["beam_width"]
    return alone(
        job,
        lambda row: np.argsort(-model.predict_values(row.astype(np.float64), beam_width=width), kind="stable")[:, :5],
    )


PHASES = {"train": train, "predict": predict, "single": single}
