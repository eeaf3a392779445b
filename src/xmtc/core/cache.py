"""The cache: arrays that are dear to compute, on disk, keyed by what they were computed from.

Lies in $XMTC_CACHE (default ~/.cache/xmtc), is safe to delete at any time, and never holds half an entry.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def cache_folder() -> Path:
    """Return the folder that holds all cached entries."""
    return Path(os.environ.get("XMTC_CACHE") or Path.home() / ".cache" / "xmtc")


def key_of(parts: Iterable[bytes | str | NDArray[Any]]) -> str:
    """Return a sha256 over the parts, with their lengths, so that no two splittings collide."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        data = np.ascontiguousarray(raw).data if isinstance(raw, np.ndarray) else memoryview(raw)
        digest.update(data.nbytes.to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def cached(kind: str, key: str, compute: Callable[[], Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the arrays stored under this key, mapped into memory; compute and store them the first time."""
    entry = cache_folder() / kind / key
    if not entry.is_dir():
        entry.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".writing-", dir=entry.parent))
        try:
            for name, array in compute().items():
                np.save(partial / f"{name}.npy", array, allow_pickle=False)
            partial.rename(entry)
        except OSError:
            if not entry.is_dir():  # else another process was faster
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return {
        path.stem: np.asarray(np.load(path, mmap_mode="r", allow_pickle=False)) for path in sorted(entry.glob("*.npy"))
    }
