"""The pages on one topic across sets: speed, scale, labels without documents, probabilities, languages."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import (
    aplc_cost,
    calibration,
    cold,
    contention,
    engines,
    languages,
    large_step,
    match_scale,
    mexml_memory,
    neighbours,
    neural_overhead,
    onnx,
    scale,
    serving,
    update,
    xbert_latency,
    xbert_scale,
    xttention_step,
)
from benchmarks.framework import Benchmark
from benchmarks.framework.markdown import source
from benchmarks.pages.systems import names
from benchmarks.peers import race


@dataclass(frozen=True)
class Topic:
    """One page: its title, what it says first, and the benchmarks whose sections it has."""

    title: str
    about: str
    benchmarks: tuple[Benchmark, ...]


TOPICS = {
    "speed": Topic(
        "Speed",
        "Time and memory of training, ranking and serving on real documents. Each phase runs in a process of its own "
        "that waits for a quiet machine; where others kept it busy, that is said.",
        tuple(
            module.BENCHMARK
            for module in (
                serving,
                onnx,
                xbert_latency,
                neighbours,
                neural_overhead,
                aplc_cost,
                mexml_memory,
                contention,
            )
        ),
    ),
    "scale": Topic(
        "Scale",
        "What very many labels and large networks take. Texts and labels are drawn at random: only time and memory are "
        "reported, never accuracy. [SCALING.md](../SCALING.md) shows how to train and predict on several machines.",
        tuple(module.BENCHMARK for module in (scale, engines, match_scale, large_step, xbert_scale, xttention_step)),
    ),
    "cold": Topic(
        "New labels",
        "Labels that no training document has, and labels that come after training.",
        tuple(module.BENCHMARK for module in (cold, update)),
    ),
    "calibration": Topic("Probabilities", "What [probabilities](../SCORES.md) are worth.", (calibration.BENCHMARK,)),
    "languages": Topic(
        "Languages", "[Analyzers](../LANGUAGES.md) of words on texts that are not English.", (languages.BENCHMARK,)
    ),
}
_RACE = (
    "xmtc's linear method and its rivals, one after another, on the same TF-IDF matrices. Training is from the "
    "matrix to the model on disk, clustering included: the quickest of the runs, all of them in brackets. docs/s: "
    "all test documents in one call, the quickest of three. One: a document alone, on one thread; from text: "
    "vectorised first, by xmtc's and PECOS's own TF-IDF, of the others by scikit-learn's."
)


def measured() -> list[str]:
    """Return the topics that have results."""
    return [topic for topic in TOPICS if _sections(topic)]


def render(topic: str) -> list[str]:
    """Return the parts of a page."""
    return [f"# {TOPICS[topic].title}", TOPICS[topic].about, *_sections(topic)]


def _sections(topic: str) -> list[str]:
    raced = [part for name in names() for part in race.describe_speed(name)] if topic == "speed" else []
    head = ["## The linear method and its rivals", _RACE, *raced] if raced else []
    return head + [part for benchmark in TOPICS[topic].benchmarks for part in _section(benchmark)]


def _section(benchmark: Benchmark) -> list[str]:
    """The section of a benchmark, with links to its results below the heading."""
    parts = benchmark.section()
    links = ", ".join(source(f"{place}.json", place) for place in benchmark.places())
    return [parts[0], f"Figures: {links}.", *parts[1:]] if parts else []
