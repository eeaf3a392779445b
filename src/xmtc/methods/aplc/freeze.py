"""Export APLC-XLNet: encoder and pooling become the graph; hidden layer, head and tails become arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from xmtc.core.storage import FolderWriter
from xmtc.methods.aplc.frozen import AplcSpec
from xmtc.neural.freeze import FrozenWriter, TextVectors, describe_reading

if TYPE_CHECKING:
    from xmtc.methods.aplc.method import AplcConfig, AplcNetwork
    from xmtc.neural.model import NeuralModel


def write_frozen(model: NeuralModel[AplcNetwork], config: AplcConfig, out: FolderWriter, int8: bool) -> None:
    """Write an exported model, which `frozen.py` reads."""
    network, writer = model.network, FrozenWriter(out, int8)
    head, epsilon = network.head, 0.0
    arrays: dict[str, Any] = {
        "hidden.weight": network.hidden.weight,
        "hidden.bias": network.hidden.bias,
        "head": head.head.weight,
        "order": head.order,
    }
    for band, tail in enumerate(head.tails, 1):
        arrays |= {f"squeeze.{band}": tail.squeeze.weight, f"labels.{band}": tail.labels.weight}
        if isinstance(tail.shape, nn.Sequential) and isinstance(norm := tail.shape[0], nn.LayerNorm):
            arrays |= {f"norm.{band}": norm.weight, f"shift.{band}": norm.bias}
            epsilon = norm.eps
    if head.prior is not None:
        arrays["prior"] = head.prior
    if network.windows is not None and network.windows.attention is not None:
        arrays["attention"] = network.windows.attention
    writer.graph(TextVectors([network.encoder], network.pool.parts), {"text": {0: "rows"}})
    writer.weights(arrays)
    reading = describe_reading(network.encoder, config.encoder)
    bare = config.head.bare
    writer.spec(AplcSpec(**reading, sizes=head.sizes, bare=bare, initial_bias=head.initial_bias, epsilon=epsilon))
    writer.tokenizer(model.tokenizer)
    writer.finish(model.manifest, model.labels)
