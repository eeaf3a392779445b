"""Draw plots as inline SVG with matplotlib, from numbers to markup. Independent of models.

Text stays text, and colours become CSS variables of the page, so that one drawing works in light and dark mode. Figures
are small, about as wide as a phone, so that their text is readable there.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xmtc.app.report.markup import Html, join, tag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# unusual colours, which are replaced by the page's variables in the markup
_INK, _MUTED, _GRID = "#000001", "#000002", "#000003"
_SERIES = ("#000011", "#000012", "#000013", "#000014", "#000015", "#000016")
_VARIABLES = {
    _INK: "--ink",
    _MUTED: "--muted",
    _GRID: "--line",
    **{colour: f"--series-{i}" for i, colour in enumerate(_SERIES, start=1)},
}
_MARKERS = ("o", "s", "^", "D", "v", "P")
_WIDTH, _HEIGHT = 4.9, 3.2  # inches; 72 units of the drawing each
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar sign in a name is not math
    "svg.hashsalt": "xmtc",  # the same numbers give the same bytes
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.edgecolor": _MUTED,
    "axes.labelcolor": _MUTED,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "text.color": _INK,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "legend.frameon": False,
    "legend.fontsize": 10.5,
    "legend.handlelength": 1.2,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.2,
    "lines.linewidth": 2.0,
    "lines.markersize": 5.0,
}


@dataclass(frozen=True)
class Bars:
    """One bar per group: values in percent, with intervals if known."""

    name: str
    values: Sequence[float]
    intervals: Sequence[tuple[float, float] | None]


@dataclass(frozen=True)
class Line:
    """Points connected by a line."""

    name: str
    points: Sequence[tuple[float, float]]


def plot_bars(id: str, title: str, groups: Sequence[str], bars: Sequence[Bars]) -> Html:
    """Draw groups of bars with their intervals."""
    with _figure() as figure:
        axes = figure.add_subplot()
        width = 0.8 / len(bars)
        for i, bar in enumerate(bars):
            places = [group + (i - (len(bars) - 1) / 2) * width for group in range(len(groups))]
            axes.bar(places, bar.values, 0.9 * width, color=_colour(i), label=_shown(bar.name))
            for place, value, interval in zip(places, bar.values, bar.intervals, strict=True):
                if interval is not None:
                    axes.plot([place, place], interval, color=_INK, linewidth=1.2)
                highest = value if interval is None else interval[1]
                axes.annotate(f"{value:.0f}", (place, highest), (0, 3), ha="center", fontsize=9, **_OFFSET)
        axes.set_xticks(range(len(groups)), groups)
        axes.tick_params(axis="x", length=0)
        axes.grid(False, axis="x")
        axes.set_ylabel("percent")
        axes.set_ylim(0, min(108, 1.15 * max(1.0, *axes.get_ylim())))
        _legend(figure, len(bars))
        told = [f"{bar.name}: {', '.join(_pairs(groups, bar.values))}" for bar in bars]
        return _markup(figure, id, title, "; ".join(told))


def plot_zipf(id: str, title: str, points: Sequence[tuple[int, int]], starts: Mapping[str, int]) -> Html:
    """Draw the training documents of labels by rank, both on log scales; `starts`: minimum documents of each bin."""
    with _figure() as figure:
        axes = figure.add_subplot()
        ranks, counts = zip(*points, strict=True)
        axes.plot(ranks, counts, color=_colour(0), marker="o", markersize=3.5)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(0.8, 1.6 * max(counts))
        for name, start in starts.items():  # there is room for names on the left, below the curve
            if 1 < start <= max(counts):
                axes.axhline(start, color=_MUTED, linewidth=1, linestyle=(0, (4, 3)))
            if start <= max(counts):
                axes.annotate(name, (0, start), (5, 4), xycoords=("axes fraction", "data"), **_OFFSET)
        _whole_numbers(axes.xaxis, axes.yaxis)
        axes.set_xlabel("rank of the label")
        axes.set_ylabel("training documents")
        told = f"The first label has {counts[0]:,} training documents, the last of {ranks[-1]:,} has {counts[-1]:,}."
        return _markup(figure, id, title, told)


def plot_training_curves(id: str, title: str, curves: Mapping[str, Sequence[Mapping[str, Any]]], metric: str) -> Html:
    """Draw loss and dev score by epoch, one above the other."""
    with _figure(1.15) as figure:
        panels = {"loss": figure.add_subplot(2, 1, 1), "dev": figure.add_subplot(2, 1, 2)}
        told = []
        for i, (name, epochs) in enumerate(curves.items()):
            for key, axes in panels.items():
                points = [(entry["epoch"] + 1, entry[key]) for entry in epochs if key in entry]
                if points:
                    axes.plot(*zip(*points, strict=True), color=_colour(i), marker=_MARKERS[i % 6], label=_shown(name))
            ends = [entry for entry in epochs if "dev" in entry][-1:]
            told += [f"{name}: {metric} {end['dev']:.2f} after epoch {end['epoch'] + 1}" for end in ends]
        panels["loss"].set_ylabel("loss")
        panels["dev"].set_ylabel(f"{metric} on dev")
        panels["dev"].set_xlabel("epoch")
        for axes in panels.values():
            _whole_numbers(axes.xaxis)
            axes.margins(x=0.08, y=0.15)
        if len(curves) > 1:
            _legend(figure, len(curves))
        return _markup(figure, id, title, "; ".join(told))


def plot_reliability(id: str, title: str, lines: Sequence[Line]) -> Html:
    """Draw how often labels of a given probability are correct; the diagonal is perfect."""
    with _figure(1.1) as figure:
        axes = figure.add_subplot()
        axes.plot([0, 1], [0, 1], color=_MUTED, linewidth=1, linestyle=(0, (4, 3)))
        for i, line in enumerate(line for line in lines if line.points):
            style: dict[str, Any] = {
                "color": _colour(i),
                "marker": _MARKERS[i % 6],
                "linestyle": "--" if i == 0 else "-",
            }
            axes.plot(*zip(*line.points, strict=True), label=_shown(line.name), **style)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("said: mean of the scores")
        axes.set_ylabel("found: share that is right")
        _legend(figure, len(lines))
        told = [f"{line.name}: " + ", ".join(f"{x:.2f} → {y:.2f}" for x, y in line.points) for line in lines]
        return _markup(figure, id, title, "; ".join(told))


def plot_differences(
    id: str, title: str, keys: Sequence[str], models: Mapping[str, Sequence[tuple[float, float, float]]]
) -> Html:
    """Draw each model's (difference, low, high) to the first model for each score; left of 0 is worse."""
    with _figure(0.35 + 0.09 * len(keys) * max(1, 0.6 * len(models))) as figure:
        axes = figure.add_subplot()
        axes.axvline(0, color=_INK, linewidth=1)
        step = 0.6 / len(models)
        for i, (name, found) in enumerate(models.items()):
            places = [row + (i - (len(models) - 1) / 2) * step for row in range(len(keys))]
            for place, (_, low, high) in zip(places, found, strict=True):
                axes.plot([low, high], [place, place], color=_colour(i + 1), linewidth=2)
            values = [difference for difference, _, _ in found]
            axes.plot(values, places, _MARKERS[(i + 1) % 6], color=_colour(i + 1), label=_shown(name))
        axes.set_yticks(range(len(keys)), keys)
        axes.set_ylim(len(keys) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.set_xlabel("percentage points; left: worse, right: better")
        _legend(figure, len(models))
        told = [
            f"{name}: {', '.join(f'{key} {value:+.2f}' for key, (value, _, _) in zip(keys, found, strict=True))}"
            for name, found in models.items()
        ]
        return _markup(figure, id, title, "; ".join(told))


_OFFSET: dict[str, Any] = {"textcoords": "offset points", "color": _MUTED}


@contextmanager
def _figure(height: float = 1.0) -> Iterator[Figure]:
    """Yield a figure in the page's style; `height` is relative to the usual one."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # hide messages about its caches
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        yield Figure(figsize=(_WIDTH, _HEIGHT * height), layout="constrained", facecolor="none")


def _colour(i: int) -> str:
    return _SERIES[i % len(_SERIES)]


def _fits(names: Sequence[str]) -> bool:
    """Return whether a legend of these names fits into the figure, at six units per letter."""
    return 6 * sum(map(len, names)) + 31 * len(names) < 72 * _WIDTH


def _shown(name: str) -> str:
    """Return a name that matplotlib does not hide from legends because of its first letter."""
    return f" {name}" if name.startswith("_") else name


def _legend(figure: Figure, n: int) -> None:
    handles, names = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, names, loc="outside upper left", ncols=n if _fits(names) else 1)


def _whole_numbers(*axes: Any) -> None:
    """Place ticks at whole numbers only, written in full."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

    for axis in axes:
        if axis.get_scale() == "log":
            axis.set_major_locator(LogLocator(10))
            axis.minorticks_off()
        else:
            axis.set_major_locator(MaxNLocator("auto", integer=True))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _pairs(groups: Sequence[str], values: Sequence[float]) -> list[str]:
    return [f"{group} {value:.2f}" for group, value in zip(groups, values, strict=True)]


def _markup(figure: Figure, id: str, title: str, description: str) -> Html:
    """Convert a figure to an `svg` element with unique ids, and the colours and font of the page."""
    file = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about letters missing in its font: the browser's font has them
        figure.savefig(file, format="svg", facecolor="none", metadata={"Date": None, "Creator": None})
    drawing = file.getvalue()
    box = re.search(r'viewBox="([^"]+)"', drawing)
    inner = drawing[drawing.index(">", drawing.index("<svg")) + 1 : drawing.rindex("</svg>")]
    inner = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", inner, flags=re.DOTALL)
    for colour, variable in _VARIABLES.items():
        inner = inner.replace(colour, f"var({variable})")
    inner = re.sub(r"font-family: [^;\"]*;? ?", "", inner)
    inner = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{id}-", inner)
    inner = re.sub(r">\s+<", "><", re.sub(r"\s*\n", " ", inner)).strip()
    labels = join(tag("title", title, id=f"{id}-title"), tag("desc", description, id=f"{id}-desc"))
    return tag(
        "svg",
        labels,
        Html(inner),
        viewBox=box.group(1) if box else None,
        class_="plot",
        role="img",
        aria_labelledby=f"{id}-title",
        aria_describedby=f"{id}-desc",
    )
