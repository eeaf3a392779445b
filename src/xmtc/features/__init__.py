"""Turn a corpus into numbers: TF-IDF, label vectors, clusters, neighbours, words, tokens. No encoders, no files."""
