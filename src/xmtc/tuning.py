"""Tuning: a method's declared ranges → the settings that rank dev documents best.

Optuna proposes settings (tree-structured Parzen estimator); this module trains and scores. Every trial is written to a
journal file, so that an interrupted search can resume. A trial is a task of an engine: the local engine runs trials one
after another, other engines run as many at once as there are workers. Prints nothing.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from xmtc import api
from xmtc.core.config import merge
from xmtc.core.corpus import Corpus
from xmtc.core.engine import Engine, Shared
from xmtc.core.errors import ConfigError, XmtcError, nearest
from xmtc.core.held_out import hold_out
from xmtc.core.metrics import metric_keys
from xmtc.core.progress import SILENT, Progress
from xmtc.core.search_space import Tunable, defaults_of, search_space
from xmtc.engines.local import LocalEngine

_STUDY = "xmtc"
_HELD_OUT = 0.1  # share of the training documents, if no dev is given


@dataclass(frozen=True)
class Tuning:
    """The result of a search."""

    method: str
    config: dict[str, Any]  # nested: the given settings and the best of the tried ones
    metric: str
    best: float  # percent, on dev
    scores: list[float]  # of all trials that could be trained, in order; the first uses the defaults
    failed: int

    def recipe(self) -> str:
        """Return a TOML recipe for `train --recipe`."""
        lines = [
            f"# Found by a search: {self.metric} {self.best:.2f} on dev, the best of {len(self.scores)} trials.",
            f"method = {json.dumps(self.method)}",
        ]
        return "\n".join([*lines, *_toml(self.config)]) + "\n"


def check_tune(method: str, config: Mapping[str, Any] | None, metric: str, trials: int) -> None:
    """Raise for invalid arguments of `tune`, before documents are read."""
    if find_spec("optuna") is None:
        raise ConfigError("a search needs Optuna; install it with: pip install 'xmtc[tune]'")
    if metric not in metric_keys():
        raise ConfigError(f"unknown metric {metric!r}.{nearest(metric, metric_keys()) or ' Use one such as nDCG@5.'}")
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise ConfigError(f"trials must be a whole number of at least 1; got {trials!r}")
    _, settings = api.read_settings(method, config)
    if not search_space(settings):
        raise ConfigError(f"method {method!r} declares no setting to search")


def tune(
    corpus: Corpus,
    method: str,
    config: Mapping[str, Any] | None = None,
    *,
    trials: int = 20,
    time_limit: float | None = None,
    metric: str = "nDCG@5",
    dev: Corpus | None = None,
    journal: str | Path,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Tuning:
    """Search the settings that a method declares, and return those that rank dev best.

    config: settings that are not searched. trials: total number, including those of an interrupted search in `journal`;
    the first uses the method's defaults. time_limit: seconds after which no new trial starts. dev: documents to score
    on; by default a tenth of the corpus is held out. engine: from `xmtc.engines.open_engine`; by default trials run in
    this process. With n workers a trial is proposed without the results of the n − 1 that are running, so the proposed
    settings depend on n and on which trials end first. The score of given settings does not, except for networks, which
    use one thread in a worker.
    """
    check_tune(method, config, metric, trials)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    _, settings = api.read_settings(method, config)
    fixed = dict(config or {})
    space = {path: one for path, one in search_space(settings).items() if not _is_set(fixed, path)}
    if not space:
        raise ConfigError(f"all settings that method {method!r} would search have a fixed value; leave one of them out")
    study = _open_study(Path(journal), {
        "method": method, "config": fixed, "metric": metric, "seed": seed, "data": corpus.fingerprint(),
        "dev": None if dev is None else dev.fingerprint(),
    }, seed)  # fmt: skip
    kept, held = (corpus, dev) if dev is not None else hold_out(corpus, _HELD_OUT, seed, progress)
    if not study.get_trials(deepcopy=False):
        study.enqueue_trial(defaults_of(settings, space))
    asked: list[Any] = []
    told: list[str] = []
    started, n_before = time.monotonic(), len(_finished(study))

    def propose() -> Iterator[_Trial]:
        """Yield new settings whenever a worker is free, until there are enough trials or the time is up."""
        while n_before + len(asked) < trials:
            if n_before + len(asked) and time_limit is not None and time.monotonic() - started >= time_limit:
                progress.say(f"time is up after {n_before + len(asked)} of {trials} trials")
                return
            trial = study.ask()
            chosen = {path: _suggest(trial, path, tunable) for path, tunable in space.items()}
            asked.append(trial)
            told.append(", ".join(f"{path}={value:.4g}" for path, value in chosen.items()))
            yield _Trial(shared, method, merge(fixed, _nest(chosen)), metric, seed)

    runs = engine or LocalEngine()
    if engine is not None:
        engine.check(None)
        progress.say(f"trials run on {engine.outline}")
    shared = runs.share((kept, held))
    for place, (score, mistake) in runs.run(run_trial, propose(), queue=False):
        number = f"trial {len(_finished(study)) + 1} of {trials}"
        if score is None:
            study.tell(asked[place], state=optuna.trial.TrialState.FAIL)
            progress.say(f"{number}: {told[place]}: {mistake}")
        else:
            study.tell(asked[place], score)
            progress.say(f"{number}: {metric} {score:.2f} with {told[place]}")
    scores = [one.value for one in _finished(study) if one.value is not None]
    if not scores:
        raise ConfigError(f"none of the {len(_finished(study))} trials could be trained; try `xmtc train` first")
    best = {path: study.best_trial.params[path] for path in space}
    return Tuning(
        method, merge(fixed, _nest(best)), metric, study.best_value, scores, len(_finished(study)) - len(scores)
    )


class _Trial(NamedTuple):
    """Settings to try, in the form that is sent to a worker."""

    shared: Shared[tuple[Corpus, Corpus]]  # documents to train on, and to score on
    method: str
    config: dict[str, Any]
    metric: str
    seed: int


def run_trial(trial: _Trial) -> tuple[float | None, str]:
    """Train and score, in any process; return the score, or None and the reason why training failed."""
    kept, held = trial.shared.get()
    try:
        model = api.train(kept, trial.method, trial.config, dev=_for(trial.method, held), seed=trial.seed)
        return api.evaluate(model, held, truth="known", intervals=False)[trial.metric], ""
    except XmtcError as error:
        return None, str(error)


def _open_study(journal: Path, identity: dict[str, Any], seed: int) -> Any:
    """Return the study in a journal file, or a new one; raise if the file belongs to another search."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    try:
        storage = JournalStorage(JournalFileBackend(str(journal)))
        study = optuna.create_study(storage=storage, study_name=_STUDY, direction="maximize", load_if_exists=True)
    except OSError as error:
        raise ConfigError(f"cannot write the journal {journal}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{journal} is not the journal of a search; move it or choose another --out") from None
    known = study.user_attrs.get("identity")
    if known is None:
        study.set_user_attr("identity", identity)
    elif known != json.loads(json.dumps(identity)):
        raise ConfigError(
            f"{journal} belongs to another method, metric, seed or corpus; remove it or choose another --out"
        )
    # a resumed search must not repeat the proposals of the interrupted one
    fresh = (seed + len(study.get_trials(deepcopy=False))) % 2**32
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # running trials count as bad ones, so that two workers do not try almost the same settings
        study.sampler = optuna.samplers.TPESampler(seed=fresh, constant_liar=True)
    return study


def _finished(study: Any) -> list[Any]:
    """Return the trials that ended, successfully or not; a killed trial has not ended."""
    return [one for one in study.get_trials(deepcopy=False) if one.state.is_finished()]


def _suggest(trial: Any, path: str, tunable: Tunable) -> Any:
    low, high = tunable.low, tunable.high
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(path, low, high, log=tunable.log)
    return trial.suggest_float(path, low, high, log=tunable.log)


def _for(method: str, dev: Corpus) -> Corpus | None:
    return dev if api.uses_dev(method) else None


def _is_set(config: Mapping[str, Any], path: str) -> bool:
    """Return whether a nested mapping has a value at a path."""
    value: Any = config
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return False
        value = value[key]
    return True


def _nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by path as nested mappings."""
    parts = [reduce(lambda inner, key: {key: inner}, reversed(path.split(".")), value) for path, value in flat.items()]
    return reduce(merge, parts, {})


def _toml(config: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the lines of a TOML table: values first, then subtables; None is left out, because TOML has no null."""
    values = {key: value for key, value in config.items() if value is not None and not isinstance(value, Mapping)}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    if prefix and lines:
        lines = ["", f"[{prefix}]", *lines]
    for key, value in config.items():
        if isinstance(value, Mapping):
            lines += _toml(value, f"{prefix}.{key}" if prefix else key)
    return lines
