"""Print what `xmtc inspect` shows of a data set or a model. Formats results; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from xmtc.app.cli.console import megabytes, one_line, out
from xmtc.app.cli.tables import print_cascade, print_latency, print_leaderboard
from xmtc.app.details import details_json
from xmtc.app.text import flat_settings
from xmtc.core.calibration import calibration_of
from xmtc.core.metrics import BINS
from xmtc.core.model import Model
from xmtc.data import Description, Hierarchy, SplitFigures, VocabularyFigures

_FIGURES = {  # field of a split → its title
    "documents": "documents",
    "labels": "labels that occur",
    "named_labels": "labels with a name",
    "labels_per_document": "labels per document",
    "words_per_document": "words per document",
    "features": "features",
    "unseen_labels": "labels unseen in train",
    "texts_in_train": "texts that are also in train",
    "near_train": "texts similar to one in train",
    "languages": "languages",
    "duplicate_texts": "repeated texts",
    "duplicate_ids": "repeated ids",
    "empty_texts": "empty texts",
    "without_labels": "documents without labels",
}
_PLOT_HEIGHT, _PLOT_WIDTH = 8, 40  # characters


def print_data(path: str, found: Description) -> None:
    """Print the statistics of a data set."""
    console = out()
    console.print(Text(f"{path}: layout {found.layout}", style="bold"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for split in found.splits:
        table.add_column(Text(split), justify="right")
    for field, name in _FIGURES.items():
        cells = [_figure(figures, field) for figures in found.splits.values()]
        if any(cells):
            table.add_row(name, *cells)
    console.print(table)
    console.print(f"labels by documents: {', '.join(f'{n:,} {BINS[bin_].title}' for bin_, n in found.bins.items())}")
    if found.vocabulary:
        console.print(f"vocabulary: {found.vocabulary:,} concepts; it describes {found.covered:.0%} of the labels")
    console.print(_hierarchy(found.hierarchy))
    console.print("\ndocuments of a label by its rank, both on log scales")
    for line in plot_zipf(found.zipf):
        console.print(Text(line))


def print_vocabulary(path: str, found: VocabularyFigures) -> None:
    """Print the statistics of a vocabulary without documents."""
    console = out()
    console.print(Text(f"{path}: a vocabulary", style="bold"))
    figures = {
        "concepts": found.concepts,
        "with a name": found.named,
        "with other names": found.alternatives,
        "with a description": found.descriptions,
        "retired": found.retired,
    }
    _print_pairs(console, {name: f"{count:,}" for name, count in figures.items()})
    console.print(_hierarchy(found.hierarchy))


def _hierarchy(tree: Hierarchy | None) -> str:
    if tree is None:
        return "hierarchy: none"
    return f"hierarchy: {tree.concepts:,} concepts, {tree.roots:,} roots, {tree.depth} levels"


def plot_zipf(points: Sequence[tuple[int, int]]) -> list[str]:
    """Draw (rank, documents) points as lines of text, both on log scales; a straight line is Zipf's law."""
    last, top = points[-1][0], max(count for _, count in points)
    grid = [[" "] * _PLOT_WIDTH for _ in range(_PLOT_HEIGHT)]
    for rank, count in points:
        grid[_place(count, top, _PLOT_HEIGHT)][_place(rank, last, _PLOT_WIDTH)] = "•"
    width = len(f"{top:,}")
    scales = [f"{top:,}", *[""] * (_PLOT_HEIGHT - 2), "1"]
    return [
        *(f"  {scale:>{width}} │{''.join(line).rstrip()}" for scale, line in zip(scales, reversed(grid), strict=True)),
        f"  {'':{width}} └{'─' * _PLOT_WIDTH}",
        f"  {'':{width}}  1{last:>{_PLOT_WIDTH - 1},}",
    ]


def _place(value: int, largest: int, cells: int) -> int:
    """Return the cell of a value on a log scale from 1 to the largest."""
    return round((cells - 1) * log(value) / log(largest)) if largest > 1 else 0


def _figure(figures: SplitFigures, field: str) -> str:
    value: float | dict[str, float] | None = vars(figures)[field]
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name} {share:.0%}" for name, share in list(value.items())[:3] if share >= 0.01)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def print_model(path: str, model: Model, files: Mapping[str, int]) -> None:
    """Print how a model was trained, and its files."""
    console = out()
    manifest = model.manifest
    console.print(Text(f"{path}: a {manifest.method} model", style="bold"))
    summary = {
        "documents": f"{manifest.n_documents:,} in training",
        "labels": f"{manifest.n_labels:,}, and {len(model.labels) - manifest.n_labels:,} other concepts",
        "seed": str(manifest.seed),
        "data": f"sha256 {manifest.data}",
        "calibrated": _calibrated(model),
    }
    _print_pairs(console, summary)
    console.print("\nsettings, in the form of --set")
    _print_pairs(console, dict(flat_settings(manifest.config)))
    console.print("\ndetails")
    hidden = ("leaderboard", "left_out", "cascade", "latency", "latency_limit")
    shown = {name: value for name, value in details_json(model).items() if name not in hidden}
    _print_pairs(console, dict(flat_settings(shown)))
    print_leaderboard(model, path)
    print_cascade(model)
    print_latency(model)
    console.print(f"\nfiles, {megabytes(sum(files.values()))}")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2))
    table.add_column(justify="right")
    table.add_column()
    for name, size in files.items():
        table.add_row(f"  {size:,}", Text(name))
    console.print(table)


def _calibrated(model: Model) -> str:
    found = calibration_of(model)
    if found is None:
        return "no; `xmtc calibrate` adds probabilities"
    return f"{found.method}, on {found.n_documents:,} documents {found.source}"


def _print_pairs(console: Console, pairs: Mapping[str, str]) -> None:
    """Print names and values in two columns."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2))
    for name, value in pairs.items():
        table.add_row(Text(f"  {name}"), Text(one_line(value, 300)))
    console.print(table)
