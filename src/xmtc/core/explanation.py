"""Explanation: why a label was given to a text. Parts that a method lacks are empty."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """Why `label` (a label id) got `score`, by the method that ranked it."""

    label: str
    score: float
    spans: tuple[tuple[int, int, float], ...] = ()  # (start, end, weight) in characters of the text; never overlapping
    path: tuple[tuple[str, float], ...] = ()  # (cluster, score) from the root down, the label itself last
    neighbours: tuple[tuple[str, float, tuple[str, ...]], ...] = ()  # (document id, similarity, its labels)
    scope: tuple[tuple[str, float], ...] = ()  # (label or concept, weight) that the text was read with, heaviest first
    members: tuple[tuple[str, float], ...] = ()  # (method, share in the score) of each model that explains together
    method: str = ""

    def words(self, text: str, n: int = 5) -> list[tuple[str, float]]:
        """Return the n words that pushed the label up most, each once with its weights added, strongest first."""
        total: dict[str, float] = {}
        for start, end, weight in self.spans:
            word = text[start:end].lower()
            total[word] = total.get(word, 0.0) + weight
        pushing = [(word, weight) for word, weight in total.items() if weight > 0]
        return sorted(pushing, key=lambda pair: (-pair[1], pair[0]))[:n]
