"""xmtc train."""

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
    parse_seeds,
    seed_folder,
)
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
        str, typer.Option("--out", metavar="MODEL", callback=check_path, help="Folder to write the model to.")
    ],
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="METHOD",
            autocompletion=complete_methods,
            help="One of {methods}; linear is the default without --recipe.",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            metavar="RECIPE",
            autocompletion=complete_recipes,
            is_eager=True,
            callback=list_if_asked,
            help="Name of a recipe, or path of a TOML file; list shows all, as `xmtc recipes` does.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="PRESET",
            help="fast, balanced or best: chooses methods and settings itself, and shows a leaderboard.",
        ),
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option("--time-limit", metavar="TIME", help="For --preset: such as 90s, 30m or 2h."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="A setting, such as tree.trees=1; wins over the recipe."),
    ] = None,
    dev: Annotated[
        str | None,
        typer.Option(
            "--dev",
            metavar="DATA",
            callback=check_path,
            help="Folder with a dev split, or a file, for methods that use one.",
        ),
    ] = None,
    group: Group = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            metavar="LANGUAGE",
            help="Language of the texts, such as de or German: words are stemmed, and names of labels are in it where "
            "the vocabulary has them; auto guesses it.",
        ),
    ] = None,
    seed: Seed = 0,
    seeds: Seeds = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run stopped.")] = False,
    overwrite: Overwrite = False,
    track: Annotated[
        str | None,
        typer.Option(
            "--track",
            metavar="TRACKER",
            autocompletion=complete_trackers,
            help="Send the losses and dev scores of neural methods to {trackers}, too.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the data, say what training would take, and stop.")
    ] = False,
    engine: EngineOption = None,
    address: Address = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            help="With --engine ray, for methods that train a network: processes that train it together; by default "
            "one per GPU, or one per node where there are none.",
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
    from xmtc.app.cli.tables import print_leaderboard, print_saved
    from xmtc.core.config import parse_assignments
    from xmtc.core.corpus import Corpus
    from xmtc.core.run_folder import WRITES
    from xmtc.data import splits, store_mapping
    from xmtc.tracking import check_tracker

    def read_dev(progress: Progress) -> Corpus | None:
        """Dev documents, for a method that uses them: those asked for, or the folder's own."""
        found = splits(data if dev is None else dev)  # a wrong path is a mistake, used or not
        if dev is None and "dev" not in found:
            return None
        if isinstance(run, api.TrainingRun) and not run.uses_dev:
            set_so = " as it is set" if api.uses_dev(run.method) else ""
            progress.say(f"dev is not used: the {run.method} method{set_so} neither stops early nor chooses by dev")
            return None
        progress.stage("reading dev documents")
        progress.say(f"dev documents come from {dev or data}")
        return api.read_corpus(dev or data, "dev", mapping=mapping)

    started = time.monotonic()
    if resume and overwrite:
        raise ConfigError("--resume goes on with what is there, --overwrite replaces it; give one of them")
    # all that can be refused is refused before the data is read, which may take minutes
    if track is not None:
        check_tracker(track)
    mapping = table.mapping()
    config = parse_assignments(settings or [])
    by_hand = {"--method": method, "--recipe": recipe, "--set": settings, "--workers": workers}
    limit = None if time_limit is None else parse_duration(time_limit, "--time-limit")
    by_preset = preset is not None or limit is not None
    outs = {seed: out} if seeds is None else {each: seed_folder(out, each) for each in parse_seeds(seeds)}

    def prepare(language: str | None) -> list[TrainingRun | PresetRun]:
        """One run per seed; all differ in seed and folder only."""
        options: dict[str, Any] = {"language": language, "resume": resume, "overwrite": overwrite}
        options |= {"engine": engine, "address": address}
        if by_preset:
            return [
                api.prepare_preset(preset, limit, by_hand=by_hand, out=folder, seed=each, **options)
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
            print(run.outline(corpus))
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
        print_saved(model, str(each.out), seconds)


@contextmanager
def _tracked(name: str | None, run: TrainingRun | PresetRun, progress: Progress) -> Iterator[None]:
    """Let a tracker, if one is asked for, receive the figures of a run."""
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
