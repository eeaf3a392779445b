"""The page of one data set: all systems with all scores, paired differences, ensembles, presets, chosen settings."""

from __future__ import annotations

from benchmarks import cascade, linear, members, presets, train
from benchmarks.framework.markdown import SCORES, table
from benchmarks.framework.results import read_result, read_results
from benchmarks.pages.systems import RIVAL, duration, milliseconds, systems_of
from benchmarks.peers import choose, race

# whose parts the page has, in this order
BENCHMARKS = tuple(module.BENCHMARK for module in (presets, linear, race, train, members, cascade, choose))
_HOW = (
    "Known truth leaves out labels without training documents, which most models cannot rank, and test documents "
    "that have no other label. Macro-F is of the 5 best labels; few, medium and many are labels with at most 20, at "
    "most 100 and more training documents. Train, docs/s and one are as on the [first page](index.md)."
)
_DIFFERENCES = (
    "A difference is in percent points, with the 95 % interval of a paired bootstrap over test documents (1,000 "
    "resamples); bold where the interval leaves out 0."
)


def render(name: str) -> list[str]:
    """Return the parts of the page."""
    rows = [
        [
            f"rival: {system.linked}" if system.kind == RIVAL else system.linked,
            *(f"{system.metrics[key]:.2f}" for key in SCORES),
            duration(system.train_s),
            f"{system.docs_s:,.0f}",
            milliseconds(system.one_ms),
            f"{system.mb:,.0f}",
        ]
        for system in systems_of(name)
    ]
    return [
        f"# {name}",
        _sizes(name),
        _HOW,
        table(["known truth", *SCORES.values(), "train", "docs/s", "one, ms", "MB"], rows),
        _DIFFERENCES,
        *(part for benchmark in BENCHMARKS for part in benchmark.describe_set(name)),
    ]


def _sizes(name: str) -> str:
    """How large the set is, and what was held out of train."""
    linear_result, runs = read_result(f"linear/{name}"), read_results(f"train/{name}")
    text = ""
    if linear_result is not None:
        data, known = linear_result["data"], linear_result["reports"]["known"]
        bins = known["labels_in_bin"]
        text = (
            f"{data['train_documents']:,} training documents, {data['test_documents']:,} test documents, "
            f"{data['labels']:,} labels. Known truth: {known['n']:,} test documents; labels in it: {bins['few']:,} "
            f"few, {bins['medium']:,} medium, {bins['many']:,} many."
        )
    sizes = {
        (data["train_documents"], data["dev_documents"], bool(data["held_out"]))
        for data in (run["data"] for run in runs.values())
    }
    for size, dev, held in sorted(sizes):
        where = "held out of train as dev" if held else "the set's dev split"
        text += (
            f" Neural recipes and ensembles trained on {size:,} documents; settings were chosen on {dev:,}, {where}."
        )
    return text.strip() or "Sizes are in the results."
