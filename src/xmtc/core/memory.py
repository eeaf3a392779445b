"""Process memory: the limit, and returning freed memory to the system. Uses only the standard library."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

from xmtc.core.errors import ConfigError

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def memory_limit() -> int:
    """Return the maximum bytes that this process should use: XMTC_MEMORY, such as 8G, or else the machine's memory.

    If a container's limit is below the machine's memory, the limit counts.
    """
    wanted = os.environ.get("XMTC_MEMORY", "").strip().upper().removesuffix("B")
    if wanted:
        number, unit = (wanted, "") if wanted[-1].isdecimal() else (wanted[:-1], wanted[-1])
        if not number.isdecimal() or int(number) == 0 or unit not in _UNITS:
            raise ConfigError(f"XMTC_MEMORY must be a size such as 800M or 8G; got {os.environ['XMTC_MEMORY']!r}")
        return int(number) * _UNITS[unit]
    if sys.platform == "win32":
        installed = ctypes.c_ulonglong()  # kilobytes; stays 0 if the firmware does not report it
        ctypes.WinDLL("kernel32").GetPhysicallyInstalledSystemMemory(ctypes.byref(installed))
        sizes = [1024 * installed.value or 2**34]
    else:
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no such file, or "max"
            sizes.append(int(Path(limit).read_text(encoding="utf-8")))
    return min(sizes)


def return_memory() -> None:
    """Return freed memory to the system; the C library would otherwise keep it after many small allocations."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without this function
            ctypes.CDLL(None).malloc_trim(0)
