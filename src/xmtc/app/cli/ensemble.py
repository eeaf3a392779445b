"""xmtc ensemble."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from xmtc.app.cli.listings import complete_rules
from xmtc.app.cli.options import Group, ModelFolders, Out, Overwrite, Seed, check_path, parse_latency, parse_numbers
from xmtc.core.errors import ConfigError

if TYPE_CHECKING:
    from xmtc.core.corpus import Corpus


def ensemble(
    models: ModelFolders,
    out: Out,
    rule: Annotated[
        str, typer.Option("--rule", metavar="RULE", autocompletion=complete_rules, help="One of {rules}.")
    ] = "mean",
    weights: Annotated[
        str | None, typer.Option("--weights", metavar="W,W,…", help="One number for each model; equal by default.")
    ] = None,
    dev: Annotated[
        str | None,
        typer.Option(
            "--dev",
            metavar="DATA",
            callback=check_path,
            help="Documents that rules learned and cascade learn from: a folder's dev split, else its train split, or "
            "a file.",
        ),
    ] = None,
    tail: Annotated[
        float,
        typer.Option(
            "--tail",
            metavar="0…1",
            help="Of rule learned: 0.3 raises PSP@k at hardly any cost; 0.6 more, for up to half a point of P@1.",
        ),
    ] = 0.0,
    share: Annotated[
        float | None,
        typer.Option("--share", metavar="0…1", help="Of rule cascade: share of documents for the second model; 0.2."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", metavar="TIME", help='Of rule cascade: time per document, such as "2 ms", for --share.'
        ),
    ] = None,
    group: Group = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Join trained models into one that ranks by all of them.

    The new folder holds copies of its members, and every command takes it like any other model. Rule "mean" averages
    scores, "rank" places, "sigmoid" and "softmax" the scores after that function; "round-robin" lets the models
    choose in turn. Rule "learned" teaches boosted trees which member to trust; it needs documents that no model was
    trained on, or those of training: linear members are then trained again in folds.

    Rule "cascade" takes a cheap model and an expensive one: the first ranks every document, the second only those
    whose P@5 gains most by it, as it learns on --dev. --share says how many these are, or --budget how long a document
    may take on average; a table shows what each share reaches.
    """
    from typing import cast

    from xmtc import api
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_cascade, print_saved
    from xmtc.core.ensemble import AnyRule

    started = time.monotonic()
    if group is not None and dev is None:
        raise ConfigError("--group says how the documents of --dev are divided; give --dev DATA too")
    shares = None if weights is None else parse_numbers(weights, "--weights", "2,1")
    members = [api.load(folder) for folder in models]
    with show_progress() as progress:
        corpus = None if dev is None else _read(dev, group)
        joined = api.ensemble(
            members,
            cast(AnyRule, rule),
            shares,
            dev=corpus,
            tail=tail,
            share=share,
            budget=None if budget is None else parse_latency(budget, "--budget"),
            seed=seed,
            out=out,
            overwrite=overwrite,
            progress=progress,
        )
    print_saved(joined, out, None if dev is None else time.monotonic() - started)
    print_cascade(joined)


def _read(data: str, group: str | None) -> Corpus:
    """The dev split of a folder, else its train split; or a file."""
    from xmtc import api
    from xmtc.data import splits

    return api.read_corpus(data, "train" if "dev" not in splits(data) else "dev", group=group)
