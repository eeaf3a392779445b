"""The functions that everything above uses: read_corpus, train, load, evaluate, compare, ensemble, update, calibrate.

Command line, server and benchmarks train and load through these. Knows no terminal; which methods and recipes exist is
the catalogue's business. What only one function needs is imported there, so that training loads nothing else.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
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
from xmtc.core.run_folder import check_out, drop_unbegun, partial_folder
from xmtc.core.storage import FolderReader, check_addable, check_target
from xmtc.core.texts import IN_MEMORY
from xmtc.data import read_corpus

if TYPE_CHECKING:
    from xmtc.core import metrics
    from xmtc.core.calibration import CalibratedModel, CurveMethod, Threshold
    from xmtc.core.engine import Distributed
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
_ENSEMBLE = "ensemble"  # joins models of the catalogue's methods, and so is none of them


def train(
    corpus: Corpus,
    method: str | None = None,
    config: Mapping[str, Any] | Settings | None = None,
    *,
    recipe: str | Path | None = None,
    preset: str | None = None,
    time_limit: float | None = None,
    language: str | None = None,
    dev: Corpus | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    engine: str | None = None,
    address: str | None = None,
    progress: Progress = SILENT,
) -> Model:
    """Train a model, save it to `out` if given, and return it.

    method: one of METHODS ("linear" if neither it nor a recipe is given). config: nested settings of the method, over
    the recipe's. recipe: a name such as "linear/one-tree", or the path of a TOML file; it names its method. preset:
    "fast", "balanced" or "best", which choose methods and settings themselves, within time_limit seconds. language: of
    the texts, such as "de" or "German"; TF-IDF then counts stems of words, unless `config` has another analyzer. dev:
    documents to stop early or choose by, for methods that do. resume: continue an interrupted run, or return the
    finished model of the same settings, data and seed. engine: "processes" or "ray" trains in tasks, on this machine or
    on the Ray cluster at `address`, for methods that can (linear); it needs `out`, a folder that all nodes see. The
    model is the same, byte for byte.
    """
    if preset is not None or time_limit is not None:
        by_hand = {"method": method, "recipe": recipe, "config": config or None, "engine": engine, "address": address}
        chosen = prepare_preset(
            preset,
            time_limit,
            by_hand=by_hand,
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
    )
    return run.start(corpus, dev, progress)


def prepare_preset(
    preset: str | None,
    time_limit: float | None = None,
    *,
    by_hand: Mapping[str, Any] | None = None,
    language: str | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    overwrite: bool = False,
) -> PresetRun:
    """Check everything that `train` with a preset can refuse before it sees documents.

    by_hand: what else was given to choose a method or its settings, by name; a preset chooses these itself. language:
    as for `train`, for every member that counts words.
    """
    from xmtc.core.languages import find_language
    from xmtc.presets import PresetRun, Trainers, check_preset

    if preset is None:
        raise ConfigError("a time limit needs a preset, such as best; a method takes the time that it takes")
    given = [name for name, value in (by_hand or {}).items() if value is not None]
    if given:
        raise ConfigError(f"preset {preset!r} chooses the method and its settings; leave out {' and '.join(given)}")
    check_preset(preset)
    if time_limit is not None and (
        isinstance(time_limit, bool) or not isinstance(time_limit, (int, float)) or not 0 < time_limit < float("inf")
    ):
        raise ConfigError(f"time_limit must be a positive number of seconds; got {time_limit!r}")
    # refuses a wrong language, seed or output folder
    prepare_run(language=language, out=out, seed=seed, resume=resume, overwrite=overwrite)

    def train_member(corpus: Corpus, method: str, config: Mapping[str, Any], **options: Any) -> Model:
        run = prepare_run(
            method, config, language=language, out=options["out"], seed=options["seed"], resume=options["resume"]
        )
        return run.start(corpus, options["dev"] if run.uses_dev else None, options["progress"])

    trainers = Trainers(
        train_member, _teach, lambda model, corpus, progress: calibrate(model, corpus, progress=progress), load
    )
    place = None if out is None else Path(out)
    spoken = None if language is None else find_language(language)
    return PresetRun(preset, time_limit, place, seed, resume, overwrite, trainers, language=spoken)


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
) -> TrainingRun:
    """Check everything that `train` can refuse before it sees documents; the arguments are those of `train`."""
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ConfigError(f"seed must be a whole number from 0 to 4294967295; got {seed!r}")
    method, settings = read_settings(method, config, recipe, language)
    if out is not None:
        check_out(out, resume=resume, overwrite=overwrite)
    if engine is not None or address is not None:
        _check_distributed(method, engine or "ray", address, out)
        engine = engine or "ray"
    return TrainingRun(method, settings, None if out is None else Path(out), seed, resume, overwrite, engine, address)


@dataclass(frozen=True)
class TrainingRun:
    """A training whose settings and output folder were checked, once; `prepare_run` makes one."""

    method: str
    settings: Settings
    out: Path | None
    seed: int
    resume: bool
    overwrite: bool
    engine: str | None = None  # None: as the corpus's size asks for
    address: str | None = None

    @property
    def uses_dev(self) -> bool:
        """Whether training chooses by dev documents."""
        return uses_dev(self.method, self.settings)

    @property
    def uses_encoder(self) -> bool:
        """Whether training fine-tunes an encoder, which takes long enough for a plan."""
        return "encoder" in type(self.settings).model_fields

    def outline(self, corpus: Corpus) -> str:
        """Return in one line what this training will take, from sizes alone: no encoder is loaded."""
        sizes = f"{self.method}: {len(corpus):,} documents, {corpus.labels.n_labels:,} labels"
        from xmtc.core.outlined import Outlined

        return f"{sizes}; {self.settings.outline(corpus)}" if isinstance(self.settings, Outlined) else sizes

    def start(self, corpus: Corpus, dev: Corpus | None = None, progress: Progress = SILENT) -> Model:
        """Train, save the model if there is an output folder, and return it."""
        if not isinstance(corpus, Corpus):
            raise DataError(f"train takes a Corpus, as read_corpus gives it; got {type(corpus).__name__}")
        corpus, out = corpus.compact(), self.out
        if out is not None and self.resume and out.exists():
            return self._finished(out, corpus, dev, progress)
        settings = self.settings.model_dump()
        if settings.get("train", {}).get("names"):  # of every method that has the setting
            from xmtc.core.label_names import add_names

            corpus = add_names(corpus, progress)
        if dev is not None and self.uses_dev:
            from xmtc.core.suspicions import check_dev

            check_dev(corpus, dev)
        partial = None if out is None else partial_folder(out)
        if partial is not None and not self.resume:
            shutil.rmtree(partial, ignore_errors=True)
        begun = partial is not None and partial.exists()  # by a run that may still be going on
        method = open_method(self.method)
        on = self.engine
        if on is None and corpus.texts is not None and len(corpus.texts.buffer) >= IN_MEMORY:
            from xmtc.core.engine import Distributed

            if isinstance(method, Distributed) and not method.fits_memory(corpus, self.settings):
                on = "local"
        try:
            if on is not None:
                model = self._train_on(on, corpus, progress)
            else:
                model = method.train(corpus, self.settings, dev=dev, seed=self.seed, progress=progress, partial=partial)
        except XmtcError:
            if partial is not None and not begun:
                drop_unbegun(partial)  # so that the command can be given again, corrected
            raise
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            smaller = "lower train.batch_size or encoder.max_length, or raise train.accumulate"
            advice = smaller if self.uses_encoder else "lower tfidf.max_features or tree.trees, or use fewer documents"
            raise ConfigError(f"training method {self.method} ran out of memory; {advice}") from error
        if out is not None:
            progress.stage("saving")
            model.save(out, overwrite=self.overwrite)
            SAVED_IN[model] = load_again, out.absolute()
            shutil.rmtree(partial_folder(out), ignore_errors=True)
        return model

    def _train_on(self, name: str, corpus: Corpus, progress: Progress) -> Model:
        """Train in tasks, in the folder of the run's checkpoints, or in one of the cache's folder."""
        from xmtc.core.cache import cache_folder
        from xmtc.engines import open_engine

        method = _check_distributed(self.method, name, self.address, self.out)
        with ExitStack() as opened:
            if self.out is not None:
                folder = partial_folder(self.out)
            else:
                cache_folder().mkdir(parents=True, exist_ok=True)
                folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="run-", dir=cache_folder())))
            engine = opened.enter_context(open_engine(name, self.address))
            return method.train_on(engine, corpus, self.settings, folder=folder, seed=self.seed, progress=progress)

    def _finished(self, out: Path, corpus: Corpus, dev: Corpus | None, progress: Progress) -> Model:
        """The model in `out`, if it is what this run would make."""
        model = load(out)
        old = model.manifest
        wanted = (self.method, self.settings.model_dump(mode="json"), self.seed, corpus.fingerprint())
        chosen_by = dev.fingerprint() if dev is not None and self.uses_dev else None
        if (old.method, old.config, old.seed, old.data) != wanted or old.details.dev != chosen_by:
            raise ConfigError(
                f"{out} holds a model of other settings, data or seed; choose another folder or --overwrite"
            )
        shutil.rmtree(partial_folder(out), ignore_errors=True)  # the rest, if removing it was killed
        progress.say(f"{out} is finished already, with the same settings, data and seed: nothing to do")
        return model


def _check_distributed(name: str, engine: str, address: str | None, out: str | Path | None) -> Distributed[Any]:
    """Return the method of a training on an engine; raise if the method or the engine cannot do it."""
    from xmtc.core.engine import Distributed
    from xmtc.engines import check_engine

    check_engine(engine, address)
    method = open_method(name)
    if not isinstance(method, Distributed):
        raise ConfigError(
            f"method {name!r} cannot be trained on engine {engine!r}; linear can. Leave out the engine: neural methods "
            "train on several machines by torchrun or accelerate launch"
        )
    if engine == "ray" and out is None:
        raise ConfigError("training on Ray needs out, a folder that all nodes see; give one")
    return method


def load(folder: str | Path) -> Model:
    """Load a model from its folder, or "hf:owner/name" from the hub; a cut, altered or newer one is refused."""
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
    except Exception as error:  # a folder may come from a stranger: what no check foresaw is refused here
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:150]
        raise ModelError(
            f"{folder} does not hold a whole model ({reason}); train it again, or copy it from a source that you trust"
        ) from error
    if "calibration.json" in reader.files:
        from xmtc.core.calibration import with_calibration

        model = with_calibration(model, reader)
    SAVED_IN[model] = load_again, Path(folder).absolute()
    return model


def load_again(folder: str, manifest: dict[str, Any]) -> Model:
    """Load a pickled model from its folder; raise if that holds another one by now."""
    model = load(folder)
    if model.manifest.to_json() != manifest:
        raise ModelError(f"{folder} holds another model than the one that was pickled; load it by xmtc.load")
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
    """Rank a corpus and compare with its labels, joined by label id.

    truth: "all" keeps labels that training never saw in the truth, where they cost recall; "known" drops them and the
    documents left without labels, for comparison with published tables. Concepts that a model suggests though training
    never saw them are then dropped from its lists, too, and its next labels move up. propensity: A and B of PSP@k; the
    model's own by default (0.55 and 1.5 unless its recipe says otherwise). ranking: what `rank_corpus` gave for this
    corpus, five labels deep or more, where it is known already.
    """
    from xmtc.core import metrics
    from xmtc.core.suspicions import check_evaluation

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
    """Compare named models on one corpus with the first of them, by a paired bootstrap over documents.

    Frequency bins, propensities and, with truth "known", the labels that count come from the first model's training
    data for all models: models trained on other documents are judged by the same labels. A ranking that `save_ranking`
    stored may stand for its model; where truth "known" drops concepts from it, its list is shorter. all_pairs: also
    compare every model with each one before it. rankings: what `rank_corpus` gave for this corpus, by model, five
    labels deep or more, where they are known already.
    """
    from xmtc.core import metrics
    from xmtc.core.saved_ranking import SavedRanking
    from xmtc.core.suspicions import check_evaluation

    if not models:
        raise ConfigError("a comparison needs two models or more; got 0")
    first = next(iter(models.values()))
    if isinstance(first, SavedRanking):
        n_documents, used = first.n_documents, propensity or first.propensity
    else:
        n_documents, used = first.manifest.n_documents, propensity or _propensity(first)
    n_documents = max(1, n_documents)  # a match model may have learnt from none
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


def save_ranking(
    file: str | Path, model: Model, corpus: Corpus, ranking: Ranking, *, name: str = "", data: str = ""
) -> None:
    """Save what `rank_corpus` gave for a model and a corpus, to be compared later without the model.

    name, data: what to call the model and the corpus; shown where the ranking does not fit.
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
    """Load a ranking that `save_ranking` stored, for `compare`; a cut or foreign file is refused."""
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
    """Join models into one that ranks by all of them; save it to `out` if given.

    rule: "mean", "rank", "sigmoid", "softmax" or "round-robin" combine scores or places; "learned" teaches boosted
    trees on the labelled documents `dev`, and the model comes calibrated. dev: documents that no model was trained on,
    or the training corpus: then cheap members (linear) are trained again in folds, and of the others the part serves
    that they held out. tail, from 0 to 1: how much more a rare label counts in teaching. 0.3 raises
    PSP@k and costs P@k next to nothing; 0.6 raises it further and costs up to half a point of P@1. Scores then order
    labels by their worth; probabilities stay calibrated.

    rule "cascade": the first of two models ranks every document; of `share` of them (0.2 by default), those that
    `dev` says gain most, the second, expensive model's ranking is taken. budget: seconds per document, on average, from
    which the share follows, by latencies that are measured now.
    """
    from xmtc.core.ensemble import CASCADE, LEARNED
    from xmtc.core.suspicions import check_members
    from xmtc.methods.ensemble import join

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
    """Add documents and labels to a linear, knn or match model and retire labels, without training all of it again.

    corpus: all documents, old and new; or only the new ones, with `base` the documents of the model's training. Without
    these, new documents teach a linear model new labels, but not known ones; a knn model holds them itself. retire: ids
    or names of labels never to be ranked again. budget: the share of a full training's work that may go into a linear
    model, new labels first; 1 refits all that changed. The given model stays as it was; a calibration does not carry
    over.

    labels: concepts of a vocabulary that need no documents: models of method match, knn models with
    `neighbours.labels`, and ensembles with such members suggest them at once, by their names. A calibration stays.
    """
    if labels is not None:
        labels = _check_labels(labels)
    if labels is not None and corpus is None and base is None and not retire:
        if out is not None:
            check_target(out, overwrite=overwrite)
        return _finish_update(_add_labels(model, labels, progress), out, overwrite, progress)
    for given in (corpus, base):
        if given is not None and not isinstance(given, Corpus):
            raise DataError(f"update takes a Corpus, as read_corpus gives it; got {type(given).__name__}")
    if isinstance(retire, str):
        raise ConfigError(f"retire takes a list of labels; got the string {retire!r}: put it in a list")
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 <= budget <= 1:
        raise ConfigError(f"budget must be a share from 0 to 1; got {budget!r}")
    method = check_update(model)
    if out is not None:
        check_target(out, overwrite=overwrite)
    from xmtc.core.calibration import uncalibrated

    plain = uncalibrated(model)
    updated: Model = method.update(plain, corpus, base=base, retire=retire, budget=budget, progress=progress)
    if model is not plain:
        progress.say("the updated model is not calibrated, since its scores are others; calibrate it again")
    return _finish_update(
        updated if labels is None else _add_labels(updated, labels, progress), out, overwrite, progress
    )


def _finish_update(updated: Model, out: str | Path | None, overwrite: bool, progress: Progress) -> Model:
    if out is not None:
        progress.stage("saving")
        updated.save(out, overwrite=overwrite)
    return updated


def _check_labels(labels: Iterable[Concept]) -> list[Concept]:
    """The concepts, none twice; what is no vocabulary is refused."""
    concepts = list(labels)
    strange = next((concept for concept in concepts if not isinstance(concept, Concept)), None)
    if strange is not None:
        raise DataError(f"labels takes Concepts, such as xmtc.Concept('4711', 'sugar'); got {strange!r}")
    if not concepts:
        raise DataError("the vocabulary is empty: there is no label to add")
    return list({concept.id: concept for concept in concepts}.values())


def check_add_labels(model: Model) -> None:
    """Raise for a model that cannot rank labels without documents."""
    from xmtc.core.abilities import reads_labels

    if not reads_labels(model):
        raise ModelError(
            f"a {model.manifest.method} model gives only labels that it was trained on; new labels without documents "
            "need a match model, a knn model with neighbours.labels, or an ensemble with such a member"
        )


def _add_labels(model: Model, concepts: Sequence[Concept], progress: Progress) -> Model:
    """A copy of a model that ranks these concepts, too; of an ensemble, all members that can."""
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
        assert isinstance(method, TakesLabels)  # as `reads_labels` promises
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
    """Write a neural model as one that ranks without torch, by ONNX Runtime; return the exported model.

    The new folder is a model like any other: it loads, ranks, serves, is calibrated and joins ensembles. int8: store
    weights in 8 bits, which takes a quarter of the space and ranks about twice as fast; scores change a little. A
    calibration carries over, but not with int8, since scores are others.
    """
    from xmtc.core.calibration import add_calibration, calibration_of, uncalibrated
    from xmtc.core.exportable import Exportable
    from xmtc.core.storage import write_folder

    if to != "onnx":
        raise ConfigError(f"a model is exported to 'onnx'; got {to!r}")
    plain = uncalibrated(model)
    name = plain.manifest.method
    if name == _ENSEMBLE:
        raise ModelError("an ensemble is not exported itself; export its neural members, then join them again")
    if plain.manifest.details.format is not None:
        raise ModelError("this model is exported already; export the model that it was made from")
    method = open_method(name)
    if not isinstance(method, Exportable):
        raise ModelError(f"only neural models are exported; this one is of method {name!r}, and needs no torch")
    with write_folder(out, overwrite=overwrite) as writer:
        progress.stage("exporting")
        method.export(plain, writer, int8=int8)
    calibration = calibration_of(model)
    if calibration is not None and not int8:
        add_calibration(out, calibration)
    elif calibration is not None:
        progress.say("the exported model is not calibrated, since its scores are others; calibrate it again")
    return load(out)


def check_update(model: Model) -> Updatable[Any]:
    """Return the method of a model that can be updated; raise for any other."""
    from xmtc.core.updatable import Updatable

    name = model.manifest.method
    if name == _ENSEMBLE:
        raise ModelError(
            "an ensemble is not updated itself; update its linear and knn members, or match, then join them again"
        )
    method = open_method(name)
    if not isinstance(method, Updatable):
        raise ModelError(
            f"only linear, knn and match models can be updated; this one is of method {name!r}: train it anew"
        )
    return method


def evaluate_stages(
    model: Model, corpus: Corpus, truth: metrics.TruthMode = "all", progress: Progress = SILENT
) -> dict[str, Any]:
    """Measure what comes before the ranking, for models that rank in stages; others give nothing."""
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
    """Learn from labelled documents what the model's scores are worth; return the model with probabilities.

    corpus: documents that the model was not trained on. Given the training corpus itself, a part of it serves: what
    training held out, or, where it held out nothing, a part that a copy of the model is trained without; the copy's
    scores then stand for the model's. method: "isotonic" or "platt". out: the model's own folder, which the
    calibration is added to, or a new one.
    """
    if not isinstance(corpus, Corpus):
        raise DataError(f"calibrate takes a Corpus, as read_corpus gives it; got {type(corpus).__name__}")
    from xmtc.core.calibration import (
        DEPTH,
        CalibratedModel,
        add_calibration,
        check_method,
        fit_calibration,
        uncalibrated,
    )
    from xmtc.core.held_out import find_unseen

    check_method(method)
    model = uncalibrated(model)
    if model.manifest.method == _ENSEMBLE and model.manifest.details.dev == corpus.fingerprint():
        raise DataError("the ensemble learnt from these documents and is calibrated by them; give others")
    if out is not None and not Path(out).exists():
        check_target(out)
    elif out is not None:
        if not FolderReader(out).holds(model.manifest):
            raise ModelError(f"{out} holds another model than the one to calibrate; choose another folder")
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
    """Compile the kernels of linear models now, so that a first training does not wait; return whether that worked."""
    from xmtc.methods import linear

    return linear.compile_kernels()


def find_threshold(model: Model, target: str, k: int | None = None) -> Threshold:
    """Return the probability from which labels reach a target on the documents of calibration, at most k per document.

    target: "precision=0.9" (of all labels given), "recall=0.8" (of all true labels) or "f1" (the best there is). k: as
    many as the calibration looked at, by default. Raises for a model that is not calibrated.
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
    """A learned ensemble; models with names have these on its leaderboard. about: the preset, for the details."""
    from xmtc.core.calibration import uncalibrated
    from xmtc.core.lessons import find_lessons
    from xmtc.methods.ensemble import check_learn, learn

    names = list(members) if isinstance(members, Mapping) else None
    models = [uncalibrated(model) for model in (members.values() if isinstance(members, Mapping) else members)]
    config = check_learn(models, tail)
    lessons = find_lessons(models, dev, _train_again, _is_cheap, config.depth, config.documents, seed, progress)
    return learn(models, config, dev, lessons, names=names, about=about, seed=seed, progress=progress)


def _cascade(
    members: Sequence[Model],
    dev: Corpus,
    share: float | None,
    budget: float | None,
    seed: int,
    progress: Progress,
) -> Model:
    """A cascade of two models."""
    from xmtc.core.calibration import uncalibrated
    from xmtc.core.lessons import find_lessons
    from xmtc.methods.ensemble import DEPTH, check_cascade, join_cascade, share_within

    if share is not None and budget is not None:
        raise ConfigError("share and budget both say how often the expensive model is asked; give one of them")
    if budget is not None and not 0 < budget < float("inf"):
        raise ConfigError(f"budget must be a positive number of seconds per document; got {budget!r}")
    models = [uncalibrated(model) for model in members]
    config = check_cascade(models, share)
    if budget is not None:
        config = check_cascade(models, share_within(models, dev, budget, progress))
    lessons = find_lessons(models, dev, _train_again, _is_cheap, DEPTH, config.documents, seed, progress)
    return join_cascade(models, config, dev, lessons, seed=seed, progress=progress)


def _train_again(model: Model, corpus: Corpus, progress: Progress) -> Model:
    """A copy of a model, trained on another corpus by the same method, settings and seed."""
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


def _is_cheap(model: Model) -> bool:
    """Say whether copies of a model can be trained on parts of a corpus without asking the user first."""
    from xmtc.core.abilities import Composed
    from xmtc.core.ensemble import CASCADE, LEARNED

    manifest = model.manifest
    if manifest.method == _ENSEMBLE and isinstance(model, Composed):
        return manifest.config["rule"] not in (LEARNED, CASCADE) and all(map(_is_cheap, model.members))
    return manifest.details.format is None and open_method(manifest.method).cheap


def _propensity(model: Model) -> Propensity:
    """The model's own A and B, from its recipe."""
    return Propensity(**model.manifest.config.get("propensity", {}))
