"""NeuralModel: what the methods on one encoder return from training. Knows networks as `Network` only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from xmtc.core.labels import LabelSet
from xmtc.core.model import DisplayedModel, Documents, check_k, pack_texts
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Details, FolderReader, FolderWriter, Manifest, write_folder
from xmtc.core.texts import Texts
from xmtc.features.tokens import tokenize
from xmtc.neural.batches import Inputs
from xmtc.neural.encoder import Tokenizer, save_encoder
from xmtc.neural.network import Network
from xmtc.neural.predictor import rank_inputs

if TYPE_CHECKING:
    from xmtc.core.explanation import Explanation
    from xmtc.core.partition import Partition

N = TypeVar("N", bound=Network)


@dataclass(frozen=True, eq=False, repr=False)
class NeuralModel(DisplayedModel, Generic[N]):
    """A trained network with its labels and tokenizer; see `xmtc.core.model.Model`."""

    manifest: Manifest[Details]
    labels: LabelSet
    network: N
    tokenizer: Tokenizer

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each text."""
        check_k(k)
        ranking = rank_inputs(self.network, self.read(pack_texts(documents)), k)  # packed: no lone surrogates
        return replace(ranking, label_set=self.labels)

    def read(self, texts: Texts) -> Inputs:
        """Return what the network is fed of each text."""
        return Inputs(tokenize(texts, self.tokenizer), self.network.encoder.layout)

    def explain(self, text: str, label: str) -> Explanation:
        """Say which words of a text a label attends to, or pushed it up or down, by gradient × input."""
        from xmtc.core.explanation import Explanation
        from xmtc.neural.explain import explain_words

        entry = self.labels.find_trained(label)
        texts = Texts.pack([text])
        text = texts[0]
        batch = self.read(texts).collate([0]).to(next(self.network.parameters()).device)
        ranking = self.rank([text], self.labels.n_labels)
        found = ranking.scores[0][ranking.labels[0] == entry]
        return Explanation(
            label=self.labels.ids[entry],
            score=float(found[0]) if len(found) else 0.0,  # 0: the shortlist left it out
            method=self.manifest.method,
            spans=explain_words(self.network, batch, entry, text, self.tokenizer.offsets(text)),
            text=text,
        )

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model folder, whole or not at all."""
        with write_folder(folder, overwrite=overwrite) as out:
            out.labels(self.labels)
            state = self.network.state_dict()
            arrays = [weight.detach().cpu().numpy() for weight in state.values()]
            out.tensors("network", dict(zip(state, arrays, strict=True)))
            self.save_reader(out)
            out.manifest(self.manifest)

    def save_reader(self, out: FolderWriter) -> None:
        """Write what `read` needs, and the encoder's settings."""
        save_encoder(self.network.encoder, self.tokenizer, out.folder / "encoder")


def load_weights(network: nn.Module, reader: FolderReader, name: str = "network") -> None:
    """Put the saved weights into a network of the same shape, ready to rank.

    Weights are mapped, not copied: processes that serve the same folder share their pages.
    """
    network.load_state_dict(load_file(reader.folder / f"{name}.safetensors"), assign=True)
    network.eval()


def read_partition(reader: FolderReader, name: str, n_clusters: int) -> Partition:
    """Return the partition of the labels that was saved with a network, as its buffer `name`: the network's shape."""
    from xmtc.core.partition import Partition

    with safe_open(reader.folder / "network.safetensors", framework="np") as weights:
        return Partition(weights.get_tensor(name).astype(np.int32), n_clusters)
