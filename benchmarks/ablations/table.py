"""Tables of the ablations, from benchmarks/results/ablations and nothing else: neither data nor torch is needed.

A difference is taken seed by seed. It is undecided with fewer than three seeds, or where the 95 % interval of its mean
over seeds (Student's t) holds 0. A claim is confirmed where its first arm beats all others so, not confirmed where one
beats it so, and undecided otherwise; where the paper claims an order, each arm is compared with the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean, stdev
from typing import Any

from scipy.special import stdtrit

from benchmarks.ablations.study import (
    BATCHES,
    CHOSEN,
    DEV,
    LOSS,
    MODEL,
    ONE_BY_ONE,
    Claim,
    Study,
    flatten,
)
from benchmarks.framework.markdown import NOT_KNOWN, signed, source, table
from benchmarks.framework.results import read_results

_FEWEST = 3  # seeds that decide anything
CONFIRMED, NOT_CONFIRMED, UNDECIDED = "confirmed", "not confirmed", "undecided"

Results = dict[str, dict[int, dict[str, Any]]]  # arm → seed → what its run found


@dataclass(frozen=True)
class Verdict:
    """What the runs say of a claim; `why` says it in words."""

    claim: Claim
    word: str | None  # None: the claim has nothing to decide
    why: str


def tables_of(study: Study) -> list[str]:
    """Return the parts of a paper's page on one study; nothing before its first result."""
    results, stale = _read(study)
    if not any(results.values()):
        return []
    some = next(result for runs in results.values() for result in runs.values())
    documents = study.documents
    parts = [
        f"{documents.train:,} training documents of {documents.set}, {some['labels']:,} labels; the best epoch is "
        f"chosen on {documents.dev:,} others; {some['n']:,} test documents. Arms and settings are in "
        f"`benchmarks/ablations/{study.paper}.py`." + _encoders(results),
    ]
    for claim in study.claims:
        if any(results[arm] for arm in claim.arms):
            parts += _claim(study, claim, results)
    parts += _choices(study)
    if stale:
        parts.append(
            f"Left out, because settings or documents of the study have changed since: {_sources(study, stale)}."
        )
    return parts


def _encoders(results: Results) -> str:
    """Say which weights ran, and in which precision; nothing where none did, or where older results do not tell."""
    found = {run.get("encoder") for runs in results.values() for run in runs.values()} - {None}
    return f" Encoders: {'; '.join(sorted(found))}." if found else ""


def _choices(study: Study) -> list[str]:
    """A table of the settings that were tried on dev; nothing where no arm tried any."""
    chosen = study.chosen()
    if not chosen:
        return []
    rows = [
        [
            source(f"`{arm}`", f"{CHOSEN}/{study.paper}"),
            ", ".join(
                f"**{name} {one['dev']['P@5']:.2f}**" if name == found["chosen"] else f"{name} {one['dev']['P@5']:.2f}"
                for name, one in found["tried"].items()
            ),
        ]
        for arm, found in chosen.items()
    ]
    return [
        f"### Settings chosen on dev, {study.documents.set}",
        "Each arm was trained with each of these settings by seed 0. All its seeds have those with the highest P@5 on "
        "dev, in bold. Arms that are not listed have the settings of the study.",
        table(["arm", "tried, P@5 on dev"], rows, words=2),
    ]


def verdicts_of(study: Study) -> list[Verdict]:
    """Return what the results of a study say of each of its claims that was run."""
    results, _ = _read(study)
    return [judge(claim, results) for claim in study.claims if any(results[arm] for arm in claim.arms)]


def judge(claim: Claim, results: Results) -> Verdict:
    """Judge a claim by the paired differences of its arms in the figure that decides it."""
    if claim.by is None:
        return Verdict(claim, None, "")
    found: dict[int, list[str]] = {1: [], 0: [], -1: []}  # sign of a decided difference, 0 if undecided → pairs
    fewest = _FEWEST
    for one, other in claim.pairs:
        both = [(a[claim.by], b[claim.by]) for a, b in _pairs(one, other, results) if claim.by in a and claim.by in b]
        fewest = min(fewest, len(both))
        if len(both) >= _FEWEST:
            difference, _, decided = compare([a for a, _ in both], [b for _, b in both])
            sign = (1 if difference > 0 else -1) if decided else 0
            found[sign].append(f"`{one}` and `{other}`" if sign == 0 else f"`{one}` than of `{other}`")
    if fewest < _FEWEST:
        return Verdict(claim, UNDECIDED, f"{fewest} of {_FEWEST} seeds")
    if found[-1]:
        return Verdict(claim, NOT_CONFIRMED, f"{claim.by} is lower of {', of '.join(found[-1])}")
    if found[0]:
        return Verdict(claim, UNDECIDED, f"{claim.by} does not decide between {', nor between '.join(found[0])}")
    return Verdict(claim, CONFIRMED, f"{claim.by} is higher of {', of '.join(found[1])}")


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
    settled = [study.settle(arm) for arm in study.arms]
    wanted = {arm.name: (arm.method, flatten(arm.settings), asdict(study.documents)) for arm in settled}
    for name, result in read_results(f"ablations/{study.paper}").items():
        arm = result["arm"]
        settings = [_RENAMED.get(setting, setting) for setting in result["settings"]]
        if (result["method"], settings, result["documents"]) == wanted.get(arm):
            results[arm][result["seed"]] = result
        else:
            stale.append(name)
    return {arm: dict(sorted(runs.items())) for arm, runs in results.items()}, stale


def _sources(study: Study, names: Sequence[str]) -> str:
    return ", ".join(source(name, f"ablations/{study.paper}/{name}") for name in names)


def _claim(study: Study, claim: Claim, results: Results) -> list[str]:
    verdict = judge(claim, results)
    told = f": {verdict.word}" if verdict.word else ""
    parts = [
        f"### {claim.title}{told}",
        f"The paper: {claim.said}",
        f"Here: {claim.ran}, {study.documents.train:,} documents of {study.documents.set}."
        + (f" **{verdict.word.capitalize()}**: {verdict.why}." if verdict.word else " Nothing to decide."),
        table(["", "seeds", *claim.figures], _rows(study, claim, results)),
    ]
    first = claim.arms[0]
    reached = [_convergence(first, other, results) for other in claim.arms[1:] if claim.convergence]
    return parts + _relative(claim, results) + ["\n".join(reached)] * bool(reached)


def _rows(study: Study, claim: Claim, results: Results) -> list[list[str]]:
    """Each arm, what the paper prints of it, and the first arm's differences to the others, here and there."""
    words = {arm.name: arm.words for arm in study.arms}
    rows = []
    for arm in claim.arms:
        rows.append(_arm_row(study, words[arm], arm, claim, results[arm]))
        for published in claim.published:
            if arm in published.figures:
                who = f", {published.who[arm]}" if arm in published.who else ""
                cells = [_printed(published.figures[arm], figure) for figure in claim.figures]
                rows.append([f"– paper, {published.where}{who}", "", *cells])
    for first, other in claim.pairs:
        rows.append([f"`{first}` − `{other}`", *_differences(claim.figures, _pairs(first, other, results))])
        for published in claim.published:
            one, two = published.figures.get(first), published.figures.get(other)
            if one is not None and two is not None:
                gaps = {figure: one[figure] - two[figure] for figure in one if figure in two}
                cells = [signed(gaps[figure]) if figure in gaps else NOT_KNOWN for figure in claim.figures]
                rows.append([f"– paper, {published.where}", "", *cells])
    return rows


def _arm_row(study: Study, words: str, arm: str, claim: Claim, runs: Mapping[int, Mapping[str, Any]]) -> list[str]:
    seeds = ", ".join(source(str(seed), f"ablations/{study.paper}/{arm}-{seed}") for seed in runs)
    cells = [f"{words} (`{arm}`)", seeds or "none yet"]
    found = [figures_of(result) for result in runs.values()]
    for figure in claim.figures:
        values = [figures[figure] for figures in found if figure in figures]
        spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
        cells.append(f"{_number(mean(values))}{spread}" if values else NOT_KNOWN)
    return cells


def _printed(figures: Mapping[str, float], figure: str) -> str:
    return _number(figures[figure]) if figure in figures else NOT_KNOWN


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
        [
            f"paper, {where}",
            "",
            *(signed(printed[figure]) if figure in printed else NOT_KNOWN for figure in claim.figures),
        ]
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
            cells.append(NOT_KNOWN)
            continue
        difference, half, decided = compare([a for a, _ in both], [b for _, b in both])
        told = signed(difference) + (f" ± {half:.2f}" if half is not None else "")
        cells.append(f"**{told}**" if decided else told)
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


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"
