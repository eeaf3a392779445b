"""Graph: an ONNX file run by onnxruntime. Arrays in, arrays out; needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core import parallel
from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.storage import FolderReader, FolderWriter
from xmtc.core.stored_arrays import LARGEST_WEIGHT
from xmtc.core.threads import n_threads
from xmtc.neural.graph_check import find_graph_fault

GRAPH = "graph.onnx"
_SPLIT = {"ids", "mask"}  # inputs that can be split by rows
_TOKENS = 512  # of a part, including padding


def _open(source: str | bytes, threads: int) -> Any:
    """Open a session on a file or its content."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # a waiting thread that spins takes a core from other processes: see core/threads.py
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors only
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _run(session: Any, feeds: Mapping[str, NDArray]) -> dict[str, NDArray]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


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
        self.name = name
        self._path = reader.folder / name
        self._content = reader.data(name)
        if fault := find_graph_fault(self._content.data):
            raise ModelError(f"{self._path} {fault}; export the model again, or copy it from a source that you trust")
        try:
            self._session: Any = _open(str(self._path), n_threads())
        except Exception as error:  # onnxruntime's own error classes all derive from Exception
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"onnxruntime {onnxruntime.__version__} cannot read {reader.folder / name}: {reason}; "
                "upgrade it, or export the model again"
            ) from None
        self._narrow: Any = None
        self._opening = Lock()

    def run(self, feeds: Mapping[str, NDArray]) -> dict[str, NDArray[np.float32]]:
        """Return the graph's outputs by name.

        Token ids and masks are split into small parts of their rows, which run at the same time on one thread each.
        Parts fit the cache, and threads need not wait for each other after every step of the graph.
        """
        try:
            found = self._run_parts(feeds) if feeds.keys() == _SPLIT else _run(self._session, feeds)
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

    def _run_parts(self, feeds: Mapping[str, NDArray]) -> dict[str, NDArray]:
        rows, tokens = feeds["ids"].shape
        parts = parallel.blocks(rows, max(1, _TOKENS // max(1, tokens)))
        if len(parts) < 2:
            return _run(self._session, feeds)
        session = self._session if n_threads() == 1 else self._on_one_thread()
        pieces = [{key: array[start:stop] for key, array in feeds.items()} for start, stop in parts]
        ran = parallel.run(partial(_run, session), pieces)
        sizes = [{len(array) for array in found.values()} for found in ran]
        if sizes != [{stop - start} for start, stop in parts]:
            raise ValueError("an output has another number of rows than the input")
        return {name: np.concatenate([found[name] for found in ran]) for name in ran[0]}

    def _on_one_thread(self) -> Any:
        """Return a session for parts that run at the same time; opened when it is first needed."""
        with self._opening:
            if self._narrow is None:  # from memory: another model may have replaced the folder
                self._narrow = _open(self._content.tobytes(), 1)
        return self._narrow

    def width(self, name: str) -> int:
        """Return the number of columns of an output."""
        return int(next(output.shape[-1] for output in self._session.get_outputs() if output.name == name))

    def save(self, out: FolderWriter) -> None:
        """Write the file unchanged."""
        out.data(self.name, self._content)
