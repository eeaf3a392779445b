"""Training a method or ranking by it, each in a process of its own. Started by benchmarks.train and .reproduce.

A job: `data` (folder), `model` (folder to save to), `method`, `config`, `seed`, `threads`, `resume`, `ranked` (folder
for the rankings), `hold_out`: whether dev is that of benchmarks.parts, and is ranked too. Without it the method finds
its dev documents as in `xmtc train`: the folder's dev split, else held out by itself.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import linear_run
from benchmarks.journal import Journal
from benchmarks.machine import Clock, folder_mb, peak_rss_mb
from benchmarks.parts import Parts, label_fingerprint, read_parts
from benchmarks.process import Found, serve
from benchmarks.store import WIDTH
from xmtc import api
from xmtc.core import metrics
from xmtc.core.corpus import Corpus
from xmtc.core.errors import XmtcError
from xmtc.core.model import Model
from xmtc.core.progress import SILENT
from xmtc.core.ranking import Ranking
from xmtc.data import splits
from xmtc.methods.xbert.model import JointMatcher, StagedModel

_ENCODERS = {
    "minilm": "MiniLM",
    "all-MiniLM-L6-v2": "MiniLM",
    "bert-base-uncased": "BERT base",
    "roberta-base": "RoBERTa base",
    "xlnet-base-cased": "XLNet base",
}
_VERSIONS = {
    (("text", 3),): "v1",
    (("pifa", 3),): "v2",
    (("pifa", 3), ("text", 3)): "v3",
}  # label vectors and how many members have them → the paper's name


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
        "config": _public(model.manifest.config),
        "encoder": _encoder_in_words(model),
        "version": _version_in_words(model),
        "curve": model.manifest.details.get("curve", []),
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
    _keep(job, "test", ranking)
    found: Found = {
        "seconds": {"read": read.seconds, "load": load.seconds, "first": first.seconds, "rank": every.seconds},
        "documents_per_second": len(corpus) / every.seconds,
        "most_rss_mb": memory,
        "data": {"test": corpus.fingerprint(), "test_documents": len(corpus)},
        "reports": {mode: _report(model, ranking, corpus, mode, intervals=True) for mode in ("known", "all")},
        "stages": stages,  # of a model of several
    }
    if job["hold_out"]:
        parts = read_parts(job["data"])
        ranking = api.rank_corpus(model, parts.dev, WIDTH)
        _keep(job, "dev", ranking, parts)
        found["dev"] = _report(model, ranking, parts.dev, "known", intervals=False)["metrics"]
    return found


def _warm_up(job: Found) -> None:
    """Load what the method is made of, and compile the linear one's kernels: no part of training."""
    api.uses_dev(job["method"])  # imports it
    if job["method"] == linear_run.METHOD:
        linear_run.warm_up(job)


def _read(job: Found) -> tuple[Corpus, Corpus | None, dict[str, Any]]:
    """Train and dev documents, and what is said of them."""
    if job["hold_out"]:
        parts = read_parts(job["data"])
        return parts.train, parts.dev, parts.about()
    corpus = api.read_corpus(job["data"], "train").compact()
    dev = api.read_corpus(job["data"], "dev") if "dev" in splits(job["data"]) else None
    sizes = {"train_documents": len(corpus), "labels": corpus.labels.n_labels}
    return corpus, dev, {"train": corpus.fingerprint(), **sizes}


def _keep(job: Found, split: str, ranking: Ranking, parts: Parts | None = None) -> None:
    """Put a ranking where the process that started this one finds it."""
    arrays: dict[str, np.ndarray] = {"ids": ranking.labels, "scores": ranking.scores}
    if parts is not None and parts.held is not None:
        arrays["rows"] = parts.held
    np.savez(Path(job["ranked"], f"{split}.npz"), **arrays)  # type: ignore[arg-type]


def _report(
    model: Model, ranking: Ranking, corpus: Corpus, mode: metrics.TruthMode, *, intervals: bool
) -> dict[str, Any]:
    aligned = corpus.align(model.labels)
    return metrics.evaluate(
        ranking,
        aligned.Y,
        aligned.labels,
        model.manifest.n_documents,
        mode=mode,
        propensity=metrics.Propensity(**model.manifest.config.get("propensity", {})),
        intervals=intervals,
    ).to_json()


def _public(config: dict[str, Any]) -> dict[str, Any]:
    """The settings without this machine's paths: an encoder's folder and a file of vectors are told by their names."""
    told = config
    for part, key in (("encoder", "name"), ("cluster", "encoder"), ("words", "vectors")):
        given = config.get(part, {}).get(key)
        if isinstance(given, str) and Path(given).exists():
            told = {**told, part: {**told[part], key: Path(given).name}}
    return told


def _encoder_in_words(model: Model) -> str | None:
    """Which weights ran, such as "MiniLM, 6 layers, 48 tokens"; None for a method without an encoder.

    Of a model in stages, what matches texts to clusters: an encoder or X-ttention, with a linear matcher or without, or
    a linear matcher alone.
    """
    config = model.manifest.config
    beside = ""
    if isinstance(model, StagedModel):
        if config["match"]["kind"] == "linear":
            return "a linear matcher"
        beside = " and a linear matcher" if config["match"].get("linear") else ""
        if config["match"]["kind"] == "xttention":
            sizes = config["xttention"]
            return (
                f"X-ttention{beside}, u = {sizes['hidden']}, r = {sizes['rows']}, MLP of {sizes['mlp']}, "
                f"{config['words']['max_words']} words"
            )
    encoder = _find_encoder(model)
    if encoder is None:
        return None
    if encoder.n_layers == 0:
        return f"word vectors, {config['words']['max_words']} words"
    settings = config["encoder"]
    name = Path(settings["name"]).name
    layers = f"{encoder.n_layers} layer{'s' if encoder.n_layers > 1 else ''}"
    return f"{_ENCODERS.get(name, name)}{beside}, {layers}, {settings['max_length']} tokens"


def _find_encoder(model: Model) -> Any:
    """The encoder inside a model; of a model in stages, that of its first member's matcher."""
    if isinstance(model, StagedModel):
        matcher: Any = model.members[0].matcher
        return (matcher.neural if isinstance(matcher, JointMatcher) else matcher).network.body.encoder
    return getattr(getattr(model, "network", None), "encoder", None)


def _version_in_words(model: Model) -> str | None:
    """Which members a model in stages has: v1, v2 and v3 as X-BERT's paper calls them; None for a single one."""
    if not isinstance(model, StagedModel) or len(model.members) == 1:
        return None
    members = Counter(member["vectors"] for member in model.manifest.details["members"])
    told = " and ".join(f"{n} by {kind}" for kind, n in members.items())
    return _VERSIONS.get(tuple(sorted(members.items())), f"({told})")


if __name__ == "__main__":
    try:
        serve({"train": train, "rank": rank})
    except XmtcError as error:
        sys.exit(str(error))
