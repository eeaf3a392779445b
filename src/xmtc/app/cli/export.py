"""xmtc export."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from xmtc.app.cli.options import ModelFolder, Out, Overwrite


def export(
    model: ModelFolder,
    out: Out,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="onnx.")] = "onnx",
    int8: Annotated[
        bool, typer.Option("--int8", help="Store weights in 8 bits: a quarter of the space, about twice the speed.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a neural model as one that ranks without torch, by ONNX Runtime.

    Every command takes the new folder like any other model; it needs `pip install 'xmtc[onnx]'` and no torch. Exporting
    itself needs torch and `pip install 'xmtc[export]'`. With --int8, scores change a little: check the model with
    `xmtc compare`, and calibrate it again.
    """
    from xmtc import api
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_saved
    from xmtc.data import store_mapping, stored_mapping

    started = time.monotonic()
    with show_progress() as progress:
        exported = api.export(api.load(model), to, int8=int8, out=out, overwrite=overwrite, progress=progress)
        store_mapping(out, stored_mapping(model))
    print_saved(exported, out, time.monotonic() - started)
