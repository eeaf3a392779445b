"""benchmarks.engines: ways become a page, limits and bytes are checked, and folders are told apart by their bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import engines


def result(two: float = 10.0, sha256: str = "a") -> dict[str, Any]:
    found = {"documents": 40_000, "machine": {"others_cores": 0.5}, "peak_rss_mb": 500.0, "worker_mb": 100.0}
    seconds = {"alone": 16.0, "1": 18.0, "2": two}
    ways = {
        name: {**found, "train_seconds": taken, "predict_seconds": taken / 2, "sha256": "a"}
        for name, taken in seconds.items()
    }
    ways["2"]["sha256"] = sha256
    facts = engines.BENCHMARK.facts(1, 0)
    job = {"labels": 10, "documents": 20, "recipe": "linear/fast"}
    return {"facts": facts, "job": job, "alone": ways["alone"], "nodes": {"1": ways["1"], "2": ways["2"]}}


def test_ways_become_a_page() -> None:
    page = "\n".join(engines.describe(result()))
    assert "| Ray, 2 nodes of one core | 10.0 | 5.0 | 100 |" in page
    assert "the same, byte for byte" in page
    assert "times say little" in page  # others took half a core
    assert "Two nodes train 1.80 times as fast as one" in page
    assert "One node trains in 1.12 times" in page
    assert "not the same" in "\n".join(engines.describe(result(sha256="b")))


def test_limits() -> None:
    assert engines.holds(result())
    assert not engines.holds(result(two=11.0))  # prediction: 1.64
    assert not engines.holds(result(sha256="b"))


def test_a_digest_is_of_names_and_bytes(tmp_path: Path) -> None:
    for name, file in (("one", "a"), ("two", "a"), ("three", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("x")
    assert engines.digest(tmp_path / "one") == engines.digest(tmp_path / "two") != engines.digest(tmp_path / "three")
    (tmp_path / "two" / "a").write_text("y")
    assert engines.digest(tmp_path / "one") != engines.digest(tmp_path / "two")
