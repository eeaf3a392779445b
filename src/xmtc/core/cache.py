"""Disk cache for arrays that are expensive to compute, keyed by a hash of their inputs.

Stored in $XMTC_CACHE (default ~/.cache/xmtc). It is safe to delete at any time and never holds an incomplete entry.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError


def cache_folder() -> Path:
    """Return the folder that holds all cached entries."""
    return Path(os.environ.get("XMTC_CACHE") or Path.home() / ".cache" / "xmtc")


def key_of(parts: Iterable[bytes | str | NDArray[Any]]) -> str:
    """Return a sha256 over the parts with their types and lengths, so that different splits do not collide."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        kind = f"{raw.dtype}{raw.shape}" if isinstance(raw, np.ndarray) else f"{len(raw)}"
        digest.update(f"{kind}:".encode())
        digest.update(np.ascontiguousarray(raw).data if isinstance(raw, np.ndarray) else raw)
    return digest.hexdigest()


def cached(
    kind: str, key: str, names: Sequence[str], compute: Callable[[], Mapping[str, NDArray[Any]]]
) -> dict[str, NDArray[Any]]:
    """Return the arrays `names` of this entry, mapped into memory; compute and store them the first time."""
    entry = cache_folder() / kind / key
    found = _load(entry, names)
    if found is None:
        arrays = compute()
        try:
            _store(entry, {name: arrays[name] for name in names})
        except OSError as error:
            raise ConfigError(
                f"cannot write the cache in {entry.parent}: {error.strerror or error}; set XMTC_CACHE to another folder"
            ) from None
        found = _load(entry, names)
        if found is None:  # deleted in the meantime
            return dict(arrays)
    return found


def _load(entry: Path, names: Sequence[str]) -> dict[str, NDArray[Any]] | None:
    """Return the entry's arrays; None unless all exist, because the entry may be deleted at any time."""
    try:
        maps = [np.load(entry / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names]
    except (OSError, ValueError, EOFError):
        return None
    return dict(zip(names, map(np.asarray, maps), strict=True))  # plain arrays: slices of np.memmap are slow to make


def _store(entry: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a temporary sibling and rename it; if another process was faster, keep its entry."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".writing-", dir=entry.parent))
    try:
        for name, array in arrays.items():
            np.save(partial / f"{name}.npy", array, allow_pickle=False)
        if _load(entry, list(arrays)) is None:
            shutil.rmtree(entry, ignore_errors=True)  # remains of a partial deletion
            with suppress(OSError):  # another process was faster
                partial.rename(entry)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
