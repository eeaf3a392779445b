"""Freezing: a trained network becomes an ONNX graph and arrays, which `frozen.py` reads without torch.

Modules that are traced here take token ids and a mask, and give vectors. What follows them is written as arrays: with
int8, matrices row by row in 8 bits.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.labels import LabelSet
from xmtc.core.storage import Details, Exported, FolderWriter, Manifest
from xmtc.neural.encoder import Encoder, Tokenizer
from xmtc.neural.encoder_config import EncoderConfig, PooledEncoderConfig
from xmtc.neural.frozen import SCALE, SPEC, TOKENIZER, WEIGHTS, FrozenSpec
from xmtc.neural.graph import GRAPH
from xmtc.neural.pooling import Kind, pool_text

_OPSET = 17
_LEVELS = 127  # of 8 bits, on either side of 0
_OPEN = {"ids": {0: "rows", 1: "tokens"}, "mask": {0: "rows", 1: "tokens"}}  # sizes that differ from batch to batch


class TextVectors(nn.Module):
    """What one encoder or several make of padded texts: for each, the vector that a pool reads.

    at_first: read the first token instead of [CLS].
    """

    def __init__(self, encoders: Sequence[Encoder], parts: Sequence[tuple[Kind, int]], at_first: bool = False) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(encoders)
        self.parts = tuple(parts)
        self.at_first = at_first

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        """Return (rows, width) of each encoder."""
        found = [encoder(ids, mask) for encoder in self.encoders]
        if self.at_first:
            found = [encoded._replace(cls=mask.int().argmax(1)) for encoded in found]
        return tuple(pool_text(encoded, self.parts) for encoded in found)


@dataclass(frozen=True)
class FrozenWriter:
    """Writes the parts of an exported model."""

    out: FolderWriter
    int8: bool

    def __post_init__(self) -> None:
        missing = [name for name in ("onnx", "onnxruntime") if find_spec(name) is None]
        if missing:
            raise ConfigError(f"exporting needs {' and '.join(missing)}; install with: pip install 'xmtc[export]'")

    @property
    def format(self) -> Exported:
        """What the model's details say of it."""
        return "onnx-int8" if self.int8 else "onnx-fp32"

    def graph(
        self,
        module: nn.Module,
        outputs: Mapping[str, Mapping[int, str]],
        *,
        name: str = GRAPH,
        more: Mapping[str, tuple[Tensor, Mapping[int, str]]] | None = None,
    ) -> None:
        """Trace a module of (ids, mask, …) and write its graph.

        outputs: name of each → which of its sizes differ from batch to batch. more: inputs after ids and mask, by
        name, with an example that fits two texts, and their open sizes.
        """
        added = more or {}
        ids = torch.ones(2, 4, dtype=torch.long)
        mask = torch.tensor([[True] * 4, [False, True, True, False]])  # padding on both sides: nothing may be left out
        inputs = (ids, mask, *(example for example, _ in added.values()))
        axes = _OPEN | {key: dict(open_) for key, (_, open_) in added.items()}
        axes |= {key: dict(open_) for key, open_ in outputs.items()}
        with TemporaryDirectory() as folder, _quietly(), torch.no_grad():
            path = Path(folder) / "graph.onnx"
            torch.onnx.export(
                copy.deepcopy(module).cpu().eval(),
                inputs,
                str(path),
                input_names=["ids", "mask", *added],
                output_names=list(outputs),
                dynamic_axes=axes,
                opset_version=_OPSET,
                dynamo=False,
            )
            if self.int8:
                from onnxruntime.quantization import quantize_dynamic

                whole, path = path, Path(folder) / "int8.onnx"
                quantize_dynamic(whole, path, per_channel=True)
            self.out.data(name, path.read_bytes())

    def weights(self, arrays: Mapping[str, NDArray[Any] | Tensor], name: str = WEIGHTS) -> None:
        """Write arrays; with int8, matrices of floats row by row in 8 bits, with a scale for each row."""
        found: dict[str, NDArray[Any]] = {}
        for key, given in arrays.items():
            array = given.detach().cpu().numpy() if isinstance(given, Tensor) else given
            if self.int8 and array.ndim == 2 and array.dtype == np.float32:
                largest = np.abs(array).max(axis=1, keepdims=True)
                scale = np.where(largest > 0, largest / _LEVELS, 1).astype(np.float32)
                found[f"{key}{SCALE}"] = scale
                array = np.rint(array / scale).astype(np.int8)
            found[key] = array
        self.out.tensors(name, found)

    def spec(self, spec: FrozenSpec) -> None:
        """Write how texts are read and what else the method stores."""
        self.out.text(SPEC, spec.model_dump_json(exclude_unset=True) + "\n")

    def tokenizer(self, tokenizer: Tokenizer, name: str = TOKENIZER) -> None:
        """Write an encoder's tokenizer."""
        inner = tokenizer.inner
        if not inner.is_fast or inner.truncation_side != "right":
            raise ModelError("this encoder's tokenizer works only with transformers: the model cannot be exported")
        backend = inner.backend_tokenizer
        backend.no_truncation()  # it remembers how it was last called
        backend.no_padding()
        self.out.text(name, backend.to_str())

    def finish(self, manifest: Manifest[Any], labels: LabelSet) -> None:
        """Write the labels and, last of all, the manifest."""
        details: Details = manifest.details
        self.out.labels(labels)
        self.out.manifest(manifest.with_details(details.model_copy(update={"format": self.format})))


def describe_reading(encoder: Encoder, config: EncoderConfig) -> dict[str, Any]:
    """Return the fields of `FrozenSpec` for an encoder and its settings."""
    found: dict[str, Any] = {
        "max_length": config.max_length,
        "pad_id": encoder.layout.pad_id,
        "pad_left": encoder.layout.pad_left,
    }
    if isinstance(config, PooledEncoderConfig) and config.windows > 1:
        found |= config.model_dump(include={"windows", "window_choice", "window_pool"})
    return found


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep exporter and quantiser from reporting what concerns their developers."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
