"""xmtc data: makes data sets in the native layout."""

from __future__ import annotations

from typing import Annotated

import typer

from xmtc.app.options import Seed, check_path

_Folder = Annotated[
    str,
    typer.Option("--out", metavar="FOLDER", callback=check_path, help="Folder to write; it must be new or empty."),
]


def pydocs(out: _Folder) -> None:
    """Make a real data set from the docstrings of the Python packages installed here.

    Texts are names and descriptions; labels are modules and parameter names, some 20,000 with the dev and neural extras
    and fewer without. Nothing is downloaded and nothing is imported.
    """
    from xmtc.app.progress import show_progress
    from xmtc.data.pydocs import build_pydocs

    with show_progress() as progress:
        progress.stage("reading docstrings")
        summary = build_pydocs(out, progress=progress.step)
    counts = ", ".join(f"{n:,} {split}" for split, n in summary.documents.items())
    print(f"{out}: {counts} documents, {summary.labels:,} labels, sha256 {summary.sha256[:12]}")


def synthetic(
    out: _Folder,
    documents: Annotated[int, typer.Option("--documents", min=1, help="Documents to make.")],
    labels: Annotated[int, typer.Option("--labels", min=1, help="Labels to draw from.")],
    seed: Seed = 0,
) -> None:
    """Make a random data set of any size, for tests of scale; it says nothing about accuracy."""
    from xmtc.app.progress import show_progress
    from xmtc.data.synthetic import build_synthetic

    with show_progress() as progress:
        progress.stage("writing documents")
        build_synthetic(out, documents, labels, seed, progress.step)
    print(f"{out}: {documents:,} documents, {labels:,} labels, seed {seed}")
