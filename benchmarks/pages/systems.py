"""What was measured of each system on a set: scores and costs, from the results of several benchmarks.

A system is a preset, a recipe, an ensemble of stored rankings or a rival. Runs that differ in the seed alone are one
system, with the means of their figures. Scores are of the known truth, because rivals have no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from benchmarks.framework import results
from benchmarks.framework.markdown import NOT_KNOWN, source
from benchmarks.framework.results import read_result, read_results
from benchmarks.models import METHOD_TITLES
from benchmarks.peers.rivals import OURS
from benchmarks.sets import order

PRESET, LINEAR, NEURAL, ENSEMBLE, RIVAL = "preset", "linear", "neural", "ensemble", "rival"
_NO_TRAINING = ("start", "read")  # stages that the time of training leaves out
_LINEAR_STAGES = ("cluster", "train", "save")  # from the matrix on, as the rivals' time
_TAIL = "0.3"  # of learned ensembles, that of the presets


@dataclass(frozen=True)
class System:
    """One row of a table."""

    set: str
    title: str
    kind: str  # one of the above
    places: tuple[str, ...]  # of its results, one per seed
    seeds: tuple[int, ...]
    metrics: dict[str, float]
    train_s: float
    docs_s: float
    mb: float
    one_ms: float | None = None  # p50 of one document, from its text
    repeated: bool = False  # the linear method without its dev documents, where it was also trained on all

    @property
    def ours(self) -> bool:
        """Whether the system is xmtc's."""
        return self.kind != RIVAL

    @property
    def linked(self) -> str:
        """The title with links to the results."""
        if len(self.places) == 1:
            return source(self.title, self.places[0])
        runs = zip(self.seeds, self.places, strict=True)
        return f"{self.title}, seeds {', '.join(source(str(seed), place) for seed, place in runs)}"


def names() -> list[str]:
    """Return the sets that have results, the well-known ones first."""
    top = results.RESULTS
    stored = {path.stem for kind in ("linear", "peers", "race") for path in (top / kind).glob("*.json")}
    stored |= {path.parent.name for kind in ("train", "presets") for path in (top / kind).glob("*/*.json")}
    return sorted(stored, key=order)


def systems_of(name: str) -> list[System]:
    """Return all systems on a set: xmtc's by kind, then rivals; the best P@5 of each kind first."""
    runs = _trained(name)
    found = [*_presets(name), *_raced(name), *runs.values(), *_joined(name, runs), *_learned(name, runs)]
    if any(system.kind == LINEAR and not _is_run(system) for system in found):
        found = [replace(one, repeated=one.kind == LINEAR and _is_run(one)) for one in found]
    merged = _merged(found)
    titles = [system.title for system in merged]
    told = [
        replace(system, title=f"{system.title} (`{system.places[0].rpartition('/')[2]}`)")
        if titles.count(system.title) > 1
        else system
        for system in merged
    ]
    kinds = (PRESET, ENSEMBLE, NEURAL, LINEAR, RIVAL)
    return sorted(told, key=lambda system: (kinds.index(system.kind), -system.metrics["P@5"]))


def headline(name: str) -> list[System]:
    """Return the systems of the first page."""
    return [system for system in systems_of(name) if not system.repeated]


def best(systems: Sequence[System], key: str = "P@5") -> System | None:
    """Return the system with the highest score, None of none."""
    return max(systems, key=lambda system: system.metrics[key], default=None)


def duration(seconds: float) -> str:
    """Return seconds in the unit that a reader would choose."""
    for unit, size in (("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= 2 * size or unit == "s":
            value = seconds / size
            return f"{value:.1f}\u00a0{unit}" if value < 10 else f"{value:.0f}\u00a0{unit}"
    raise AssertionError("every time has a unit")


def milliseconds(value: float | None) -> str:
    """Return milliseconds, or that they are not known."""
    return NOT_KNOWN if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _is_run(system: System) -> bool:
    return system.places[0].startswith("train/")


def _presets(name: str) -> Iterator[System]:
    for who, run in read_results(f"presets/{name}").items():
        within = f" within {run['time_limit']}" if run["time_limit"] else ""
        grouped = f", groups by {run['group']}" if run["group"] else ""
        yield System(
            set=name,
            title=f"preset {run['preset']}{within}{grouped}",
            kind=PRESET,
            places=(f"presets/{name}/{who}",),
            seeds=(run["facts"]["seed"],),
            metrics=run["reports"]["known"]["metrics"],
            train_s=_training_seconds(run),
            docs_s=run["documents_per_second"],
            mb=run["model_mb"],
            one_ms=run["one_ms"]["p50"],
        )


def _raced(name: str) -> Iterator[System]:
    """The linear method and the rivals: of the race, else of benchmarks.linear and benchmarks.peers."""
    race = read_result(f"race/{name}") or {"contestants": {}}
    linear, peers = read_result(f"linear/{name}"), read_result(f"peers/{name}") or {"rivals": {}}
    raced = {who: found for who, found in race["contestants"].items() if "metrics" in found and "single" in found}
    for who, found in raced.items():
        yield replace(
            _rival(name, f"race/{name}#{who}", found, race["data"]["test_documents"]),
            kind=LINEAR if who in OURS else RIVAL,
            one_ms=found["single"]["text_ms"]["p50"],
        )
    if linear is not None and not any(who in OURS for who in raced):
        seconds = linear["seconds"]["train"]
        yield System(
            set=name,
            title="xmtc linear",
            kind=LINEAR,
            places=(f"linear/{name}",),
            seeds=(linear["facts"]["seed"],),
            metrics=linear["reports"]["known"]["metrics"],
            train_s=sum(seconds[stage] for stage in _LINEAR_STAGES),
            docs_s=linear["documents_per_second"],
            mb=linear["model_mb"],
        )
    for who, found in peers["rivals"].items():
        if "metrics" in found and who not in raced and linear is not None:
            yield _rival(name, f"peers/{name}#{who}", found, linear["data"]["test_documents"])


def _rival(name: str, place: str, found: dict[str, Any], n_documents: int) -> System:
    return System(
        set=name,
        title=found["title"],
        kind=RIVAL,
        places=(place,),
        seeds=(found["facts"]["seed"],),
        metrics=found["metrics"],
        train_s=found["train"]["seconds"],
        docs_s=n_documents / found["predict"]["seconds"],
        mb=found["train"]["model_mb"],
    )


def _trained(name: str) -> dict[str, System]:
    """The runs of benchmarks.train, by name."""
    singly = (read_result("xbert_latency") or {"cases": {}})["cases"]
    found = {}
    for who, run in read_results(f"train/{name}").items():
        case = singly.get(who)
        one_ms = run.get("one_ms") or (case["ms"]["all"] if case and case["set"] == name else None)
        found[who] = System(
            set=name,
            title=run["title"] + (", without dev" if run["method"] == "linear" and run["data"]["held_out"] else ""),
            kind=LINEAR if run["method"] == "linear" else NEURAL,
            places=(f"train/{name}/{who}",),
            seeds=(run["facts"]["seed"],),
            metrics=run["reports"]["known"]["metrics"],
            train_s=_training_seconds(run),
            docs_s=run["documents_per_second"],
            mb=run["model_mb"],
            one_ms=one_ms and one_ms["p50"],
        )
    return found


def _joined(name: str, runs: dict[str, System]) -> Iterator[System]:
    """Ensembles of stored rankings, by weights chosen on dev."""
    for who, found in read_results(f"ensembles/{name}").items():
        members = {member: runs[member] for member, weight in found["weights"].items() if weight and member in runs}
        if len(members) == sum(weight > 0 for weight in found["weights"].values()):
            words = "mean of" if found["rule"] == "mean" else f"{found['rule']} of"
            yield _ensemble(name, words, members, f"ensembles/{name}/{who}", found["reports"])


def _learned(name: str, runs: dict[str, System]) -> Iterator[System]:
    for who, found in read_results(f"learned/{name}").items():
        members = {member: runs[member] for member in found["members"] if member in runs}
        tails = found["learned"]
        report = tails.get(_TAIL) or next(iter(tails.values()))
        if len(members) == len(found["members"]):
            yield _ensemble(name, "learned from", members, f"learned/{name}/{who}", report["reports"])


def _ensemble(name: str, words: str, members: dict[str, System], place: str, reports: dict[str, Any]) -> System:
    """Costs are the sums of the members'."""
    every = list(members.values())
    alone = [member.one_ms for member in every]
    methods = [_method_title(member) for member in members]
    return System(
        set=name,
        title=f"{words} {' + '.join(methods)}",
        kind=ENSEMBLE,
        places=(place,),
        seeds=(every[0].seeds[0],),
        metrics=reports["known"]["metrics"],
        train_s=sum(member.train_s for member in every),
        docs_s=1 / sum(1 / member.docs_s for member in every),
        mb=sum(member.mb for member in every),
        one_ms=None if None in alone else sum(one for one in alone if one is not None),
    )


def _method_title(run: str) -> str:
    method = run.partition("-")[0]
    return METHOD_TITLES.get(method, method).removeprefix("xmtc ")


def _merged(found: Sequence[System]) -> list[System]:
    """Runs of one place that differ in the seed alone as one system."""
    groups: dict[str, list[System]] = {}
    for system in found:
        place = system.places[0]
        groups.setdefault(place if "#" in place else place.removesuffix(f"-{system.seeds[0]}"), []).append(system)
    return [_mean(sorted(group, key=lambda system: system.seeds)) for group in groups.values()]


def _mean(group: Sequence[System]) -> System:
    if len(group) == 1:
        return group[0]
    alone = [system.one_ms for system in group if system.one_ms is not None]
    return replace(
        group[0],
        places=tuple(system.places[0] for system in group),
        seeds=tuple(system.seeds[0] for system in group),
        metrics={key: mean(system.metrics[key] for system in group) for key in group[0].metrics},
        train_s=mean(system.train_s for system in group),
        docs_s=mean(system.docs_s for system in group),
        mb=mean(system.mb for system in group),
        one_ms=mean(alone) if alone else None,
    )


def _training_seconds(run: dict[str, Any]) -> float:
    """From texts to the model on disk."""
    return float(sum(seconds for stage, seconds in run["seconds"]["train"].items() if stage not in _NO_TRAINING))
