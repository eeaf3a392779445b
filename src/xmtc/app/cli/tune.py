"""xmtc tune: search the settings of a method."""

from __future__ import annotations

from typing import Annotated

import typer

from xmtc.app.cli.options import Address, EngineOption, Group, Seed, check_path, parse_duration
from xmtc.app.cli.panels import data_option, method_option, output_option
from xmtc.app.cli.table_options import TableOptions, takes_tables
from xmtc.core.errors import ConfigError


@takes_tables
def tune(
    data: Annotated[str, typer.Argument(metavar="DATA", help="Folder with a train split, or a file of documents.")],
    out: Annotated[
        str,
        output_option(
            "--out",
            metavar="RECIPE",
            callback=check_path,
            help="Recipe file (TOML) to write. A plot is written next to it.",
        ),
    ],
    method: Annotated[str, method_option("--method", metavar="METHOD", help="One of {methods}.")] = "linear",
    trials: Annotated[
        int, method_option("--trials", min=1, help="Total number of trials. The first uses the defaults.")
    ] = 20,
    time_limit: Annotated[
        str | None,
        method_option(
            "--time-limit", metavar="TIME", help="Start no new trial after this time, such as 90s, 30m or 2h."
        ),
    ] = None,
    metric: Annotated[
        str,
        method_option("--metric", metavar="METRIC", help="Metric to maximise on dev, such as P@1, nDCG@5 or PSP@5."),
    ] = "nDCG@5",
    settings: Annotated[
        list[str] | None,
        method_option(
            "--set",
            metavar="PATH=VALUE",
            help="Fix a setting instead of searching it, such as train.epochs=1. Repeatable.",
        ),
    ] = None,
    dev: Annotated[
        str | None,
        data_option(
            "--dev",
            metavar="DATA",
            callback=check_path,
            help="Dev documents to score on: a folder with a dev split, or a file.",
        ),
    ] = None,
    group: Group = None,
    seed: Seed = 0,
    overwrite: Annotated[
        bool, output_option("--overwrite", help="Replace the recipe at --out and restart the search.")
    ] = False,
    engine: EngineOption = None,
    address: Address = None,
    *,
    table: TableOptions,
) -> None:
    """Search a method's settings and save the best as a recipe.

    Every trial trains a model and scores it on dev: the folder's dev split, or 10 % of train. Trials are recorded in
    RECIPE.journal. Run the same command again to resume, or with a larger --trials to continue the search. With
    --engine processes or ray, as many trials run at once as there are cores.
    """
    from contextlib import ExitStack
    from importlib.util import find_spec
    from pathlib import Path

    from xmtc import api
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.output import open_whole
    from xmtc.app.trials_plot import plot_trials
    from xmtc.core.config import parse_assignments
    from xmtc.data import splits
    from xmtc.engines import check_engine, open_engine
    from xmtc.tuning import check_tune
    from xmtc.tuning import tune as search

    config = parse_assignments(settings or [])
    limit = None if time_limit is None else parse_duration(time_limit, "--time-limit")
    check_tune(method, config, metric, trials)
    where = "ray" if engine is None and address is not None else engine or "local"
    check_engine(where, address)
    journal = Path(f"{out}.journal")
    if not Path(out).absolute().parent.is_dir():
        raise ConfigError(f"--out {out}: the folder {Path(out).parent} does not exist; create it first")
    if Path(out).exists() and not overwrite and not journal.exists():
        raise ConfigError(f"{out} exists; choose another file, or replace it with --overwrite")
    if overwrite:
        journal.unlink(missing_ok=True)
    mapping = table.mapping()
    with show_progress() as progress, ExitStack() as opened:
        progress.stage("reading documents")
        corpus = api.read_corpus(data, "train", group=group, mapping=mapping)
        held = dev if dev is not None else data if "dev" in splits(data) else None
        scored_on = None if held is None else api.read_corpus(held, "dev", mapping=mapping)
        runs = None if where == "local" else opened.enter_context(open_engine(where, address))
        progress.stage("searching")
        found = search(
            corpus,
            method,
            config,
            trials=trials,
            time_limit=limit,
            metric=metric,
            dev=scored_on,
            journal=journal,
            seed=seed,
            engine=runs,
            progress=progress,
        )
    with open_whole(out, "the recipe ") as file:
        file.write(found.recipe())
    print(f"{metric} on dev: {found.scores[0]:.2f} with the defaults, {found.best:.2f} with {out}")
    if find_spec("matplotlib") is None:
        print("no plot: matplotlib is not installed; install it with: pip install 'xmtc[report]'")
        return
    plot = str(Path(out).with_suffix(".svg"))
    plot_trials(plot, found.scores, metric)
    print(f"plot: {plot}")
