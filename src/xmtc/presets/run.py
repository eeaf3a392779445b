"""Run a preset: train its members, the most useful first, and combine them.

The input is documents and a plan; the output is one model. Finished members are stored in `<out>.partial/`, so that an
interrupted run resumes member by member; a network resumes from its own checkpoints. A member is a task of an engine:
the local engine trains members one after another, other engines train them in parallel. Independent of methods: `api`
passes the training functions.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from xmtc.core.corpus import Corpus
from xmtc.core.engine import Engine, Shared
from xmtc.core.errors import ConfigError, DataError, ModelError, XmtcError
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress, describe_duration
from xmtc.core.run_folder import partial_folder
from xmtc.core.storage import hash_groups
from xmtc.presets.members import FINE_TUNED, Member
from xmtc.presets.names import COST, decide_names
from xmtc.presets.plan import Plan, Planned, make_plan

TAIL = 0.3  # weight of rare labels in training the ensemble: raises PSP@k and hardly lowers P@k
_CHEAP = 0.05  # relative to a member's training: trials that take less are always run
_TOO_LITTLE = 0.4  # share of a member's planned time below which it is excluded


class Train(Protocol):
    """Trains one model, or resumes the training in a folder."""

    def __call__(
        self,
        corpus: Corpus,
        method: str,
        config: Mapping[str, Any],
        *,
        dev: Corpus | None,
        out: Path | None,
        seed: int,
        resume: bool,
        progress: Progress,
    ) -> Model:
        """Train, save to `out` if given, and return the model."""
        ...


class Teach(Protocol):
    """Combines models with boosted trees that are trained on labelled documents."""

    def __call__(
        self,
        members: Mapping[str, Model],
        dev: Corpus,
        tail: float,
        seed: int,
        progress: Progress,
        **about: Any,
    ) -> Model:
        """Return the calibrated ensemble; names are for its leaderboard, `about` for its details."""
        ...


class TeachWithin(Protocol):
    """Combines some or all models as `Teach` does, so that one document takes at most `limit` seconds."""

    def __call__(
        self,
        members: Mapping[str, Model],
        copies: Mapping[str, Model],
        dev: Corpus,
        tail: float,
        seed: int,
        limit: float,
        progress: Progress,
        **about: Any,
    ) -> Model:
        """Return the best model that is fast enough, else the fastest; copies: exported members by name."""
        ...


@dataclass(frozen=True)
class Trainers:
    """The functions that a run needs from `api`."""

    train: Train  # must be picklable, because other processes train members too
    teach: Teach
    teach_within: TeachWithin
    measure: Callable[[Model, str, Corpus, float], Model]  # records the latency of the only member
    export: Callable[[Model, Path], Model]  # to int8; raises if a model cannot be exported
    calibrate: Callable[[Model, Corpus, Progress], Model]
    load: Callable[[Path], Model]
    open_engine: Callable[[], AbstractContextManager[Engine]]


@dataclass
class _Clock:
    """The clock of a run; a resumed run includes the time of its finished members."""

    limit: float | None
    spent: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        """Return the seconds until the limit; infinity without one."""
        if self.limit is None:
            return float("inf")
        return self.limit - self.spent - (time.monotonic() - self.started)


@dataclass(frozen=True)
class PresetRun:
    """A training run of a preset whose arguments have been checked; created by `api.prepare_preset`."""

    preset: str
    time_limit: float | None  # seconds
    out: Path | None
    seed: int
    resume: bool
    overwrite: bool
    trainers: Trainers
    language: str | None = None  # of the texts, if it was given
    latency: float | None = None  # maximum seconds per document for the model
    seconds: dict[str, float] = field(default_factory=dict)  # by member, and of the ensemble, after `start`

    def outline(self, corpus: Corpus, dev: Corpus | None = None) -> str:
        """Return the plan: members, minutes and memory; with a time limit, a few steps are timed."""
        return "\n".join(self._plan(corpus.compact(), dev is not None).lines())

    def start(self, corpus: Corpus, dev: Corpus | None = None, progress: Progress = SILENT) -> Model:
        """Train the members and combine them, save the model if there is an output folder, and return it.

        dev: documents to choose epochs and to train the ensemble; by default a part of the corpus is held out.
        """
        if not isinstance(corpus, Corpus):
            raise DataError(f"train takes a Corpus, such as read_corpus returns; got {type(corpus).__name__}")
        clock, corpus = _Clock(self.time_limit), corpus.compact()
        if self.out is not None and self.resume and self.out.exists():
            return self._finished(self.out, corpus, progress)
        folder = None if self.out is None else _RunFolder(partial_folder(self.out))
        if folder is not None:
            folder.begin(self._identity(corpus, dev), anew=not self.resume)
        plan = None if folder is None else folder.read_plan(self.preset, self.time_limit)
        if plan is None:
            progress.stage("planning")
            plan = self._plan(corpus, dev is not None)
            if folder is not None:
                folder.write_plan(plan)
        for line in plan.lines():
            progress.say(line)
        with self.trainers.open_engine() as engine:
            trained = self._train_members(engine, plan, corpus, dev, folder, clock, progress)
        if self.latency is None:
            model = self._join(trained, clock)
        else:
            model = self._join_within(trained, clock, self.latency, folder)
        if self.out is not None:
            progress.stage("saving")
            model.save(self.out, overwrite=self.overwrite)
            shutil.rmtree(partial_folder(self.out), ignore_errors=True)
            if self.latency is not None:  # its exported members were loaded to run on one thread
                model = self.trainers.load(self.out)
        return model

    def _plan(self, corpus: Corpus, has_dev: bool) -> Plan:
        return make_plan(self.preset, corpus, self.time_limit, has_dev=has_dev, several=self.latency is not None)

    def _train_members(
        self,
        engine: Engine,
        plan: Plan,
        corpus: Corpus,
        dev: Corpus | None,
        folder: _RunFolder | None,
        clock: _Clock,
        progress: Progress,
    ) -> _Trained:
        """Train the first member, and the others that fit into the time."""
        trained = _Trained(corpus, dev, list(plan.left_out), progress)
        here = engine.name == "local"
        if not here and folder is not None:
            engine.check(folder.folder)
            progress.say(f"members are trained on {engine.outline}")
        memory = 0 if here else max(planned.memory for planned in plan.members)
        jobs = self._list_jobs(plan, engine.share((corpus, dev)), folder, clock, trained, progress if here else None)
        for _, made in engine.run(make_member, jobs, memory=memory, queue=False):
            name = made.member.name
            if made.error is not None:
                if name == plan.members[0].member.name:  # there is no model to fall back on
                    raise made.error
                trained.leave_out(f"{name}: {made.error}")
                continue
            if made.model is None:
                assert folder is not None  # `api.prepare_preset` requires one if members are trained elsewhere
                made.model = self.trainers.load(folder.member(name))
                progress.say(f"{name} is trained, in {describe_duration(made.seconds)}")
            trained.members[name], self.seconds[name] = made.model, made.seconds
            if folder is not None:
                folder.finish(made.member, made.seconds)
        # in the order of the plan, not of completion
        trained.members = {
            planned.member.name: trained.members[planned.member.name]
            for planned in plan.members
            if planned.member.name in trained.members
        }
        return trained

    def _list_jobs(
        self,
        plan: Plan,
        shared: Shared[tuple[Corpus, Corpus | None]],
        folder: _RunFolder | None,
        clock: _Clock,
        trained: _Trained,
        progress: Progress | None,
    ) -> Iterator[_Job]:
        """Yield a job for each unfinished member, when the engine is free and if there is time."""
        for place, planned in enumerate(plan.members):
            name = planned.member.name
            known = None if folder is None else folder.finished(name)
            if known is not None and folder is not None:
                trained.progress.say(f"{name} is finished already")
                trained.members[name], self.seconds[name] = self.trainers.load(folder.member(name)), known
                clock.spent += known
                continue
            begun = None if folder is None else folder.begun(name)
            left = clock.left() - (plan.teaching or 0)
            member = begun or _fit(planned, left, first=place == 0)
            if member is None:
                trained.leave_out(f"{name}: {describe_duration(max(0.0, clock.left()))} were left")
                continue
            trained.progress.say(f"training {name}")
            seconds = planned.seconds or 0
            cost = COST * ((plan.members[0].seconds or 0) if member.method == FINE_TUNED else seconds)
            tries_names = self.preset != "fast" and (left > seconds + cost or cost < _CHEAP * seconds)
            yield _Job(member, shared, folder, self.trainers.train, self.seed, tries_names, progress)

    def _join(self, trained: _Trained, clock: _Clock) -> Model:
        """Train the ensemble; calibrate a single member if there is time to train a copy of it."""
        started, progress = time.monotonic(), trained.progress
        if len(trained.members) > 1:
            teacher = trained.corpus if trained.dev is None else trained.dev
            joined = self.trainers.teach(
                trained.members, teacher, TAIL, self.seed, progress, preset=self.preset, left_out=trained.left_out
            )
            self.seconds["ensemble"] = time.monotonic() - started
            return joined
        (name, model), *_ = trained.members.items()
        alone = trained.dev is None and len(trained.corpus) < 2
        if clock.left() < self.seconds[name] or alone:
            reason = "one document is too few" if alone else "no time is left"
            progress.say(f"the model is not calibrated, because {reason}; run `xmtc calibrate` later")
            return model
        return self.trainers.calibrate(model, trained.corpus if trained.dev is None else trained.dev, progress)

    def _join_within(self, trained: _Trained, clock: _Clock, limit: float, folder: _RunFolder | None) -> Model:
        """Combine some or all members into a model that answers within the limit, if possible."""
        started, progress = time.monotonic(), trained.progress
        teacher = trained.corpus if trained.dev is None else trained.dev
        if len(trained.members) == 1:
            model = self.trainers.measure(self._join(trained, clock), next(iter(trained.members)), teacher, limit)
        else:
            with TemporaryDirectory(prefix="xmtc-", ignore_cleanup_errors=True) as temporary:
                place = Path(temporary) if folder is None else folder.folder / "exported"
                model = self.trainers.teach_within(
                    trained.members,
                    self._export(trained, place),
                    *(teacher, TAIL, self.seed, limit, progress),
                    preset=self.preset,
                    left_out=trained.left_out,
                )
            self.seconds["ensemble"] = time.monotonic() - started
        chosen = next(option for option in model.manifest.details.latency if option.chosen)
        if chosen.milliseconds > 1e3 * limit:
            progress.say(
                f"warning: no model answers one document within {1e3 * limit:g} ms here; the fastest, {chosen.name}, "
                f"takes {chosen.milliseconds:.2f} ms"
            )
        return model

    def _export(self, trained: _Trained, place: Path) -> dict[str, Model]:
        """Return copies of the encoders, exported to int8; report those that cannot be exported."""
        found: dict[str, Model] = {}
        for name, model in trained.members.items():
            if not name.startswith("lightxml-"):
                continue
            trained.progress.stage(f"exporting {name}")
            shutil.rmtree(place / name, ignore_errors=True)
            try:
                found[name] = self.trainers.export(model, place / name)
            except XmtcError as error:
                trained.leave_out(f"{name} in int8: {error}")
        return found

    def _identity(self, corpus: Corpus, dev: Corpus | None) -> dict[str, Any]:
        """Return what must be the same in a resumed run and the interrupted one."""
        return {
            **({} if self.language is None else {"language": self.language}),
            **({} if self.latency is None else {"latency": self.latency}),
            "preset": self.preset,
            "seed": self.seed,
            "data": corpus.fingerprint(),
            "dev": None if dev is None else dev.fingerprint(),
            "groups": None if corpus.groups is None else hash_groups(corpus.groups),
        }

    def _finished(self, out: Path, corpus: Corpus, progress: Progress) -> Model:
        """Return the model in `out` if it has the same data, seed and latency limit; raise otherwise."""
        model = self.trainers.load(out)
        if (model.manifest.data, model.manifest.seed) != (corpus.fingerprint(), self.seed):
            raise ConfigError(f"{out} contains a model of other data or seed; choose another folder or --overwrite")
        if model.manifest.details.latency_limit != (None if self.latency is None else 1e3 * self.latency):
            raise ConfigError(f"{out} contains a model for another latency; choose another folder or --overwrite")
        progress.say(f"{out} is finished already, with the same data and seed: nothing to do")
        return model


@dataclass(frozen=True)
class _Job:
    """A member to train, in any process."""

    member: Member
    shared: Shared[tuple[Corpus, Corpus | None]]  # documents to train on, and dev
    folder: _RunFolder | None
    train: Train
    seed: int
    tries_names: bool
    progress: Progress | None  # None: in another process, without progress; the model is returned through its folder


@dataclass
class _Made:
    """The result of a job: a model, or the reason why there is none."""

    member: Member
    seconds: float
    model: Model | None = None
    error: XmtcError | None = None


def make_member(job: _Job) -> _Made:
    """Train a member, or resume its training where an earlier process stopped."""
    started, member = time.monotonic(), job.member
    corpus, dev = job.shared.get()
    begun = None if job.folder is None else job.folder.begun(member.name)
    progress = job.progress or SILENT
    options: dict[str, Any] = {"seed": job.seed, "progress": progress}

    def try_names(sample: Corpus, trial: Member) -> Model:
        quiet = {**options, "progress": SILENT}
        return job.train(sample, trial.method, trial.config, dev=None, out=None, resume=False, **quiet)

    def train(out: Path | None, resume: bool) -> Model:
        return job.train(corpus, member.method, member.config, dev=dev, out=out, resume=resume, **options)

    def train_in(folder: _RunFolder) -> Model:
        out = folder.member(member.name)
        if begun is not None:
            try:
                return train(out, True)
            except (ConfigError, ModelError):  # killed while writing its first files
                folder.clear(member.name)
        folder.note(member)
        return train(out, False)

    try:
        if begun is not None:
            member = begun
        elif job.tries_names:
            member = decide_names(member, corpus, dev, try_names, TAIL, job.seed, progress)
        model = train(None, False) if job.folder is None else train_in(job.folder)
    except XmtcError as error:
        return _Made(member, time.monotonic() - started, error=error)
    return _Made(member, time.monotonic() - started, None if job.progress is None else model)


@dataclass
class _Trained:
    """The members trained so far."""

    corpus: Corpus
    dev: Corpus | None
    left_out: list[str]
    progress: Progress
    members: dict[str, Model] = field(default_factory=dict)

    def leave_out(self, reason: str) -> None:
        self.left_out.append(reason)
        self.progress.say(f"left out: {reason}")


def _fit(planned: Planned, left: float, *, first: bool) -> Member | None:
    """Return the member with the remaining time as its limit; None if that is too little."""
    member, seconds = planned.member, planned.seconds
    if first or seconds is None or left >= seconds:
        return member
    if "train" not in member.config or left < _TOO_LITTLE * seconds:
        return None
    train = member.config["train"]
    shorter = {**train, "time_limit": round(train["time_limit"] * left / seconds, 3)}
    return replace(member, config={**member.config, "train": shorter})


class _RunFolder:
    """The folder of an interrupted run: its identity, its plan, and a folder and a record for each member."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, identity: dict[str, Any], *, anew: bool) -> None:
        """Start a run, or check that the one in the folder is the same."""
        if anew:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        known = self._read("run.json")
        if known is None:
            self._write("run.json", identity)
        (self.folder / "members").mkdir(exist_ok=True)
        if known is not None and known != json.loads(json.dumps(identity)):
            raise ConfigError(
                f"{self.folder} contains an interrupted run of another preset, language, latency, seed or corpus; "
                "start again with --overwrite"
            )

    def read_plan(self, preset: str, time_limit: float | None) -> Plan | None:
        """Return the plan of the interrupted run, whose members already have their settings."""
        known = self._read("plan.json")
        if known is None:
            return None
        members = [Planned(Member(**one["member"]), one["seconds"], one["memory"]) for one in known["members"]]
        return Plan(preset, tuple(members), known["teaching"], tuple(known["left_out"]), time_limit)

    def write_plan(self, plan: Plan) -> None:
        """Store a plan."""
        members = [{**vars(one), "member": vars(one.member)} for one in plan.members]
        self._write("plan.json", {"members": members, "teaching": plan.teaching, "left_out": list(plan.left_out)})

    def member(self, name: str) -> Path:
        """Return the folder of a member's model."""
        return self.folder / "members" / name

    def begun(self, name: str) -> Member | None:
        """Return a member whose training was interrupted, with its settings."""
        note = self._read(f"members/{name}.json")
        return None if note is None else Member(**note["member"])

    def finished(self, name: str) -> float | None:
        """Return the seconds that a finished member took."""
        note = self._read(f"members/{name}.json")
        return note["seconds"] if note is not None and self.member(name).is_dir() else None

    def note(self, member: Member) -> None:
        """Record that a member is being trained."""
        self._write(f"members/{member.name}.json", {"member": vars(member), "seconds": None})

    def finish(self, member: Member, seconds: float) -> None:
        """Record that a member is trained."""
        self._write(f"members/{member.name}.json", {"member": vars(member), "seconds": seconds})

    def clear(self, name: str) -> None:
        """Remove the files of an interrupted member."""
        for path in (self.member(name), partial_folder(self.member(name))):
            shutil.rmtree(path, ignore_errors=True)

    def _read(self, name: str) -> Any:
        path = self.folder / name
        try:
            return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        except ValueError:
            raise ModelError(f"{path} is cut or altered; start again with --overwrite") from None

    def _write(self, name: str, value: Any) -> None:
        path = self.folder / name
        partial = path.with_name(f".run-{path.stem}-{os.getpid()}.json")
        partial.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8", newline="\n")
        partial.replace(path)
