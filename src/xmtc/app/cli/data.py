"""xmtc data: create data sets, and convert them between layouts."""

from __future__ import annotations

from typing import Annotated

import typer

from xmtc.app.cli.options import Seed, check_path
from xmtc.app.cli.panels import data_option, output_option
from xmtc.app.cli.table_options import TableOptions, name_vocabulary, takes_tables

_Folder = Annotated[
    str,
    output_option("--out", metavar="FOLDER", callback=check_path, help="Folder to write. It must be new or empty."),
]


def pydocs(
    out: _Folder,
    packages: Annotated[
        str | None,
        data_option(
            "--packages",
            metavar="NAMES",
            help="Read only these packages, separated by commas, such as numpy,scipy. python is the standard library.",
        ),
    ] = None,
) -> None:
    """Create a real data set from the docstrings of the installed Python packages.

    Texts are names and descriptions; labels are modules and parameter names: about 20,000 with the extras dev and
    neural, fewer without. Nothing is downloaded or imported.
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
    documents: Annotated[int, data_option("--documents", min=1, help="Number of documents.")],
    labels: Annotated[int, data_option("--labels", min=1, help="Number of labels.")],
    seed: Seed = 0,
) -> None:
    """Create a random data set of any size, for scale tests. Its scores say nothing about accuracy."""
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
            metavar="SRC", callback=check_path, help="Folder or file in any layout, or hf:owner/name. See docs/DATA.md."
        ),
    ],
    out: _Folder,
    to: Annotated[
        str,
        output_option("--to", metavar="LAYOUT", help="Layout to write: one of {layouts}."),
    ],
    vocabulary: Annotated[
        str | None,
        data_option(
            "--vocabulary",
            metavar="FILE",
            callback=check_path,
            help="Names and parents of labels, replacing those of SRC: a labels.jsonl or a SKOS vocabulary "
            "(.ttl, .rdf, .nt, .jsonld). --labels FILE means the same.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        data_option("--language", metavar="TAG", help="Language of the label names in a SKOS vocabulary, such as de."),
    ] = None,
    *,
    table: TableOptions,
) -> None:
    """Write a data set in another layout.

    Splits, documents and label strings are kept. One line reports anything else that the layout cannot store.
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
