"""Files → Corpus. Knows layouts; knows no features, no models."""
