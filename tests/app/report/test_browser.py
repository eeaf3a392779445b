"""Reports in a real browser: from disk, in light and dark, on a wide screen and on a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import xmtc

pytest.importorskip("matplotlib", reason="reports are drawn by matplotlib")
playwright = pytest.importorskip("playwright.sync_api", reason="drives the browser")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

# text whose contrast with what lies behind it is below what WCAG asks for: 4.5, or 3 for large text
PALE = """
() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const pale = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement, style = getComputedStyle(element);
    const drawn = element.closest('svg') !== null;
    if (!node.data.trim() || (drawn && element.tagName !== 'text')) continue;
    const [a, b] = [light(parse(drawn ? style.fill : style.color)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) pale.push([node.data.trim().slice(0, 40), contrast]);
  }
  return pale;
}
"""


@pytest.fixture(scope="module")
def pages(model: Path, other_model: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    assert xmtc("evaluate", model, data, "--report", folder / "one.html").code == 0
    assert xmtc("compare", model, other_model, "--data", data, "--report", folder / "two.html").code == 0
    return {"evaluate": folder / "one.html", "compare": folder / "two.html"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("width", [1200, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_report_opens_from_disk(browser: Any, pages: dict[str, Path], command: str, scheme: str, width: int) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    page = context.new_page()
    told: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(pages[command].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert told == []
    assert asked == [pages[command].as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") == width  # nothing sticks out at the side
    assert page.evaluate(PALE) == []
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, paper[4:-1].split(","))) > 600) == (scheme == "light")
    for figure in page.query_selector_all("svg"):
        box = figure.bounding_box()
        assert box["width"] > 250
        assert box["x"] + box["width"] <= width
        assert page.evaluate("(figure) => figure.querySelector('title').textContent", figure)
    context.close()


def test_plots_are_drawn_inside_their_frames(browser: Any, pages: dict[str, Path]) -> None:
    """No text of a plot is cut off at its edge."""
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    for path in pages.values():
        page.goto(path.as_uri())
        cut = page.evaluate(
            """() => [...document.querySelectorAll('svg')].flatMap(svg => {
              const frame = svg.getBoundingClientRect();
              return [...svg.querySelectorAll('text')].filter(text => {
                const box = text.getBoundingClientRect();
                return box.left < frame.left - 1 || box.right > frame.right + 1
                  || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
              }).map(text => text.textContent);
            })"""
        )
        assert cut == []
    page.close()
