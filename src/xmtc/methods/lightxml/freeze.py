"""Export LightXML: encoder and pooling become the graph; the head becomes arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xmtc.core.storage import FolderWriter
from xmtc.methods.lightxml.frozen import LightxmlSpec
from xmtc.neural.freeze import FrozenWriter, TextVectors, describe_reading
from xmtc.neural.heads import FlatHead

if TYPE_CHECKING:
    from xmtc.methods.lightxml.method import LightxmlConfig, LightxmlNetwork
    from xmtc.neural.model import NeuralModel


def write_frozen(model: NeuralModel[LightxmlNetwork], config: LightxmlConfig, out: FolderWriter, int8: bool) -> None:
    """Write an exported model, which `frozen.py` reads."""
    network, writer = model.network, FrozenWriter(out, int8)
    head, encoders = network.head, [network.encoder]
    arrays: dict[str, Any]
    spec = describe_reading(network.encoder, config.encoder)
    if isinstance(head, FlatHead):
        arrays = {"output.weight": head.output.weight, "output.bias": head.output.bias}
    else:
        arrays = {
            "generator.weight": head.generator.weight,
            "generator.bias": head.generator.bias,
            "bottleneck.weight": head.bottleneck.weight,
            "bottleneck.bias": head.bottleneck.bias,
            "table": head.table.weight,
            "members": head.clusters.members,
            "cluster_of": head.clusters.cluster_of,
        }
        spec |= {"shortlist": head.shortlist, "sigmoid": head.sigmoid}
    if network.windows is not None and network.windows.attention is not None:
        arrays["attention"] = network.windows.attention
    if network.recaller is not None:
        encoders.append(network.recaller)
    outputs = {name: {0: "rows"} for name in ("text", "recalled")[: len(encoders)]}
    writer.graph(TextVectors(encoders, network.pool.parts, network.reference), outputs)
    writer.weights(arrays)
    writer.spec(LightxmlSpec(**spec))
    writer.tokenizer(model.tokenizer)
    writer.finish(model.manifest, model.labels)
