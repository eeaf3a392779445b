"""What X-BERT takes for one document on one thread, stage by stage: p50 and p99.

python -m benchmarks.xbert_latency [CASE | MODEL]… [--documents 1000] [--data DIR] [--work DIR]

A case is trained on tate first: linear, linear-v3 (a linear matcher), minilm, minilm-v3 (the CPU recipe's matcher, for
one epoch: how well it matches costs no time); linear, linear-v3 and minilm by default. A MODEL is the folder of a
trained xbert model, and --set-name says whose test texts it ranks. Of an ensemble, the first member is measured alone
too. Cases of earlier runs are kept.
→ results/xbert_latency.json
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.framework import (
    Benchmark,
    Clock,
    Found,
    Limits,
    Measured,
    add_options,
    limits_of,
    percentiles,
)
from benchmarks.framework.markdown import disturbed, table
from benchmarks.framework.results import read_result
from benchmarks.framework.sources import method_roots
from benchmarks.models import curve_of, describe_encoder, describe_version, members_of, some_members, title
from benchmarks.sets import locate, work_folder
from benchmarks.train import PACKAGES
from xmtc import api
from xmtc.core.errors import ConfigError, ModelError, nearest
from xmtc.core.model import Model

if TYPE_CHECKING:  # torch is loaded by the phases alone: the page needs none
    from xmtc.methods.xbert.model import Member, StagedModel

NAME = "xbert_latency"
LIMIT_MS = 1.0  # of ranking by one member, p50
STAGES = ("vectorising", "tokenizing", "encoder", "cluster scores", "ranking")
_LINEAR = {"match": {"kind": "linear"}, "rank": {"embedding": False}}
_ONE_EPOCH = {"train": {"epochs": 1}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {  # name → recipe, settings over it
    "linear": ("xbert/tate-cpu", _LINEAR),
    "linear-v3": ("xbert/tate-v3-cpu", _LINEAR),
    "minilm": ("xbert/tate-cpu", _ONE_EPOCH),
    "minilm-v3": ("xbert/tate-v3-cpu", _ONE_EPOCH),
}
_DEFAULT = ("linear", "linear-v3", "minilm")
_WARM_UP = 20  # documents that are ranked before the clock runs


def measure(named: str, job: Found, work: Path, threads: int, limits: Limits) -> dict[str, Found]:
    """Train a case, unless that was finished before, or take a model; rank texts one by one, by all members and, where
    these are several, by the first alone. Returns what was found, by name."""
    if named in CASES:
        recipe, settings = CASES[named]
        model = work / NAME / named
        asked = {**job, "model": str(model), "recipe": recipe, "settings": settings, "threads": threads}
        BENCHMARK.run("train", asked, limits)
    elif Path(named).is_dir():
        model = Path(named).absolute()
    else:
        hint = nearest(named, CASES) or f" Known cases: {', '.join(CASES)}."
        raise ConfigError(f"{named!r} is neither a case nor the folder of a model.{hint}")
    asked = {**job, "model": str(model), "threads": 1}
    found = {model.name: _rank(asked, limits)}
    if found[model.name]["members"] > 1:
        found[f"{model.name}, first member"] = _rank({**asked, "members": 1}, limits)
    return found


def _rank(job: Found, limits: Limits) -> Found:
    """Rank texts one by one, in a process of its own."""
    facts = BENCHMARK.facts(1)
    found = BENCHMARK.run("rank", job, limits)
    holds = found["ms"]["ranking"]["p50"] <= LIMIT_MS if found["members"] == 1 else None
    return {"facts": facts, "set": Path(job["data"]).name, "holds": holds, **found}


def train(job: Found) -> Found:
    """Train and save a case; a finished one is left as it is."""
    corpus = api.read_corpus(job["data"], "train")
    Path(job["model"]).parent.mkdir(parents=True, exist_ok=True)
    api.train(corpus, config=job["settings"], recipe=job["recipe"], out=job["model"], resume=True)
    return {}


def rank(job: Found) -> Found:
    """Rank texts one by one; return percentiles of each stage's milliseconds."""
    from xmtc.methods.xbert.model import StagedModel

    model = api.load(job["model"])
    if not isinstance(model, StagedModel):
        raise ModelError(f"{Path(job['model']).name} is a model of {model.manifest.method}; give one of xbert")
    model = some_members(model, range(len(members_of(model)))[: job.get("members")])
    texts = list(api.read_corpus(job["data"], "test").texts or ())[: job["documents"]]
    laps = Laps()
    watched = watch(model, laps)
    for text in texts[:_WARM_UP]:
        watched.rank([text], 5)
    documents = [_time(watched, text, laps) for text in texts]
    return {
        "title": _title(model),
        "documents": len(documents),
        "labels": model.labels.n_labels,
        "clusters": model.members[0].partition.n_clusters,
        "members": len(model.members),
        "ms": {stage: percentiles([1000 * document[stage] for document in documents]) for stage in documents[0]},
    }


class Laps:
    """Seconds of each stage of one document, over all members."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def lap(self, stage: str) -> Iterator[None]:
        """Add the time inside the `with` to a stage."""
        start = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start


def watch(model: StagedModel, laps: Laps) -> StagedModel:
    """Return the same model with a clock at the parts that its `rank` calls."""
    tfidf: Any = Timed("vectorising", model.tfidf, laps)
    reader: Any = None if model.reader is None else Timed("tokenizing", model.reader, laps)
    return replace(
        model, tfidf=tfidf, reader=reader, members=tuple(_watch_member(member, laps) for member in model.members)
    )


@dataclass(frozen=True, eq=False)
class Timed:
    """A part of a model whose one method that ranking calls is timed."""

    stage: str
    inner: Any
    laps: Laps

    def __call__(self, *given: Any) -> Any:
        """Tokenize."""
        with self.laps.lap(self.stage):
            return self.inner(*given)

    def transform(self, *given: Any) -> Any:
        """Vectorise."""
        with self.laps.lap(self.stage):
            return self.inner.transform(*given)

    def match(self, *given: Any) -> Any:
        """Retrieve clusters."""
        with self.laps.lap(self.stage):
            return self.inner.match(*given)

    def forward(self, *given: Any) -> Any:
        """Run a network's body."""
        with self.laps.lap(self.stage):
            return self.inner(*given)


def _watch_member(member: Member, laps: Laps) -> Member:
    from xmtc.methods.xbert.matcher import NeuralMatcher
    from xmtc.methods.xbert.model import JointMatcher

    neural = member.matcher.neural if isinstance(member.matcher, JointMatcher) else member.matcher
    if isinstance(neural, NeuralMatcher):
        body = neural.network.body
        body.forward = Timed("encoder", body.forward, laps).forward  # type: ignore[method-assign]
    return replace(member, matcher=Timed("matching", member.matcher, laps))  # type: ignore[arg-type]


def _time(model: Model, text: str, laps: Laps) -> dict[str, float]:
    """Seconds of each stage of one text; ranking is what the others leave over."""
    laps.seconds = {}
    with Clock() as whole:
        model.rank([text], 5)
    found = laps.seconds
    matching = found.pop("matching")
    ranking = whole.seconds - matching - found["vectorising"] - found.get("tokenizing", 0.0)
    return {
        **found,
        "cluster scores": matching - found.get("encoder", 0.0),
        "ranking": ranking,
        "all but vectorising": whole.seconds - found["vectorising"],
        "all": whole.seconds,
    }


def _title(model: Model) -> str:
    words = {"encoder": describe_encoder(model), "version": describe_version(model)}
    return title({"method": "xbert", "recipe": "xbert", "curve": curve_of(model), **words})


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    rows, ran = [], list[str]()
    for name, case in result["cases"].items():
        cells = [_cell(case["ms"].get(stage)) for stage in (*STAGES, "all but vectorising", "all")]
        rows.append([f"`{name}`", *cells])
        ran.append(
            f"- `{name}`: {case['title']}; {case['documents']:,} test texts of {case['set']}, {case['labels']:,} "
            f"labels in {case['clusters']:,} clusters, {case['members']} member{'s' if case['members'] > 1 else ''}."
            f"{disturbed([case])}"
        )
    single = {name: case["holds"] for name, case in result["cases"].items() if case["holds"] is not None}
    told = "; ".join(f"`{name}` {'holds' if holds else 'does not hold'}" for name, holds in single.items())
    return [
        "## X-BERT, one document at a time",
        "Milliseconds of `model.rank([text], 5)` on one thread, p50 / p99. Encoder: all of a member's network but the "
        "layer over the clusters. Cluster scores: the rest of matching, padding of the tokens and choice of the "
        "clusters included; all of it for a linear matcher. Ranking: all that is left, so also checks of the text, "
        "joining the encoder's vector to the features and, of several members, combining them.",
        table(["ms", *STAGES, "all but vectorising", "all"], rows),
        f"Ranking by one member within {result['limit_ms']:.0f} ms, p50, vectorising and matching not counted: {told}.",
        "\n".join(ran),
    ]


def _cell(found: dict[str, float] | None) -> str:
    return "–" if found is None else f"{found['p50']:.2f} / {found['p99']:.2f}"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="*", metavar="CASE|MODEL", help=f"of {', '.join(CASES)}, or a model's folder")
    parser.add_argument("--documents", type=int, default=1000, help="test texts that are ranked")
    parser.add_argument("--set-name", default="tate", metavar="SET", help="whose test texts a MODEL ranks")
    add_options(parser, "data", "work", threads=2, timeout=5 * 3600, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    """Measure the cases and models of the command line; cases of earlier runs are kept. --threads is of training."""
    known = (read_result(NAME) or {"cases": {}})["cases"]
    for named in options.models or _DEFAULT:
        with locate("tate" if named in CASES else options.set_name, options.data) as folder:
            job = {"data": str(folder), "documents": options.documents}
            known |= measure(named, job, work_folder(options.work), options.threads, limits_of(options))
            yield NAME, {"limit_ms": LIMIT_MS, "cases": known}


PHASES = {"train": train, "rank": rank}
BENCHMARK = Benchmark(
    name=NAME,
    about="Measure X-BERT on one document at a time.",
    phases=PHASES,
    packages=PACKAGES,
    measures=method_roots("xbert"),
    arguments=_add_arguments,
    measure=_measured,
    holds=lambda result: all(case["holds"] is not False for case in result["cases"].values()),
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
