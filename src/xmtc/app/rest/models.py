"""The loaded models, each with its queue and thread; a model is replaced without downtime when its folder changes.

The new model answers all later requests; the old one answers those it has accepted, and is removed. If a folder cannot
be loaded, the old model stays.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from xmtc import api
from xmtc.app.rest.batching import Batcher, QueueFullError
from xmtc.app.rest.jobs import SuggestJob, answer_jobs
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.problems import ProblemError, overloaded, unknown_name
from xmtc.app.rest.search import LabelSearch
from xmtc.core.abilities import count_ranked
from xmtc.core.errors import ModelError, XmtcError
from xmtc.core.model import Model
from xmtc.core.steering import suggest
from xmtc.core.storage import MANIFEST

Gone = Callable[[], Coroutine[Any, Any, None]]  # returns when the client has left
_log = logging.getLogger("xmtc.serve")


class LoadedModel:
    """One model, ready to answer."""

    def __init__(self, name: str, folder: Path, queue: int, metrics: Metrics) -> None:
        self.name = name
        self.stamp = _stamp(folder)  # before loading, so that a change during loading is noticed next time
        self.model: Model = api.load(folder)
        if api.n_features(self.model) is not None:
            raise ModelError(
                f"{folder} contains a model trained on features; only models trained on texts can be served"
            )
        self.labels = self.model.labels
        self.n_ranked = count_ranked(self.model)  # concepts that the model can rank
        self.search = LabelSearch(self.labels)
        first = suggest(self.model, ["warm up"], 1)  # compiles kernels, or reads them from the cache
        self.calibrated = first.probabilities is not None
        self.hierarchy = any(self.labels.parents)
        self.batcher: Batcher[SuggestJob] = Batcher(
            name, partial(answer_jobs, name, self.model, metrics), queue, count=metrics.waiting.labels(name).inc
        )

    def describe(self) -> dict[str, object]:
        """Return the model's entry in GET /v1/models."""
        manifest = self.model.manifest
        return {
            "name": self.name,
            "method": manifest.method,
            "n_labels": self.n_ranked,
            "n_documents": manifest.n_documents,
            "calibrated": self.calibrated,
            "explains": True,  # every text model does
            "hierarchy": self.hierarchy,
        }


class Models:
    """All loaded models, by name. Call its methods from the event loop's thread, except the constructor and `close`."""

    def __init__(self, folders: Mapping[str, Path], queue: int, timeout: float, metrics: Metrics) -> None:
        self._folders = dict(folders)
        self._queue = queue
        self._timeout = timeout
        self._metrics = metrics
        self._loaded: dict[str, LoadedModel] = {}
        self._reloading = asyncio.Lock()
        for name in folders:
            self._put(self._load(name))

    def all(self) -> list[LoadedModel]:
        """Return the models in their given order."""
        return [self._loaded[name] for name in self._folders]

    def get(self, name: str, kind: str = "model") -> LoadedModel:
        """Return a model; raise a 404 that suggests the nearest name if there is none."""
        if name not in self._loaded:
            raise unknown_name(kind, name, list(self._loaded))
        return self._loaded[name]

    async def submit(self, loaded: LoadedModel, job: SuggestJob, gone: Gone) -> bytes:
        """Return the answer to a job; raise 503 if it is rejected, 504 if it times out.

        A job is rejected if the queue is full or the job could not be answered in time. No other task may run between
        `get` and this call, because a model is replaced between two steps of the loop.
        """
        try:
            return await loaded.batcher.submit(job, self._timeout, gone)
        except QueueFullError as full:
            self._metrics.refused.labels(loaded.name).inc()
            raise overloaded(
                f"model {loaded.name!r} has more texts waiting than it can answer in time", full.seconds
            ) from None
        except TimeoutError:
            raise ProblemError(
                504, f"no answer within {self._timeout:g} s; send fewer or shorter texts, or ask for less"
            ) from None

    async def reload(self) -> None:
        """Load every folder that has changed since it was loaded, and replace the old model."""
        async with self._reloading:
            for name in self._folders:
                await self._reload_one(name)

    def ready(self) -> bool:
        """Return whether every model answers."""
        return all(loaded.batcher.alive for loaded in self._loaded.values())

    def close(self) -> None:
        """Let every model answer the jobs it has accepted, then stop."""
        for loaded in self._loaded.values():
            loaded.batcher.close()
        for loaded in self._loaded.values():
            loaded.batcher.join(self._timeout)

    async def _reload_one(self, name: str) -> None:
        old = self._loaded[name]
        try:
            if _stamp(self._folders[name]) == old.stamp:
                self._metrics.reloads.labels(name, "unchanged").inc()
                _log.info("model %r is unchanged", name)
                return
            new = await asyncio.to_thread(self._load, name)
        except Exception as error:
            self._metrics.reloads.labels(name, "failed").inc()
            what = str(error) if isinstance(error, XmtcError) else f"{type(error).__name__}: {error}"
            _log.error("error: cannot replace model %r, so the old one stays in use: %s", name, " ".join(what.split()))
            return
        self._put(new)
        old.batcher.close()
        self._metrics.reloads.labels(name, "replaced").inc()
        _log.info("model %r is replaced: %s, %d labels", name, new.model.manifest.method, new.n_ranked)

    def _load(self, name: str) -> LoadedModel:
        return LoadedModel(name, self._folders[name], self._queue, self._metrics)

    def _put(self, loaded: LoadedModel) -> None:
        self._loaded[loaded.name] = loaded
        self._metrics.labels.labels(loaded.name).set(loaded.n_ranked)


def _stamp(folder: Path) -> bytes:
    """Return the manifest's bytes, which change with the model: they contain the sha256 of every file."""
    try:
        return (folder / MANIFEST).read_bytes()
    except OSError:
        return b""
