"""Decide whether to train a member on label names as well, by two trial models scored on held-out documents.

The input is a member and a corpus; the output is the member, with `train.names` if that ranked the held-out documents
better. Fine-tuned encoders use the result of the linear method's trials, because their own trials would take as long as
training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from xmtc.core.corpus import Corpus
from xmtc.core.metrics import evaluate
from xmtc.core.model import Model
from xmtc.core.progress import Progress
from xmtc.core.rank_corpus import rank_corpus
from xmtc.presets.members import FINE_TUNED, NEIGHBOURS, ONE_TREE, TREES, Member

TRIALS = {TREES.name: ONE_TREE, NEIGHBOURS.name: NEIGHBOURS}  # member → the model that is trained to decide
COST = 1.5  # maximum cost of both trials and their ranking, relative to the member's training
_MOST = 20_000  # documents of a trial: more take longer and give the same decision
_HELD_OUT = 0.15


def decide_names(
    member: Member,
    corpus: Corpus,
    dev: Corpus | None,
    train: Callable[[Corpus, Member], Model],
    tail: float,
    seed: int,
    progress: Progress,
) -> Member:
    """Return the member as it is, or with `train.names` if a trial model with names scores higher.

    The score is nDCG@5 + tail · PSP@5. Names help rare labels most, so both count, weighted as in the training of the
    ensemble.
    """
    trial = ONE_TREE if member.method == FINE_TUNED else TRIALS.get(member.name)
    labels = corpus.labels
    shown = zip(labels.ids[: labels.n_labels], labels.names, labels.alternatives, strict=False)
    if trial is None or corpus.texts is None or not any(name != label or others for label, name, others in shown):
        return member
    progress.stage("trying names of labels")
    chosen = np.sort(np.random.default_rng(seed).permutation(len(corpus))[:_MOST])
    sample = corpus.take(chosen)
    if dev is None:
        sample, dev = sample.split(_HELD_OUT, seed)
    elif len(dev) > _MOST // 4:
        dev = dev.take(np.arange(_MOST // 4))
    if not len(sample) or not len(dev):
        return member
    trials = [train(sample.compact(), one) for one in (trial, _with_names(trial))]
    plain, named = (_score(model, dev, tail) for model in trials)
    better = "better" if named > plain else "not better"
    progress.say(f"{member.name} with label names as documents: {named:.2f} against {plain:.2f}, {better}")
    return _with_names(member) if named > plain else member


def _score(model: Model, unseen: Corpus, tail: float) -> float:
    aligned, ranking = unseen.align(model.labels), rank_corpus(model, unseen, 5)
    n_documents = model.manifest.n_documents
    report = evaluate(ranking, aligned.Y, aligned.labels, n_documents, mode="known", intervals=False)
    return report["nDCG@5"] + tail * report["PSP@5"]


def _with_names(member: Member) -> Member:
    return replace(member, config={**member.config, "train": {**member.config.get("train", {}), "names": True}})
