"""The page of `evaluate --report`: one model on one data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from xmtc import api
from xmtc.app.details import name_member
from xmtc.app.report import plots
from xmtc.app.report.analysis import (
    Judged,
    Reliability,
    draw_examples,
    judge,
    judge_scored,
    measure_reliability,
    rank_scored,
    score_labels,
)
from xmtc.app.report.examples import legend, show_example
from xmtc.app.report.markup import Content, Html, table, tag
from xmtc.app.report.page import Page, Source, describe_origin, write_page
from xmtc.app.report.sections import (
    figure,
    label_tables,
    number,
    reliability_section,
    section,
    settings_section,
    training_section,
    zipf_section,
)
from xmtc.app.scores import CLUSTER_SCORES, HEADLINES
from xmtc.core.calibration import DEPTH
from xmtc.core.corpus import Corpus
from xmtc.core.metrics import (
    BINS,
    KS,
    LABEL_DEPTH,
    UNSEEN,
    UNSEEN_RECALL,
    DocumentMetric,
    LabelMetric,
    Propensity,
    Report,
    metrics_of,
    title_of,
)
from xmtc.core.model import Model
from xmtc.core.progress import Progress
from xmtc.core.ranking import Ranking


def evaluate_to_page(
    file: str,
    name: str,
    model: Model,
    corpus: Corpus,
    source: Source,
    propensity: Propensity | None,
    progress: Progress,
) -> tuple[Report, Ranking, dict[str, Any]]:
    """Evaluate a model and write the page about it; return report, ranking, and scores of the stages before the last.

    The scores are those of `xmtc evaluate` without a page.
    """
    deep, stages = api.rank_in_stages(model, corpus, DEPTH, source.truth, progress)
    ranking = rank_scored(model, corpus, deep, progress)
    report = api.evaluate(model, corpus, source.truth, propensity, ranking=ranking, progress=progress)
    report = replace(report, model=name, data=source.data)
    progress.stage("writing the report")
    origin = describe_origin(source, corpus, report.propensity)
    judged = judge_scored(model, corpus, ranking, source.truth, progress)
    reliability = measure_reliability(judge(model, corpus, deep, source.truth))
    write_page(file, evaluation_page(report, judged, reliability, origin, stages.get("matching", ())))
    return report, ranking, stages


def evaluation_page(
    report: Report,
    judged: Judged,
    reliability: dict[str, Reliability],
    origin: dict[str, str],
    matching: Sequence[Mapping[str, Any]] = (),
) -> Page:
    """Return the page of an evaluation; `judged`: the scored ranking.

    reliability: from `measure_reliability`. matching: scores of what the members of a model in stages retrieve, from
    `api.rank_in_stages`.
    """
    model = judged.model
    sections = [
        ("headlines", "Headlines", _headlines(report)),
        ("bins", "By frequency", _bins(report)),
        ("zipf-section", "The tail", zipf_section(model.labels)),
        ("labels", "Labels", section("labels", "Best and worst labels", label_tables(*score_labels(judged)))),
        ("examples", "Examples", _examples(judged)),
        ("reliability", "Calibration", reliability_section({report.model: reliability})),
        ("training", "Training", training_section({report.model: model})),
        ("scores", "All scores", _all_scores(report)),
        ("matching", "Matching", _matching(matching)),
        ("settings", "Settings", settings_section({report.model: model}, origin)),
    ]
    about = tag(
        "p",
        f"A {model.manifest.method} model that knows {report.n_labels:,} labels, trained on "
        f"{model.manifest.n_documents:,} documents, measured on {report.n:,} documents of {report.data}.",
        class_="lead",
    )
    return Page(report.model, about, [(id, name, content) for id, name, content in sections if content is not None])


def _headlines(report: Report) -> Html:
    cards = [_card(key, report) for key in HEADLINES]
    right = report["P@5"] * 5 / 100
    told = (
        f"Its first label is right for {report['P@1']:.0f} of 100 documents; of its first five, "
        f"{right:.1f} are right on average, and they include {report['R@5']:.0f} % of the true labels."
    )
    note = "In percent. The bar is the score; the mark on it is the 95 % interval, from resampling the documents."
    return section(
        "headlines",
        "Headlines",
        tag("p", told),
        tag("ul", cards, class_="cards"),
        tag("p", note, class_="muted"),
    )


def _card(key: str, report: Report) -> Html:
    value = report[key]
    low, high = report.intervals.get(key, (value, value))
    name = key.replace("/few", ", rare labels")
    return tag(
        "li",
        tag("div", name, class_="name"),
        tag("div", f"{value:.1f}", tag("small", " %"), class_="value"),
        tag(
            "div",
            tag("i", style=f"width:{value:.2f}%"),
            tag("b", style=f"left:{low:.2f}%;width:{max(0.0, high - low):.2f}%"),
            class_="track",
            aria_hidden="true",
        ),
        tag("div", f"{low:.1f} to {high:.1f}", class_="range"),
        tag("p", title_of(key), class_="means"),
        class_="card",
    )


def _bins(report: Report) -> Html:
    title = "Scores by how many training documents a label has"
    bins = report.bins()
    groups = [bin_.title for bin_ in bins.values()]
    keys = {
        metric.name: [metric.key(LABEL_DEPTH, bin_) for bin_ in bins] for metric in metrics_of(LabelMetric, listed=True)
    }
    bars = [
        plots.Bars(score, [report[key] for key in found], [report.intervals.get(key) for key in found])
        for score, found in keys.items()
    ]
    rows: list[list[Content]] = [
        [f"{score}@{LABEL_DEPTH}", *(number(report[key], report.intervals.get(key)) for key in found)]
        for score, found in keys.items()
    ]
    rows.append(["labels in the truth", *(f"{report.labels_in_bin[bin_]:,}" for bin_ in bins)])
    unseen = report.labels_in_bin[UNSEEN]
    told = (
        "Averages over labels, not documents: every label counts the same. Coverage is the share of labels that are "
        "found at least once."
    )
    if UNSEEN in bins:
        found = number(report[UNSEEN_RECALL], report.intervals.get(UNSEEN_RECALL))
        rows.append([f"R@{LABEL_DEPTH} over all documents", *[""] * len(BINS), found])
    elif unseen:
        told += f" {unseen:,} more labels of the truth were not in the training data, and the model found none of them."
    return section(
        "bins",
        "Frequent labels and rare ones",
        tag("p", told),
        tag(
            "div",
            figure(plots.plot_bars("bins-plot", title, groups, bars), f"{title}; the lines are 95 % intervals."),
            table("In percent, with 95 % intervals", ["", *groups], rows),
            class_="pair",
        ),
    )


def _examples(judged: Judged) -> Html:
    parts: list[Content] = []
    for title, right in (("First label right", True), ("First label wrong", False)):
        drawn = draw_examples("model", judged, right)
        shown = tag("div", map(show_example, drawn), class_="examples")
        parts += [tag("h3", title), shown if drawn else tag("p", "There are none.", class_="muted")]
    return section("examples", "Documents drawn at random", legend(), parts)


def _matching(members: Sequence[Mapping[str, Any]]) -> Html | None:
    if not members:
        return None
    told = (
        "Only the labels of clusters that the matcher retrieves for a document are ranked; other labels are lost. "
        "A cluster is right if it contains one of the document's labels."
    )
    rows: list[list[Content]] = [
        [
            name_member(member),
            *(number(member[key]) for key in (*CLUSTER_SCORES, "recall")),
            f"{member['beam']:,} of {member['clusters']:,}",
        ]
        for member in members
    ]
    columns = ["member", *CLUSTER_SCORES, "true labels in the clusters", "clusters"]
    return section("matching", "Matching clusters", tag("p", told), table("In percent", columns, rows))


def _all_scores(report: Report) -> Html:
    rows = [
        [metric.name, *(number(report[key], report.intervals.get(key)) for key in map(metric.key, KS))]
        for metric in metrics_of(DocumentMetric, listed=True)
    ]
    told = "PSP and PSnDCG weight each label by its inverse propensity: rare labels count more."
    scores = table("In percent, with 95 % intervals", ["", *(f"@{k}" for k in KS)], rows)
    return section("scores", "All scores by document", tag("p", told), scores)
