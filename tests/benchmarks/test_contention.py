"""benchmarks.contention with a tiny encoder: ways become a page, variables are as they were, limits are checked."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("torch", reason="a training step needs torch")

from benchmarks import contention
from benchmarks.framework import Limits, process

TINY = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 50}


def test_ways_become_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.delenv("KMP_BLOCKTIME", raising=False)
    seen: list[tuple[int, str | None, str | None]] = []

    def run(python: str, module: str, phase: str, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        seen.append((job["threads"], os.environ.get("OMP_WAIT_POLICY"), os.environ.get("KMP_BLOCKTIME")))
        found = contention.PHASES[phase](job) if len(seen) == 1 else {"steps_per_second": 2.0, "torch_threads": 1}
        return {**found, "machine": {"others_cores": None}, "peak_rss_mb": 1.0}

    monkeypatch.setattr(process, "run", run)
    result = contention.measure({"steps": 3, "threads": 2, "encoder": TINY}, Limits(60, 0))
    assert seen == [(2, None, None), (2, None, "200"), (1, None, "200"), (2, None, None), (2, None, "200")]
    assert (os.environ["OMP_WAIT_POLICY"], os.environ.get("KMP_BLOCKTIME")) == ("ACTIVE", None)
    assert result["ways"]["settled, beside"]["steps_per_second"] > 0
    assert "plain on one thread, beside" in "\n".join(contention.describe(result))


def test_limits() -> None:
    def result(beside: float, alone: float) -> dict[str, Any]:
        speeds = {"settled, beside": beside, "plain, beside": 1, "plain on one thread, beside": 2}
        speeds |= {"settled, alone": alone, "plain, alone": 10}
        return {"ways": {name: {"steps_per_second": speed} for name, speed in speeds.items()}}

    assert contention.shares(result(1.0, 10)) == (0.5, 1.0)
    assert contention.holds(result(1.2, 9.7))
    assert not contention.holds(result(1.19, 9.7))
    assert not contention.holds(result(1.2, 9.6))
