"""Corpus → numbers: TF-IDF, label vectors, clusters. Knows no encoder and no file layout."""
