"""The main functions of the library: read_corpus, train, load, evaluate, compare, ensemble, update, calibrate.

The command line, the server and the benchmarks call them. This module prints nothing. Methods and recipes are listed in
`catalogue.py`. Imports that only one function needs are inside that function, so that training loads nothing else.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xmtc.catalogue import (
    METHODS,
    describe_recipes,
    list_methods,
    list_recipes,
    load_frozen,
    open_method,
    read_recipe,
    read_settings,
    uses_dev,
)
from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError, ModelError, XmtcError, is_out_of_memory
from xmtc.core.labels import Concept
from xmtc.core.model import SAVED_IN, Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.propensity import Propensity
from xmtc.core.rank_corpus import fill_known, n_features, rank_corpus, rank_in_stages
from xmtc.core.ranking import Ranking
from xmtc.core.run_folder import WRITES, check_out, drop_unbegun, partial_folder
from xmtc.core.storage import FolderReader, check_addable, check_target
from xmtc.core.texts import IN_MEMORY
from xmtc.data import read_corpus

if TYPE_CHECKING:
    from xmtc.core import metrics
    from xmtc.core.calibration import CalibratedModel, CurveMethod, Threshold
    from xmtc.core.engine import Engine, Shared
    from xmtc.core.ensemble import AnyRule
    from xmtc.core.saved_ranking import SavedRanking
    from xmtc.core.updatable import Updatable
    from xmtc.presets import PresetRun as PresetRun

__all__ = [
    "METHODS",
    "TrainingRun",
    "calibrate",
    "check_add_labels",
    "check_out",
    "compare",
    "compile_kernels",
    "describe_recipes",
    "ensemble",
    "evaluate",
    "export",
    "find_threshold",
    "is_cheap",
    "list_methods",
    "list_recipes",
    "load",
    "load_ranking",
    "n_features",
    "prepare_preset",
    "prepare_run",
    "rank_corpus",
    "rank_in_stages",
    "read_corpus",
    "read_recipe",
    "read_settings",
    "save_ranking",
    "train",
    "update",
    "uses_dev",
]
_TRAINED = "trained"  # subfolder of a run on several machines: the model, until it is moved to `out`
_ENSEMBLE = "ensemble"  # not in METHODS, because it combines models of these methods


def train(
    corpus: Corpus,
    method: str | None = None,
    config: Mapping[str, Any] | Settings | None = None,
    *,
    recipe: str | Path | None = None,
    preset: str | None = None,
    time_limit: float | None = None,
    latency: float | None = None,
    language: str | None = None,
    dev: Corpus | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    engine: str | None = None,
    address: str | None = None,
    workers: int | None = None,
    progress: Progress = SILENT,
) -> Model:
    """Train a model, save it to `out` if given, and return it.

    - `corpus`: labelled documents, from `read_corpus` or `Corpus.from_lists`.
    - `method`: "linear" (the default), "knn", "match", "lightxml", "aplc", "mexml", "xbert" or "treader".
    - `config`: nested settings of the method; they override the recipe's.
    - `recipe`: a name such as "linear/fast", or the path of a TOML file; the recipe sets the method.
    - `preset`: "fast", "balanced" or "best" chooses methods and settings for you, within `time_limit` seconds.
    - `latency`: maximum seconds per document for the model of a preset, on one thread of this machine. Among several
      ensembles and cascades, the best one that is fast enough is chosen, or else the fastest.
    - `language`: language of the texts, such as "de" or "German". TF-IDF then counts stems, unless `config` chooses
      otherwise.
    - `dev`: documents for early stopping and model selection, for methods that use them.
    - `out`: the model folder to write; `overwrite` replaces an existing one.
    - `seed`: random seed; the same documents, settings and seed give the same bytes.
    - `resume`: continue an interrupted run, or return the finished model of the same settings, data and seed.
    - `engine`: "processes" or "ray" trains on the cores of this machine or on the Ray cluster at `address`. Linear
      models are trained in tasks, with the same bytes as a result; members of a preset are trained in parallel;
      networks, on Ray only, are trained in `workers` processes that share every batch, as torchrun does. Needs `out`, a
      folder that all nodes can access.
    - `progress`: receives stages and steps; silent by default.

    >>> import xmtc
    >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
    >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
    >>> corpus = xmtc.Corpus.from_lists(texts, tags)
    >>> model = xmtc.train(corpus, config={"tree": {"trees": 1}})
    >>> model.rank(["a quota for fish"], k=1).named()
    [[('fishery', ...)]]
    """
    if preset is not None or time_limit is not None or latency is not None:
        by_hand = {"method": method, "recipe": recipe, "config": config or None, "workers": workers}
        chosen = prepare_preset(
            preset,
            time_limit,
            latency,
            by_hand=by_hand,
            engine=engine,
            address=address,
            language=language,
            out=out,
            seed=seed,
            resume=resume,
            overwrite=overwrite,
        )
        return chosen.start(corpus, dev, progress)
    run = prepare_run(
        method,
        config,
        recipe=recipe,
        language=language,
        out=out,
        seed=seed,
        resume=resume,
        overwrite=overwrite,
        engine=engine,
        address=address,
        workers=workers,
    )
    return run.start(corpus, dev, progress)


def prepare_preset(
    preset: str | None,
    time_limit: float | None = None,
    latency: float | None = None,
    *,
    by_hand: Mapping[str, Any] | None = None,
    language: str | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    engine: str | None = None,
    address: str | None = None,
) -> PresetRun:
    """Check the arguments of `train` with a preset before any documents are read.

    by_hand: arguments by name that choose a method or its settings; raises if one is set, because the preset chooses
    these. language: as for `train`, for every member that counts words. engine: where members are trained in parallel.
    """
    from functools import partial

    from xmtc.core.languages import find_language
    from xmtc.presets import PresetRun, Trainers, check_preset

    if preset is None:
        what = "a time limit" if latency is None else "a latency"
        raise ConfigError(f"{what} needs a preset, such as best; a single method has no such limit")
    given = [name for name, value in (by_hand or {}).items() if value is not None]
    if given:
        raise ConfigError(f"preset {preset!r} chooses the method and its settings; leave out {' and '.join(given)}")
    check_preset(preset)
    for name, limit in (("time_limit", time_limit), ("latency", latency)):
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit < float("inf")
        ):
            raise ConfigError(f"{name} must be a positive number of seconds; got {limit!r}")
    # raises for an invalid language, seed or output folder
    seed = prepare_run(language=language, out=out, seed=seed, resume=resume, overwrite=overwrite).seed
    where = "local"
    if engine is not None or address is not None:
        from xmtc.engines import check_engine

        where = engine or "ray"
        check_engine(where, address)
        if where != "local" and out is None:
            raise ConfigError(f"a preset on engine {where!r} needs out, a folder that all its processes see; give one")
    trainers = Trainers(
        train=partial(_train_member, language),
        teach=_teach,
        teach_within=_teach_within,
        measure=_measure,
        export=_export_copy,
        calibrate=lambda model, corpus, progress: calibrate(model, corpus, progress=progress),
        load=load,
        open_engine=partial(_open_engine, where, address),
    )
    place = None if out is None else Path(out)
    spoken = None if language is None else find_language(language)
    return PresetRun(preset, time_limit, place, seed, resume, overwrite, trainers, language=spoken, latency=latency)


def _train_member(
    language: str | None, corpus: Corpus, method: str, config: Mapping[str, Any], **options: Any
) -> Model:
    """Train a member of a preset, in any process."""
    run = prepare_run(
        method, config, language=language, out=options["out"], seed=options["seed"], resume=options["resume"]
    )
    return run.start(corpus, options["dev"] if run.uses_dev else None, options["progress"])


def _open_engine(name: str, address: str | None) -> AbstractContextManager[Engine]:
    from xmtc.engines import open_engine

    return open_engine(name, address)


def prepare_run(
    method: str | None = None,
    config: Mapping[str, Any] | Settings | None = None,
    *,
    recipe: str | Path | None = None,
    language: str | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    engine: str | None = None,
    address: str | None = None,
    workers: int | None = None,
) -> TrainingRun:
    """Check the arguments of `train` before any documents are read; takes the same arguments."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed < 2**32:  # numpy's integers too
        raise ConfigError(f"seed must be a whole number from 0 to 4294967295; got {seed!r}")
    method, settings = read_settings(method, config, recipe, language)
    if out is not None and WRITES:
        check_out(out, resume=resume, overwrite=overwrite)
    if engine is not None or address is not None or workers is not None:
        engine = engine or "ray"
        _check_engine(method, settings, engine, address, workers, out)
    place = None if out is None else Path(out)
    return TrainingRun(method, settings, place, int(seed), resume, overwrite, engine, address, workers)


@dataclass(frozen=True)
class TrainingRun:
    """A training run whose settings and output folder have been checked; created by `prepare_run`."""

    method: str
    settings: Settings
    out: Path | None
    seed: int
    resume: bool
    overwrite: bool
    engine: str | None = None  # None: chosen by the size of the corpus
    address: str | None = None
    workers: int | None = None  # processes that train a network together

    @property
    def uses_dev(self) -> bool:
        """Whether training uses dev documents for selection or early stopping."""
        return uses_dev(self.method, self.settings)

    @property
    def uses_encoder(self) -> bool:
        """Whether training fine-tunes an encoder, which takes long enough to show a plan first."""
        return "encoder" in type(self.settings).model_fields

    def outline(self, corpus: Corpus) -> str:
        """Return the expected cost of this training in one line, estimated from sizes; loads no encoder."""
        sizes = f"{self.method}: {len(corpus):,} documents, {corpus.labels.n_labels:,} labels"
        from xmtc.core.outlined import Outlined

        return f"{sizes}; {self.settings.outline(corpus)}" if isinstance(self.settings, Outlined) else sizes

    def start(self, corpus: Corpus, dev: Corpus | None = None, progress: Progress = SILENT) -> Model:
        """Train, save the model if there is an output folder, and return it."""
        if not isinstance(corpus, Corpus):
            raise DataError(f"train takes a Corpus, such as read_corpus returns; got {type(corpus).__name__}")
        corpus, out = corpus.compact(), self.out
        if out is not None and self.resume and out.exists():
            return self._finished(out, corpus, dev, progress)
        settings = self.settings.model_dump()
        if settings.get("train", {}).get("names"):  # any method may have this setting
            from xmtc.core.label_names import add_names

            corpus = add_names(corpus, progress)
        if dev is not None and self.uses_dev:
            from xmtc.core.suspicions import check_dev

            check_dev(corpus, dev)
        partial = None if out is None else partial_folder(out)
        if partial is not None and not self.resume and WRITES:
            shutil.rmtree(partial, ignore_errors=True)
        begun = partial is not None and partial.exists()  # by a run that may still be running
        method = open_method(self.method)
        on = self.engine
        if on is None and corpus.texts is not None and len(corpus.texts.buffer) >= IN_MEMORY:
            from xmtc.core.engine import Distributed

            if isinstance(method, Distributed) and not method.fits_memory(corpus, self.settings):
                on = "local"
        try:
            if on is not None:
                model = self._train_on(on, corpus, dev, progress)
            else:
                model = method.train(corpus, self.settings, dev=dev, seed=self.seed, progress=progress, partial=partial)
        except XmtcError:
            if partial is not None and not begun:
                drop_unbegun(partial)  # so that the user can correct the command and run it again
            raise
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            smaller = "lower train.batch_size or encoder.max_length, or raise train.accumulate"
            advice = smaller if self.uses_encoder else "lower tfidf.max_features or tree.trees, or use fewer documents"
            raise ConfigError(f"training method {self.method} ran out of memory; {advice}") from error
        if out is not None and WRITES:
            progress.stage("saving")
            model.save(out, overwrite=self.overwrite)
            SAVED_IN[model] = load_again, out.absolute()
            shutil.rmtree(partial_folder(out), ignore_errors=True)
        return model

    def _train_on(self, name: str, corpus: Corpus, dev: Corpus | None, progress: Progress) -> Model:
        """Train on an engine, in the run's checkpoint folder, or in a folder of the cache."""
        from xmtc.core.cache import cache_folder
        from xmtc.core.engine import Distributed, GroupEngine
        from xmtc.engines import open_engine

        method = open_method(self.method)
        with ExitStack() as opened:
            if self.out is not None:
                folder = partial_folder(self.out)
                folder.mkdir(parents=True, exist_ok=True)
            else:
                cache_folder().mkdir(parents=True, exist_ok=True)
                folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="run-", dir=cache_folder())))
            engine = opened.enter_context(open_engine(name, self.address))
            if isinstance(method, Distributed):
                return method.train_on(engine, corpus, self.settings, folder=folder, seed=self.seed, progress=progress)
            assert isinstance(engine, GroupEngine)  # checked by `_check_engine`
            engine.check(folder)
            task = (self.method, self.settings, self.seed, folder, engine.share((corpus, dev)))
            engine.run_group(_train_in_group, task, self.workers, progress)
            return load(folder / _TRAINED)

    def _finished(self, out: Path, corpus: Corpus, dev: Corpus | None, progress: Progress) -> Model:
        """Return the model in `out` if it has the settings, data and seed of this run; raise otherwise."""
        model = load(out)
        old = model.manifest
        wanted = (self.method, self.settings.model_dump(mode="json"), self.seed, corpus.fingerprint())
        chosen_by = dev.fingerprint() if dev is not None and self.uses_dev else None
        if (old.method, old.config, old.seed, old.data) != wanted or old.details.dev != chosen_by:
            raise ConfigError(
                f"{out} contains a model of other settings, data or seed; choose another folder or --overwrite"
            )
        shutil.rmtree(partial_folder(out), ignore_errors=True)  # left over if a process was killed while removing it
        progress.say(f"{out} is finished already, with the same settings, data and seed: nothing to do")
        return model


def _train_in_group(
    task: tuple[str, Settings, int, Path, Shared[tuple[Corpus, Corpus | None]]], progress: Progress
) -> None:
    """Train a network as one of several processes; resume from checkpoints in the folder. Process 0 saves it."""
    name, settings, seed, folder, shared = task
    corpus, dev = shared.get()
    model = open_method(name).train(corpus, settings, dev=dev, seed=seed, progress=progress, partial=folder)
    if os.environ["RANK"] == "0":
        model.save(folder / _TRAINED, overwrite=True)


def _check_engine(
    name: str, settings: Settings, engine: str, address: str | None, workers: int | None, out: str | Path | None
) -> None:
    """Raise unless a method can be trained on an engine."""
    from xmtc.core.engine import Distributed
    from xmtc.core.outlined import Timed
    from xmtc.engines import check_engine

    check_engine(engine, address)
    in_tasks, together = isinstance(open_method(name), Distributed), isinstance(settings, Timed)
    if not (in_tasks or together):
        raise ConfigError(
            f"method {name!r} cannot be trained on engine {engine!r}; linear can, and networks can on Ray. Leave out "
            "the engine"
        )
    if together and engine != "ray":
        raise ConfigError(
            f"method {name!r} trains a network, and engine {engine!r} only runs tasks; use engine 'ray', or start the "
            "command by torchrun or accelerate launch"
        )
    if workers is not None and in_tasks:
        raise ConfigError(f"workers is for networks; method {name!r} uses all cores of the engine: leave it out")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ConfigError(f"workers must be a whole number of at least 1; got {workers!r}")
    if engine == "ray" and out is None:
        raise ConfigError("training on Ray needs out, a folder that all nodes see; give one")


def load(folder: str | Path) -> Model:
    """Load a model from its folder, or from the hub as "hf:owner/name" or "hf:owner/name@revision".

    The size and sha256 of every file are checked. A model that is incomplete, altered or of a newer format raises
    `XmtcError` with a one-line message. No code from the folder is executed.

    >>> import xmtc
    >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
    >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
    >>> corpus = xmtc.Corpus.from_lists(texts, tags)
    >>> model = xmtc.train(corpus, out="tagger", overwrite=True)
    >>> xmtc.load("tagger").labels.names[:2]
    ('fishery', 'sugar')
    """
    if str(folder).startswith("hf:") and not Path(folder).exists():
        from xmtc.sharing import fetch_model

        folder = fetch_model(str(folder))
    reader = FolderReader(folder)
    model: Model
    if reader.method != _ENSEMBLE and reader.method not in METHODS and reader.method not in list_methods():
        raise ModelError(
            f"{folder} was made by method {reader.method[:99]!r}, which is not installed; install its package"
        )
    try:
        if reader.method == _ENSEMBLE:
            from xmtc.methods.ensemble import load as load_ensemble

            model = load_ensemble(reader, load)
        elif reader.exported:
            model = load_frozen(reader)
        else:
            model = open_method(reader.method).load(reader)
    except (XmtcError, ImportError):
        raise
    except Exception as error:  # the folder may be untrusted: report anything that no check caught
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:150]
        raise ModelError(
            f"{folder} does not contain a complete model ({reason}); train it again, or copy it from a source you trust"
        ) from error
    if "calibration.json" in reader.files:
        from xmtc.core.calibration import with_calibration

        model = with_calibration(model, reader)
    SAVED_IN[model] = load_again, Path(folder).absolute()
    return model


def load_again(folder: str, manifest: dict[str, Any]) -> Model:
    """Load a pickled model from its folder; raise if the folder now contains a different model."""
    model = load(folder)
    if model.manifest.to_json() != manifest:
        raise ModelError(f"{folder} no longer contains the model that was pickled; load the new one with xmtc.load")
    return model


def evaluate(
    model: Model,
    corpus: Corpus,
    truth: metrics.TruthMode = "all",
    propensity: Propensity | None = None,
    *,
    ranking: Ranking | None = None,
    intervals: bool = True,
    progress: Progress = SILENT,
) -> metrics.Report:
    """Rank a corpus, compare the rankings with its labels, and return a report; labels are matched by id.

    - `truth`: "all" keeps true labels that training never saw, which lowers recall. "known" drops them, and documents
      left without labels, for comparison with published tables. It also drops concepts without training documents from
      the model's rankings; the labels below them move up.
    - `propensity`: A and B of PSP@k; by default the model's own (0.55 and 1.5 unless its recipe sets others).
    - `ranking`: what `rank_corpus` returned for this corpus, with at least five labels per document, if you have it.
    - `intervals`: compute bootstrap 95 % intervals; False is faster.

    A report maps names such as "P@1", "nDCG@5", "PSP@5" or "macro-F@5/few" to percentages.

    >>> import xmtc
    >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
    >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
    >>> corpus = xmtc.Corpus.from_lists(texts, tags)
    >>> test = xmtc.Corpus.from_lists(["fish harvest", "more sugar"], [["fishery"], ["sugar"]])
    >>> report = xmtc.evaluate(xmtc.train(corpus), test)
    >>> report["P@1"]
    100.0
    """
    from xmtc.core import metrics
    from xmtc.core.suspicions import check_evaluation

    _check_models(model)
    if not isinstance(corpus, Corpus):
        raise DataError(f"evaluate takes a Corpus, as read_corpus gives it; got {type(corpus).__name__}")
    if propensity is not None and not isinstance(propensity, Propensity):
        raise ConfigError(f"propensity must be a Propensity, such as Propensity(A=0.55, B=1.5); got {propensity!r}")
    if ranking is None:
        ranking = rank_corpus(model, corpus, 5, progress)
    if truth == "known":
        ranking = fill_known(model, corpus, ranking, 5, progress)
    check_evaluation(model, corpus)
    aligned = corpus.align(model.labels)
    progress.stage("scoring")
    return metrics.evaluate(
        ranking,
        aligned.Y,
        aligned.labels,
        max(1, model.manifest.n_documents),
        mode=truth,
        propensity=propensity or _propensity(model),
        intervals=intervals,
    )


def compare(
    models: Mapping[str, Model | SavedRanking],
    corpus: Corpus,
    truth: metrics.TruthMode = "all",
    propensity: Propensity | None = None,
    *,
    all_pairs: bool = False,
    rankings: Mapping[str, Ranking] | None = None,
    progress: Progress = SILENT,
) -> metrics.Comparison:
    """Compare models with the first one on the same corpus, with a paired bootstrap over documents.

    Frequency bins, propensities and, with truth "known", the counted labels come from the first model's training data.
    They apply to all models, so models trained on other documents are scored on the same labels.

    - `models`: name → model. A ranking from `load_ranking` may replace a model; if truth "known" drops concepts from
      it, its lists become shorter.
    - `truth`, `propensity`: as for `evaluate`.
    - `all_pairs`: also compare every model with each one before it.
    - `rankings`: name → what `rank_corpus` returned for this corpus, with at least five labels per document, if you
      have it.

    >>> import xmtc
    >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
    >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
    >>> corpus = xmtc.Corpus.from_lists(texts, tags)
    >>> models = {"linear": xmtc.train(corpus), "knn": xmtc.train(corpus, "knn")}
    >>> test = xmtc.Corpus.from_lists(["cod and fish", "sugar beet"], [["fishery"], ["sugar"]])
    >>> xmtc.compare(models, test).values["knn"]["P@1"]
    100.0
    """
    from xmtc.core import metrics
    from xmtc.core.saved_ranking import SavedRanking
    from xmtc.core.suspicions import check_evaluation

    if not isinstance(models, Mapping):
        raise ConfigError(f"compare takes a mapping from names to models; got {type(models).__name__}")
    if not isinstance(corpus, Corpus):
        raise DataError(f"compare takes a Corpus, as read_corpus gives it; got {type(corpus).__name__}")
    _check_models(*models.values())
    if not models:
        raise ConfigError("a comparison needs two or more models; got 0")
    first = next(iter(models.values()))
    if isinstance(first, SavedRanking):
        n_documents, used = first.n_documents, propensity or first.propensity
    else:
        n_documents, used = first.manifest.n_documents, propensity or _propensity(first)
    n_documents = max(1, n_documents)  # a match model may have no training documents
    counts = dict(zip(first.labels.ids, first.labels.counts.tolist(), strict=True))
    found = {}
    for name, model in models.items():
        aligned = corpus.align(model.labels)
        if isinstance(model, SavedRanking):
            ranking = model.ranking_of(corpus, name)
        else:
            check_evaluation(model, corpus, name)
            ranking = rank_corpus(model, corpus, 5, progress) if rankings is None else rankings[name]
            if truth == "known":
                ranking = fill_known(model, corpus, ranking, 5, progress)
        found[name] = metrics.collect(
            ranking,
            aligned.Y,
            aligned.labels.with_counts([counts.get(label, 0) for label in aligned.labels.ids]),
            n_documents,
            mode=truth,
            propensity=used,
        )
    progress.stage("scoring")
    compared = metrics.compare(found, all_pairs=all_pairs)
    return replace(compared, propensity={"A": used.A, "B": used.B, "N": n_documents})


def _check_models(*models: object) -> None:
    """Raise ModelError if one is a path: a model must be loaded first."""
    for model in models:
        if isinstance(model, (str, Path)):
            raise ModelError(f"give a model, not its path; load it with xmtc.load({str(model)!r})")


def save_ranking(
    file: str | Path, model: Model, corpus: Corpus, ranking: Ranking, *, name: str = "", data: str = ""
) -> None:
    """Save what `rank_corpus` returned for a model and a corpus, to compare it later without the model.

    - `file`: the file to write.
    - `name`, `data`: names of the model and the corpus; errors show them if the ranking does not fit.

    >>> import xmtc
    >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
    >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
    >>> corpus = xmtc.Corpus.from_lists(texts, tags)
    >>> from xmtc.api import rank_corpus
    >>> model = xmtc.train(corpus)
    >>> xmtc.save_ranking("linear.ranking", model, corpus, rank_corpus(model, corpus, 5), name="linear")
    >>> len(xmtc.load_ranking("linear.ranking").ranking)
    40
    """
    from xmtc.core.saved_ranking import SavedRanking, digest_documents

    if len(ranking) != len(corpus):
        raise DataError(f"the ranking has {len(ranking):,} documents, and the corpus has {len(corpus):,}")
    SavedRanking(
        name,
        data,
        ranking,
        corpus.ids,
        digest_documents(corpus),
        model.labels,
        model.manifest.n_documents,
        _propensity(model),
    ).save(file)


def load_ranking(file: str | Path) -> SavedRanking:
    """Load a ranking that `save_ranking` stored, for `compare`; an incomplete or foreign file raises `XmtcError`."""
    from xmtc.core.saved_ranking import SavedRanking

    return SavedRanking.load(file)


def ensemble(
    models: Sequence[Model],
    rule: AnyRule = "mean",
    weights: Sequence[float] | None = None,
    *,
    dev: Corpus | None = None,
    tail: float = 0.0,
    share: float | None = None,
    budget: float | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> Model:
    """Combine models into one that ranks with all of them, save it to `out` if given, and return it.

    - `rule`: "mean", "rank", "sigmoid", "softmax" and "round-robin" combine scores or ranks. "learned" trains boosted
      trees on the labelled documents `dev` and returns a calibrated model. "cascade" ranks every document with the
      first of two models, and only the documents that gain most with the second, expensive one.
    - `weights`: one number per model, for rules that do not use `dev`.
    - `dev`: documents that no model was trained on, or the training corpus. With the training corpus, cheap members
      (linear, knn, match) are retrained in folds; for other members, the part that they held out is used.
    - `tail`, from 0 to 1: extra weight of rare labels when the trees are trained. 0.3 raises PSP@k and hardly lowers
      P@k; 0.6 raises PSP@k further and lowers P@1 by up to half a point. Probabilities stay calibrated.
    - `share`: share of documents that the second model of a cascade ranks, 0.2 by default. `budget`: mean seconds per
      document instead; the share is computed from latencies measured now.

    >>> import xmtc
    >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
    >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
    >>> corpus = xmtc.Corpus.from_lists(texts, tags)
    >>> both = xmtc.ensemble([xmtc.train(corpus), xmtc.train(corpus, "knn")], "rank")
    >>> both.rank(["beet sugar"], k=1).named()[0][0][0]
    'sugar'
    """
    from xmtc.core.ensemble import CASCADE, LEARNED
    from xmtc.core.suspicions import check_members
    from xmtc.methods.ensemble import join

    if isinstance(models, str) or not isinstance(models, Sequence):
        raise ConfigError(f"ensemble takes a list of models; got {type(models).__name__}")
    _check_models(*models)
    if out is not None:
        check_target(out, overwrite=overwrite)
    if rule != CASCADE and (share is not None or budget is not None):
        raise ConfigError(f"share and budget are for rule 'cascade'; leave them out of rule {rule!r}")
    if rule not in (LEARNED, CASCADE):
        if dev is not None or tail:
            raise ConfigError(f"dev and tail are for rule 'learned'; rule {rule!r} learns nothing: leave them out")
        model: Model = join(models, rule, weights)
    else:
        if weights is not None:
            raise ConfigError(f"rule {rule!r} finds the weights itself; leave them out")
        if not isinstance(dev, Corpus):
            raise ConfigError(f"rule {rule!r} learns from labelled documents; give them as dev (--dev DATA)")
        if rule == LEARNED:
            model = _teach(models, dev, tail, seed, progress)
        else:
            if tail:
                raise ConfigError("tail is for rule 'learned'; leave it out of rule 'cascade'")
            model = _cascade(models, dev, share, budget, seed, progress)
    check_members([member.labels for member in models])
    if out is not None:
        model.save(out, overwrite=overwrite)
    return model


def update(
    model: Model,
    corpus: Corpus | None = None,
    *,
    labels: Iterable[Concept] | None = None,
    base: Corpus | None = None,
    retire: Iterable[str] = (),
    budget: float = 0.05,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> Model:
    """Add documents and labels to a linear, knn or match model, or retire labels, without full retraining.

    - `corpus`: all documents, old and new; or only the new ones, with the training documents in `base`. Without `base`,
      a linear model learns only new labels from the new documents, not known ones; a knn model contains its training
      documents and needs no `base`.
    - `labels`: concepts of a vocabulary that need no documents. Models of method match, knn models with
      `neighbours.labels`, and ensembles with such members suggest them by name. The calibration is kept.
    - `retire`: ids or names of labels that the model must no longer rank.
    - `budget`: maximum share of a full training's work to spend on a linear model, new labels first; 1 refits
      everything that changed.

    The given model does not change. A model updated with new documents loses its calibration.

    >>> import xmtc
    >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
    >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
    >>> corpus = xmtc.Corpus.from_lists(texts, tags)
    >>> model = xmtc.train(corpus, "knn")
    >>> new = xmtc.Corpus.from_lists(["wine and grapes", "table wine"], [["wine"], ["wine"]], ids=["n1", "n2"])
    >>> newer = xmtc.update(model, new, retire=["sugar"])
    >>> sorted(newer.labels.names[: newer.labels.n_labels])
    ['fishery', 'wine']
    """
    if labels is not None:
        labels = _check_labels(labels)
    if labels is not None and corpus is None and base is None and not retire:
        if out is not None:
            check_target(out, overwrite=overwrite)
        return _finish_update(_add_labels(model, labels, progress), out, overwrite, progress)
    for given in (corpus, base):
        if given is not None and not isinstance(given, Corpus):
            raise DataError(f"update takes a Corpus, such as read_corpus returns; got {type(given).__name__}")
    if isinstance(retire, str):
        raise ConfigError(f"retire takes a list of labels; got the string {retire!r}: put it in a list")
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 <= budget <= 1:
        raise ConfigError(f"budget must be a share from 0 to 1; got {budget!r}")
    _check_models(model)
    method = check_update(model)
    if out is not None:
        check_target(out, overwrite=overwrite)
    from xmtc.core.calibration import uncalibrated

    plain = uncalibrated(model)
    updated: Model = method.update(plain, corpus, base=base, retire=retire, budget=budget, progress=progress)
    if model is not plain:
        progress.say("the updated model is not calibrated, because its scores differ; calibrate it again")
    return _finish_update(
        updated if labels is None else _add_labels(updated, labels, progress), out, overwrite, progress
    )


def _finish_update(updated: Model, out: str | Path | None, overwrite: bool, progress: Progress) -> Model:
    if out is not None:
        progress.stage("saving")
        updated.save(out, overwrite=overwrite)
    return updated


def _check_labels(labels: Iterable[Concept]) -> list[Concept]:
    """Return the concepts without duplicates; raise if they are not Concepts."""
    concepts = list(labels)
    strange = next((concept for concept in concepts if not isinstance(concept, Concept)), None)
    if strange is not None:
        raise DataError(f"labels takes Concepts, such as xmtc.Concept('4711', 'sugar'); got {strange!r}")
    if not concepts:
        raise DataError("the vocabulary is empty: there is no label to add")
    return list({concept.id: concept for concept in concepts}.values())


def check_add_labels(model: Model) -> None:
    """Raise if a model cannot rank labels without documents."""
    from xmtc.core.abilities import reads_labels

    if not reads_labels(model):
        raise ModelError(
            f"a {model.manifest.method} model gives only labels that it was trained on; new labels without documents "
            "need a match model, a knn model with neighbours.labels, or an ensemble with such a member"
        )


def _add_labels(model: Model, concepts: Sequence[Concept], progress: Progress) -> Model:
    """Return a copy of the model that also ranks these concepts; in an ensemble, add them to all members that can."""
    from xmtc.core.abilities import Composed, TakesLabels, reads_labels
    from xmtc.core.calibration import CalibratedModel, calibration_of, uncalibrated

    check_add_labels(model)
    plain, calibration = uncalibrated(model), calibration_of(model)
    if plain.manifest.method == _ENSEMBLE and isinstance(plain, Composed):
        from xmtc.methods.ensemble import with_members

        members = [_add_labels(one, concepts, progress) if reads_labels(one) else one for one in plain.members]
        updated = with_members(plain, members)
    else:
        method = open_method(plain.manifest.method)
        assert isinstance(method, TakesLabels)  # checked by `reads_labels`
        updated = method.add_labels(plain, concepts, progress=progress)
    return updated if calibration is None else CalibratedModel(updated, calibration)


def export(
    model: Model,
    to: str = "onnx",
    *,
    int8: bool = False,
    out: str | Path,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> Model:
    """Export a neural model so that it ranks with ONNX Runtime, without torch; return the exported model.

    The new folder can be loaded, served, calibrated and combined like any other model. Needs the extra `export`.

    - `to`: "onnx".
    - `int8`: store weights in 8 bits: a quarter of the size, about twice as fast. Scores change slightly, so the
      calibration is dropped.
    - `out`: the folder to write; `overwrite` replaces an existing one.
    """
    from xmtc.core.calibration import add_calibration, calibration_of, uncalibrated
    from xmtc.core.exportable import Exportable
    from xmtc.core.storage import write_folder

    _check_models(model)
    if to != "onnx":
        raise ConfigError(f"a model can only be exported to 'onnx'; got {to!r}")
    plain = uncalibrated(model)
    name = plain.manifest.method
    if name == _ENSEMBLE:
        raise ModelError("an ensemble cannot be exported; export its neural members, then combine them again")
    if plain.manifest.details.format is not None:
        raise ModelError("this model is exported already; export the model that it was made from")
    method = open_method(name)
    if not isinstance(method, Exportable):
        raise ModelError(f"only neural models can be exported; this is a {name!r} model, which needs no torch")
    with write_folder(out, overwrite=overwrite) as writer:
        progress.stage("exporting")
        method.export(plain, writer, int8=int8)
    calibration = calibration_of(model)
    if calibration is not None and not int8:
        add_calibration(out, calibration)
    elif calibration is not None:
        progress.say("the exported model is not calibrated, because its scores differ; calibrate it again")
    return load(out)


def check_update(model: Model) -> Updatable[Any]:
    """Return the method of a model; raise if the model cannot be updated."""
    from xmtc.core.updatable import Updatable

    name = model.manifest.method
    if name == _ENSEMBLE:
        raise ModelError(
            "an ensemble cannot be updated; update its linear, knn and match members, then combine them again"
        )
    method = open_method(name)
    if not isinstance(method, Updatable):
        raise ModelError(f"only linear, knn and match models can be updated; this is a {name!r} model: train a new one")
    return method


def evaluate_stages(
    model: Model, corpus: Corpus, truth: metrics.TruthMode = "all", progress: Progress = SILENT
) -> dict[str, Any]:
    """Evaluate the stages before the final ranking; return an empty result for models that rank in one stage."""
    from xmtc.core.abilities import Staged
    from xmtc.core.calibration import uncalibrated

    plain = uncalibrated(model)
    return plain.rank_in_stages(corpus, 1, truth, progress)[1] if isinstance(plain, Staged) else {}


def calibrate(
    model: Model,
    corpus: Corpus,
    method: CurveMethod = "isotonic",
    *,
    out: str | Path | None = None,
    progress: Progress = SILENT,
) -> CalibratedModel:
    """Learn from labelled documents how often a score is correct; return the model with probabilities.

    - `corpus`: documents that the model was not trained on. If you give the training corpus, the part that training
      held out is used. If training held out nothing, a copy of the model is trained on one part and calibrated on the
      rest.
    - `method`: "isotonic", or "platt" for few documents.
    - `out`: the model's own folder, to add the calibration to it, or a new folder.

    >>> import xmtc
    >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
    >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
    >>> corpus = xmtc.Corpus.from_lists(texts, tags)
    >>> model = xmtc.calibrate(xmtc.train(corpus), corpus, "platt")
    >>> model.rank(["fish"], k=1).probabilities.shape
    (1, 1)
    """
    if not isinstance(corpus, Corpus):
        raise DataError(f"calibrate takes a Corpus, such as read_corpus returns; got {type(corpus).__name__}")
    from xmtc.core.calibration import (
        DEPTH,
        CalibratedModel,
        add_calibration,
        check_method,
        fit_calibration,
        uncalibrated,
    )
    from xmtc.core.held_out import find_unseen

    _check_models(model)
    check_method(method)
    model = uncalibrated(model)
    if model.manifest.method == _ENSEMBLE and model.manifest.details.dev == corpus.fingerprint():
        raise DataError("the ensemble was trained and calibrated on these documents; give other documents")
    if out is not None and not Path(out).exists():
        check_target(out)
    elif out is not None:
        if not FolderReader(out).holds(model.manifest):
            raise ModelError(f"{out} contains another model, not the one to calibrate; choose another folder")
        check_addable(out)
    ranker, unseen, source = find_unseen(model, corpus, _train_again, progress)
    ranking = rank_corpus(ranker, unseen, DEPTH, progress)
    aligned = unseen.align(ranker.labels)
    calibration = fit_calibration(ranking, aligned.Y, aligned.labels, method, source)
    calibrated = CalibratedModel(model, calibration)
    if out is not None and Path(out).exists():
        add_calibration(out, calibration)
    elif out is not None:
        calibrated.save(out)
    return calibrated


def compile_kernels() -> bool:
    """Compile the kernels of linear models before the first training; return whether it succeeded."""
    from xmtc.methods import linear

    return linear.compile_kernels()


def find_threshold(model: Model, target: str, k: int | None = None) -> Threshold:
    """Return the probability threshold that reaches a target on the calibration documents.

    - `target`: "precision=0.9" (of all labels given), "recall=0.8" (of all true labels) or "f1" (the highest F1).
    - `k`: labels per document; by default as many as the calibration used.

    Raises `XmtcError` if the model is not calibrated or the target cannot be reached.
    """
    from xmtc.core import calibration

    return calibration.find_threshold(model, target, calibration.DEPTH if k is None else k)


def _teach(
    members: Sequence[Model] | Mapping[str, Model],
    dev: Corpus,
    tail: float,
    seed: int,
    progress: Progress,
    **about: Any,
) -> CalibratedModel:
    """Train a learned ensemble; names in `members` appear on its leaderboard. about: the preset, for the details."""
    from xmtc.core.calibration import uncalibrated
    from xmtc.core.lessons import find_lessons
    from xmtc.methods.ensemble import check_learn, learn

    names = list(members) if isinstance(members, Mapping) else None
    models = [uncalibrated(model) for model in (members.values() if isinstance(members, Mapping) else members)]
    config = check_learn(models, tail)
    lessons = find_lessons(models, dev, _train_again, is_cheap, config.depth, config.documents, seed, progress)
    return learn(models, config, dev, lessons, names=names, about=about, seed=seed, progress=progress)


def _teach_within(
    members: Mapping[str, Model],
    copies: Mapping[str, Model],
    dev: Corpus,
    tail: float,
    seed: int,
    limit: float,
    progress: Progress,
    **about: Any,
) -> Model:
    """Train the best ensemble or cascade of members and faster copies that ranks one document within a time limit."""
    from xmtc.core.calibration import uncalibrated
    from xmtc.core.lessons import find_lessons
    from xmtc.methods.ensemble import check_learn, learn_within

    plain, light = ({name: uncalibrated(model) for name, model in given.items()} for given in (members, copies))
    models = [*plain.values(), *light.values()]
    config = check_learn(models, tail)
    lessons = find_lessons(models, dev, _train_again, is_cheap, config.depth, config.documents, seed, progress)
    return learn_within(plain, light, config, dev, lessons, limit, about=about, seed=seed, progress=progress)


def _measure(model: Model, name: str, corpus: Corpus, limit: float) -> Model:
    """Return the model with its measured latency in its details."""
    from xmtc.methods.ensemble import measure_alone

    return measure_alone(model, name, corpus, limit)


def _export_copy(model: Model, out: Path) -> Model:
    """Export a copy of a model in int8 that runs on one thread."""
    from xmtc.core.threads import one_thread

    with one_thread():
        return export(model, int8=True, out=out)


def _cascade(
    members: Sequence[Model],
    dev: Corpus,
    share: float | None,
    budget: float | None,
    seed: int,
    progress: Progress,
) -> Model:
    """Train a cascade of two models."""
    from xmtc.core.calibration import uncalibrated
    from xmtc.core.lessons import find_lessons
    from xmtc.methods.ensemble import DEPTH, check_cascade, join_cascade, share_within

    if share is not None and budget is not None:
        raise ConfigError("share and budget both set how often the expensive model is used; give one of them")
    if budget is not None and not 0 < budget < float("inf"):
        raise ConfigError(f"budget must be a positive number of seconds per document; got {budget!r}")
    models = [uncalibrated(model) for model in members]
    config = check_cascade(models, share)
    if budget is not None:
        config = check_cascade(models, share_within(models, dev, budget, progress))
    lessons = find_lessons(models, dev, _train_again, is_cheap, DEPTH, config.documents, seed, progress)
    return join_cascade(models, config, dev, lessons, seed=seed, progress=progress)


def _train_again(model: Model, corpus: Corpus, progress: Progress) -> Model:
    """Train a copy of a model on another corpus with the same method, settings and seed."""
    from xmtc.core.abilities import Composed
    from xmtc.core.calibration import uncalibrated
    from xmtc.core.ensemble import CASCADE, LEARNED

    manifest = model.manifest
    if manifest.method == _ENSEMBLE and isinstance(model, Composed):
        if manifest.config["rule"] in (LEARNED, CASCADE):
            raise DataError("a learned ensemble cannot be trained again; give documents that no member was trained on")
        copies = [_train_again(uncalibrated(member), corpus, progress) for member in model.members]
        return ensemble(copies, manifest.config["rule"], manifest.config["weights"])
    return train(corpus, manifest.method, manifest.config, seed=manifest.seed, progress=progress)


def is_cheap(model: Model) -> bool:
    """Return whether training copies of a model on parts of a corpus is cheap enough to do without asking the user."""
    from xmtc.core.abilities import Composed
    from xmtc.core.calibration import uncalibrated
    from xmtc.core.ensemble import CASCADE, LEARNED

    model = uncalibrated(model)
    manifest = model.manifest
    if manifest.method == _ENSEMBLE and isinstance(model, Composed):
        return manifest.config["rule"] not in (LEARNED, CASCADE) and all(map(is_cheap, model.members))
    return manifest.details.format is None and open_method(manifest.method).cheap


def _propensity(model: Model) -> Propensity:
    """Return the model's own A and B, from its recipe."""
    return Propensity(**model.manifest.config.get("propensity", {}))
