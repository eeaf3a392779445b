"""xmtc update: add documents and labels to a model, or retire labels."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xmtc.app.cli.options import ModelFolder, check_path
from xmtc.app.cli.panels import data_option, method_option, output_option
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
            help="All documents, old and new: a folder with a train split, or a file. With --base: only the new ones.",
        ),
    ] = None,
    vocabulary: Annotated[
        str | None,
        data_option(
            "--vocabulary",
            metavar="FILE",
            callback=check_path,
            help="New labels without documents: a labels.jsonl or a SKOS vocabulary (.ttl, .rdf, .nt, .jsonld). "
            "--labels FILE means the same.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        data_option(
            "--base",
            metavar="DATA",
            callback=check_path,
            help="The documents that MODEL was trained on, if DATA does not contain them.",
        ),
    ] = None,
    retire: Annotated[
        list[str] | None,
        method_option("--retire", metavar="LABEL", help="Label to remove from all future rankings. Repeatable."),
    ] = None,
    out: Annotated[
        str | None,
        output_option(
            "--out",
            metavar="FOLDER",
            callback=check_path,
            help="Folder of the updated model. Default with --overwrite: MODEL itself.",
        ),
    ] = None,
    budget: Annotated[
        float,
        method_option(
            "--budget", min=0, max=1, help="Share of the work of a full training to spend. New labels come first."
        ),
    ] = 0.05,
    overwrite: Annotated[
        bool, output_option("--overwrite", help="Replace the model at --out, or MODEL itself without --out.")
    ] = False,
    *,
    table: TableOptions,
) -> None:
    """Add documents and labels to a linear, knn or match model, or retire labels, without full retraining.

    New labels are labels that MODEL does not know. Linear: the tree nodes whose documents changed most are refitted
    within the budget; the rest of the model does not change. If neither DATA nor --base contains the training
    documents, the new documents train only the new labels. Knn: the new documents are added to those of MODEL. The
    words that MODEL knows do not change; train a new model if the words of your documents have changed.

    The labels of --vocabulary need no documents: match models, knn models with neighbours.labels, and ensembles with
    such members suggest them by name.
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
        raise ConfigError("nothing to update; give DATA with new documents, --retire LABEL or --labels FILE")
    if out is None and not overwrite:
        raise ConfigError("give a folder for the updated model with --out, or replace MODEL with --overwrite")
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
            _report(last_update(updated), progress)
        if concepts is not None:
            added = len(updated.labels) - len(loaded.labels)
            described = len(concepts) - added
            again = f", {_count(described, 'description')} of known labels replaced" if described > 0 else ""
            progress.say(f"{_count(added, 'new label')} without documents{again}")
    print_saved(updated, target, time.monotonic() - started)


def _report(done: dict[str, Any], progress: Progress) -> None:
    """Report the changes to labels and nodes in one or two lines."""
    changes = []
    if done["new_labels"]:
        clusters = done.get("new_clusters", 0)
        where = f" in {_count(clusters, 'new cluster')}" if clusters else " in existing clusters"
        changes.append(_count(done["new_labels"], "new label") + (where if "nodes" in done else ""))
    if done["retired_labels"]:
        changes.append(f"{_count(done['retired_labels'], 'label')} retired")
    if done["documents"] and "nodes" not in done:  # a model that contains its documents
        changes.append(_count(done["documents"], "document"))
    elif done["documents"]:
        changes.append(f"{done['refitted_nodes']:,} of {_count(done['nodes'], 'node')} refitted")
    progress.say(", ".join(changes))
    if done.get("waiting_nodes"):
        progress.say(
            f"{done['waiting_nodes']:,} more nodes have changed documents but were not refitted; "
            "use a larger --budget or a full training to refit them"
        )
    if done["documents"] and not done["whole"]:
        progress.say(
            "the training documents were not given: new labels were trained on the new documents alone, known labels "
            "were not changed (see --base)"
        )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"
