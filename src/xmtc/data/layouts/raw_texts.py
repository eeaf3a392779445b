"""AttentionXML and LightXML: texts and labels in two files, line by line.

{train,test}_raw_texts.txt holds one text a line (else the tokenised {train,test}_texts.txt is taken), and
{train,test}_labels.txt the same document's label strings, separated by white space.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import zip_longest
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.concepts import Described
from xmtc.data.gather import gather
from xmtc.data.layouts.layout import SPLITS, TEXTS, Files, Layout, find_together
from xmtc.data.lines import open_lines
from xmtc.data.rows import Row
from xmtc.data.write import check_labels, document_rows, one_line, open_whole

_NEEDED = {split: ((f"{split}_raw_texts.txt", f"{split}_texts.txt"), (f"{split}_labels.txt",)) for split in SPLITS}


def read(files: Files, known: Described) -> Corpus:
    """Read texts and labels side by side."""
    return gather(_rows(files), str(files[0]), known=known)


def _rows(files: Files) -> Iterator[Row]:
    texts, labels = map(open_lines, files)
    for text, line in zip_longest(texts, labels):
        if text is None or line is None:
            longer, shorter, lacking = (labels, texts, "text") if text is None else (texts, labels, "labels")
            raise longer.mistake(
                f"no {lacking} for this line in {Path(shorter.name).name} (which has {shorter.number} lines); "
                "line i of both must be the same document"
            )
        yield Row(None, text, line.split())


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write texts and labels side by side."""
    check_labels(corpora, "attentionxml", r"\S+", "separates labels by white space")
    for split, corpus in corpora.items():
        with (
            open_whole(folder / f"{split}_raw_texts.txt") as texts,
            open_whole(folder / f"{split}_labels.txt") as labels,
        ):
            for row in document_rows(corpus):
                texts.write(f"{one_line(row.text)}\n".encode())
                labels.write(f"{' '.join(row.labels)}\n".encode())


LAYOUT = Layout("attentionxml", partial(find_together, needed=_NEEDED), read, write, TEXTS, needed=_NEEDED)
