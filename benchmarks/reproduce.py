"""Repeat a paper's experiment on the paper's data → results/reproduce/<method>-<set>-<seed>.json.

    python -m benchmarks.reproduce lightxml eurlex-4k --data DIR [--seed 0] [--work DIR] [--recipe R] [--anyway]

For those who have the published data and a GPU. DIR is the set's folder, in any layout that `xmtc inspect` knows. Its
sizes are checked against the paper's before anything is trained; then recipes/<method>/<set>.toml is trained and scored
against both truths, and the paper's figures stand beside ours. Where the paper and its authors' code differ there are
<set>-paper.toml, which is taken, and <set>-repo.toml, which --recipe names. What a paper published is in
published/<method>.toml: another method needs such a file and its recipes, and nothing here.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.framework import Benchmark, Found, Measured, limits_of
from benchmarks.models import title
from benchmarks.sets import work_folder
from benchmarks.train import INTERRUPTED, add_run_options, measure, shown
from xmtc import api
from xmtc.core.config import Settings, build, read_toml
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError, nearest

NAME = "reproduce"
_PUBLISHED = Path(__file__).parent / "published"


class Row(Settings):
    """One row of a paper's results."""

    models: str  # whether one model or an ensemble, and of what
    table: str  # where in the paper
    scores: dict[str, float]


class PublishedSet(Settings):
    """One data set of a paper."""

    row: str  # its name in the paper's table of data sets
    train: int
    test: int
    labels: int
    results: list[Row]


class Published(Settings):
    """What a paper says of its data and results."""

    title: str
    sizes: str  # the table of data sets
    sets: dict[str, PublishedSet]


def read_published(path: str | Path) -> Published:
    """Read what a paper published; a mistake in the file is told in one line."""
    return build(Published, read_toml(Path(path)))


def check_sizes(folder: Path, published: PublishedSet, table: str) -> tuple[list[str], list[str]]:
    """Return, a line each, the sizes of a folder that are the paper's and those that are not.

    Papers do not always say whether labels are counted in train, or in train and test together: both are accepted.
    """
    train, test = api.read_corpus(folder, "train"), api.read_corpus(folder, "test")
    found = {
        "train documents": (len(train), published.train),
        "test documents": (len(test), published.test),
    }
    right, wrong = [], []
    for what, (here, there) in found.items():
        source = f"{table}, row {published.row}"
        if here == there:
            right.append(f"{what}: {here:,}, as in {source}")
        else:
            wrong.append(f"{what}: {here:,} here, {there:,} in {source}")
    of_train, of_both = _count_labels(train, test)
    counted = [where for n, where in ((of_train, "train"), (of_both, "train and test")) if n == published.labels]
    if counted:
        right.append(f"labels: {published.labels:,}, as in {source}, counted in {' or in '.join(counted)}")
    else:
        wrong.append(
            f"labels: {of_train:,} in train and {of_both:,} in train and test here, {published.labels:,} in {source}"
        )
    return right, wrong


def _published_path(method: str) -> Path:
    known = [path.stem for path in sorted(_PUBLISHED.glob("*.toml"))]
    if method not in known:
        hint = nearest(method, known) or f" Known: {', '.join(known)}."
        raise ConfigError(f"no published results of {method!r}.{hint}")
    return _PUBLISHED / f"{method}.toml"


def _choose_recipe(method: str, name: str) -> str:
    """The recipe of a set, or the paper's where its repository has other settings; of yet others one must be named."""
    folder = Path(str(files("xmtc") / "recipes" / method))
    for stem in (name, f"{name}-paper"):
        if (folder / f"{stem}.toml").is_file():
            return f"{method}/{stem}"
    several = [f"{method}/{path.stem}" for path in sorted(folder.glob(f"{name}-*.toml"))]
    if several:
        raise ConfigError(f"there are several recipes for {name}; name one with --recipe: {' or '.join(several)}")
    return f"{method}/{name}"


def _variant(name: str, recipe: str) -> str:
    """The set, and the recipe where that is another, so that no run takes another's place."""
    stem = shown(recipe).rpartition("/")[2]
    return stem if stem.startswith(name) else f"{name}+{stem}"


def _find_encoder(settings: Settings) -> None:
    """Find the recipe's weights now: hours of reading are no time to hear that they cannot be had."""
    encoder = getattr(settings, "encoder", None)
    if encoder is not None:
        from xmtc.neural.resolve import resolve

        resolve(encoder.name)


def _count_labels(train: Corpus, test: Corpus) -> tuple[int, int]:
    """Labels that occur in train, and in train or test."""
    of_train, of_test = (
        {part.labels.ids[i] for i in np.flatnonzero(np.bincount(part.Y.indices, minlength=len(part.labels)))}
        for part in (train, test)
    )
    return len(of_train), len(of_train | of_test)


def _beside(rows: list[Row], reports: dict[str, Any]) -> list[dict[str, Any]]:
    """The paper's rows, and ours − theirs by each truth."""
    return [
        {
            **row.model_dump(),
            "differences": {
                mode: {
                    key: report["metrics"][key] - value for key, value in row.scores.items() if key in report["metrics"]
                }
                for mode, report in reports.items()
            },
        }
        for row in rows
    ]


def _table(paper: str, result: Found) -> str:
    """What ran, beside what the paper says."""
    keys = list(dict.fromkeys(key for row in result["published"] for key in row["scores"]))
    lines = [("", *keys)]
    reports = result["reports"]
    for mode, report in reports.items():
        lines.append((f"{result['title']}, {mode} truth", *(_cell(report["metrics"], key) for key in keys)))
    for row in result["published"]:
        lines.append((f"{paper}, {row['models']} ({row['table']})", *(_cell(row["scores"], key) for key in keys)))
        for mode, gaps in row["differences"].items():
            lines.append((f"  ours − paper, {mode} truth", *(_cell(gaps, key, "+") for key in keys)))
    width = max(len(line[0]) for line in lines)
    return "\n".join(f"{first:<{width}}" + "".join(f"{cell:>9}" for cell in cells) for first, *cells in lines)


def _cell(scores: dict[str, float], key: str, sign: str = "") -> str:
    return f"{scores[key]:{sign}.2f}" if key in scores else "–"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="METHOD", help="such as lightxml")
    parser.add_argument("set", metavar="SET", help="eurlex-4k, amazoncat-13k, wiki10-31k, wiki-500k or amazon-670k")
    parser.add_argument("--data", required=True, help="folder of the set")
    parser.add_argument(
        "--recipe", metavar="PATH", help="name or path of a recipe (default: METHOD/SET, else METHOD/SET-paper)"
    )
    parser.add_argument("--published", metavar="PATH", help="what the paper says (default: published/METHOD.toml)")
    parser.add_argument("--anyway", action="store_true", help="train even if the sizes are not the paper's")
    add_run_options(parser, timeout=14 * 24 * 3600, patience=0)


def _measured(options: argparse.Namespace) -> Measured:
    published = read_published(options.published or _published_path(options.method))
    if options.set not in published.sets:
        hint = nearest(options.set, published.sets) or f" Known: {', '.join(published.sets)}."
        raise ConfigError(f"no set {options.set!r} in what {published.title} published.{hint}")
    recipe = options.recipe or _choose_recipe(options.method, options.set)
    method, settings = api.read_settings(options.method, None, recipe)
    _find_encoder(settings)
    told, wrong = check_sizes(Path(options.data), published.sets[options.set], published.sizes)
    lines = [*told, *(f"error: {line}" for line in wrong if options.anyway)]
    print("\n".join(lines), file=sys.stderr, flush=True)
    if wrong and not options.anyway:
        raise DataError("\n".join(wrong))
    name = f"{method}-{_variant(options.set, recipe)}-{options.seed}"
    with tempfile.TemporaryDirectory() as ranked:
        job = {
            "data": str(Path(options.data).absolute()),
            "model": str(work_folder(options.work) / NAME / name),
            "method": method,
            "config": settings.model_dump(mode="json"),
            "seed": options.seed,
            "threads": options.threads,
            "resume": options.resume,
            "ranked": ranked,
            "hold_out": False,
        }
        result = measure(job, limits_of(options))
    result |= {"set": options.set, "name": name, "recipe": shown(recipe), "paper": published.title}
    result |= {"title": title(result), "sizes": told, "sizes_that_differ": wrong}
    result["published"] = _beside(published.sets[options.set].results, result["reports"])
    yield f"{NAME}/{name}", result


BENCHMARK = Benchmark(
    name=NAME,
    about="Repeat a paper's experiment.",
    arguments=_add_arguments,
    measure=_measured,
    summary=lambda result: f"{_table(result['paper'], result)}\n",
    interrupted=INTERRUPTED,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
