"""Train a matcher as a stage of a run; after training, keep its weights and curve and delete its checkpoints.

Input: tokens and the clusters of documents. Output: a trained network and its curve. This module knows no labels.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from xmtc.core.metrics import dev_scorer
from xmtc.core.progress import SILENT, Progress
from xmtc.core.stages import finish_stage
from xmtc.core.storage import Epoch
from xmtc.features.tokens import Tokens
from xmtc.methods.xbert.matcher import ClusterMatcher, RateConfig
from xmtc.neural.batches import Inputs
from xmtc.neural.devices import build_accelerator
from xmtc.neural.trainer import Score, TrainConfig, TrainingData, fit

Matched = tuple[Tokens, sp.csr_matrix]  # documents, and their clusters
_CURVE = "curve"  # stored next to the weights


def train_matcher(
    network: ClusterMatcher,
    documents: Matched,
    dev: Matched,
    config: TrainConfig,
    rate: RateConfig,
    seed: int,
    folder: Path | None,
    identity: dict[str, Any],
    progress: Progress = SILENT,
    stage: str = "matcher",
) -> list[Epoch]:
    """Train a network, leave it ready to predict, and return its curve.

    folder: of the member; an interrupted run resumes from the files stored there under the name of the stage. The best
    epoch is the one with the best ranking of dev's clusters; without dev documents, the last one.
    """
    layout = network.body.layout
    checkpoints = None if folder is None else folder / f"{stage}-checkpoints"

    def compute() -> dict[str, NDArray[Any]]:
        curve = fit(
            network,
            network.groups(rate),
            TrainingData(Inputs(documents[0], layout), documents[1]),
            config,
            dev=(Inputs(dev[0], layout), cluster_scorer(dev[1], config.metric)) if len(dev[0]) else None,
            seed=seed,
            partial=checkpoints,
            identity=identity,
            skips_parameters=True,  # encoders have a pooler or a mask vector, which text vectors do not use
            progress=progress,
        )
        told = np.frombuffer(json.dumps([entry.to_json() for entry in curve]).encode(), dtype=np.uint8)
        return {**{name: value.cpu().numpy() for name, value in network.state_dict().items()}, _CURVE: told}

    found = finish_stage(folder, stage, compute)
    curve = [Epoch(**entry) for entry in json.loads(found.pop(_CURVE).tobytes())]
    network.load_state_dict({name: torch.tensor(array) for name, array in found.items()})
    # the device that training would use: members share words, and later steps read documents there
    network.to(build_accelerator(config.precision, skips_parameters=True).device)
    network.eval()
    if checkpoints is not None:
        shutil.rmtree(checkpoints, ignore_errors=True)
    return curve


def split_epochs(config: TrainConfig, share: float) -> tuple[TrainConfig, TrainConfig]:
    """Return the settings of training on coarse clusters, for a share of the epochs, and on fine ones, for the rest.

    Both have at least one epoch. Weights are averaged on fine clusters only.
    """
    first = min(max(1, int(share * config.epochs + 0.5)), config.epochs - 1)
    later = None if config.average_from is None else max(0, config.average_from - first)
    coarse = config.model_copy(update={"epochs": first, "average_from": None})
    return coarse, config.model_copy(update={"epochs": config.epochs - first, "average_from": later})


def cluster_scorer(targets: sp.csr_matrix, metric: str) -> Score:
    """Return a function from a ranking of clusters to a metric, in percent; raise at once for an unknown metric."""
    return dev_scorer(targets, np.ones(targets.shape[1], dtype=np.int64), targets.shape[0], metric)
