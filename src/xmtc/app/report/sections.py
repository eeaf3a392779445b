"""The sections of every report: labels by frequency, their distribution, probabilities, training, settings.

The input is measurements, the output is markup. Computes no scores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from xmtc.app.details import Epochs, member_names, training_curves
from xmtc.app.report import plots
from xmtc.app.report.analysis import LabelScore, Reliability
from xmtc.app.report.markup import Content, Html, details, join, table, tag
from xmtc.app.text import flat_settings
from xmtc.core.labels import LabelSet
from xmtc.core.metrics import BINS
from xmtc.core.model import Model
from xmtc.data import zipf_points


def section(id: str, title: str, *content: Content) -> Html:
    """Return a section with its heading."""
    return tag("section", tag("h2", title, id=f"{id}-heading"), *content, id=id, aria_labelledby=f"{id}-heading")


def figure(plot: Html, caption: Content) -> Html:
    """Return a plot with its caption."""
    return tag("figure", plot, tag("figcaption", caption))


def number(value: float, interval: Sequence[float] | None = None) -> Html:
    """Return a percentage with its interval, as shown in tables."""
    if interval is None:
        return join(f"{value:.2f}")
    return join(f"{value:.2f} ", tag("small", f"[{interval[0]:.1f}, {interval[1]:.1f}]", class_="interval"))


def breakable(name: str) -> Html:
    """Return a long name that may be wrapped after a dot or similar, but not within a word."""
    parts = re.split(r"(?<=[._/-])", name)
    return join(*(part if i == 0 else [Html("<wbr>"), part] for i, part in enumerate(parts)))


def zipf_section(labels: LabelSet) -> Html:
    """Show how unevenly the training documents are distributed over the labels."""
    counts = np.sort(labels.counts[labels.counts > 0])[::-1]
    few = BINS["medium"].first - 1
    rare = int(np.count_nonzero(counts <= few))
    half = 1 + int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    told = (
        f"Of the {len(counts):,} labels in training, {rare:,} have {few} documents or fewer; "
        f"the {half:,} most frequent make up half of all tags."
    )
    title = "Training documents of each label, most frequent first"
    starts = {bin_.name: bin_.first for bin_ in BINS.values()}
    plot = plots.plot_zipf("zipf", title, zipf_points(counts), starts)
    return section(
        "zipf-section", "A long tail", tag("p", told), figure(plot, f"{title}; both scales are logarithmic.")
    )


def reliability_section(found: Mapping[str, Mapping[str, Reliability]]) -> Html:
    """Show how well scores and calibrated probabilities match how often a label is correct; by model, then by kind."""
    several = len(found) > 1
    content: list[Content] = []
    rows: list[list[Content]] = []
    for i, (model, kinds) in enumerate((model, kinds) for model, kinds in found.items() if kinds):
        title = (f"{model}: h" if several else "H") + "ow often labels are right, by how sure the model is"
        lines = [plots.Line(f"{name} (ECE {kind.ece:.3f})", kind.points) for name, kind in kinds.items()]
        content.append(figure(plots.plot_reliability(f"reliability-{i}", title, lines), f"{title}."))
        for name, kind in kinds.items():
            bins = [f"{kind.by_bin[bin_]:.3f}" if bin_ in kind.by_bin else "–" for bin_ in BINS]
            rows.append([f"{model}: {name}" if several else name, f"{kind.ece:.3f}", *bins])
    calibrated = [model for model, kinds in found.items() if len(kinds) > 1]
    told = (
        "Labels with a score of 0.8 should be right in 80 % of cases, on the dashed line. ECE is the "
        "mean distance from it, over 15 groups of equal size of each document's first 20 labels; each point here is a "
        "tenth of the scale."
    )
    missing = None
    if len(calibrated) < len(found):
        which = "Those without a line “calibrated”" if calibrated else "Scores here"
        missing = tag(
            "p", f"{which} are not calibrated yet: ", tag("code", "xmtc calibrate MODEL DATA"), " calibrates them."
        )
    names = [bin_.title for bin_ in BINS.values()]
    errors = table("Expected calibration error, by how frequent labels are in training", ["", "all", *names], rows)
    return section(
        "reliability", "Can the scores be trusted?", tag("p", told), missing, tag("div", content, class_="pair"), errors
    )


def training_section(models: Mapping[str, Model]) -> Html | None:
    """Show loss and dev score by epoch, for models that were trained in epochs."""
    curves: dict[str, Epochs] = {}
    metrics = set()
    for name, model in models.items():
        for method, epochs in training_curves(model).items():
            if epochs not in curves.values():  # a model and an ensemble that contains it have the same curves
                curves[f"{name}: {method}" if len(models) > 1 else method] = epochs
                metrics.add(model.manifest.config.get("train", {}).get("metric", "score"))
    if not curves:
        return None
    metric = metrics.pop() if len(metrics) == 1 else "score"
    title = "Loss in training and score on held-out documents, by epoch"
    rows = [
        [name, str(entry["epoch"] + 1), f"{entry['loss']:.5f}", f"{entry['dev']:.2f}" if "dev" in entry else "–"]
        for name, epochs in curves.items()
        for entry in epochs
    ]
    values = table(title, ["model", "epoch", "loss", f"{metric} on dev"], rows)
    if max(map(len, curves.values())) < 2:  # one point is not a curve
        return section("training", "Training", values)
    drawn = figure(plots.plot_training_curves("curves", title, curves, metric), f"{title}. The best epoch is kept.")
    return section("training", "Training", drawn, details("The same as a table", values))


def label_tables(best: Sequence[LabelScore], worst: Sequence[LabelScore], least: int) -> Html:
    """List the labels with the best and worst scores."""
    documents = "document" if least == 1 else "documents"
    told = f"Labels with {least} test {documents} or more, by F among the first five labels of each document; "
    told += "train and test are the documents that have them."
    columns = ["", "train", "test", "P", "R", "F"]
    tables = [
        table(f"{title}, in percent", columns, map(_label_row, rows))
        for title, rows in (("Found best", best), ("Found worst", worst))
        if rows
    ]
    return join(tag("p", told), tag("div", tables, class_="pair"))


def settings_section(models: Mapping[str, Model], origin: Mapping[str, str]) -> Html:
    """Show what was measured, with which code, and how the models were trained."""
    known = tag("dl", [[tag("dt", name), tag("dd", value)] for name, value in origin.items()])
    trainings = {name: _training(model) for name, model in models.items()}
    # in the same order for a model just trained and a loaded one
    settings = {name: dict(sorted(flat_settings(model.manifest.config))) for name, model in models.items()}
    rows = [
        [key, *(values.get(key, "–") for values in found.values())]
        for found in (trainings, settings)
        for key in dict.fromkeys(key for values in found.values() for key in values)
    ]
    caption = "Settings, in the form of --set"
    trained = details(
        "How the model was trained" if len(models) == 1 else "How the models were trained",
        table(caption, ["", *models], rows, class_="plain"),
    )
    return section("settings", "Data, settings and version", known, trained)


def _training(model: Model) -> dict[str, str]:
    manifest = model.manifest
    told = {
        "method": manifest.method,
        "training documents": f"{manifest.n_documents:,}",
        "labels": f"{manifest.n_labels:,}",
        "seed": str(manifest.seed),
        "training data": f"sha256 {manifest.data}",
    }
    if members := member_names(model):
        told["members"] = "; ".join(members)
    return told


def _label_row(row: LabelScore) -> list[Content]:
    id = None if row.name == row.label else [" ", tag("small", breakable(row.label))]
    name = [breakable(row.name), id]
    return [
        name,
        f"{row.trained:,}",
        f"{row.tested:,}",
        *(f"{value:.0f}" for value in (row.precision, row.recall, row.f)),
    ]
