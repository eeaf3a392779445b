"""AttentionXML and LightXML: texts and labels in two files, line by line.

{train,test}_raw_texts.txt has one text per line (if it is missing, the tokenised {train,test}_texts.txt is read).
{train,test}_labels.txt has the label strings of the same document, separated by white space.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.document import Document
from xmtc.data.files import open_lines, write_lines
from xmtc.data.gather import gather
from xmtc.data.layout import SPLITS, TEXTS, Files, layout_of_files
from xmtc.data.vocabulary import Described
from xmtc.data.write import check_labels, documents_of, text_lines

_NEEDED = {split: ((f"{split}_raw_texts.txt", f"{split}_texts.txt"), (f"{split}_labels.txt",)) for split in SPLITS}


def read(files: Files, known: Described) -> Corpus:
    """Read texts and labels line by line."""
    return gather(_documents(files), str(files[0]), known=known)


def _documents(files: Files) -> Iterator[Document]:
    texts, labels = map(open_lines, files)
    for text, line in zip_longest(texts, labels):
        if text is None or line is None:
            longer, shorter, lacking = (labels, texts, "text") if text is None else (texts, labels, "labels")
            raise longer.mistake(
                f"no {lacking} for this line in {Path(shorter.name).name} (which has {shorter.number} lines); "
                "line i of both must be the same document"
            )
        yield Document(None, text, line.split())


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write texts and labels line by line."""
    check_labels(corpora, "attentionxml", r"\S+", "separates labels by white space")
    for split, corpus in corpora.items():
        write_lines(folder / f"{split}_raw_texts.txt", text_lines(corpus))
        write_lines(folder / f"{split}_labels.txt", (" ".join(document.labels) for document in documents_of(corpus)))


LAYOUTS = (layout_of_files("attentionxml", _NEEDED, read, write, TEXTS),)
