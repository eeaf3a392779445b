"""One arm with one seed: train, then rank. The phases of benchmarks.ablations.schedule."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import scipy.sparse as sp

from benchmarks import linear
from benchmarks.ablations.documents import read_test, read_training
from benchmarks.ablations.study import FEW_IN_SCOPE, FEW_VOTE, IN_SCOPE, KL, VOTE, Documents
from benchmarks.framework import Clock, Found, folder_mb
from benchmarks.models import clusters_of, curve_of, describe_encoder, some_members
from xmtc import api
from xmtc.core import metrics
from xmtc.core.corpus import Corpus
from xmtc.core.ranking import Ranking
from xmtc.core.texts import Texts

_ALONE = 200  # documents that are ranked one by one
_BATCH = 64  # documents whose experts are compared at once


def train(job: Found) -> Found:
    """Train an arm on the study's documents, and save the model."""
    if job["method"] == "linear":
        linear.warm_up(job)  # its kernels are compiled, or read from disk, before the clock runs
    corpus, dev = read_training(Path(job["data"]), Documents(**job["documents"]))
    uses_dev = api.uses_dev(job["method"])
    with Clock() as clock:
        model = api.train(corpus, job["method"], job["config"], dev=dev if uses_dev else None, seed=job["seed"])
    model.save(job["model"])
    return {
        "seconds": clock.seconds,
        "labels": model.manifest.n_labels,
        "encoder": describe_encoder(model),
        "clusters": clusters_of(model),
        "model_mb": folder_mb(job["model"]),
    }


def rank_dev(job: Found) -> Found:
    """Load the model, rank the dev documents and score: what settings are chosen by."""
    model: Any = api.load(job["model"])
    _, dev = read_training(Path(job["data"]), Documents(**job["documents"]))
    metrics = api.evaluate(model, dev, truth="known", intervals=False).metrics
    return {"dev": {key: metrics[key] for key in ("P@1", "P@5", "PSP@5")}}


def rank(job: Found) -> Found:
    """Load the model, or some of its members, rank the test documents in batches and some one by one, and score."""
    model: Any = api.load(job["model"])
    if job["members"]:
        model = some_members(model, job["members"])
    corpus = read_test(Path(job["data"]), Documents(**job["documents"]))
    first = corpus.take(range(min(_ALONE, len(corpus))))
    model.rank(first.texts or [], 5)  # what a process does but once is not counted
    with Clock() as together:
        ranking, stages = api.rank_in_stages(model, corpus, 5, "known")
    alone = []
    for text in first.texts or ():
        with Clock() as clock:
            model.rank([text], 5)
        alone.append(1000 * clock.seconds)
    aligned = corpus.align(model.labels)
    report = metrics.evaluate(ranking, aligned.Y, aligned.labels, model.manifest.n_documents, mode="known")
    matching = stages.get("matching", ())[:1]  # of the first member
    stage = {f"matching {key}": member[key] for member in matching for key in ("P@1", "P@3", "P@5")}
    return {
        # thousandths: a mean over thousands of labels is small, and results keep four digits behind the point
        "curve": [{"loss_thousandths": 1000 * entry["loss"], "dev": entry.get("dev")} for entry in curve_of(model)],
        "ms_in_batches": 1000 * together.seconds / len(corpus),
        "ms_one_by_one": median(alone),
        "metrics": {**report.metrics, **stage, **disagreement(model, aligned), **scope(model, aligned)},
        "n": report.n,
    }


def disagreement(model: Any, corpus: Corpus) -> dict[str, float]:
    """The mean KL between the experts of a network that has several (ME-XML, Fig. 2b); nothing of other models."""
    if model.manifest.method != "mexml" or len(model.network.experts) < 2:
        return {}
    import torch  # here, for arms without a network need none

    from xmtc.features.tokens import tokenize
    from xmtc.neural.batches import Inputs
    from xmtc.neural.padding import order_reading
    from xmtc.neural.predictor import tokens_at_once

    network, tokens = model.network, tokenize(list(corpus.texts or ()), model.tokenizer)
    Y = corpus.Y[:, : model.labels.n_labels].tocsr()
    total = count = 0.0
    with torch.inference_mode():
        for rows in order_reading(tokens.lengths, tokens_at_once(torch.device("cpu")), _BATCH):
            found = network.disagree(Inputs(tokens, network.encoder.layout).collate(rows, Y))
            total, count = total + float(found[0]), count + float(found[1])
    return {KL: 1000 * total / max(1.0, count)}


def scope(model: Any, corpus: Corpus) -> dict[str, float]:
    """What a teacher knows (TReaderXML): true labels among its neighbours' and how well these vote; else nothing."""
    if model.manifest.method != "treader" or model.teacher is None:
        return {}
    from xmtc.features.tokens import tokenize
    from xmtc.methods.treader.scopes import ScopeConfig, build_scopes

    labels, texts = model.labels, Texts.pack(corpus.texts or ())
    neighbours = model.teacher.search(texts, tokenize(texts, model.tokenizer))
    scopes = build_scopes(neighbours, model.teacher.Y, labels, ScopeConfig(ancestors="none", weighted=True))
    given = sp.csr_matrix((scopes.weights, scopes.entries, scopes.offsets), shape=corpus.Y.shape)
    truth = corpus.Y[:, : labels.n_labels].tocsr()
    found = truth.multiply(given[:, : labels.n_labels] > 0).tocsr()
    few = labels.counts[: labels.n_labels] <= metrics.BINS["few"].last
    vote = metrics.evaluate(
        Ranking.from_csr(given, 5), corpus.Y, corpus.labels, model.manifest.n_documents, mode="known"
    )
    return {
        IN_SCOPE: 100 * found.nnz / truth.nnz,
        FEW_IN_SCOPE: 100 * found[:, few].nnz / max(1, truth[:, few].nnz),
        VOTE: vote.metrics["P@5"],
        FEW_VOTE: vote.metrics["macro-F@5/few"],
    }


PHASES = {"train": train, "rank_dev": rank_dev, "rank": rank}
