"""What a paper's file is made of: documents, arms to train, claims to compare them by. Runs and prints nothing.

A paper is a module beside this one that holds `STUDY`; `PAPERS` lists them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from typing import Any

from benchmarks.framework.results import read_result
from xmtc.core.config import merge
from xmtc.core.errors import ConfigError, nearest

CHOSEN = "chosen"  # results of what was tried on dev, one a paper
OWN = "as they are"  # the name of an arm's own settings among those that it tries
PAPERS = ("lightxml", "xbert", "aplc", "mexml", "treader", "treader_eurlex57k")  # in the order of the tables

# figures that a claim may name, besides the metrics; the first two take the number of an epoch, from 1
LOSS, DEV = "loss × 1000, epoch {}", "dev P@5, epoch {}"
MODEL, BATCHES, ONE_BY_ONE = "model MB", "ms a document in batches", "ms a document alone"
KL = "KL × 1000"  # between a network's experts, of the labels that documents have
IN_SCOPE, FEW_IN_SCOPE = "true labels in scope, %", "true labels of few documents in scope, %"
VOTE, FEW_VOTE = "P@5 of the neighbours' vote", "macro-F@5/few of the neighbours' vote"


@dataclass(frozen=True)
class Documents:
    """Which documents all arms read: fixed ones, so many of each split."""

    set: str = "tate"
    train: int = 10_000
    dev: int = 2_000  # of the set's dev split; without one, of train's documents that are not trained on
    test: int = 4_000


@dataclass(frozen=True)
class Arm:
    """One way to train: a method and its settings, over the method's defaults."""

    name: str  # of the result's file
    words: str  # in the tables
    method: str
    settings: Mapping[str, Any]  # nested, as `xmtc.train` takes them
    of: str | None = None  # another arm, whose model holds this one's members: they are not trained again
    members: tuple[int, ...] = ()  # which of its members these are
    stride: int = 1  # its run has the study's seed times this: 3, to have the first seed of runs with three members
    # settings over its own, by what they are called; the ones that are best on dev are used. The first are its own
    tries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    like: str | None = None  # another arm, for which this one's settings are chosen too; `of` implies it


@dataclass(frozen=True)
class Published:
    """Figures that the paper prints: arm → figure → value, of some arms or all.

    `who` names what stood in an arm's place there.
    """

    where: str  # table and row
    figures: Mapping[str, Mapping[str, float]]
    who: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how it is looked at here: the first arm against each of the others."""

    title: str
    said: str  # the claim in one sentence
    ran: str  # what stands here for the paper's model, such as "LightXML on MiniLM, first 3 layers, 32 tokens"
    arms: tuple[str, ...]
    figures: tuple[str, ...]  # keys of metrics, such as P@1, and the names above
    published: tuple[Published, ...] = ()
    by: str | None = "P@5"  # the figure that decides, the higher the better; None: nothing to decide
    order: tuple[str, ...] = ()  # arms as the paper orders them, the best first; without it, the first arm is the best
    convergence: bool = False  # tell after which epoch the first arm's loss reaches the others' last
    # tell by how many percent the first arm is better than the others; what the paper prints: table → figure → percent
    relative: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The comparisons that decide: the first arm of each is claimed to be better."""
        if self.order:
            return list(pairwise(self.order))
        return [(self.arms[0], other) for other in self.arms[1:]]


@dataclass(frozen=True)
class Study:
    """A paper's arms and claims."""

    paper: str
    title: str
    documents: Documents
    arms: tuple[Arm, ...]
    claims: tuple[Claim, ...]

    def choose(self, names: Iterable[str] | None) -> list[Arm]:
        """Return the arms of these names, or all, in the study's order."""
        known = [arm.name for arm in self.arms]
        wanted = known if names is None else list(names)
        for name in wanted:
            if name not in known:
                hint = nearest(name, known) or f" Known: {', '.join(known)}."
                raise ConfigError(f"{self.paper} has no arm {name!r}.{hint}")
        return [arm for arm in self.arms if arm.name in wanted]

    def settle(self, arm: Arm) -> Arm:
        """Return the arm with the settings chosen on dev, for it or for the arm it is like; as it is before that."""
        model = self.model_of(arm)
        chosen = self.chosen().get(model.name)
        return arm if chosen is None else replace(arm, settings=merge(arm.settings, model.tries[chosen["chosen"]]))

    def model_of(self, arm: Arm) -> Arm:
        """Return the arm for which the settings of this one are chosen."""
        other = arm.like or arm.of
        return arm if other is None else self.choose([other])[0]

    def chosen(self) -> dict[str, Any]:
        """Return what was tried on dev and chosen, by arm; without arms that have other settings or documents now."""
        stored = read_result(f"{CHOSEN}/{self.paper}") or {"documents": None, "arms": {}}
        if stored["documents"] != asdict(self.documents):
            return {}
        arms = {arm.name: arm for arm in self.arms}
        return {
            name: found
            for name, found in stored["arms"].items()
            if name in arms
            and tried_of(arms[name]) == {tried: one["settings"] for tried, one in found["tried"].items()}
        }


def read_study(paper: str) -> Study:
    """Return a paper's study."""
    if paper not in PAPERS:
        hint = nearest(paper, PAPERS) or f" Known: {', '.join(PAPERS)}."
        raise ConfigError(f"no ablations of {paper!r}.{hint}")
    study: Study = import_module(f"benchmarks.ablations.{paper}").STUDY
    return study


def with_rates(arm: Arm, *factors: float, **others: Mapping[str, Any]) -> Arm:
    """Return an arm that tries its own settings, all its rates multiplied by each factor, and other settings."""
    tries: dict[str, Mapping[str, Any]] = {OWN: {}}
    for factor in factors:
        tries[f"rates × {factor:g}"] = {"rate": {name: rate * factor for name, rate in arm.settings["rate"].items()}}
    return replace(arm, tries={**tries, **others})


def tried_of(arm: Arm) -> dict[str, list[str]]:
    """Return all settings of each try of an arm, as results hold them."""
    return {name: flatten(merge(arm.settings, settings)) for name, settings in arm.tries.items()}


def flatten(settings: Mapping[str, Any], path: str = "") -> list[str]:
    """Return nested settings as `--set` takes them, one string each: results hold these, unrounded."""
    found = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found += flatten(value, f"{path}{key}.")
        else:
            found.append(f"{path}{key}={value if isinstance(value, str) else json.dumps(value)}")
    return found
