"""Export a trained network to an ONNX graph and arrays, which `frozen.py` reads without torch.

Modules traced here take token ids and a mask, and return vectors. The layers after them are written as arrays; with
int8, matrices are stored row by row in 8 bits.
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
_LEVELS = 127  # of 8 bits, on each side of 0
_OPEN = {"ids": {0: "rows", 1: "tokens"}, "mask": {0: "rows", 1: "tokens"}}  # dimensions that vary between batches


class TextVectors(nn.Module):
    """The pooled vectors of padded texts, from one or several encoders.

    at_first: read the first token instead of [CLS].
    """

    def __init__(self, encoders: Sequence[Encoder], parts: Sequence[tuple[Kind, int]], at_first: bool = False) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(encoders)
        self.parts = tuple(parts)
        self.at_first = at_first

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        """Return (rows, width) for each encoder."""
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
        """Return the export's entry in the model's details."""
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

        outputs: name of each → its dimensions that vary between batches. more: inputs after ids and mask, by name, with
        an example for two texts, and their variable dimensions.
        """
        added = more or {}
        ids = torch.ones(2, 4, dtype=torch.long)
        mask = torch.tensor([[True] * 4, [False, True, True, False]])  # pads both sides, so that nothing is dropped
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
        """Write arrays; with int8, write float matrices row by row in 8 bits, with one scale per row."""
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
        """Write how texts are read and the other settings of the method."""
        self.out.text(SPEC, spec.model_dump_json(exclude_unset=True) + "\n")

    def tokenizer(self, tokenizer: Tokenizer, name: str = TOKENIZER) -> None:
        """Write an encoder's tokenizer."""
        inner = tokenizer.inner
        if not inner.is_fast or inner.truncation_side != "right":
            raise ModelError("this encoder's tokenizer works only with transformers: the model cannot be exported")
        backend = inner.backend_tokenizer
        backend.no_truncation()  # it stores the arguments of its last call
        backend.no_padding()
        self.out.text(name, backend.to_str())

    def finish(self, manifest: Manifest[Any], labels: LabelSet) -> None:
        """Write the labels and, last, the manifest."""
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
    """Suppress messages of exporter and quantiser that only concern their developers."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
