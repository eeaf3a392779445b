"""xmtc evaluate and xmtc compare."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from xmtc.app.options import (
    Json,
    ModelFolder,
    ModelFolders,
    PropensityOption,
    Split,
    Truth,
    TruthOption,
    parse_propensity,
)
from xmtc.core.errors import ConfigError


def evaluate(
    model: ModelFolder,
    data: Annotated[str, typer.Argument(metavar="DATA", help="Folder or file of labelled documents.")],
    split: Split = "test",
    truth: TruthOption = Truth.all,
    propensity: PropensityOption = None,
    json: Json = False,
) -> None:
    """Measure a model on labelled documents, with 95 % intervals."""
    from xmtc import api
    from xmtc.app.console import print_json
    from xmtc.app.progress import show_progress
    from xmtc.app.report import print_report

    chosen = parse_propensity(propensity)
    with show_progress() as progress:
        loaded = api.load(model)
        progress.stage("reading documents")
        corpus = api.read_corpus(data, split)
        report = api.evaluate(loaded, corpus, truth.value, chosen, progress=progress)
        stages = api.evaluate_stages(loaded, corpus, truth.value)
    report = replace(report, model=model, data=data)
    if json:
        print_json({**report.to_json(), **({"stages": stages} if stages else {})})
    else:
        print_report(report)
        for member in stages.get("matching", ()):
            scores = ", ".join(f"{key} {member[key]:.2f}" for key in ("P@1", "P@3", "P@5"))
            print(
                f"matching ({member['vectors']}, seed {member['seed']}): {scores} of {member['clusters']:,} clusters; "
                f"{member['recall']:.2f} of the true labels lie in the best {member['beam']}"
            )


def compare(
    models: ModelFolders,
    data: Annotated[str, typer.Option("--data", metavar="DATA", help="Folder or file of labelled documents.")],
    split: Split = "test",
    truth: TruthOption = Truth.all,
    propensity: PropensityOption = None,
    json: Json = False,
) -> None:
    """Compare models with the first of them, on the same documents.

    A difference is told with the 95 % interval of a paired bootstrap; where that holds 0, it is undecided.
    """
    from xmtc import api
    from xmtc.app.console import print_json
    from xmtc.app.progress import show_progress
    from xmtc.app.report import print_comparison

    if len(models) < 2 or len(set(models)) < len(models):
        raise ConfigError(f"compare needs two different models or more; got {', '.join(models)}")
    chosen = parse_propensity(propensity)
    with show_progress() as progress:
        loaded = {folder: api.load(folder) for folder in models}
        progress.stage("reading documents")
        corpus = api.read_corpus(data, split)
        comparison = api.compare(loaded, corpus, truth.value, chosen, progress=progress)
    if json:
        print_json({**comparison.to_json(), "truth": truth.value, "data": data})
    else:
        print_comparison(comparison, truth.value, data)
