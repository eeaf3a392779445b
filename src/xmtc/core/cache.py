"""The cache: arrays that are dear to compute, on disk, keyed by what they were computed from.

Lies in $XMTC_CACHE (default ~/.cache/xmtc), is safe to delete at any time, and never holds half an entry.
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
    """Return a sha256 over the parts, with their kinds and lengths, so that no two splittings collide."""
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
        if found is None:  # deleted already
            return dict(arrays)
    return found


def _load(entry: Path, names: Sequence[str]) -> dict[str, NDArray[Any]] | None:
    """The entry's arrays; None unless all are there, for it may be deleted at any time."""
    try:
        maps = [np.load(entry / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names]
    except (OSError, ValueError, EOFError):
        return None
    return dict(zip(names, map(np.asarray, maps), strict=True))  # plain arrays: slices of np.memmap are slow to make


def _store(entry: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a sibling and rename it; if another process was faster, its entry stays."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".writing-", dir=entry.parent))
    try:
        for name, array in arrays.items():
            np.save(partial / f"{name}.npy", array, allow_pickle=False)
        if _load(entry, list(arrays)) is None:
            shutil.rmtree(entry, ignore_errors=True)  # what a deletion left over
            with suppress(OSError):  # another process was faster
                partial.rename(entry)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
