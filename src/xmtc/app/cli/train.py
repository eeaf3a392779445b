"""xmtc train."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from xmtc.app.cli.options import Overwrite, Seed, Seeds, check_path, parse_seeds, seed_folder
from xmtc.core.errors import ConfigError


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
            help="One of {methods}; linear is the default without --recipe.",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", metavar="RECIPE", help="Name of a recipe, listed below, or path of a TOML file."),
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
    seed: Seed = 0,
    seeds: Seeds = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run stopped.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a model on labelled documents and save it."""
    from xmtc import api
    from xmtc.app.cli.kernels import announce_kernels
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_saved
    from xmtc.core.config import parse_assignments
    from xmtc.core.corpus import Corpus
    from xmtc.core.progress import Progress
    from xmtc.data import splits

    def read_dev(progress: Progress) -> Corpus | None:
        """Dev documents, for a method that uses them: those asked for, or the folder's own."""
        found = splits(data if dev is None else dev)  # a wrong path is a mistake, used or not
        if dev is None and "dev" not in found:
            return None
        if not run.uses_dev:
            set_so = " as it is set" if api.uses_dev(run.method) else ""
            progress.say(f"dev is not used: the {run.method} method{set_so} neither stops early nor chooses by dev")
            return None
        progress.stage("reading dev documents")
        progress.say(f"dev documents come from {dev or data}")
        return api.read_corpus(dev or data, "dev")

    started = time.monotonic()
    if resume and overwrite:
        raise ConfigError("--resume goes on with what is there, --overwrite replaces it; give one of them")
    # all that can be refused is refused before the data is read, which may take minutes
    config = parse_assignments(settings or [])
    outs = {seed: out} if seeds is None else {each: seed_folder(out, each) for each in parse_seeds(seeds)}
    runs = [
        api.prepare_run(method, config, recipe=recipe, out=folder, seed=each, resume=resume, overwrite=overwrite)
        for each, folder in outs.items()
    ]
    run = runs[0]  # all differ in seed and folder only
    with show_progress() as progress:
        announce_kernels(progress, training=True)
        progress.stage("reading documents")
        corpus = api.read_corpus(data, "train")
        dev_corpus = read_dev(progress)
        trained = []
        for each in runs:
            model = each.start(corpus, dev_corpus, progress)
            trained.append((model, str(each.out), time.monotonic() - started))
            started = time.monotonic()
    for model, folder, seconds in trained:
        print_saved(model, folder, seconds)
