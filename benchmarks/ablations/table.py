"""Tables of the ablations, from benchmarks/results/ablations and nothing else: neither data nor torch is needed.

A difference is taken seed by seed. It is undecided with fewer than three seeds, or where the 95 % interval of its mean
over seeds (Student's t) holds 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import mean, stdev
from typing import Any

from scipy.special import stdtrit

from benchmarks.ablations.study import (
    BATCHES,
    DEV,
    LOSS,
    MODEL,
    ONE_BY_ONE,
    PAPERS,
    Claim,
    Published,
    Study,
    flatten,
    read_study,
)
from benchmarks.framework.markdown import hardware, signed, table
from benchmarks.framework.results import read_results

_HEAD = """## Claims of the papers

Small trials of what the papers claim by experiment: the same fixed documents for all arms of a paper, test scores with
known truth. "±" after an arm is the standard deviation over its seeds; after a difference, taken seed by seed, it is
half of the 95 % interval of the mean (Student's t). A difference with fewer than three seeds, or whose interval holds
0, is **undecided**. The papers' own figures are of other data, far larger encoders and longer training: only the
directions can be compared."""
_FEWEST = 3  # seeds that decide anything

Results = dict[str, dict[int, dict[str, Any]]]  # arm → seed → what its run found


def describe(results: Mapping[str, Any]) -> list[str]:
    """Return the section of the page on all papers that have results; none, where no paper has."""
    parts = [part for paper in PAPERS for part in tables_of(read_study(paper))]
    return [_HEAD, *parts] if parts else []


def tables_of(study: Study) -> list[str]:
    """Return one paper's tables; nothing before its first result."""
    results, stale = _read(study)
    if not any(results.values()):
        return []
    some = next(result for runs in results.values() for result in runs.values())
    documents = study.documents
    parts = [
        f"### {study.title}",
        f"{documents.train:,} training documents of {documents.set}, {some['labels']:,} labels; the best epoch is "
        f"chosen on {documents.dev:,} others; {some['n']:,} test documents.",
    ]
    for claim in study.claims:
        if any(results[arm] for arm in claim.arms):
            parts += _claim(study, claim, results)
    return [*parts, "#### What ran", _what_ran(study, results, stale)]


def figures_of(result: Mapping[str, Any]) -> dict[str, float]:
    """Return all figures of a run that a claim may name."""
    times = result["ms_a_document"]
    found = {
        **result["metrics"],
        MODEL: result["model_mb"],
        BATCHES: times["in_batches"],
        ONE_BY_ONE: times["one_by_one"],
    }
    for epoch, entry in enumerate(result["curve"], 1):
        found[LOSS.format(epoch)] = entry["loss_thousandths"]
        if entry["dev"] is not None:
            found[DEV.format(epoch)] = entry["dev"]
    return found


def compare(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float | None, bool]:
    """Return (mean difference, half of its 95 % interval, decided) of two figures, paired by seed."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    n = len(differences)
    if n < _FEWEST:
        return mean(differences), None, False
    half = float(stdtrit(n - 1, 0.975)) * stdev(differences) / math.sqrt(n)
    return mean(differences), half, abs(mean(differences)) > half


# settings of stored runs that have another name now, and mean the same
_RENAMED = {
    "encoder.mean=true": "encoder.pool=cls+mean",
    "encoder.cls_layers=5": "encoder.pool=cls5",
    "encoder.cls_layers=1": "encoder.pool=cls",
}


def _read(study: Study) -> tuple[Results, list[str]]:
    """Runs of the study as it is now, and the names of results with other settings or documents."""
    results: Results = {arm.name: {} for arm in study.arms}
    stale = []
    wanted = {arm.name: (arm.method, flatten(arm.settings), asdict(study.documents)) for arm in study.arms}
    for name, result in read_results(f"ablations/{study.paper}").items():
        arm = result["arm"]
        settings = [_RENAMED.get(setting, setting) for setting in result["settings"]]
        if (result["method"], settings, result["documents"]) == wanted.get(arm):
            results[arm][result["seed"]] = result
        else:
            stale.append(name)
    return {arm: dict(sorted(runs.items())) for arm, runs in results.items()}, stale


def _claim(study: Study, claim: Claim, results: Results) -> list[str]:
    words = {arm.name: arm.words for arm in study.arms}
    head = ["", "seeds", *claim.figures]
    head += [f"paper, {published.where}: {_columns(published, claim)}" for published in claim.published]
    rows = [_arm_row(words[arm], arm, claim, results[arm]) for arm in claim.arms]
    first = claim.arms[0]
    rows += [_difference_row(first, other, claim, results) for other in claim.arms[1:]]
    parts = [
        f"#### {claim.title}",
        f"The paper: {claim.said}",
        f"Here: {claim.ran}, {study.documents.train:,} documents of {study.documents.set}.",
        table(head, rows),
    ]
    told = [_convergence(first, other, results) for other in claim.arms[1:] if claim.convergence]
    return parts + _relative(claim, results) + ["\n".join(told)] * bool(told)


def _arm_row(words: str, arm: str, claim: Claim, runs: Mapping[int, Mapping[str, Any]]) -> list[str]:
    cells = [f"{words} (`{arm}`)", str(len(runs))]
    found = [figures_of(result) for result in runs.values()]
    for figure in claim.figures:
        values = [figures[figure] for figures in found if figure in figures]
        spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
        cells.append(f"{_number(mean(values))}{spread}" if values else "–")
    for published in claim.published:
        who = f"{published.who[arm]}: " if arm in published.who else ""
        printed = published.figures.get(arm)
        values = [] if printed is None else [printed[figure] for figure in _printed(published, claim)]
        cells.append(who + " / ".join(_number(value) for value in values) if values else "–")
    return cells


def _difference_row(first: str, other: str, claim: Claim, results: Results) -> list[str]:
    cells = [f"`{first}` − `{other}`", *_differences(claim.figures, _pairs(first, other, results))]
    for published in claim.published:
        printed = published.figures
        known = _printed(published, claim) if first in printed and other in printed else []
        cells.append(" / ".join(signed(printed[first][figure] - printed[other][figure]) for figure in known) or "–")
    return cells


def _relative(claim: Claim, results: Results) -> list[str]:
    """A table of the first arm's relative improvements, (ours − theirs) / theirs in percent; none if not asked for."""
    if not claim.relative:
        return []
    first = claim.arms[0]
    rows = [
        [f"`{first}` over `{other}`", *_differences(claim.figures, _pairs(first, other, results), relative=True)]
        for other in claim.arms[1:]
    ]
    rows += [
        [f"paper, {where}", "", *(signed(printed[figure]) if figure in printed else "–" for figure in claim.figures)]
        for where, printed in claim.relative.items()
    ]
    return [table(["improvement in percent", "seeds", *claim.figures], rows)]


def _pairs(first: str, other: str, results: Results) -> list[tuple[dict[str, float], dict[str, float]]]:
    """The figures of both arms, of each seed that both have."""
    return [
        (figures_of(results[first][seed]), figures_of(results[other][seed]))
        for seed in results[first]
        if seed in results[other]
    ]


def _differences(
    figures: Sequence[str], pairs: Sequence[tuple[dict[str, float], dict[str, float]]], relative: bool = False
) -> list[str]:
    """How many seeds there are, and the difference in each figure, or the improvement in percent."""
    cells = [str(len(pairs))]
    for figure in figures:
        both = [(a[figure], b[figure]) for a, b in pairs if figure in a and figure in b]
        if relative:
            both = [(100 * (a - b) / b, 0.0) for a, b in both if b > 0]
        if not both:
            cells.append("–")
            continue
        difference, half, decided = compare([a for a, _ in both], [b for _, b in both])
        told = signed(difference) + (f" ± {half:.2f}" if half is not None else "")
        cells.append(told if decided else f"{told} undecided")
    return cells


def _convergence(first: str, other: str, results: Results) -> str:
    """After which epoch the first arm's training loss is down to the other's last, seed by seed."""
    told = []
    for seed in results[first]:
        runs = [results[arm][seed]["curve"] for arm in (first, other) if seed in results[arm]]
        losses, theirs = ([entry["loss_thousandths"] for entry in curve] for curve in (runs[0], runs[-1]))
        if len(runs) < 2 or not theirs:
            continue
        epochs = [epoch for epoch, loss in enumerate(losses, 1) if loss <= theirs[-1]]
        reached = f"after epoch {epochs[0]} of {len(losses)}" if epochs else f"not in {len(losses)} epochs"
        told.append(f"{reached} (seed {seed})")
    return f"- `{first}` reaches the last training loss of `{other}`: {', '.join(told) or 'not known yet'}."


def _what_ran(study: Study, results: Results, stale: list[str]) -> str:
    lines = []
    shared = _shared(study)
    for method, settings in shared.items():
        if settings:
            lines.append(f"- All arms of {method}: {_listed(settings)}; else its defaults.")
    for arm in study.arms:
        runs = results[arm.name]
        settings = [setting for setting in flatten(arm.settings) if setting not in shared[arm.method]]
        if runs and arm.of is not None:
            told = f"ranked by member{'s' * (len(arm.members) > 1)} {_numbers(arm.members)} of `{arm.of}`"
            alone = [seed for seed, result in sorted(runs.items()) if not result.get("of")]
            told += f"; of seed {', '.join(map(str, alone))} trained by itself" if alone else ""
        elif runs:
            seconds = mean(result["seconds"]["train"] for result in runs.values())
            peak = max(result["peak_rss_mb"]["train"] for result in runs.values())
            others = [result["machine"]["train"]["others_cores"] for result in runs.values()]
            busy = max((value for value in others if value is not None), default=None)
            told = f"{seconds:,.0f} s of training, at most {peak:,.0f} MB, others took up to "
            told += "an unknown number of cores" if busy is None else f"{busy:.2f} cores"
        else:
            told = "not run yet"
        lines.append(f"- `{arm.name}`: {arm.method}, {_listed(settings)}; {told}.")
    every = [result["facts"] for runs in results.values() for result in runs.values()]
    commits = sorted(
        {f"{(facts['commit'] or 'unknown')[:12]}{' with changes' if facts['dirty'] else ''}" for facts in every}
    )
    machines = sorted({f"{hardware(facts)}, {facts['threads']} threads" for facts in every})
    packages = sorted({", ".join(f"{name} {found}" for name, found in facts["packages"].items()) for facts in every})
    lines += [f"- Commit {'; '.join(commits)}. {'; '.join(machines)}. {'; '.join(packages)}."]
    if stale:
        lines.append(
            f"- Left out, for their settings or documents are no longer those of the study: {', '.join(stale)}."
        )
    return "\n".join(lines)


def _shared(study: Study) -> dict[str, list[str]]:
    """Of each method, the settings that all its arms have."""
    shared: dict[str, list[str]] = {}
    for arm in study.arms:
        own = flatten(arm.settings)
        shared[arm.method] = [setting for setting in shared.get(arm.method, own) if setting in own]
    return shared


def _numbers(members: Sequence[int]) -> str:
    return ", ".join(str(member + 1) for member in members)


def _listed(settings: Sequence[str]) -> str:
    return ", ".join(f"`{setting}`" for setting in settings) or "nothing set"


def _printed(published: Published, claim: Claim) -> list[str]:
    """The claim's figures that the paper prints."""
    return [figure for figure in claim.figures if all(figure in found for found in published.figures.values())]


def _columns(published: Published, claim: Claim) -> str:
    return " / ".join(_printed(published, claim))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"
