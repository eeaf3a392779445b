"""Choose the members of presets: which models a preset trains, from the number and length of documents only.

The input is a corpus; the output is members, each a method with settings, the most useful first. `plan.py` estimates
times. Nothing here is tuned for one data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from xmtc.core.corpus import Corpus
from xmtc.core.held_out import DEV_FRACTION

_SAMPLE = 1000  # texts whose words are counted
_TOKENS_PER_WORD = 1.4
_SHORTEST, _LONGEST, _LONGEST_ON_GPU = 16, 128, 512  # tokens of a text that an encoder reads
_ENOUGH = 1500  # held-out documents that are enough to train an ensemble
_MOST_HELD_OUT = 0.12  # share of the training documents
_MANY_LABELS = 3000  # from here on a step over all labels needs larger batches to be worthwhile


@dataclass(frozen=True)
class Member:
    """A model to train: its name on the leaderboard and in the folder of an interrupted run, method and settings."""

    name: str
    method: str
    config: Mapping[str, Any]


TREES = Member("linear", "linear", {})
ONE_TREE = Member("linear", "linear", {"tree": {"trees": 1}})  # a third of the time
NEIGHBOURS = Member("knn", "knn", {})
NAMES = Member("match", "match", {})
# other views of the texts, which err on other documents than whole words do; one tree each
PAIRS = Member("linear-pairs", "linear", {"tfidf": {"ngrams": 2}, "tree": {"trees": 1}})
CHARACTERS = Member("linear-characters", "linear", {"tfidf": {"analyzer": "chars"}, "tree": {"trees": 1}})
SHORT = 500  # mean characters of texts up to which parts of words help; longer texts have enough whole words

# encoders by accuracy if there is enough time, best first
ENCODERS = ("gte-small", "minilm", "minilm-l3")
# layers that are not trained: their states are computed once, and a step takes a third or half of the time
_FROZEN = {"gte-small": 9, "minilm": 3}
# fewer, if there is ample time: on tate, P@1 rises by 1.6; MiniLM gains nothing
DEEPER = {"gte-small": 4}
FINE_TUNED = "lightxml"  # the method that fine-tunes encoders


def has_names(corpus: Corpus) -> bool:
    """Return whether labels can be found by name: there are texts, and at least half of the labels have names."""
    labels = corpus.labels
    pairs = zip(labels.ids[: labels.n_labels], labels.names, labels.alternatives, strict=False)
    named = sum(name != id or bool(others) for id, name, others in pairs)
    return corpus.texts is not None and 2 * named >= max(1, labels.n_labels)


def fine_tuned(
    encoder: str,
    corpus: Corpus,
    epochs: int,
    *,
    on_gpu: bool = False,
    minutes: float | None = None,
    quick: bool = False,
    deep: bool = False,
) -> Member:
    """Return a LightXML member: one fine-tuned encoder, which holds out the documents for training the ensemble.

    quick: nothing is read before the first step. deep: more layers are trained.
    """
    n_frozen = DEEPER[encoder] if deep else _FROZEN.get(encoder, 0)
    train: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": 64 if corpus.labels.n_labels > _MANY_LABELS else 32,
        "schedule": "linear",
        "warmup": 0.05,
        "dev_fraction": held_out_fraction(len(corpus)),
        "precision": "auto",
    }
    if minutes is not None:
        train["time_limit"] = minutes
    return Member(
        f"{FINE_TUNED}-{encoder}",
        FINE_TUNED,
        {
            "encoder": {
                "name": encoder,
                "max_length": tokens_to_read(corpus, on_gpu),
                "pool": "cls+mean",
                "freeze_words": True,
                "freeze_layers": 0 if quick else n_frozen,
                "dropout": 0,
            },
            "head": {"initial_bias": "prior", "label_init": "random" if quick else "documents"},
            "rate": {"encoder": 2e-4, "head": 3e-3},
            "train": train,
        },
    )


def frozen(encoder: str, corpus: Corpus, *, on_gpu: bool = False) -> Member:
    """Return a member that compares documents by the vectors of a pretrained encoder."""
    settings = {"name": encoder, "max_length": tokens_to_read(corpus, on_gpu)}
    return Member(f"knn-{encoder}", "knn", {"neighbours": {"vectors": "encoder"}, "encoder": settings})


def held_out_fraction(n_documents: int) -> float:
    """Return the share of training documents that encoders hold out, enough to train the ensemble if possible."""
    return round(min(_MOST_HELD_OUT, max(DEV_FRACTION, _ENOUGH / max(1, n_documents))), 4)


def tokens_to_read(corpus: Corpus, on_gpu: bool = False) -> int:
    """Return how many tokens cover nine of ten texts, within what a CPU or GPU reads in reasonable time."""
    if corpus.texts is None or not len(corpus):
        return _SHORTEST
    rows = np.linspace(0, len(corpus) - 1, min(_SAMPLE, len(corpus))).astype(int).tolist()
    lengths = [2 + _TOKENS_PER_WORD * len(corpus.texts[row].split()) for row in rows]
    wanted = 16 * int(np.ceil(np.quantile(lengths, 0.9) / 16))
    return int(np.clip(wanted, _SHORTEST, _LONGEST_ON_GPU if on_gpu else _LONGEST))
