"""Trackers: send training metrics to TensorBoard, MLflow, Weights & Biases or trackio. Each is imported on first use.

A tracker is a `core.tracker.Tracker`; a `Progress` has the trackers of a run. To use one from Python:

    progress = Progress()
    with open_tracker("mlflow", "my run") as tracker:
        progress.trackers = (tracker,)
        xmtc.train(corpus, "lightxml", progress=progress)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from xmtc.core.errors import ConfigError, nearest
from xmtc.core.tracker import Tracker

_PROJECT = "xmtc"


class _TensorBoard:
    """Writes event files to <run>.tensorboard."""

    def __init__(self, package: ModuleType, run: str, settings: Mapping[str, Any]) -> None:
        self._writer: Any = package.Writer(f"{run}.tensorboard")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class _MlFlow:
    def __init__(self, package: ModuleType, run: str, settings: Mapping[str, Any]) -> None:
        self._package: Any = package
        package.start_run(run_name=run)
        package.log_params(dict(settings))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._package.log_metrics(dict(values), step=step)

    def close(self) -> None:
        self._package.end_run()


class _Wandb:
    def __init__(self, package: ModuleType, run: str, settings: Mapping[str, Any]) -> None:
        self._run: Any = package.init(project=_PROJECT, name=run, config=dict(settings))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        self._run.finish()


class _Trackio:
    def __init__(self, package: ModuleType, run: str, settings: Mapping[str, Any]) -> None:
        self._package: Any = package
        package.init(project=_PROJECT, name=run, config=dict(settings))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._package.log(dict(values), step=step)

    def close(self) -> None:
        self._package.finish()


# name → the module that is imported, and its adapter
_TRACKERS: dict[str, tuple[str, Callable[[ModuleType, str, Mapping[str, Any]], Tracker]]] = {
    "tensorboard": ("tensorboard.summary", _TensorBoard),
    "mlflow": ("mlflow", _MlFlow),
    "wandb": ("wandb", _Wandb),
    "trackio": ("trackio", _Trackio),
}
TRACKERS = tuple(_TRACKERS)


def check_tracker(name: str) -> None:
    """Raise ConfigError if a tracker is unknown or not installed; call it before training."""
    _import(name)


@contextmanager
def open_tracker(name: str, run: str, settings: Mapping[str, Any] | None = None) -> Iterator[Tracker]:
    """Start a run of a tracker; it ends with the `with` block, even if training fails.

    name: one of TRACKERS. run: name of the run. settings: recorded with it, if the tracker supports that.
    """
    package = _import(name)
    tracker = _TRACKERS[name][1](package, run, settings or {})
    try:
        yield tracker
    finally:
        tracker.close()


def _import(name: str) -> ModuleType:
    if name not in _TRACKERS:
        hint = nearest(name, TRACKERS) or f" Known: {', '.join(TRACKERS)}."
        raise ConfigError(f"unknown tracker {name!r}.{hint}")
    try:
        return import_module(_TRACKERS[name][0])
    except ImportError:
        raise ConfigError(f"tracker {name!r} needs the package {name}; install it with: pip install {name}") from None
