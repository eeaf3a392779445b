"""Format rankings and explanations as JSON and as readable text. Computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from xmtc.app.cli.console import one_line, out
from xmtc.app.text import json_line, printable
from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet
from xmtc.core.ranking import Ranking

_WORDS = 8  # words that an explanation lists
_SCOPE = 20  # labels of a scope that are printed
_SHOWN = 2000  # characters of a text that are printed


def ranking_json(ids: Sequence[str], titles: Sequence[str], ranking: Ranking, labels: LabelSet) -> Iterator[str]:
    """Yield one JSON line per document, without padding."""
    numbers = {"score": ranking.scores.tolist()}
    if ranking.probabilities is not None:
        numbers["probability"] = ranking.probabilities.tolist()
    for i, (id, entries) in enumerate(zip(ids, ranking.labels.tolist(), strict=True)):
        found = [
            {
                "label": labels.ids[entry],
                "name": labels.names[entry],
                **{key: values[i][place] for key, values in numbers.items()},
            }
            for place, entry in enumerate(entries)
            if entry >= 0
        ]
        yield json_line({"id": id, "labels": found})


def ranking_text(ids: Sequence[str], titles: Sequence[str], ranking: Ranking, labels: LabelSet) -> Iterator[str]:
    """Yield the lines of each document: its id and first words, then scores, names and URIs, never truncated."""
    for i, (id, title, found) in enumerate(zip(ids, titles, ranking.named(labels), strict=True)):
        yield f"{printable(id)}  {one_line(title, 80)}".rstrip()
        for place, (name, score) in enumerate(found):
            chance = "" if ranking.probabilities is None else f"  {ranking.probabilities[i, place]:6.1%}"
            label = labels.ids[ranking.labels[i, place]]
            uri = f"  <{printable(label)}>" if "://" in label and label != name else ""
            yield f"  {score:8.3f}{chance}  {printable(name)}{uri}"
        if not found:
            yield "  no label"


def explanation_json(explanation: Explanation, text: str, labels: LabelSet) -> dict[str, Any]:
    """Return an explanation as plain values."""
    return {
        "label": explanation.label,
        "name": labels.names[labels.position[explanation.label]],
        "score": explanation.score,
        "method": explanation.method,
        "words": [{"word": word, "weight": weight} for word, weight in explanation.words(text, _WORDS)],
        "spans": [
            {"start": start, "end": end, "text": text[start:end], "weight": weight}
            for start, end, weight in explanation.spans
        ],
        "path": [{"cluster": cluster, "score": score} for cluster, score in explanation.path],
        "neighbours": [
            {"id": id, "similarity": similarity, "labels": list(names)}
            for id, similarity, names in explanation.neighbours
        ],
        "scope": [
            {"label": label, "name": labels.names[labels.position[label]], "weight": weight}
            for label, weight in explanation.scope
        ],
        "members": [{"method": method, "share": share} for method, share in explanation.members],
    }


def print_explanations(explanations: Sequence[Explanation], text: str, labels: LabelSet) -> None:
    """Print why each label was predicted: words, path, neighbours and scope."""
    console = out()
    if not explanations:
        console.print("the model gives this text no label")
    for explanation in explanations:
        name = printable(labels.names[labels.position[explanation.label]])
        console.print(Text.assemble((name, "bold"), f"  {explanation.score:.3f}"), soft_wrap=True)
        members = [f"{method} {share:.0%}" for method, share in explanation.members]
        if members:
            _print_field(console, "by", " · ".join(members))
        words = [f"{printable(word)} {weight:+.2f}" for word, weight in explanation.words(text, _WORDS)]
        _print_field(console, "words", " · ".join(words) or "none")
        if console.is_terminal:
            console.print(Text("  text   ").append_text(_highlighted(text, explanation)))
        for depth, (cluster, score) in enumerate(explanation.path):
            _print_field(console, "" if depth else "path", f"{score:+.2f}  {printable(cluster)}")
        for i, (id, similarity, names) in enumerate(explanation.neighbours):
            _print_field(console, "" if i else "like", f"{similarity:.2f}  {printable(id)}: {', '.join(names)}")
        scope = [printable(labels.names[labels.position[label]]) for label, _ in explanation.scope]
        if scope:
            more = f" and {len(scope) - _SCOPE:,} more" if len(scope) > _SCOPE else ""
            _print_field(console, "scope", " · ".join(scope[:_SCOPE]) + more)


def _print_field(console: Console, name: str, value: str) -> None:
    console.print(Text(f"  {name:6} {value}"), soft_wrap=True)


def _highlighted(text: str, explanation: Explanation) -> Text:
    """Return the text with words for the label in green, words against it in red, and strong words in bold."""
    shown = Text(printable(text[:_SHOWN]))
    strongest = max((abs(weight) for _, _, weight in explanation.spans), default=0.0)
    for start, end, weight in explanation.spans:
        if abs(weight) >= strongest / 20 and end <= len(shown):
            style = "green" if weight > 0 else "red"
            shown.stylize(f"bold {style}" if abs(weight) >= strongest / 3 else style, start, end)
    if len(text) > _SHOWN:
        shown.append(" …", style="dim")
    return shown
