"""The splits of a set: what is trained on, and dev, which choices are made by. Test is read as it is.

Dev is the folder's own dev split. A set without one loses a fixed part of train to it: the same documents for every
method and whatever the run's seed, so that the dev rankings of different methods are of the same documents, and none
of the methods has trained on them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.api import read_corpus
from xmtc.core.corpus import Corpus
from xmtc.core.labels import LabelSet
from xmtc.core.texts import Texts
from xmtc.data import splits

HELD_OUT = {"fraction": 0.05, "most": 4000, "seed": 0}  # fixed: other documents would make other results
_NOTE = "dev was held out of train, and no method, linear included, trains on it; the dev ranking says which rows"


@dataclass(frozen=True)
class Splits:
    """Documents to train on, and dev documents, which are not among them."""

    train: Corpus  # its labels are those that a model of it can rank, in the model's order
    dev: Corpus
    held: NDArray[np.int64] | None  # rows of the folder's train split that are dev; None where it has a dev split

    def about(self) -> dict[str, Any]:
        """Return the sizes, and the fingerprints by which two results are known to be of the same documents."""
        return {
            "train": self.train.fingerprint(),
            "dev": self.dev.fingerprint(),
            "train_documents": len(self.train),
            "dev_documents": len(self.dev),
            "labels": self.train.labels.n_labels,
            "held_out": None if self.held is None else {**HELD_OUT, "note": _NOTE},
        }


def read_splits(folder: str | Path) -> Splits:
    """Read train and dev of a folder; without a dev split, HELD_OUT says which part of train becomes dev."""
    corpus = read_corpus(folder, "train")
    if "dev" in splits(folder):
        return Splits(corpus.compact(), read_corpus(folder, "dev"), None)
    numbered = replace(corpus, ids=Texts.pack(map(str, range(len(corpus)))))
    fraction = min(HELD_OUT["fraction"], HELD_OUT["most"] / len(corpus))
    kept, held = (np.array([int(row) for row in part.ids]) for part in numbered.split(fraction, int(HELD_OUT["seed"])))
    return Splits(corpus.take(kept).compact(), corpus.take(held), held)


def label_fingerprint(labels: LabelSet) -> str:
    """Return a sha256 over the labels that can be ranked, in order: equal where rankings speak of the same labels."""
    return hashlib.sha256(json.dumps(labels.ids[: labels.n_labels]).encode()).hexdigest()
