"""HTML from Python values. Whatever is not `Html` is escaped, so that a text or label shows as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from xmtc.app.text import printable


class Html(str):
    """Markup that goes into the page as it is; only `tag` and the plots make it."""


Content = str | Iterable["Content"] | None


def tag(name: str, *content: Content, **attributes: str | int | bool | None) -> Html:
    """Return an element; an attribute `class_` is `class`, `aria_label` is `aria-label`; None leaves one out."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_escaped(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{given}>{join(*content)}</{name}>")


def join(*content: Content) -> Html:
    """Return contents one after the other, lists included."""
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
    """Return a table that scrolls by itself where it is wider than the page; each row's first cell is its header."""
    head = tag("tr", [tag("th", column, scope="col") for column in columns])
    body = [tag("tr", tag("th", first, scope="row"), [tag("td", cell) for cell in rest]) for first, *rest in rows]
    inner = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body), class_=class_)
    return tag("div", inner, class_="scroll", tabindex=0)


def details(summary: Content, *content: Content) -> Html:
    """Return content that unfolds."""
    return tag("details", tag("summary", summary), *content)


def _escaped(text: str) -> str:
    return escape(printable(text))
