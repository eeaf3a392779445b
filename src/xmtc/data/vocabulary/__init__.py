"""Read names and hierarchy of labels from labels files and SKOS vocabularies. Independent of documents."""

from xmtc.data.vocabulary.concepts import LABELS, NOTHING, Described, write_concepts
from xmtc.data.vocabulary.read import FILE_NAMES, find_vocabulary, is_skos, is_vocabulary, read_labels, read_vocabulary

__all__ = [
    "FILE_NAMES",
    "LABELS",
    "NOTHING",
    "Described",
    "find_vocabulary",
    "is_skos",
    "is_vocabulary",
    "read_labels",
    "read_vocabulary",
    "write_concepts",
]
