"""Plot the scores of a search, in the order of its trials, to an SVG file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from xmtc.app.output import open_whole


def plot_trials(path: str, scores: Sequence[float], metric: str) -> None:
    """Plot each trial's score, and the best so far, to an SVG file."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    places = range(1, len(scores) + 1)
    with matplotlib.rc_context({"svg.hashsalt": "xmtc"}):  # the same numbers give the same bytes
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.plot(places, scores, "o", label="trial")
        axes.step(places, list(accumulate(scores, max)), where="post", label="best so far")
        axes.set_xlabel("trial; the first has the defaults")
        axes.set_ylabel(f"{metric} on dev, %")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend()
        with open_whole(path, "the plot ", binary=True) as file:
            FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None})  # type: ignore[no-untyped-call]
