"""Counters for Prometheus. Each server has its own; docs/SERVING.md lists the names."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """What is counted."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self.requests = Counter("xmtc_requests", "Answers.", ["route", "method", "status"], registry=registry)
        self.in_progress = Gauge("xmtc_requests_in_progress", "Requests being answered.", registry=registry)
        self.seconds = Histogram(
            "xmtc_request_seconds", "From head to answer.", ["route"], buckets=_SECONDS, registry=registry
        )
        self.texts = Counter("xmtc_texts", "Texts ranked.", ["model"], registry=registry)
        self.batch = Histogram(
            "xmtc_batch_texts", "Texts ranked together.", ["model"], buckets=_TEXTS, registry=registry
        )
        self.ranking = Histogram(
            "xmtc_rank_seconds", "Time to rank a batch.", ["model"], buckets=_SECONDS, registry=registry
        )
        self.explanations = Counter("xmtc_explanations", "Labels explained.", ["model"], registry=registry)
        self.waiting = Gauge("xmtc_queue_texts", "Texts waiting or being ranked.", ["model"], registry=registry)
        self.refused = Counter("xmtc_refused", "Requests that found the queue full.", ["model"], registry=registry)
        self.reloads = Counter(
            "xmtc_reloads", "Models read again: replaced, unchanged or failed.", ["model", "result"], registry=registry
        )
        self.labels = Gauge("xmtc_model_labels", "Labels of a loaded model.", ["model"], registry=registry)

    def text(self) -> bytes:
        """Return all of it in Prometheus's format."""
        return generate_latest(self.registry)
