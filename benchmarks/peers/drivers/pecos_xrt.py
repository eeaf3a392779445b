"""PECOS XR-Transformer, through its Python API; the job's `encoder` is the folder of the weights it begins with."""

from __future__ import annotations

from typing import Any

import numpy as np
from pecos.utils import torch_util
from pecos.xmc.xtransformer.model import XTransformer
from pecos.xmc.xtransformer.module import MLProblemWithText

from benchmarks.framework import Clock, Found, folder_mb
from benchmarks.peers.drivers.job import Job, environment, matrix, texts, write_top

_WORKERS = 1  # processes that make batches of tokens; with none it divides by zero
_CHARACTERS = 64  # of a text for each token that is read: the others would change nothing but its memory


def train(job: Job) -> Found:
    """Cluster the labels (PIFA), fine-tune the encoder level by level, train the ranker, save."""
    X, Y, documents = matrix(job, "X.train"), matrix(job, "Y.train"), _beginnings(job, "train")
    torch_util.set_seed(job["seed"])
    with Clock() as clock:
        model = XTransformer.train(
            MLProblemWithText(documents, Y, X_feat=X),
            train_params=_fill(XTransformer.TrainParams, job),
            pred_params=_fill(XTransformer.PredParams, job),
            threads=job["threads"],
            beam_size=job["settings"]["beam_size"],
        )
        model.save(job["model"])
    return {
        "seconds": clock.seconds,
        "model_mb": folder_mb(job["model"]),
        **environment("libpecos", "torch", "transformers"),
    }


def predict(job: Job) -> Found:
    """Rank all test documents in one call, vectorised already; tokenizing is part of the time."""
    X, documents = matrix(job, "X.test"), _beginnings(job, "test")
    with Clock() as load:
        model = XTransformer.load(job["model"], is_predict_only=True)
    with Clock() as clock:
        found = model.predict(
            documents,
            X_feat=X,
            beam_size=job["settings"]["beam_size"],
            only_topk=job["k"],
            batch_size=job["settings"]["batch_size"],
            batch_gen_workers=_WORKERS,
            threads=job["threads"],
        )
    write_top(job, [row.indices[np.argsort(-row.data, kind="stable")] for row in found.tocsr()])
    return {"seconds": clock.seconds, "load_seconds": load.seconds}


def _beginnings(job: Job, split: str) -> list[str]:
    """The texts, cut behind the tokens that it reads: of whole ones of eurlex57k it took 17 GB before it trained."""
    return [text[: _CHARACTERS * job["settings"]["truncate_length"]] for text in texts(job, split)]


def _fill(kind: Any, job: Job) -> Any:
    """Its settings of training or prediction: its defaults, but for the rival's."""
    settings = job["settings"]
    return kind.from_dict(
        {
            "model_shortcut": job["encoder"],
            "truncate_length": settings["truncate_length"],
            "num_train_epochs": settings["num_train_epochs"],
            "batch_size": settings["batch_size"],
            "learning_rate": settings["learning_rate"],
            "batch_gen_workers": _WORKERS,
            "threads": job["threads"],
            "seed": job["seed"],
        },
        recursive=True,
    )


PHASES = {"train": train, "predict": predict}
