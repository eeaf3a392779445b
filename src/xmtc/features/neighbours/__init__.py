"""Neighbours: the documents of a pool that are nearest to a text, found exactly or by an index."""

from xmtc.features.neighbours.documents import restore_documents, store_documents
from xmtc.features.neighbours.store import (
    Approximate,
    NeighbourConfig,
    Neighbours,
    NeighbourStore,
    Vectors,
    search_once,
)
from xmtc.features.neighbours.word_means import mean_word_vectors

__all__ = [
    "Approximate",
    "NeighbourConfig",
    "NeighbourStore",
    "Neighbours",
    "Vectors",
    "mean_word_vectors",
    "restore_documents",
    "search_once",
    "store_documents",
]
