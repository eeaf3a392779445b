"""The phases of benchmarks.xbert_scale, each in a process of its own.

A job: `labels`, `documents`, `seed`, `threads`; `data`, `model` and `cache`, folders to be made.
"""

from __future__ import annotations

import os
import time

import numpy as np

from benchmarks.machine import Clock, folder_mb
from benchmarks.process import Found, serve
from xmtc import api
from xmtc.core.progress import Progress
from xmtc.data import build_synthetic

_SETTINGS = {"cluster": {"vectors": ["pifa"]}, "match": {"kind": "linear"}}
_RANKED, _ALONE = 2000, 500  # test documents that are ranked in batches, and one by one


def make(job: Found) -> Found:
    """Write the documents."""
    with Clock() as clock:
        build_synthetic(job["data"], job["documents"], job["labels"], job["seed"])
    return {"seconds": clock.seconds, "data_mb": folder_mb(job["data"])}


def train(job: Found) -> Found:
    """Read the train split, train one member, save."""
    os.environ["XMTC_CACHE"] = job["cache"]
    stages = Stages()
    stages.stage("read")
    corpus = api.read_corpus(job["data"], "train")
    model = api.train(corpus, "xbert", _SETTINGS, out=job["model"], seed=job["seed"], progress=stages)
    stages.stage("")
    return {
        "seconds": stages.seconds,
        "documents": model.manifest.n_documents,
        "labels": model.manifest.n_labels,
        "clusters": model.manifest.details["clusters"],
        "config": model.manifest.config,
        "model_mb": folder_mb(job["model"]),
    }


def rank(job: Found) -> Found:
    """Load the model, rank texts of the test split in batches, then some of them one by one."""
    with Clock() as load:
        model = api.load(job["model"])
    texts = list(api.read_corpus(job["data"], "test").texts or ())[:_RANKED]
    model.rank(texts[:1], 5)  # loads the kernels
    with Clock() as together:
        model.rank(texts, 5)
    alone = []
    for text in texts[:_ALONE]:
        with Clock() as clock:
            model.rank([text], 5)
        alone.append(1000 * clock.seconds)
    p50, p99 = np.percentile(alone, [50, 99]).tolist()
    return {
        "documents": len(texts),
        "load_seconds": load.seconds,
        "batch_ms": 1000 * together.seconds / len(texts),
        "one_ms": {"p50": p50, "p99": p99},
    }


class Stages(Progress):
    """Seconds of each stage; the levels of the matcher's tree are one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._name, self._since = "", time.perf_counter()

    def stage(self, name: str) -> None:
        """Book the time since the last stage began on that stage."""
        now = time.perf_counter()
        if self._name:
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
        self._name = "training the matcher" if name.startswith("training level") else name
        self._since = now


if __name__ == "__main__":
    serve({"make": make, "train": train, "rank": rank})
