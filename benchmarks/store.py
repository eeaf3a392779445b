"""Results: JSON files and rankings below benchmarks/results. Knows their places and shapes, not what they mean."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import ROOT
from xmtc.core.ranking import Ranking

RESULTS = ROOT / "benchmarks" / "results"
OURS = "xmtc-linear"  # the ranking that rivals are compared with
WIDTH = 20  # labels ranked for each document
_LARGEST = 1 << 20  # bytes of a ranking's file: the repository holds it


def write_result(kind: str, name: str, result: dict[str, Any]) -> Path:
    """Write results/<kind>/<name>.json, with numbers rounded to what a table could need."""
    path = RESULTS / kind / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_rounded(result), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read_result(kind: str, name: str) -> dict[str, Any] | None:
    """Return results/<kind>/<name>.json, None where it was never written."""
    path = RESULTS / kind / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def read_results(kind: str) -> dict[str, dict[str, Any]]:
    """Return every results/<kind>/<name>.json by its name, in the order of names; kind may be a path, as train/tate."""
    paths = sorted((RESULTS / kind).glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def write_ranking(
    name: str,
    who: str,
    ids: NDArray[np.integer],
    scores: NDArray[np.floating] | None = None,
    rows: NDArray[np.integer] | None = None,
) -> dict[str, Any]:
    """Store the label ids ranked for documents of a set, as wide as fits 1 MiB; return their sha256 and width.

    rows: which documents of train these are, where they were held out of it.
    """
    path = _ranking_path(name, who)
    path.parent.mkdir(parents=True, exist_ok=True)
    for width in (WIDTH, 10, 5):
        kept: dict[str, NDArray[Any]] = {"ids": ids[:, :width].astype(np.int32)}
        if scores is not None:
            kept["scores"] = scores[:, :width].astype(np.float16)
        if rows is not None:
            kept["rows"] = rows.astype(np.int32)
        np.savez_compressed(path, **kept)  # type: ignore[arg-type]
        if path.stat().st_size <= _LARGEST:
            break
    return {"sha256": _sha256(kept["ids"]), "k": int(kept["ids"].shape[1])}


def read_ranking(name: str, who: str, sha256: str) -> NDArray[np.int32] | None:
    """Return the label ids that a result speaks of, None where others are stored, or none."""
    path = _ranking_path(name, who)
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        ids = arrays["ids"]
    return ids if _sha256(ids) == sha256 else None


def read_scored(name: str, who: str, sha256: str) -> Ranking | None:
    """Return the ranking that a result speaks of, with its scores; None where another is stored, or none."""
    path = _ranking_path(name, who)
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        if "scores" not in arrays or _sha256(arrays["ids"]) != sha256:
            return None
        return Ranking(arrays["ids"], _falling(arrays["scores"].astype(np.float32)))


def _ranking_path(name: str, who: str) -> Path:
    return RESULTS / "rankings" / name / f"{who}.npz"


def _falling(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Part the scores that half precision made equal by the least step, so that the stored order stays theirs."""
    for place in range(1, scores.shape[1]):
        below = np.nextafter(scores[:, place - 1], np.float32(-np.inf))
        scores[:, place] = np.minimum(scores[:, place], below)
    return scores


def _sha256(ids: NDArray[np.int32]) -> str:
    return hashlib.sha256(np.ascontiguousarray(ids, dtype="<i4").tobytes()).hexdigest()


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4) if abs(value) >= 0.01 else float(f"{value:.4g}")  # rates and losses are small
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value
