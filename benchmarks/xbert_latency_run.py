"""The phases of benchmarks.xbert_latency: train a case, or rank texts one by one and time the stages of each.

A job: `data` (folder), `model` (folder), `documents` (texts to rank), `threads`; to train, `recipe` and `settings`; to
rank by some members alone, `members`, the number of the first.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import Clock
from benchmarks.process import Found, serve
from benchmarks.train import title
from benchmarks.train_run import _encoder_in_words, _version_in_words
from xmtc import api
from xmtc.core.errors import ModelError, XmtcError
from xmtc.core.model import Model
from xmtc.methods.xbert.matcher import NeuralMatcher
from xmtc.methods.xbert.model import JointMatcher, Member, StagedModel

_WARM_UP = 20  # documents that are ranked before the clock runs


def train(job: Found) -> Found:
    """Train and save a case; a finished one is left as it is."""
    corpus = api.read_corpus(job["data"], "train")
    Path(job["model"]).parent.mkdir(parents=True, exist_ok=True)
    api.train(corpus, config=job["settings"], recipe=job["recipe"], out=job["model"], resume=True)
    return {}


def rank(job: Found) -> Found:
    """Rank texts one by one; return percentiles of each stage's milliseconds."""
    model = api.load(job["model"])
    if not isinstance(model, StagedModel):
        raise ModelError(f"{Path(job['model']).name} is a model of {model.manifest.method}; give one of xbert")
    model = replace(model, members=model.members[: job.get("members")])
    texts = list(api.read_corpus(job["data"], "test").texts or ())[: job["documents"]]
    laps = Laps()
    watched = watch(model, laps)
    for text in texts[:_WARM_UP]:
        watched.rank([text], 5)
    documents = [_time(watched, text, laps) for text in texts]
    return {
        "title": _title(model),
        "documents": len(documents),
        "labels": model.labels.n_labels,
        "clusters": model.members[0].partition.n_clusters,
        "members": len(model.members),
        "ms": {stage: _percentiles([document[stage] for document in documents]) for stage in documents[0]},
    }


class Laps:
    """Seconds of each stage of one document, over all members."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def lap(self, stage: str) -> Iterator[None]:
        """Add the time inside the `with` to a stage."""
        start = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start


def watch(model: StagedModel, laps: Laps) -> StagedModel:
    """Return the same model with a clock at the parts that its `rank` calls."""
    tfidf: Any = Timed("vectorising", model.tfidf, laps)
    reader: Any = None if model.reader is None else Timed("tokenizing", model.reader, laps)
    return replace(
        model, tfidf=tfidf, reader=reader, members=tuple(_watch_member(member, laps) for member in model.members)
    )


@dataclass(frozen=True, eq=False)
class Timed:
    """A part of a model whose one method that ranking calls is timed."""

    stage: str
    inner: Any
    laps: Laps

    def __call__(self, *given: Any) -> Any:
        """Tokenize."""
        with self.laps.lap(self.stage):
            return self.inner(*given)

    def transform(self, *given: Any) -> Any:
        """Vectorise."""
        with self.laps.lap(self.stage):
            return self.inner.transform(*given)

    def match(self, *given: Any) -> Any:
        """Retrieve clusters."""
        with self.laps.lap(self.stage):
            return self.inner.match(*given)

    def forward(self, *given: Any) -> Any:
        """Run a network's body."""
        with self.laps.lap(self.stage):
            return self.inner(*given)


def _watch_member(member: Member, laps: Laps) -> Member:
    neural = member.matcher.neural if isinstance(member.matcher, JointMatcher) else member.matcher
    if isinstance(neural, NeuralMatcher):
        body = neural.network.body
        body.forward = Timed("encoder", body.forward, laps).forward  # type: ignore[method-assign]
    return replace(member, matcher=Timed("matching", member.matcher, laps))  # type: ignore[arg-type]


def _time(model: Model, text: str, laps: Laps) -> dict[str, float]:
    """Seconds of each stage of one text; ranking is what the others leave over."""
    laps.seconds = {}
    with Clock() as whole:
        model.rank([text], 5)
    found = laps.seconds
    matching = found.pop("matching")
    ranking = whole.seconds - matching - found["vectorising"] - found.get("tokenizing", 0.0)
    return {
        **found,
        "cluster scores": matching - found.get("encoder", 0.0),
        "ranking": ranking,
        "all but vectorising": whole.seconds - found["vectorising"],
        "all": whole.seconds,
    }


def _percentiles(seconds: list[float]) -> dict[str, float]:
    p50, p99 = (1000 * np.percentile(seconds, [50, 99])).tolist()
    return {"p50": p50, "p99": p99}


def _title(model: Model) -> str:
    words = {"encoder": _encoder_in_words(model), "version": _version_in_words(model)}
    return title({"method": "xbert", "recipe": "xbert", "curve": model.manifest.details["curve"], **words})


if __name__ == "__main__":
    try:
        serve({"train": train, "rank": rank})
    except XmtcError as error:
        sys.exit(str(error))
