"""The functions that everything above uses: read_corpus, train, load, evaluate; and ensemble.

Command line, server and benchmarks call these and nothing below. Knows no terminal; which methods and recipes exist is
`xmtc.catalogue`'s.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from xmtc.catalogue import METHODS, open_method, read_recipe, read_settings, uses_dev
from xmtc.core import bootstrap, metrics
from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.ensemble import Rule
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.model import Documents, Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.storage import FolderReader, check_target
from xmtc.data.read import read_corpus

__all__ = [
    "METHODS",
    "compare",
    "ensemble",
    "evaluate",
    "load",
    "rank_corpus",
    "read_corpus",
    "read_recipe",
    "read_settings",
    "train",
    "uses_dev",
]

_BATCH = 2048  # documents ranked between two steps of progress


def train(
    corpus: Corpus,
    method: str | None = None,
    config: Mapping[str, Any] | Settings | None = None,
    *,
    recipe: str | Path | None = None,
    dev: Corpus | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> Model:
    """Train a model, save it to `out` if given, and return it.

    method: one of METHODS ("linear" if neither it nor a recipe is given). config: nested settings of the method, over
    the recipe's. recipe: a name such as "linear/one-tree", or the path of a TOML file; it names its method. dev:
    documents to stop early or choose by, for methods that do. resume: go on where an interrupted run stopped, or
    return the finished model of the same settings, data and seed.
    """
    if not isinstance(corpus, Corpus):
        raise DataError(f"train takes a Corpus, as read_corpus gives it; got {type(corpus).__name__}")
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ConfigError(f"seed must be a whole number from 0 to 4294967295; got {seed!r}")
    method, settings = read_settings(method, config, recipe)
    corpus = corpus.compact()
    if out is not None:
        check_out(out, resume=resume, overwrite=overwrite)
        if resume and Path(out).exists():
            return _finished(out, method, settings, corpus, seed, progress)
    partial = None if out is None else _partial(out)
    if partial is not None and not resume:
        shutil.rmtree(partial, ignore_errors=True)
    model: Model = open_method(method).train(corpus, settings, dev=dev, seed=seed, progress=progress, partial=partial)
    if out is not None:
        progress.stage("saving")
        model.save(out, overwrite=overwrite)
        shutil.rmtree(_partial(out), ignore_errors=True)
    return model


def load(folder: str | Path) -> Model:
    """Load a model from its folder; a cut, altered or newer one is refused."""
    reader = FolderReader(folder)
    if reader.manifest.method == "ensemble":
        from xmtc.methods import ensemble as joined

        return joined.load(reader, load)
    if reader.manifest.method not in METHODS:
        raise ModelError(f"{folder} was made by method {reader.manifest.method!r}, which this version of xmtc lacks")
    model: Model = open_method(reader.manifest.method).load(reader)
    return model


def evaluate(
    model: Model,
    corpus: Corpus,
    truth: metrics.TruthMode = "all",
    propensity: metrics.Propensity | None = None,
    *,
    intervals: bool = True,
    progress: Progress = SILENT,
) -> metrics.Report:
    """Rank a corpus and compare with its labels, joined by label id.

    truth: "all" keeps labels that training never saw in the truth, where they cost recall; "known" drops them and the
    documents left without labels, for comparison with published tables. propensity: A and B of PSP@k; the model's
    own by default (0.55 and 1.5 unless its recipe says otherwise).
    """
    if propensity is not None and not isinstance(propensity, metrics.Propensity):
        raise ConfigError(f"propensity must be a Propensity, such as Propensity(A=0.55, B=1.5); got {propensity!r}")
    ranking = rank_corpus(model, corpus, 5, progress)
    aligned = corpus.align(model.labels)
    progress.stage("scoring")
    return metrics.evaluate(
        ranking,
        aligned.Y,
        aligned.labels,
        model.manifest.n_documents,
        mode=truth,
        propensity=propensity or _propensity(model),
        intervals=intervals,
    )


def compare(
    models: Mapping[str, Model],
    corpus: Corpus,
    truth: metrics.TruthMode = "all",
    propensity: metrics.Propensity | None = None,
    *,
    progress: Progress = SILENT,
) -> bootstrap.Comparison:
    """Compare named models on one corpus with the first of them, by a paired bootstrap over documents."""
    if not models:
        raise ConfigError("a comparison needs two models or more; got 0")
    first = next(iter(models.values()))
    used = propensity or _propensity(first)  # one for all, or their scores would not be comparable
    found = {}
    for name, model in models.items():
        aligned = corpus.align(model.labels)
        found[name] = metrics.collect(
            rank_corpus(model, corpus, 5, progress),
            aligned.Y,
            aligned.labels,
            model.manifest.n_documents,
            mode=truth,
            propensity=used,
        )
    progress.stage("scoring")
    return replace(bootstrap.compare(found), propensity={"A": used.A, "B": used.B, "N": first.manifest.n_documents})


def ensemble(
    models: Sequence[Model],
    rule: Rule = "mean",
    weights: Sequence[float] | None = None,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
) -> Model:
    """Join models into one that ranks by all of them; save it to `out` if given."""
    from xmtc.methods.ensemble import join

    if out is not None:
        check_target(out, overwrite=overwrite)
    model = join(models, rule, weights)
    if out is not None:
        model.save(out, overwrite=overwrite)
    return model


def evaluate_stages(model: Model, corpus: Corpus, truth: metrics.TruthMode = "all") -> dict[str, Any]:
    """Measure what comes before the ranking, for models of several stages, which have `stages`; others give nothing."""
    measure = getattr(model, "stages", None)
    return {} if measure is None else dict(measure(corpus, truth))


def rank_corpus(model: Model, corpus: Corpus, k: int, progress: Progress = SILENT) -> Ranking:
    """Rank all documents of a corpus in batches: its texts, or its features for a model trained on features."""
    if len(corpus) == 0:
        raise DataError("the corpus has no documents")
    parts = []
    progress.stage("ranking")
    done = 0
    for batch in _batches(model, corpus):
        parts.append(model.rank(batch, k))
        done += len(parts[-1])
        progress.step(done, len(corpus))
    return Ranking.stack(parts)


def check_out(out: str | Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Refuse, before any work, to train to a folder that holds a model, an interrupted run, or cannot be written."""
    if not str(out):
        raise ConfigError("the folder for the model has no name; give one")
    if resume and overwrite:
        raise ConfigError("resume goes on with what is there and overwrite starts anew; choose one")
    if not (resume and Path(out).exists()):
        check_target(out, overwrite=overwrite)
    partial = _partial(out)
    if not partial.exists():
        return
    if not (any(partial.rglob("run.json")) or not any(partial.iterdir())):
        raise ModelError(f"{partial} is in the way of the checkpoints and holds none; move it or choose another folder")
    if not (resume or overwrite):
        raise ModelError(f"{partial} holds an interrupted run; go on with --resume or start anew with --overwrite")


def _partial(out: str | Path) -> Path:
    """Where an interrupted run's checkpoints lie: beside the model, never inside."""
    folder = Path(out).absolute()
    return folder.with_name(f"{folder.name}.partial")


def n_features(model: Model) -> int | None:
    """Return the number of features that a model ranks by; None if it ranks texts."""
    width: int | None = model.manifest.details["features"]
    return width


def _finished(out: str | Path, method: str, config: Settings, corpus: Corpus, seed: int, progress: Progress) -> Model:
    """The model in `out`, if it is what this run would make."""
    model = load(out)
    old = model.manifest
    made_by = (old.method, old.config, old.seed, old.data)
    if made_by != (method, config.model_dump(mode="json"), seed, corpus.fingerprint()):
        raise ConfigError(f"{out} holds a model of other settings, data or seed; choose another folder or --overwrite")
    progress.say(f"{out} is finished already, with the same settings, data and seed: nothing to do")
    return model


def _propensity(model: Model) -> metrics.Propensity:
    """The model's own A and B, from its recipe."""
    return metrics.Propensity(**model.manifest.config.get("propensity", {}))


def _batches(model: Model, corpus: Corpus) -> Iterator[Documents]:
    width = n_features(model)
    if width is not None:
        if corpus.X is None:
            raise ModelError(
                "this model ranks features, and the corpus has only texts; give it the features of training"
            )
        X = corpus.X
        if X.shape[1] < width:  # files of sparse features need not mention the last ones
            X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    elif corpus.texts is None:
        raise ModelError("this model ranks texts, and the corpus has only features; give it the texts")
    for start in range(0, len(corpus), _BATCH):
        if width is not None:
            yield X[start : start + _BATCH]
        else:
            yield corpus.texts[start : start + _BATCH]  # type: ignore[index]
