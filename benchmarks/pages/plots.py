"""Accuracy against cost as SVG: a panel per set, a mark per system. Systems enter, drawings leave.

One drawing serves light and dark: its colours are CSS variables that follow the reader's choice, on a ground of its
own. Its first lines hold a hash of what it shows, by which `python -m benchmarks.tables --check` sees a stale drawing
whatever version of matplotlib drew it.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.pages.systems import ENSEMBLE, LINEAR, NEURAL, PRESET, RIVAL, System, best, headline, names

TRAINING, LATENCY = "training.svg", "latency.svg"
_KINDS = {
    PRESET: ("xmtc preset", "*", "#000011"),
    ENSEMBLE: ("xmtc ensemble", "D", "#000012"),
    NEURAL: ("xmtc neural", "s", "#000013"),
    LINEAR: ("xmtc linear", "o", "#000014"),
    RIVAL: ("rival", "X", "#000015"),
}
_INK, _MUTED, _GRID, _GROUND = "#000001", "#000002", "#000003", "#000004"
_COLOURS = {  # stands for a variable in the drawing → its name, in light, in dark
    _INK: ("ink", "#1f2328", "#e6edf3"),
    _MUTED: ("muted", "#59636e", "#9198a1"),
    _GRID: ("grid", "#d1d9e0", "#3d444d"),
    _GROUND: ("ground", "#ffffff", "#0d1117"),
    "#000011": ("preset", "#8250df", "#bc8cff"),
    "#000012": ("ensemble", "#0969da", "#58a6ff"),
    "#000013": ("neural", "#1a7f37", "#3fb950"),
    "#000014": ("linear", "#0e7490", "#39c5cf"),
    "#000015": ("rival", "#bc4c00", "#f0883e"),
}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "xmtc",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.edgecolor": _MUTED,
    "axes.labelcolor": _INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": _GRID,
    "text.color": _INK,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "legend.frameon": False,
}


def describe() -> dict[str, dict[str, Any]]:
    """Return what each drawing shows: the words of its axis, and of each set the points."""
    axes: dict[str, tuple[str, Callable[[System], float | None]]] = {
        TRAINING: ("training, seconds", lambda system: system.train_s),
        LATENCY: ("one document, milliseconds (p50)", lambda system: system.one_ms),
    }
    return {
        file: {"x": words, "sets": {name: _points(headline(name), x) for name in names()}}
        for file, (words, x) in axes.items()
    }


def fingerprint(shown: dict[str, Any]) -> str:
    """Return the line of a drawing by which it is known to show this."""
    return f"<!-- shows {hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()} -->"


def draw(shown: dict[str, Any]) -> str:
    """Return a drawing."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        sets = {name: points for name, points in shown["sets"].items() if len(points) > 1}
        columns = 2
        rows = max(1, -(-len(sets) // columns))
        figure = Figure(figsize=(9, 0.5 + 3.0 * rows), facecolor=_GROUND)
        panels = figure.subplots(rows, columns, squeeze=False).flatten()
        for panel, (name, points) in zip(panels, sets.items(), strict=False):
            _draw_panel(panel, name, points, shown["x"])
        for panel in panels[len(sets) :]:
            panel.set_visible(False)
        kinds = {point["kind"] for points in sets.values() for point in points}
        handles = [
            matplotlib.lines.Line2D([], [], linestyle="", marker=marker, color=colour, label=label)
            for kind, (label, marker, colour) in _KINDS.items()
            if kind in kinds
        ]
        figure.legend(handles=handles, loc="upper center", ncols=len(_KINDS))
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / figure.get_figheight()))
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return _coloured(written.getvalue(), fingerprint(shown))


def _points(systems: Sequence[System], x: Callable[[System], float | None]) -> list[dict[str, Any]]:
    """What is drawn of each system; those that are best among ours and among rivals have their names."""
    placed = [system for system in systems if x(system)]
    named = [best([one for one in placed if one.ours is ours]) for ours in (True, False)]
    return [
        {
            "x": float(f"{x(system):.4g}"),
            "y": round(system.metrics["P@5"], 2),
            "kind": system.kind,
            "name": system.title.partition(" on ")[0].partition(" (")[0] if system in named else "",
        }
        for system in placed
    ]


def _draw_panel(panel: Any, name: str, points: Sequence[dict[str, Any]], words: str) -> None:
    for point in points:
        _, marker, colour = _KINDS[point["kind"]]
        size = 90 if marker == "*" else 42
        panel.scatter(point["x"], point["y"], s=size, marker=marker, color=colour, linewidths=0)
    panel.set_xscale("log")
    panel.margins(0.12, 0.16)
    left, right = panel.get_xlim()
    for point in points:
        late = point["x"] > (left * right) ** 0.5  # right of the middle, in logarithms
        panel.annotate(
            point["name"],
            (point["x"], point["y"]),
            xytext=(-7 if late else 7, -13 if point["kind"] == RIVAL else 6),  # two names at one height stay apart
            textcoords="offset points",
            ha="right" if late else "left",
            fontsize=9,
        )
    panel.set_title(name, loc="left", fontweight="bold", fontsize=11)
    panel.set_xlabel(words)
    panel.set_ylabel("P@5")


def _coloured(svg: str, known: str) -> str:
    """The drawing with variables for colours, which follow light and dark."""
    for number, (variable, _, _) in _COLOURS.items():
        svg = svg.replace(number, f"var(--{variable})")
    light, dark = ("".join(f"--{name}:{pair[i]};" for name, *pair in _COLOURS.values()) for i in (0, 1))
    style = f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"(<svg[^>]*>)", rf"\1\n{known}\n{style}", svg, count=1)
    return re.sub(r"[ \t]+\n", "\n", svg)
