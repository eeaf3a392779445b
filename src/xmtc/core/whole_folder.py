"""Folders that are written completely or not at all, and that replace another folder in one step.

A folder is written to a hidden sibling named after the process and then renamed. At every moment the old folder, the
new one, or both are complete; `recover` undoes a swap that was killed halfway. Independent of the contents.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
# PROCESS_QUERY_LIMITED_INFORMATION, ERROR_ACCESS_DENIED and STILL_ACTIVE of Windows
_QUERY, _DENIED, _ALIVE = 0x1000, 5, 259
_ASIDE = "-aside"


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder next to `target`; at the end of the block, it is renamed to `target` or replaces it.

    An error inside the block removes what was written and keeps the existing folder. Call `recover` before.
    """
    target = target.absolute()
    temporary = target.parent / f".{target.name}.writing-{os.getpid()}"
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if target.exists():
            _swap(temporary, target)
        else:
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # after a swap, the old folder


def recover(target: Path) -> None:
    """Clean up after killed writers of a folder; folders of a process that still runs are kept.

    First restores a folder that a killed swap moved aside, if the target is missing; then removes the rest.
    """
    prefix = f".{target.name}.writing-"
    left = target.parent.iterdir() if target.parent.is_dir() else ()
    found = sorted(
        (path for path in left if path.name.startswith(prefix)), key=lambda path: not path.name.endswith(_ASIDE)
    )
    for path in found:
        if not _runs(path.name.removeprefix(prefix).removesuffix(_ASIDE)):
            if path.name.endswith(_ASIDE) and not target.exists():
                path.rename(target)
            else:
                shutil.rmtree(path, ignore_errors=True)


def _swap(new: Path, target: Path) -> None:
    """Exchange two folders: atomically if the system supports it, else by way of a third name."""
    if _exchange(new, target):
        return
    aside = new.with_name(f"{new.name}{_ASIDE}")
    target.rename(aside)  # if killed from here on, `recover` restores it
    try:
        new.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    aside.rename(new)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names atomically; return whether the system supports it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # a C library without this function
        return False
    return bool(call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def _runs(pid: str) -> bool:
    """Return whether a process with this number, other than ours, is alive."""
    if not pid.isdecimal() or int(pid) == os.getpid():
        return False
    if sys.platform == "win32":  # os.kill would end the process there
        return _runs_on_windows(int(pid))
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _runs_on_windows(pid: int) -> bool:
    """Return whether a process is alive on Windows; if access is denied, it is."""
    if sys.platform != "win32" or pid >= 2**32:
        return False
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(_QUERY, False, pid)
    if not handle:
        return bool(ctypes.get_last_error() == _DENIED)
    code = ctypes.c_ulong()
    known = kernel.GetExitCodeProcess(ctypes.c_void_p(handle), ctypes.byref(code))
    kernel.CloseHandle(ctypes.c_void_p(handle))
    return not known or code.value == _ALIVE
