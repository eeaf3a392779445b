"""The models of `xmtc demo`: each trained and calibrated, or taken as an earlier run left it; and their ensemble."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from xmtc.core.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from xmtc.core.corpus import Corpus
    from xmtc.core.model import Model
    from xmtc.core.progress import Progress

LINEAR = "linear"
LIGHTXML = "lightxml/pydocs-demo"
_DEV_SHARE = 20  # one module in twenty is dev
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of the first model in the ensemble, that are tried
_CHOSEN_BY = "nDCG@5"
_DEPTH = 100  # labels that each model puts forward, as in an ensemble


class Parts(NamedTuple):
    """Documents to train on, and documents to choose and calibrate by."""

    train: Corpus
    dev: Corpus


def hold_out_modules(corpus: Corpus) -> Parts:
    """Set one module in twenty aside, with all its documents: as test is made of modules that training never saw."""
    import numpy as np

    modules = np.array([not label.startswith("arg:") for label in corpus.labels.ids])
    held = np.zeros(len(corpus), dtype=bool)
    for row in range(len(corpus)):
        found = corpus.Y.indices[corpus.Y.indptr[row] : corpus.Y.indptr[row + 1]]
        names = corpus.labels.decode(found[modules[found]].tolist())
        module = max(names, key=lambda name: (len(name), name), default="")
        held[row] = int.from_bytes(hashlib.sha256(f"dev {module}".encode()).digest()[:8], "big") % _DEV_SHARE == 0
    if held.any() and not held.all():
        return Parts(corpus.take(np.flatnonzero(~held)), corpus.take(np.flatnonzero(held)))
    return Parts(*corpus.split(1 / _DEV_SHARE))  # a handful of modules: any documents will do


def train_model(recipe: str, parts: Parts, folder: str) -> Model:
    """Train by a method's defaults or by a recipe, and calibrate; go on with what an interrupted run left."""
    from xmtc import api
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_saved
    from xmtc.core.calibration.model import CalibratedModel

    started = time.monotonic()
    with show_progress() as progress:
        model = _trained(recipe, parts, folder, progress)
        if not isinstance(model, CalibratedModel):
            model = api.calibrate(model, parts.dev, out=folder, progress=progress)
    print_saved(model, folder, time.monotonic() - started)
    return model


def _trained(recipe: str, parts: Parts, folder: str, progress: Progress) -> Model:
    from xmtc import api

    method, config = api.read_settings(recipe) if recipe in api.METHODS else api.read_settings(recipe=recipe)
    dev = parts.dev if api.uses_dev(method, config) else None
    if Path(folder).exists() or Path(f"{folder}.partial").exists():
        try:
            return api.train(parts.train, method, config, dev=dev, out=folder, resume=True, progress=progress)
        except (ConfigError, ModelError):  # what lies there is of other settings or data, or was cut
            progress.say(f"{folder} is of another run: it is trained anew")
    return api.train(parts.train, method, config, dev=dev, out=folder, overwrite=True, progress=progress)


def join_models(members: Sequence[Model], parts: Parts, folder: str) -> Model:
    """Average two models' scores, with the weights that rank dev best, and calibrate the whole."""
    from xmtc import api
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_saved
    from xmtc.core.ensemble import combine

    started = time.monotonic()
    with show_progress() as progress:
        # both were trained on the same documents, so their labels are the same
        rankings = [api.rank_corpus(member, parts.dev, _DEPTH, progress) for member in members]
        tried = {}
        for share in _SHARES:
            ranking = combine(rankings, 5, "mean", _weights(share))
            tried[share] = api.evaluate(members[0], parts.dev, ranking=ranking, intervals=False)[_CHOSEN_BY]
        share = max(_SHARES, key=lambda share: (tried[share], -abs(share - 0.5)))
        joined = api.ensemble(members, "mean", _weights(share), out=folder, overwrite=True)
        model = api.calibrate(joined, parts.dev, out=folder, progress=progress)
    told = (f"{weight:g} {member.manifest.method}" for weight, member in zip(_weights(share), members, strict=True))
    print(f"weights, by {_CHOSEN_BY} on the documents set aside: {', '.join(told)}")
    print_saved(model, folder, time.monotonic() - started)
    return model


def _weights(share: float) -> list[float]:
    return [share, round(1 - share, 1)]
