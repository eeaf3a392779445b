"""The registry of layouts: names and modules, in the order in which they are tried.

A layout's module is imported only when the layout is opened. To add a layout, write a module here whose `LAYOUTS`
contains its `Layout`, and add a line for it below.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from xmtc.data.layout import Layout

__all__ = ["LAYOUTS", "Entry", "read_label_vectors"]


@dataclass(frozen=True)
class Entry:
    """What is known about a layout without importing its module."""

    name: str
    module: str
    writable: bool = True
    mapped: bool = False  # a `TableMapping` may name its columns

    def open(self) -> Layout:
        """Import the module and return its layout with this name."""
        layouts: tuple[Layout, ...] = import_module(self.module).LAYOUTS
        return next(layout for layout in layouts if layout.name == self.name)


# tried in this order: among layouts with the same file names, the one with more requirements comes first; the last one
# checks names only
LAYOUTS = (
    Entry("native", "xmtc.data.layouts.native", mapped=True),
    Entry("aplc", "xmtc.data.layouts.aplc"),
    Entry("annif", "xmtc.data.layouts.annif"),
    Entry("csv", "xmtc.data.layouts.tables", mapped=True),
    Entry("tsv", "xmtc.data.layouts.tables", mapped=True),
    Entry("parquet", "xmtc.data.layouts.tables", mapped=True),
    Entry("xlsx", "xmtc.data.layouts.tables", writable=False, mapped=True),
    Entry("sqlite", "xmtc.data.layouts.tables", writable=False, mapped=True),
    Entry("annif-fulltext", "xmtc.data.layouts.annif_fulltext", writable=False),
    Entry("attentionxml", "xmtc.data.layouts.attentionxml"),
    Entry("xtransformer", "xmtc.data.layouts.xtransformer"),
    Entry("xbert", "xmtc.data.layouts.xbert"),
    Entry("pecos", "xmtc.data.layouts.pecos"),
    Entry("xml-repository-texts", "xmtc.data.layouts.xml_repository_texts"),
    Entry("xml-repository-sparse", "xmtc.data.layouts.xml_repository"),
    Entry("libmultilabel", "xmtc.data.layouts.libmultilabel"),
    Entry("xml-repository", "xmtc.data.layouts.xml_repository"),
)


def read_label_vectors(path: Path) -> tuple[list[str], sp.csr_matrix | NDArray[np.float32]]:
    """Read label vectors from a file next to a data set, such as X-BERT's L.elmo.npz; return label ids and rows."""
    from xmtc.data.layouts import numbered

    return numbered.read_label_vectors(path)
