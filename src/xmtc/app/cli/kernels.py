"""Compiled kernels: whether they are in the cache, and the line that says so when they are not. Knows no command.

numba compiles a kernel when it is first called and keeps it in $XMTC_CACHE/kernels, or in NUMBA_CACHE_DIR if the user
set it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from xmtc.app.cli.progress import PlainProgress
from xmtc.core.progress import SILENT, Progress

# a file that ranking leaves, and one that training a linear model leaves
_RANKING, _TRAINING = "beam._search-*.nbi", "label_vectors.aggregate-*.nbi"
NOTICE = "compiling kernels, the first time only; this takes up to a minute"


def kernel_folder() -> Path:
    """Return the folder that holds compiled kernels."""
    return Path(os.environ["NUMBA_CACHE_DIR"])


def is_compiled(*, training: bool) -> bool:
    """Return whether the kernels of ranking, or of training a linear model, were compiled before."""
    wanted = (_RANKING, _TRAINING) if training else (_RANKING,)
    return all(any(kernel_folder().glob(f"*/{name}")) for name in wanted)


def announce_kernels(progress: Progress, *, training: bool = False) -> None:
    """Say that kernels are about to be compiled, if that is so; before a training, compile them.

    Call this when the method is imported: methods that use no kernels have not loaded numba then.
    """
    if "numba" in sys.modules and not is_compiled(training=training):
        if progress is SILENT:  # where a bar would disturb the results, a line before them does not
            progress = PlainProgress()
        progress.say(NOTICE)
        if training:
            from xmtc import api

            progress.stage("compiling kernels")
            api.compile_kernels()
