"""Export X-BERT: the body of each neural matcher becomes a graph, its layer over the clusters an array.

TF-IDF, index, linear matchers and rankers are written unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from xmtc.core.errors import ModelError
from xmtc.core.storage import FolderWriter
from xmtc.features.words import Words
from xmtc.methods.xbert.frozen import XbertSpec
from xmtc.methods.xbert.matcher import NeuralMatcher, PooledEncoder, TextReader
from xmtc.methods.xbert.model import JointMatcher, StagedModel
from xmtc.methods.xbert.xttention import Xttention
from xmtc.neural.freeze import FrozenWriter, TextVectors, describe_reading

if TYPE_CHECKING:
    from xmtc.methods.xbert.method import XbertConfig


class TracedXttention(nn.Module):
    """X-ttention without packed sequences, which cannot be traced: the backward direction reads reversed texts."""

    def __init__(self, body: Xttention) -> None:
        super().__init__()
        self.body = body
        self.directions = nn.ModuleList()
        for end in ("", "_reverse"):
            lstm = nn.LSTM(body.lstm.input_size, body.lstm.hidden_size, batch_first=True)
            names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
            lstm.load_state_dict({name: body.lstm.state_dict()[f"{name}{end}"] for name in names})
            self.directions.append(lstm)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the same as `Xttention.forward`: (B, mlp)."""
        words = self.body.words(ids)
        places = torch.arange(ids.shape[1], device=ids.device)
        turned = mask.sum(1, keepdim=True) - 1 - places  # (B, T): the text from its last word on; below 0 is padding
        turned = turned.clamp(min=0)
        ahead, back = self.directions
        start = words.new_zeros(1, ids.shape[0], self.body.lstm.hidden_size)
        forward = ahead(words, (start, start))[0]
        reversed_ = back(_take(words, turned), (start, start))[0]
        states = torch.cat([forward, _take(reversed_, turned)], dim=2)  # (B, T, 2u)
        weights = self.body._weights(states, mask)
        return torch.relu(self.body.mlp((weights @ states).flatten(1)))


def write_frozen(model: StagedModel, config: XbertConfig, out: FolderWriter, int8: bool) -> None:
    """Write an exported model, which `frozen.py` reads."""
    reader, writer = model.reader, FrozenWriter(out, int8)
    if not isinstance(reader, TextReader):
        raise ModelError(
            "this model's matcher is linear (match.kind = linear): it needs no torch, so there is nothing to export"
        )
    spec: dict[str, Any]
    if isinstance(reader.tokenizer, Words):
        out.arrays("words", reader.tokenizer.arrays())
        spec = {"words": True, "max_length": config.words.max_words, "pad_id": 0}
    else:
        assert reader.encoder is not None  # a tokenizer comes with its encoder
        writer.tokenizer(reader.tokenizer)
        spec = describe_reading(reader.encoder, config.encoder)
    transform = config.search.cluster
    for i, member in enumerate(model.members):
        matcher = member.matcher
        if isinstance(matcher, JointMatcher):
            matcher.linear.save(out, f"member-{i}")
            spec["linear"], transform = matcher.share, matcher.linear.search.cluster
            matcher = matcher.neural
        assert isinstance(matcher, NeuralMatcher)
        spec["vectors"] = matcher.keeps_vectors
        _write_matcher(matcher, writer, f"member-{i}")
        out.arrays(f"member-{i}/index", {"parents": member.partition.parents})
        out.arrays(f"member-{i}/ranker", member.ranker.arrays())
    out.arrays("tfidf", model.tfidf.arrays())
    writer.spec(XbertSpec(**spec, linear_transform=transform))
    writer.finish(model.manifest, model.labels)


def _write_matcher(matcher: NeuralMatcher, writer: FrozenWriter, prefix: str) -> None:
    network, body = matcher.network, matcher.network.body
    arrays: dict[str, Any] = {"output.weight": network.output.weight, "output.bias": network.output.bias}
    module: nn.Module
    if isinstance(body, PooledEncoder):
        module = TextVectors([body.encoder], body.pool.parts)
        if body.windows is not None and body.windows.attention is not None:
            arrays["attention"] = body.windows.attention
    else:
        module = TracedXttention(body)
    writer.graph(module, {"text": {0: "rows"}}, name=f"{prefix}/graph.onnx")
    writer.weights(arrays, f"{prefix}/head")


def _take(states: Tensor, places: Tensor) -> Tensor:
    """Return the states (B, T, d) at positions (B, T)."""
    return states.gather(1, places.unsqueeze(2).expand(-1, -1, states.shape[2]))
