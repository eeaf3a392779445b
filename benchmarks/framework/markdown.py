"""Pieces of Markdown that the results pages are made of. Knows no set and no method."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

SCORES = {  # key of a metric → head of its column
    "P@1": "P@1",
    "P@3": "P@3",
    "P@5": "P@5",
    "nDCG@5": "nDCG@5",
    "PSP@1": "PSP@1",
    "PSP@5": "PSP@5",
    "macro-F@5/few": "F few",
    "macro-F@5/medium": "F medium",
    "macro-F@5/many": "F many",
}
COMPARED = ("P@1", "P@5", "PSP@5", "macro-F@5/few")  # in tables of differences
NOT_KNOWN = "–"
_QUIET = 0.25  # cores that others may take before times say little


def table(head: list[str], rows: list[list[str]], words: int = 1) -> str:
    """Return a table; the first `words` columns are words, the others numbers."""
    lines = [head, [*["---"] * words, *["---:"] * (len(head) - words)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def source(title: str, place: str) -> str:
    """Return a link to the result that a figure is from: results/<place>.json, or of `place#part` one part of it.

    `benchmarks.pages.finish` makes a link of it that Markdown knows, and marks older code.
    """
    return f"[{title}](result:{place})"


def difference(found: dict[str, Any]) -> str:
    """Return a difference with its interval, bold where the interval leaves out 0, as rounded too."""
    low, high = found["interval"]
    told = f"{signed(found['difference'])} [{signed(low)}, {signed(high)}]"
    decided = found["decided"] and not round(low, 2) <= 0 <= round(high, 2)
    return f"**{told}**" if decided else told


def difference_table(head: str, rows: dict[str, dict[str, Any]]) -> str:
    """Return a table of paired differences: one row per comparison, a column for each of COMPARED."""
    return table(
        [head, *(SCORES[key] for key in COMPARED)],
        [
            [name, *(difference(found[key]) if key in found else NOT_KNOWN for key in COMPARED)]
            for name, found in rows.items()
        ],
    )


def signed(value: float) -> str:
    """Return a number with its sign."""
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")  # + 0.0: no −0.00


def disturbed(phases: Iterable[dict[str, Any]]) -> str:
    """Return a sentence where other processes kept the machine busy while the phases ran, nothing elsewhere."""
    most = max((phase["machine"]["others_cores"] or 0.0 for phase in phases), default=0.0)
    return f" Other processes took up to {most:.1f} cores meanwhile: times say little." if most > _QUIET else ""


def gib(megabytes: float) -> str:
    """Return 10⁶ bytes as GiB."""
    return f"{1e6 * megabytes / 2**30:.2f}"
