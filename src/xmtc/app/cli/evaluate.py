"""xmtc evaluate and xmtc compare: score models on labelled documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xmtc.app.cli.options import (
    Json,
    ModelFolder,
    PropensityOption,
    Seeds,
    Split,
    Truth,
    TruthOption,
    check_parent,
    check_path,
    parse_propensity,
    parse_seeds,
    seed_folder,
)
from xmtc.app.cli.panels import data_option, method_option, output_option
from xmtc.app.cli.table_options import TableOptions, takes_tables
from xmtc.core.errors import ConfigError

if TYPE_CHECKING:
    from xmtc.core.propensity import Propensity

_ReportFile = Annotated[
    str | None,
    output_option(
        "--report",
        metavar="FILE",
        callback=check_path,
        help="Write an HTML report with plots and examples, such as report.html.",
    ),
]


@takes_tables
def evaluate(
    model: ModelFolder,
    data: Annotated[str, typer.Argument(metavar="DATA", help="Folder or file of labelled documents.")],
    split: Split = "test",
    truth: TruthOption = Truth.all,
    propensity: PropensityOption = None,
    json: Json = False,
    report_file: _ReportFile = None,
    save_ranking: Annotated[
        str | None,
        output_option(
            "--save-ranking",
            metavar="FILE",
            callback=check_path,
            help="Save the ranking to a file, such as model.npz. `xmtc compare` accepts it instead of the model.",
        ),
    ] = None,
    seeds: Seeds = None,
    *,
    table: TableOptions,
) -> None:
    """Evaluate a model on labelled documents, with 95 % intervals.

    --seeds evaluates the models of `xmtc train --seeds` and prints mean and standard deviation.

    --report also writes one HTML file that works offline: scores, plots, best and worst labels, examples.
    """
    from xmtc import api
    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.kernels import announce_kernels
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_report, print_written
    from xmtc.app.details import name_member
    from xmtc.app.scores import CLUSTER_SCORES

    chosen = parse_propensity(propensity)
    if seeds is not None:
        if report_file is not None or save_ranking is not None:
            raise ConfigError("--report and --save-ranking need a single model; leave them out with --seeds")
        _evaluate_seeds(model, parse_seeds(seeds), data, split, truth, chosen, json, table)
        return
    _check_report(report_file)
    check_parent(save_ranking)
    with show_progress() as progress:
        loaded = api.load(model)
        announce_kernels(progress)
        progress.stage("reading documents")
        corpus = api.read_corpus(data, split, mapping=table.mapping(model))
        if report_file is None:
            ranking, stages = api.rank_in_stages(loaded, corpus, 5, truth.value, progress)
            report = api.evaluate(loaded, corpus, truth.value, chosen, ranking=ranking, progress=progress)
            report = replace(report, model=model, data=data)
        else:
            from xmtc.app.report import Source, evaluate_to_page

            source = Source(data, split, truth.value)
            report, ranking, stages = evaluate_to_page(report_file, model, loaded, corpus, source, chosen, progress)
        if save_ranking is not None:
            api.save_ranking(save_ranking, loaded, corpus, ranking, name=model, data=data)
    if json:
        print_json({**report.to_json(), **({"stages": stages} if stages else {})})
    else:
        print_report(report)
        for member in stages.get("matching", ()):
            scores = ", ".join(f"{key} {member[key]:.2f}" for key in CLUSTER_SCORES)
            print(
                f"matching ({name_member(member)}): {scores} of {member['clusters']:,} clusters; "
                f"{member['recall']:.2f} of the true labels are in the best {member['beam']}"
            )
        print_written(report_file)
        print_written(save_ranking, "ranking")


@takes_tables
def compare(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Two or more model folders, or ranking files of `xmtc evaluate --save-ranking`.",
        ),
    ],
    data: Annotated[str, data_option("--data", metavar="DATA", help="Folder or file of labelled documents.")],
    split: Split = "test",
    truth: TruthOption = Truth.all,
    propensity: PropensityOption = None,
    json: Json = False,
    report_file: _ReportFile = None,
    all_pairs: Annotated[
        bool, method_option("--all-pairs", help="Compare all pairs of models, not only each with the first.")
    ] = False,
    *,
    table: TableOptions,
) -> None:
    """Compare models with the first one, on the same documents.

    Each difference has a 95 % interval from a paired bootstrap. It is undecided if the interval contains 0.

    --report also writes one HTML file that works offline: scores, plots, and documents on which the models differ.
    """
    from xmtc import api
    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.kernels import announce_kernels
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_comparison, print_written

    if len(models) < 2 or len(set(models)) < len(models):
        raise ConfigError(f"compare needs two or more different models; got {', '.join(models)}")
    chosen = parse_propensity(propensity)
    _check_report(report_file)
    saved = [path for path in models if Path(path).is_file()]
    if saved and report_file is not None:
        raise ConfigError(f"--report needs model folders, but {saved[0]} is a saved ranking; give its model instead")
    with show_progress() as progress:
        rankings = {path: api.load_ranking(path) for path in saved}
        loaded = {folder: api.load(folder) for folder in models if folder not in rankings}
        announce_kernels(progress)
        progress.stage("reading documents")
        corpus = api.read_corpus(data, split, mapping=table.mapping(*models))
        if report_file is None:
            given = {path: rankings.get(path) or loaded[path] for path in models}
            comparison = api.compare(given, corpus, truth.value, chosen, all_pairs=all_pairs, progress=progress)
        else:
            from xmtc.app.report import Source, compare_to_page

            source = Source(data, split, truth.value)
            comparison = compare_to_page(report_file, loaded, corpus, source, chosen, progress, all_pairs=all_pairs)
    if json:
        print_json({**comparison.to_json(), "truth": truth.value, "data": data})
    else:
        print_comparison(comparison, truth.value, data)
        print_written(report_file)


def _evaluate_seeds(
    model: str,
    seeds: list[int],
    data: str,
    split: str,
    truth: Truth,
    propensity: Propensity | None,
    json: bool,
    table: TableOptions,
) -> None:
    """Print the mean and standard deviation of each score over models with different seeds."""
    from statistics import mean, stdev

    from xmtc import api
    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.kernels import announce_kernels
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_spread

    folders = [seed_folder(model, seed) for seed in seeds]
    with show_progress() as progress:
        loaded = [api.load(folder) for folder in folders]
        announce_kernels(progress)
        progress.stage("reading documents")
        corpus = api.read_corpus(data, split, mapping=table.mapping(*folders))
        reports = [
            api.evaluate(one, corpus, truth.value, propensity, intervals=False, progress=progress) for one in loaded
        ]
    spread = {
        key: (mean(report[key] for report in reports), stdev(report[key] for report in reports)) for key in reports[0]
    }
    if json:
        metrics = {key: {"mean": average, "spread": deviation} for key, (average, deviation) in spread.items()}
        each = [{"model": folder, "metrics": one.metrics} for folder, one in zip(folders, reports, strict=True)]
        print_json({"metrics": metrics, "models": each, "n": reports[0].n, "truth": truth.value, "data": data})
    else:
        print_spread(folders, data, reports[0], spread)


def _check_report(file: str | None) -> None:
    """Raise early if the report could not be written."""
    if file is not None:
        from xmtc.app.report import check_report

        check_report(file)
