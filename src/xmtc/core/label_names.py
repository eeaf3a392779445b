"""Label names as training data: each label's name and alternatives become one more short document, for training only.

Input: a corpus. Output: a longer corpus whose labels keep their counts; `Corpus.n_names` marks the new rows, so that
they are neither counted as training documents nor held out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.core.progress import SILENT, Progress
from xmtc.core.texts import Texts


class NamesConfig(Settings):
    """Whether to train on label names; part of every method's `train` settings."""

    names: bool = Field(False, description="use each label's name and alternative names as one more training document")


def add_names(corpus: Corpus, progress: Progress = SILENT) -> Corpus:
    """Return a corpus with one more row per label that has a name or alternatives besides its id."""
    labels = corpus.labels
    if corpus.texts is None:
        raise ConfigError("train.names needs texts, and this corpus has only features; leave it out")
    described = zip(labels.ids[: labels.n_labels], labels.names, labels.alternatives, strict=False)
    texts = [" ".join([*([] if name == label else [name]), *others]) for label, name, others in described]
    entries = [entry for entry, text in enumerate(texts) if text.strip()]
    if not entries:
        progress.say("train.names has no effect: no label has a name besides its id")
        return corpus
    progress.say(f"names of {len(entries):,} of the {labels.n_labels:,} labels are used as training documents, too")
    ones = np.ones(len(entries), dtype=np.float32)
    names = sp.csr_matrix((ones, (np.arange(len(entries)), entries)), shape=(len(entries), len(labels)))
    return replace(
        corpus,
        ids=Texts.pack([*corpus.ids, *(f"name of {labels.ids[entry]}" for entry in entries)]),
        texts=Texts.pack([*corpus.texts, *(texts[entry] for entry in entries)]),
        X=None,  # a model reads either texts or features
        Y=sp.vstack([corpus.Y, names], format="csr"),
        groups=None if corpus.groups is None else np.append(corpus.groups, len(corpus) + np.arange(len(entries))),
        n_names=len(entries),
    )
