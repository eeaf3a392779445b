"""Tuning: a method's declared ranges → the settings that rank dev documents best.

Optuna proposes settings (tree-structured Parzen estimator), this module trains and scores. Every trial is written to a
journal file, so that a search resumes after a kill. Knows no terminal.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from xmtc import api
from xmtc.core.config import merge
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, XmtcError, nearest
from xmtc.core.held_out import hold_out
from xmtc.core.metrics import metric_keys
from xmtc.core.progress import SILENT, Progress
from xmtc.core.search_space import Tunable, defaults_of, search_space

_STUDY = "xmtc"
_HELD_OUT = 0.1  # of the training documents, where no dev is given


@dataclass(frozen=True)
class Tuning:
    """What a search found."""

    method: str
    config: dict[str, Any]  # nested: what was given, and the best of what was tried
    metric: str
    best: float  # percent, on dev
    scores: list[float]  # of all trials that could be trained, in order; the first has the defaults
    failed: int

    def recipe(self) -> str:
        """Return a TOML recipe that `train --recipe` takes."""
        lines = [
            f"# Found by a search: {self.metric} {self.best:.2f} on dev, the best of {len(self.scores)} trials.",
            f"method = {json.dumps(self.method)}",
        ]
        return "\n".join([*lines, *_toml(self.config)]) + "\n"


def check_tune(method: str, config: Mapping[str, Any] | None, metric: str, trials: int) -> None:
    """Raise for arguments that `tune` cannot work with, before documents are read."""
    if find_spec("optuna") is None:
        raise ConfigError("a search needs Optuna; install it with: pip install 'xmtc[tune]'")
    if metric not in metric_keys():
        raise ConfigError(f"unknown metric {metric!r}.{nearest(metric, metric_keys()) or ' Take one such as nDCG@5.'}")
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
    progress: Progress = SILENT,
) -> Tuning:
    """Search the settings that a method declares, and return those that rank dev best.

    config: settings that stay as they are. trials: in all, those of an interrupted search in `journal` included; the
    first has the method's defaults. time_limit: seconds after which no trial begins. dev: documents to score on; a
    tenth of the corpus is held out without them.
    """
    check_tune(method, config, metric, trials)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    _, settings = api.read_settings(method, config)
    fixed = dict(config or {})
    space = {path: one for path, one in search_space(settings).items() if not _is_set(fixed, path)}
    if not space:
        raise ConfigError(f"all settings that method {method!r} would search are set by hand; leave one of them out")
    study = _open_study(Path(journal), {
        "method": method, "config": fixed, "metric": metric, "seed": seed, "data": corpus.fingerprint(),
        "dev": None if dev is None else dev.fingerprint(),
    }, seed)  # fmt: skip
    kept, held = (corpus, dev) if dev is not None else hold_out(corpus, _HELD_OUT, seed, progress)
    if not study.get_trials(deepcopy=False):
        study.enqueue_trial(defaults_of(settings, space))
    started = time.monotonic()
    while (done := len(_finished(study))) < trials:
        if done and time_limit is not None and time.monotonic() - started >= time_limit:
            progress.say(f"time is up after {done} of {trials} trials")
            break
        trial = study.ask()
        chosen = {path: _suggest(trial, path, tunable) for path, tunable in space.items()}
        told = ", ".join(f"{path}={value:.4g}" for path, value in chosen.items())
        try:
            model = api.train(kept, method, merge(fixed, _nest(chosen)), dev=_for(method, held), seed=seed)
            score = api.evaluate(model, held, truth="known", intervals=False)[metric]
        except XmtcError as error:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            progress.say(f"trial {done + 1} of {trials}: {told}: {error}")
            continue
        study.tell(trial, score)
        progress.say(f"trial {done + 1} of {trials}: {metric} {score:.2f} with {told}")
    scores = [one.value for one in _finished(study) if one.value is not None]
    if not scores:
        raise ConfigError(f"none of the {len(_finished(study))} trials could be trained; try `xmtc train` first")
    best = {path: study.best_trial.params[path] for path in space}
    return Tuning(
        method, merge(fixed, _nest(best)), metric, study.best_value, scores, len(_finished(study)) - len(scores)
    )


def _open_study(journal: Path, identity: dict[str, Any], seed: int) -> Any:
    """The study in a journal file, or a new one; raise where it is of another search."""
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
            f"{journal} is of a search with another method, metric, seed or corpus; remove it or choose another --out"
        )
    # a resumed search must not propose what the interrupted one did
    study.sampler = optuna.samplers.TPESampler(seed=(seed + len(study.get_trials(deepcopy=False))) % 2**32)
    return study


def _finished(study: Any) -> list[Any]:
    """The trials that ended, well or not; one that was killed is neither."""
    return [one for one in study.get_trials(deepcopy=False) if one.state.is_finished()]


def _suggest(trial: Any, path: str, tunable: Tunable) -> Any:
    low, high = tunable.low, tunable.high
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(path, low, high, log=tunable.log)
    return trial.suggest_float(path, low, high, log=tunable.log)


def _for(method: str, dev: Corpus) -> Corpus | None:
    return dev if api.uses_dev(method) else None


def _is_set(config: Mapping[str, Any], path: str) -> bool:
    """Whether a nested mapping has a value at a path."""
    value: Any = config
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return False
        value = value[key]
    return True


def _nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by path as nested mappings."""
    parts = [reduce(lambda inner, key: {key: inner}, reversed(path.split(".")), value) for path, value in flat.items()]
    return reduce(merge, parts, {})


def _toml(config: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The lines of a table: values first, then tables inside; TOML has no word for None, which is left out."""
    values = {key: value for key, value in config.items() if value is not None and not isinstance(value, Mapping)}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    if prefix and lines:
        lines = ["", f"[{prefix}]", *lines]
    for key, value in config.items():
        if isinstance(value, Mapping):
            lines += _toml(value, f"{prefix}.{key}" if prefix else key)
    return lines
