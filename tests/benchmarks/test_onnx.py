"""benchmarks.onnx: limits are checked against torch's figures, and the page shows all kinds."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import onnx


def case(speed: float = 250, p50: float = 4, mb: float = 30, lost: float = 0.1) -> dict[str, Any]:
    facts = {"cpu": "x", "cores": 2, "ram_gb": 4, "system": "x", "commit": "c", "dirty": False, "python": "3"}
    facts |= {"packages": {}, "threads": 2, "seed": 0}
    figures = {"torch": (100, 10, 120), "onnx-fp32": (120, 8, 120), "onnx-int8": (speed, p50, mb)}
    kinds = {
        kind: {"documents_per_second": d, "ms": {"p50": m, "p99": m}, "mb": b, "machine": {"others_cores": 0.0}}
        for kind, (d, m, b) in figures.items()
    }
    found = {"difference": -lost, "relative": -1.0, "interval": [-lost - 0.1, 0.1], "decided": False}
    compared: dict[str, Any] = {
        kind: {"metrics": {"P@1": 50.0, "P@5": 40.0}, "differences": {"P@1": found, "P@5": found}} for kind in kinds
    }
    return {"facts": facts, "set": "tate", "kinds": kinds, "compared": compared}


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({}, None),
        ({"speed": 190}, "speed"),
        ({"p50": 5.1}, "one document"),
        ({"mb": 41}, "size"),
        ({"lost": 0.21}, "accuracy"),
    ],
)
def test_limits(changed: dict[str, float], broken: str | None) -> None:
    result = {"cases": {"model": case(**changed)}}
    assert [name for name, kept in onnx.limits_kept(result["cases"]["model"]).items() if not kept] == [broken] * (
        broken is not None
    )
    assert onnx.BENCHMARK.holds(result) == (broken is None)
    page = "\n".join(onnx.describe(result))
    assert (f"int8 misses: {broken}" if broken else "int8 keeps all limits") in page
    assert "`model` (tate), onnx-fp32" in page
