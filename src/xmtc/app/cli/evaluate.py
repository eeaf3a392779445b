"""xmtc evaluate and xmtc compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from xmtc.app.cli.options import (
    Json,
    ModelFolder,
    ModelFolders,
    PropensityOption,
    Split,
    Truth,
    TruthOption,
    check_path,
    parse_propensity,
)
from xmtc.core.errors import ConfigError

if TYPE_CHECKING:
    from xmtc.core.corpus import Corpus
    from xmtc.core.metrics import Comparison, Propensity, Report
    from xmtc.core.model import Model
    from xmtc.core.progress import Progress

_ReportFile = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="FILE",
        callback=check_path,
        help="Write a page with plots and examples, such as report.html.",
    ),
]


def evaluate(
    model: ModelFolder,
    data: Annotated[str, typer.Argument(metavar="DATA", help="Folder or file of labelled documents.")],
    split: Split = "test",
    truth: TruthOption = Truth.all,
    propensity: PropensityOption = None,
    json: Json = False,
    report_file: _ReportFile = None,
) -> None:
    """Measure a model on labelled documents, with 95 % intervals.

    With --report also as one HTML file, which needs no network: scores, plots, best and worst labels, examples.
    """
    from xmtc import api
    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_report, print_written
    from xmtc.app.report.analysis import name_member

    chosen = parse_propensity(propensity)
    _check_report(report_file)
    with show_progress() as progress:
        loaded = api.load(model)
        progress.stage("reading documents")
        corpus = api.read_corpus(data, split)
        if report_file is None:
            ranking, stages = api.rank_in_stages(loaded, corpus, 5, truth.value, progress)
            report = api.evaluate(loaded, corpus, truth.value, chosen, ranking=ranking, progress=progress)
            report = replace(report, model=model, data=data)
        else:
            place = Place(data, split, truth)
            report, stages = evaluate_to_page(report_file, model, loaded, corpus, place, chosen, progress)
    if json:
        print_json({**report.to_json(), **({"stages": stages} if stages else {})})
    else:
        print_report(report)
        for member in stages.get("matching", ()):
            scores = ", ".join(f"{key} {member[key]:.2f}" for key in ("P@1", "P@3", "P@5"))
            print(
                f"matching ({name_member(member)}): {scores} of {member['clusters']:,} clusters; "
                f"{member['recall']:.2f} of the true labels lie in the best {member['beam']}"
            )
        print_written(report_file)


def compare(
    models: ModelFolders,
    data: Annotated[str, typer.Option("--data", metavar="DATA", help="Folder or file of labelled documents.")],
    split: Split = "test",
    truth: TruthOption = Truth.all,
    propensity: PropensityOption = None,
    json: Json = False,
    report_file: _ReportFile = None,
) -> None:
    """Compare models with the first of them, on the same documents.

    A difference is told with the 95 % interval of a paired bootstrap; where that holds 0, it is undecided. With
    --report also as one HTML file, which needs no network: scores, plots, and documents on which the models differ.
    """
    from xmtc import api
    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_comparison, print_written

    if len(models) < 2 or len(set(models)) < len(models):
        raise ConfigError(f"compare needs two different models or more; got {', '.join(models)}")
    chosen = parse_propensity(propensity)
    _check_report(report_file)
    with show_progress() as progress:
        loaded = {folder: api.load(folder) for folder in models}
        progress.stage("reading documents")
        corpus = api.read_corpus(data, split)
        if report_file is None:
            comparison = api.compare(loaded, corpus, truth.value, chosen, progress=progress)
        else:
            comparison = compare_to_page(report_file, loaded, corpus, Place(data, split, truth), chosen, progress)
    if json:
        print_json({**comparison.to_json(), "truth": truth.value, "data": data})
    else:
        print_comparison(comparison, truth.value, data)
        print_written(report_file)


class Place(NamedTuple):
    """What a page says of where its documents come from, and what counts as true."""

    data: str
    split: str = "test"
    truth: Truth = Truth.all


def evaluate_to_page(
    file: str,
    name: str,
    model: Model,
    corpus: Corpus,
    place: Place,
    propensity: Propensity | None,
    progress: Progress,
) -> tuple[Report, dict[str, Any]]:
    """Evaluate a model and write the page about it; documents are ranked once for both, and for what comes before the
    ranking in a model of several stages."""
    from xmtc import api
    from xmtc.app.report.analysis import judge
    from xmtc.app.report.evaluation import evaluation_page
    from xmtc.app.report.page import describe_origin, write_page
    from xmtc.core.calibration import DEPTH

    ranking, stages = api.rank_in_stages(model, corpus, DEPTH, place.truth.value, progress)
    report = api.evaluate(model, corpus, place.truth.value, propensity, ranking=ranking, progress=progress)
    report = replace(report, model=name, data=place.data)
    progress.stage("writing the report")
    facts = describe_origin(place.data, place.split, corpus, place.truth.value, report.propensity)
    judged = judge(model, corpus, ranking, place.truth.value)
    write_page(file, evaluation_page(report, judged, facts, stages.get("matching", ())))
    return report, stages


def compare_to_page(
    file: str,
    models: Mapping[str, Model],
    corpus: Corpus,
    place: Place,
    propensity: Propensity | None,
    progress: Progress,
) -> Comparison:
    """Compare models and write the page about them; documents are ranked once for both."""
    from xmtc import api
    from xmtc.app.report.analysis import judge
    from xmtc.app.report.comparison import comparison_page
    from xmtc.app.report.page import describe_origin, write_page
    from xmtc.core.calibration import DEPTH

    rankings = {name: api.rank_corpus(model, corpus, DEPTH, progress) for name, model in models.items()}
    comparison = api.compare(models, corpus, place.truth.value, propensity, rankings=rankings, progress=progress)
    progress.stage("writing the report")
    judged = {name: judge(models[name], corpus, ranking, place.truth.value) for name, ranking in rankings.items()}
    facts = describe_origin(place.data, place.split, corpus, place.truth.value, comparison.propensity or {})
    write_page(file, comparison_page(comparison, judged, facts, place.data))
    return comparison


def _check_report(file: str | None) -> None:
    """Refuse a report that could not be written, before the long work."""
    from xmtc.app.report.page import check_report

    if file is not None:
        check_report(file)
