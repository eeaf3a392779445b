"""Initialize LightXML's head: biases from label frequencies, label rows from their documents' vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from xmtc.core.partition import Partition, cluster_targets
from xmtc.neural.devices import build_accelerator, choose_number, computing_in
from xmtc.neural.heads import FlatHead
from xmtc.neural.label_start import label_rows, log_prior, put_rows, read_documents, start_layer

if TYPE_CHECKING:
    from xmtc.methods.lightxml.method import LightxmlConfig, LightxmlNetwork
    from xmtc.neural.prepare import Prepared


@torch.no_grad()
def start_head(network: LightxmlNetwork, ready: Prepared[LightxmlConfig], partition: Partition | None) -> None:
    """Set the head's initial weights from the training documents, as `initial_bias` and `label_init` specify.

    With clusters, the biases are the generator's, and its rows start from the documents of each cluster. The rows of
    the label table start from the bottleneck's output for each label's documents, and the bottleneck's bias centres the
    text.
    """
    config, head, Y = ready.config, network.head, ready.data.Y
    layer = head.output if isinstance(head, FlatHead) else head.generator
    targets = Y if partition is None else cluster_targets(Y, partition)
    if config.head.initial_bias == "prior":
        layer.bias.copy_(log_prior(targets))
    if config.head.label_init == "random":
        return
    network.to(build_accelerator(config.train.precision, skips_parameters=True).device)
    inputs, progress = ready.data.inputs, ready.progress
    number = choose_number(config.train.precision)
    how = f"{config.encoder.model_dump_json()} {config.reference} {number}" + (
        " stored" if inputs.tokens.states is not None else ""
    )
    with computing_in(number):
        vectors = read_documents(network.read, network.encoder, inputs, network.width, how, progress)
    start_layer(layer, targets, vectors)
    if not isinstance(head, FlatHead):
        weight = head.bottleneck.weight.detach().cpu().numpy()
        mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        head.bottleneck.bias.copy_(torch.from_numpy(-weight @ mean))
        hidden = vectors @ weight.T - weight @ mean
        put_rows(head.table.weight, label_rows(Y, hidden, np.zeros(len(weight), dtype=np.float32)))
