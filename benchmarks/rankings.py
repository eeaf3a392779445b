"""Stored rankings: the best labels of each document of a set, as small as can be, for the repository holds them.

results/rankings/<set>/<who>.npz has up to WIDTH labels of a run's dev or test documents, with scores, as ensembles and
calibration need them. results/rankings/<set>/top.npz has the first TOP labels of the test documents by all contestants,
which is all that scores compare. Only rankings that a table was computed from stay (`Benchmark.rankings`).
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.framework import results
from xmtc.core.ranking import Ranking

OURS = "xmtc-linear"  # the ranking that rivals are compared with
WIDTH = 20  # labels ranked for each document
TOP = 5  # of these, so many decide every score that contestants are compared by
_ALL = "top"  # the file of all contestants
_LARGEST = 1 << 20  # bytes of a ranking's file
_SIGN = np.uint16(1 << 15)
Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Stored:
    """What the file of a run's ranking holds."""

    ids: Labels  # (documents × width), −1 where there are fewer
    scores: NDArray[np.float16] | None  # of the same shape
    rows: NDArray[np.int32] | None  # which documents of train these are, where they were held out of it


def write_ranking(
    name: str,
    who: str,
    ids: NDArray[np.integer],
    scores: NDArray[np.floating] | None = None,
    rows: NDArray[np.integer] | None = None,
) -> dict[str, Any]:
    """Store a ranking of a set's documents, as wide as fits 1 MiB; return its sha256 and width."""
    path = _path(name, who)
    for width in (WIDTH, 10, TOP):
        kept = Stored(
            ids[:, :width].astype(np.int32),
            None if scores is None else scores[:, :width].astype(np.float16),
            None if rows is None else rows.astype(np.int32),
        )
        steps = None if kept.scores is None else _steps(kept.scores)
        _write(path, {"ids": kept.ids, "steps": steps, "rows": kept.rows})
        if path.stat().st_size <= _LARGEST:
            break
    return _facts(kept.ids)


def read_ranking(name: str, who: str, sha256: str) -> Labels | None:
    """Return the label ids that a result speaks of, None where others are stored, or none."""
    found = _find(name, who, sha256)
    return None if found is None else found.ids


def read_scored(name: str, who: str, sha256: str) -> Ranking | None:
    """Return the ranking that a result speaks of, with its scores; None where another is stored, or none."""
    found = _find(name, who, sha256)
    if found is None or found.scores is None:
        return None
    return Ranking(found.ids, _falling(found.scores.astype(np.float32)))


def write_top(name: str, who: str, ids: NDArray[np.integer]) -> dict[str, Any]:
    """Store the first TOP label ids of a set's test documents, beside those of other contestants that ranked as many
    documents; return their sha256 and width."""
    top = np.full((len(ids), TOP), -1, dtype=np.int32)
    top[:, : ids.shape[1]] = ids[:, :TOP]
    kept = {**{other: found for other, found in read_tops(name).items() if len(found) == len(top)}, who: top}
    # documents × contestants: what several say of one document is adjacent, and compresses to little more than one
    together = np.stack([kept[other] for other in sorted(kept)], axis=1)
    _write(_path(name, _ALL), {"who": np.array(sorted(kept)), "ids": together})
    return _facts(top)


def read_top(name: str, who: str, sha256: str) -> Labels | None:
    """Return the first label ids by a contestant that a result speaks of, None where others are stored, or none."""
    found = read_tops(name).get(who)
    return found if found is not None and _facts(found)["sha256"] == sha256 else None


def read_tops(name: str) -> dict[str, Labels]:
    """Return the first label ids by each contestant on a set."""
    path = _path(name, _ALL)
    if not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as arrays:
        return {str(who): np.ascontiguousarray(arrays["ids"][:, i]) for i, who in enumerate(arrays["who"])}


def list_rankings() -> dict[str, dict[str, str]]:
    """Return what is stored: set → run's split or contestant → sha256."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((results.RESULTS / "rankings").rglob("*.npz")):
        name, who = path.parent.name, path.name.removesuffix(".npz")
        kept = read_tops(name) if who == _ALL else {who: read_stored(path).ids}
        found.setdefault(name, {}).update({one: _facts(ids)["sha256"] for one, ids in kept.items()})
    return found


def read_stored(path: Path) -> Stored:
    """Read the file of a run's ranking."""
    with np.load(path, allow_pickle=False) as arrays:
        scores = _undo_steps(arrays["steps"]) if "steps" in arrays else None
        return Stored(arrays["ids"], scores, arrays.get("rows"))


def _path(name: str, who: str) -> Path:
    return results.RESULTS / "rankings" / name / f"{who}.npz"


def _find(name: str, who: str, sha256: str) -> Stored | None:
    path = _path(name, who)
    found = read_stored(path) if path.is_file() else None
    return found if found is not None and _facts(found.ids)["sha256"] == sha256 else None


def _facts(ids: Labels) -> dict[str, Any]:
    """By which a result says what ranking it speaks of."""
    digest = hashlib.sha256(np.ascontiguousarray(ids, dtype="<i4").tobytes())
    return {"sha256": digest.hexdigest(), "k": int(ids.shape[1])}


def _write(path: Path, arrays: dict[str, NDArray[Any] | None]) -> None:
    """Write what np.load reads; LZMA, because the deflate of np.savez_compressed makes it a third larger."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for key, array in arrays.items():
            if array is None:
                continue
            entry = zipfile.ZipInfo(f"{key}.npy")  # of no date: equal arrays make equal files
            entry.compress_type = zipfile.ZIP_LZMA
            with file.open(entry, "w") as out:
                np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)


def _steps(scores: NDArray[np.float16]) -> NDArray[np.uint8]:
    """How many half-precision numbers lie between each score and the one before it: the low bytes, then the high ones,
    which are mostly 0. Loses nothing."""
    bits = np.ascontiguousarray(scores).view(np.uint16)
    places = np.where(bits & _SIGN, ~bits, bits | _SIGN)  # in the order of the numbers
    steps = places.copy()
    steps[:, 1:] = places[:, :-1] - places[:, 1:]  # modulo 2¹⁶
    return np.stack([steps & 255, steps >> 8]).astype(np.uint8)


def _undo_steps(planes: NDArray[np.uint8]) -> NDArray[np.float16]:
    places = planes[0] | planes[1].astype(np.uint16) << 8
    for place in range(1, places.shape[1]):
        places[:, place] = places[:, place - 1] - places[:, place]
    return np.where(places & _SIGN, places & ~_SIGN, ~places).view(np.float16)


def _falling(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Part the scores that half precision made equal by the least step, so that the stored order stays theirs."""
    for place in range(1, scores.shape[1]):
        below = np.nextafter(scores[:, place - 1], np.float32(-np.inf))
        scores[:, place] = np.minimum(scores[:, place], below)
    return scores
