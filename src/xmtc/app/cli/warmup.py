"""xmtc warmup: compile kernels in advance."""

from __future__ import annotations

import time

from xmtc.core.errors import ConfigError


def warmup() -> None:
    """Compile the kernels of linear models before the first training or prediction.

    Compiled kernels are stored in $XMTC_CACHE/kernels (or NUMBA_CACHE_DIR, if set). Run this once per version of xmtc
    and Python; otherwise the first training compiles them.
    """
    from xmtc import api
    from xmtc.app.cli.console import duration
    from xmtc.app.cli.kernels import is_compiled, kernel_folder
    from xmtc.app.cli.progress import show_progress

    started = time.monotonic()
    with show_progress() as progress:
        progress.stage("compiling kernels")
        if not api.compile_kernels() or not is_compiled(training=True):
            raise ConfigError(f"cannot compile kernels into {kernel_folder()}; set XMTC_CACHE to a writable folder")
    print(f"{kernel_folder()}: kernels are compiled, {duration(time.monotonic() - started)}")
