"""Export ME-XML: the encoder and the experts' inputs become the graph; the experts' label layers become arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from xmtc.core.storage import FolderWriter
from xmtc.methods.mexml.experts import DocumentExpert
from xmtc.methods.mexml.frozen import MexmlSpec
from xmtc.methods.mexml.label_attention import LabelAttention
from xmtc.neural.freeze import FrozenWriter, describe_reading
from xmtc.neural.pooling import pool_text

if TYPE_CHECKING:
    from xmtc.methods.mexml.method import MexmlConfig, MexmlNetwork
    from xmtc.neural.model import NeuralModel


class ReadByExperts(nn.Module):
    """The experts' inputs: word states and values for attention experts, the hidden layer for document experts."""

    def __init__(self, network: MexmlNetwork) -> None:
        super().__init__()
        self.encoder, self.experts, self.shortlist = network.encoder, network.experts, network.shortlist

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs that `write_frozen` names, expert by expert, then the input of cluster recall."""
        encoded = self.encoder(ids, mask)
        found: list[Tensor] = []
        for expert in self.experts:
            if isinstance(expert, LabelAttention):
                states = encoded.states[expert.layer]
                found += [states, expert.hidden(states)]
            elif isinstance(expert, DocumentExpert):
                found.append(expert.hidden(pool_text(encoded, expert.parts)).tanh())
        if self.shortlist is not None:
            found.append(pool_text(encoded, self.shortlist.pool.parts))
        return tuple(found)


def write_frozen(model: NeuralModel[MexmlNetwork], config: MexmlConfig, out: FolderWriter, int8: bool) -> None:
    """Write an exported model, which `frozen.py` reads."""
    network, writer = model.network, FrozenWriter(out, int8)
    outputs: dict[str, dict[int, str]] = {}
    arrays: dict[str, Any] = {}
    kinds = []
    for i, expert in enumerate(network.experts):
        if isinstance(expert, LabelAttention):
            kinds.append("A")
            outputs |= {f"{name}.{i}": {0: "rows", 1: "tokens"} for name in ("states", "values")}
            arrays |= {
                f"queries.{i}": expert.queries,
                f"output.{i}": expert.output.weight.squeeze(0),
                f"bias.{i}": expert.label_bias + expert.output.bias,
            }
        elif isinstance(expert, DocumentExpert):
            kinds.append("D")
            outputs[f"document.{i}"] = {0: "rows"}
            arrays |= {f"output.{i}": expert.output.weight, f"bias.{i}": expert.output.bias}
    spec = describe_reading(network.encoder, config.encoder) | {"experts": kinds}
    if (shortlist := network.shortlist) is not None:
        outputs["recalled"] = {0: "rows"}
        arrays |= {
            "generator.weight": shortlist.generator.weight,
            "generator.bias": shortlist.generator.bias,
            "members": shortlist.clusters.members,
        }
        spec["shortlist"] = shortlist.n_chosen
    writer.graph(ReadByExperts(network), outputs)
    writer.weights(arrays)
    writer.spec(MexmlSpec(**spec))
    writer.tokenizer(model.tokenizer)
    writer.finish(model.manifest, model.labels)
