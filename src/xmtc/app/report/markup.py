"""Build HTML from Python values. Everything that is not `Html` is escaped, so that texts and labels show literally."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from xmtc.app.text import printable


class Html(str):
    """Markup that is not escaped; created only by `tag` and the plots."""


Content = str | Iterable["Content"] | None


def tag(name: str, *content: Content, **attributes: str | int | bool | None) -> Html:
    """Return an element; attribute `class_` becomes `class`, `aria_label` becomes `aria-label`; None is left out."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_escaped(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{given}>{join(*content)}</{name}>")


def join(*content: Content) -> Html:
    """Concatenate contents, including lists."""
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(part if isinstance(part, Html) else _escaped(part))
        elif part is not None:
            parts.append(join(*part))
    return Html("".join(parts))


def table(
    caption: Content, columns: Sequence[Content], rows: Iterable[Sequence[Content]], class_: str | None = None
) -> Html:
    """Return a table that scrolls if it is wider than the page; the first cell of each row is its header."""
    head = tag("tr", [tag("th", column, scope="col") for column in columns])
    body = [tag("tr", tag("th", first, scope="row"), [tag("td", cell) for cell in rest]) for first, *rest in rows]
    inner = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body), class_=class_)
    return tag("div", inner, class_="scroll", tabindex=0)


def details(summary: Content, *content: Content) -> Html:
    """Return collapsible content."""
    return tag("details", tag("summary", summary), *content)


def _escaped(text: str) -> str:
    return escape(printable(text))
