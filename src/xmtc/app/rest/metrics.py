"""Counters for Prometheus, summed over the workers of a server. docs/SERVING.md lists the names.

With several workers, prometheus_client stores the counters in files of a shared folder; it reads the folder's name from
the environment when it is imported. Counts of a worker that died stay in the sums.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

_SHARED = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The metrics of a server."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.requests = Counter("xmtc_requests", "Answers.", ["route", "method", "status"], registry=registry)
        self.in_progress = Gauge(
            "xmtc_requests_in_progress", "Requests being answered.", registry=registry, multiprocess_mode="livesum"
        )
        self.seconds = Histogram(
            "xmtc_request_seconds", "Time from request to answer.", ["route"], buckets=_SECONDS, registry=registry
        )
        self.texts = Counter("xmtc_texts", "Texts ranked.", ["model"], registry=registry)
        self.batch = Histogram(
            "xmtc_batch_texts", "Texts ranked together.", ["model"], buckets=_TEXTS, registry=registry
        )
        self.ranking = Histogram(
            "xmtc_rank_seconds", "Time to rank a batch.", ["model"], buckets=_SECONDS, registry=registry
        )
        self.explanations = Counter("xmtc_explanations", "Labels explained.", ["model"], registry=registry)
        self.waiting = Gauge(
            "xmtc_queue_texts",
            "Texts waiting or being ranked.",
            ["model"],
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.refused = Counter("xmtc_refused", "Requests that found the queue full.", ["model"], registry=registry)
        self.reloads = Counter(
            "xmtc_reloads", "Models read again: replaced, unchanged or failed.", ["model", "result"], registry=registry
        )
        self.labels = Gauge(
            "xmtc_model_labels",
            "Labels of a loaded model.",
            ["model"],
            registry=registry,
            multiprocess_mode="livemostrecent",
        )
        folder = os.environ.get(_SHARED)
        self._shown = registry if folder is None else CollectorRegistry()
        if folder is None:
            ProcessCollector(registry=self._shown)
        else:
            MultiProcessCollector(self._shown, folder)  # type: ignore[no-untyped-call]
            self._shown.register(_Processes(Path(folder)))
        PlatformCollector(registry=self._shown)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's format."""
        return generate_latest(self._shown)


class _Processes(Collector):
    """Memory, CPU and open files of each worker, by its process id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder  # the file of a worker's live gauges is deleted when it dies

    def collect(self) -> Iterator[Metric]:
        """Yield the samples of all running workers."""
        processes = sorted(int(file.stem.split("_")[-1]) for file in self._folder.glob("gauge_livesum_*.db"))
        families: dict[str, Metric] = {}
        for process in processes:
            for family in ProcessCollector(pid=partial(int, process), registry=None).collect():
                known = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                known.samples += [
                    sample._replace(labels={**sample.labels, "worker": str(process)}) for sample in family.samples
                ]
        yield GaugeMetricFamily("xmtc_workers", "Server processes.", value=len(processes))
        yield from families.values()
