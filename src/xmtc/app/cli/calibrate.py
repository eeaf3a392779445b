"""xmtc calibrate: from labelled documents, what a saved model's scores are worth."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from xmtc.app.cli.options import Group, Json, ModelFolder
from xmtc.app.cli.table_options import TableOptions, takes_tables
from xmtc.core.errors import DataError

if TYPE_CHECKING:
    from xmtc.core.corpus import Corpus
    from xmtc.core.model import Model
    from xmtc.data import TableMapping

_SHOWN = ("precision=0.95", "precision=0.9", "precision=0.8", "f1")  # targets whose thresholds are told


class Method(StrEnum):
    """How a curve from scores to probabilities is fitted."""

    isotonic = "isotonic"
    platt = "platt"


@takes_tables
def calibrate(
    model: ModelFolder,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Folder with a dev or train split, or a file of labelled documents.")
    ],
    split: Annotated[
        str | None, typer.Option("--split", metavar="NAME", help="Split of a folder: dev if there is one, else train.")
    ] = None,
    method: Annotated[
        Method, typer.Option("--method", help="isotonic: any rising curve; platt: a logistic one, for few documents.")
    ] = Method.isotonic,
    group: Group = None,
    json: Json = False,
    *,
    table: TableOptions,
) -> None:
    """Give a model's labels probabilities, learnt from labelled documents, and store that in its folder.

    The documents must not have been trained on. Of the training documents, the part serves that training held out; of
    a model that was trained on all of them, a copy is trained without a part, which then serves.
    """
    from dataclasses import asdict

    from xmtc import api
    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.progress import show_progress
    from xmtc.core.calibration import DEPTH
    from xmtc.core.metrics import ALL_BINS

    with show_progress() as progress:
        loaded = api.load(model)
        progress.stage("reading documents")
        corpus = _read(loaded, model, data, split, group, table.mapping(model))
        calibrated = api.calibrate(loaded, corpus, method.value, out=model, progress=progress)
    found = calibrated.calibration
    reached = {target: found.thresholds.reach(target, DEPTH) for target in _SHOWN}
    thresholds = {target: at for target, at in reached.items() if at is not None}
    if json:
        told = {target: asdict(at) for target, at in thresholds.items()}
        print_json({"model": model, "data": data, **found.summary(), "thresholds": told})
        return
    print(f"{model}: {found.method}, from the best {DEPTH} labels of {found.n_documents:,} documents {found.source}")
    for bin_, pairs in found.pairs.items():
        curve = "" if bin_ in found.curves else "; too few, so the curve of all labels serves"
        if pairs:
            print(f"  {ALL_BINS[bin_].title:16} {pairs:9,} labels ranked, {found.right[bin_]:,} of them right{curve}")
    for target, at in thresholds.items():
        print(f"  -k {DEPTH} --target {target:15} {at}")


def _read(
    loaded: Model, model: str, data: str, split: str | None, group: str | None, mapping: TableMapping | None
) -> Corpus:
    """The split asked for, the dev split, or the documents that the model was trained on."""
    from xmtc import api
    from xmtc.core.held_out import is_training_corpus
    from xmtc.data import splits

    found = splits(data)
    if split is not None or not found or "dev" in found or "train" not in found:
        return api.read_corpus(data, split or "dev", group=group, mapping=mapping)
    corpus = api.read_corpus(data, "train", group=group, mapping=mapping)
    if not is_training_corpus(loaded, corpus):
        raise DataError(
            f"{data} has no dev split, and its train split is not what {model} was trained on; "
            "give documents that it was not trained on: a file, or a split by --split"
        )
    return corpus
