"""Check that a built site loads nothing from another host: python -m docs.site.hosts FOLDER.

Links that a reader clicks may lead anywhere. What a browser fetches by itself (scripts, styles, fonts, images, frames,
`url(…)` and `@import` of styles) must be in the folder.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

# tags whose address a browser fetches, by attribute; of <link>, only these relations
_FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
_RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "manifest", "preconnect", "dns-prefetch"}
_STYLE = re.compile(r"(?:url\(\s*|@import\s+)['\"]?((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)
_ELSEWHERE = re.compile(r"(?:https?:)?//")


class _Loads(HTMLParser):
    """Collects what a page fetches from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one tag."""
        given = {name: value or "" for name, value in attrs}
        address = given.get(_FETCHED.get(tag, ""), "")
        if tag == "link" and _RELATIONS & set(given.get("rel", "").split()):
            address = given.get("href", "")
        if _ELSEWHERE.match(address):
            self.found.append(address)


def loads(name: str, text: str) -> list[str]:
    """Return the addresses on other hosts that a file of the site makes a browser fetch."""
    found = []
    if name.endswith(".html"):
        page = _Loads()
        page.feed(text)
        found = page.found
    if name.endswith((".html", ".css")):
        found = [*found, *_STYLE.findall(text)]
    return found


def check(folder: Path) -> Iterator[str]:
    """Yield one line for each file that loads something from another host."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".css"):
            for address in loads(path.name, path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(folder)} loads {address}"


if __name__ == "__main__":
    problems = list(check(Path(sys.argv[1])))
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    sys.exit(bool(problems))
