"""One phase of xmtc's linear method, in a process of its own: warm up, train, or rank. Started by benchmarks.linear."""

from __future__ import annotations

import time

from benchmarks.machine import Clock, folder_mb
from benchmarks.process import Found, serve
from benchmarks.store import OURS, WIDTH, write_ranking
from xmtc import api
from xmtc.core import metrics
from xmtc.core.corpus import Corpus
from xmtc.core.progress import Progress

METHOD = "linear"
_SHORT = {"vectorising": "vectorise", "clustering labels": "cluster"}  # stage → its name in results


def warm_up(job: Found) -> Found:
    """Compile the kernels into numba's cache on disk, or load them from there."""
    rows = range(400)
    texts = [" ".join(f"word{i * j % 97}" for j in range(1, 20)) for i in rows]
    model = api.train(Corpus.from_lists(texts, [[i % 150, i % 7 + 200] for i in rows]), METHOD)
    model.rank(texts, WIDTH)
    return {}


def train(job: Found) -> Found:
    """Read the train split, train with the default settings, save."""
    with Clock() as kernels:
        warm_up(job)
    with Clock() as read:
        corpus = api.read_corpus(job["data"], "train")
    stages = Stages()
    model = api.train(corpus, METHOD, seed=job["seed"], progress=stages)
    stages.stage("save")
    model.save(job["model"])
    stages.stage("")
    return {
        "seconds": {"kernels": kernels.seconds, "read": read.seconds, **stages.seconds},
        "config": model.manifest.config,
        "data": {"train": model.manifest.data, "documents": len(corpus), "labels": model.manifest.n_labels},
        "model_mb": folder_mb(job["model"]),
    }


def rank(job: Found) -> Found:
    """Load the model, rank the test split, store the ranking and score it against both truths."""
    with Clock() as read:
        corpus = api.read_corpus(job["data"], "test")
    with Clock() as load:
        model = api.load(job["model"])
    with Clock() as first:
        api.rank_corpus(model, corpus.take([0]), WIDTH)
    with Clock() as every:
        ranking = api.rank_corpus(model, corpus, WIDTH)
    aligned = corpus.align(model.labels)
    reports = {
        mode: metrics.evaluate(
            ranking, aligned.Y, aligned.labels, model.manifest.n_documents, mode=mode, intervals=True
        ).to_json()
        for mode in ("known", "all")
    }
    return {
        "seconds": {"read": read.seconds, "load": load.seconds, "first": first.seconds, "rank": every.seconds},
        "documents_per_second": len(corpus) / every.seconds,
        "data": {"test": corpus.fingerprint(), "documents": len(corpus)},
        "ranking": write_ranking(job["set"], OURS, ranking.labels, ranking.scores),
        "reports": reports,
    }


class Stages(Progress):
    """Seconds of each stage of training; `whole` counts all levels of a tree, and all trees, as one stage."""

    def __init__(self, whole: bool = True) -> None:
        self.seconds: dict[str, float] = {}
        self._whole = whole
        self._name, self._since = "", time.perf_counter()

    def stage(self, name: str) -> None:
        """Book the time since the last stage began on that stage."""
        now = time.perf_counter()
        if self._name:
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
        self._name = "train" if self._whole and name.startswith("training") else _SHORT.get(name, name)
        self._since = now


if __name__ == "__main__":
    serve({"warm_up": warm_up, "train": train, "rank": rank})
