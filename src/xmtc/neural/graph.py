"""Graph: an ONNX file run by onnxruntime. Arrays in, arrays out; needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.storage import FolderReader, FolderWriter
from xmtc.core.stored_arrays import LARGEST_WEIGHT
from xmtc.core.threads import n_threads
from xmtc.neural.graph_check import find_graph_fault

GRAPH = "graph.onnx"


class Graph:
    """An ONNX graph of a model folder, ready to run."""

    def __init__(self, reader: FolderReader, name: str = GRAPH) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise ConfigError(
                f"{reader.folder} is an exported model, which needs onnxruntime; install it with: "
                "pip install 'xmtc[onnx]'"
            ) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads()
        options.inter_op_num_threads = 1
        # a waiting thread that spins takes a core from other processes: see core/threads.py
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3  # errors only
        self.name = name
        self._path = reader.folder / name
        self._content = reader.data(name)
        if fault := find_graph_fault(self._content.data):
            raise ModelError(f"{self._path} {fault}; export the model again, or copy it from a source that you trust")
        try:
            self._session: Any = onnxruntime.InferenceSession(
                str(reader.folder / name), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own error classes all derive from Exception
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"onnxruntime {onnxruntime.__version__} cannot read {reader.folder / name}: {reason}; "
                "upgrade it, or export the model again"
            ) from None

    def run(self, feeds: Mapping[str, NDArray]) -> dict[str, NDArray[np.float32]]:
        """Return the graph's outputs by name."""
        names = [output.name for output in self._session.get_outputs()]
        try:
            found = dict(zip(names, self._session.run(names, dict(feeds)), strict=True))
        except Exception as error:  # an untrusted graph may not fit its inputs
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            raise ModelError(f"{self._path} cannot be run ({reason}); export the model again") from None
        for name, array in found.items():
            if not isinstance(array, np.ndarray) or array.dtype != np.float32:
                raise ModelError(f"{self._path}: output {name[:99]!r} is not of 32-bit floats; export the model again")
            if not (np.abs(array) <= LARGEST_WEIGHT).all():  # also catches NaN
                raise ModelError(
                    f"{self._path}: output {name[:99]!r} holds NaN or too large numbers; export the model again"
                )
        return found

    def width(self, name: str) -> int:
        """Return the number of columns of an output."""
        return int(next(output.shape[-1] for output in self._session.get_outputs() if output.name == name))

    def save(self, out: FolderWriter) -> None:
        """Write the file unchanged."""
        out.data(self.name, self._content)
