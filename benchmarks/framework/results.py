"""Results: JSON files below benchmarks/results, each at a place such as "scale" or "linear/tate".

Knows where they are and how they are written, not what they mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.framework.machine import ROOT

RESULTS = ROOT / "benchmarks" / "results"


def write_result(place: str, result: dict[str, Any]) -> Path:
    """Write results/<place>.json, with numbers rounded to what a table could need."""
    path = RESULTS / f"{place}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_rounded(result), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read_result(place: str) -> dict[str, Any] | None:
    """Return results/<place>.json, None where it was never written."""
    path = RESULTS / f"{place}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def read_results(folder: str) -> dict[str, dict[str, Any]]:
    """Return all results below a folder, by their places in it without ".json", in alphabetical order."""
    top = RESULTS / folder
    return {
        path.relative_to(top).with_suffix("").as_posix(): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(top.rglob("*.json"))
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4) if abs(value) >= 0.01 else float(f"{value:.4g}")  # rates and losses are small
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value
