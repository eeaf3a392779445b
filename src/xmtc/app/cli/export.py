"""xmtc export: convert a neural model to ONNX."""

from __future__ import annotations

import time
from typing import Annotated

from xmtc.app.cli.options import ModelFolder, Out, Overwrite
from xmtc.app.cli.panels import method_option, output_option


def export(
    model: ModelFolder,
    out: Out,
    to: Annotated[str, output_option("--to", metavar="FORMAT", help="Format of the exported model: onnx.")] = "onnx",
    int8: Annotated[
        bool, method_option("--int8", help="Store weights in 8 bits: a quarter of the size, about twice as fast.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Export a neural model so that it ranks with ONNX Runtime, without torch.

    The new folder works like any other model. Using it needs the extra `onnx` and no torch; exporting needs torch and
    the extra `export`. --int8 changes scores slightly: check the model with `xmtc compare`, and calibrate it again.
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
