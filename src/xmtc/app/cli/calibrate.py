"""xmtc calibrate: learn probabilities for the scores of a saved model."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from xmtc.app.cli.options import Group, Json, ModelFolder
from xmtc.app.cli.panels import data_option, method_option
from xmtc.app.cli.table_options import TableOptions, takes_tables
from xmtc.core.errors import DataError

if TYPE_CHECKING:
    from xmtc.core.corpus import Corpus
    from xmtc.core.model import Model
    from xmtc.data import TableMapping

_SHOWN = ("precision=0.95", "precision=0.9", "precision=0.8", "f1")  # targets to print thresholds for


class Method(StrEnum):
    """The curve from scores to probabilities."""

    isotonic = "isotonic"
    platt = "platt"


@takes_tables
def calibrate(
    model: ModelFolder,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Folder with a dev or train split, or a file of labelled documents.")
    ],
    split: Annotated[
        str | None,
        data_option("--split", metavar="NAME", help="Split of a data folder. Default: dev if it exists, else train."),
    ] = None,
    method: Annotated[
        Method,
        method_option(
            "--method", help="isotonic fits any rising curve; platt fits a logistic curve, for few documents."
        ),
    ] = Method.isotonic,
    group: Group = None,
    json: Json = False,
    *,
    table: TableOptions,
) -> None:
    """Learn probabilities for a model's scores from labelled documents, and store them in the model folder.

    The documents must not be training documents. If DATA is the training data, the part that training held out is used;
    if training held out nothing, a copy of the model is trained on a part of the data and calibrated on the rest.
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
        reported = {target: asdict(at) for target, at in thresholds.items()}
        print_json({"model": model, "data": data, **found.summary(), "thresholds": reported})
        return
    print(f"{model}: {found.method}, from the best {DEPTH} labels of {found.n_documents:,} documents {found.source}")
    for bin_, pairs in found.pairs.items():
        curve = "" if bin_ in found.curves else "; too few, so the curve of all labels is used"
        if pairs:
            print(f"  {ALL_BINS[bin_].title:16} {pairs:9,} labels ranked, {found.right[bin_]:,} of them right{curve}")
    for target, at in thresholds.items():
        print(f"  -k {DEPTH} --target {target:15} {at}")


def _read(
    loaded: Model, model: str, data: str, split: str | None, group: str | None, mapping: TableMapping | None
) -> Corpus:
    """Read the requested split, the dev split, or the documents that the model was trained on."""
    from xmtc import api
    from xmtc.core.held_out import is_training_corpus
    from xmtc.data import splits

    found = splits(data)
    if split is not None or not found or "dev" in found or "train" not in found:
        return api.read_corpus(data, split or "dev", group=group, mapping=mapping)
    corpus = api.read_corpus(data, "train", group=group, mapping=mapping)
    if not is_training_corpus(loaded, corpus):
        raise DataError(
            f"{data} has no dev split, and {model} was not trained on its train split; "
            "give documents that it was not trained on: a file, or a split with --split"
        )
    return corpus
