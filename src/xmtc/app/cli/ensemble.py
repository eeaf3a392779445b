"""xmtc ensemble: combine trained models into one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from xmtc.app.cli.listings import complete_rules
from xmtc.app.cli.options import Group, ModelFolders, Out, Overwrite, Seed, check_path, parse_latency, parse_numbers
from xmtc.app.cli.panels import data_option, method_option
from xmtc.app.cli.table_options import TableOptions, takes_tables
from xmtc.core.errors import ConfigError

if TYPE_CHECKING:
    from xmtc.core.corpus import Corpus
    from xmtc.data import TableMapping


@takes_tables
def ensemble(
    models: ModelFolders,
    out: Out,
    rule: Annotated[
        str,
        method_option(
            "--rule", metavar="RULE", autocompletion=complete_rules, help="How scores are combined: one of {rules}."
        ),
    ] = "mean",
    weights: Annotated[
        str | None,
        method_option(
            "--weights", metavar="W,W,…", help="Weights of the models, one number each. Default: equal weights."
        ),
    ] = None,
    dev: Annotated[
        str | None,
        data_option(
            "--dev",
            metavar="DATA",
            callback=check_path,
            help="Documents for the rules learned and cascade: a folder (its dev split, or train if it has none), or a "
            "file.",
        ),
    ] = None,
    tail: Annotated[
        float,
        method_option(
            "--tail",
            metavar="0…1",
            help="For rule learned: favour rare labels. 0.3 raises PSP@k at almost no cost; 0.6 raises it more, at a "
            "cost of up to half a point of P@1.",
        ),
    ] = 0.0,
    share: Annotated[
        float | None,
        method_option(
            "--share", metavar="0…1", help="For rule cascade: share of documents for the second model. Default: 0.2."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        method_option(
            "--budget",
            metavar="TIME",
            help='For rule cascade: mean time per document, such as "2 ms", instead of --share.',
        ),
    ] = None,
    group: Group = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    *,
    table: TableOptions,
) -> None:
    """Combine trained models into one.

    The new folder contains copies of its members and works like any other model. Rule "mean" averages scores, "rank"
    averages ranks, and "sigmoid" and "softmax" average scores after that function; "round-robin" takes labels from the
    models in turn. Rule "learned" trains boosted trees that decide which member to trust. It needs documents that no
    model was trained on, or the training documents: then linear members are retrained in folds.

    Rule "cascade" needs a fast model and a slow one. The first ranks every document; the second ranks only the
    documents whose P@5 should improve most, as learned from --dev. --share sets how many, or --budget the mean time per
    document. A table shows the scores at each share.
    """
    from typing import cast

    from xmtc import api
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_cascade, print_saved
    from xmtc.core.ensemble import AnyRule
    from xmtc.data import store_mapping

    started = time.monotonic()
    if group is not None and dev is None:
        raise ConfigError("--group applies to the documents of --dev; give --dev DATA too")
    shares = None if weights is None else parse_numbers(weights, "--weights", "2,1")
    mapping = table.mapping(*models)
    members = [api.load(folder) for folder in models]
    with show_progress() as progress:
        corpus = None if dev is None else _read(dev, group, mapping)
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
        store_mapping(out, mapping)
    print_saved(joined, out, None if dev is None else time.monotonic() - started)
    print_cascade(joined)


def _read(data: str, group: str | None, mapping: TableMapping | None) -> Corpus:
    """Read a file, or the dev split of a folder, or its train split if it has no dev split."""
    from xmtc import api
    from xmtc.data import splits

    return api.read_corpus(data, "train" if "dev" not in splits(data) else "dev", group=group, mapping=mapping)
