"""The page in Chromium, against `xmtc serve` with two trained models: one calibrated with a hierarchy, one plain."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import xmtc
from tests.app.conftest import TOPICS, documents
from tests.app.served import served
from xmtc import api
from xmtc.core.explanation import Explanation

pytest.importorskip("fastapi", reason="the server is not installed: pip install 'xmtc[serve]'")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium to drive")

TOKEN = "open-sesame"
DISHES = {"bread": ["flour", "yeast", "oven"], "<b>fried</b> & salted": ["oil", "pan", "chips"]}
SUGAR = "The quota on sugar from sweet beet"


@pytest.fixture(scope="module")
def sites(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses of a server with both models, and of one that asks for a token."""
    folder = tmp_path_factory.mktemp("served")
    unseen = documents(200, seed=3)
    corpus = xmtc.Corpus.from_lists([row["text"] for row in unseen], [row["labels"] for row in unseen])
    api.calibrate(api.load(model), corpus, out=folder / "subjects")
    dishes = [(" ".join([*words, word]), [dish]) for dish, words in DISHES.items() for word in words * 5]
    xmtc.train(xmtc.Corpus.from_lists(*map(list, zip(*dishes, strict=True))), out=folder / "kitchen")
    locked = {"XMTC_TOKEN": TOKEN}
    with (
        served(folder / "open.log", folder / "subjects", folder / "kitchen") as opened,
        served(folder / "locked.log", folder / "kitchen", environment=locked) as asking,
    ):
        yield {"open": opened.address, "locked": asking.address}
        assert "Traceback" not in opened.log


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


Visit = Callable[..., Any]


@pytest.fixture
def visit(browser: Any, sites: dict[str, str]) -> Iterator[Visit]:
    """Opens the page in a browser of its own. It must ask no other host, and log no error but refused requests."""
    contexts, noise = [], []

    def open_page(site: str = "open", *, refusals: bool = False, **options: Any) -> Any:
        context = browser.new_context(base_url=sites[site], **options)
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("request", lambda r: noise.append(r.url) if not r.url.startswith(sites[site]) else None)

        def hear(message: Any) -> None:
            refused = refusals and message.text.startswith("Failed to load resource")
            if message.type in ("error", "warning") and not refused:
                noise.append(message.text)

        page.on("console", hear)
        page.goto(sites[site])
        if site == "open":
            expect(page.locator("#model option")).to_have_text(["subjects", "kitchen"])
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert noise == []


@pytest.fixture
def page(visit: Visit) -> Any:
    return visit()


def rank(page: Any, text: str) -> None:
    page.get_by_role("textbox", name="Text", exact=True).fill(text)
    page.get_by_role("button", name="Suggest labels").click()
    expect(page.locator("#labels")).to_have_attribute("aria-busy", "false")


def names(page: Any) -> Any:
    return page.locator("#ranked .name")


def row(page: Any, name: str) -> Any:
    return page.locator("#ranked .row").filter(has=page.get_by_text(name, exact=True))


def marks(page: Any, side: str = "") -> list[str]:
    return list(page.locator(f"#marked mark{side}").all_text_contents())


def given_to(label: str) -> int:
    return sum(label in row["labels"] for row in documents(120, seed=1))  # what conftest's model was trained on


def test_labels_appear_while_a_text_is_typed(page: Any) -> None:
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type(SUGAR)  # and no button
    expect(names(page).first).to_have_text("sugar")
    expect(names(page)).to_have_count(5)
    expect(page.get_by_role("status")).to_contain_text("5 of 5 labels")
    expect(page.get_by_role("status")).to_contain_text("Best: sugar")
    expect(page.locator("#facts")).to_contain_text("5 labels · 120 training documents · gives probabilities")
    expect(page.locator("#size")).to_have_text("7 words")
    expect(page.locator("#meaning")).to_contain_text("probability that the label is right")
    shown = page.locator("#ranked .value").all_text_contents()
    assert all(re.fullmatch(r"\d+ %|< 1 %", value) for value in shown)
    percents = [int(re.sub(r"\D", "", value)) for value in shown]
    told = page.request.post("/v1/models/subjects/suggest", data={"texts": [SUGAR], "k": 5}).json()["results"][0]
    assert names(page).all_text_contents() == [label["name"] for label in told["labels"]]  # in the order of scores
    page.wait_for_function("document.getAnimations().length === 0")
    box = "n => n.getBoundingClientRect().width"
    for percent, bar in zip(percents, page.locator("#ranked .bar").all(), strict=True):
        length = bar.locator(".fill").evaluate(box) / bar.evaluate(box)
        assert length == pytest.approx(percent / 100, abs=0.011)


def test_a_label_shows_the_words_that_pushed_it(page: Any) -> None:
    text = "🍋🍋 <b>sugar</b> & a fish\nin 🧂 the sugar net\n"
    rank(page, text)
    row(page, "sugar").click()
    expect(row(page, "sugar")).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#marked mark").first).to_be_attached()
    # positions count code points: an emoji before the word must not shift its mark
    assert [word for word in marks(page, ".up") if word == "sugar"] == ["sugar", "sugar"]
    assert {"fish", "net"} <= set(marks(page, ".down"))
    assert all(re.fullmatch(r"\w+", word) for word in marks(page))
    detail = page.locator("#ranked .detail:visible")
    expect(detail.get_by_role("list", name="Broader label").get_by_role("listitem")).to_have_text(
        ["everything", "sugar"]
    )
    expect(detail).to_contain_text(f"Given to {given_to('t1')} training documents")
    expect(detail.locator(".word.up").first).to_have_text(re.compile(r"sugar\+\d"))
    expect(detail.get_by_text("Path through the label tree")).to_be_visible()
    # a text with HTML in it is shown as text
    assert page.locator("#marked b").count() == 0
    assert page.locator("#marked").evaluate("n => n.textContent") == text + "\u200b"


def test_marks_lie_under_their_words_and_differ_without_colour(page: Any) -> None:
    rank(page, "\n\n".join(["A long line about sugar and fish that wraps, and wraps again. " * 6] * 6))
    row(page, "sugar").click()
    expect(page.locator("#marked mark.up").first).to_be_attached()
    boxes = "['text', 'marked'].map((id) => document.getElementById(id)).map((n) => [n.offsetTop, n.offsetLeft, "
    over, under = page.evaluate(f"{boxes}n.clientWidth, n.scrollHeight, getComputedStyle(n).font, n.scrollTop])")
    assert over == under
    style = "n => getComputedStyle(n).textDecorationStyle"
    assert page.locator("mark.up").first.evaluate(style) == "solid"
    assert page.locator("mark.down").first.evaluate(style) == "dashed"
    expect(page.locator("#legend")).to_be_visible()
    page.locator("#ranked .word.up").first.click()  # brings the word into sight
    expect(page.locator("mark.glow").first).to_be_in_viewport()


def test_similar_documents_and_scope_are_shown_where_a_method_has_them(page: Any, model: Path) -> None:
    from xmtc.app.rest.answers import explanation

    rich = Explanation("t1", 1.0, neighbours=(("doc <7>", 0.5, ("t1", "t4")),), scope=(("t4", 0.25),))

    def enrich(route: Any) -> None:  # as methods with neighbours answer; the linear one has none
        answer = route.fetch().json()
        for label in answer["results"][0]["labels"]:
            if "explanation" in label:
                label["explanation"] = explanation(rich, api.load(model).labels)
        route.fulfill(json=answer)

    page.route("**/suggest", enrich)
    rank(page, SUGAR)
    row(page, "sugar").click()
    similar = page.locator(".neighbours")
    expect(similar.locator(".document")).to_have_text("doc <7>")
    expect(similar.locator(".weight")).to_have_text("similarity 0.50")
    expect(similar.locator(".names-line li")).to_have_text(["sugar", "milk"])
    expect(page.locator(".names li")).to_have_text("milk")
    assert marks(page) == []
    expect(page.locator("#legend")).to_be_hidden()


def test_an_open_label_is_explained_anew_when_the_text_changes(page: Any) -> None:
    rank(page, SUGAR)
    row(page, "sugar").click()
    expect(page.locator("#marked mark.up").first).to_be_attached()
    page.locator("#text").press_sequentially(" and sugar")
    expect(page.locator("#marked mark", has_text="sugar")).to_have_count(2)
    row(page, "sugar").click()
    expect(page.locator("#marked mark")).to_have_count(0)
    expect(page.locator("#legend")).to_be_hidden()


def test_another_model_ranks_the_same_text(page: Any) -> None:
    rank(page, "chips from the pan, and sugar")
    expect(names(page).first).to_have_text("sugar")
    page.get_by_role("combobox", name="Model").select_option("kitchen")
    expect(names(page).first).to_have_text("<b>fried</b> & salted")  # as text: a label's name is no HTML either
    assert page.locator("#ranked b").count() == 0
    expect(page.locator("#ranked .value").first).to_have_text(re.compile(r"^-?\d+\.\d+$"))
    expect(page.locator("#meaning")).to_contain_text("not a probability")
    expect(page.locator("#facts")).to_contain_text("gives scores")
    names(page).first.click()
    expect(page.locator("#marked mark.up").first).to_have_text("chips")
    assert page.locator(".trail").count() == 0  # no hierarchy
    page.get_by_label("Score at least").fill("1000")
    expect(page.get_by_role("status")).to_contain_text("No label reaches your minimum")
    page.reload()  # and the browser remembers the choice
    expect(page.locator("#model")).to_have_value("kitchen")


def test_number_of_labels_and_least_probability(page: Any) -> None:
    rank(page, SUGAR)
    page.get_by_label("How many").fill("2")
    expect(names(page)).to_have_count(2)
    least = int(re.sub(r"\D", "", page.locator("#ranked .value").first.text_content()))
    page.get_by_label("At least, %").fill(str(least - 1))
    page.get_by_label("At least, %").press("Enter")
    expect(names(page)).to_have_text(["sugar"])


def test_a_newer_text_cancels_an_older_one(page: Any) -> None:
    held, gone = [], []
    page.route(
        "**/suggest", lambda route: held.append(route) if "boat" in route.request.post_data else route.continue_()
    )
    page.on("requestfailed", lambda request: gone.append(request.post_data))
    page.locator("#text").fill("a boat and a fish")
    page.keyboard.press("Control+Enter")
    page.wait_for_function("document.getElementById('labels').ariaBusy === 'true'")
    page.locator("#text").fill("a cow and butter")
    page.keyboard.press("Control+Enter")
    expect(names(page).first).to_have_text("milk")
    assert len(held) == 1
    assert ["boat" in body for body in gone] == [True]


def test_an_empty_text_asks_nothing(page: Any) -> None:
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    rank_button = page.get_by_role("button", name="Suggest labels")
    page.locator("#text").fill("  \n ")
    rank_button.click()
    expect(page.get_by_role("status")).to_have_text("Write or paste a text first.")
    expect(page.locator("#text")).to_be_focused()
    assert asked == []
    rank(page, SUGAR)
    expect(names(page)).to_have_count(5)
    page.locator("#text").fill("sugar, cut short")
    page.get_by_role("button", name="Clear").click()  # before the ranking of what was typed came back
    page.wait_for_timeout(500)
    expect(names(page)).to_have_count(0)
    expect(page.locator("#text")).to_have_value("")
    expect(page.get_by_role("button", name="Copy as JSON")).to_have_count(0)


def test_a_server_that_is_gone(visit: Visit) -> None:
    page = visit(refusals=True)
    rank(page, SUGAR)
    page.context.set_offline(True)
    page.locator("#text").press_sequentially(" more")
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    expect(names(page)).to_have_count(0)  # they would belong to another text
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    expect(names(page).first).to_have_text("sugar")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_request_that_the_server_refuses(visit: Visit) -> None:
    page = visit(refusals=True)
    page.locator("#k").fill("100000")
    rank(page, SUGAR)
    expect(page.get_by_role("alert")).to_contain_text("The server cannot use this")
    expect(page.get_by_role("alert")).to_contain_text("k: ")
    page.locator("#k").fill("3")
    expect(names(page)).to_have_count(3)


def test_a_busy_server_is_asked_again(visit: Visit) -> None:
    from xmtc.app.rest.problems import overloaded

    busy = overloaded("model 'subjects' has more texts waiting than it can take", 1).response()
    page = visit(refusals=True)
    asked = []

    def answer(route: Any) -> None:
        asked.append(route)
        if len(asked) == 1:
            route.fulfill(status=busy.status_code, headers=dict(busy.headers), body=busy.body)
        else:
            route.continue_()

    page.route("**/suggest", answer)
    page.locator("#text").fill(SUGAR)
    expect(page.get_by_role("alert")).to_contain_text("The server is busy")
    expect(page.get_by_role("alert")).to_contain_text("Trying again in 1 second.")
    expect(names(page).first).to_have_text("sugar")
    assert len(asked) == 2


def test_a_server_that_asks_for_a_token(visit: Visit) -> None:
    page = visit("locked", refusals=True)
    field = page.get_by_label("This server asks for a token")
    expect(field).to_be_focused()
    field.fill("wrong")
    field.press("Enter")
    expect(page.locator("#token-note")).to_have_text("The server refused the last one.")
    field.fill(TOKEN)
    page.get_by_role("button", name="Use it").click()
    expect(field).to_be_hidden()
    expect(page.locator("#model option")).to_have_text(["kitchen"])
    rank(page, "yeast and flour")
    expect(names(page).first).to_have_text("bread")
    assert TOKEN in page.evaluate("JSON.stringify(sessionStorage)")
    assert TOKEN not in page.evaluate("JSON.stringify(localStorage)")


def test_keyboard_only(page: Any) -> None:
    focused = "() => document.activeElement.id || document.activeElement.querySelector('.name')?.textContent"
    press = page.keyboard.press
    page.keyboard.type(SUGAR)
    press("Control+Enter")
    expect(names(page)).to_have_count(5)
    seen = []
    for _ in range(7):
        press("Tab")
        seen.append(page.evaluate(focused))
    assert seen == ["rank", "copy", "filter", "model", "k", "least", "sugar"]
    order = names(page).all_text_contents()
    walk = {"ArrowDown": order[1], "End": order[4], "ArrowUp": order[3], "Home": order[0]}
    assert {key: press(key) or page.evaluate(focused) for key in walk} == walk
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    press("Enter")
    expect(row(page, "sugar")).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#marked mark.up").first).to_be_attached()
    press("Tab")
    assert page.evaluate("document.activeElement.className") == "word up"
    press("Escape")
    expect(row(page, "sugar")).to_have_attribute("aria-expanded", "false")
    expect(row(page, "sugar")).to_be_focused()
    assert marks(page) == []


def test_labels_are_found_included_and_excluded(page: Any) -> None:
    rank(page, SUGAR)
    page.get_by_role("button", name="Filter").click()
    finder = page.get_by_role("combobox", name="Only or never these labels")
    expect(finder).to_be_focused()
    finder.press_sequentially("mi")
    found = page.get_by_role("listbox", name="Labels found").get_by_role("option")
    expect(found).to_have_text([f"milk{given_to('t4')} documents"])
    finder.press("Enter")
    expect(names(page)).to_have_text(["milk"])
    page.get_by_role("button", name="only milk").click()
    expect(page.get_by_role("button", name="never milk")).to_be_visible()
    expect(names(page)).to_have_count(4)
    page.get_by_role("button", name="Remove the filter on milk").click()
    expect(names(page)).to_have_count(5)
    finder.fill("nothing like it")
    expect(page.locator("#found")).to_have_text("No label has this in its name.")
    finder.press("Escape")
    expect(page.locator("#found")).to_be_hidden()
    names(page).first.click()
    page.get_by_role("button", name="Never suggest this label").click()
    expect(names(page)).to_have_count(4)
    expect(names(page).filter(has_text="sugar")).to_have_count(0)


def test_files_are_dropped_and_opened(page: Any) -> None:
    drop = """([name, bytes]) => {
        const carried = new DataTransfer();
        carried.items.add(new File([new Uint8Array(bytes)], name));
        const event = { dataTransfer: carried, bubbles: true, cancelable: true };
        document.body.dispatchEvent(new DragEvent("dragenter", event));
        return document.getElementById("desk").dispatchEvent(new DragEvent("drop", event));
    }"""
    taken = page.evaluate(drop, ["cow.txt", list("A cow gives\r\nmilk – and butter".encode())])
    assert taken is False  # else the browser would leave the page to open the file
    expect(page.locator("#text")).to_have_value("A cow gives\nmilk – and butter")
    expect(names(page).first).to_have_text("milk")
    assert page.locator("body.dropping").count() == 0
    page.evaluate(drop, ["photo.png", [137, 80, 78, 71, 0, 255]])
    expect(page.get_by_role("status")).to_contain_text("photo.png is not a text in UTF-8")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open a file").click()
    chooser.value.set_files({"name": "s.txt", "mimeType": "text/plain", "buffer": b"steel furnace"})
    expect(names(page).first).to_have_text("steel")


def test_history_is_kept_in_the_browser(page: Any) -> None:
    recent = page.get_by_role("region", name="Recent texts").get_by_role("listitem")
    rank(page, "milk and <i>butter</i> of a dairy cow, and some more of it")
    rank(page, "milk and <i>butter</i> of a dairy cow, and then no more")  # an edit: takes the first one's place
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("combobox", name="Model").select_option("kitchen")
    rank(page, "flour, yeast and an oven")
    expect(recent).to_have_count(2)
    page.reload()
    expect(recent).to_have_count(2)
    expect(recent.last).to_contain_text("milk and <i>butter</i>")
    expect(recent.last).to_contain_text("subjects, just now")
    recent.last.get_by_role("button").click()
    expect(page.locator("#text")).to_have_value(re.compile("then no more$"))
    expect(page.locator("#model")).to_have_value("subjects")
    expect(names(page).first).to_have_text("milk")
    expect(recent.first).to_contain_text("milk")  # it is the newest now, and there once
    expect(recent).to_have_count(2)
    page.get_by_role("button", name="Forget all").click()
    expect(page.locator("#history")).to_be_hidden()
    assert "butter" not in page.evaluate("JSON.stringify(localStorage)")


def test_copy_as_json(visit: Visit) -> None:
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    rank(page, SUGAR)
    page.get_by_role("button", name="Copy as JSON").click()
    expect(page.locator("#copy")).to_have_text("Copied")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert (copied["model"], copied["text"]) == ("subjects", SUGAR)
    assert [label["name"] for label in copied["labels"]] == names(page).all_text_contents()
    assert set(copied["labels"][0]) == {"label", "name", "score", "probability", "count", "parents"}
    assert {label["label"] for label in copied["labels"]} == set(TOPICS)


CONTRAST = """(selectors) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const over = (colours) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        return canvas.getImageData(0, 0, 1, 1).data;
    };
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    return Object.fromEntries(selectors.map((selector) => {
        const node = document.querySelector(selector);
        const grounds = [];
        for (let n = node; n; n = n.parentElement) grounds.unshift(getComputedStyle(n).backgroundColor);
        // a mark's own text is transparent: the words over it are the field's
        const ink = getComputedStyle(node.closest("#marked") ? document.getElementById("text") : node).color;
        const [a, b] = [light(over(grounds)), light(over([...grounds, ink]))];
        return [selector, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
    }));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_enough_in_light_and_dark(visit: Visit, scheme: str) -> None:
    page = visit(color_scheme=scheme, reduced_motion="reduce")
    rank(page, SUGAR + " and fish")
    names(page).first.click()
    expect(page.locator("#marked mark.up.strength-4").first).to_be_attached()
    words = [".word.up", ".word.up .weight", ".word.down", "mark.up.strength-4", "mark.down", ".seen", ".trail li"]
    frame = ["h1", ".lead", "h2", ".facts", "#rank", "#copy", "#k", "#text", ".row .name", ".row .place", ".row .value"]
    measured = page.evaluate(CONTRAST, [*words, *frame, "#status", "#meaning", ".when", "#legend", ".field", "#theme"])
    assert {selector: ratio for selector, ratio in measured.items() if ratio < 4.5} == {}
    dark_ground = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert dark_ground is (scheme == "dark")
    assert page.locator(".fill").first.evaluate("n => getComputedStyle(n).transitionDuration") == "0s"


def test_a_chosen_theme_stays(page: Any) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Dark theme").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark
    expect(page.get_by_role("button", name="Light theme")).to_be_visible()


def test_a_phone_shows_all_without_scrolling_sideways(visit: Visit) -> None:
    page = visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    rank(page, f"{SUGAR}\n" * 30 + "sugar" * 100)
    row(page, "sugar").tap()
    expect(page.locator("#marked mark.up").first).to_be_attached()
    page.get_by_text("Path through the label tree").tap()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    row(page, "sugar").evaluate("n => n.scrollIntoView({ block: 'center' })")
    expect(page.locator("#marked mark.up").first).to_be_in_viewport()  # the text stays in sight


def test_a_screen_reader_finds_its_way(page: Any) -> None:
    rank(page, SUGAR)
    for role, name in [
        ("banner", None),
        ("main", None),
        ("contentinfo", None),
        ("region", "Text"),
        ("region", "Labels"),
    ]:
        expect(page.get_by_role(role, name=name, exact=True)).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("list", name="Labels", exact=True).get_by_role("button")).to_have_count(5)
    expect(page.get_by_role("button", name=re.compile(r"^1 sugar \d+ %$"))).to_have_attribute("aria-expanded", "false")
    named = "e.labels?.length || e.ariaLabel || e.ariaLabelledByElements?.length || e.textContent.trim()"
    assert page.locator("button, input, select, textarea").evaluate_all(f"all => all.every((e) => {named})")
