"""Choose a model for a latency limit: the ensemble or cascade with the best dev scores that is fast enough.

Input: members, faster copies of some of them (exported encoders) and lessons. Output: one model, with a table of the
options in its details. Options are tried in this order: all members; all members, with the faster copies; as many of
the fastest members as fit into the limit, and into half of it; cascades from these to all members, for as many
documents as the limit allows. All options are trained on the same lessons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import floor
from typing import Any

import numpy as np

from xmtc.core.calibration import CalibratedModel, fit_calibration, uncalibrated
from xmtc.core.corpus import Corpus
from xmtc.core.lessons import Lesson
from xmtc.core.model import Documents, Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.storage import LatencyOption
from xmtc.core.threads import one_thread
from xmtc.methods.ensemble.latency import measure_latency, sample_documents
from xmtc.methods.ensemble.members import EnsembleConfig, Standing, rank_shown, read_lessons
from xmtc.methods.ensemble.method import check_cascade, join_cascade, learn_ranked

_WHOLE, _FAST = "ensemble", "ensemble, int8"
_LEAST = 0.01  # of the documents: a second model is not worth it for a smaller share
_SOURCE = "that the models were compared on"
SHOWN = ("P@5", "PSP@5")  # metrics that compare the options; `tail` weights the second


@dataclass(frozen=True, eq=False)
class _Option:
    name: str
    model: Model
    ranking: Ranking  # of the lessons' documents, over the model's labels, by models not trained on them
    scores: dict[str, float]
    seconds: float
    share: float | None = None

    def to_record(self, chosen: bool) -> LatencyOption:
        given: dict[str, Any] = {} if self.share is None else {"share": self.share}
        given |= {"chosen": True} if chosen else {}
        return LatencyOption(
            name=self.name, milliseconds=round(1e3 * self.seconds, 3), scores=dict(self.scores), **given
        )


def learn_within(
    members: Mapping[str, Model],
    copies: Mapping[str, Model],
    config: EnsembleConfig,
    corpus: Corpus,
    lessons: Iterable[Lesson],
    limit: float,
    *,
    about: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Model:
    """Return the model with the best dev scores that ranks one document within `limit` seconds on one thread.

    copies: faster replacements for some members, by their names. lessons: as for `learn`, ranked by the members and
    then by the copies. If no model is fast enough, the fastest is returned, and `details.latency` says so.
    """
    models = {**members, **{f"{name}, int8": copy for name, copy in copies.items()}}
    study = _Study(models, config, corpus, list(lessons), limit, dict(about or {}), seed, progress)
    options = [study.teach(list(members), _WHOLE)]
    if options[0].seconds > limit:
        options += study.find_faster(options[0], list(members))
    fits = [option for option in options if option.seconds <= limit]
    if fits:
        chosen = max(fits, key=lambda option: option.scores["P@5"] + config.tail * option.scores["PSP@5"])
    else:
        chosen = min(options, key=lambda option: option.seconds)
    return note_latency(chosen.model, 1e3 * limit, [option.to_record(option is chosen) for option in options])


def measure_alone(model: Model, name: str, corpus: Corpus, limit: float) -> Model:
    """Return a model that has no alternatives, with its latency and whether it meets the limit in its details."""
    with one_thread():
        seconds = measure_latency(model, sample_documents(corpus))
    option = LatencyOption(name=name, milliseconds=round(1e3 * seconds, 3), scores={}, chosen=True)
    return note_latency(model, 1e3 * limit, [option])


def note_latency(model: Model, limit: float, options: list[LatencyOption]) -> Model:
    """Return the model with these latencies in its details; the limit is in milliseconds."""
    if isinstance(model, CalibratedModel):
        return replace(model, model=note_latency(model.model, limit, options))
    manifest = model.manifest
    noted = manifest.with_details(manifest.details.model_copy(update={"latency_limit": limit, "latency": options}))
    changed: Model = replace(model, manifest=noted)  # type: ignore[type-var]  # every model is a dataclass
    return changed


@dataclass(frozen=True, eq=False)
class _Study:
    """The shared input of all options; models by name, in the order of the lessons' rankings."""

    models: Mapping[str, Model]
    config: EnsembleConfig
    corpus: Corpus
    lessons: Sequence[Lesson]
    limit: float
    about: dict[str, Any]
    seed: int
    progress: Progress
    standings: dict[str, Standing] = field(default_factory=dict)  # by model, after it was a member of an ensemble
    boards: dict[str, list[Standing]] = field(default_factory=dict)  # by option

    @cached_property
    def documents(self) -> Documents:
        return sample_documents(self.corpus)

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Return the seconds that each model takes alone."""
        return {name: self.measure(model) for name, model in self.models.items()}

    def measure(self, model: Model) -> float:
        with one_thread():
            return measure_latency(model, self.documents)

    def find_faster(self, whole: _Option, members: Sequence[str]) -> list[_Option]:
        """Return options that are faster than all members together; stop at the first that is fast enough."""
        alike = {name: [name, *(other for other in self.models if other == f"{name}, int8")] for name in members}
        fastest = sorted((min(names, key=self.seconds.__getitem__) for names in alike.values()), key=self._key)
        options, large = [], whole
        if set(fastest) != set(members):
            options.append(self.teach(fastest, _FAST))
            large = min(whole, options[-1], key=lambda option: option.seconds)
        if large.seconds <= self.limit:
            return options
        joining = max(0.0, large.seconds - sum(self.seconds[name] for name in fastest))
        sizes = {self._how_many(fastest, part * self.limit, joining) for part in (1.0, 0.5)}
        for size in sorted(sizes, reverse=True):
            small = self.teach(fastest[:size], " + ".join(fastest[:size]))
            options.append(small)
            cascade = self.cascade(small, large) if small.seconds < self.limit else None
            options += [] if cascade is None else [cascade]
        return options

    def teach(self, names: Sequence[str], title: str) -> _Option:
        """Return an ensemble of some models, or a single model, with its scores."""
        lessons = list(self._lessons_of(names))
        if len(names) == 1:
            return self._alone(names[0], lessons)
        model, taught = learn_ranked(
            [self.models[name] for name in names],
            self.config,
            self.corpus,
            lessons,
            names=names,
            about=self.about,
            seed=self.seed,
            progress=self.progress,
        )
        seconds = self.measure(model)
        board = [
            line.model_copy(update={"milliseconds": round(1e3 * (self.seconds[line.name] if i else seconds), 3)})
            for i, line in enumerate(taught.board)
        ]
        self.standings.update({line.name: line for line in board[1:]})
        self.boards[title] = board
        plain = model.model
        details = plain.manifest.details.model_copy(update={"leaderboard": board})
        named = replace(plain, manifest=plain.manifest.with_details(details))  # type: ignore[type-var]
        return self._option(title, replace(model, model=named), taught.ranking, board[0].scores, seconds)

    def cascade(self, small: _Option, large: _Option) -> _Option | None:
        """Return a cascade of two options for as many documents as the limit allows; None if that is hardly any."""
        models = [uncalibrated(option.model) for option in (small, large)]
        lessons = list(self._lessons_by(models, [small.ranking, large.ranking]))
        about = {**self.about, "leaderboard": self.boards[_WHOLE]}

        def join(share: float) -> Any:
            config = check_cascade(models, share)
            return join_cascade(models, config, self.corpus, lessons, about=about, seed=self.seed)

        first = join(0.0)  # sends no document to the second model: measures the time of the first and the gate
        seconds = self.measure(first)
        share = min(1.0, floor(1e4 * (self.limit - seconds) / large.seconds) / 1e4)
        if share < _LEAST:
            return None
        model = join(share)
        (point,) = (point for point in model.manifest.details.cascade if point.share == share)
        title = f"{small.name}, then {large.name} for {share:.0%}"
        mean = seconds + share * large.seconds
        return self._option(title, model, small.ranking, point.scores, mean, share)

    def _alone(self, name: str, lessons: Sequence[Lesson]) -> _Option:
        model = self.models[name]
        shown = [rank_shown(lesson, model.labels)[0].padded(self.config.depth) for lesson in lessons]
        ranking = Ranking.stack(shown)
        documents = read_lessons(lessons, self.corpus.align(model.labels), model.labels)
        calibration = fit_calibration(ranking, documents.Y, documents.labels, "isotonic", _SOURCE)
        scores = self.standings[name].scores  # each was already a member of an ensemble
        return self._option(name, CalibratedModel(model, calibration), ranking, scores, self.seconds[name])

    def _option(
        self,
        name: str,
        model: Model,
        ranking: Ranking,
        scores: Mapping[str, float],
        seconds: float,
        share: float | None = None,
    ) -> _Option:
        found = {key: scores[key] for key in SHOWN}
        shown = ", ".join(f"{key} {score:.2f}" for key, score in found.items())
        self.progress.say(f"{name}: {1e3 * seconds:.2f} ms for one document, {shown} on dev")
        return _Option(name, model, ranking, found, seconds, share)

    def _how_many(self, names: Sequence[str], limit: float, joining: float) -> int:
        """Return how many of the models, in this order, rank together within a limit; at least one."""
        taken = np.cumsum([self.seconds[name] for name in names])
        taken[1:] += joining
        return max(1, int((taken[:-1] <= limit).sum()))  # all models together are a separate option

    def _key(self, name: str) -> float:
        return self.seconds[name]

    def _lessons_of(self, names: Sequence[str]) -> Iterator[Lesson]:
        """Yield the lessons, with the rankings of some models."""
        places = [list(self.models).index(name) for name in names]
        for lesson in self.lessons:
            yield replace(
                lesson,
                rankings=[lesson.rankings[place] for place in places],
                labels=[lesson.labels[place] for place in places],
            )

    def _lessons_by(self, models: Sequence[Model], rankings: Sequence[Ranking]) -> Iterator[Lesson]:
        """Yield the lessons, ranked by other models."""
        start = 0
        for lesson in self.lessons:
            rows = np.arange(start, start + len(lesson.rows))
            parts = [Ranking(ranking.labels[rows], ranking.scores[rows]) for ranking in rankings]
            yield replace(lesson, rankings=parts, labels=[model.labels for model in models])
            start += len(rows)
