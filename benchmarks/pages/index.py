"""The first page of docs/results, and the part of README.md on results: what is best on each set, and what it costs.

Findings are sentences made from the figures by rules; no figure is typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.ablations.study import PAPERS, read_study
from benchmarks.ablations.table import CONFIRMED, NOT_CONFIRMED, UNDECIDED, verdicts_of
from benchmarks.framework.markdown import signed, table
from benchmarks.pages import papers, topics
from benchmarks.pages.plots import LATENCY, TRAINING
from benchmarks.pages.systems import (
    ENSEMBLE,
    LINEAR,
    NEURAL,
    PRESET,
    RIVAL,
    System,
    best,
    duration,
    headline,
    milliseconds,
    names,
)

SHOWN = {"P@1": "P@1", "P@5": "P@5", "PSP@5": "PSP@5", "macro-F@5/few": "F few"}
_BESTS = ("P@1", "P@5", "PSP@5")  # scores whose best systems the first table has
_KINDS = {PRESET: "preset", ENSEMBLE: "ensemble", NEURAL: "neural", LINEAR: "linear", RIVAL: "rival"}
_CLOSE = 0.5  # points of P@5: at most so much below another counts as about as good
_HEAD = (
    "The most accurate systems on each test split, ours and rivals', with their costs on two CPU cores. Bold: the "
    "best of all systems on the set."
)
_HOW = (
    "Scores are percentages by `xmtc.core.metrics` for everybody, over labels that have training documents (known "
    "truth). P@k: precision of the k best labels. PSP@5: the same, weighted towards rare labels. F few: macro-F of "
    "labels with at most 20 training documents. Train: from texts to the model on disk; for the linear method and "
    "rivals, which share one TF-IDF matrix, from the matrix, but for Annif from texts. docs/s: all test documents in "
    "one call. One: a document alone, p50."
)


def render() -> list[str]:
    """Return the parts of the page."""
    every = {name: headline(name) for name in names()}
    return [
        "# Results",
        _HEAD,
        table(["", "best in", "system", *SHOWN.values(), "train", "docs/s", "MB"], _best_rows(every), words=3),
        _HOW,
        "## Findings",
        "\n".join(f"- {finding}" for finding in findings(every)),
        "## Accuracy against cost",
        f"![P@5 against the time of training, for each set]({TRAINING})",
        f"![P@5 against the time of one document, for each set]({LATENCY})",
        "## All systems",
        "The best of each column on a set is bold. Ensembles of stored rankings have the sums of their members' costs.",
        table(["set", "system", *SHOWN.values(), "train", "docs/s", "one, ms", "MB"], _all_rows(every), words=2),
        "## Pages",
        "\n".join(_pages(list(every))),
    ]


def render_readme() -> str:
    """Return the part of README.md: of each set the best of ours, the best preset and the best rival, by P@5."""
    rows = []
    for name in names():
        systems = headline(name)
        sides = {"xmtc, one command": [system for system in systems if system.kind == PRESET], **_sides(systems)}
        for side, group in sides.items():
            system = best(group)
            if system is not None and not (side == "xmtc" and system.kind == PRESET):  # which has its row already
                rows.append([name, side, system.title, *_scores(system, systems), *_costs(system)])
    return "\n\n".join(
        [
            table(["data set", "", "best P@5", *SHOWN.values(), "train", "docs/s", "MB"], rows, words=3),
            f"![P@5 against the time of training, for each set](docs/results/{TRAINING})",
            "Test split, two CPU cores; bold: the best of all systems on the set. What the columns mean, all systems, "
            "speed, scale and\nthe claims of the papers: [docs/results](docs/results/index.md).",
        ]
    )


def findings(every: dict[str, list[System]]) -> list[str]:
    """Return what the figures say, a sentence or two each, with its limits."""
    rules: tuple[Callable[[dict[str, list[System]]], str], ...] = (_accuracy, _tail, _price, _quick, _papers)
    return [found for found in (rule(every) for rule in rules) if found]


def _accuracy(every: dict[str, list[System]]) -> str:
    gaps = _gaps(every, "P@5")
    if not gaps:
        return ""
    higher = sum(gap > 0 for _, _, _, gap in gaps)
    told = ", ".join(f"{name} {signed(gap)}" for name, _, _, gap in gaps)
    return (
        f"**Precision.** On {higher} of {len(gaps)} sets the best of ours has a higher P@5 than the best rival "
        f"({told} points). The best was picked on test, so gaps below a point say little; paired intervals are on "
        "each set's page."
    )


def _tail(every: dict[str, list[System]]) -> str:
    gaps, few = _gaps(every, "PSP@5"), {name: gap for name, _, _, gap in _gaps(every, "macro-F@5/few")}
    if not gaps:
        return ""
    told = ", ".join(f"{name} {signed(gap)} and {signed(few[name])}" for name, _, _, gap in gaps)
    return (
        f"**Rare labels.** Best of ours minus best rival in PSP@5 and in macro-F of labels with few documents: {told}. "
        "The two bests of a side may be different systems."
    )


def _price(every: dict[str, list[System]]) -> str:
    gaps = _gaps(every, "P@5")
    told = ", ".join(f"{name} {_times(ours.train_s / rival.train_s)}" for name, ours, rival, _ in gaps)
    if not gaps:
        return ""
    return (
        f"**Its price.** The most accurate of ours trains for this multiple of the best rival's time: {told}. "
        "Times of presets, neural methods, ensembles and Annif start from texts, all others from the TF-IDF matrix."
    )


def _quick(every: dict[str, list[System]]) -> str:
    """Our quickest training that is about as good as the best rival, beside that rival's."""
    told = []
    for name, systems in every.items():
        rival = best([system for system in systems if not system.ours])
        if rival is None:
            continue
        good = [one for one in systems if one.ours and one.metrics["P@5"] >= rival.metrics["P@5"] - _CLOSE]
        ours = min(good, key=lambda one: one.train_s, default=None)
        trained = "none" if ours is None else f"{ours.title} in {duration(ours.train_s)}"
        told.append(f"{name} {trained} ({rival.title} {duration(rival.train_s)})")
    if not told:
        return ""
    return (
        f"**Speed.** Our quickest system whose P@5 is at most {_CLOSE} points below the best rival's (in brackets): "
        f"{'; '.join(told)}. On two cores; more were not tried."
    )


def _papers(every: dict[str, list[System]]) -> str:
    found = [verdict for paper in PAPERS for verdict in verdicts_of(read_study(paper)) if verdict.word]
    if not found:
        return ""
    words = [verdict.word for verdict in found]
    few = sum(verdict.why.endswith("seeds") for verdict in found)
    return (
        f"**Claims of the papers.** Of {len(found)} claims that were tried at small scale: confirmed "
        f"{words.count(CONFIRMED)}, not confirmed {words.count(NOT_CONFIRMED)}, undecided {words.count(UNDECIDED)}, "
        f"{few} of these because they have fewer than three seeds."
    )


def _gaps(every: dict[str, list[System]], key: str) -> list[tuple[str, System, System, float]]:
    """Of each set that has both: best of ours, best rival, and the difference."""
    found = []
    for name, systems in every.items():
        ours, rival = (best(group, key) for group in _sides(systems).values())
        if ours is not None and rival is not None:
            found.append((name, ours, rival, ours.metrics[key] - rival.metrics[key]))
    return found


def _sides(systems: Sequence[System]) -> dict[str, list[System]]:
    return {
        "xmtc": [system for system in systems if system.ours],
        "rival": [system for system in systems if not system.ours],
    }


def _best_rows(every: dict[str, list[System]]) -> list[list[str]]:
    """For each set and side, the systems that are best in one of the scores."""
    rows = []
    for name, systems in every.items():
        for side, group in _sides(systems).items():
            led: dict[str, list[str]] = {}  # title → scores in which it leads its side
            for key in _BESTS:
                leader = best(group, key)
                if leader is not None:
                    led.setdefault(leader.title, []).append(key)
            for title, keys in led.items():
                system = next(one for one in group if one.title == title)
                label = f"[{name}]({name}.md),\u00a0{side}"
                rows.append([label, ", ".join(keys), system.linked, *_scores(system, systems), *_costs(system)])
    return rows


def _all_rows(every: dict[str, list[System]]) -> list[list[str]]:
    rows = []
    for name, systems in every.items():
        for system in systems:
            train, docs, mb = _costs(system)
            rows.append(
                [
                    name,
                    f"{_KINDS[system.kind]}: {system.linked}" if system.kind == RIVAL else system.linked,
                    *_scores(system, systems),
                    _bold(train, system.train_s <= min(one.train_s for one in systems)),
                    _bold(docs, system.docs_s >= max(one.docs_s for one in systems)),
                    milliseconds(system.one_ms),
                    _bold(mb, system.mb <= min(one.mb for one in systems)),
                ]
            )
    return rows


def _scores(system: System, among: Sequence[System]) -> list[str]:
    """The scores of a system, bold where none of the others has a higher one."""
    return [
        _bold(f"{system.metrics[key]:.2f}", system.metrics[key] >= max(one.metrics[key] for one in among))
        for key in SHOWN
    ]


def _costs(system: System) -> list[str]:
    return [duration(system.train_s), f"{system.docs_s:,.0f}", f"{system.mb:,.0f}"]


def _bold(text: str, is_best: bool) -> str:
    return f"**{text}**" if is_best else text


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.1f}×"


def _pages(sets: Sequence[str]) -> list[str]:
    lines = [f"- [{name}]({name}.md): everything measured on this set" for name in sets]
    lines += [f"- [{paper}]({paper}.md): {title}, its claims" for paper, title in papers.titles().items()]
    lines += [f"- [{topic}]({topic}.md): {topics.TOPICS[topic].title}" for topic in topics.measured()]
    return lines
