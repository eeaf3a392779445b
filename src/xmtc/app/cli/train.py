"""xmtc train: train a model on labelled documents."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xmtc.app.cli.listings import complete_methods, complete_recipes, complete_trackers
from xmtc.app.cli.options import (
    Address,
    EngineOption,
    Group,
    Overwrite,
    Seed,
    Seeds,
    check_path,
    parse_duration,
    parse_latency,
    parse_seeds,
    seed_folder,
)
from xmtc.app.cli.panels import advanced_option, data_option, method_option, output_option
from xmtc.app.cli.recipes import list_if_asked
from xmtc.app.cli.table_options import TableOptions, takes_tables
from xmtc.core.errors import ConfigError

if TYPE_CHECKING:
    from xmtc.api import PresetRun, TrainingRun
    from xmtc.core.progress import Progress


@takes_tables
def train(
    data: Annotated[str, typer.Argument(metavar="DATA", help="Folder with a train split, or a file of documents.")],
    out: Annotated[
        str, output_option("--out", metavar="MODEL", callback=check_path, help="Folder to write the model to.")
    ],
    method: Annotated[
        str | None,
        method_option(
            "--method",
            metavar="METHOD",
            autocompletion=complete_methods,
            help="One of {methods}. Default: linear, or the method of --recipe.",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        method_option(
            "--recipe",
            metavar="RECIPE",
            autocompletion=complete_recipes,
            is_eager=True,
            callback=list_if_asked,
            help="Name of a recipe, or path of a TOML file. --recipe list prints all recipes.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        method_option(
            "--preset",
            metavar="PRESET",
            help="fast, balanced or best: choose methods and settings automatically and print a leaderboard.",
        ),
    ] = None,
    time_limit: Annotated[
        str | None,
        method_option("--time-limit", metavar="TIME", help="Time limit for --preset, such as 90s, 30m or 2h."),
    ] = None,
    latency: Annotated[
        str | None,
        method_option(
            "--latency",
            metavar="TIME",
            help='Longest time per document for the model of --preset, on one thread, such as "5 ms".',
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        method_option(
            "--set",
            metavar="PATH=VALUE",
            help="Change a setting, such as tree.trees=1. Overrides the recipe. Repeatable.",
        ),
    ] = None,
    dev: Annotated[
        str | None,
        data_option(
            "--dev",
            metavar="DATA",
            callback=check_path,
            help="Dev documents: a folder with a dev split, or a file. Only some methods use them.",
        ),
    ] = None,
    group: Group = None,
    language: Annotated[
        str | None,
        data_option(
            "--language",
            metavar="LANGUAGE",
            help="Language of the texts, such as de or German. Words are stemmed, and label names are taken in this "
            "language if the vocabulary has them. auto detects the language.",
        ),
    ] = None,
    seed: Seed = 0,
    seeds: Seeds = None,
    resume: Annotated[bool, output_option("--resume", help="Resume an interrupted run.")] = False,
    overwrite: Overwrite = False,
    track: Annotated[
        str | None,
        output_option(
            "--track",
            metavar="TRACKER",
            autocompletion=complete_trackers,
            help="Also send losses and dev scores of neural methods to {trackers}.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, output_option("--dry-run", help="Read the data, print the expected cost, and stop.")
    ] = False,
    engine: EngineOption = None,
    address: Address = None,
    workers: Annotated[
        int | None,
        advanced_option(
            "--workers",
            metavar="N",
            min=1,
            help="Processes that train a network together, with --engine ray. Default: one per GPU, or one per node if "
            "there are no GPUs.",
        ),
    ] = None,
    *,
    table: TableOptions,
) -> None:
    """Train a model on labelled documents and save it."""
    from xmtc import api
    from xmtc.app.cli.kernels import announce_kernels
    from xmtc.app.cli.language import advise_language, choose_names, guess_language, parse_language
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_latency, print_leaderboard, print_saved
    from xmtc.core.config import parse_assignments
    from xmtc.core.corpus import Corpus
    from xmtc.core.run_folder import WRITES
    from xmtc.data import splits, store_mapping
    from xmtc.tracking import check_tracker

    def read_dev(progress: Progress) -> Corpus | None:
        """Read the documents of --dev, or the folder's dev split, if the method uses them."""
        found = splits(data if dev is None else dev)  # a wrong path is an error even if dev is not used
        if dev is None and "dev" not in found:
            return None
        if isinstance(run, api.TrainingRun) and not run.uses_dev:
            with_settings = " with these settings" if api.uses_dev(run.method) else ""
            progress.say(f"dev documents are not used: the {run.method} method{with_settings} does not need them")
            return None
        progress.stage("reading dev documents")
        progress.say(f"dev documents come from {dev or data}")
        return api.read_corpus(dev or data, "dev", mapping=mapping)

    started = time.monotonic()
    if resume and overwrite:
        raise ConfigError("--resume continues an existing run and --overwrite replaces it; give one of them")
    # check all options before reading the data, which may take minutes
    if track is not None:
        check_tracker(track)
    mapping = table.mapping()
    config = parse_assignments(settings or [])
    by_hand = {"--method": method, "--recipe": recipe, "--set": settings, "--workers": workers}
    limit = None if time_limit is None else parse_duration(time_limit, "--time-limit")
    answers_in = None if latency is None else parse_latency(latency, "--latency")
    by_preset = preset is not None or limit is not None or answers_in is not None
    outs = {seed: out} if seeds is None else {each: seed_folder(out, each) for each in parse_seeds(seeds)}

    def prepare(language: str | None) -> list[TrainingRun | PresetRun]:
        """Return one run per seed; they differ only in seed and folder."""
        options: dict[str, Any] = {"language": language, "resume": resume, "overwrite": overwrite}
        options |= {"engine": engine, "address": address}
        if by_preset:
            return [
                api.prepare_preset(preset, limit, answers_in, by_hand=by_hand, out=folder, seed=each, **options)
                for each, folder in outs.items()
            ]
        return [
            api.prepare_run(method, config, recipe=recipe, out=folder, seed=each, workers=workers, **options)
            for each, folder in outs.items()
        ]

    spoken = parse_language(language)
    runs = prepare(spoken)
    run = runs[0]
    with show_progress(WRITES) as progress:
        announce_kernels(progress, training=True)
        progress.stage("reading documents")
        names = choose_names(data, spoken, progress)
        corpus = api.read_corpus(data, "train", language=names, group=group, mapping=mapping)
        if language is None:
            advise_language(corpus, run.settings if isinstance(run, api.TrainingRun) else None, progress)
        elif spoken is None and (spoken := guess_language(corpus, progress)) is not None:
            runs = prepare(spoken)
            run = runs[0]
            if names := choose_names(data, spoken, progress):
                corpus = api.read_corpus(data, "train", language=names, group=group, mapping=mapping)
        if dry_run:
            print(run.outline(corpus) if isinstance(run, api.TrainingRun) else run.outline(corpus, read_dev(progress)))
            return
        if isinstance(run, api.TrainingRun) and run.uses_encoder:
            progress.say(run.outline(corpus))
        chosen_by = read_dev(progress)
        if group is not None and (chosen_by is not None or (isinstance(run, api.TrainingRun) and not run.uses_dev)):
            progress.say("--group is not used: no training document is held out")
        trained = []
        for each in runs:
            with _tracked(track, each, progress):
                model = each.start(corpus, chosen_by, progress)
            if WRITES:
                store_mapping(str(each.out), mapping)
                trained.append((each, model, time.monotonic() - started))
            started = time.monotonic()
    for each, model, seconds in trained:
        print_leaderboard(model, str(each.out), {} if isinstance(each, api.TrainingRun) else each.seconds)
        print_latency(model)
        print_saved(model, str(each.out), seconds)


@contextmanager
def _tracked(name: str | None, run: TrainingRun | PresetRun, progress: Progress) -> Iterator[None]:
    """Send the metrics of a run to a tracker, if one was requested."""
    from xmtc import api
    from xmtc.app.text import flat_settings
    from xmtc.tracking import open_tracker

    if name is None:
        yield
        return
    settings = run.settings.model_dump(mode="json") if isinstance(run, api.TrainingRun) else {"preset": run.preset}
    with open_tracker(name, str(run.out).rstrip("/"), dict(flat_settings(settings))) as tracker:
        progress.trackers = (tracker,)
        try:
            yield
        finally:
            progress.trackers = ()
