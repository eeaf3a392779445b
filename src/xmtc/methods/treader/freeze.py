"""Export TReaderXML: words or encoder, scope and dual reader become the graph; the output layer becomes arrays.

The teacher's documents are written unchanged. An encoder that compares documents becomes a separate graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xmtc.core.storage import FolderWriter
from xmtc.methods.treader.frozen import COMPARER, COMPARER_TOKENIZER, TreaderSpec
from xmtc.methods.treader.teacher import ByEncoder, Teacher
from xmtc.methods.treader.word_encoder import WordEncoder
from xmtc.neural.freeze import FrozenWriter, TextVectors, describe_reading
from xmtc.neural.frozen import FrozenSpec

if TYPE_CHECKING:
    from xmtc.methods.treader.model import TaughtModel
    from xmtc.methods.treader.network import TreaderConfig, TreaderNetwork


class ReadWithScope(nn.Module):
    """`TreaderNetwork._read` for tracing: a scope is given as its words and each word's share of each position."""

    def __init__(self, network: TreaderNetwork) -> None:
        super().__init__()
        self.encoder, self.scope, self.reader = network.encoder, network.scope, network.reader

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        words: Tensor | None = None,
        shares: Tensor | None = None,
        reached: Tensor | None = None,
        empty: Tensor | None = None,
    ) -> Tensor:
        """Return (B, bottleneck); shares (B · m, words), reached (B, m), empty (B,)."""
        states = self.encoder(ids, mask).states[-1]
        if self.encoder.layout.pad_left:  # the reader counts positions from the first word
            first = mask.int().argmax(1, keepdim=True)
            order = (torch.arange(ids.shape[1], device=ids.device) + first) % ids.shape[1]
            states, mask = states.gather(1, order.unsqueeze(2).expand_as(states)), mask.gather(1, order)
        taught = None
        if self.scope is not None:
            assert words is not None and shares is not None and reached is not None and empty is not None  # noqa: PT018
            m, width = self.scope.null.shape
            sums = shares @ F.embedding(words, self.encoder.embed_words().weight)
            sums = sums.view(-1, m, width) * self.scope.scale
            blank = empty.view(-1, 1, 1)
            taught = torch.where(blank, self.scope.null, sums), reached | empty.view(-1, 1)
        read: Tensor = self.reader(states, mask, taught)
        return read


def write_frozen(model: TaughtModel, config: TreaderConfig, out: FolderWriter, int8: bool) -> None:
    """Write an exported model, which `frozen.py` reads."""
    network, writer = model.network, FrozenWriter(out, int8)
    spec: dict[str, Any]
    if isinstance(network.encoder, WordEncoder):
        out.arrays("words", model.tokenizer.inner.arrays())
        pad_id = network.encoder.layout.pad_id
        spec = {"words": True, "max_length": config.words.max_words, "pad_id": pad_id}
    else:
        writer.tokenizer(model.tokenizer)
        spec = describe_reading(network.encoder, config.encoder)
    more = None
    if network.scope is not None and model.teacher is not None:
        descriptions = network.scope.descriptions.cpu().numpy().astype(np.int32)
        out.arrays("descriptions", {"words": descriptions})
        spec |= {"teacher": True, **_write_teacher(model.teacher, writer)}
        m = descriptions.shape[1]
        more = {
            "words": (torch.tensor([0, 1, 2]), {0: "words"}),
            "shares": (torch.rand(2 * m, 3), {0: "places", 1: "words"}),
            "reached": (torch.ones(2, m, dtype=torch.bool), {0: "rows"}),
            "empty": (torch.tensor([False, True]), {0: "rows"}),
        }
    writer.graph(ReadWithScope(network), {"read": {0: "rows"}}, more=more)
    arrays: dict[str, Any] = {"output.weight": network.head.output.weight, "output.bias": network.head.output.bias}
    if network.vote is not None:
        spec["vote"] = config.head.vote
        arrays["vote"] = network.vote.line
    writer.weights(arrays)
    writer.spec(TreaderSpec(**spec))
    writer.finish(model.manifest, model.labels)


def _write_teacher(teacher: Teacher, writer: FrozenWriter) -> dict[str, Any]:
    """Write pool and comparer; return the comparer's part of the spec."""
    compare = teacher.compare
    if not isinstance(compare, ByEncoder):
        teacher.save(writer.out)
        return {}
    teacher.save_pool(writer.out)
    encoder, tokenizer = compare.encoder.encoder, compare.encoder.tokenizer
    writer.graph(TextVectors([encoder], [("mean", -1)]), {"text": {0: "rows"}}, name=COMPARER)
    writer.tokenizer(tokenizer, COMPARER_TOKENIZER)
    layout = encoder.layout
    return {"comparer": FrozenSpec(max_length=tokenizer.max_length, pad_id=layout.pad_id, pad_left=layout.pad_left)}
