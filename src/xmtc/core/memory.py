"""Memory of this process: how much it may take, and giving back what is free. Standard library alone."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

from xmtc.core.errors import ConfigError

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def memory_limit() -> int:
    """Return the bytes that this process should take at most: XMTC_MEMORY, such as 8G, else those of the machine.

    Where a container allows less than the machine has, that counts.
    """
    wanted = os.environ.get("XMTC_MEMORY", "").strip().upper().removesuffix("B")
    if wanted:
        number, unit = (wanted, "") if wanted[-1].isdecimal() else (wanted[:-1], wanted[-1])
        if not number.isdecimal() or int(number) == 0 or unit not in _UNITS:
            raise ConfigError(f"XMTC_MEMORY must be a size such as 800M or 8G; got {os.environ['XMTC_MEMORY']!r}")
        return int(number) * _UNITS[unit]
    if sys.platform == "win32":
        installed = ctypes.c_ulonglong()  # kilobytes; stays 0 where the firmware does not say
        ctypes.WinDLL("kernel32").GetPhysicallyInstalledSystemMemory(ctypes.byref(installed))
        sizes = [1024 * installed.value or 2**34]
    else:
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no such file, or "max"
            sizes.append(int(Path(limit).read_text(encoding="utf-8")))
    return min(sizes)


def return_memory() -> None:
    """Give freed memory back to the system; the C library keeps it otherwise, once much was allocated in pieces."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).malloc_trim(0)
