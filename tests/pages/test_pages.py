"""Code blocks of README and docs run as they stand there and print what the page shows; `blocks.py` has the rules."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.pages.blocks import ROOT, Block, all_pages, blocks, differs, indented_commands
from tests.pages.run import PageRun, unquoted
from xmtc.app.cli import progress

PAGES = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in all_pages()}
BLOCKS = {name: blocks(page) for name, page in PAGES.items()}


def with_blocks(kind: str) -> list[str]:
    """Pages that show something to run of this kind, besides files and their set-up."""
    return [
        name
        for name, found in BLOCKS.items()
        if any(block.exempt == kind and block.file is None and not block.hidden for block in found)
    ]


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No progress lines, however slow the machine is."""
    monkeypatch.setattr(progress, "_QUICK", float("inf"))
    monkeypatch.setattr(progress, "_EVERY", float("inf"))


def run_page(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]) -> None:
    monkeypatch.chdir(folder)
    with PageRun(name, folder) as running:
        for block in BLOCKS[name]:
            if block.exempt in kinds:
                running.run(block)


@pytest.mark.timeout(900)  # a page is many commands
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize("name", with_blocks(""))
def test_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: None) -> None:
    run_page(name, tmp_path, monkeypatch, ("",))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", with_blocks("slow"))
def test_all_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: None) -> None:
    run_page(name, tmp_path, monkeypatch, ("", "slow"))


EXEMPT = [
    (name, block) for name, found in BLOCKS.items() for block in found if block.exempt in ("not run", "tested by")
]


@pytest.mark.parametrize(
    ("name", "block"), EXEMPT, ids=[f"{name}:{block.line} {block.reason}" for name, block in EXEMPT]
)
def test_blocks_that_do_not_run_here_say_why(name: str, block: Block) -> None:
    assert block.reason, f"{name}:{block.line}: give the reason, as in <!-- not run: needs a GPU -->"
    if block.exempt == "tested by":
        test = (ROOT / block.reason).read_text(encoding="utf-8")
        assert Path(name).name in test, f"{block.reason} does not read {name}"


@pytest.mark.parametrize("name", PAGES)
def test_no_command_escapes(name: str) -> None:
    assert indented_commands(PAGES[name]) == []


def anchors(page: str) -> set[str]:
    """Anchors of a page's headings, as forges and mkdocs make them."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
        found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain)).strip("-"))
    return found


def links(page: str) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"\b(?:src|href|srcset)=\"([^\"]+)\"", text)


# pages that `make docs` writes beside those of docs/
GENERATED = {"reference/python.md", "reference/settings.md", "reference/commands.md", "changelog.md"}
RESULTS = "results/"  # written by `python -m benchmarks.tables`


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    for link in links(PAGES[name]):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        inside = target.resolve().relative_to(ROOT.resolve()).as_posix()
        generated = inside.removeprefix("docs/") in GENERATED or inside.startswith(f"docs/{RESULTS}")
        if generated and not target.exists():
            continue
        assert target.exists(), f"{name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{name}: {link}"


# words of an older manner, and what to write
MANNERED = {
    r"\b(?:told|tells?|telling)\b(?! apart)": "say, print, report or show",
    r"\bgo(?:es|ne)? on with\b": "resume or continue",
    r"\bdear\b": "expensive",
    r"\bhangs? on\b": "depends on",
    r"\bwhoever\b": "if you",
    r"\bthat (?:is|are) none\b": "invalid",
    r"\bin place of\b": "instead of",
    r"\blies? in\b": "stored in",
    r"\bunless told\b": "by default",
    r"\bhas gone on\b": "continued",
}
GENERATED_PAGES = re.compile(r"<!-- Written by `python -m benchmarks")


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if not GENERATED_PAGES.search(page)])
def test_words_are_plain(name: str) -> None:
    text = re.sub(r"^```.*?^```$", "", PAGES[name], flags=re.MULTILINE | re.DOTALL)
    found = [
        f"{word[0]!r}: write {plain}"
        for pattern, plain in MANNERED.items()
        for word in re.finditer(pattern, text, re.I)
    ]
    assert found == []


def test_output_is_compared() -> None:
    assert differs("a  0.95\nb 3", "a 0.951\nb 3\n") is None
    assert differs("a 0.95", "a 0.85") == "a 0.95"
    assert differs("scipy 0.95", "numpy 0.95") == "scipy 0.95"
    assert differs("model: … s", "model: linear, 3.5 s") is None
    assert differs("a\n…\nd", "a\nb\nc\nd") is None
    assert differs("a\n…\ne", "a\nb\nc\nd") == "e"
    assert differs("a", "a\nb") is not None
    assert differs("a\nb", "a") == "b"


def test_blocks_of_a_page() -> None:
    page = (
        "# Title\n\n<!-- setup: bash\ntouch a\n-->\n\n`b.csv`:\n\n```csv\nx\n```\n\n"
        "```bash\ncat b.csv\n```\n\n```text\nx\n```\n\n"
        "Words.\n\n```text\ny\n```\n\n<!-- not run: needs a GPU -->\n\n```python\ntrain()\n```\n"
    )
    setup, file, command, python = blocks(page)
    assert (setup.language, setup.code) == ("bash", "touch a\n")
    assert (file.file, file.code) == ("b.csv", "x\n")
    assert (command.code, command.output, command.exempt) == ("cat b.csv\n", "x\n", "")
    assert (python.exempt, python.reason) == ("not run", "needs a GPU")
    assert blocks("# Title\n\n<!-- tested by: tests/x.py -->\n\n```python\na\n```\n")[0].reason == "tests/x.py"
    assert indented_commands("Text:\n\n    xmtc train data\n") == ["xmtc train data"]


def test_a_wrong_block_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with PageRun("page.md", tmp_path) as running:
        running.run(Block(1, "python", "print(1 + 1)\n", output="2\n"))
        running.run(Block(1, "bash", "echo a > f\ncat f\n", output="a\n"))
        for wrong in (
            Block(1, "python", "print(1 + 1)\n", output="3\n"),
            Block(1, "bash", "xmtc inspect nowhere\n"),
            Block(1, "bash", "false\n"),
        ):
            with pytest.raises(AssertionError):
                running.run(wrong)
    assert unquoted("xmtc a 'b | c' # d | e") == "xmtc a  "
