"""The nouns of the library: labels, corpora, partitions, rankings, metrics, storage. No torch, no user's files."""
