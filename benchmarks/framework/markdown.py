"""Pieces of Markdown that the sections of the results page are made of. Knows no set and no method."""

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
    "macro-F@5/few": "macro-F few",
    "macro-F@5/medium": "macro-F medium",
    "macro-F@5/many": "macro-F many",
    "coverage@5/few": "coverage few",
}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table; all but the first column are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def difference(found: dict[str, Any]) -> str:
    """A difference with its interval, and whether that holds 0, also where only rounding says so."""
    low, high = found["interval"]
    told = f"{signed(found['difference'])} [{signed(low)}, {signed(high)}]"
    decided = found["decided"] and not round(low, 2) <= 0 <= round(high, 2)
    return told if decided else f"{told} undecided"


def signed(value: float) -> str:
    """A number with its sign."""
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")  # + 0.0: no −0.00


def code(facts: dict[str, Any]) -> str:
    """Which code ran, on what, and how."""
    packages = ", ".join(f"{package} {version}" for package, version in facts["packages"].items())
    commit = f"{(facts['commit'] or 'unknown')[:12]}{' with uncommitted changes' if facts['dirty'] else ''}"
    return (
        f"commit {commit}, Python {facts['python']}, {packages or 'versions unknown'}, {facts['threads']} threads, "
        f"seed {facts['seed']}"
    )


def hardware(facts: dict[str, Any]) -> str:
    """The machine in one line."""
    return f"{facts['cpu']}, {facts['cores']} cores, {facts['ram_gb']:.0f} GB, {facts['system']}"


def ran(facts: dict[str, Any], phases: Iterable[dict[str, Any]]) -> str:
    """The machine, the code, and how busy others kept the machine while the phases ran."""
    return f"{hardware(facts)}; {code(facts)}; others took up to {busiest(phases):.2f} cores."


def busiest(phases: Iterable[dict[str, Any]]) -> float:
    """The most cores that other processes took while one of the phases ran."""
    return max((phase["machine"]["others_cores"] or 0.0 for phase in phases), default=0.0)


def gib(megabytes: float) -> str:
    """10⁶ bytes as GiB."""
    return f"{1e6 * megabytes / 2**30:.2f}"


def memory(train: float, rank: float) -> str:
    """Peak memory in megabytes."""
    return f"Peak memory: {train:,.0f} MB in training, {rank:,.0f} MB in ranking."


def busy(train: dict[str, Any], rank: dict[str, Any]) -> str:
    """How busy others kept the machine in both phases."""
    others = [phase["others_cores"] for phase in (train, rank)]
    told = " and ".join("unknown" if value is None else f"{value:.2f}" for value in others)
    return (
        f"Load average before: {train['load_before']:.1f} and {rank['load_before']:.1f}; waited: "
        f"{train['waited_s']:.0f} and {rank['waited_s']:.0f} s; others: {told} cores."
    )


def flat(settings: dict[str, Any], path: str = "") -> str:
    """Nested settings as --set takes them."""
    return ", ".join(
        flat(value, f"{path}{key}.") if isinstance(value, dict) else f"`{path}{key}={value}`"
        for key, value in settings.items()
    )
