"""The race of xmtc and its rivals on one set, from results/race: times, sizes and scores, side by side."""

from __future__ import annotations

from typing import Any

from benchmarks.store import read_result
from benchmarks.tables.markdown import SCORES, code, difference, flat, hardware, table

_TIMES = ["train s", "train peak MB", "model MB", "docs/s", "one: p50 ms", "p99", "from text: p50 ms", "p99"]


def race_sections(name: str) -> list[str]:
    """Return the parts of one set; none where no race was run."""
    result = read_result("race", name)
    if result is None:
        return []
    ran = {who: found for who, found in result["contestants"].items() if "error" not in found}
    failed = [found for found in result["contestants"].values() if "error" in found]
    data = result["data"]
    parts = [
        "### The race",
        f"{_runs(result['contestants'])}, one after another, on the same matrices of {data['documents']:,} training "
        f"and {data['test_documents']:,} test documents. Training is from the matrix to the model on disk, clustering "
        "included: the quickest of the runs, all of them in brackets. docs/s: all test documents in one call, the "
        "quickest of three. One: a document alone, on one thread; from text: vectorised first, by xmtc's and PECOS's "
        "own TF-IDF, of the others by scikit-learn's.",
        table(["", *_TIMES], [_times(found, data["test_documents"]) for found in ran.values()]),
    ]
    parts += [_profile(found) for found in ran.values() if "stages" in found["train"]]
    if failed:
        parts.append("\n".join(f"- {found['title']} failed: {found['error']}" for found in failed))
    scored = {who: found for who, found in ran.items() if "metrics" in found}
    if scored:
        parts += [
            table(["known truth", *SCORES.values()], [_scores(found) for found in scored.values()]),
            _differences(list(scored.values())),
        ]
    if result["tfidf"]:
        rows = [_vectoriser(found) for found in result["tfidf"].values()]
        parts += ["TF-IDF alone, seconds:", table(["", "fit and transform train", "transform test", "features"], rows)]
    parts.append("\n".join(_ran(found) for found in result["contestants"].values()))
    return parts


def _runs(contestants: dict[str, Any]) -> str:
    n = len({found["facts"]["commit"] for found in contestants.values()})
    return "All in one run" if n == 1 else f"In {n} runs, whose commits are told below"


def _times(found: dict[str, Any], n_documents: int) -> list[str]:
    train, predict, single = found["train"], found["predict"], found["single"]
    every = ", ".join(f"{seconds:.1f}" for seconds in train["all_seconds"])
    return [
        found["title"],
        f"{train['seconds']:.1f} ({every})",
        f"{train['peak_rss_mb']:,.0f}",
        f"{train['model_mb']:.1f}",
        f"{n_documents / predict['seconds']:,.0f}",
        *(f"{single[kind][share]:.2f}" for kind in ("vector_ms", "text_ms") for share in ("p50", "p99")),
    ]


def _profile(found: dict[str, Any]) -> str:
    train = found["train"]
    told = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in train["stages"].items())
    rest = train["seconds"] - sum(train["stages"].values())
    return f"Where the training time of {found['title']} goes: {told}, all else {rest:.2f} s."


def _scores(found: dict[str, Any]) -> list[str]:
    return [found["title"], *(f"{found['metrics'][key]:.2f}" for key in SCORES)]


def _differences(scored: list[dict[str, Any]]) -> str:
    first, *others = scored
    keys = list(first["differences"])
    return table(
        [f"{first['title']} −", *(found["title"] for found in others)],
        [[SCORES.get(key, key), *(difference(found["differences"][key]) for found in others)] for key in keys],
    )


def _vectoriser(found: dict[str, Any]) -> list[str]:
    if "error" in found:
        return [f"{found['title']} failed: {found['error']}", "–", "–", "–"]
    return [
        found["title"],
        f"{found['fit_transform']:.2f}",
        f"{found['transform']:.2f}",
        f"{found['features']:,}",
    ]


def _ran(found: dict[str, Any]) -> str:
    line = f"- {found['title']}: {code(found['facts'])}; {hardware(found['facts'])}; "
    line += f"{flat(found['settings'])}; all else its defaults." if found["settings"] else "its defaults."
    phases = [(phase, found[phase]["machine"]) for phase in ("train", "predict", "single") if phase in found]
    if phases:
        told = ", ".join(
            f"{phase} {'unknown' if quiet['others_cores'] is None else format(quiet['others_cores'], '.2f')}"
            for phase, quiet in phases
        )
        line += f" Cores that others took: {told}."
    return " ".join([line, *(f"Note: {note}." for note in found["notes"])])
