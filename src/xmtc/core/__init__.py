"""The library's basic types: labels, corpora, partitions, rankings, metrics, storage. No torch, no user files."""
