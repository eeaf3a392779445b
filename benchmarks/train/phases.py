"""Training a method and ranking by it: the phases of benchmarks.train and benchmarks.reproduce.

A job: `data` (folder), `model` (folder to save to), `method`, `config`, `seed`, `threads`, `resume`, `ranked` (folder
for the rankings), `hold_out`: whether dev is that of benchmarks.splits, and is ranked too. Without it the method finds
its dev documents as in `xmtc train`: the folder's dev split, else held out by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import linear
from benchmarks.framework import Clock, Found, folder_mb, peak_rss_mb
from benchmarks.latency import time_singly
from benchmarks.models import curve_of, describe_encoder, describe_version, public_settings
from benchmarks.rankings import WIDTH
from benchmarks.scoring import Truth
from benchmarks.splits import Splits, label_fingerprint, read_splits
from benchmarks.train.journal import Journal
from xmtc import api
from xmtc.core.corpus import Corpus
from xmtc.core.progress import SILENT
from xmtc.core.ranking import Ranking
from xmtc.data import splits


def train(job: Found) -> Found:
    """Train and save, or go on where a killed session stopped; a finished model is left as it is."""
    out = Path(job["model"])
    finished = bool(job["resume"]) and out.exists()
    journal = Journal(out)
    if not finished:
        journal.begin(goes_on=job["resume"] and out.with_name(f"{out.name}.partial").exists())
        journal.stage("start")
        _warm_up(job)
        journal.stage("read")
    corpus, dev, about = _read(job)
    model = api.train(
        corpus,
        job["method"],
        job["config"],
        dev=dev if api.uses_dev(job["method"]) else None,
        out=out,
        seed=job["seed"],
        resume=job["resume"],
        overwrite=not job["resume"],
        progress=SILENT if finished else journal,
    )
    if not finished:
        journal.end()
    return {
        "trained": not finished,
        "sessions": len(journal.sessions),
        "seconds": journal.seconds(),
        "most_rss_mb": journal.peak_rss_mb(),
        "config": public_settings(model.manifest.config),
        "encoder": describe_encoder(model),
        "version": describe_version(model),
        "curve": curve_of(model),
        "data": {**about, "label_ids": label_fingerprint(model.labels)},
        "model_mb": folder_mb(out),
    }


def rank(job: Found) -> Found:
    """Load the model, rank test and score it against both truths; then rank dev, where it is held out."""
    with Clock() as read:
        corpus = api.read_corpus(job["data"], "test")
    with Clock() as load:
        model = api.load(job["model"])
    with Clock() as first:
        api.rank_corpus(model, corpus.take([0]), WIDTH)
    with Clock() as every:
        ranking, stages = api.rank_in_stages(model, corpus, WIDTH, "known")
    memory = peak_rss_mb()
    one = time_singly(model, corpus)
    _keep(job, "test", ranking)
    found: Found = {
        "seconds": {"read": read.seconds, "load": load.seconds, "first": first.seconds, "rank": every.seconds},
        "documents_per_second": len(corpus) / every.seconds,
        "one_ms": one,
        "most_rss_mb": memory,
        "data": {"test": corpus.fingerprint(), "test_documents": len(corpus)},
        "reports": Truth.of_model(model, corpus).reports(ranking),
        "stages": stages,  # of a model of several
    }
    if job["hold_out"]:
        held = read_splits(job["data"])
        ranking = api.rank_corpus(model, held.dev, WIDTH)
        _keep(job, "dev", ranking, held)
        found["dev"] = Truth.of_model(model, held.dev).report(ranking, "known", intervals=False)["metrics"]
    return found


def _warm_up(job: Found) -> None:
    """Load what the method is made of, and compile the linear one's kernels: no part of training."""
    api.uses_dev(job["method"])  # imports it
    if job["method"] == linear.METHOD:
        linear.warm_up(job)


def _read(job: Found) -> tuple[Corpus, Corpus | None, dict[str, Any]]:
    """Train and dev documents, and what is said of them."""
    if job["hold_out"]:
        held = read_splits(job["data"])
        return held.train, held.dev, held.about()
    corpus = api.read_corpus(job["data"], "train").compact()
    dev = api.read_corpus(job["data"], "dev") if "dev" in splits(job["data"]) else None
    sizes = {"train_documents": len(corpus), "labels": corpus.labels.n_labels}
    return corpus, dev, {"train": corpus.fingerprint(), **sizes}


def _keep(job: Found, split: str, ranking: Ranking, held: Splits | None = None) -> None:
    """Put a ranking where the process that started this one finds it."""
    arrays: dict[str, np.ndarray] = {"ids": ranking.labels, "scores": ranking.scores}
    if held is not None and held.held is not None:
        arrays["rows"] = held.held
    np.savez(Path(job["ranked"], f"{split}.npz"), **arrays)  # type: ignore[arg-type]


PHASES = {"train": train, "rank": rank}
