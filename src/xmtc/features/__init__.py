"""Corpus → numbers: TF-IDF, label vectors, clusters, neighbours, words, tokens. Knows no encoder and no file layout."""
