"""Show documents in a report: their text with the words that led to a label marked, and the predicted labels."""

from __future__ import annotations

from collections.abc import Sequence

from xmtc.app.report.analysis import Example, Given, Tagged
from xmtc.app.report.markup import Content, Html, tag
from xmtc.core.explanation import Explanation

_SHOWN = 600  # characters of a text
_BEFORE = 150  # of these, characters before the strongest word, if it comes later in the text
_WEAK = 0.15  # of the strongest weight: weaker words are not marked
_STRONG = 1 / 3
_WORDS = 4  # words that explain a model's choice
_MISSED = 8  # true labels that are listed


def legend() -> Html:
    """Return a legend for the marked words."""
    return tag(
        "p",
        "Words that raise the score of the first label are ",
        tag("mark", "underlined", class_="strong"),
        " (shaded if they have a large weight); words that lower it are ",
        tag("span", "dashed and slanted", class_="down"),
        ". Labels with ✓ are right.",
        class_="muted",
    )


def show_example(example: Example) -> Html:
    """Return the HTML of one document in a report on one model."""
    ((_, tagged),) = example.tagged.items()
    return tag(
        "article",
        tag("h4", f"Document {example.id}"),
        _text(example.text, tagged.explanation),
        _given(tagged.given),
        _missed(tagged),
    )


def show_difference(example: Example) -> Html:
    """Return the HTML of one document and the predictions of each of several models."""
    models = [
        tag("div", tag("h5", name), _given(tagged.given), _because(example.text, tagged.explanation))
        for name, tagged in example.tagged.items()
    ]
    first = next(iter(example.tagged.values()))
    true = [given.name for given in first.given if given.right]
    true += [name for name in first.missed if name not in true]
    return tag(
        "article",
        tag("h4", f"Document {example.id}"),
        _text(example.text, None),
        tag("div", models, class_="models"),
        tag("p", "Right: ", _some(true), class_="missed"),
    )


def mark_words(text: str, explanation: Explanation | None) -> list[Content]:
    """Return a part of the text around the strongest word, with the words for and against the label marked."""
    spans = explanation.spans if explanation is not None else ()
    strongest = max((abs(weight) for _, _, weight in spans), default=0.0)
    marked = sorted(span for span in spans if abs(span[2]) >= _WEAK * strongest and span[2] and span[1] > span[0])
    peak = next((start for start, _, weight in marked if abs(weight) == strongest), 0)
    begin = 0 if peak < _SHOWN - _BEFORE else text.rfind(" ", 0, peak - _BEFORE) + 1
    end = min(len(text), begin + _SHOWN)
    parts: list[Content] = ["… "] if begin else []
    at = begin
    for start, stop, weight in marked:
        if start < at or stop > end:
            continue
        parts.append(text[at:start])
        parts.append(_marked(text[start:stop], weight, strongest))
        at = stop
    return [*parts, text[at:end], " …" if end < len(text) else None]


def _marked(word: str, weight: float, strongest: float) -> Html:
    told = f"{weight:+.2g}"
    if weight < 0:
        return tag("span", word, class_="down", title=f"{told}, against the label")
    return tag("mark", word, class_="strong" if weight >= _STRONG * strongest else None, title=f"{told}, for the label")


def _text(text: str | None, explanation: Explanation | None) -> Html:
    if text is None:
        return tag("p", "This data has features, no texts.", class_="text muted")
    if not text.strip():
        return tag("p", "The text is empty.", class_="text muted")
    return tag("p", mark_words(text, explanation), class_="text")


def _given(given: Sequence[Given]) -> Html:
    if not given:
        return tag("p", "No label.", class_="muted")
    return tag("ul", [tag("li", _label(one), class_="right" if one.right else "miss") for one in given], class_="given")


def _label(given: Given) -> list[Content]:
    sure = f"{given.score:.2f}" if given.probability is None else f"{100 * given.probability:.0f} %"
    return ["✓ " if given.right else None, given.name, " ", tag("small", sure)]


def _missed(tagged: Tagged) -> Html | None:
    return tag("p", "Missed: ", _some(tagged.missed), class_="missed") if tagged.missed else None


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MISSED:,} more" if len(names) > _MISSED else ""
    return " · ".join(names[:_MISSED]) + more


def _because(text: str | None, explanation: Explanation | None) -> Html | None:
    if text is None or explanation is None:
        return None
    words = ", ".join(word for word, _ in explanation.words(text, _WORDS))
    return tag("p", f"First label because of: {words}" if words else "No word raises the score of the first label.")
