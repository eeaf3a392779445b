"""NeuralModel: the trained model of methods with one encoder. Knows networks only as `Network`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from xmtc.core.errors import ModelError
from xmtc.core.labels import LabelSet
from xmtc.core.model import DisplayedModel, Documents, check_k, pack_texts
from xmtc.core.ranking import Ranking
from xmtc.core.storage import ALIGNED, Details, FolderReader, FolderWriter, Manifest, write_folder
from xmtc.core.stored_arrays import LARGEST_WEIGHT, check_array
from xmtc.core.texts import Texts
from xmtc.features.tokens import tokenize
from xmtc.neural.batches import Inputs
from xmtc.neural.encoder import Encoder, EncoderConfig, Tokenizer, restore_encoder, save_encoder
from xmtc.neural.network import Network
from xmtc.neural.predictor import rank_inputs

if TYPE_CHECKING:
    from xmtc.core.explanation import Explanation
    from xmtc.core.partition import Partition

N = TypeVar("N", bound=Network)
M = TypeVar("M", bound=nn.Module)


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
        """Return the input of the network for each text."""
        return Inputs(tokenize(texts, self.tokenizer), self.network.encoder.layout)

    def explain(self, text: str, label: str) -> Explanation:
        """Explain which words of a text a label attends to, or which raised or lowered its score (gradient × input)."""
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
            score=float(found[0]) if len(found) else 0.0,  # 0: not in the shortlist
            method=self.manifest.method,
            spans=explain_words(self.network, batch, entry, text, self.tokenizer.offsets(text)),
            text=text,
        )

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model folder atomically."""
        with write_folder(folder, overwrite=overwrite) as out:
            out.labels(self.labels)
            state = self.network.state_dict()
            arrays = [weight.detach().cpu().numpy() for weight in state.values()]
            out.tensors("network", dict(zip(state, arrays, strict=True)))
            self.save_reader(out)
            out.manifest(self.manifest)

    def save_reader(self, out: FolderWriter) -> None:
        """Write everything that `read` needs, and the encoder's settings."""
        save_encoder(self.network.encoder, self.tokenizer, out.folder / "encoder")


def read_encoder(reader: FolderReader, prefix: str, config: EncoderConfig) -> tuple[Encoder, Tokenizer]:
    """Rebuild the encoder of a model folder, without its weights, and its tokenizer."""
    stored = [reader.folder / name for name in reader.files if name.endswith(".safetensors")]
    return restore_encoder(reader.path(prefix), config, sum(path.stat().st_size for path in stored))


def restore_network(
    build: Callable[[], M], reader: FolderReader, name: str = "network", shared: Mapping[str, Tensor] | None = None
) -> M:
    """Build a network and load the saved weights into it, ready to rank; raise unless they fit.

    shared: weights that are not in the file. The network is first outlined without memory: settings that describe a
    larger network than the file holds raise.
    """
    with torch.device("meta"):
        outline = build().state_dict()
    path = reader.path(f"{name}.safetensors")
    try:
        weights = {**load_file(path), **(shared or {})}  # memory-mapped
        shapes, wanted = (
            dict(zip(own, (tuple(weight.shape) for weight in own.values()), strict=True)) for own in (weights, outline)
        )
        for key, shape in wanted.items():
            if shape == () and shapes.get(key) == (1,):  # the saved shape
                shapes[key] = ()
        if shapes != wanted:
            odd = min(key for key in {*shapes, *wanted} if shapes.get(key) != wanted.get(key))
            raise ValueError(f"{odd[:99]} is {shapes.get(odd, 'missing')}, not {wanted.get(odd, 'there')}")
        network = build()
        for key, own in network.state_dict().items():
            given = weights[key]
            if given.is_floating_point() != own.is_floating_point():
                raise ValueError(f"{key} holds {given.dtype}, not {own.dtype}")
            if own.is_floating_point() and not (given.abs() <= LARGEST_WEIGHT).all():  # also catches NaN
                raise ValueError(f"{key} holds NaN or numbers above {LARGEST_WEIGHT:g}")
            # integers follow from the labels' clusters, which were already checked
            if not own.is_floating_point() and not torch.equal(given.to(own.dtype).view_as(own), own):
                raise ValueError(f"{key} holds other clusters than the labels have")
            if given.dtype != own.dtype or given.shape != own.shape:
                weights[key] = given.to(own.dtype).view_as(own)
            if weights[key].data_ptr() % ALIGNED:  # else scores may differ in the last digit from those before saving
                weights[key] = weights[key].clone()
        network.load_state_dict(weights, assign=True)  # memory-mapped: processes that serve the same folder share pages
    except (SafetensorError, ValueError, RuntimeError, KeyError, TypeError, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise ModelError(
            f"{path} does not hold the weights of this model ({reason}); train the model again, or copy it from a "
            "source that you trust"
        ) from None
    network.eval()
    return network


def read_partition(reader: FolderReader, name: str, n_clusters: int, n_labels: int) -> Partition:
    """Return the partition of the labels that was saved with a network as its buffer `name`; it defines the shape."""
    from xmtc.core.partition import Partition

    path = reader.path("network.safetensors")
    try:
        with safe_open(path, framework="np") as weights:
            parents = check_array({name: weights.get_tensor(name)}, name, "int64", length=n_labels)
        check_array({name: parents}, name, "int64", within=(0, n_clusters - 1))
        if n_clusters * int(np.bincount(parents).max()) > path.stat().st_size:
            raise ValueError(f"{n_clusters:,} clusters need a larger file")
    except (SafetensorError, ModelError, ValueError) as error:
        raise ModelError(f"{path} does not hold the clusters of this model ({error}); train the model again") from None
    return Partition(parents.astype(np.int32), n_clusters)
