"""Explanation: why a label was given to a text. Parts that a method does not provide are empty."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from xmtc.core.display import Displayed, Grid, shorten


@dataclass(frozen=True, repr=False)
class Explanation(Displayed):
    """Explains why `label` (a label id) got `score` from the method that ranked it."""

    label: str
    score: float
    spans: tuple[tuple[int, int, float], ...] = ()  # (start, end, weight) in characters of the text; no overlaps
    path: tuple[tuple[str, float], ...] = ()  # (cluster, score) from the root down, the label itself last
    neighbours: tuple[tuple[str, float, tuple[str, ...]], ...] = ()  # (document id, similarity, its labels)
    scope: tuple[tuple[str, float], ...] = ()  # (label or concept, weight) that the text was read with, heaviest first
    members: tuple[tuple[str, float], ...] = ()  # (method, share in the score) of each member of an ensemble
    method: str = ""
    text: str = ""  # the explained text

    def words(self, text: str, n: int = 5) -> list[tuple[str, float]]:
        """Return the n words that raised the label's score most, each once with its weights added, strongest first.

        >>> import xmtc
        >>> texts = ["sugar beet quota", "cod and other fish", "beet harvest", "fish quota"] * 10
        >>> tags = [["sugar"], ["fishery"], ["sugar"], ["fishery"]] * 10
        >>> corpus = xmtc.Corpus.from_lists(texts, tags)
        >>> text = "Fish and chips"
        >>> [word for word, _ in xmtc.train(corpus).explain(text, "fishery").words(text)]
        ['fish', 'and']
        """
        total: dict[str, float] = {}
        for start, end, weight in self.spans:
            word = text[start:end].lower()
            total[word] = total.get(word, 0.0) + weight
        pushing = [(word, weight) for word, weight in total.items() if weight > 0]
        return sorted(pushing, key=lambda pair: (-pair[1], pair[0]))[:n]

    def display_line(self) -> str:
        """Return the label, its score and the words that pushed it up most."""
        words = ", ".join(f"{shorten(word, 30)} {weight:+.3g}" for word, weight in self.words(self.text))
        return f"{shorten(self.label)}, score {self.score:.3g}" + (f"; {words}" if words else "")

    def display_grids(self) -> list[Grid]:
        """Return the path, the neighbours and the scope, as far as the method provides them."""
        near = [(shorten(name), f"{likeness:.3g}", shorten(", ".join(own))) for name, likeness, own in self.neighbours]
        grids = [
            Grid("path", ("score",), [(shorten(name), f"{score:.3g}") for name, score in self.path]),
            Grid("similar document", ("similarity", "labels"), near),
            Grid("read with", ("weight",), [(shorten(name), f"{weight:.3g}") for name, weight in self.scope]),
        ]
        return [grid for grid in grids if grid.rows]

    def _repr_html_(self) -> str:
        return f"<p>{self._highlighted()}</p>{super()._repr_html_()}"

    def _highlighted(self) -> str:
        """Return the text with each span highlighted: green raised the score, red lowered it; intensity by weight."""
        largest = max((abs(weight) for _, _, weight in self.spans), default=0) or 1
        parts, at = [], 0
        for start, end, weight in sorted(self.spans):
            colour = "0, 160, 80" if weight > 0 else "200, 60, 60"
            style = f"background: rgba({colour}, {0.6 * abs(weight) / largest:.2f})"
            word = f'<span style="{style}" title="{weight:+.3g}">{escape(self.text[start:end])}</span>'
            parts += [escape(self.text[at:start]), word]
            at = end
        return "".join([*parts, escape(self.text[at:])])
