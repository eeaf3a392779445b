"""xmtc update."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xmtc.app.cli.options import ModelFolder, check_path
from xmtc.app.cli.table_options import TableOptions, name_vocabulary, takes_tables
from xmtc.core.errors import ConfigError

if TYPE_CHECKING:
    from xmtc.core.progress import Progress


@takes_tables
def update(
    model: ModelFolder,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="All documents, old and new (a folder's train split, or a file); with --base only the new ones.",
        ),
    ] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option(
            "--vocabulary",
            metavar="FILE",
            callback=check_path,
            help="Labels to suggest without documents: a labels.jsonl or a SKOS vocabulary (.ttl, .rdf, .nt, .jsonld). "
            "--labels FILE means the same.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base", metavar="DATA", callback=check_path, help="What the model was trained on, where DATA lacks it."
        ),
    ] = None,
    retire: Annotated[
        list[str] | None,
        typer.Option("--retire", metavar="LABEL", help="Label never to be ranked again; may be given several times."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FOLDER", callback=check_path, help="Folder to write; MODEL itself with --overwrite."
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option("--budget", min=0, max=1, help="Share of a full training's work to spend; new labels come first."),
    ] = 0.05,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the model at --out, or MODEL itself.")
    ] = False,
    *,
    table: TableOptions,
) -> None:
    """Add documents and labels to a linear, knn or match model, or retire labels, without training all of it again.

    New labels are those that MODEL does not know. Linear: nodes of the trees whose documents changed most are refitted
    as far as the budget goes; the rest of the model stays as it is. Without the documents of training, in DATA or
    --base, new documents teach only new labels. Knn: the new documents are added to those that MODEL holds. The words
    that MODEL knows stay as they are: train anew when these have changed. Labels of a vocabulary (--labels) need no
    documents: a match model, a knn model with neighbours.labels, and ensembles with such members suggest them by name.
    """
    from xmtc import api
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_saved
    from xmtc.app.details import last_update
    from xmtc.core.storage import check_target
    from xmtc.data import read_labels, store_mapping

    started = time.monotonic()
    labels, table = name_vocabulary(vocabulary, table)
    if data is None and (base is not None or not (retire or labels)):
        raise ConfigError("there is nothing to update: give DATA with new documents, --retire LABEL or --labels FILE")
    if out is None and not overwrite:
        raise ConfigError("name a folder for the updated model with --out, or replace this one with --overwrite")
    target = model if out is None else out
    mapping = table.mapping(model)
    with show_progress() as progress:
        loaded = api.load(model)
        if labels is not None:
            api.check_add_labels(loaded)
        if labels is None or data is not None or retire:
            api.check_update(loaded)
        check_target(target, overwrite=overwrite)
        progress.stage("reading documents" if labels is None else "reading labels")
        concepts = None if labels is None else read_labels(labels, loaded.labels.ids)
        updated = api.update(
            loaded,
            None if data is None else api.read_corpus(data, "train", mapping=mapping),
            labels=concepts,
            base=None if base is None else api.read_corpus(base, "train", mapping=mapping),
            retire=retire or (),
            budget=budget,
            out=target,
            overwrite=overwrite,
            progress=progress,
        )
        store_mapping(target, mapping)
        if data is not None or retire:
            _tell(last_update(updated), progress)
        if concepts is not None:
            added = len(updated.labels) - len(loaded.labels)
            described = len(concepts) - added
            again = f", {described:,} known ones described anew" if described > 0 else ""
            progress.say(f"{_count(added, 'new label')} without documents{again}")
    print_saved(updated, target, time.monotonic() - started)


def _tell(done: dict[str, Any], progress: Progress) -> None:
    """Say in a line or two what became of labels and nodes."""
    told = []
    if done["new_labels"]:
        clusters = done.get("new_clusters", 0)
        where = f"in {_count(clusters, 'new cluster')}" if clusters else "beside known ones"
        told.append(f"{_count(done['new_labels'], 'new label')} {where}")
    if done["retired_labels"]:
        told.append(f"{_count(done['retired_labels'], 'label')} retired")
    if done["documents"] and "nodes" not in done:  # a model that holds its documents
        told.append(_count(done["documents"], "document"))
    elif done["documents"]:
        told.append(f"{done['refitted_nodes']:,} of {_count(done['nodes'], 'node')} refitted")
    progress.say(", ".join(told))
    if done.get("waiting_nodes"):
        progress.say(
            f"{done['waiting_nodes']:,} more nodes have other documents than before and stay as they were; "
            "a larger --budget, or a full training, refits them"
        )
    if done["documents"] and not done["whole"]:
        progress.say(
            "the documents of training were not given: new labels learnt from the new documents alone, known labels "
            "learnt nothing (see --base)"
        )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"
