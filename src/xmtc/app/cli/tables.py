"""Print tables of evaluations and comparisons, and facts about a saved model. Computes no scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from xmtc.app.cli.console import duration, megabytes, out
from xmtc.app.details import cascade_report, latency_report, leaderboard, left_out, member_names
from xmtc.app.scores import describe_propensity, listed_keys, relative, verdict
from xmtc.core.metrics import (
    UNSEEN,
    Comparison,
    Difference,
    Report,
)
from xmtc.core.model import Model

_STYLES = {"better": "green", "worse": "red", "undecided": "dim"}
_SIGNS = {"better": "+", "worse": "−", "undecided": "≈"}


def print_saved(model: Model, folder: str, seconds: float | None = None) -> None:
    """Print where a model is stored and how large it is."""
    size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    sizes = f"{megabytes(size)}, {model.labels.n_labels:,} labels, {model.manifest.n_documents:,} documents"
    print(f"{folder}: {model.manifest.method}, {sizes}" + (f", {duration(seconds)}" if seconds is not None else ""))


def print_cascade(model: Model) -> None:
    """Print a cascade's scores by the share of documents for its expensive model; nothing for other models."""
    report = cascade_report(model)
    if not report:
        return
    table = Table(box=box.SIMPLE, title="by share of documents", title_justify="left", title_style="bold")
    for heading in ("share", *report[0]["scores"]):
        table.add_column(heading, justify="right")
    chosen = model.manifest.config["share"]
    for point in report:
        cells = (f"{point['share']:.0%}", *(f"{score:.2f}" for score in point["scores"].values()))
        table.add_row(*cells, style="bold" if point["share"] == chosen else None)
    out().print(table)


def print_leaderboard(model: Model, folder: str, seconds: Mapping[str, float] | None = None) -> None:
    """Print the scores and times of each member of a learned ensemble; nothing for other models."""
    board = leaderboard(model)
    if not board:
        return
    keys = list(board[0]["scores"])
    timed = ["time"] if seconds else []
    measured = ["ms"] if "milliseconds" in board[0] else []
    of_members = len(board) - 1 == len(member_names(model))  # the leaderboard of a cascade lists its parts
    table = Table(box=box.SIMPLE, title="leaderboard", title_justify="left", title_style="bold")
    table.add_column("model")
    for heading in (*keys, *measured, "share", "size", *timed):
        table.add_column(heading, justify="right")
    for place, line in enumerate(board):
        part = Path(folder) / f"member-{place - 1}" if place else Path(folder)
        size = sum(path.stat().st_size for path in part.rglob("*") if path.is_file())
        taken = sum(seconds.values()) if seconds and not place else (seconds or {}).get(line["name"])
        table.add_row(
            Text(line["name"]),
            *(f"{line['scores'][key]:.2f}" for key in keys),
            *(f"{line['milliseconds']:.2f}" for _ in measured),
            f"{line['share']:.0%}" if "share" in line else "",
            megabytes(size) if of_members or not place else "",
            *([] if not timed else ["" if taken is None else duration(taken)]),
        )
    out().print(table)
    out().print(
        Text(
            "scores on documents that trained the ensemble, ranked by models that were not trained on them",
            style="dim",
        )
    )
    for reason in left_out(model):
        out().print(Text(f"left out: {reason}"), soft_wrap=True)


def print_latency(model: Model) -> None:
    """Print the candidates for a latency limit, with the chosen model in bold; nothing for other models."""
    report = latency_report(model)
    if report is None:
        return
    limit, options = report
    title = f"one document within {limit:g} ms"
    table = Table(box=box.SIMPLE, title=title, title_justify="left", title_style="bold")
    table.add_column("model")
    keys = list(options[0]["scores"])
    for heading in ("ms", *keys):
        table.add_column(heading, justify="right")
    kept = False
    for option in options:
        chosen = option.get("chosen", False)
        kept = kept or (chosen and option["milliseconds"] <= limit)
        cells = (f"{option['milliseconds']:.2f}", *(f"{option['scores'][key]:.2f}" for key in keys))
        table.add_row(Text(f"{option['name']}{' *' if chosen else ''}"), *cells, style="bold" if chosen else None)
    out().print(table)
    why = "* chosen: the best that is fast enough" if kept else "* chosen: the fastest, because none is fast enough"
    out().print(Text(f"{why}; on one thread of the training machine; median, or mean of a cascade", style="dim"))


def print_written(file: str | None, what: str = "report") -> None:
    """Print the path of a report or another file, if one was written."""
    if file is not None:
        print(f"{what}: {file}")


def print_report(report: Report) -> None:
    """Print an evaluation: scores by depth, scores by label frequency, and the data."""
    console = out()
    console.print(Text(f"{report.model} on {report.data}: {report.n:,} documents, {report.n_labels:,} labels"))
    for grid in report.display_grids():
        table = _empty_table(grid.title, list(grid.columns))
        for name, *cells in grid.rows:
            if name == "labels":
                table.add_section()
            table.add_row(name, *map(_cell, cells))
        console.print(table)
    console.print(Text(f"{', '.join(report.bins())}: labels of the truth by their training documents", style="dim"))
    unseen = report.labels_in_bin[UNSEEN]
    truth = {
        "all": f"all labels count; {unseen:,} of them were not in the training data",
        "known": "only labels of the training data count",
    }[report.truth]
    console.print(Text(f"truth {report.truth}: {truth}"))
    console.print(Text(f"propensity {describe_propensity(report.propensity)}"))
    console.print(Text("in percent; in brackets 95 % intervals, from resampling the documents", style="dim"))


def print_spread(folders: Sequence[str], data: str, report: Report, spread: Mapping[str, tuple[float, float]]) -> None:
    """Print the mean and the standard deviation of each score over models with different seeds."""
    console = out()
    console.print(Text(f"{', '.join(folders)} on {data}: {report.n:,} documents, truth {report.truth}"))
    table = _empty_table("percent", ["mean", "standard deviation"])
    for key in listed_keys([report.metrics]):
        mean, deviation = spread[key]
        table.add_row(key, f"{mean:.2f}", f"{deviation:.2f}")
    console.print(table)


def print_comparison(comparison: Comparison, truth: str, data: str) -> None:
    """Print models side by side, then their differences to the first, then all other pairs if there are any."""
    console = out()
    console.print(Text(f"{len(comparison.models)} models on {data}: {comparison.n:,} documents, truth {truth}"))
    for i, model in enumerate(comparison.models, start=1):
        console.print(Text(f"  [{i}] {model}"))
    values = _empty_table("percent", [f"[{i}]" for i in range(1, len(comparison.models) + 1)])
    listed = listed_keys(comparison.values.values())
    for key in listed:
        values.add_row(key, *(f"{comparison.values[model][key]:.2f}" for model in comparison.models))
    if len(comparison.models) > 2:
        console.print(values)
    number = {model: f"[{i}]" for i, model in enumerate(comparison.models, start=1)}
    for model, other, differences in comparison.all_differences():
        heads = [number[other], number[model], f"{number[model]} − {number[other]}", "relative", ""]
        table = _empty_table("percent", heads)
        for key in listed:
            pair = (f"{comparison.values[name][key]:.2f}" for name in (other, model))
            table.add_row(key, *pair, *_difference_cells(differences[key]))
        console.print(table)
    if comparison.propensity is not None:
        console.print(Text(f"propensity {describe_propensity(comparison.propensity)}"))
    console.print(Text("in brackets: 95 % intervals of the difference, from resampling the documents", style="dim"))


def print_side_by_side(comparison: Comparison) -> None:
    """Print models in one table, with the paired-bootstrap result for each difference to the first."""
    console = out()
    console.print(Text(f"{comparison.n:,} documents, in percent"))
    for i, model in enumerate(comparison.models, start=1):
        console.print(Text(f"  [{i}] {model}"))
    first, *others = comparison.models
    table = _empty_table("", [f"[{i}]" for i in range(1, len(comparison.models) + 1)])
    for key in listed_keys(comparison.values.values()):
        cells = [
            Text(f"{comparison.values[model][key]:.2f} ").append(_sign(comparison.differences[model][key]))
            for model in others
        ]
        table.add_row(key, f"{comparison.values[first][key]:.2f}", *cells)
    console.print(table)
    console.print(Text("+ better than [1], − worse, ≈ undecided: 95 % intervals of a paired bootstrap", style="dim"))


def _sign(found: Difference) -> Text:
    word = verdict(found)
    return Text(_SIGNS[word], style=_STYLES[word])


def _difference_cells(found: Difference) -> list[str | Text]:
    word = verdict(found)
    difference = Text(f"{found.difference:+.2f}").append(f" [{found.low:.2f}, {found.high:.2f}]", style="dim")
    return [difference, relative(found), Text(word, style=_STYLES[word])]


def _cell(text: str) -> Text:
    """Return a score with its interval dimmed."""
    score, bracket, interval = text.partition(" [")
    return Text(score).append(bracket + interval, style="dim")


def _empty_table(title: str, columns: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(Text(title), no_wrap=True)
    for column in columns:
        table.add_column(Text(column), justify="right")
    return table
