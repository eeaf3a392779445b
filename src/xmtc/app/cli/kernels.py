"""Check whether compiled kernels are cached, and print a message if they are not. Independent of commands.

numba compiles a kernel when it is first called and keeps it in $XMTC_CACHE/kernels, or in NUMBA_CACHE_DIR if the user
set it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from xmtc.app.cli.progress import PlainProgress
from xmtc.core.progress import SILENT, Progress

# a file that ranking writes, and one that training a linear model writes
_RANKING, _TRAINING = "beam._search-*.nbi", "label_vectors.aggregate-*.nbi"
NOTICE = "compiling kernels, the first time only; this takes up to a minute"


def kernel_folder() -> Path:
    """Return the folder of compiled kernels."""
    return Path(os.environ["NUMBA_CACHE_DIR"])


def is_compiled(*, training: bool) -> bool:
    """Return whether the kernels for ranking, or for training a linear model, are already compiled."""
    wanted = (_RANKING, _TRAINING) if training else (_RANKING,)
    return all(any(kernel_folder().glob(f"*/{name}")) for name in wanted)


def announce_kernels(progress: Progress, *, training: bool = False) -> None:
    """Print a message if kernels must be compiled; before training, compile them.

    Call this after the method is imported: methods without kernels have not loaded numba then.
    """
    if "numba" in sys.modules and not is_compiled(training=training):
        if progress is SILENT:  # a bar would disturb the results, but a line before them does not
            progress = PlainProgress()
        progress.say(NOTICE)
        if training:
            from xmtc import api

            progress.stage("compiling kernels")
            api.compile_kernels()
