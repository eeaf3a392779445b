"""The phases of benchmarks.scale, each in a process of its own.

A job: `labels`, `documents`, `seed`, `threads`, `recipe`; `data` and `model`, folders to be made; `model_mb`, to limit.
"""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.linear_run import METHOD, Stages, warm_up
from benchmarks.machine import Clock, folder_mb
from benchmarks.process import Found, serve
from xmtc import api
from xmtc.core.corpus import Corpus
from xmtc.data import build_synthetic

_RANKED, _ALONE = 5000, 500  # test documents that are ranked in batches, and one by one
_LEAST_MB = 350  # what Python, numba and the label names need


def make(job: Found) -> Found:
    """Write the documents."""
    with Clock() as clock:
        build_synthetic(job["data"], job["documents"], job["labels"], job["seed"])
    return {"seconds": clock.seconds, "data_mb": folder_mb(job["data"])}


def train(job: Found) -> Found:
    """Read the train split, train, save."""
    warm_up(job)
    with Clock() as read:
        corpus = api.read_corpus(job["data"], "train")
    stages = Stages()
    model = api.train(corpus, METHOD, recipe=job["recipe"], seed=job["seed"], progress=stages)
    stages.stage("save")
    model.save(job["model"])
    stages.stage("")
    return {
        "seconds": {"read": read.seconds, **stages.seconds},
        "documents": len(corpus),
        "labels": model.manifest.n_labels,
        "matrix_mb": 8 * _entries(model, corpus) / 1e6,
        "config": model.manifest.config,
        "model_mb": folder_mb(job["model"]),
    }


def rank(job: Found) -> Found:
    """Load the model, rank texts of the test split in batches, then some of them one by one."""
    with Clock() as load:
        model: Any = api.load(job["model"])
    texts = [text for _, text in zip(range(_RANKED), api.read_corpus(job["data"], "test").texts or (), strict=False)]
    model.rank(texts[:1], 5)  # loads the kernels
    with Clock() as together:
        found = model.rank(texts, 5)
    np.save(_answer(job), found.labels)
    _asked(job).write_text(json.dumps(texts))  # a corpus would bring all label names along
    alone, vectorise = [], []
    for text in texts[:_ALONE]:
        with Clock() as clock:
            model.rank([text], 5)
        alone.append(1000 * clock.seconds)
        with Clock() as clock:
            model.tfidf.transform([text])
        vectorise.append(1000 * clock.seconds)
    return {
        "documents": len(texts),
        "load_seconds": load.seconds,
        "documents_per_second": len(texts) / together.seconds,
        "one_ms": _percentiles(alone),
        "vectorise_ms": _percentiles(vectorise),
        "nodes": 1 + (model.trees[0].depth - 1) * model.config.search.beam,
    }


def limited(job: Found) -> Found:
    """Rank with less memory of its own than the model takes: what is mapped from files does not count."""
    most = job["model_mb"] * 0.9
    if most < _LEAST_MB:
        return {"limit_mb": None}  # the model is smaller than what the process itself needs
    resource.setrlimit(resource.RLIMIT_DATA, (int(most * 1e6), int(most * 1e6)))
    model = api.load(job["model"])
    found = model.rank(json.loads(_asked(job).read_text()), 5)
    same = np.array_equal(found.labels, np.load(_answer(job), allow_pickle=False))
    return {"limit_mb": most, "documents": len(found), "same": bool(same)}


def _entries(model: Any, corpus: Corpus) -> float:
    """Entries of the training matrix, from a thousand of its rows."""
    some = corpus.take(np.linspace(0, len(corpus) - 1, min(1000, len(corpus))).astype(int))
    return float(model.tfidf.transform(some.texts).nnz / len(some) * len(corpus))


def _answer(job: Found) -> Path:
    return Path(job["data"]).with_name("labels.npy")


def _asked(job: Found) -> Path:
    return Path(job["data"]).with_name("texts.json")


def _percentiles(taken: list[float]) -> dict[str, float]:
    p50, p99 = np.percentile(taken, [50, 99]).tolist()
    return {"p50": p50, "p99": p99}


if __name__ == "__main__":
    serve({"make": make, "train": train, "rank": rank, "limited": limited})
