"""The pages of docs/results and the results in README.md, from benchmarks/results and nothing else.

python -m benchmarks.tables             write them
python -m benchmarks.tables --check     fail if they are not what the results give, or if results do not fit together
python -m benchmarks.tables --strict    fail also if a figure was measured on other code than today's
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import ensemble_weights, learned_ensemble
from benchmarks.framework.machine import ROOT
from benchmarks.pages import dataset, index, papers, plots, topics
from benchmarks.pages.markup import LONGEST, finish, older_places
from benchmarks.pages.systems import names
from benchmarks.peers import compare
from benchmarks.rankings import list_rankings

FOLDER = ROOT / "docs" / "results"
README = ROOT / "README.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
# all whose tables are computed from stored rankings, or that others are compared with
BENCHMARKS = (
    *dataset.BENCHMARKS,
    *(module.BENCHMARK for module in (compare, ensemble_weights, learned_ensemble)),
    *(benchmark for topic in topics.TOPICS.values() for benchmark in topic.benchmarks),
)
_COMMAND = "run python -m benchmarks.tables"


def main(arguments: list[str] | None = None) -> int:
    """Write or check the pages; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.tables", description="Write docs/results and README.md's results from benchmarks/results."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is not up to date")
    parser.add_argument(
        "--strict", action="store_true", help="fail if a figure was measured on other code than today's"
    )
    options = parser.parse_args(arguments)
    parts = gather()
    if not options.check:
        write(parts)
    found = problems(parts) + (mixed(parts) if options.strict else [])
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if found else 0


def gather() -> dict[str, list[str]]:
    """Return the parts of every page, by its name."""
    sets = {name: dataset.render(name) for name in names()}
    of_papers = {page: papers.render(page) for page in papers.titles()}
    of_topics = {topic: topics.render(topic) for topic in topics.measured()}
    return {"index": index.render(), **sets, **of_papers, **of_topics}


def write(parts: dict[str, list[str]]) -> None:
    """Write all pages and drawings, remove pages that are no longer made, and fill the README's part."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*.md"):
        if path.stem not in parts:
            path.unlink()
    for page, given in parts.items():
        (FOLDER / f"{page}.md").write_text(finish(given), encoding="utf-8")
    for file, shown in plots.describe().items():
        if not _shows(FOLDER / file, shown):
            (FOLDER / file).write_text(plots.draw(shown), encoding="utf-8")
    if _is_marked(README):
        README.write_text(_filled(README.read_text(encoding="utf-8")), encoding="utf-8")


def problems(parts: dict[str, list[str]]) -> list[str]:
    """Return, one line each, where a page differs from the results or results from each other."""
    found = [line for name in names() for benchmark in BENCHMARKS for line in benchmark.stale(name)]
    for page, given in parts.items():
        path, text = FOLDER / f"{page}.md", finish(given)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            found.append(f"docs/results/{page}.md is not what the results give; {_COMMAND}")
        found += [
            f"docs/results/{page}.md has a line of {len(line)} characters: {line[:60]}…"
            for line in text.splitlines()
            if len(line) > LONGEST
        ]
    extra = sorted(path.name for path in FOLDER.glob("*.md") if path.stem not in parts)
    found += [f"docs/results/{page} has no results any more; {_COMMAND}" for page in extra]
    for file, shown in plots.describe().items():
        if not _shows(FOLDER / file, shown):
            found.append(f"docs/results/{file} is not what the results give; {_COMMAND}")
    if not _is_marked(README):
        found.append(f"README.md has no part between {BEGIN} and {END}")
    elif _filled(text := README.read_text(encoding="utf-8")) != text:
        found.append(f"the results in README.md are not what the results give; {_COMMAND}")
    return found


def mixed(parts: dict[str, list[str]]) -> list[str]:
    """Return, one line each, the results on pages that measured other code than today's: rows would not compare."""
    pages: dict[str, list[str]] = {}
    for page, given in parts.items():
        for place in older_places(given):
            pages.setdefault(place, []).append(page)
    return [
        f"results/{place} measured other code than today's (on {', '.join(of)}); measure it again"
        for place, of in pages.items()
    ]


def unused_rankings() -> list[str]:
    """Return the stored rankings that no table was computed from, as <set>/<run or contestant>."""
    return [
        f"{name}/{who}"
        for name, stored in list_rankings().items()
        for who, sha256 in stored.items()
        if not any(benchmark.rankings(name).get(who) == sha256 for benchmark in BENCHMARKS)
    ]


def _shows(path: Path, shown: dict[str, object]) -> bool:
    """Whether a drawing shows this."""
    return path.is_file() and plots.fingerprint(shown) in path.read_text(encoding="utf-8")


def _is_marked(path: Path) -> bool:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return text.count(BEGIN) == text.count(END) == 1 and text.index(BEGIN) < text.index(END)


def _filled(text: str) -> str:
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{index.render_readme()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    sys.exit(main())
