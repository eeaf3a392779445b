"""xmtc data: makes data sets, and converts them from one layout to another."""

from __future__ import annotations

from typing import Annotated

import typer

from xmtc.app.cli.options import Seed, check_path
from xmtc.app.cli.table_options import TableOptions, name_vocabulary, takes_tables

_Folder = Annotated[
    str,
    typer.Option("--out", metavar="FOLDER", callback=check_path, help="Folder to write; it must be new or empty."),
]


def pydocs(
    out: _Folder,
    packages: Annotated[
        str | None,
        typer.Option(
            "--packages",
            metavar="NAMES",
            help="Read only these packages, separated by commas: numpy,scipy. python is the standard library.",
        ),
    ] = None,
) -> None:
    """Make a real data set from the docstrings of the Python packages installed here.

    Texts are names and descriptions; labels are modules and parameter names, some 20,000 with the dev and neural extras
    and fewer without. Nothing is downloaded and nothing is imported.
    """
    from xmtc.app.cli.progress import show_progress
    from xmtc.data import build_pydocs

    chosen = None if packages is None else [name.strip() for name in packages.split(",")]
    with show_progress() as progress:
        progress.stage("reading docstrings")
        summary = build_pydocs(out, chosen, progress=progress.step)
    counts = ", ".join(f"{n:,} {split}" for split, n in summary.documents.items())
    print(f"{out}: {counts} documents, {summary.labels:,} labels, sha256 {summary.sha256[:12]}")


def synthetic(
    out: _Folder,
    documents: Annotated[int, typer.Option("--documents", min=1, help="Documents to make.")],
    labels: Annotated[int, typer.Option("--labels", min=1, help="Labels to draw from.")],
    seed: Seed = 0,
) -> None:
    """Make a random data set of any size, for tests of scale; it says nothing about accuracy."""
    from xmtc.app.cli.progress import show_progress
    from xmtc.data import build_synthetic

    with show_progress() as progress:
        progress.stage("writing documents")
        build_synthetic(out, documents, labels, seed, progress.step)
    print(f"{out}: {documents:,} documents, {labels:,} labels, seed {seed}")


@takes_tables
def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC", callback=check_path, help="Folder or file in any layout, or hf:owner/name; see docs/DATA.md."
        ),
    ],
    out: _Folder,
    to: Annotated[
        str,
        typer.Option("--to", metavar="LAYOUT", help="One of {layouts}."),
    ],
    vocabulary: Annotated[
        str | None,
        typer.Option(
            "--vocabulary",
            metavar="FILE",
            callback=check_path,
            help="Names and parents of labels, instead of SRC's own: a labels.jsonl or a SKOS vocabulary "
            "(.ttl, .rdf, .nt, .jsonld). --labels FILE means the same.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option("--language", metavar="TAG", help="Of the names of a SKOS vocabulary, such as de."),
    ] = None,
    *,
    table: TableOptions,
) -> None:
    """Write a data set in another layout.

    Splits, documents and the strings of their labels stay; what else the layout cannot hold is reported in one line.
    """
    from xmtc.app.cli.progress import show_progress
    from xmtc.data import convert as convert_data

    vocabulary, table = name_vocabulary(vocabulary, table)
    mapping = table.mapping()
    with show_progress() as progress:
        progress.stage("reading and writing documents")
        done = convert_data(source, out, to, labels=vocabulary, language=language, mapping=mapping)
    counts = ", ".join(f"{n:,} {split}" for split, n in done.documents.items())
    print(f"{out}: layout {to}, {counts} documents, {done.n_labels:,} labels")
