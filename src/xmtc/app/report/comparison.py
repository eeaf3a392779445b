"""The page of `compare --report`: several models on one data set, compared with the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from xmtc import api
from xmtc.app.report import plots
from xmtc.app.report.analysis import (
    Judged,
    Reliability,
    draw_differences,
    judge,
    judge_scored,
    measure_reliability,
    rank_scored,
    score_labels,
)
from xmtc.app.report.examples import show_difference
from xmtc.app.report.markup import Content, Html, details, join, table, tag
from xmtc.app.report.page import Page, Source, describe_origin, write_page
from xmtc.app.report.sections import (
    figure,
    label_tables,
    reliability_section,
    section,
    settings_section,
    training_section,
    zipf_section,
)
from xmtc.app.scores import DRAWN, compared_label_metrics, listed_keys, relative, verdict
from xmtc.core.calibration import DEPTH
from xmtc.core.corpus import Corpus
from xmtc.core.metrics import (
    BINS,
    LABEL_DEPTH,
    Comparison,
    Difference,
    LabelMetric,
    Propensity,
    metrics_of,
)
from xmtc.core.model import Model
from xmtc.core.progress import Progress


def compare_to_page(
    file: str,
    models: Mapping[str, Model],
    corpus: Corpus,
    source: Source,
    propensity: Propensity | None,
    progress: Progress,
    *,
    all_pairs: bool = False,
) -> Comparison:
    """Compare models and write the page about them; the scores are those of `xmtc compare` without a page."""
    deep = {name: api.rank_corpus(model, corpus, DEPTH, progress) for name, model in models.items()}
    rankings = {name: rank_scored(model, corpus, deep[name], progress) for name, model in models.items()}
    comparison = api.compare(
        models, corpus, source.truth, propensity, all_pairs=all_pairs, rankings=rankings, progress=progress
    )
    progress.stage("writing the report")
    judged = {name: judge_scored(models[name], corpus, rankings[name], source.truth, progress) for name in models}
    reliability = {name: measure_reliability(judge(models[name], corpus, deep[name], source.truth)) for name in models}
    origin = describe_origin(source, corpus, comparison.propensity or {})
    write_page(file, comparison_page(comparison, judged, reliability, origin, source.data))
    return comparison


def comparison_page(
    comparison: Comparison,
    judged: Mapping[str, Judged],
    reliability: Mapping[str, dict[str, Reliability]],
    origin: dict[str, str],
    data: str,
) -> Page:
    """Return the page of a comparison; `judged`: the scored rankings by model; reliability: by model."""
    names = short_names(comparison.models)
    shown = {names[model]: one for model, one in judged.items()}
    models = {name: one.model for name, one in shown.items()}
    first = next(iter(shown.values()))
    sections = [
        ("scores", "Side by side", _scores(comparison, names)),
        ("differences", "Differences", _differences(comparison, names)),
        ("bins", "By frequency", _bins(comparison, names)),
        ("examples", "Examples", _examples(shown)),
        (
            "reliability",
            "Calibration",
            reliability_section({names[model]: measured for model, measured in reliability.items()}),
        ),
        ("labels", "Labels", _labels(shown)),
        ("training", "Training", training_section(models)),
        ("zipf-section", "The tail", zipf_section(first.model.labels)),
        ("settings", "Settings", settings_section(models, origin)),
    ]
    about = [
        tag("p", f"{len(models)} models on {comparison.n:,} documents of {data}.", class_="lead"),
        tag(
            "dl",
            [[tag("dt", names[model]), tag("dd", _described(model, judged[model]))] for model in comparison.models],
        ),
    ]
    kept = [(id, name, content) for id, name, content in sections if content is not None]
    return Page(f"{' · '.join(models)}", about, kept)


def short_names(folders: tuple[str, ...]) -> dict[str, str]:
    """Return a short name for each folder: its last part, and earlier parts if needed to tell folders apart."""
    for parts in range(1, 1 + max(len(Path(folder).parts) for folder in folders)):
        names = {folder: "/".join(Path(folder).parts[-parts:]) for folder in folders}
        if len(set(names.values())) == len(folders) and all(names.values()):
            return names
    return {folder: folder for folder in folders}


def _described(folder: str, judged: Judged) -> str:
    manifest = judged.model.manifest
    return f"{manifest.method}, {manifest.n_labels:,} labels, {manifest.n_documents:,} training documents ({folder})"


def _scores(comparison: Comparison, names: Mapping[str, str]) -> Html:
    first, *others = comparison.models
    rows: list[list[Content]] = []
    listed = listed_keys(comparison.values.values())
    for key in listed:
        cells: list[Content] = [f"{comparison.values[first][key]:.2f}"]
        for model in others:
            found = comparison.differences[model][key]
            cells.append([f"{comparison.values[model][key]:.2f} ", _verdict(found)])
        rows.append([key, *cells])
    won = [
        _count_verdicts(names[model], names[first], [comparison.differences[model][key] for key in listed])
        for model in others
    ]
    caption = f"In percent; the words say whether the difference to {names[first]} is significant"
    scores = table(caption, ["", *(names[model] for model in comparison.models)], rows)
    return section("scores", "Side by side", [tag("p", line) for line in won], scores)


def _count_verdicts(name: str, first: str, found: Sequence[Difference]) -> str:
    words = Counter(map(verdict, found))
    return (
        f"{name} is better than {first} in {words['better']} of these {len(found)} scores, worse in {words['worse']}, "
        f"and undecided in {words['undecided']}."
    )


def _differences(comparison: Comparison, names: Mapping[str, str]) -> Html:
    first, *others = comparison.models
    title = f"Differences to {names[first]}, with 95 % intervals"
    drawn = {names[model]: [_values(comparison.differences[model][key]) for key in DRAWN] for model in others}
    tables, listed = [], listed_keys(comparison.values.values())
    for model, other, differences in comparison.all_differences():
        found = {key: differences[key] for key in listed}
        rows = [
            [key, f"{one.difference:+.2f}", f"[{one.low:.2f}, {one.high:.2f}]", relative(one), _verdict(one)]
            for key, one in found.items()
        ]
        columns = ["", "difference", "95 % interval", "relative", ""]
        tables.append(table(f"{names[model]} minus {names[other]}, in percentage points", columns, rows))
    told = (
        "From resampling the documents 1,000 times, the same ones for all models. If an interval contains 0, the "
        "difference may be chance."
    )
    plot = plots.plot_differences("differences-plot", title, DRAWN, drawn)
    return section(
        "differences",
        "Is it more than chance?",
        tag("p", told),
        figure(plot, f"{title}."),
        details("All differences", tables),
    )


def _bins(comparison: Comparison, names: Mapping[str, str]) -> Html:
    groups = [bin_.title for bin_ in BINS.values()]
    drawn = []
    for metric in compared_label_metrics():
        keys = [metric.key(LABEL_DEPTH, bin_) for bin_ in BINS]
        title = f"{metric.name}@{LABEL_DEPTH} by how many training documents a label has"
        bars = [
            plots.Bars(names[model], [comparison.values[model][key] for key in keys], [None] * len(keys))
            for model in comparison.models
        ]
        drawn.append(figure(plots.plot_bars(f"bins-{metric.name}", title, groups, bars), f"{title}, in percent."))
    rows: list[list[Content]] = [
        [
            f"{metric.name}@{LABEL_DEPTH}, {bin_.title}",
            *(f"{comparison.values[model][metric.key(LABEL_DEPTH, bin_.name)]:.2f}" for model in names),
        ]
        for bin_ in BINS.values()
        for metric in metrics_of(LabelMetric, listed=True)
    ]
    told = "Averages over labels, not documents: every label counts the same. Coverage is the share of labels that are "
    return section(
        "bins",
        "Frequent labels and rare ones",
        tag("p", told + "found at least once."),
        tag("div", drawn, class_="pair"),
        details("Precision and recall too", table("In percent", ["", *names.values()], rows)),
    )


def _examples(judged: Mapping[str, Judged]) -> Html:
    drawn = draw_differences(judged)
    told = (
        "Drawn at random from documents whose first label is right in some models only. Labels with ✓ are right."
        if drawn
        else "There are none: all models have the same first labels right."
    )
    shown = tag("div", map(show_difference, drawn), class_="examples")
    return section("examples", "Documents on which the models differ", tag("p", told, class_="muted"), shown)


def _labels(judged: Mapping[str, Judged]) -> Html:
    parts = [details(name, label_tables(*score_labels(one))) for name, one in judged.items()]
    return section("labels", "Best and worst labels", join(*parts))


def _verdict(found: Difference) -> Html:
    word = verdict(found)
    return tag("span", word, class_="muted" if word == "undecided" else word)


def _values(found: Difference) -> tuple[float, float, float]:
    return found.difference, found.low, found.high
