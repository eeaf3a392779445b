"""Plan a preset: which members fit into the time, and their expected time and memory.

The input is a preset, a corpus and a time limit; the output is members with minutes and memory, and the excluded
members with reasons. Without a time limit nothing is measured, so that the same documents and seed give the same model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import ceil

from xmtc.catalogue import read_settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, nearest
from xmtc.core.outlined import Outlined, Pace, Timed
from xmtc.core.progress import describe_duration
from xmtc.core.threads import n_threads
from xmtc.presets.members import (
    CHARACTERS,
    DEEPER,
    ENCODERS,
    FINE_TUNED,
    NAMES,
    NEIGHBOURS,
    ONE_TREE,
    PAIRS,
    SHORT,
    TREES,
    Member,
    fine_tuned,
    frozen,
    has_names,
    held_out_fraction,
)

PRESETS = ("fast", "balanced", "best")
EPOCHS = 4  # of fine-tuning, if there is time
_TUNED = 3  # maximum fine-tuned encoders with a time limit; two without one
_WANTED = 2.5  # minimum epochs for a larger encoder to be better than a smaller one
_LEAST = 0.3  # of an epoch: less is not worth starting
_FIRST = 0.65  # share of the time for encoders that the first one may take
# approximate seconds on one core per million characters and per thousand documents, measured on 10 to 800 words
_LINEAR, _PAIRS, _CHARACTERS, _KNN = (0.25, 0.15), (0.4, 0.06), (3.0, 0.0), (0.2, 0.02)
_MATCH, _TEACH = 0.8, 2.5e-3  # seconds per million characters, and on two cores per document that teaches
_SEVERAL = 4  # maximum ensembles that are trained to choose one by latency
_MATCHED = 20_000  # maximum training documents of match
_WHOLE = 2.0  # time of a step that trains all layers, against one with frozen layers
_DEEP = 2.0  # minimum time of a step that trains more layers, against one that trains few
_START = 8.0  # seconds before an encoder's first step: loading and tokenizing
_NEURAL = ("torch", "transformers", "accelerate")


@dataclass(frozen=True)
class Planned:
    """A member with its expected time and memory."""

    member: Member
    seconds: float | None  # None: unknown without a time limit, because nothing is measured
    memory: int  # bytes


@dataclass(frozen=True)
class Plan:
    """The members that a preset will train, and those that it excludes."""

    preset: str
    members: tuple[Planned, ...]
    teaching: float | None  # seconds; None: there is no ensemble
    left_out: tuple[str, ...] = ()
    time_limit: float | None = None

    def lines(self) -> list[str]:
        """Return the plan as readable text, one line per member."""
        limit = "no time limit" if self.time_limit is None else f"time limit {describe_duration(self.time_limit)}"
        lines = [f"preset {self.preset}, {limit}:"]
        for planned in self.members:
            took = "time not measured" if planned.seconds is None else f"about {describe_duration(planned.seconds)}"
            lines.append(f"  {planned.member.name}: {took}, about {planned.memory / 2**20:,.0f} MiB")
        if self.teaching is not None:
            lines.append(f"  learned ensemble of these: about {describe_duration(self.teaching)}")
        return lines + [f"  left out: {reason}" for reason in self.left_out]


def check_preset(preset: str) -> None:
    """Raise if a preset does not exist or needs a package that is not installed."""
    if preset not in PRESETS:
        hint = nearest(preset, PRESETS) or f" Known: {', '.join(PRESETS)}."
        raise ConfigError(f"unknown preset {preset!r}.{hint}")
    if preset != "fast" and find_spec("lightgbm") is None:
        raise ConfigError(
            f"preset {preset!r} combines models with LightGBM, which is not installed; install it with: "
            "pip install 'xmtc[stack]', or use preset 'fast'"
        )


def make_plan(
    preset: str, corpus: Corpus, time_limit: float | None, *, has_dev: bool = False, several: bool = False
) -> Plan:
    """Plan a preset for a corpus; with a time limit, training steps of the encoders are timed here.

    has_dev: other documents train the ensemble, so that it needs no copies of the members. several: the members are
    combined in several ways, to choose one by latency.
    """
    characters, copies = _characters(corpus), 0 if has_dev else 2

    def estimate(costs: tuple[float, float]) -> float:
        return (costs[0] * characters / 1e6 + costs[1] * len(corpus) / 1e3) / n_threads() + 1

    trees, neighbours = estimate(_LINEAR), estimate(_KNN)
    small = int(100 * 2**20 + 12 * characters)
    first = Planned(TREES, trees, small)
    if time_limit is not None and trees > time_limit:
        first = Planned(ONE_TREE, trees / 3, small)
    plan = Plan(preset, (first,), None, time_limit=time_limit)
    if preset == "fast":
        return plan
    taught_by = min(12_000, len(corpus))  # the ensemble's setting `documents`
    teaching = copies * (trees + neighbours) + (_SEVERAL if several else 1) * (taught_by * _TEACH + 5)
    if time_limit is not None and trees + neighbours + teaching > time_limit:
        reason = f"knn and the ensemble: they take about {describe_duration(neighbours + teaching)} more"
        return replace(plan, left_out=(reason,))
    plan = replace(plan, members=(first, Planned(NEIGHBOURS, neighbours, small)), teaching=teaching)
    if has_names(corpus):
        matched = characters * min(1.0, _MATCHED / max(1, len(corpus)))
        plan = _add(plan, NAMES, _MATCH * matched / 1e6 / n_threads() + 15, small, copies)
    if corpus.texts is not None:
        plan = _add(plan, PAIRS, estimate(_PAIRS), small, copies)
        if characters <= SHORT * len(corpus):
            plan = _add(plan, CHARACTERS, estimate(_CHARACTERS), small, copies)
    if preset == "balanced":
        return plan
    if corpus.texts is None:
        reason = "encoders: they read texts, and the documents have only features"
        return replace(plan, left_out=(*plan.left_out, reason))
    missing = [package for package in _NEURAL if find_spec(package) is None]
    if missing:
        ways = f"they need {', '.join(missing)}; install them with: pip install 'xmtc[neural]'"
        return replace(plan, left_out=(*plan.left_out, f"encoders ({', '.join(ENCODERS)}): {ways}"))
    return _add_encoders(plan, corpus)


def _add(plan: Plan, member: Member, seconds: float, memory: int, copies: int) -> Plan:
    """Add a member, if there is time for it and for its copies that the ensemble needs."""
    known = sum(planned.seconds or 0 for planned in plan.members) + (plan.teaching or 0)
    if plan.time_limit is not None and known + (1 + copies) * seconds > plan.time_limit:
        what = "it and its copies take" if copies else "it takes"
        reason = f"{member.name}: {what} about {describe_duration((1 + copies) * seconds)} more"
        return replace(plan, left_out=(*plan.left_out, reason))
    added = Planned(member, seconds, memory)
    return replace(plan, members=(*plan.members, added), teaching=(plan.teaching or 0) + copies * seconds)


def _add_encoders(plan: Plan, corpus: Corpus) -> Plan:
    """Add the encoders whose weights are available and, with a limit, that fit into the time."""
    left_out, found = list(plan.left_out), []
    paces, deep = dict[str, Pace](), dict[str, Pace]()
    for encoder in ENCODERS:
        try:
            if plan.time_limit is None:
                _, settings = read_settings(FINE_TUNED, fine_tuned(encoder, corpus, EPOCHS).config)
                assert isinstance(settings, Outlined)
                settings.outline(corpus)  # raises if there are no weights
            else:
                paces[encoder] = _measure(encoder, corpus)
                most = _FIRST * plan.time_limit
                if encoder in DEEPER and len(corpus) * EPOCHS * _DEEP * paces[encoder].train < most:
                    deep[encoder] = _measure(encoder, corpus, deep=True)
            found.append(encoder)
        except ConfigError as error:
            left_out.append(f"{encoder}: {error}")
    plan = replace(plan, left_out=tuple(left_out))
    if plan.time_limit is None:
        wanted = [fine_tuned(encoder, corpus, EPOCHS) for encoder in found[:2]]
        wanted[1:1] = [frozen(encoder, corpus) for encoder in found[:1]]
        memory = 2 * 2**30
        return replace(plan, members=(*plan.members, *(Planned(member, None, memory) for member in wanted)))
    known = sum(planned.seconds or 0 for planned in plan.members) + (plan.teaching or 0)
    left = plan.time_limit - known
    members, tried = list(plan.members), set[str]()
    while (planned := next_encoder(corpus, paces, left, tried, deep)) is not None:
        members.append(planned)
        tried.add(planned.member.name)
        left -= planned.seconds or 0
    if len(members) == len(plan.members) and found:
        reason = f"encoders: {describe_duration(max(0, left))} are left, too little for any of {', '.join(found)}"
        plan = replace(plan, left_out=(*plan.left_out, reason))
    return replace(plan, members=tuple(members))


def _measure(encoder: str, corpus: Corpus, *, deep: bool = False) -> Pace:
    """Time a few training steps of an encoder; raise if there are no weights."""
    _, settings = read_settings(FINE_TUNED, fine_tuned(encoder, corpus, EPOCHS, deep=deep).config)
    assert isinstance(settings, Timed)
    return settings.measure_pace(corpus)


def next_encoder(
    corpus: Corpus, paces: Mapping[str, Pace], left: float, done: set[str], deep: Mapping[str, Pace] | None = None
) -> Planned | None:
    """Return the most useful member with an encoder that fits into `left` seconds; None if there is none.

    First comes a fine-tuned encoder, the largest that can train for enough epochs in its share of the time; more of its
    layers are trained if all epochs fit with these. Then its frozen vectors, because reading the documents once is
    cheap. Then another encoder, fine-tuned in the remaining time, and a third, if it can train for enough epochs.

    paces: of the encoders with few trained layers; deep: of those with more.
    """
    tuned = [encoder for encoder in ENCODERS if fine_tuned_name(encoder) in done]
    others = [encoder for encoder in ENCODERS if encoder in paces and encoder not in tuned]
    if tuned and not any(f"knn-{encoder}" in done for encoder in ENCODERS):
        pace = paces[tuned[0]]
        # copies are trained without the documents that train the ensemble: all texts are read twice
        seconds = _START + 2 * len(corpus) * pace.read
        if seconds < 0.2 * left:
            return Planned(frozen(tuned[0], corpus, on_gpu=pace.on_gpu), seconds, pace.memory)
    if len(tuned) == _TUNED or not others:
        return None
    share = _FIRST if not tuned and len(others) > 1 else 1.0
    for encoder in others:
        if deep is not None and encoder in deep:
            planned = _fit(encoder, corpus, deep[encoder], share * left, EPOCHS, deep=True)
            if planned is not None:
                return planned
    for wanted in (_WANTED, 1.0, _LEAST):
        if wanted < _WANTED and len(tuned) > 1:
            return None  # two are there, and a third that is hardly trained adds nothing
        for encoder in others:
            planned = _fit(encoder, corpus, paces[encoder], share * left, wanted)
            if planned is not None:
                return planned
        share = 1.0  # one well-trained encoder is better than two
    return None


def fine_tuned_name(encoder: str) -> str:
    """Return the name of an encoder's member."""
    return f"{FINE_TUNED}-{encoder}"


def _fit(encoder: str, corpus: Corpus, pace: Pace, left: float, wanted: float, *, deep: bool = False) -> Planned | None:
    """Plan fine-tuning for the epochs that fit, if `wanted` epochs do; the trainer stops by time if it is slower."""
    held = held_out_fraction(len(corpus)) * len(corpus)
    scoring = held * pace.read
    # before the first step all documents are read, for the label rows and by the frozen layers; without time for that
    # and an epoch, nothing is frozen and label rows start at random. Dev is scored after time is up, and again to teach
    # the ensemble.
    reading, ends = len(corpus) * (pace.read + pace.once), _START + 2 * scoring
    for quick in (False,) if deep else (False, True):
        epoch = (len(corpus) - held) * pace.train * (_WHOLE if quick else 1) + scoring
        last = ends + (0 if quick else reading)
        fits = (left - last) / epoch if epoch else 0.0
        if fits >= (wanted if quick else max(1.0, wanted)):
            break
    else:
        return None
    epochs = min(EPOCHS, ceil(fits))
    seconds = min(left, 1.15 * epochs * epoch + last)
    minutes = round((seconds - last) / 60, 3)
    member = fine_tuned(encoder, corpus, epochs, on_gpu=pace.on_gpu, minutes=minutes, quick=quick, deep=deep)
    return Planned(member, seconds, pace.memory)


def _characters(corpus: Corpus) -> int:
    """Return the number of characters in the texts, or an equivalent size for features."""
    from xmtc.core.texts import Texts

    if corpus.texts is None:
        return 6 * int(corpus.X.nnz) if corpus.X is not None else 0
    return int(Texts.pack(corpus.texts).offsets[-1])
