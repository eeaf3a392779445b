"""xmtc warmup."""

from __future__ import annotations

import time

from xmtc.core.errors import ConfigError


def warmup() -> None:
    """Compile the kernels of linear models ahead of the first training or prediction.

    Compiled kernels are kept in $XMTC_CACHE/kernels (NUMBA_CACHE_DIR if that is set), so this is needed once for each
    version of xmtc and of Python; without it, the first training does the same.
    """
    from xmtc import api
    from xmtc.app.cli.console import duration
    from xmtc.app.cli.kernels import is_compiled, kernel_folder
    from xmtc.app.cli.progress import show_progress

    started = time.monotonic()
    with show_progress() as progress:
        progress.stage("compiling kernels")
        if not api.compile_kernels() or not is_compiled(training=True):
            raise ConfigError(f"cannot compile kernels into {kernel_folder()}; set XMTC_CACHE to a folder to write to")
    print(f"{kernel_folder()}: kernels are compiled, {duration(time.monotonic() - started)}")
