"""Repeat a paper's experiment on the paper's data → results/reproduce/<method>-<set>-<seed>.json.

    python -m benchmarks.reproduce lightxml eurlex-4k --data DIR [--models "ensemble of three encoders"] [--set a.b=c]…

For those who have the published data and a GPU. DIR is the set's folder, in any layout that `xmtc inspect` knows. Its
sizes are checked against the paper's before anything is trained; then recipes/<method>/<set>.toml is trained and scored
against both truths, and the paper's figures are printed beside ours. Where the paper and its authors' code differ there
are <set>-paper.toml, which is used, and <set>-repo.toml, which --recipe names. --models names another row of the paper:
one model of an ensemble, or an ensemble of several runs, whose members are trained one after another, each with a
result of its own, and ranked together as `xmtc ensemble` does. Where CUDA is available, training uses bf16, or fp16 on
GPUs without it, unless --set train.precision says otherwise. What a paper published is in published/<method>.toml:
another method needs such a file and its recipes, and nothing here.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from benchmarks.framework import Benchmark, Clock, Found, Measured, limits_of
from benchmarks.models import title
from benchmarks.rankings import WIDTH
from benchmarks.scoring import Truth
from benchmarks.sets import work_folder
from benchmarks.train import INTERRUPTED, PACKAGES, add_run_options, measure, shown
from xmtc import api
from xmtc.core.config import Settings, build, parse_assignments, read_toml
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError, nearest

NAME = "reproduce"
_PUBLISHED = Path(__file__).parent / "published"


class MemberRun(Settings):
    """One model of an ensemble: what differs from the row's recipe."""

    settings: list[str] = Field(default_factory=list)  # as --set takes them
    seed: int = 0  # added to --seed


class Row(Settings):
    """One row of a paper's results, and how it is repeated: by the set's recipe, unless it says otherwise."""

    models: str  # whether one model or an ensemble, and of what; --models takes it
    table: str  # where in the paper
    scores: dict[str, float]
    recipe: str | None = None
    settings: list[str] = Field(default_factory=list)  # over the recipe's, as --set takes them
    members: list[MemberRun] = Field(default_factory=list)  # runs that are ranked together; none: a single run

    @property
    def is_recipe(self) -> bool:
        """Whether the set's recipe, as it is, repeats this row."""
        return self.recipe is None and not self.settings and not self.members


class PublishedSet(Settings):
    """One data set of a paper."""

    row: str  # its name in the paper's table of data sets
    train: int
    test: int
    labels: int
    word_vectors: str | None = None  # that the paper's network begins with; None: it reads none, or random ones
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


def _choose_row(published: PublishedSet, models: str | None) -> Row | None:
    """The row that --models names; None without it: the recipe is run as it is."""
    if models is None:
        return None
    known = {row.models: row for row in published.results}
    if models not in known:
        hint = nearest(models, known) or f" Known: {', '.join(map(repr, known))}."
        raise ConfigError(f"--models: the paper has no row {models!r} for this set.{hint}")
    return known[models]


def _variant(name: str, recipe: str, more: list[str]) -> str:
    """The set, the recipe where that is another, and what was changed, so that no run overwrites another's result."""
    stem = shown(recipe).rpartition("/")[2]
    parts = [stem if stem.startswith(name) else f"{name}+{stem}", *more]
    return "+".join(re.sub(r"[^\w.=+-]+", "_", part).strip("_") for part in parts)


def _encoders(config: Mapping[str, Any]) -> set[str]:
    """Names of the encoders that training with these settings loads; none for methods that read words alone."""
    name = config["encoder"]["name"]
    if "match" in config:  # X-BERT
        cluster, kind = config["cluster"], config["match"]["kind"]
        vectors = set(cluster["vectors"])
        by_words = "words" in vectors and find_spec("wordllama") is None
        of_labels = {cluster["encoder"] or name} if by_words or vectors & {"text", "pifa-neural"} else set()
        reads = kind == "bert" or (kind == "xttention" and config["words"]["vectors"] == "encoder")
        return of_labels | ({name} if reads else set())
    if config.get("text") == "words":  # TReaderXML
        reads = "encoder" in (config["words"]["vectors"], config["neighbours"]["vectors"])
        return {name} if reads else set()
    return {name}


def _find_encoders(config: Mapping[str, Any]) -> None:
    """Find the weights before hours of reading: a missing encoder is an error at once."""
    names = _encoders(config)
    if names:
        from xmtc.neural.resolve import resolve

        for name in sorted(names):
            resolve(name)


def _warn_of_random_vectors(config: Mapping[str, Any], published: PublishedSet) -> list[str]:
    """A warning for networks that read words, if the words' vectors are drawn at random and the paper's were not."""
    reads_words = config.get("text") == "words" or config.get("match", {}).get("kind") == "xttention"
    if not reads_words or config["words"]["vectors"] != "random" or published.word_vectors is None:
        return []
    return [
        f"warning: words.vectors = random, so the vectors of words and of labels' descriptions are random; the paper "
        f"begins with {published.word_vectors}: give their file with --set words.vectors=PATH"
    ]


def mixed_precision() -> str | None:
    """Return the precision to train with on this machine's GPU; None without CUDA."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    return "bf16" if torch.cuda.is_bf16_supported() else "fp16"


def _read_settings(method: str, recipe: str, assigned: list[str]) -> tuple[str, dict[str, Any]]:
    """The method and all its settings; mixed precision on a GPU where neither recipe nor --set name one."""
    given = parse_assignments(assigned)
    method, settings = api.read_settings(method, given, recipe)
    config = settings.model_dump(mode="json")
    precision = mixed_precision()
    if precision is not None and config["train"]["precision"] == "fp32" and "precision" not in given.get("train", {}):
        config["train"]["precision"] = precision
        print(
            f"train.precision = {precision}, for there is a GPU; --set train.precision=fp32 changes it", file=sys.stderr
        )
    return method, config


def _count_labels(train: Corpus, test: Corpus) -> tuple[int, int]:
    """Labels that occur in train, and in train or test."""
    of_train, of_test = (
        {part.labels.ids[i] for i in np.flatnonzero(np.bincount(part.Y.indices, minlength=len(part.labels)))}
        for part in (train, test)
    )
    return len(of_train), len(of_train | of_test)


def _beside(rows: list[Row], repeated: Row | None, reports: dict[str, Any]) -> list[dict[str, Any]]:
    """The paper's rows and, of the row that was repeated, ours − theirs by each truth; of all rows if none was."""
    own = [row for row in rows if (row.is_recipe if repeated is None else row is repeated)] or rows
    return [
        {
            **row.model_dump(include={"models", "table", "scores"}),
            "differences": {}
            if row not in own
            else {
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
    known = {path.stem: list(read_published(path).sets) for path in sorted(_PUBLISHED.glob("*.toml"))}
    sets = "; ".join(f"{method}: {', '.join(names)}" for method, names in known.items())
    parser.add_argument("method", metavar="METHOD", help=f"one of {', '.join(known)}")
    parser.add_argument("set", metavar="SET", help=f"a data set of the method's paper ({sets})")
    parser.add_argument("--data", required=True, help="folder of the set, with train and test")
    parser.add_argument(
        "--models",
        metavar="ROW",
        help="row of the paper to repeat, by its `models` in published/METHOD.toml, such as 'one model' or 'ensemble "
        "of three encoders' (default: train the recipe once)",
    )
    parser.add_argument(
        "--recipe", metavar="PATH", help="name or path of a recipe (default: METHOD/SET, else METHOD/SET-paper)"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="a setting, over the recipe's and the row's, such as train.batch_size=8; may be given several times",
    )
    parser.add_argument("--published", metavar="PATH", help="what the paper says (default: published/METHOD.toml)")
    parser.add_argument("--anyway", action="store_true", help="train even if the sizes are not the paper's")
    add_run_options(parser, timeout=14 * 24 * 3600, patience=0)


@dataclass(frozen=True)
class _Run:
    """One model to train."""

    name: str  # of its result and its folder
    method: str
    config: dict[str, Any]
    seed: int
    assigned: list[str]  # over the recipe


def _plan_runs(options: argparse.Namespace, row: Row | None, recipe: str) -> list[_Run]:
    """The runs that a row needs, or the recipe's one; encoders that cannot be found are refused now."""
    runs = []
    for member in (row.members if row else []) or [MemberRun()]:
        assigned = [*(row.settings if row else []), *member.settings, *options.settings]
        method, config = _read_settings(options.method, recipe, assigned)
        _find_encoders(config)
        seed, told = options.seed + member.seed, [_without_folder(each) for each in assigned]
        runs.append(_Run(f"{method}-{_variant(options.set, recipe, told)}-{seed}", method, config, seed, told))
    return runs


def _without_folder(assignment: str) -> str:
    """An assignment as results show it: of a path only its end, since folders are this machine's."""
    setting, _, value = assignment.partition("=")
    return f"{setting}={Path(value).name}" if Path(value).exists() else assignment


def _measured(options: argparse.Namespace) -> Measured:
    published = read_published(options.published or _published_path(options.method))
    if options.set not in published.sets:
        hint = nearest(options.set, published.sets) or f" Known: {', '.join(published.sets)}."
        raise ConfigError(f"no set {options.set!r} in what {published.title} published.{hint}")
    chosen = published.sets[options.set]
    row = _choose_row(chosen, options.models)
    recipe = options.recipe or (row.recipe if row else None) or _choose_recipe(options.method, options.set)
    runs = _plan_runs(options, row, recipe)
    told, wrong = check_sizes(Path(options.data), chosen, published.sizes)
    warnings = _warn_of_random_vectors(runs[0].config, chosen)
    lines = [*told, *(f"error: {line}" for line in wrong if options.anyway), *warnings]
    print("\n".join(lines), file=sys.stderr, flush=True)
    if wrong and not options.anyway:
        raise DataError("\n".join(wrong))
    about = {"set": options.set, "recipe": shown(recipe), "paper": published.title}
    about |= {"sizes": told, "sizes_that_differ": wrong}
    found = []
    for run in runs:
        result = {**_train(run, options), **about, "name": run.name, "assigned": run.assigned}
        result["title"] = title(result)
        found.append(result)
        if len(runs) > 1:  # a member has a result of its own, and no row of the paper
            yield f"{NAME}/{run.name}", {**result, "published": []}
    if row is not None and len(runs) > 1:
        result = _rank_together(found, runs, row, recipe, options)
    result["published"] = _beside(chosen.results, row, result["reports"])
    yield f"{NAME}/{result['name']}", result


def _train(run: _Run, options: argparse.Namespace) -> Found:
    """Train and rank one model, or go on where a killed run stopped."""
    with tempfile.TemporaryDirectory() as ranked:
        job = {
            "data": str(Path(options.data).absolute()),
            "model": str(_model_of(run, options)),
            "method": run.method,
            "config": run.config,
            "seed": run.seed,
            "threads": options.threads,
            "resume": options.resume,
            "ranked": ranked,
            "hold_out": False,
        }
        return measure(job, limits_of(options))


def _model_of(run: _Run, options: argparse.Namespace) -> Path:
    return work_folder(options.work) / NAME / run.name


def _rank_together(found: list[Found], runs: list[_Run], row: Row, recipe: str, options: argparse.Namespace) -> Found:
    """The result of an ensemble whose members are trained."""
    own = [_without_folder(each) for each in options.settings]
    job = {
        "data": str(Path(options.data).absolute()),
        "models": [str(_model_of(run, options)) for run in runs],
        "threads": options.threads,
    }
    return {
        **{key: found[0][key] for key in ("method", "facts", "set", "recipe", "paper", "sizes", "sizes_that_differ")},
        **BENCHMARK.run("join", job, limits_of(options)),
        "name": f"{runs[0].method}-{_variant(options.set, recipe, [row.models, *own])}-{options.seed}",
        "title": f"{row.models}: {'; '.join(each['title'] for each in found)}",
        "assigned": own,
        "members": [run.name for run in runs],
    }


def _join(job: Found) -> Found:
    """Rank test by the mean of several models, as `xmtc ensemble` does, and score it against both truths."""
    models = [api.load(folder) for folder in job["models"]]
    corpus = api.read_corpus(job["data"], "test")
    with Clock() as rank:
        ranking = api.rank_corpus(api.ensemble(models), corpus, WIDTH)
    return {
        "reports": Truth.of_model(models[0], corpus).reports(ranking),
        "seconds": {"rank": {"rank": rank.seconds}},  # training's seconds are in the members' results
    }


PHASES = {"join": _join}
BENCHMARK = Benchmark(
    name=NAME,
    about="Repeat a paper's experiment.",
    arguments=_add_arguments,
    measure=_measured,
    phases=PHASES,
    packages=PACKAGES,
    summary=lambda result: f"{_table(result['paper'], result)}\n",
    interrupted=INTERRUPTED,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
